"""Set against delivered of a proxy as a table, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.delivered import LATE, LOSES, SLOW, Margin, beyond
from tcpsbed.errors import counted
from tcpsbed.proxy import door, settings
from tcpsbed.proxy.netns import FAR_IP
from tcpsbed.views import programs, tables, text

JITTER = metrics.section("network").part("jitter").table


def judged(
    outcome: Mapping[str, Any], margin: Margin, network: Mapping[str, Any]
) -> tuple[bool | None, list[str]]:
    """Whether the run was good, and why not in sentences; neither good nor bad where no packet came in. `network` is as it
    was set at the start.
    """
    found = broken(outcome, margin, network)
    if not found and not any(row["packets"] for row in outcome["doors"]):
        return None, [programs.PROVES_NOTHING]
    return not found, found


def broken(outcome: Mapping[str, Any], margin: Margin, network: Mapping[str, Any]) -> list[str]:
    """What is beyond the margin, and what failed, in sentences; nothing if the run was good."""
    return [*(sentence for _, _, sentence in _found(outcome, margin, network)), *outcome["errors"]]


def remedies(outcome: Mapping[str, Any], margin: Margin, network: Mapping[str, Any]) -> list[str]:
    """What to do about it: a sentence a cause."""
    causes = [cause for cause, _, _ in _found(outcome, margin, network)]
    if not any(row["packets"] for row in outcome["doors"]):
        causes.append(UNHEARD if "tcp" in outcome else UNSENT)
    root = "" if "SCHED_FIFO: yes" in outcome["own"].get("privileges", ()) else AS_ROOT
    return list(dict.fromkeys(REMEDIES[cause].format(root=root) for cause in causes))


def ending(outcome: Mapping[str, Any], margin: Margin, network: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict, that of each setting, what to do, and what was measured beside the network: `programs` of a result;
    `network` is as it was set at the start.
    """
    good, _ = judged(outcome, margin, network)
    verdict = {True: programs.GOOD, False: programs.NOT_GOOD, None: programs.NOTHING}[good]
    more = {key: outcome[key] for key in ("tcp", "late_ns") if outcome.get(key)}
    return {
        "verdict": verdict,
        "settings": settings.judged(paths(outcome), margin, network, outcome),
        "margin_ms": margin.p99_ms,
        "remedies": remedies(outcome, margin, network),
    } | more


DROPPED, SENT_BACK, UNREACHED, CLOSED = "dropped", "sent back", "unreached", "closed"
UNHEARD, UNSENT = "unheard", "unsent"
AS_ROOT = ", run as root (SCHED_FIFO)"
REMEDIES = {
    LATE: "this machine was too busy to release packets in time: close other programs, leave tcpsbed a core of its own"
    " (taskset for your programs){root}, or send less; --margin-ms accepts more at p99",
    SLOW: "this machine could not send as fast as the network released: set a lower --rate, send fewer and larger packets,"
    " or close other programs",
    LOSES: "the kernel refused packets: send fewer at a time, or smaller ones, and start the receiver before the sender",
    DROPPED: "tcpsbed read its ports too late: send fewer packets a second, or close other programs{root}",
    settings.DRAWN: "report it, with the profile and its seed: a link of tcpsbed did not take what was set",
    settings.INSIDE: "run for longer than the delay of the network, or set a higher --rate: packets may also wait in a"
    " queue",
    SENT_BACK: "start the program at the target before its client, and check HOST:PORT",
    UNREACHED: "start the server at the target before its client, and check HOST:PORT/tcp",
    UNHEARD: f"let the near program send to {FAR_IP} (TCPSBED_FAR): 127.0.0.1 and localhost stay on its own side",
    UNSENT: "let the client send to the port of the proxy, not to that of the target, while the proxy runs",
    CLOSED: "close connections that are not used; tcpsbed netns has no limit of connections",
}
"""What to do, by cause."""


