"""Flows: counts, delays, paths, and ages along them."""

from __future__ import annotations

from typing import Any

from tcpsbed.analysis.metrics.metric import SPREAD, STATISTICS, Metric, one_of, spread
from tcpsbed.analysis.units import ms

JITTER = "Jitter by four definitions, and age of data"
TAIL = ("mean", "p99", "max")

REORDERING = (
    Metric("ratio", "reordered over delivered", "share", label="out of order", rare=True),
    Metric("mean_extent", "mean number of arrivals from the first sample with a larger number to the late sample",
        label="extent", rare=True, type="float"),
    Metric("max_extent", "the largest such number", "count", label="largest extent", rare=True),
    Metric("max_late_ms", "longest time between these two arrivals", "ms", label="latest", rare=True),
)  # fmt: skip
# [RFC 5481]
JITTERS = (
    spread("step", "`mean`, `max` of the difference between the delays of one packet and the next",
        shown=("mean", "max")),
    spread("displayed", "`mean`, `max` of the difference between the instant at which a 1 kHz display"
        " shows a packet and the instant at which it would show it if the display delay had not changed",
        shown=("mean", "max")),
    Metric("rfc3550", "the smoothed interarrival jitter of RFC 3550 at the end", "ms", label="RFC 3550"),
    Metric("rfc3550_max", "its largest value", "ms", label="RFC 3550 max", brief=()),
    spread("pdv", "distribution of the delay above the smallest delay (RFC 5481)", label="PDV",
        shown=TAIL[:2]),
)  # fmt: skip
LAW = (
    Metric("location", "of `gaussian` the mean, of `gumbel` the mode", "ms", lambda fit: ms(fit["location"])),
    Metric("scale", "of `gaussian` the standard deviation, of `gumbel` the scale", "ms", lambda fit: ms(fit["scale"])),
    Metric("distance", "the largest difference between the law and the measured share (Kolmogorov), 0 to 1", type="float"),
)  # fmt: skip
# [Ramjee 1994]
PLAYOUT = (
    Metric("played", "samples shown", "count", label="shown"),
    Metric("late", "samples that arrived after their playout time", "count"),
    Metric(
        "skipped", "samples skipped to keep the queue short, or for a newer one", "count", label="skipped"
    ),
    Metric("starved", "ticks without a new sample", "count", label="starved"),
    spread("age_ms", "distribution of the age of a sample when it is shown", shown=TAIL),
    spread("interval_ms", "distribution of the time between samples shown", shown=("mean", "p99")),
)


def _drops(flow: Any) -> dict[str, int]:
    return {f"{drop['at']} {drop['reason']}": drop["packets"] for drop in flow["drops"]}


def _packets(flow: Any) -> tuple[float, float] | tuple[None, None]:
    """Packets a second, and samples in each; samples that arrive at one instant came in one packet."""
    gaps = flow["interarrival_ns"]
    if not gaps or not gaps["mean"]:
        return None, None
    return 1e9 / gaps["mean"], (flow["delivered"] + flow["repeated"]) / (gaps["n"] + 1)


