"""Stages, nodes and their loops, robots, hosts, boards, clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis.metrics.metric import LIST, Metric, one_of, spread
from tcpsbed.analysis.units import ms

LATE = ("p50", "p99", "max")


def _busy_s(stage: Any) -> float:
    return float(stage["calls"] * stage["cpu_ns"]["mean"] / 1e9)


def _core_share(busy: Any) -> float | None:
    return busy["busy_s"] / busy["ran_s"] if busy["ran_s"] > 0 else None


STAGE = (
    Metric("component", "where it is"),
    Metric("flow", "whose samples it is given"),
    Metric("kind", "of stage", label="stage"),
    Metric("name", "of its code", label="code"),
    Metric("calls", "how often it was called", "count"),
    Metric("failures", "calls that failed", "count", rare=True),
    Metric("not_finite", "calls that gave out values of which one is no number", "count", label="no numbers",
        rare=True),
    Metric("overruns", "real world: calls that took longer than the cost which the scenario gives the stage",
        "count", label="over its cost", rare=True),
    spread("cpu_ns", "`mean`, `p50`, `p99`, `p999`, `max` of the processor time of a call", "ns",
        label="a call"),
    Metric("core_share", "share of a core over the run", "share", _core_share, label="of a core"),
)  # fmt: skip
COMPONENT = (
    Metric("component", "whose stages they are"),
    Metric("busy_s", "processor time of all its stages", "s", label="processor time"),
    Metric("core_share", "of a core over the run", "share", _core_share, label="of a core"),
)
NODE = (
    Metric("name", "of the node", label="node"),
    Metric("cores", "of the node", "count"),
    Metric("busy_s", "processor time of its stages", "s", label="busy"),
    Metric("missed_ticks", "ticks left out because the loop was away", "count", label="missed"),
    Metric("asides_refused", "datagrams outside channels that were refused", "count", rare=True),
    Metric("sessions", "its own, where the node has several loops, else empty"),
    Metric("ticks", "of the loop", "count"),
    spread("late_ns", "how late its loop woke", "ns", label="late", shown=("p50", "p99", "p999", "max"),
        brief=LATE),
    Metric("gaps_over_1ms", "times it stood still for longer", "count", label="gaps over 1 ms"),
    Metric("ring_overflows", "rows lost because the ring was full", "count", label="records lost"),
    Metric("socket_drops", "datagrams that the kernel dropped", "count"),
    spread("stamp_to_loop_ns", "from the kernel's receive stamp to the loop", "ns", label="to the loop",
        shown=LATE, brief=()),
    spread("send_ns", "a send call", "ns", label="send call", shown=LATE, brief=()),
    spread("interpreter_wait_ns", "how long it took to get the interpreter back after a wait", "ns",
        label="interpreter", shown=LATE, brief=()),
    Metric("strangers", "datagrams from senders that are not peers", "count", rare=True),
    Metric("unread", "packets whose port cannot be read: behind extension headers, in a VLAN, in a"
        " fragment after the first", "count", rare=True),
    Metric("unsent", "datagrams that the kernel would not take", "count", rare=True),
    Metric("clock_steps", "of the wall clock", "count", rare=True),
    Metric("waiting", "how it waited", brief=()),
    Metric("privileges", "those it has, and those it was refused", brief=()),
)  # fmt: skip
ROBOT = (
    Metric("component", "of the robot", label="robot"),
    Metric("node", "where it is"),
    Metric("ticks", "of its own loop", "count"),
    Metric("missed_ticks", "left out because the loop was away; one step made up for them", "count",
        label="missed"),
    spread("late_ns", "`p50`, `p99`, `max`: how late it woke", "ns", label="late", shown=LATE),
    Metric("gaps_over_1ms", "times it stood still for longer", "count", label="gaps over 1 ms"),
    Metric("watchdog", "times that its watchdog found that commands had ceased", "count", rare=True),
)  # fmt: skip
HOST = (
    Metric("name", "of the host", label="host"),
    Metric("address", "of its ssh"),
    Metric("data", "IP address of its sockets"),
    Metric("nodes", "those on it"),
    Metric("python", "version"),
    Metric("files_sha256", "of what was copied there", label="files"),
    Metric("clock_error_ns", "how wrong its clock's reading can be", "ns", label="clock ±"),
    Metric("clock_drift_ns", "by how much it had moved at the end", "ns", label="moved"),
    Metric("lost", "why, if it was lost"),
    Metric("lost_at_s", "when", "s", label="lost at"),
)


def _damage(there: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(key, meaning, "count", label=f"{label}{there}", rare=True)
        for key, meaning, label in (
            ("no_crc", "frames with a wrong checksum", "damaged"),
            ("no_cobs", "torn ones", "torn"),
            ("too_long", "stretches without an end", "babble"),
            ("unknown", "whole frames that mean nothing", "unknown"),
            ("missing", "frames that were numbered and never came", "missing"),
        )
    )


BOARD = (
    Metric("component", "where it is", label="board"),
    Metric("sent", "samples sent to it", "count"),
    Metric("answered", "samples answered by it", "count"),
    Metric("lost", "samples lost on the line or in it", "count"),
    Metric("safe", "times that its watchdog went to the safe output; when, is in `states`", "count",
        label="safe output"),
    Metric("late", "answers to samples that had been given up; null of a modelled board", "count", rare=True),
    Metric("damaged", "what came from the board; null of a modelled one", parts=_damage("")),
    Metric(
        "damaged_there",
        "what came to the board, as it told at the end; null if it is gone or modelled",
        parts=(
            *_damage(" there"),
            Metric("overflown", "bytes for which its port had no room", "B", label="overflown there",
                rare=True),
        ),
    ),
    Metric("refused_values", "values that were no numbers", "count", label="no numbers", rare=True),
    Metric("clock_bound_ns", "how wrong its stamps can be; null of a modelled board", "ns", label="stamps ±"),
    Metric(
        "gone",
        "if it went away, else null",
        parts=(Metric("at_s", "when", "s", label="gone at"), Metric("why", "in words", label="gone")),
    ),
)  # fmt: skip


def _true_error_ms(clock: Any) -> Any:
    """Estimate minus truth: of the fitted line where it is known, else of the last exchange.

    It needs a common clock: it is absent where nodes are on several hosts.
    """
    known = clock["line"].get("true_error_ns")
    return ms(clock["true_error_ns"] if known is None else known) if clock["one_host"] else None


def _drift_ppm(clock: Any) -> Any:
    drift_ppb = clock["line"].get("drift_ppb")
    return clock["drift_ppm"] if drift_ppb is None else drift_ppb / 1e3


CLOCK = (
    Metric("node", "which estimates"),
    Metric("reference", "of whom", of=one_of("peer"), label="against"),
    Metric("exchanges", "between them", "count", one_of("n")),
    Metric("offset_ms", "reference minus own clock. The estimate takes both ways as equally long: if they"
        " differ by d, it is off by d / 2", "ms",
        lambda clock: ms(clock["line"].get("offset_ns", clock["offset_ns"]))),
    Metric("bound_ms", "strict: half the shortest round trip, whatever the asymmetry", "ms",
        lambda clock: ms(clock["line"].get("bound_ns", clock["bound_ns"])), label="bound ±"),
    Metric("drift_ppm", "of the one against the other", "ppm", _drift_ppm),
    Metric("true_error_ms", "estimate minus truth at the end; null where nodes have no common clock", "ms",
        _true_error_ms),
    Metric("true_error_max_ms", "the largest", "ms",
        lambda clock: ms(clock["true_error_max_ns"]) if clock["one_host"] else None, label="largest"),
)  # fmt: skip


def _stages(source: Any) -> list[dict[str, Any]]:
    return [
        stage | {"busy_s": _busy_s(stage), "ran_s": source["ran_s"]}
        for stage in source["told"].get("stages", ())
    ]


def _components(source: Any) -> list[dict[str, Any]]:
    """Processor time of all stages at each component, in the order in which they were told."""
    busy_s: dict[str, float] = {}
    for stage in _stages(source):
        busy_s[stage["component"]] = busy_s.get(stage["component"], 0.0) + stage["busy_s"]
    return [
        {"component": name, "busy_s": took_s, "ran_s": source["ran_s"]} for name, took_s in busy_s.items()
    ]


def _clocks(source: Any) -> list[dict[str, Any]]:
    """Exchanges as rows tell them, and the line that a node fitted to them."""
    lines = {clock["node"]: clock for clock in source["told"].get("clocks", ())}
    return [
        clock | {"line": lines.get(clock["node"], {}), "one_host": source["one_host"]}
        for clock in source["rows"]["clocks"]
    ]


def _told(key: str) -> Any:
    def take(source: Mapping[str, Any]) -> list[Any]:
        return list(source["told"].get(key, ()))

    return take


STAGES = Metric("stages", "list of hooks", of=_stages, parts=STAGE, each=LIST, label="Processor time a call")
COMPONENTS = Metric(
    "components",
    "list, of all stages at a component, by which a board can be chosen",
    of=_components,
    parts=COMPONENT,
    each=LIST,
    label="All stages of a component",
)
NODES = Metric(
    "nodes",
    "list; real world a row for each loop, which tells more",
    of=_told("nodes"),
    parts=NODE,
    each=LIST,
    label="Nodes",
)
ROBOTS = Metric(
    "robots",
    "list, real world, of robots with a loop of their own ([robots.md](robots.md#where-its-physics-runs)); of one that was"
    " made again, since then",
    of=_told("robots"),
    parts=ROBOT,
    each=LIST,
    label="Robots with a loop of their own",
)
HOSTS = Metric("hosts", "list, world `hosts`", of=_told("hosts"), parts=HOST, each=LIST, label="Hosts")
BOARDS = Metric(
    "boards", "list of [boards](boards.md)", of=_told("boards"), parts=BOARD, each=LIST, label="Boards"
)
CLOCKS = Metric("clocks", "list of synchronised nodes", of=_clocks, parts=CLOCK, each=LIST, label="Clocks")
