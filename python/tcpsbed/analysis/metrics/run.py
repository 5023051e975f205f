"""The run itself: scenario, world, machine, reproducibility, disturbances."""

from __future__ import annotations

from typing import Any

from tcpsbed.analysis import attacks, disturbances, machine, outages, protection, refusals
from tcpsbed.analysis.metrics.metric import ABSENT, LIST, Metric, one_of
from tcpsbed.analysis.together import together

VERSION = 1
"""Version of `summary.json`."""


def _over_seeds(key: str, unit: str, label: str) -> Metric:
    means = "`n` (seeds), `mean` over the seeds, `ci95` (half width of its 95 % interval, Student's t; null for one seed)"
    return Metric(key, means, unit, label=label, shown=("mean", "ci95"))


OVER_SEEDS = (
    Metric(
        "delay_ms",
        "one-way delay",
        parts=(_over_seeds("mean", "ms", "delay mean"), _over_seeds("p99", "ms", "delay p99")),
    ),
    _over_seeds("loss", "share", "loss"),
)
"""Metrics of a flow that are averaged over seeds, by their names in `flows`."""
SEEDS = (
    Metric("seeds", "seeds that ran, the run's own first", type="list[int]"),
    Metric("unchanged", "whether all of them gave the same records: then nothing is random, the seeds"
        " after the first two did not run, and there is no interval", type="bool"),
    Metric("failed", "seeds whose run failed", type="list[int]"),
    Metric("disturbed", "seeds whose run has `disturbances`", type="list[int]"),
    Metric("flows", "empty where one seed ran", parts=OVER_SEEDS, each="flow", label="Across seeds"),
)  # fmt: skip


def _one_seed(source: Any) -> dict[str, Any]:
    return {"seeds": [source["seed"]], "unchanged": False, "failed": [], "disturbed": [], "flows": {}}


def _end_ns(source: Any) -> int:
    """When the run ended, or would have."""
    return round(float(source["ran_s"] if source["told"].get("interrupted") else source["duration_s"]) * 1e9)


def _events(source: Any) -> list[dict[str, Any]]:
    """Events with who asked for them, and the moments at which links closed and opened by their own settings."""
    asked = source.get("asked_by", {})
    found = [event | {"by": asked.get(event["name"])} for event in source["rows"]["events"]]
    links = source.get("plan", {}).get("network", {}).get("links", ())
    return sorted([*found, *outages.until(links, _end_ns(source))], key=lambda event: event["t_s"])


def _states(source: Any) -> list[dict[str, Any]]:
    """States of a flow at a component, with their causes if exactly one hook reported them."""
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


def _effects(source: Any) -> list[dict[str, Any]]:
    """Effects of events, with what supervisors refused at the places that were attacked."""
    stages = source["told"].get("stages", ())
    return [
        effect | {"refused": attacks.refused(effect["component"], effect["flow"], stages)}
        for effect in source["rows"].get("effects", ())
    ]


CHANGE = (
    Metric("t_s", "when", "s", label="at"),
    Metric("from", "the state before"),
    Metric("to", "the state after"),
    Metric("age_ms", "of the newest accepted sample", "ms", label="age of the newest"),
    Metric("cause", "cause, as text", label="cause"),
)
STATE = (
    Metric("component", "where"),
    Metric("flow", "of which flow"),
    Metric(
        "first",
        "the initial state",
        parts=(
            Metric("t_s", "time at which the component first reported it", "s", shown=()),
            Metric("state", "name of the state", label="first"),
        ),
    ),
    Metric("count", "of changes", "count", label="changes"),
    Metric("changes", "the first 1000", parts=CHANGE, each=LIST, label="Changes of state"),
    Metric("spent_s", "time in each state", "s", each="state", label="Time in each state"),
    Metric("causes", 'counts by state and cause: `"hold": {"no command arrived": 2}`; empty for boards,'
        ' and if the node died before it reported', shown=(), type="dict[str, dict[str, int]]"),
    Metric("limited", "share of calls after which a supervisor's limits kept the follower farther"
        " than `near` from its command; null if unknown", "share"),
)  # fmt: skip

