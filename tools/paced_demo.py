"""`tcpsbed demo` in simulated time, at so many simulated seconds a second: tools/paced_demo.py 0.25"""

from __future__ import annotations

import sys

from tcpsbed import shipped
from tcpsbed.cli.page import Page, listening, operated
from tcpsbed.cli.run import perform
from tcpsbed.clocks import VIRTUAL


def main() -> None:
    """Runs and serves it until Ctrl-C."""
    page = Page(
        listening(None, 0, None, None),
        browser=False,
        stays=False,
        label="demo",
        sinks=(),
        operator=True,
        tour="demo",
    )
    with operated():
        perform(
            shipped.find("demo"),
            world=VIRTUAL,
            out=None,
            sets=None,
            seed=None,
            duration=None,
            pace=sys.argv[1],
            page=page,
            samples=False,
            yes=True,
        )


if __name__ == "__main__":
    main()
