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
    Metric("flow", "flow of its samples"),
    Metric("kind", "kind of stage", label="stage"),
    Metric("name", "name of its code", label="code"),
    Metric("calls", "how often it was called", "count"),
    Metric("failures", "calls that failed", "count", rare=True),
    Metric("not_finite", "calls whose output was not finite", "count", label="not finite",
        rare=True),
    Metric("overruns", "on the machine's clock: calls longer than the cost set in the scenario",
        "count", label="over cost", rare=True),
    spread("cpu_ns", "`mean`, `p50`, `p99`, `p999`, `max` of the processor time of a call", "ns",
        label="per call"),
    Metric("core_share", "share of a core over the run", "share", _core_share, label="core share"),
)  # fmt: skip
COMPONENT = (
    Metric("component", "whose stages they are"),
    Metric("busy_s", "processor time of all its stages", "s", label="processor time"),
    Metric("core_share", "of a core over the run", "share", _core_share, label="core share"),
)
NODE = (
    Metric("name", "of the node", label="node"),
    Metric("cores", "of the node", "count"),
    Metric("busy_s", "processor time of its stages", "s", label="busy"),
    Metric("missed_ticks", "ticks skipped because the loop did not run in time", "count", label="missed"),
    Metric("asides_refused", "datagrams for no channel of the node, and echo answers or clock exchanges that"
        " cannot be parsed or that it does not wait for", "count", rare=True),
    Metric("sessions", "session of the loop, if the node has several loops, else empty", type="list[str]"),
    Metric("ticks", "of the loop", "count"),
    spread("late_ns", "lateness of its loop at a wake-up", "ns", label="late", shown=("p50", "p99", "p999", "max"),
        brief=LATE),
    Metric("gaps_over_1ms", "stalls of the loop for over 1 ms", "count", label="stalls over 1 ms"),
    Metric("ring_overflows", "rows lost because the ring was full", "count", label="records lost"),
    Metric("socket_drops", "datagrams that the kernel dropped at sockets: no room, or a wrong checksum of UDP", "count"),
    spread("stamp_to_loop_ns", "from the kernel's receive timestamp to the loop", "ns", label="stamp to loop",
        shown=LATE, brief=()),
    spread("send_ns", "duration of a send call", "ns", label="send call", shown=LATE, brief=()),
    spread("interpreter_wait_ns", "time until the loop got Python's interpreter (GIL) after a wait", "ns",
        label="GIL wait", shown=LATE, brief=()),
    Metric("strangers", "datagrams from senders that are no node of the run", "count", rare=True),
    Metric("unread", "packets whose port cannot be read: behind extension headers, in a VLAN, in a"
        " later fragment", "count", rare=True),
    Metric("unsent", "datagrams that the kernel refused to send", "count", rare=True),
    Metric("clock_steps", "steps of the wall clock", "count", rare=True),
    Metric("waiting", "its way of waiting (`real.waiting`)", brief=()),
    Metric("privileges", "privileges granted and refused", brief=(), type="list[str]"),
)  # fmt: skip
ROBOT = (
    Metric("component", "of the robot", label="robot"),
    Metric("node", "where it is"),
    Metric("ticks", "of its own loop", "count"),
    Metric("missed_ticks", "ticks skipped because the loop did not run in time; one step made up for them", "count",
        label="missed"),
    spread("late_ns", "`p50`, `p99`, `max` of its lateness at a wake-up", "ns", label="late", shown=LATE),
    Metric("gaps_over_1ms", "stalls of the loop for over 1 ms", "count", label="stalls over 1 ms"),
    Metric("watchdog", "times that its watchdog acted", "count", rare=True),
)  # fmt: skip
HOST = (
    Metric("name", "of the host", label="host"),
    Metric("address", "address for ssh"),
    Metric("data", "IP address of its sockets"),
    Metric("nodes", "nodes on it", type="list[str]"),
    Metric("python", "version"),
    Metric("files_sha256", "hash of the copied files", label="files hash"),
    Metric("clock_error_ns", "largest error of its clock's reading", "ns", label="clock ±"),
    Metric("clock_drift_ns", "change of its clock until the end", "ns", label="clock change"),
    Metric("lost", "reason for which it was lost"),
    Metric("lost_at_s", "when", "s", label="lost at"),
)


