"""What of published works came out of the testbed: docs/scoreboard.md, from what is expected and the results that are kept.

    tools/scoreboard.py                    says whether the page is stale; exit status 1 if it is
    tools/scoreboard.py --write            draws it again
    tools/scoreboard.py --take reproduced  keeps the results that `tcpsbed reproduce` left there, then draws it again

What is expected is read anew from python/tcpsbed/data/expected: a row is shown as it is judged now, and the page says where
it was judged by other bounds at its run. Results are kept in docs/results, a file a work with its whole runs, newest first:
what was measured, with version, commit, machine and the hash of the expected values. A run is never edited: of an older one
those rows stay that a newer one left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tcpsbed.lab.reproduce import page, works
from tcpsbed.lab.reproduce.expected import FOLDER, Expected, load
from tcpsbed.lab.reproduce.rows import NOTHING, VERDICTS, Row

Kept = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "scoreboard.md"
KEPT = ("key", "ours", "fails", "reason", "beside", "note", "equals")
"""What is kept of a row; all else of it is read from what is expected. The reason where there is no value of ours."""
SHARES = (
    ("± 10 % or less", 0.1001),
    ("± 10 to 25 %", 0.2501),
    ("± 25 to 50 %", 0.4999),
    ("± 50 % or more", float("inf")),
)
"""Tolerances as shares of the value, in steps, and the largest of each."""
NO_RESULT = "not run yet"
"""What the page says of a row for which no result is kept."""
SHOWN = VERDICTS | {NO_RESULT: "no complete run is kept"}
HEAD = """# Scoreboard: which published results does the testbed reproduce?

For readers of the papers below, and for anyone who wants to know how far to trust the testbed. Each row is one claim: the
expected value, our value, the tolerance, the verdict and its reason. The expected value is a number that the paper prints,
unless the brackets after it say otherwise. A row counts as *reproduced* only if it is an outcome within the tolerance of
a printed value. *Outcome* means that nothing in its scenario was set to make it so.

```sh
tcpsbed reproduce gokhale2017   # measures the rows of one work again
```

