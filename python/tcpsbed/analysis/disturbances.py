"""Disturbances of a run: sentences about what to check before trusting its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpsbed.analysis import attacks, stalls
from tcpsbed.analysis.attacks import Excuses
from tcpsbed.analysis.delivered import Margin, beyond
from tcpsbed.analysis.units import NS_PER_MS, ms
from tcpsbed.clocks import BETWEEN, SIMULATED
from tcpsbed.errors import counted

LATE_P99_MS = 1.0
"""Lateness of a loop (99th percentile) that is passed over."""
HOST_CLOCK_MS = 0.2
"""Error of a host's clock that is passed over."""
CODE_US = 50
"""What a call of code in the network may take (99th percentile): the emulator's margin at the median."""
HOOK_SHARE = 0.5
"""Share of a flow's period that a hook may take (99th percentile) in real time."""

BEYOND = ", beyond those of the scenario's own attacks"
"""Said of what attacks do not explain."""

MEANING = (
    "of these numbers, a mean or median still holds if the disturbance was short; a p99 only if it touched clearly less than"
    " 1 % of the samples, a maximum never"
)
"""What a disturbance means for numbers that were measured on the machine's clock."""

Found = Mapping[str, Any]
Judged = Iterator[tuple[bool, str]]
"""Sentences, each with whether it disturbs; what the scenario's own attacks caused does not."""


def meaning(summary: Found) -> str:
    """What disturbances mean for the numbers of a run; empty in simulated time, and where nothing arrived."""
    arrived = any(flow.get("delivered") for flow in summary.get("flows", {}).values())
    return MEANING if arrived and summary.get("world") not in SIMULATED else ""


def disturbances(info: Found, result: Found, analysis: Found) -> list[str]:
    """All that disturbed a run.

    Parameters
    ----------
    info
        From `facts.scenario_info`; with `stalls` (`stalls.stalls`) also which samples they touched.
    result
        What the run told about itself (`result.json`).
    analysis
        What its rows say.
    """
    return [said for disturbs, said in _judged(info, result, analysis) if disturbs]


def as_set(info: Found, result: Found, analysis: Found) -> list[str]:
    """What the scenario's own attacks sent and caused, which disturbs nothing; parameters as `disturbances`."""
    sent = attacks.sent(analysis.get("effects", ()))
    return sent + [said for disturbs, said in _judged(info, result, analysis) if not disturbs]


def _judged(info: Found, result: Found, analysis: Found) -> Judged:
    excuses = Excuses(analysis.get("effects", ()), result.get("endpoints", ()))
    found = (
        _records(result, analysis),
        _nodes(result, excuses),
        _robots(result),
        () if _is_of_own_programs(result) else _gaps(info, analysis),
        _connections(result, excuses),
        _security(result, excuses),
        _emulator(result),
        _hosts(result),
        _fallback(result),
        _clocks(analysis),
        _round_trips(info, analysis),
        _flows(analysis, excuses, whole=_has_all_rows(result, analysis)),
        *(() if info["world"] in SIMULATED else (_hooks(info, result), _code(result))),
    )
    for each in found:
        yield from (said if isinstance(said, tuple) else (True, said) for said in each)


def _records(result: Found, analysis: Found) -> Iterator[str]:
    if result.get("interrupted"):
        yield f"the run was stopped at {analysis['end_ns'] / 1e9:.3f} s"
    if analysis["torn_bytes"]:
        yield f"records end in an unfinished row of {counted(analysis['torn_bytes'], 'byte')}"
    if analysis["strange_rows"]:
        rows = counted(analysis["strange_rows"], "row")
        yield f"{rows} of samples that no source can have made: forged or damaged packets, or a damaged record"
    if analysis["unordered_rows"]:
        yield f"rows out of time order: {analysis['unordered_rows']}"