DELAYS = (
    Metric("n", "samples that arrived meanwhile", "count", label="samples"),
    Metric("p50_ms", "median of their one-way delay", "ms"),
    Metric("p99_ms", "its 99th percentile", "ms"),
    Metric("added_p50_ms", "`p50_ms` less the median outside of all effects; null if fewer than 20 samples"
        " arrived meanwhile or there", "ms"),
    Metric("added_p99_ms", "the same of `p99_ms`, which below 100 samples is their longest", "ms"),
)  # fmt: skip
EFFECT = (
    Metric("name", "name of the event"),
    Metric("kind", "`link`, or the kind of the attack"),
    Metric("flow", "the attacked flow; null if none", shown=()),
    Metric("from_s", "when it began", "s", label="from"),
    Metric("until_s", "when the attack ended; of `link` the next event of the same links", "s", label="until"),
    Metric("sent", "datagrams that the attacker sent or changed", "count"),
    Metric("component", "the component that they are for; null of `link`, `flood`, `reset` and `clock-lie`", shown=()),
    Metric("channel", "the channel that is attacked; null if none", shown=()),
    Metric("accepted", "those whose sample entered the component that it is for: a supervisor there may refuse it (next"
        " key); of `clock-lie` answers that the"
        " estimate of the clock took; of `reset` connections that the receiver lost before the next effect began; null"
        " of `link`, and on sockets if the numbers of samples cannot be read", "count"),
    Metric("accepted_share", "`accepted` over `sent`; null where these are not both numbers of datagrams", "share",
        attacks.share, shown=(), label="accepted share"),
    Metric("refused", "commands that a supervisor at that component refused in the whole run, of whatever origin; null"
        " where there is none", "count", label="refused there by the supervisor, whole run"),
    Metric("hold_ms", "from the beginning until a supervisor entered `hold`; null if none did before the next effect"
        " began", "ms", label="hold after"),
    Metric("safe_stop_ms", "the same of `safe stop`", "ms", label="safe stop after"),
    Metric("delays", "one-way delay of genuine samples meanwhile", of=lambda e: {d["flow"]: d for d in e["delays"]},
        parts=DELAYS, each="flow", label="Delay during an effect"),
)  # fmt: skip


