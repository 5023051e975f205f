"""The tables of docs/summary.md, from the table of metrics: fails where they are stale; `--write` draws them again."""

from __future__ import annotations

import sys
from pathlib import Path

from tcpsbed.analysis.metrics.page import drawn

PAGE = Path(__file__).resolve().parents[1] / "docs" / "summary.md"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    now = drawn(text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(now, encoding="utf-8")
    elif now != text:
        sys.exit("docs/summary.md is stale: tools/summary.py --write")


if __name__ == "__main__":
    main()
