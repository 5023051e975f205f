"""Pages that are over: one file with style, scripts and data inside, opened from the disk without a network.

The page of a run, `report.html`, is the studio's page with the messages that a viewer would get, and tables below. Others
(sweeps, comparisons, …) have the same style, tables and charts.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tcpsbed import documents, results, views
from tcpsbed.studio.whole import messages
from tcpsbed.views import glossary, markup, sections
from tcpsbed.views.charts import Sheet
from tcpsbed.views.folder import RunFolder, open_folder
from tcpsbed.views.glance import glance
from tcpsbed.views.markup import Html, escaped
from tcpsbed.views.numbers import grouped, ms, statistic
from tcpsbed.views.sentence import Said, sentence
from tcpsbed.views.tables import Table

PAGE = Path(__file__).parent / "page"
VENDOR = Path(views.__file__).parent / "vendor"
IMPORT = re.compile(r'^import (?:\{([^}]*)\} from )?"\./(\w+)\.js";$', re.M)
EXPORT = re.compile(r"^export (?=(?:const|let|async function|function) ([\w$]+))", re.M)
COMMENT = re.compile(r"^\s*(?://|/\*\*.*\*/$).*\n", re.M)
ELEMENT = re.compile(r'(<(\w+)[^>]* id="([\w-]+)"[^>]*>)([^<]*)(</\2>)')
"""One that has an id and no elements in it: its beginning, name, id, text and end."""
MOST_TILES = 4
"""Flows with a large number beside the sentence."""


def write(folder: Path | str) -> Path:
    """Writes `report.html` into a run folder.

    Parameters
    ----------
    folder : Path or str
        A folder with `summary.json` and, for the charts, `series.json`.

    Returns
    -------
    Path
        The page.
    """
    run = open_folder(folder)
    page = run.path / "report.html"
    results.write_whole(page, render(run))
    return page


def render(run: RunFolder) -> str:
    """The page about a run as text."""
    network = run.summary.get("network")
    run, left_out = glance(run)
    summary, parts = run.summary, more(run, left_out)
    plan = documents.read(file) if (file := run.path / "plan.json").is_file() else None
    body = re.search(r"<body>(.*)</body>", _read("index.html"), re.S)[1]  # type: ignore[index]
    body = re.sub(r"<script.*</script>\n|<noscript>.*</noscript>\n", "", body)
    body = body.replace("<main>", '<main class="over">')
    if summary.get("disturbances"):
        body = body.replace('class="pill" hidden', 'class="pill"')
    filled = {
        "name": escaped(run.name),
        "state-text": "run",
        "facts": escaped(" · ".join(run.conditions)),
        "span": "the whole run",
        **parts["html"],
    }
    filled |= {"sentence": said(sentence(summary)), "big": _tiles(summary), "events": _events(summary)}
    body = _filled(body, filled)
    data = {
        "messages": messages(summary, run.series, plan, network),
        **{key: parts[key] for key in ("charts", "services")},
    }
    return _document(run.name, "report", body, data)


def _filled(body: str, inside: Mapping[str, str]) -> str:
    """The page with something inside the elements of these ids, each of which is there once and has no others in it.

    Raises
    ------
    RuntimeError
        If one is not.
    """
    seen = Counter(match[3] for match in ELEMENT.finditer(body))
    if wrong := [place for place in inside if seen[place] != 1]:
        raise RuntimeError(f"found no single element without others in it: {', '.join(wrong)}")
    return ELEMENT.sub(lambda match: f"{match[1]}{inside.get(match[3], match[4])}{match[5]}", body)


def more(run: RunFolder, left_out: str = "") -> dict[str, Any]:
    """What a run's page has only when the run is over: HTML by its place, charts, and curves of services."""
    sheet = Sheet()
    shown = "".join(sections.sections(run, sheet))
    panels = re.sub(r".*<main>|</main>.*", "", _read("index.html"), flags=re.S)
    panels = re.sub(r'<h2 id="h-links">', "", panels)
    html = {
        "banners": sections.banners(run.summary) + markup.note(left_out),
        "contents": markup.contents(panels) + markup.contents(shown),
        "more": shown + markup.terms(shown),
        "health": "".join(_health(*line) for line in sections.health(run.summary)),
    }
    return {"k": "more", "html": html, "charts": sheet.drawn, "services": run.series.get("services")}