_COUNTS = {
    "missed_ticks": ("skipped", "tick", ""),
    "ring_overflows": ("lost", "row", " because its ring was full"),
    "socket_drops": (
        "lost",
        "datagram",
        " in its sockets: a buffer was full, or checksums of UDP were wrong",
    ),
    "unsent": ("could not send", "datagram", ""),
    "strangers": ("got", "datagram", " from strangers"),
    "unread": (
        "could not read the port of",
        "packet",
        ": IPv6 extension headers, VLAN tags, later fragments or encryption; they match no flow or rule",
    ),
    "asides_refused": (
        "refused",
        "datagram",
        " outside channels: neither answers to its echoes nor its clock exchanges",
    ),
    "clock_steps": ("saw", "step", " of the wall clock"),
}
"""What a node counts: verb, what is counted, and what is said of it."""


def _nodes(result: Found, excuses: Excuses) -> Iterator[str | tuple[bool, str]]:
    for node in result.get("nodes", ()):
        for key, (verb, what, rest) in _COUNTS.items():
            n = node.get(key) or 0
            scripted, others = excuses.outside(node["name"], n) if key == "asides_refused" else (0, n)
            yield from _told((scripted, others), f"node {node['name']} {verb}", what, rest)
        if _is_of_own_programs(result):
            continue
        for key, what in (("late_ns", "late"), ("interpreter_wait_ns", "delayed by the Python interpreter")):
            late_ms = ms((node.get(key) or {}).get("p99"))
            if late_ms is not None and late_ms > LATE_P99_MS:
                yield f"node {node['name']} was {what} by {late_ms:.2f} ms (p99; limit {LATE_P99_MS:g} ms)"


def _told(split: tuple[int, int], before: str, what: str, rest: str) -> Judged:
    """How many the scenario's own attacks caused, and how many there are beyond these."""
    scripted, others = split
    if scripted:
        yield False, f"{before} {counted(scripted, what)}{rest}"
    if others:
        yield True, f"{before} {counted(others, what)}{rest}{BEYOND * bool(scripted)}"


def _robots(result: Found) -> Iterator[str]:
    """Robots whose own loop ran late: their physics stalled, and continued in one step."""
    for robot in result.get("robots", ()):
        name = f"robot {robot['component']}"
        if robot["missed_ticks"]:
            yield f"{name} skipped {counted(robot['missed_ticks'], 'tick')} of its own loop"
        if robot.get("watchdog"):
            yield f"{name}: its watchdog acted {counted(robot['watchdog'], 'time')}, because its node passed it no command"
        late_ms = ms(robot["late_ns"]["p99"])
        if late_ms is not None and late_ms > LATE_P99_MS:
            yield f"{name} was late by {late_ms:.2f} ms in its own loop (p99; limit {LATE_P99_MS:g} ms)"


def _gaps(info: Found, analysis: Found) -> Iterator[str]:
    for node in analysis["nodes"]:
        if node["gaps"]:
            longest = max(node["first_gaps"], key=lambda gap: gap["length_ns"])
            times = "once" if node["gaps"] == 1 else f"{node['gaps']} times"
            length_ms = node["longest_gap_ns"] / NS_PER_MS
            at = f"{longest['t_s']:.3f} s"
            long = (
                f"{length_ms:.2f} ms at {at}"
                if node["gaps"] == 1
                else f"up to {length_ms:.2f} ms, one of them at {at}"
            )
            yield f"node {node['name']} stalled {times}, {long}"
    if found := info.get("stalls"):
        yield f"stalls touched {stalls.touched(found)}"


def _connections(result: Found, excuses: Excuses) -> Iterator[str | tuple[bool, str]]:
    for end in result.get("endpoints", ()):
        place = f"channel {end['channel']} at {end['side']}"
        if end.get("connections") == 0 and end.get("secure_sessions") != 0:
            yield f"{place} never had a connection"
        if end.get("silent_at_end_ns"):
            yield f"{place} had nothing acknowledged in the last {end['silent_at_end_ns'] / 1e9:.2f} s of its connection"
        if lost := end.get("connections_lost"):
            said = f"{place} lost {counted(lost, 'connection')}{_when(end) if 'first_lost_ns' in end else ''}"
            yield not excuses.ends(end), said
        if end.get("strangers"):
            yield f"{place} refused {counted(end['strangers'], 'connection')} from strangers"


def _when(end: Found) -> str:
    """When the first was lost, with what, and what followed; results of earlier builds do not know."""
    first = f"{'the first ' if end['connections_lost'] > 1 else ''}at {end['first_lost_ns'] / 1e9:.3f} s"
    return f", {first}{_in_flight(end)}; {_back(end)}"


