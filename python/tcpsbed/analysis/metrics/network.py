"""Links, queues, background traffic, channels and their endpoints, the emulator."""

from __future__ import annotations

from typing import Any

from tcpsbed.analysis.metrics.metric import LIST, Metric, one_of, spread
from tcpsbed.analysis.units import ms

ENDS = ("p50", "p99")


def _loss(link: Any) -> float:
    came = link["packets"] + link["dropped_packets"]
    return link["dropped_packets"] / came if came else 0.0


def _utilisation(link: Any) -> float | None:
    busy_s, ran_s = link.get("busy_s"), link["ran_s"]
    return busy_s / ran_s if busy_s is not None and ran_s > 0 else None


LINK = (
    Metric("name", "of the link", label="link"),
    Metric("packets", "those carried", "count"),
    Metric("bytes", "those carried", "B", label="carried", brief=()),
    Metric("dropped_packets", "those dropped", "count", label="dropped"),
    Metric("dropped_bytes", "theirs", "B", brief=(), rare=True),
    Metric("drops", "dropped packets by reason", "count", each="reason", label="What links dropped"),
    Metric("max_queue_bytes", "longest queue", "B", label="longest queue"),
    Metric("max_queue_packets", "most packets in it", "count", label="packets in it"),
    Metric("duplicated", "packets that came out twice", "count", rare=True),
    Metric("corrupted", "carried, and dropped by their receivers", "count", rare=True),
    Metric("loss", "dropped over all that came", "share", _loss),
    Metric("utilisation", "share of the run in which the line was busy", "load", _utilisation, label="busy"),
)
QUEUE = (
    Metric("link", "where it waits"),
    spread("bytes", "distribution of those waiting", "B", label="waiting", shown=("mean", "max")),
    spread("packets", "distribution of those waiting", "count", shown=("mean", "max")),
    spread("delay_ms", "distribution of the delay of a packet arriving then (of `slots` and gates, without"
        " the time until they open)", label="wait", shown=("mean", "p99")),
)  # fmt: skip
TRAFFIC = (
    Metric("name", "of the traffic", label="traffic"),
    Metric("packets", "those sent; over TCP and QUIC of both directions, and those sent again", "count"),
    Metric("bytes", "theirs", "B", label="offered"),
    Metric("delivered_packets", "those that arrived", "count", label="delivered"),
    Metric("dropped_packets", "those that did not", "count", label="dropped"),
)
CHANNEL = (
    Metric("name", "of the channel", label="channel"),
    Metric("sent_packets", "packets that left a node", "count", label="sent"),
    Metric("sent_bytes", "theirs on the wire", "B", label="sent"),
    Metric("received_packets", "packets that reached a node", "count", label="received"),
    Metric("received_bytes", "theirs on the wire", "B", label="received"),
    Metric("peak_packets", "most that a node sent in any 100 ms", "count", label="most in 100 ms"),
)
EMULATED = (
    Metric("path", "from which node to which", label="emulator"),
    Metric("packets", "that came in", "count"),
    Metric("set_delay_ms", "mean of the delay that the network gave", "ms",
        lambda path: ms(one_of("set_delay_ns", "mean")(path)), label="delay set"),
    spread("delivered_delay_ms", "from the stamp of its entry to the end of the send call",
        label="delivered", shown=("mean", *ENDS)),
    spread("error_ms", "delivered later than set", shown=ENDS),
    Metric("set_rate_bps", "bytes on the wire behind the first packet over the span from first to last, as"
        " the network let them out; null over less than 1 s", "bit/s", label="rate set"),
    Metric("delivered_rate_bps", "the same as they were handed to the kernel: less what it refused, over a"
        " span as much longer as lateness grew all along", "bit/s", label="delivered"),
    Metric("set_loss", "share that the network lost", "share", label="loss set"),
    Metric("delivered_loss", "share that did not go out", "share", label="delivered"),
    Metric("stamps", "what says when a packet entered: `kernel`, or `after the read` in network namespaces",
        label="time of entry"),
)  # fmt: skip
ENDPOINT = (
    Metric("channel", "of the scenario"),
    Metric("side", "the node"),
    *(
        Metric(key, meaning, "count", label=label, rare=True)
        for key, meaning, label in (
            ("malformed", "datagrams that are none", ""),
            ("duplicates", "datagrams that came again", ""),
            ("incomplete", "samples that lack a fragment", "incomplete frames"),
            ("recovered", "of `rtp`, `repeat` and `parity`: samples or packets recovered by redundancy", ""),
            ("lost", "of `rtp`: packets", ""),
            ("reports", "of `rtp`: those of the peer that were understood", ""),
        )
    ),
    Metric("rtt_ns", "of `rtp`, and of `kernel-tcp` as the kernel tells it; null where not known", "ns",
        label="RTT"),
    Metric("jitter_ns", "of `rtp` (RFC 3550, worst flow); null where not known", "ns"),
    Metric("peer_loss", "of `rtp`: share in the peer's last report; null where not known", "share"),
    Metric("refused", "samples, at the sending side, for want of room", "count",
        label="samples without room", rare=True),
    Metric("retransmits", "datagrams with a segment of TCP that was sent before, a packet of QUIC taken"
        " for lost, one of `rtp` that the peer asked for; of `kernel-tcp` as the kernel tells them", "count",
        label="sent again", rare=True),
    Metric("unanswered", "what was given up for want of an acknowledgement (`rtp` one at a time: samples;"
        " `irtp`, `smoothed-sctp`: key datagrams)", "count", rare=True),
    Metric("told", "of `rtp` with `feedback`: packets of which the peer told, one by one, whether they came",
        "count", label="packets told of", rare=True),
    Metric("told_lost", "those that did not; one that is told of later after all is taken off again;"
        " feedback that is older than the last, or whose clock has run ahead of the time since, is"
        " `malformed`", "count", label="told as lost", rare=True),
    Metric("told_queue_ns", "mean of their delays above the least of 60 s", "ns", label="told queue"),
    Metric("allowed_bps", "the rate that `congestion` makes of it at the end, null without", "bit/s",
        label="allowed"),
    Metric("connections", "of `kernel-tcp`: those that stood", "count"),
    Metric("connections_lost", "before the end of the run", "count", rare=True),
    Metric("stalls", "times that nothing was acknowledged for 200 ms or more, one that lasts to the end"
        " among them", "count", rare=True),
    Metric("longest_stall_ns", "of them", "ns", rare=True),
    Metric("silent_at_end_ns", "the stall that lasts to the end, 0 if none does", "ns", rare=True),
    Metric("strangers", "connections that others than the peer asked for", "count", rare=True),
)  # fmt: skip


def _of(*keys: str) -> Any:
    return lambda source: list(one_of(*keys)(source) or ())


SECTIONS = (
    Metric("network", "list of links",
        of=lambda source: [link | {"ran_s": source["ran_s"]} for link in source["told"].get("links", ())],
        parts=LINK, each=LIST, label="Network"),
    Metric("queues", "list of queues that were looked at (`measure.queues`)", of=_of("rows", "queues"),
        parts=QUEUE, each=LIST, label="Queues"),
    Metric("traffic", "list of background traffic", of=_of("told", "traffic"), parts=TRAFFIC, each=LIST,
        label="Background traffic"),
    Metric("channels", "list, at level `packets`", of=_of("rows", "channels"), parts=CHANNEL, each=LIST,
        label="Channels"),
)  # fmt: skip
EMULATOR = Metric(
    "emulator",
    "list, real world",
    of=_of("told", "emulator"),
    parts=EMULATED,
    each=LIST,
    label="Emulator: set against delivered",
)
ENDPOINTS = Metric(
    "endpoints",
    "list of transport endpoints",
    of=_of("told", "endpoints"),
    parts=ENDPOINT,
    each=LIST,
    label="Counted by transports",
)
