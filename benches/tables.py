"""Results as text for the terminal and as the tables of docs/benchmarks.md."""

from __future__ import annotations

import json
import sys
from typing import Any

from measure import OUT, ROOT, Result, Row

DOCUMENT = ROOT / "docs" / "benchmarks.md"
HEAD = ["what", "measured", "against", "ratio", "target", "holds"]


def cells(row: Row | dict[str, Any]) -> list[str]:
    """A row's cells in the order of the head."""
    read = row if isinstance(row, dict) else row.__dict__
    holds = {True: "yes", False: "NO", None: ""}[read["holds"]]
    return [read["what"], read["measured"], read["against"], read["ratio"], read["bar"], holds]


def as_text(result: Result) -> str:
    """A result for the terminal."""
    lines = [HEAD, *map(cells, result.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    body = [
        "  " + "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True))
        for line in lines
    ]
    return "\n".join([f"{result.title} ({result.seconds:.0f} s)", *[line.rstrip() for line in body], ""])


def as_markdown(read: dict[str, Any]) -> str:
    """A stored result as a table, with how long it took beside which load."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |" for row in read["rows"]
    ]
    lines += [
        "",
        f"Measured in {read['seconds']:.0f} s, with a load of {read['machine']['load']} at the end.",
    ]
    return "\n".join(lines)


def machine_table(read: dict[str, Any]) -> str:
    """The machine as a table."""
    m = read["machine"]
    names = ["processor", "cores", "memory_gb", "system", "kernel", "python", "rust", "cc"]
    return "\n".join(
        ["| | |", "|---|---|", *[f"| {name.replace('_gb', ' (GB)')} | {m[name]} |" for name in names]]
    )


def write_document() -> None:
    """Write the stored results between the markers ``<!-- bench:NAME -->`` and ``<!-- /bench -->``."""
    stored = [path for path in sorted(OUT.glob("*.json")) if not path.name.endswith(".quick.json")]
    results = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in stored}
    parts = {name: as_markdown(read) for name, read in results.items()}
    if results:
        parts["machine"] = machine_table(max(results.values(), key=lambda read: read["machine"]["when"]))
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- bench:{name} -->\n", "<!-- /bench -->"
        before, marker, rest = text.partition(begin)
        if marker:
            text = f"{before}{begin}{part}\n{end}{rest.partition(end)[2]}"
        else:
            print(f"{DOCUMENT.name} has no place for the table {name}", file=sys.stderr)
    DOCUMENT.write_text(text, encoding="utf-8")
