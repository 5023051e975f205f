"""`report.html`: one self-contained page about a run, readable without a network and printable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcpsbed import results
from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics import Metric
from tcpsbed.clocks import SIMULATED
from tcpsbed.views import echoes, flows, markup, media, spread, states, tables
from tcpsbed.views.charts import Sheet, plotted
from tcpsbed.views.folder import RunFolder, open_folder
from tcpsbed.views.glance import glance
from tcpsbed.views.markup import Html, escaped
from tcpsbed.views.numbers import NONE, count, finite, seconds

HERE = Path(__file__).parent
HEADER = ("name", "world", "duration_s", "seed", "machine", "promise", "errors", "disturbances")
"""Metrics that the head of the page tells."""
HEAD = (*(part.key for part in metrics.HEAD), "errors", "disturbances")
"""Those of the run itself, the others at the foot of the page."""
JOINED = {
    "network": ("Network", ("network", "queues", "traffic", "channels")),
    "stages": ("Processing", ("stages", "components", "nodes", "robots", "hosts")),
}
"""Parts of the summary that are one section of the page, by the first of them."""
REMARKS = {
    "media": media.REMARK,
    "clocks": "Offset estimated by exchanges through the same network. The bound is half the smallest round trip, whatever"
    " the asymmetry.",
    "assumed_free": "These stages have no cost in the scenario and took no time. Measure them with `tcpsbed calibrate`.",
    "ignored": "The scenario sets these keys, but they have no effect in this world.",
}
"""What is said above the numbers of a part."""


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
    sheet = Sheet()
    run, left_out = glance(run)
    sections = [
        markup.note(left_out),
        _across_seeds(run),
        flows.where_time_went(run),
        flows.per_flow(run),
        flows.over_time(run, sheet),
        flows.distributions(run, sheet),
        echoes.echo(run, sheet),
        echoes.ages(run),
        *_parts(run),
        _scenario(run),
    ]
    body = header(run) + "".join(sections) + footer(run)
    return document(f"{run.name} · tcpsbed", body, sheet, _marks(run))


def _parts(run: RunFolder) -> Iterator[Html]:
    """A section for every part of the summary without a section of its own."""
    drawn = {"flows", "path", "points", "echo", "across_seeds", "events", *HEAD}
    joined = {key for _, keys in JOINED.values() for key in keys}
    for part in metrics.SUMMARY:
        title, keys = JOINED.get(part.key, (part.title, (part.key,)))
        if part.key in drawn or (part.key in joined and part.key not in JOINED):
            continue
        shown = [_tables(run, metrics.section(key), title) for key in keys]
        yield markup.section(part.key, title, *shown, remark=REMARKS.get(part.key, "") if any(shown) else "")


def _tables(run: RunFolder, part: Metric, section: str) -> Html:
    """The tables or sentences of a part, with a heading if it differs from that of the section."""
    found = run.summary.get(part.key)
    if not part.parts:
        return markup.listing(found or ())
    said = states.spent(run.summary) if part.key == "states" else []
    note = markup.note("Time in each state: " + "; ".join(said) + ".") if said else ""
    shown = "".join(tables.on_page(part, found))
    return Html((markup.heading(part.title) if part.title != section and shown else "") + shown + note)


def _scenario(run: RunFolder) -> Html:
    """The scenario's text as it ran."""
    if not run.scenario:
        return Html("")
    text = markup.escaped(run.scenario)
    inside = f"<details><summary>scenario.toml as it ran</summary><pre>{text}</pre></details>"
    return markup.section("scenario", "Scenario", inside)


def document(title: str, body: str, sheet: Sheet, marks: dict[str, Any]) -> str:
    """A whole page: style, content and, where there are charts, the scripts that draw them."""
    style = _asset("vendor/uPlot.min.css") + _asset("style.css")
    scripts = ""
    if sheet.drawn:
        data = json.dumps({"charts": sheet.drawn, **marks}, separators=(",", ":"), allow_nan=False).replace(
            "<", "\\u003c"
        )
        scripts = (
            f'<script type="application/json" id="data">{data}</script>'
            f"<script>{_asset('vendor/uPlot.iife.min.js')}</script><script>{_asset('charts.js')}</script>"
        )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escaped(title)}</title><style>{style}</style></head><body><main>{body}{markup.terms(body)}</main>{scripts}</body></html>\n"
    )