FLOW = (
    Metric("session", "session of the flow", brief=()),
    Metric("direction", "direction in the scenario; `forward` is operator to robot"),
    Metric("sent", "samples that the source made", "count"),
    Metric("delivered", "of these, samples that arrived at the entry of the last component (the *delivery*),"
        " each counted once", "count"),
    Metric("undated", "of these, samples with an impossible origin: before the run or after their arrival, by more"
        " than 100 ms plus the clock offsets of the scenario. They do not count for delay, jitter, age and"
        " the path",
        "count", label="impossible origin", brief=(), rare=True),
    Metric("forged", "samples of an [attacker](security.md#attacks) that arrived there, and samples that a periodic stage"
        " made of them: they are none of the flow, and count nowhere else", "count", brief=(), rare=True),
    Metric("repeated", "samples of a periodic stage (a supervisor, an edge predictor) that were"
        " delivered without a new input sample: they count for `age_ms` and rates, not for"
        " `delivered`, delays, jitter and the path", "count", label="repeated", brief=(), rare=True),
    Metric("lost", "samples sent at least the grace time (1 s) before the end that never arrived", "count"),
    Metric("loss", "`lost` over all samples sent by then (RFC 7680). It exceeds `lost` over"
        " `sent`, because later samples may still be in flight. A sample that lacks a"
        " fragment is lost once. None where no sample was sent by then, as in a run no longer than warm-up and"
        " grace time", "share", lambda flow: flow["loss"] if flow["judged"] else None),
    Metric("in_flight", "samples sent within the grace time and not delivered at the end", "count"),
    Metric("duplicated", "copies: delivered again, or recognised by an endpoint (RFC 5560)", "count",
        label="duplicates", brief=(), rare=True),
    Metric("duplicates_dropped", "of these, those that an endpoint recognised", "count", label="recognised duplicates",
        brief=(), rare=True),
    Metric("reordered", "samples that arrived after one with a larger number (RFC 4737)", "count",
        one_of("reordering", "reordered"), label="out of order", brief=(), rare=True),
    Metric("reordering", "extent of reordering", parts=REORDERING, table="Samples out of order"),
    Metric("superseded", "samples that a periodic stage replaced before they were used; not lost", "count",
        rare=True),
    Metric("suppressed", "samples that a sampler (a hook without output, periodic ones too) or a"
        " transport suppressed on purpose; not lost", "count", rare=True),
    Metric("snr_db", "with `measure.snr`: signal-to-noise ratio of what a zero-order hold displays once a period."
        " The noise is the difference to what it would display without losses, at the smallest"
        " observed delay; `null` if nothing differs", "dB", label="SNR", brief=()),
    Metric("rate_reduction", "`suppressed` over `sent`", "share",
        lambda flow: flow["suppressed"] / flow["sent"] if flow["sent"] else 0.0, brief=(), rare=True),
    Metric("resampled_at", "components whose periodic stage (an edge predictor) renumbers samples: `lost`"
        " is then the sum of the losses before and after these components, and `loss` the share of samples"
        " lost on any of these segments", brief=(), type="list[str]"),
    Metric("drops", 'dropped packets by place and reason (`"l1.forward full"`): a sample of three'
        ' fragments may count three times. Reasons: `full`, `managed` (active queue'
        ' management, or too long for every slot or gate), `loss`, `outage`, `no route`,'
        ' `dead` (component), `malformed`, `hook`, `overload` (too many samples waited'
        ' for a stage), `corrupt` (damaged by the link, dropped by the receiver), `line`'
        ' (lost by the serial line to a board, or by the board), `unverified`, `replayed`,'
        ' `unkeyed` (by a [secured](security.md) channel), `connection` (unacknowledged on a connection of `tcp` or'
        ' `quic` that was lost; some of them may have arrived), `behind forged` (genuine samples that the receiver took for'
        ' copies or old ones, because an attacker used later numbers)', "count", _drops,
        each="link and reason", label="Where packets were lost"),
    spread("delay_ms", "distribution of the one-way delay by the clocks of the nodes, from the source"
        " to the entry of the last component: until the kernel received the last byte,"
        " or until the transport released it, if later", shown=STATISTICS, brief=SPREAD),
    Metric("jitter_ms", "every quantity that the literature calls jitter, each under its own name."
        " Samples that arrive at one instant came in one packet, represented by the"
        " first of them",
        of=lambda flow: {**flow["jitter"], "pdv_ns": flow["pdv_ns"]} if flow["delay_ns"] else None,
        parts=JITTERS, table=JITTER),
    spread("ipdv_ms", "distribution of the delay of a sample minus that of the one sent before it, both"
        " delivered (RFC 3393)", label="IPDV", shown=("mean", "p50", "p99"), brief=(), table=JITTER),
    spread("interarrival_ms", "distribution of the time between packets", label="time between arrivals",
        shown=("mean", "p50", "p99", "max"), brief=(), table=JITTER),
    Metric("packets_per_s", "packets that brought samples, 1 over the mean of `interarrival_ms`; a frame in fragments"
        " counts once", "1/s", lambda flow: _packets(flow)[0], label="packets", brief=(), table=JITTER),
    Metric("samples_per_packet", "mean number of delivered samples in such a packet (k where a transport merges)",
        "ratio", lambda flow: _packets(flow)[1], brief=(), table=JITTER),
    Metric("interarrival_fits", "`gaussian` and `gumbel` laws with the same mean and deviation", parts=LAW,
        each="law", label="Time between arrivals: fitted laws"),
    spread("age_ms", "age of the newest sample at the receiver: `mean` over time, and `max`",
        label="age of data", shown=TAIL, table=JITTER),
    Metric("payload_bytes", "payload delivered", "B", label="payload", brief=()),
    Metric("rate_bps", "rate of the payload while the flow ran", "bit/s", label="rate"),
    Metric(
        "verified",
        "frames that count as sent, whose checksum was compared at the sink",
        parts=(
            Metric("good", "as sent", "count", label="checked good", brief=(), rare=True),
            Metric("bad", "not as sent", "count", label="checked bad", rare=True),
        ),
    ),
    Metric("playout", "of a flow with [playout](playout.md), else `null`. It does not change `lost`:"
        " a sample is delivered when it arrives", parts=PLAYOUT, table="Playout"),
)  # fmt: skip


def _way(flow: Any) -> list[dict[str, Any]]:
    """Where a flow's time went; means add up to the mean delay of the samples seen at every point."""
    way = flow["path"]
    return [part | {"of_ns": way["delay_mean_ns"]} for part in way["segments"] if part["mean_ns"] is not None]


PATH = (
    Metric("what", "`component` or `link`", label=""),
    Metric("name", 'name of the component, or `"a -> b"`: everything between the exit of one and'
        ' the entry of the next', label="place"),
    spread("latency_ms", "distribution of the time spent there; only `mean` at a component of"
        " `resampled_at`, where samples cannot be followed", brief=("mean", "p99"),
        of=lambda part: ms(part["latency_ns"]) or {"mean": ms(part["mean_ns"])}),
    Metric("where_from", "always `samples`: computed sample by sample", of=lambda _: "samples", shown=()),
    Metric("share", "of the mean delay", "share",
        lambda part: part["mean_ns"] / part["of_ns"] if part["of_ns"] else None),
)  # fmt: skip
POINT = (
    Metric("point", "echo point, such as `srv.entry`, `srv.exit`"),
    Metric("n", "samples seen there", "count", label="samples"),
    spread("age_ms", "distribution of their age"),
)


def _by_name(source: Any) -> dict[str, Any]:
    """Flows of the analysis by name, with session and direction."""
    return {flow["name"]: source["flows"].get(flow["name"], {}) | flow for flow in source["rows"]["flows"]}


SECTIONS = (
    Metric("flows", "what each flow did", of=_by_name, parts=FLOW, each="flow", label="Flows"),
    Metric("path", "by flow, a list in the order of the path: the delay by place",
        of=lambda source: {flow["name"]: _way(flow) for flow in source["rows"]["flows"]}, parts=PATH,
        each="flow", listed=True, label="Where the time went"),
    Metric("points", "by flow, a list: age of samples at the echo points",
        of=lambda source: {flow["name"]: flow["points"] for flow in source["rows"]["flows"]}, parts=POINT,
        each="flow", listed=True, label="Age of a sample along its path"),
)  # fmt: skip
