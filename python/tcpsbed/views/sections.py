"""What there is to read about a run below its pictures: titled tables, each with a contents entry, and charts to draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcpsbed.analysis import metrics, protection
from tcpsbed.analysis.disturbances import meaning
from tcpsbed.analysis.metrics import Metric
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import counted
from tcpsbed.views import echoes, flows, markup, media, programs, spread, states, tables
from tcpsbed.views.charts import Sheet
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.markup import Html
from tcpsbed.views.numbers import NONE, count, finite, ms, place, seconds

HEADER = ("name", "world", "duration_s", "seed", "machine", "promise", "errors", "disturbances")
"""Metrics that are told in words."""
JOINED = {
    "network": ("Network", ("network", "queues", "traffic", "channels")),
    "stages": ("Processing", ("stages", "components", "nodes", "robots", "hosts")),
}
"""Parts of the summary that are one section of the page, by the first of them."""
REMARKS = {
    "media": media.REMARK,
    "split": "Where time is spent by cause, summed along the path; of components and links, the means of what passed them.",
    "clocks": "Offset estimated by exchanges through the same network. The bound is half the smallest round trip, whatever"
    " the asymmetry.",
    "assumed_free": "These stages have no cost in the scenario and took no time. Measure them with `tcpsbed calibrate`.",
    "ignored": "The scenario sets these keys, but they have no effect in this world.",
}
"""What is said above the numbers of a part."""


def sections(run: RunFolder, sheet: Sheet) -> list[Html]:
    """All about a run, in the order of reading; what has nothing to show is left out."""
    found = [
        _across_seeds(run),
        flows.distributions(run, sheet),
        flows.per_flow(run),
        flows.where_time_went(run),
        echoes.echo(run, sheet),
        echoes.ages(run),
        *_parts(run),
        markup.section("run", "The run", conditions(run)),
        _scenario(run),
    ]
    return [one for one in found if one]


def _parts(run: RunFolder) -> Iterator[Html]:
    """A section for every part of the summary without a section of its own."""
    joined = {key for _, keys in JOINED.values() for key in keys}
    for part in metrics.SUMMARY:
        title, keys = JOINED.get(part.key, (part.title, (part.key,)))
        if part.key in tables.DRAWN or (part.key in joined and part.key not in JOINED):
            continue
        shown = [_tables(run, metrics.section(key), title) for key in keys]
        yield markup.section(
            part.key,
            title[:1].upper() + title[1:],
            *shown,
            remark=REMARKS.get(part.key, "") if any(shown) else "",
        )


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


def _across_seeds(run: RunFolder) -> Html:
    """Means over seeds with their intervals."""
    table = spread.table(run.summary)
    if table is None:
        return Html("")
    said = spread.sentence(run.summary)
    return markup.section("seeds", table.title, markup.table(table.columns, table.rows), remark=said)


def conditions(run: RunFolder) -> Html:
    """World, machine, reproducibility, and all else that is known of the run itself."""
    summary = run.summary
    simulate = finite((summary.get("wall") or {}).get("simulate_s"))
    duration = finite(summary.get("duration_s"))
    warmup = finite(summary.get("warmup_s"))
    speed = (
        f"{seconds(simulate)}, {count(duration / simulate)} times real time" if simulate and duration else ""
    )
    rows = tables.fields([part for part in metrics.HEAD if part.key not in HEADER])
    shown = ((one, one.shown(one.read(summary))) for one in rows)
    seed = spread.sentence(summary) if spread.table(summary) is None else ""
    return markup.facts(
        [
            ("world", summary.get("world", "")),
            ("duration", seconds(duration) + (f", first {seconds(warmup)} warm-up" if warmup else "")),
            ("seed", " · ".join(str(part) for part in (summary.get("seed", ""), seed) if part != "")),
            ("computed in", speed if summary.get("world") in SIMULATED else ""),
            ("tcpsbed", _made_by(summary.get("versions") or {})),
            ("machine", _machine(summary.get("machine") or {})),
            ("reproducibility", summary.get("promise", "")),
        ]
        + [(one.title, f"{text} {one.unit}".strip()) for one, text in shown if text not in ("", NONE)]
    )


def _amiss(summary: dict[str, Any]) -> list[str]:
    """What disturbed a run, and what that means for its numbers on the machine's clock."""
    found = list(summary.get("disturbances") or ())
    return [*found, *([_sentence(said)] if (said := meaning(summary)) else [])] if found else []


def banners(summary: dict[str, Any]) -> Html:
    """Errors and disturbances, to be seen before any number."""
    return Html(
        markup.banner("bad", "Errors in this run", summary.get("errors"))
        + markup.banner(
            "bad", "ATTACKED: this run accepted datagrams of an attacker", summary.get("attacked")
        )
        + markup.banner("doubt", "Disturbed run: check this before trusting the numbers", _amiss(summary))
        + markup.banner("doubt", "A supervisor refused commands", summary.get("supervisors"))
        + markup.banner(
            "doubt", "A supervisor held the follower back most of the time", states.held_back(summary)
        )
    )


def health(summary: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Whether the numbers can be trusted, line by line: good or not, and why; errors and disturbances stand above."""
    amiss = [
        counted(len(summary[key]), word)
        for key, word in (("errors", "error"), ("disturbances", "disturbance"))
        if summary.get(key)
    ]
    own = summary.get("programs")
    yield from ((False, f"ATTACKED: {_sentence(line)}") for line in summary.get("attacked") or ())
    if caused := summary.get("as_set"):
        yield True, f"Attacks of the scenario: {caused[0]}."
    for one, line in zip(found := summary.get("protection") or (), protection.sentences(found), strict=True):
        yield one["method"] != protection.NONE, _sentence(line)
    if amiss:
        yield False, f"{' and '.join(amiss)}: see above."
    elif not own or own["verdict"] == programs.GOOD:
        yield True, "Nothing disturbed this run."
    if own:
        yield from ((own["verdict"] == programs.GOOD, _sentence(line)) for line in programs.judged(own))
        told = zip(own.get("settings", ()), programs.settings(own), strict=True)
        yield from ((one["verdict"] != programs.NOT_GOOD, _sentence(line)) for one, line in told)
        yield from ((False, _sentence(line)) for line in programs.remedies(own))
        yield from ((True, _sentence(line)) for line in programs.measured(own, summary.get("stalls")))
    whole = (path for path in summary.get("emulator") or () if not path.get("part_of"))
    errors = {path["path"]: path.get("error_ms") or {} for path in whole}
    known = [name for name, error in errors.items() if finite(error.get("p99")) is not None]
    if known:
        worst = max(known, key=lambda name: errors[name]["p99"])
        p50, p99 = ms(errors[worst].get("p50")), ms(errors[worst]["p99"])
        yield True, f"Emulation error at most {p50} ms (p50) and {p99} ms (p99), on {place(worst)}."
    for clock in summary.get("clocks") or ():
        offset, bound = ms(clock.get("offset_ms")), ms(clock.get("bound_ms"))
        yield True, f"Clock offset of {clock.get('node')}: {offset} ± {bound} ms"


def _sentence(line: str) -> str:
    """A line of the terminal as a sentence."""
    return f"{line[:1].upper()}{line[1:].removesuffix('.')}."


def marks(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Events of the scenario, those by hand and changes of state, each with its time in seconds, in order."""
    found = [*(summary.get("events") or ()), *states.marks(summary)]
    timed = [event for event in found if finite(event.get("t_s")) is not None]
    return sorted(timed, key=lambda event: float(event["t_s"]))


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