[Published experiments](reproduce.md#what-a-verdict-means) explains verdicts, basis and reference, and [when
tolerances were set](reproduce.md#when-tolerances-were-set). Results may be older than this version: `docs/results`
has the date of each. This page is generated: `tools/scoreboard.py --take reproduced` keeps new results and writes it.
"""


def runs(file: Path) -> list[Kept]:
    """The runs of a file of results, the newest first."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def measured(row: Kept) -> bool:
    """Whether a row came to a value, or to none where one was due."""
    return row["ours"] is not None or row.get("reason") == NOTHING


def newest(of: list[Kept]) -> dict[str, Kept]:
    """By key the newest row that was measured, or else why none was."""
    found: dict[str, Kept] = {}
    for run in of:
        for row in run["rows"]:
            if row["key"] not in found or (measured(row) and not measured(found[row["key"]])):
                found[row["key"]] = row
    return found


def table2(rows: dict[str, Kept]) -> dict[str, float]:
    """Errors of known delays in percent, by their cells."""
    cells = [
        (key.split("-"), row["ours"]) for key, row in rows.items() if re.fullmatch(r"table2-\d+-\d+", key)
    ]
    return {
        f"{ms} ms beside {kbps} kbit/s": abs(100.0 * (ours / int(ms) - 1.0)) for (_, ms, kbps), ours in cells
    }


def renamed(**names: str) -> Callable[[dict[str, Kept]], dict[str, float]]:
    """Values of rows under names of today."""
    return lambda rows: {
        name.replace("_", " "): rows[key]["ours"] for name, key in names.items() if key in rows
    }


DERIVED = {
    ("polachan2022-mininet", "table2-error"): (max, table2),
    ("polachan2022-mininet", "figure20-lost"): (
        max,
        renamed(at_a_constant_rate="figure20-drops", at_random_moments="figure20-drops-poisson"),
    ),
    ("almouhamed-mininet", "route-c-high"): (max, renamed(route_C="route-c-scatter")),
}
"""Rows that a kept run measured under other keys: what they are worked out of. Each is dropped with the last such run."""


def derived(work: str, key: str, rows: dict[str, Kept]) -> Kept | None:
    """A row that is worked out of measured ones, unless it was measured itself."""
    if key in rows or (work, key) not in DERIVED:
        return None
    choose, of = DERIVED[work, key]
    values = of(rows)
    return {"key": key, "ours": choose(values.values()), "beside": values} if values else None


def judged(key: str, entry: Expected, kept: dict[str, Kept]) -> Row:
    """The row of an item, judged by what is expected now."""
    if key not in kept:
        return Row(key, entry, None, f"needs {entry.hardware}" if entry.hardware else NO_RESULT)
    row = kept[key]
    return Row(
        key,
        entry,
        row["ours"],
        row.get("reason", ""),
        row.get("note", ""),
        row.get("beside", {}),
        row.get("equals", ""),
    )


def verdict(row: Row) -> str:
    """One of `SHOWN`."""
    return NO_RESULT if row.reason == NO_RESULT else row.verdict


def section(work: works.Work) -> tuple[list[Row], str]:
    """The rows of a work, and its part of the page."""
    entries, kept = load(work.name), runs(RESULTS / f"{work.name}.json")
    by_key = newest(kept)
    by_key |= {key: row for key in entries if (row := derived(work.name, key, by_key))}
    rows = [judged(key, entry, by_key) for key, entry in entries.items()]
    lines = [f"## {work.name}\n", f"{work.reference}.\n", *(took(work, run) for run in kept)]
    other = [
        row.item
        for row in rows
        if row.ours is not None and not same_bounds(by_key[row.key].get("fails", ""), row.expected.fails)
    ]
    if other:
        lines += ["", f"Judged by other tolerances at the run, or added after it: {'; '.join(other)}."]
    lines += [""]
    lines += [page.counted(verdict(row) for row in rows) + ".\n"]
    for name, meaning in SHOWN.items():
        if those := [row for row in rows if verdict(row) == name]:
            lines += [f"**{name}** ({meaning})\n", table(those), ""]
    return rows, "\n".join(lines)


def same_bounds(one: str, other: str) -> bool:
    """Whether two texts say the same values that would fail, to the five digits that once were printed."""
    number = r"-?\d[\d.e+-]*"
    pairs = zip(re.findall(number, one), re.findall(number, other), strict=False)
    return re.sub(number, "", one) == re.sub(number, "", other) and all(
        math.isclose(float(a), float(b), rel_tol=1e-4) for a, b in pairs
    )


def took(work: works.Work, run: Kept) -> str:
    """What a run was, in one line."""
    today = hashlib.sha256((FOLDER / f"{work.name}.toml").read_bytes()).hexdigest()
    then = run["expected_sha256"]
    by = (
        ""
        if then == today
        else " The file of expected values has changed since; rows are judged by today's expected values."
    )
    said = (f"tcpsbed {run['version']}", run["machine"], run.get("note"))
    return f"* Measured: {len(run['rows'])} rows; {', '.join(filter(None, said))}.{by}"


def sharpness(rows: list[Row]) -> str:
    """How many reproduced rows have which tolerance."""
    kinds = {"a sign or a bound": 0, "a published 0": 0}
    kinds |= {name: 0 for name, _ in SHARES}
    for row in rows:
        e = row.expected
        if e.compare != "near":
            kinds["a sign or a bound"] += 1
        elif not e.published:
            kinds["a published 0"] += 1
        else:
            kinds[next(name for name, most in SHARES if e.tolerance <= most * abs(e.published))] += 1
    return "; ".join(f"{name}: {count}" for name, count in kinds.items() if count)


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
    good = [row for _, rows, _ in parts for row in rows if verdict(row) == "reproduced"]
    sharp = f"The {len(good)} reproduced rows have these tolerances (with the number of rows): {sharpness(good)}.\n"
    return "\n".join([HEAD, f"In all: {whole}.\n", sharp, *lines, "", *(text for _, _, text in parts)])


def take(folder: Path) -> None:
    """Keeps the whole runs that lie in the folders of works: what came out, and not how it was judged then."""
    RESULTS.mkdir(exist_ok=True)
    for work in works.WORKS:
        file = folder / work.name / "rows.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text(encoding="utf-8"))
        if found.pop("full"):
            found["rows"] = [reduced(row) for row in found["rows"]]
            kept = RESULTS / f"{work.name}.json"
            left = {row["key"] for row in found["rows"] if not measured(row)}
            older = [
                run | {"rows": [r for r in run["rows"] if measured(r) and r["key"] in left]}
                for run in runs(kept)
            ]
            text = (
                json.dumps([found, *(run for run in older if run["rows"])], indent=1, ensure_ascii=False)
                + "\n"
            )
            kept.write_text(text, encoding="utf-8")
            print(f"kept: {work.name}")


def reduced(row: Kept) -> Kept:
    """What is kept of a row."""
    return {
        name: row[name]
        for name in KEPT
        if row.get(name) and not (name == "reason" and row["ours"] is not None)
    } | {"ours": row["ours"]}


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