def _in_flight(end: Found) -> str:
    """The samples that went down with lost connections."""
    count = end.get("lost_in_flight")
    return f", with {counted(count, 'sample')} that had not been acknowledged" if count else ""


def _back(end: Found) -> str:
    """Whether a lost connection was followed by another."""
    if end["down_since_ns"] is not None:
        return f"down since {end['down_since_ns'] / 1e9:.3f} s"
    another = "the longest gap was" if end["connections_lost"] > 1 else "re-established after"
    return f"{another} {end['longest_down_ns'] / 1e9:.3f} s"


def _security(result: Found, excuses: Excuses) -> Iterator[str | tuple[bool, str]]:
    """What the security of channels refused, at each side."""
    for end in result.get("endpoints", ()):
        place = f"channel {end['channel']} at {end['side']}"
        if end.get("secure_sessions") == 0:
            why = "the other side has another key, or no security, or did not answer, or somebody between them interfered"
            if end["refused_handshakes"]:
                why = f"it refused {counted(end['refused_handshakes'], 'handshake message')} that did not verify"
            elif end["unsealed"]:
                why = f"it got {counted(end['unsealed'], 'message')} without security"
            elif end.get("unproven_alerts"):
                alerts = f"{counted(end['unproven_alerts'], 'handshake')} ended with an alert"
                why = f"{alerts}, as a side with another key sends it, and anybody on the path can"
            yield f"{place} agreed on no keys with its other side: {why}"
        elif "secure_sessions" in end:
            yield from _ended(place, end, excuses)
            yield from _refused(place, end, excuses)
        if n := end.get("replayed"):
            what = " whose number it had received before"
            yield from _told(excuses.refused(end, n), f"{place} refused", "datagram", what)
        if end.get("unkeyed"):
            yield f"{place} dropped {counted(end['unkeyed'], 'datagram')} that no key could seal"


def _ended(place: str, end: Found, excuses: Excuses) -> Iterator[str | tuple[bool, str]]:
    """Connections of a secured channel that were ended, or not made."""
    if n := end.get("refused_connections"):
        what = " of which a part did not verify: forged, or damaged"
        yield from _told(excuses.refused(end, n), f"{place} ended", "connection", what)
    if end.get("expired_handshakes"):
        yield f"{place} gave up {counted(end['expired_handshakes'], 'handshake')} that took too long"
    if end.get("alerts"):
        ended = counted(end["alerts"], "connection")
        yield not excuses.ends(end), f"{place} lost {ended}, ended by its other side"
    if end.get("unproven_alerts"):
        ended = counted(end["unproven_alerts"], "handshake")
        yield f"{place} saw {ended} end with an alert, which anybody on the path can send"


def _refused(place: str, end: Found, excuses: Excuses) -> Iterator[tuple[bool, str]]:
    """Packets that a side of a secured channel refused."""
    if (n := end.get("malformed")) and "connections" in end:
        what = " that did not fit its connection: late, of another one, damaged, or forged"
        split = (n, 0) if excuses.ends(end) else excuses.refused(end, n)
        yield from _told(split, f"{place} refused", "packet", what)
    if n := end.get("unverified"):
        renewed = ", or of another session" if end["secure_sessions"] > 1 else ""
        what = f" that did not verify: forged, or damaged{renewed}"
        yield from _told(excuses.refused(end, n), f"{place} refused", "datagram", what)


def _is_of_own_programs(result: Found) -> bool:
    """Whether only the emulator ran, between a user's programs: the error of each packet has what its loop did late."""
    return result.get("world") in BETWEEN


def _emulator(result: Found) -> Iterator[str]:
    """What is beyond the margin; of a user's own programs the verdict says so, by the margin that they chose."""
    if _is_of_own_programs(result):
        yield from result.get("broken", ())
        return
    for path in result.get("emulator", ()):
        yield from (sentence for _, sentence in beyond(f"emulator {path['path']}", path, Margin()))


def _fallback(result: Found) -> Iterator[str]:
    if result.get("fallback"):
        yield f"the requested world was not available; used instead: {result['fallback']}"


