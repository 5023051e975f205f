"""What of published works came out of the testbed: docs/scoreboard.md, from what is expected and the results that are kept.

    tools/scoreboard.py                    says whether the page is stale; exit status 1 if it is
    tools/scoreboard.py --write            draws it again
    tools/scoreboard.py --take reproduced  keeps the results that `tcpsbed reproduce` left there, then draws it again

What is expected is read anew from python/tcpsbed/data/expected, so that a row whose basis or reason has changed since its
run is shown as it is judged now. Results are kept in docs/results, a file a work, and only of whole runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tcpsbed.reproduce import page, works
from tcpsbed.reproduce.expected import Expected, load
from tcpsbed.reproduce.study import NOTHING, VERDICTS, Row

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "scoreboard.md"
KEPT = ("key", "ours", "reason", "note", "equals")
"""What is kept of a row; all else of it is read from what is expected."""
NO_RESULT = "not run yet"
"""What the page says of a row for which no result is kept."""
SHOWN = VERDICTS | {NO_RESULT: "no result of a whole run is kept"}
HEAD = """# Scoreboard: what of published works came out of the testbed

`tools/scoreboard.py` draws this page from the expected values and the newest results that are kept; do not edit it. A row
is *reproduced* only where ours is the outcome of a run in which nothing was set to make it so, beside a value that the work
prints, within a tolerance that was set down before. [Published experiments](reproduce.md) explains basis, reference and
tolerance.
"""


def judged(key: str, entry: Expected, kept: dict[str, dict[str, Any]]) -> Row:
    """The row of an item, judged by what is expected now."""
    if key not in kept:
        return Row(key, entry, None, None, f"needs {entry.hardware}" if entry.hardware else NO_RESULT)
    result = kept[key]
    ours, reason, note = result["ours"], result["reason"], result.get("note", "")
    within = entry.holds(ours) if ours is not None else False if reason == NOTHING else None
    if within is False and ours is not None:
        reason = entry.missed(note)
    return Row(key, entry, ours, within, reason, result.get("equals", ""), note)


def verdict(row: Row) -> str:
    """One of `SHOWN`."""
    return NO_RESULT if row.reason == NO_RESULT else row.verdict


def section(work: works.Work) -> tuple[list[Row], str]:
    """The rows of a work, and its part of the page."""
    file = RESULTS / f"{work.name}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    by_key = {row["key"]: row for row in kept["rows"]} if kept else {}
    rows = [judged(key, entry, by_key) for key, entry in load(work.name).items()]
    taken = f"tcpsbed {kept['version']}, {kept['date']}, {kept['machine']}" if kept else NO_RESULT
    lines = [f"## {work.name}\n", f"{work.reference}.", f"Results: {taken}.\n"]
    lines += [page.counted(verdict(row) for row in rows) + ".\n"]
    for name, meaning in SHOWN.items():
        if those := [row for row in rows if verdict(row) == name]:
            lines += [f"**{name}** ({meaning})\n", table(those), ""]
    return rows, "\n".join(lines)


def table(rows: list[Row]) -> str:
    """Rows of one verdict."""
    titles = ("item", "expected", "ours", "tolerance", "would fail", "basis", "needs", "reason")
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for row in rows:
        e = row.expected
        reason = row.reason if row.within is not True else e.because
        beside = f"{page.published(row)} ({e.reference})" if e.published is not None else "–"
        cells = (
            e.item,
            beside,
            page.number(row.ours),
            page.tolerance(row),
            e.fails,
            page.basis(row),
            ", ".join(e.needs),
            reason,
        )
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def drawn() -> str:
    """The whole page."""
    parts = [(work, *section(work)) for work in works.WORKS]
    columns = [name for name in SHOWN if any(verdict(row) == name for _, rows, _ in parts for row in rows)]
    lines = [f"| work | {' | '.join(columns)} |", "|" + "---|" * (len(columns) + 1)]
    for work, rows, _ in parts:
        counts = [sum(verdict(row) == name for row in rows) for name in columns]
        lines.append(f"| [{work.name}](#{work.name}) | {' | '.join(map(str, counts))} |")
    whole = page.counted(verdict(row) for _, rows, _ in parts for row in rows)
    return "\n".join([HEAD, f"In all: {whole}.\n", *lines, "", *(text for _, _, text in parts)])


def take(folder: Path) -> None:
    """Keeps the results of whole runs that lie in the folders of works: what came out, and not how it was judged then."""
    RESULTS.mkdir(exist_ok=True)
    for work in works.WORKS:
        file = folder / work.name / "rows.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["full"]:
            found["rows"] = [{name: row[name] for name in KEPT if name in row} for row in found["rows"]]
            text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
            (RESULTS / f"{work.name}.json").write_text(text, encoding="utf-8")
            print(f"kept: {work.name}")


def main(arguments: list[str]) -> int:
    """Checks, writes or takes; the exit status."""
    if arguments[:1] == ["--take"]:
        take(Path(arguments[1]))
    text = drawn()
    if arguments:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/scoreboard.md is stale: draw it again with tools/scoreboard.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