def _damage(there: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(key, meaning, "count", label=f"{label}{there}", rare=True)
        for key, meaning, label in (
            ("no_crc", "frames with a wrong checksum", "damaged"),
            ("no_cobs", "incomplete frames", "torn"),
            ("too_long", "byte sequences without an end", "babble"),
            ("unknown", "complete frames of unknown type", "unknown"),
            ("missing", "numbered frames that never arrived", "missing"),
        )
    )


BOARD = (
    Metric("component", "where it is", label="board"),
    Metric("sent", "samples sent to it", "count"),
    Metric("answered", "samples answered by it", "count"),
    Metric("lost", "samples lost on the line or in it", "count"),
    Metric("safe", "times that its watchdog switched to the safe output; `states` has the times", "count",
        label="safe output"),
    Metric("late", "answers to samples already given up; null for a modelled board", "count", rare=True),
    Metric("damaged", "damaged data from the board; null for a modelled one", parts=_damage("")),
    Metric(
        "damaged_there",
        "data that arrived damaged at the board, as it reports at the end; null if the board is gone or modelled",
        parts=(
            *_damage(" at board"),
            Metric("overflown", "bytes for which its port had no room", "B", label="overflow at board",
                rare=True),
        ),
    ),
    Metric("refused_values", "values that were not finite", "count", label="not finite", rare=True),
    Metric("clock_bound_ns", "largest error of its stamps; null for a modelled board", "ns", label="stamps ±"),
    Metric(
        "gone",
        "time and cause of its disconnection, else null",
        parts=(Metric("at_s", "when", "s", label="gone at"), Metric("why", "reason, as text", label="gone because")),
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
    Metric("node", "node that estimates"),
    Metric("reference", "node whose clock is estimated", of=one_of("peer"), label="against"),
    Metric("exchanges", "exchanges between them", "count", one_of("n")),
    Metric("offset_ms", "reference minus own clock. The estimate assumes equal delays in both"
        " directions: if they differ by d, it is off by d / 2", "ms",
        lambda clock: ms(clock["line"].get("offset_ns", clock["offset_ns"]))),
    Metric("bound_ms", "strict: half the shortest round trip, whatever the asymmetry", "ms",
        lambda clock: ms(clock["line"].get("bound_ns", clock["bound_ns"])), label="bound ±"),
    Metric("drift_ppm", "drift of one clock against the other", "ppm", _drift_ppm),
    Metric("true_error_ms", "estimate minus truth at the end; null without a common clock of the nodes", "ms",
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
    """Processor time of all stages at each component, in the order of the report."""
    busy_s: dict[str, float] = {}
    for stage in _stages(source):
        busy_s[stage["component"]] = busy_s.get(stage["component"], 0.0) + stage["busy_s"]
    return [
        {"component": name, "busy_s": took_s, "ran_s": source["ran_s"]} for name, took_s in busy_s.items()
    ]


def _clocks(source: Any) -> list[dict[str, Any]]:
    """Clock exchanges from the rows, with the line that a node fitted to them."""
    lines = {clock["node"]: clock for clock in source["told"].get("clocks", ())}
    return [
        clock | {"line": lines.get(clock["node"], {}), "one_host": source["one_host"]}
        for clock in source["rows"]["clocks"]
    ]


def _told(key: str) -> Any:
    def take(source: Mapping[str, Any]) -> list[Any]:
        return list(source["told"].get(key, ()))

    return take


STAGES = Metric(
    "stages", "list of stages", of=_stages, parts=STAGE, each=LIST, label="Processor time per call"
)
COMPONENTS = Metric(
    "components",
    "list, sums over all stages of a component, for the choice of a board",
    of=_components,
    parts=COMPONENT,
    each=LIST,
    label="All stages of a component",
)
NODES = Metric(
    "nodes",
    "list; on the machine's clock one row per loop, with the keys from `sessions` on",
    of=_told("nodes"),
    parts=NODE,
    each=LIST,
    label="Nodes",
)
ROBOTS = Metric(
    "robots",
    "list, on the machine's clock, of robots with a loop of their own"
    " ([robots](robots.md#where-the-physics-runs)); for a restarted robot, since its"
    " restart",
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
