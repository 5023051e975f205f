"""Links, queues, background traffic, channels and their endpoints, the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcpsbed.analysis.metrics.metric import ABSENT, LIST, Metric, one_of, spread
from tcpsbed.analysis.units import ms

ENDS = ("p50", "p99")
CHANGED = "changed in the run"
"""In place of a setting that has no one value."""


def _loss(link: Any) -> float:
    came = link["packets"] + link["dropped_packets"]
    return link["dropped_packets"] / came if came else 0.0


def _utilisation(link: Any) -> float | None:
    busy_s, ran_s = link.get("busy_s"), link["ran_s"]
    return busy_s / ran_s if busy_s is not None and ran_s > 0 else None


def _links(source: Any) -> list[dict[str, Any]]:
    """What each link told, with what is set at it."""
    planned = {link["name"]: link for link in source.get("plan", {}).get("network", {}).get("links", ())}
    return [
        link
        | {"ran_s": source["ran_s"], "set": planned.get(link["name"], {})}
        | {"changed": source["told"].get("changed", {}).get(link["name"], ())}
        for link in source["told"].get("links", ())
    ]


def _jitter(link: Any) -> Any:
    """The jitter that is set at a link, in words, where it drew any."""
    if not link.get("jitter_ns"):
        return ABSENT
    jitter = link["set"].get("jitter")
    return CHANGED if not jitter or "jitter" in link["changed"] else drawn(jitter)


def drawn(jitter: Any) -> str:
    """A jitter of a plan in words: its law with its parameters, and whether it reorders."""
    law = jitter.get("delay", {})
    spans = (
        f"{key.removesuffix('_ns')} {value / 1e6:g} ms"
        for key, value in law.items()
        if key.endswith("_ns") and isinstance(value, int | float) and value
    )
    reorders = " and reorders" if jitter.get("reorder") else ""
    is_cut = law.get("kind") == "normal" and law.get("mean_ns", 0) < 3 * law.get("sd_ns", 0)
    cut = " (draws below 0 are 0)" * is_cut
    return f"{law['kind']}{''.join(f', {span}' for span in spans)}{cut}{reorders}"


LINK = (
    Metric("name", "of the link", label="link"),
    Metric("packets", "packets carried", "count"),
    Metric("bytes", "bytes carried", "B", label="carried", brief=()),
    Metric("dropped_packets", "packets dropped", "count", label="dropped"),
    Metric("dropped_bytes", "bytes dropped", "B", brief=(), rare=True),
    Metric("drops", "dropped packets by reason", "count", each="reason", label="What links dropped"),
    Metric("max_queue_bytes", "longest queue: exact, at every packet", "B", label="longest queue (exact)"),
    Metric(
        "max_queue_packets",
        "most packets in the queue: exact, at every packet",
        "count",
        label="queued packets (exact)",
    ),
    Metric("duplicated", "packets that left twice", "count", rare=True),
    Metric("corrupted", "packets carried, and dropped by their receivers", "count", rare=True),
    Metric("marked", "packets marked instead of dropped (`ecn = true`)", "count", rare=True),
    Metric("loss", "dropped over all that arrived", "share", _loss),
    Metric(
        "jitter",
        "the extra delay that was set at the start; `changed in the run` where an emulated network between your own programs"
        " had another later; absent where the link drew none, as the next",
        of=_jitter,
        label="set",
        table="Jitter: set against drawn",
    ),
    spread(
        "jitter_ms",
        "distribution of the extra delays that the link drew for its packets, those of background traffic"
        " and copies, too: `n`, `sd` and as usual. It has neither queueing nor the lateness of this machine, nor what a"
        " packet waits for one before it so that they stay in order",
        label="drawn",
        shown=("mean", "sd", "p50", "p99", "max", "n"),
        table="Jitter: set against drawn",
    ),
    Metric("utilisation", "share of the run in which the line was busy", "load", _utilisation, label="busy"),
)
QUEUE = (
    Metric("link", "link of the queue"),
    spread("bytes", "distribution of the queue length at the moments of sampling; between them it may be longer,"
        " see `network.max_queue_bytes`", "B", label="queued", shown=("mean", "max")),
    spread("packets", "distribution of the queue length, as of `bytes`", "count", shown=("mean", "max")),
    spread("delay_ms", "distribution of the queueing delay of a packet that arrives at that time (for"
        " `slots` and gates, without the time until they open)", label="delay", shown=("mean", "p99")),
)  # fmt: skip
TRAFFIC = (
    Metric("name", "of the traffic", label="traffic"),
    Metric("packets", "packets sent; over TCP and QUIC in both directions, with retransmissions", "count"),
    Metric("bytes", "bytes sent", "B", label="offered"),
    Metric("delivered_packets", "packets that arrived", "count", label="delivered"),
    Metric("dropped_packets", "packets dropped", "count", label="dropped"),
)
CHANNEL = (
    Metric("name", "of the channel", label="channel"),
    Metric("sent_packets", "packets that left a node", "count", label="sent"),
    Metric("sent_bytes", "bytes of these on the wire", "B", label="sent"),
    Metric("received_packets", "packets that reached a node", "count", label="received"),
    Metric("received_bytes", "bytes of these on the wire", "B", label="received"),
    Metric("peak_packets", "most that a node sent in any 100 ms", "count", label="peak in 100 ms"),
)


def _of_delivered(*keys: str) -> Callable[[Any], Any]:
    """A statistic of the packets that left; nothing where none did."""
    return lambda path: one_of(*keys)(path) if path.get("delivered", 1) else None


def _delivered_ms(key: str, meaning: str, **more: Any) -> Metric:
    """A distribution over the packets that left, from one in ns."""
    return spread(
        key, meaning, of=lambda path: ms(_of_delivered(f"{key.removesuffix('ms')}ns")(path)), **more
    )


def _lost_by(path: Any) -> dict[str, int]:
    closed = {NOT_TAKEN: path.get("unsent", 0)} | path.get("closed", {})
    drops: dict[str, int] = path.get("drops", {})
    return drops | {reason: number for reason, number in closed.items() if number}


NOT_TAKEN = "not taken by the kernel"
EMULATED = (
    Metric("path", "sending and receiving node; of `proxy` and `netns` the flow, and of `netns` also each port at which a"
        " program listens, with the program if it is known"),
    Metric("part_of", "of such a port: the path that has its packets, too; absent otherwise",
        of=lambda path: path.get("part_of") or ABSENT, shown=()),
    Metric("packets", "packets that entered", "count", label="in"),
    Metric("copies", "copies that the network made of them", "count"),
    Metric("delivered", "packets that left, copies included", "count", label="out"),
    Metric("inside", "packets in flight at the end", "count"),
    Metric("set_loss", "share of packets that the network dropped", "share", label="lost"),
    Metric("delivered_loss", "share of packets that did not leave", "share", label="not delivered", brief=()),
    Metric("set_delay_ms", "mean delay that the network chose; null if no packet left", "ms",
        lambda path: ms(_of_delivered("set_delay_ns", "mean")(path)), label="set mean", brief=()),
    Metric("set_p50_ms", "median of the delay that the network chose", "ms",
        lambda path: ms(_of_delivered("set_delay_ns", "p50")(path)), label="set p50"),
    Metric("set_p99_ms", "its 99th percentile", "ms",
        lambda path: ms(_of_delivered("set_delay_ns", "p99")(path)), label="set p99"),
    _delivered_ms("delivered_delay_ms", "from the timestamp of entry to the end of the send call; null if no packet left",
        label="delivered", shown=("mean", *ENDS), brief=ENDS),
    _delivered_ms("error_ms", "emulation error: delivered delay minus set delay; null if no packet left", shown=ENDS),
    Metric("set_rate_bps", "bytes of all packets but the first, divided by the time from the first packet to the"
        " last, as the network released them; null below 1 s", "bit/s", label="released"),
    Metric("wire_rate_bps", "`set_rate_bps` with all headers, as the `rate` of a link counts packets; absent where that has"
        " them, and below 1 s", "bit/s", lambda path: path.get("wire_rate_bps") or ABSENT, label="with headers"),
    Metric("delivered_rate_bps", "the rate passed to the kernel: `set_rate_bps` times the share of packets that the kernel"
        " accepted, lower if the lateness grew", "bit/s", label="delivered"),
    Metric("longest_repair_ms", "of TCP behind `netns`: the longest time from the loss of a segment in the network until its"
        " bytes came out, of losses that were repaired; what came out meanwhile behind it waited in the receiver for so"
        " long, or less. A copy that was on its way when the segment was"
        " lost counts as the repair. Absent where no lost segment came out", "ms",
        lambda path: ms(path["longest_repair_ns"]) if "longest_repair_ns" in path else ABSENT, label="longest TCP repair"),
    Metric("lost_by", "causes of loss, each with its number of packets; connections and datagrams that the target of a"
        " `proxy` refused are named here, too", of=_lost_by, type="dict[str, int]", label="lost by"),
    Metric("stamps", "source of the time of entry: `kernel`, or `after the read` in network"
        " namespaces",
        label="entry stamps", brief=()),
)  # fmt: skip
ENDPOINT = (
    Metric("channel", "of the scenario"),
    Metric("side", "the node"),
    *(
        Metric(key, meaning, "count", label=label, rare=True)
        for key, meaning, label in (
            ("malformed", "datagrams that cannot be parsed", ""),
            ("duplicates", "datagrams received again", ""),
            ("incomplete", "samples that lack a fragment", "incomplete samples"),
            ("recovered", "of `rtp`, `repeat` and `parity`: samples or packets recovered by redundancy", ""),
            ("lost", "of `rtp`: packets", ""),
            ("reports", "of `rtp`: reports of the peer that were parsed", ""),
        )
    ),
    Metric("rtt_ns", "round-trip time of `rtp`, and of `kernel-tcp` as reported by the kernel; null"
        " if unknown", "ns",
        label="RTT"),
    Metric("jitter_ns", "jitter of `rtp` (RFC 3550, worst flow); null if unknown", "ns"),
    Metric("peer_loss", "of `rtp`: loss in the peer's last report; null if unknown", "share"),
    Metric("refused", "samples refused because the send queue was full", "count",
        label="refused samples", rare=True),
    Metric("retransmits", "retransmissions: TCP segments sent before, QUIC packets declared lost, `rtp`"
        " packets that the peer requested; of `kernel-tcp` as reported by the kernel", "count",
        label="retransmitted", rare=True),
    Metric("unanswered", "given up without an acknowledgement: samples (`rtp` that sends one sample at a time) or key"
        " datagrams (`irtp`, `smoothed-sctp`)", "count", rare=True),
    Metric("told", "of `rtp` with `feedback`: packets whose arrival or loss the peer reported",
        "count", label="reported packets", rare=True),
    Metric("told_lost", "packets reported as lost; a later report of arrival corrects the count."
        " Feedback that is older than the last, or whose clock runs ahead, is"
        " `malformed`", "count", label="reported lost", rare=True),
    Metric("told_queue_ns", "mean excess of their delays over the smallest delay of the last 60 s", "ns",
        label="reported queueing"),
    Metric("allowed_bps", "rate that `congestion` allows at the end, null without", "bit/s",
        label="allowed"),
    Metric("secure_sessions", "of a channel with `security`: sessions whose keys both sides hold", "count",
        label="secure sessions"),
    Metric("handshake_ns", "time from the first message of the first handshake to its keys; null without", "ns",
        label="handshake"),
    Metric("key_changes", "changes of the keys of both directions", "count", label="key changes"),
    *(
        Metric(key, meaning, "count", label=label, rare=True)
        for key, meaning, label in (
            ("unverified", "datagrams dropped because they did not verify, `unsealed` ones among them", ""),
            ("unsealed", "those that were not sealed at all; with `tls` over `tcp` connections that began without TLS", ""),
            ("refused_handshakes", "messages of handshakes that did not verify: another key, another channel, or changed",
                "refused handshakes"),
            ("refused_connections", "with `tls`: connections that this side ended because a part did not verify",
                "refused connections"),
            ("expired_handshakes", "with `tls`: handshakes that this side gave up because they took too long (20 s in `tcp`,"
                " 10 s without a packet in `quic`)", "expired handshakes"),
            ("alerts", "with `tls`: connections that the other side ended, and proved it", ""),
            ("unproven_alerts", "with `tls`: handshakes that ended with an alert, which anybody on the path can send",
                "unproven alerts"),
            ("replayed", "datagrams dropped because one of their number had been received, or it was too late to know, and"
                " messages of the handshake that came again", ""),
            ("unkeyed", "datagrams dropped because no key could seal them, as before the handshake", ""),
        )
    ),
    Metric("security_bytes", "bytes that security added to what was sent, handshakes included", "B",
        label="added by security"),
    Metric("connections", "of `tcp`, `quic` and `kernel-tcp`: connections established, with `tls` those whose handshake is"
        " complete", "count"),
    Metric("connections_lost", "connections lost before the end of the run", "count", rare=True),
    Metric("first_lost_ns", "when the first of them was lost; null if none was", "ns", rare=True),
    Metric("down_since_ns", "when the last one was lost, if none followed; else null", "ns", rare=True),
    Metric("longest_down_ns", "longest time from the loss of one to the next", "ns", rare=True),
    Metric("lost_in_flight", "samples that lost connections had not acknowledged; some may have arrived. Always 0 of"
        " `kernel-tcp` and of `quic` in datagrams", "count", rare=True),
    Metric("stalls", "times without an acknowledgement for 200 ms or more, including one that lasts"
        " to the end", "count", rare=True),
    Metric("longest_stall_ns", "the longest of these stalls", "ns", rare=True),
    Metric("silent_at_end_ns", "stall that lasts to the end, 0 if there is none", "ns", rare=True),
    Metric("window_waits", "of `tcp`: times that, with nothing in flight, data waited for the other side's window: it did"
        " not read, or somebody on the path forged this", "count", rare=True),
    Metric("strangers", "connection requests from senders other than the peer", "count", rare=True),
)  # fmt: skip


def _list(
    key: str, where: str, meaning: str, parts: tuple[Metric, ...], label: str, needs: tuple[str, ...] = ()
) -> Metric:
    """A list that a source has under its own name at `where`, empty where it has none."""
    return Metric(
        key,
        meaning,
        of=lambda source: list(one_of(where, key)(source) or ()),
        parts=parts,
        each=LIST,
        label=label,
        needs=needs,
    )


SECTIONS = (
    Metric("network", "list of links",
        of=_links,
        parts=LINK, each=LIST, label="Network", needs=("name",)),
    _list("queues", "rows", "list of sampled queues (`measure.queues`)", QUEUE, "Queues, sampled"),
    _list("traffic", "told", "list of background traffic", TRAFFIC, "Background traffic"),
    _list("channels", "rows", 'list, with `measure.records = "packets"`', CHANNEL, "Channels"),
)  # fmt: skip
EMULATOR = _list(
    "emulator", "told", "list, on the machine's clock", EMULATED, "Emulator: set against delivered",
    ("path",),
)  # fmt: skip
PROGRAMS = Metric(
    "programs",
    "of `proxy` and `netns`, absent otherwise and where they were killed: the verdict over the network between your own"
    " programs; its reasons are in `disturbances`",
    of=lambda source: source["told"].get("programs", ABSENT),
    parts=(
        Metric("verdict", "`good`, `not good`, or `no packet arrived`"),
        Metric("settings", "of `delay`, `rate`, `loss` and `jitter` those that a link set at the start, and those beyond the"
            " margin, and `delivery` where a path delivered nothing", parts=(
            Metric("what", "which of them"),
            Metric("verdict", "`good`, `not good`, or `not shown`: the run does not tell"),
            Metric("said", "what was measured against what was set, at the worst path"),
        ), of=lambda told: told.get("settings", ABSENT), each=LIST, needs=("what", "verdict", "said")),
        Metric("margin_ms", "the emulation error at p99 that was accepted (`--margin-ms`)", "ms"),
        Metric("remedies", "what to do where it is not good", type="list[str]"),
        Metric("tcp", "of `netns`: what TCP sent in each namespace, as its kernel counts it (RFC 4022)", parts=(
            Metric("side", "`near` or `far`"),
            Metric("sent", "segments but those sent again", "count"),
            Metric("retransmitted", "segments sent again", "count"),
        ), of=lambda told: told.get("tcp", ABSENT), each=LIST, needs=("side", "sent", "retransmitted")),
        spread("late_ms", "of `netns`: how late this machine woke a program that sleeps 2 ms at a time",
            shown=("p50", "p99", "max")),
    ),
    needs=("verdict",),
)  # fmt: skip
ENDPOINTS = _list("endpoints", "told", "list of transport endpoints", ENDPOINT, "Counted by transports")
