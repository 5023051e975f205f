"""Results of a study for people: a table for the terminal, a page with the figures."""

from __future__ import annotations

from html import escape
from pathlib import Path

from tcpsbed.report.markup import Column, words
from tcpsbed.report.text import table
from tcpsbed.reproduce.study import Row, Study

COLUMNS = (
    words("item"),
    Column("published"),
    words("basis"),
    Column("ours"),
    Column("tolerance"),
    words("within"),
)


def number(value: float | None) -> str:
    """A value with five significant digits; a dash for none."""
    return "–" if value is None else f"{value:.5g}"


def published(row: Row) -> str:
    """The value that ours is compared with; behind a sign where ours is to be above or below it."""
    sign = {"above": "> ", "below": "< "}.get(row.compare, "") if row.published is not None else ""
    return sign + number(row.published)


def cells(row: Row) -> list[str]:
    """A row as texts."""
    return [
        row.item,
        published(row),
        row.basis,
        number(row.ours),
        number(row.tolerance),
        row.verdict,
    ]


def text(study: Study) -> str:
    """The table for the terminal, with the reasons of what is not within below it."""
    lines = [table(COLUMNS, [cells(row) for row in study.rows]), "\n"]
    lines += [f"{row.item}: {row.reason}\n" for row in study.rows if row.within is not True]
    return "".join(lines)


def write(study: Study, reference: str, out: Path) -> Path:
    """Writes `OUT/index.html` with table and figures; its path."""
    head = "".join(f"<th>{column.title}</th>" for column in COLUMNS) + "<th>reason</th>"
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in [*cells(row), row.reason]) + "</tr>"
        for row in study.rows
    )
    figures = "".join(
        f'<h2>{escape(title)}</h2><img src="{name}.png" alt="{escape(title)}">'
        for name, title in study.figures
    )
    style = "body{font-family:sans-serif;margin:2em;max-width:75em}td,th{text-align:left;padding:.2em .8em}"
    page = (
        f"<!doctype html><meta charset=utf-8><title>{escape(study.work)}</title><style>{style}</style>"
        f"<h1>{escape(study.work)}</h1><p>{escape(reference)}</p>"
        f"<table><tr>{head}</tr>{body}</table>{figures}\n"
    )
    out.mkdir(parents=True, exist_ok=True)
    path = out / "index.html"
    path.write_text(page, encoding="utf-8")
    return path