HEAD = (
    Metric("version", "1; grows when a key changes its meaning", of=lambda _: VERSION, type="int"),
    Metric("name", "of the scenario"),
    Metric("world", "value of `--world` ([worlds](worlds.md)); `proxy` or `netns` of a network [between your own"
        " programs](proxy.md#keep-the-run)"),
    Metric("seed", "of the scenario", type="int"),
    Metric("duration_s", "planned length", "s"),
    Metric("warmup_s", "warm-up at the start, excluded from all numbers", "s"),
    Metric("ran_s", "time of the last record: less than `duration_s` if the run was stopped", "s"),
    Metric("versions", "versions by name: `tcpsbed`, `python`, packages loaded in the process, and"
        " `commit` if tcpsbed runs from a git tree (with `-dirty` if that was changed)",
        of=lambda _: machine.versions(), type="dict[str, str]"),
    Metric("machine", "`cpu` (model), `cores` (available to the process), `system`, `kernel`,"
        " `python`, `governor` (of the clock frequency, if readable), `virtual` (the"
        " hypervisor, or `yes`)",
        of=lambda _: machine.machine(), type="dict[str, Any]"),
    Metric("promise", "reproducibility: a repetition gives the same records on any machine (only"
        " built-in code ran), on this machine with these versions (Python or library"
        " code ran), or similar ones (on the machine's clock)",
        label="reproducibility"),
    Metric("random", "`false` if nothing is drawn from the seed, so that other seeds give the same"
        " records; `true` if something is or may be (your own code, the machine's clock)", type="bool"),
    Metric(
        "wall",
        "wall-clock time",
        of=one_of("told"),
        parts=(
            Metric("simulate_s", "from first to last event", "s", one_of("simulate_s"), label="simulated in"),
            Metric("total_s", "of the whole command", "s", one_of("total_s"), label="total"),
        ),
    ),
    Metric(
        "records",
        "the recorded rows",
        parts=(
            Metric("rows", "number of rows", "count", one_of("rows", "rows")),
            Metric("level", 'value of `measure.records`: `samples` (every sample at every point), `packets` (also every'
            " packet and hop) or `events` (also every call of a stage)"),
            Metric("digits", "significant digits of percentiles", "count", one_of("rows", "digits")),
        ),
        of=lambda source: source,
    ),
    Metric("across_seeds", "results of `tcpsbed run --seeds N`; everything else in the file belongs to the"
        " first seed", of=_one_seed, parts=SEEDS),
    Metric("records_sha256", "SHA-256 of `records.bin`", of=lambda source: source["told"].get("records_sha256", "")),
)  # fmt: skip
OWN = (
    Metric("name", "name in the scenario, or of its class", label="metric"),
    Metric("of", "the flow, link or other name that the value belongs to; empty for a single value"),
    Metric("value", "the value; null if there is none, or the metric failed", type="float"),
    Metric("unit", "of the value"),
    Metric("meaning", "the first line of its docstring"),
)
STALLS = (
    Metric("n", "stalls over 1 ms that ended after the warm-up, of nodes and emulator", "count"),
    Metric("longest_ms", "the longest of them", "ms"),
    Metric("flows", "of each flow of which samples arrived that were made after the warm-up", each="flow", parts=(
        Metric("samples", "arrived samples that a stall touched", "count"),
        Metric("share", "of those that arrived", "share"),
    ), needs=("samples", "share")),
)  # fmt: skip
TAIL = (
    Metric("metrics", "list of values of your own metrics (`measure.metrics`); absent without these",
        of=lambda _: ABSENT, parts=OWN, each=LIST, label="Metrics of your own"),
    Metric(
        "events",
        "list of events that occurred: of the scenario, those asked for, and the first 10 000 moments at which links closed"
        " and opened by `outages`, or by `slots` whose cycle is 1 s or more",
        of=_events,
        parts=(
            Metric("t_s", "time of the event", "s"),
            Metric("name", "name of the event"),
            Metric("by", "who asked for it while the run went on, such as `viewer 2`; absent: the scenario",
                of=lambda event: event.get("by") or ABSENT, shown=()),
        ),
        each=LIST,
        label="Events",
        needs=("t_s", "name"),
    ),
    Metric("outages", "list of the first 10 000 times in which a link was down by the plan: by its `outages`, or from an"
        " event that took it down (`up = false`) to the one that brought it up, or to the end; as one where these overlap",
        of=lambda source: outages.spans(source.get("plan", {}), _end_ns(source)),
        parts=(
            Metric("link", "of the network; without a direction if both were down"),
            Metric("from_s", "when it went down", "s", label="from"),
            Metric("length_s", "for how long", "s", label="length"),
        ), each=LIST, label="Outages", needs=("link", "from_s", "length_s")),
    Metric("drops_together", "lists of flows whose packets a link cannot tell apart on the machine's clock: those of a"
        " secured channel, and of a stream. `drops` of the flows of a list are those of all of them; absent without one",
        of=lambda source: together(source.get("plan", {}), source.get("world", "")) or ABSENT, type="list[list[str]]",
        label="Flows whose dropped packets are not told apart"),
    Metric("states", "list of supervisors and predictive displays, even if their state never"
        " changed, and of boards whose watchdog acted ([safety](safety.md),"
        " [boards](boards.md)). States are `normal`, `degraded`, `hold`, `safe stop`,"
        " `recovering`; of a predictive display `live`, `predicted`",
        of=_states, parts=STATE, each=LIST, label="Safety and display"),
    Metric("effects", "list of the effects of the first 64 link events and [attacks](security.md#attacks). An event that"
        " only gives links their own settings back ends an effect and is none",
        of=_effects, parts=EFFECT, each=LIST, label="Effects of events"),
    Metric("stalls", "stalls of loops on the machine's clock; absent without one. A stall *touched* a sample if it overlaps"
        " the time in which the sample was in flight, from its creation to its arrival. Loops on the sample's path count:"
        " all loops of its nodes, also those of other sessions, and the emulator's if it crosses from one node to another",
        of=lambda source: source.get("stalls") or ABSENT, parts=STALLS, label="Stalls",
        needs=("n", "longest_ms", "flows")),
    Metric("protection", "list of channels and how they are [protected](security.md); empty of runs in virtual time without"
        " security and attacks", of=protection.protection, parts=(
            Metric("channel", "name of the channel", shown=()),
            Metric("method", "`aead`, `hmac`, `srtp`, `tls` or `none`", shown=()),
            Metric("cipher", "what it uses", shown=()),
            Metric("key", "where its key is from", shown=()),
        ), each=LIST, label="Protection of channels", needs=("channel", "method", "cipher", "key")),
    Metric("assumed_free", "zero-cost stages: they run code, have no cost in the scenario, and so took no"
        " simulated time", type="list[str]"),
    Metric("ignored", "keys of the scenario without effect in this world, each with the reason"
        " (`cores`, `scheduling` and `priority` describe cores in virtual time;"
        " `radio.lena` is for 5G-LENA)", label="Without effect in this world", type="list[str]"),
    Metric("untried", "sentences: features of this run that were never tested; also on standard error"
        " ([5G-LENA](ns3.md#5g-lena))", label="Never tried", type="list[str]"),
    Metric("disturbances", "sentences: what to check before trusting the result. Stalls over 1 ms and the samples that"
        " they touched, skipped ticks and lateness over 1 ms (p99) of nodes and of robots' own loops; full"
        " rings; dropped datagrams; steps of clocks; the emulator beyond its margins (50"
        " µs at the median, 0.3 ms at p99, 1 % of the rate, 0.5 percentage points of loss); hooks slower"
        " than half their period; your own code in the network slower than 50 µs (p99);"
        " unreadable or unordered rows; another world than requested; a stop before the"
        " end",
        of=lambda source: disturbances.disturbances(source, source["told"], source["rows"]), type="list[str]"),
    Metric("attacked", "sentences: what was accepted of the scenario's own [attacks](security.md#attacks)",
        of=lambda source: attacks.accepted(source["rows"].get("effects", ()), source["told"].get("stages", ())),
        type="list[str]"),
    Metric("as_set", "sentences: what the scenario's own attacks sent, and what was refused or happened because of them. It"
        " disturbs nothing; only what goes beyond the number of their datagrams is among `disturbances`",
        label="Attacks of the scenario",
        of=lambda source: disturbances.as_set(source, source["told"], source["rows"]), type="list[str]"),
    Metric("supervisors", "sentences: commands that [supervisors](safety.md#which-commands-it-follows) refused, which is"
        " their task", of=lambda source: refusals.split(source["told"])[1], type="list[str]"),
    Metric("errors", "sentences: what failed", of=lambda source: refusals.split(source["told"])[0], type="list[str]"),
)  # fmt: skip
