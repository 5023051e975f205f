"""Pieces of HTML: escaped text, tables whose columns carry their units, definition lists."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcpsbed.views import glossary

LONG = 50
"""Characters of a cell that is wrapped."""


class Html(str):
    """Text that is HTML already; every other string is escaped."""


def escaped(content: object) -> str:
    """The content as HTML."""
    return content if isinstance(content, Html) else html.escape(str(content))


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, the unit under it, whether it holds words or a bar, what it means."""

    title: str
    unit: str = ""
    kind: str = "number"
    meaning: str = ""


def words(title: str) -> Column:
    """A column of words, aligned left."""
    return Column(title, kind="words")


def bar(title: str, unit: str = "") -> Column:
    """A column that holds drawn bars."""
    return Column(title, unit, kind="bar")


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    footer: Sequence[object] = (),
    css: str = "numbers",
) -> Html:
    """A table without columns that are empty in every row."""
    body = [list(row) for row in rows]
    shown = [i for i in range(len(columns)) if any(str(row[i]) not in ("", "–") for row in body)]
    head = "".join(_heading(columns[i]) for i in shown)
    lines = "".join(_row(columns, row, shown, "td") for row in body)
    foot = f"<tfoot>{_row(columns, footer, shown, 'td')}</tfoot>" if footer else ""
    return Html(
        f'<div class="wide" tabindex="0"><table class="{css}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody>{foot}</table></div>"
    )


def _heading(column: Column) -> str:
    unit = f' <span class="unit">{escaped(column.unit)}</span>' if column.unit else ""
    meaning = f' title="{escaped(column.meaning)}"' if column.meaning else ""
    term = glossary.anchor(column.title)
    title = f'<a href="#term-{term}">{escaped(column.title)}</a>' if term else escaped(column.title)
    if not column.title:
        return "<td></td>"
    return f'<th scope="col" class="{column.kind}"{meaning}>{title}{unit}</th>'


def _row(columns: Sequence[Column], row: Sequence[object], shown: Sequence[int], tag: str) -> str:
    cells = "".join(f'<{tag} class="{_kind(columns[i], row[i])}">{escaped(row[i])}</{tag}>' for i in shown)
    return f"<tr>{cells}</tr>"


def _kind(column: Column, cell: object) -> str:
    return f"{column.kind} long" if not isinstance(cell, Html) and len(str(cell)) > LONG else column.kind


def terms(page: str) -> Html:
    """What the terms of the glossary mean that headings of a page link to; empty without them."""
    found = "".join(
        f'<div id="term-{at}"><dt>{escaped(name)}</dt><dd>{escaped(text)}</dd></div>'
        for at, name, text in glossary.used(page)
    )
    return section("terms", "Terms", Html(f"<dl>{found}</dl>")) if found else Html("")


def lane(
    length: float, top: float, paint: str = "plain", *, start: float = 0.0, half: float | None = None
) -> Html:
    """A bar on an axis from 0 to `top`, with its confidence interval as a whisker; empty without a length."""

    def at(value: float) -> float:
        return 100 * min(max(value, 0.0) / max(top, 1e-12), 1.0)

    if length <= 0:
        return Html("")
    left, end = at(start), start + length
    whisker = f'<path d="M{at(end - half):.2f} 5H{at(end + half):.2f}"/>' if half else ""
    return Html(
        '<svg class="lane" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{paint}" x="{left:.3f}" width="{at(end) - left:.3f}" height="10"/>{whisker}</svg>'
    )


def banner(kind: str, title: str, lines: Iterable[object] | None) -> Html:
    """Something to be seen first; empty without lines."""
    said = listing(lines or ())
    return Html(f'<div class="banner {kind}"><strong>{escaped(title)}</strong>{said}</div>' if said else "")


def contents(body: str) -> Html:
    """Links to the headings of a page that have an anchor."""
    found = re.findall(r'<section id="([\w.-]+)"><h2>(.*?)</h2>|<h2 id="([\w-]+)">([^<]*)', body)
    return Html(
        "".join(f'<a href="#{a or b}">{(title or heading).strip()}</a>' for a, title, b, heading in found)
    )


def anchor(text: str) -> str:
    """The text as something to link to: all but letters, digits, _ and - by its number; other texts have another one."""
    return re.sub(r"[^\w-]", lambda other: f".{ord(other[0]):x}.", text)


def section(name: str, title: str, *content: str, remark: str = "") -> Html:
    """A titled section, which contents link to by its name; empty where there is nothing in it."""
    inside = "".join(content)
    if not inside:
        return Html("")
    return Html(
        f'<section id="{anchor(name)}"><h2>{escaped(title)}</h2>{note(remark)}<div class="blocks">{inside}</div></section>'
    )


def block(*content: str) -> Html:
    """What stands together in a section; others stand beside it where there is room."""
    return Html(f'<div class="block">{"".join(content)}</div>')


def note(text: str) -> Html:
    """A remark in small print; empty without text."""
    return Html(f'<p class="note">{escaped(text)}</p>' if text else "")


def heading(title: object, aside: object = "") -> Html:
    """A heading inside a section, with a remark after it."""
    after = f' <span class="aside">{escaped(aside)}</span>' if aside else ""
    return Html(f"<h3>{escaped(title)}{after}</h3>")


def listing(items: Iterable[object]) -> Html:
    """A bulleted list; empty where there are no items."""
    lines = "".join(f"<li>{escaped(item)}</li>" for item in items)
    return Html(f"<ul>{lines}</ul>" if lines else "")


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """A definition list of short facts, without empty values."""
    lines = "".join(
        f"<div><dt>{escaped(key)}</dt><dd>{escaped(value)}</dd></div>"
        for key, value in pairs
        if str(value) not in ("", "–")
    )
    return Html(f'<dl class="facts">{lines}</dl>' if lines else "")
