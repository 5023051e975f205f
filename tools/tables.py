#!/usr/bin/env python3
"""Writes the tables of parameters in the documentation, between ``<!-- table:ROOM -->`` and ``<!-- /table -->``,
and those of metrics, between ``<!-- metrics:PART -->`` and ``<!-- /metrics -->``.

Without ``--write`` a stale table fails.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tcpsbed.analysis.metrics.page import drawn
from tcpsbed.config.model.entries import page

DOCS = Path(__file__).resolve().parent.parent / "docs"
_TABLE = re.compile(r"(<!-- table:([\w-]+) -->\n).*?(<!-- /table -->)", re.S)


def main() -> int:
    stale = 0
    for file in sorted(DOCS.glob("*.md")):
        found = file.read_text(encoding="utf-8")
        right = drawn(_TABLE.sub(lambda table: f"{table[1]}{page(table[2])}{table[3]}", found))
        if right != found and "--write" in sys.argv:
            file.write_text(right, encoding="utf-8")
        elif right != found:
            print(f"{file.name}: a table is stale: tools/tables.py --write", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