def _hosts(result: Found) -> Iterator[str]:
    for host in result.get("hosts", ()):
        if host["lost"]:
            yield f"host {host['name']} was lost at {host['lost_at_s']:.1f} s: {host['lost']}"
        error_ms = (host["clock_error_ns"] + abs(host["clock_drift_ns"])) / NS_PER_MS
        if error_ms > HOST_CLOCK_MS:
            yield (
                f"the clock of host {host['name']} is known to ±{error_ms:.2f} ms: "
                "delays to and from this host have the same uncertainty"
            )


def _clocks(analysis: Found) -> Judged:
    for clock in analysis["clocks"]:
        pair = f"clock of {clock['peer']} seen by {clock['node']}"
        for key, disturbs in (("step_by_lies_max_ns", False), ("step_max_ns", True)):
            if clock.get(key):
                yield disturbs, f"{pair} stepped by {clock[key] / NS_PER_MS:.3f} ms beyond its bounds"


def _round_trips(info: Found, analysis: Found) -> Iterator[str]:
    """Round trips from one clock to another that is not the same, and nothing to compare them by."""
    for probe in analysis.get("echo", ()):
        clocks = probe.get("clocks")
        apart = clocks and info["clocks"].get(clocks["from"]) != info["clocks"].get(clocks["to"])
        if apart and not clocks["corrected"]:
            yield (
                f"round trips of {probe['flow']} are from the clock of {clocks['from']} to that of {clocks['to']}, which"
                " are not synchronised: set measure.sync"
            )


def _has_all_rows(result: Found, analysis: Found) -> bool:
    """Whether no row is known to be lost: only then what was sent and what arrived can be compared."""
    lost = any(node.get("ring_overflows") for node in result.get("nodes", ()))
    return not (lost or analysis["torn_bytes"])


def _flows(analysis: Found, excuses: Excuses, *, whole: bool) -> Iterator[str | tuple[bool, str]]:
    for flow in analysis["flows"]:
        if flow["beyond_window"]:
            late = counted(flow["beyond_window"], "sample")
            yield f"flow {flow['name']}: {late} arrived after they had been counted as lost"
        unrecognised = flow["duplicated"] - flow["duplicates_dropped"]
        more = flow["delivered"] + flow["superseded"] + unrecognised - flow["sent"]
        if more > 0 and whole:
            said = f"flow {flow['name']} delivered {counted(more, 'sample')} more than were sent: copies that no endpoint"
            whose = " recognised, or another program used the sender's address"
            scripted = excuses.accepts(flow["name"])
            yield not scripted, said + (" recognised behind forged numbers" if scripted else whose)
        yield from _told(
            excuses.changed(flow["name"], flow["undated"]),
            f"flow {flow['name']}:",
            "sample",
            " with an origin before the run or in the future, which count as delivered and have no delay: a clock was set"
            " forward or back, or another program used the sender's address",
        )


# [design: hooks]
def _hooks(info: Found, result: Found) -> Iterator[str]:
    for stage in result.get("stages", ()):
        place = stage["component"], stage["flow"], stage["kind"]
        flow_s = info["flows"].get(stage["flow"], {}).get("period_s")
        period_s = info.get("stage_periods_s", {}).get(place, flow_s)
        took_s = stage["cpu_ns"].get("p99", 0) / 1e9
        if period_s and took_s > HOOK_SHARE * period_s:
            yield (
                f"hook {stage['name'] or stage['kind']} at {stage['component']} took {took_s * 1e3:.2f} ms (p99) of the"
                f" {period_s * 1e3:g} ms ({1 / period_s:g} Hz) between samples of {stage['flow']}: give it a node of its own"
                + (", or write it in C (tcpsbed docs hooks)" if ".py:" in stage["name"] else "")
            )


def _code(result: Found) -> Iterator[str]:
    for code in result.get("code", ()):
        took_us = code["took_ns"]["p99"] / 1e3
        if took_us > CODE_US:
            yield (
                f"{code['name']} took {took_us:.0f} µs (p99 of {counted(code['calls'], 'call')}), and packets waited for it:"
                " write it in C (tcpsbed docs scenario)"
            )