def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _marks(run: RunFolder) -> dict[str, Any]:
    events = [
        {"t": finite(event.get("t_s")), "name": str(event.get("name", ""))}
        for event in [*(run.summary.get("events") or ()), *states.marks(run.summary)]
    ]
    windows = [
        {
            "from": finite(window.get("from_s")),
            "to": finite(window.get("to_s")),
            "why": str(window.get("why", "")),
        }
        for window in run.series.get("disturbed") or ()
    ]
    return {"events": events, "windows": windows, "warmup": plotted([run.summary.get("warmup_s")])[0]}


def header(run: RunFolder) -> Html:
    """Title, conditions of the run, and what disturbed it."""
    summary = run.summary
    warmup = finite(summary.get("warmup_s"))
    simulate = finite((summary.get("wall") or {}).get("simulate_s"))
    duration = finite(summary.get("duration_s"))
    speed = (
        f"{seconds(simulate)}, {count(duration / simulate)} times real time" if simulate and duration else ""
    )
    shown = markup.facts(
        [
            ("world", summary.get("world", "")),
            ("duration", seconds(duration) + (f", first {seconds(warmup)} warm-up" if warmup else "")),
            ("seed", summary.get("seed", "")),
            ("computed in", speed if summary.get("world") in SIMULATED else ""),
            ("tcpsbed", _made_by(summary.get("versions") or {})),
            ("machine", _machine(summary.get("machine") or {})),
            ("reproducibility", summary.get("promise", "")),
        ]
    )
    return Html(
        f'<header><p class="kind">teleoperation run</p><h1>{escaped(run.name)}</h1>{shown}{banners(summary)}</header>'
    )


def _across_seeds(run: RunFolder) -> Html:
    """Means over seeds with their intervals; of one seed, that it is one."""
    said, table = spread.sentence(run.summary), spread.table(run.summary)
    if table is None:
        return markup.note(said)
    return markup.section("seeds", table.title, markup.table(table.columns, table.rows), remark=said)


def banners(summary: dict[str, Any]) -> str:
    """Errors and disturbances, to be seen before any number."""
    return (
        _banner("error", "Errors in this run", summary.get("errors"))
        + _banner(
            "warning", "Disturbed run: check this before trusting the numbers", summary.get("disturbances")
        )
        + _banner(
            "warning", "A supervisor held the follower back most of the time", states.held_back(summary)
        )
    )


def _banner(kind: str, title: str, lines: Any) -> str:
    return (
        f'<div class="banner {kind}"><strong>{escaped(title)}</strong>{markup.listing(lines)}</div>'
        if lines
        else ""
    )


def _made_by(versions: dict[str, Any]) -> str:
    """The version, and the commit if it is known."""
    version, commit = versions.get("tcpsbed", ""), versions.get("commit", "")
    return (
        f"{version}, commit {commit[:12]}{'-dirty' * commit.endswith('-dirty')}" if commit else str(version)
    )


def _machine(found: dict[str, Any]) -> str:
    """Processor, cores, system, and whether it is a virtual machine, in one line."""
    cores, virtual = found.get("cores"), found.get("virtual")
    parts = [found.get("cpu"), f"{cores} cores" if cores else "", found.get("system"), found.get("kernel")]
    parts.append(f"governor {found['governor']}" if found.get("governor") else "")
    parts.append("virtual machine" + (f" ({virtual})" if virtual != "yes" else "") if virtual else "")
    return ", ".join(str(part) for part in parts if part)


def footer(run: RunFolder) -> Html:
    """All that is known of the run itself and is not above."""
    rows = tables.fields([part for part in metrics.HEAD if part.key not in HEADER])
    shown = ((one, one.shown(one.read(run.summary))) for one in rows)
    pairs = [(one.title, f"{text} {one.unit}".strip()) for one, text in shown if text not in ("", NONE)]
    return Html(f"<footer>{markup.facts(pairs)}</footer>")