def table(found: Table, title: str = "") -> Html:
    """A section with one table."""
    name = title or found.title
    return markup.section(f"of-{name}", name, markup.block(markup.table(found.columns, found.rows)))


def page(
    title: str,
    opening: Said,
    facts: Iterable[tuple[str, object]],
    body: Sequence[Html],
    sheet: Sheet | None = None,
) -> str:
    """A page about anything: its sentence, its conditions, its sections, and the charts that these have placed."""
    inside = "".join(body)
    shown = (
        f'<header><h1>{escaped(title)}</h1><button id="theme" type="button" class="push">Theme: system</button></header>'
        f'<main class="one"><section class="say" aria-label="In short"><p>{said(opening)}</p></section>'
        f'<nav id="contents" aria-label="Contents">{markup.contents(inside)}</nav>'
        f"{markup.section('conditions', 'Conditions', markup.facts(facts))}{inside}{markup.terms(inside)}</main>"
    )
    return _document(title, "plain", shown, {"messages": [], "charts": sheet.drawn if sheet else []})


def said(pieces: Said) -> Html:
    """A sentence with its emphasis."""
    return Html(
        "".join(f'<b class="{kind}">{escaped(text)}</b>' if kind else escaped(text) for kind, text in pieces)
    )


def _tiles(summary: dict[str, Any]) -> Html:
    p99 = {name: statistic(flow.get("delay_ms"), "p99") for name, flow in summary["flows"].items()}
    shown = [(name, value) for name, value in p99.items() if value is not None][:MOST_TILES]
    return Html(
        "".join(
            f'<div><strong>{ms(value)}<small> ms</small></strong><span class="soft">{escaped(name)}, p99</span></div>'
            for name, value in shown
        )
    )


def _events(summary: dict[str, Any]) -> Html:
    found = "".join(
        f"<li>{grouped(e['t_s'], 2)} s {escaped(e.get('name', ''))}</li>" for e in sections.marks(summary)
    )
    return Html(found or '<li class="soft">None.</li>')


def _health(good: bool, text: str) -> str:
    kind, word = ("ok", "good:") if good else ("no", "check:")
    mark = f'<span class="mark {kind}" role="img" aria-label="{word}"></span>'
    return f'<li class="{"" if good else "bad"}">{mark}<span>{escaped(text)}</span></li>'


def _document(title: str, entry: str, body: str, data: dict[str, Any]) -> str:
    """One file: nothing is loaded, and only its own style and script are let in."""
    style, script = _style(), _script(entry)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    told = documents.strict(data | {"terms": glossary.meanings()}, dense=True)
    return (
        '<!doctype html><html lang="en" class="frozen"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escaped(title)} · tcpsbed</title><style>{style}</style></head><body>{body}"
        f'<script type="application/json" id="data">{told.replace("<", chr(92) + "u003c")}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return (VENDOR / "uPlot.min.css").read_text(encoding="utf-8") + _read("studio.css") + _read("report.css")


@cache
def _script(entry: str) -> str:
    """UPlot with its licence, and the modules that a page's own imports, as one classic script."""
    licence = (VENDOR / "LICENSE-uPlot").read_text(encoding="utf-8")
    plot = (VENDOR / "uPlot.iife.min.js").read_text(encoding="utf-8")
    return f'/*{licence}*/\n{plot}\n(() => {{\n"use strict";\n{bundled(entry)}}})();\n'


def bundled(entry: str) -> str:
    """Modules of `page/` in the order of their imports, each a function that returns what it exports.

    An import takes the value that a name has then: modules export constants and functions, no variables.
    """
    found: dict[str, str] = {}

    def add(name: str) -> None:
        if name in found:
            return
        found[name] = ""
        text = _read(f"{name}.js")
        for match in IMPORT.finditer(text):
            add(match[2])
        names = ", ".join(EXPORT.findall(text))
        text = IMPORT.sub(
            lambda m: f"const {{{m[1].replace(' as ', ': ')}}} = m_{m[2]};" if m[1] else "", text
        )
        text = COMMENT.sub("", EXPORT.sub("", text))
        del found[name]
        found[name] = f"const m_{name} = (() => {{\n{text}return {{ {names} }};\n}})();\n"

    add(entry)
    return "".join(found.values())
