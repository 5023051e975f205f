#!/usr/bin/env python3
"""Writes the tables of parameters in the documentation, between ``<!-- table:ROOM -->`` and ``<!-- /table -->``
(``ROOM=NAME,NAME``: of these entries), those of keys, between ``<!-- keys:MODEL -->`` and ``<!-- /keys -->``
(``keys.py``), those of metrics, between ``<!-- metrics:PART -->`` and ``<!-- /metrics -->``, the command line between
``<!-- commands:all -->`` and ``<!-- /commands -->`` (``commands.py``), the C interface between ``<!-- header:tcps_hook -->``
and ``<!-- /header -->`` (``header.py``), the schema of scenarios, the types of a run's results, and the keys of tables as
parameters.

Without ``--write`` what is stale fails.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import commands
import header
import keys
from tcpsbed import door
from tcpsbed.analysis.metrics import classes
from tcpsbed.analysis.metrics.page import drawn
from tcpsbed.devices import DEVICES
from tcpsbed.robots import ROBOTS
from tcpsbed.scenarios import completion, schema
from tcpsbed.scenarios.model.entries import entries, page, table
from tcpsbed.worlds import fit

DOCS = Path(__file__).resolve().parent.parent / "docs"
IN_PYTHON = {"robots": ROBOTS, "devices": DEVICES}
_TABLE = re.compile(r"(<!-- (table|keys|commands|header):([\w,=-]+) -->\n).*?(<!-- /\2 -->)", re.S)


def written() -> Iterator[tuple[Path, str, str]]:
    """Each file with what is in it, and what should be."""
    for file in sorted(DOCS.glob("*.md")):
        found = file.read_text(encoding="utf-8")
        yield (
            file,
            found,
            drawn(_TABLE.sub(lambda mark: f"{mark[1]}{_drawn(mark[2], mark[3])}{mark[4]}", found)),
        )
    file = DOCS / "scenario.schema.json"
    yield file, file.read_text(encoding="utf-8"), json.dumps(schema(), indent=2) + "\n"
    for made in (classes, completion):
        yield made.FILE, made.FILE.read_text(encoding="utf-8"), made.module()


def _drawn(kind: str, room: str) -> str:
    if kind in ("commands", "header"):
        return str({"commands": commands, "header": header}[kind].page())
    if kind == "keys":
        return str(keys.page(room))
    if room == "networks":
        return fit.table()
    room, _, names = room.partition("=")
    if names:
        return table({name: entries(room)[name] for name in names.split(",")})
    return table(door.entries(IN_PYTHON[room])) if room in IN_PYTHON else page(room)


def main() -> int:
    stale = [(file, right) for file, found, right in written() if right != found]
    for file, right in stale:
        if "--write" in sys.argv:
            file.write_text(right, encoding="utf-8")
        else:
            print(f"{file.name} is stale: tools/tables.py --write", file=sys.stderr)
    return int(bool(stale)) if "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
