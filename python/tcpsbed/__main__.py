"""The command `tcpsbed`, also `python -m tcpsbed`. A node process takes a way of its own, without the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs a node (`tcpsbed node`), or the command line."""
    if sys.argv[1:2] == ["node"]:
        from tcpsbed import _tcps

        sys.exit(_tcps.run_node())
    from tcpsbed.cli.app import main as command_line

    command_line()


if __name__ == "__main__":
    main()