def _found(
    outcome: Mapping[str, Any], margin: Margin, network: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Causes of a run that was not good, each with its path and its sentence."""
    for row in paths(outcome):
        for cause, said in () if "part_of" in row else _row(row, margin):
            yield cause, row["path"], said
    for link, said in settings.unexplained(network, outcome):
        yield settings.DRAWN, link, said
    if drops := outcome["own"].get("socket_drops", 0):
        said = f"the kernel dropped {drops} datagrams before they were read: this machine was too slow"
        yield DROPPED, "", said


def _row(row: Mapping[str, Any], margin: Margin) -> Iterator[tuple[str, str]]:
    name = row["path"]
    yield from beyond(name, row, margin)
    if held := settings.held_back(row):
        yield settings.INSIDE, f"{name}: {held}"
    if row["unreached"] and row["door"].endswith("/udp"):
        back = counted(row["unreached"], "packet")
        yield (
            SENT_BACK,
            f"{name}: {back} were refused by the target, perhaps more: no program listened at its port",
        )
    elif row["unreached"]:
        connections = counted(row["unreached"], "connection")
        yield UNREACHED, f"{name}: the target did not accept {connections}: it refused, or did not answer"
    if row["refused"]:
        yield CLOSED, f"{name}: closed {row['refused']} connections: too many at the same time"


def shown(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """An outcome without what only its record needs."""
    return {key: value for key, value in outcome.items() if key != "report"}


FLOWS_END = {"near -> far": "to far", "far -> near": "to near"}
"""How the names of flows end, by the direction of a row."""


def rows(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Rows of doors, and behind them those of the services that their packets are of, in directions that had any."""
    return [*told["doors"], *(row for row in told.get("services", ()) if row["packets"])]


def paths(outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a proxy as `emulator` of a summary has them: each direction of a door by its flow, and behind them those
    of services that had packets.
    """
    doors = outcome["doors"]
    flows = door.flows([row["door"] for row in doors[::2]])
    found = [row | {"path": flow, "closed": _closed(row)} for flow, row in zip(flows, doors, strict=False)]
    for row in outcome.get("services", ()):
        if row["packets"]:
            toward = FLOWS_END[row["way"]]
            whole = next(flow for flow in flows if flow.endswith(toward))
            found.append(row | {"path": f"{row['door']} {toward}", "part_of": whole})
    return found


def _closed(row: Mapping[str, Any]) -> dict[str, int]:
    """Connections that a port would not have, and datagrams and connections that its target refused."""
    unreached = "sent back" if row["door"].endswith("/udp") else "unreached connections"
    return {"refused connections": row["refused"], unreached: row["unreached"]}


def table(outcome: Mapping[str, Any]) -> str:
    """Set against delivered, a row a path: the table of `emulator` of a summary."""
    part = metrics.section("emulator")
    shown = tables.tables(part, part.value({"told": {part.key: paths(outcome)}}), brief=True)
    return "\n".join(text.table(one.columns, one.rows) for one in shown)


def jitters(outcome: Mapping[str, Any], network: Mapping[str, Any]) -> str:
    """Jitter set against drawn, a row a link that drew any; empty without."""
    part = metrics.section("network")
    source = {"plan": {"network": network}, "told": outcome, "ran_s": outcome.get("duration_s", 0.0)}
    found = tables.tables(part, part.value(source), brief=True)
    return "".join(f"{text.table(one.columns, one.rows)}\n" for one in found if one.title == JITTER)


def told(outcome: Mapping[str, Any], margin: Margin, network: Mapping[str, Any]) -> str:
    """The tables and the verdict, for the terminal; `network` is as it was set at the start."""
    good, _ = judged(outcome, margin, network)
    kept = metrics.section("programs").value({"told": {"programs": ending(outcome, margin, network)}})
    because = [] if good is None else _unsaid(outcome, margin, network, kept["settings"])
    lines = [programs.verdict(kept), *programs.settings(kept), *because, *programs.remedies(kept)]
    verdict = "\n  ".join(lines)
    unread = outcome.get("own", {}).get("unread", 0)
    note = (
        f"\nnot read: the port of {counted(unread, 'packet')}: IPv6 extension headers, later fragments or encryption"
        if unread
        else ""
    )
    measured = "".join(f"{line}\n" for line in programs.measured(kept))
    more = f"{jitters(outcome, network)}{measured}"
    return f"{table(outcome)}\n{more}{verdict}{note}"


def _unsaid(
    outcome: Mapping[str, Any],
    margin: Margin,
    network: Mapping[str, Any],
    judged_: list[dict[str, str]],
) -> list[str]:
    """Why a run was not good, without what the line of a setting says of that path or link."""
    parts = {one["what"]: one["said"].split("; ") for one in judged_}
    said = [
        sentence
        for cause, name, sentence in _found(outcome, margin, network)
        if not any(part.startswith(f"{name} ") for part in parts.get(settings.SETTING.get(cause, ""), ()))
    ]
    return [*said, *outcome["errors"]]
