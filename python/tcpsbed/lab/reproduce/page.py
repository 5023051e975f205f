"""Results of a study: a table for the terminal, a page with the figures."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from textwrap import wrap

from tcpsbed import __version__, palette, results
from tcpsbed.lab.reproduce.rows import VERDICTS, Row
from tcpsbed.lab.reproduce.study import Study
from tcpsbed.studio import freeze
from tcpsbed.views import markup
from tcpsbed.views.markup import Column, Html, words

TITLES = ("verdict", "item", "expected", "ours", "tolerance", "would fail", "basis", "reason")
"""Of the page."""
HEAD = ("verdict", "expected", "ours", "item, tolerance, basis, reason")
"""Of the table for the terminal."""
WIDTH = 100
"""Of that table, in characters."""


def number(value: float | None) -> str:
    """A value with five significant digits; a dash for none."""
    return "–" if value is None else f"{value:.5g}"


def published(row: Row) -> str:
    """The value that ours is compared with; behind a sign where ours is to be above, below or at most that."""
    e = row.expected
    sign = (
        {"above": "> ", "below": "< ", "at most": "≤ "}.get(e.compare, "") if e.published is not None else ""
    )
    return sign + number(e.published)


def basis(row: Row) -> str:
    """How ours comes about, with the key of the scenario that it hangs on, and what an input was set to."""
    e = row.expected
    if e.basis == "input":
        return f"input: {e.parameter} = {e.given}"
    if row.verdict == "no evidence (input)":
        return f"input: {row.equals} = {number(row.ours)} {e.unit}"
    return f"{e.basis}: {e.parameter}" if e.parameter else e.basis


def tolerance(row: Row) -> str:
    """How far ours may be off, and what that is: a published spread, an interval of ours, a share; empty: not at all."""
    e = row.expected
    if e.published is None or e.tolerance == 0.0:
        return ""
    if e.source == "share":
        return f"± {100.0 * e.tolerance / abs(e.published):.3g} % of the value"
    unit = e.unit.replace("%", "percentage points", 1)
    return f"± {number(e.tolerance)} {unit}".rstrip() + f" ({e.source})" * bool(e.source)


def judged_by(row: Row) -> str:
    """Tolerance and the values that would have failed, in one line; empty where nothing is published."""
    e = row.expected
    if e.published is None:
        return ""
    origin = "" if e.reference == "published" else f"{e.reference}; "
    return origin + ", ".join(part for part in (tolerance(row), f"fails if {e.fails}") if part)


def cells(row: Row) -> list[str]:
    """A row as texts, for the page."""
    e = row.expected
    beside = f"{published(row)} ({e.reference})" if e.reference else published(row)
    return [row.verdict, row.item, beside, number(row.ours), tolerance(row), e.fails, basis(row), row.reason]


def counted(verdicts: Iterable[str]) -> str:
    """One line that counts rows by verdict; what is only read back or calculated is never counted as reproduced."""
    counts = Counter(verdicts)
    always = ("reproduced", "refuted", "not reproduced", "missed, unexplained")
    first = [f"{counts[name]} {name}" for name in always]
    others = [
        f"{counts[name]} {name}"
        for name in [*VERDICTS, *sorted(set(counts) - set(VERDICTS))]
        if counts[name] and name not in always
    ]
    return "; ".join(first + others)


def text(study: Study) -> str:
    """The table for the terminal, and the count; first that the run was a short one, if it was."""
    counts = wrap(f"{study.work}: {counted(row.verdict for row in study.rows)}", WIDTH)
    meaning = "What a verdict means: tcpsbed docs reproduce\n"
    return figureless() + short(study) + table(study.rows) + "\n" + "\n".join(counts) + "\n" + meaning


def figureless() -> str:
    """A note if no figures can be drawn; otherwise empty."""
    return "" if palette.drawable() else "NO FIGURES: they need matplotlib (pip install 'tcpsbed[plot]').\n\n"


def short(study: Study) -> str:
    """A note on a shortened study, with the command for the full one; otherwise empty."""
    if study.stopped:
        return f"STOPPED: only the rows that were done are here.\nWhole: tcpsbed reproduce {study.work}\n\n"
    if study.full:
        return ""
    return (
        f"SHORT RUN: sweeps are shortened for time, so that rows may miss or be left out.\n"
        f"Whole: tcpsbed reproduce {study.work}\n\n"
    )


def table(rows: Sequence[Row]) -> str:
    """Rows as wide as a terminal: verdict and values, beside them the item, below that tolerance, basis and reason."""
    first = [(row.verdict, published(row), number(row.ours)) for row in rows]
    widths = [max(map(len, column)) for column in zip(HEAD[:3], *first, strict=True)]
    indent = " " * (sum(widths) + 6)
    lines = [_line(HEAD[:3], widths) + HEAD[3], "─" * WIDTH]
    for row, values in zip(rows, first, strict=True):
        how = "; ".join(filter(None, (judged_by(row), f"basis: {basis(row).replace(': ', ', ', 1)}")))
        below = (how, f"reason: {row.reason}" if row.within is not True else "")
        parts = [wrap(part, WIDTH - len(indent)) for part in (row.item, *below)]
        said = [line for part in parts for line in part]
        lines += [_line(values, widths) + said[0], *(indent + line for line in said[1:])]
    return "\n".join(lines) + "\n"


def _line(values: Sequence[str], widths: Sequence[int]) -> str:
    numbers = (text.rjust(width) for text, width in zip(values[1:], widths[1:], strict=True))
    return "  ".join([values[0].ljust(widths[0]), *numbers, ""])


def _picture(file: Path, title: str) -> Html:
    """A figure inside the page; empty where it was not drawn."""
    if not file.is_file():
        return Html("")
    inside = base64.b64encode(file.read_bytes()).decode()
    return Html(f'<img src="data:image/png;base64,{inside}" alt="{escape(title)}">')


def write(study: Study, reference: str, out: Path) -> Path:
    """Writes `OUT/index.html` with table and figures, and `OUT/rows.json` with what it shows; the path of the page."""
    verdicts = counted(row.verdict for row in study.rows)
    columns = [words(title) if title not in ("expected", "ours") else Column(title) for title in TITLES]
    body = [
        markup.note(figureless() + short(study)),
        markup.section("rows", "Row by row", markup.block(markup.table(columns, map(cells, study.rows)))),
        *(markup.section(name, title, _picture(out / f"{name}.png", title)) for name, title in study.figures),
    ]
    facts = [("after", reference), ("tcpsbed", __version__)]
    page = freeze.page(study.work, [("much", verdicts), ("", ".")], facts, body)
    rows = json.dumps(study.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    results.write_whole(out / "rows.json", rows + "\n")
    path = out / "index.html"
    results.write_whole(path, page)
    return path
