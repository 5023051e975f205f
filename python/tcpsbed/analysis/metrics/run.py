"""The run itself: what ran where, what it promises, what disturbed it."""

from __future__ import annotations

from typing import Any

from tcpsbed.analysis import disturbances, machine
from tcpsbed.analysis.metrics.metric import LIST, Metric, one_of

VERSION = 1
"""Version of `summary.json`."""
OVER_SEEDS = tuple(
    Metric(
        key,
        "`n` (seeds), `mean` over the seeds, `ci95` (half width of its 95 % interval, Student's t; null for one seed)",
        unit,
        label=label,
        shown=("mean", "ci95"),
    )
    for key, unit, label in (
        ("delay_mean_ms", "ms", "delay mean"),
        ("delay_p99_ms", "ms", "delay p99"),
        ("loss", "share", "loss"),
    )
)
SEEDS = (
    Metric("seeds", "those that ran, the run's own first"),
    Metric("unchanged", "whether all of them gave the same records: then nothing is random, the seeds"
        " after the first two did not run, and there is no interval"),
    Metric("failed", "those that did not end well"),
    Metric("disturbed", "those whose runs have `disturbances`"),
    Metric("flows", "empty where one seed ran", parts=OVER_SEEDS, each="flow", label="Across seeds"),
)  # fmt: skip


def _one_seed(source: Any) -> dict[str, Any]:
    return {"seeds": [source["seed"]], "unchanged": False, "failed": [], "disturbed": [], "flows": {}}


def _states(source: Any) -> list[dict[str, Any]]:
    """States of a flow at a component, with what led to each if the one hook that has them told."""
    return [_watched(states, source["told"].get("stages", ())) for states in source["rows"].get("states", ())]


def _watched(states: Any, stages: Any) -> dict[str, Any]:
    at = [stage for stage in stages if all(stage[key] == states[key] for key in ("component", "flow"))]
    told = [stage for stage in at if stage.get("watch")]
    if len(told) != 1:
        return {**states, "causes": {}, "limited": None}
    [stage], watch = told, told[0]["watch"]
    turns = watch["turns"] if len(watch["turns"]) == len(states["changes"]) else []
    changes = [change | {"cause": cause} for change, cause in zip(states["changes"], turns, strict=False)]
    limited = watch["limited"] / stage["calls"] if stage["calls"] else None
    return {**states, "changes": changes or states["changes"], "causes": watch["causes"], "limited": limited}


CHANGE = (
    Metric("t_s", "when", "s", label="at"),
    Metric("from", "the state before"),
    Metric("to", "the state after"),
    Metric("age_ms", "of the newest good sample", "ms", label="age of the newest"),
    Metric("cause", "in words", label="because"),
)
STATE = (
    Metric("component", "where"),
    Metric("flow", "of which flow"),
    Metric(
        "first",
        "the state that it begins in",
        parts=(Metric("t_s", "when it was told", "s", shown=()), Metric("state", "which", label="first")),
    ),
    Metric("count", "of changes", "count", label="changes"),
    Metric("changes", "the first 1000", parts=CHANGE, each=LIST, label="Changes of state"),
    Metric("spent_s", "time in each state", "s", each="state", label="Time in each state"),
    Metric("causes", 'by state and cause, how often: `"hold": {"no command came": 2}`; empty of boards and'
        " where the node died before it could tell", shown=()),
    Metric("limited", "share of calls after which a supervisor's limits had the follower farther than"
        " `near` from its command; null where not known", "share"),
)  # fmt: skip


HEAD = (
    Metric("version", "1; grows when a key changes its meaning", of=lambda _: VERSION),
    Metric("name", "of the scenario"),
    Metric("world", "as `--world` named it ([worlds.md](worlds.md))"),
    Metric("seed", "of the scenario"),
    Metric("duration_s", "planned length", "s"),
    Metric("warmup_s", "span left out of the numbers", "s"),
    Metric("ran_s", "moment up to which records reach: less than `duration_s` if the run was stopped", "s"),
    Metric("versions", "by name: `tcpsbed`, `python`, packages that ran in the process, and `commit` where"
        " tcpsbed runs from a source tree under git (with `-dirty` where that was changed)",
        of=lambda _: machine.versions()),
    Metric("machine", "`cpu` (model), `cores` (that the process may use), `system`, `kernel`, `python`,"
        " `governor` (of the clock frequency, where it can be read), `virtual` (the hypervisor, or `yes`)",
        of=lambda _: machine.machine()),
    Metric("promise", "what a repetition gives: the same records on any machine (only built-in code ran),"
        " on this machine with these versions (Python or library code ran), or similar ones (real time)"),
    Metric("random", "`false` where nothing is drawn from the seed, so that other seeds give the same"
        " records; `true` where something is, or may be (code of your own, real time)"),
    Metric(
        "wall",
        "time on the wall",
        of=one_of("told"),
        parts=(
            Metric("simulate_s", "from first to last event", "s", one_of("simulate_s"), label="simulated in"),
            Metric("total_s", "with everything around it", "s", one_of("total_s"), label="all in"),
        ),
    ),
    Metric(
        "records",
        "the rows",
        parts=(
            Metric("rows", "how many", "count", one_of("rows", "rows")),
            Metric("level", "`samples`, `packets` or `events`"),
            Metric("digits", "of percentiles", "count", one_of("rows", "digits")),
        ),
        of=lambda source: source,
    ),
    Metric("across_seeds", "what `tcpsbed run --seeds N` found; everything else in the file is about the"
        " first seed", of=_one_seed, parts=SEEDS),
    Metric("records_sha256", "of `records.bin`", of=lambda source: source["told"].get("records_sha256", "")),
)  # fmt: skip
TAIL = (
    Metric(
        "events",
        "list of scenario events as they took place",
        of=lambda source: source["rows"]["events"],
        parts=(Metric("t_s", "when", "s"), Metric("name", "which")),
        each=LIST,
        label="Events",
    ),
    Metric("states", "list of hooks that watch over a flow, also where their state never changed, and of"
        " boards whose watchdog acted ([safety.md](safety.md), [boards.md](boards.md)). States are"
        " `normal`, `degraded`, `hold`, `safe stop`, `recovering`; of a predictive display `live`,"
        " `predicted`", of=_states, parts=STATE, each=LIST, label="Safety and display"),
    Metric("assumed_free", "stages that run code, have no cost in the scenario, and so took no simulated"
        " time"),
    Metric("ignored", "keys of the scenario that have no effect in this world, each with the reason"
        " (`cores`, `scheduling`, `priority` and `blocking_send` say how cores are shared in virtual time;"
        " `radio.lena` is for 5G-LENA)", label="Without effect in this world"),
    Metric("untried", "sentences: what the run rests on that was never tried; `tcpsbed run` says them on"
        " standard error too ([5G-LENA](ns3.md#5g-lena))", label="Never tried"),
    Metric("disturbances", "sentences: what ought to be checked before the result is trusted. Gaps over 1"
        " ms, left-out ticks, lateness over 1 ms (p99), of nodes and of robots' own loops, full rings,"
        " dropped datagrams, steps of clocks, the emulator beyond its margins (50 µs at the median, 0.3 ms"
        " at p99, 1 % of the rate, 0.5 % loss), hooks slower than half their period, unreadable or"
        " unordered rows, another world than was asked for, a stop before the end",
        of=lambda source: disturbances.disturbances(source, source["told"], source["rows"])),
    Metric("errors", "sentences: what failed", of=lambda source: list(source["told"].get("errors", ()))),
)  # fmt: skip
