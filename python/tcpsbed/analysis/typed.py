"""The parts of `summary.json` as types; made from the table of metrics, which is the place to change them."""

from __future__ import annotations

from typing import Any

from tcpsbed.analysis.parts import Distribution, Part


class Wall(Part):
    """Wall-clock time."""

    simulate_s: float
    """From first to last event (s)."""
    total_s: float
    """Of the whole command (s)."""


class Records(Part):
    """The recorded rows."""

    rows: int
    """Number of rows."""
    level: str
    """Value of `measure.records`: `samples` (every sample at every point), `packets` (also every packet
    and hop) or `events` (also every call of a stage).
    """
    digits: int
    """Significant digits of percentiles."""


class AcrossSeedsFlowDelay(Part):
    """One-way delay."""

    mean: Distribution
    """`n` (seeds), `mean` over the seeds, `ci95` (half width of its 95 % interval, Student's t; null
    for one seed) (ms).
    """
    p99: Distribution
    """`n` (seeds), `mean` over the seeds, `ci95` (half width of its 95 % interval, Student's t; null
    for one seed) (ms).
    """


class AcrossSeedsFlow(Part):
    """Empty where one seed ran."""

    delay_ms: AcrossSeedsFlowDelay
    """One-way delay."""
    loss: Distribution
    """`n` (seeds), `mean` over the seeds, `ci95` (half width of its 95 % interval, Student's t; null
    for one seed) (share).
    """


class AcrossSeeds(Part):
    """Results of `tcpsbed run --seeds N`; everything else in the file belongs to the first seed."""

    seeds: list[int]
    """Seeds that ran, the run's own first."""
    unchanged: bool
    """Whether all of them gave the same records: then nothing is random, the seeds after the first two
    did not run, and there is no interval.
    """
    failed: list[int]
    """Seeds whose run failed."""
    disturbed: list[int]
    """Seeds whose run has `disturbances`."""
    flows: dict[str, AcrossSeedsFlow]
    """Empty where one seed ran."""


class FlowReordering(Part):
    """Extent of reordering."""

    ratio: float
    """Reordered over delivered (share)."""
    mean_extent: float
    """Mean number of arrivals from the first sample with a larger number to the late sample."""
    max_extent: int
    """The largest such number."""
    max_late_ms: float
    """Longest time between these two arrivals (ms)."""


class FlowJitter(Part):
    """Every quantity that the literature calls jitter, each under its own name. Samples that arrive at
    one instant came in one packet, represented by the first of them.
    """

    step: Distribution
    """`mean`, `max` of the difference between the delays of one packet and the next (ms)."""
    displayed: Distribution
    """`mean`, `max` of the difference between the instant at which a 1 kHz display shows a packet and
    the instant at which it would show it if the display delay had not changed (ms).
    """
    rfc3550: float
    """The smoothed interarrival jitter of RFC 3550 at the end (ms)."""
    rfc3550_max: float
    """Its largest value (ms)."""
    pdv: Distribution
    """Distribution of the delay above the smallest delay (RFC 5481) (ms)."""


class FlowInterarrivalFit(Part):
    """`gaussian` and `gumbel` laws with the same mean and deviation."""

    location: float
    """Of `gaussian` the mean, of `gumbel` the mode (ms)."""
    scale: float
    """Of `gaussian` the standard deviation, of `gumbel` the scale (ms)."""
    distance: float
    """The largest difference between the law and the measured share (Kolmogorov), 0 to 1."""


class FlowVerified(Part):
    """Frames that count as sent, whose checksum was compared at the sink."""

    good: int
    """As sent."""
    bad: int
    """Not as sent."""


class FlowPlayout(Part):
    """Of a flow with playout, else `null`. It does not change `lost`: a sample is delivered when it
    arrives.
    """

    played: int
    """Samples shown."""
    late: int
    """Samples that arrived after their playout time."""
    skipped: int
    """Samples skipped to keep the queue short, or for a newer one."""
    starved: int
    """Ticks without a new sample."""
    age_ms: Distribution
    """Distribution of the age of a sample when it is shown (ms)."""
    interval_ms: Distribution
    """Distribution of the time between samples shown (ms)."""


class Flow(Part):
    """What each flow did."""

    session: str
    """Session of the flow."""
    direction: str
    """Direction in the scenario; `forward` is operator to robot."""
    sent: int
    """Samples that the source made."""
    delivered: int
    """Of these, samples that arrived at the entry of the last component (the *delivery*), each counted
    once.
    """
    undated: int
    """Of these, samples with an impossible origin: before the run or after their arrival, by more than
    100 ms plus the clock offsets of the scenario. They do not count for delay, jitter, age and the
    path.
    """
    forged: int
    """Samples of an attacker that arrived there, and samples that a periodic stage made of them: they
    are none of the flow, and count nowhere else.
    """
    repeated: int
    """Samples of a periodic stage (a supervisor, an edge predictor) that were delivered without a new
    input sample: they count for `age_ms` and rates, not for `delivered`, delays, jitter and the path.
    """
    lost: int
    """Samples sent at least the grace time (1 s) before the end that never arrived."""
    loss: float
    """`lost` over all samples sent by then (RFC 7680). It exceeds `lost` over `sent`, because later
    samples may still be in flight. A sample that lacks a fragment is lost once. None where no sample
    was sent by then, as in a run no longer than warm-up and grace time (share).
    """
    in_flight: int
    """Samples sent within the grace time and not delivered at the end."""
    duplicated: int
    """Copies: delivered again, or recognised by an endpoint (RFC 5560)."""
    duplicates_dropped: int
    """Of these, those that an endpoint recognised."""
    reordered: int
    """Samples that arrived after one with a larger number (RFC 4737)."""
    reordering: FlowReordering
    """Extent of reordering."""
    superseded: int
    """Samples that a periodic stage replaced before they were used; not lost."""
    suppressed: int
    """Samples that a sampler (a hook without output, periodic ones too) or a transport suppressed on
    purpose; not lost.
    """
    snr_db: float
    """With `measure.snr`: signal-to-noise ratio of what a zero-order hold displays once a period. The
    noise is the difference to what it would display without losses, at the smallest observed delay;
    `null` if nothing differs (dB).
    """
    rate_reduction: float
    """`suppressed` over `sent` (share)."""
    resampled_at: list[str]
    """Components whose periodic stage (an edge predictor) renumbers samples: `lost` is then the sum of
    the losses before and after these components, and `loss` the share of samples lost on any of these
    segments.
    """
    drops: dict[str, int]
    """Dropped packets by place and reason (`"l1.forward full"`): a sample of three fragments may count
    three times. Reasons: `full`, `managed` (active queue management, or too long for every slot or
    gate), `loss`, `outage`, `no route`, `dead` (component), `malformed`, `hook`, `overload` (too many
    samples waited for a stage), `corrupt` (damaged by the link, dropped by the receiver), `line` (lost
    by the serial line to a board, or by the board), `unverified`, `replayed`, `unkeyed` (by a secured
    channel), `connection` (unacknowledged on a connection of `tcp` or `quic` that was lost; some of
    them may have arrived), `behind forged` (genuine samples that the receiver took for copies or old
    ones, because an attacker used later numbers).
    """
    delay_ms: Distribution
    """Distribution of the one-way delay by the clocks of the nodes, from the source to the entry of the
    last component: until the kernel received the last byte, or until the transport released it, if
    later (ms).
    """
    jitter_ms: FlowJitter
    """Every quantity that the literature calls jitter, each under its own name. Samples that arrive at
    one instant came in one packet, represented by the first of them.
    """
    ipdv_ms: Distribution
    """Distribution of the delay of a sample minus that of the one sent before it, both delivered (RFC
    3393) (ms).
    """
    interarrival_ms: Distribution
    """Distribution of the time between packets (ms)."""
    packets_per_s: float
    """Packets that brought samples, 1 over the mean of `interarrival_ms`; a frame in fragments counts
    once (1/s).
    """
    samples_per_packet: float
    """Mean number of delivered samples in such a packet (k where a transport merges) (ratio)."""
    interarrival_fits: dict[str, FlowInterarrivalFit]
    """`gaussian` and `gumbel` laws with the same mean and deviation."""
    age_ms: Distribution
    """Age of the newest sample at the receiver: `mean` over time, and `max` (ms)."""
    payload_bytes: float
    """Payload delivered (B)."""
    rate_bps: float
    """Rate of the payload while the flow ran (bit/s)."""
    verified: FlowVerified
    """Frames that count as sent, whose checksum was compared at the sink."""
    playout: FlowPlayout
    """Of a flow with playout, else `null`. It does not change `lost`: a sample is delivered when it
    arrives.
    """


class Path(Part):
    """By flow, a list in the order of the path: the delay by place."""

    what: str
    """`component` or `link`."""
    name: str
    """Name of the component, or `"a -> b"`: everything between the exit of one and the entry of the next."""
    latency_ms: Distribution
    """Distribution of the time spent there; only `mean` at a component of `resampled_at`, where samples
    cannot be followed (ms).
    """
    where_from: str
    """Always `samples`: computed sample by sample."""
    share: float
    """Of the mean delay (share)."""


class Point(Part):
    """By flow, a list: age of samples at the echo points."""

    point: str
    """Echo point, such as `srv.entry`, `srv.exit`."""
    n: int
    """Samples seen there."""
    age_ms: Distribution
    """Distribution of their age (ms)."""


class SplitPart(Part):
    """Parts that are not zero."""

    part: str
    """Name of the part, see above."""
    mean_ms: float
    """Over all samples (ms)."""
    p99_ms: float
    """Over all samples, within 2 %, in virtual time (ms)."""
    share: float
    """Of the total (share)."""


class SplitComponent(Part):
    """Components of the path, and the followed samples that left them."""

    component: str
    """Name of the component."""
    samples: int
    """How many."""
    waiting_ms: float
    """Mean (ms)."""
    working_ms: float
    """Mean (ms)."""


class SplitHop(Part):
    """Links that the flow's packets pass: those of its path in order, then those of other packets, such
    as acknowledgements and copies; packets that flows share are listed at the first flow of their
    channel.
    """

    link: str
    """Name of the link."""
    packets: int
    """Followed packets, also of samples that were lost later; null at a link without a rate behind
    another link: packets pass it without stopping, and its delay is that of the scenario.
    """
    queueing_ms: float
    """Mean (ms)."""
    serialisation_ms: float
    """Mean (ms)."""
    propagation_ms: float
    """Mean, with jitter (ms)."""
    radio_ms: float
    """Mean of retransmissions on the link (ms)."""


class SplitUnsplit(Part):
    """On sockets: contents of the part `unsplit`."""

    part: str
    """Part contained in `unsplit`."""
    why: str
    """Reason why it cannot be separated."""


class Split(Part):
    """By flow: true time of delivered samples by cause; on sockets the parts also of those sent during
    the warm-up. Of more than 65,536 samples one in 2, 4, 8 … is followed; with `measure.records =
    "packets"` every one.
    """

    samples: int
    """Delivered samples that were followed."""
    total_ms: float
    """Mean true time from source to sink, including playout and last stages: the sum of the parts; on
    sockets the mean of `delay_ms` plus the time from the entry of the last component (ms).
    """
    clock_error_ms: float
    """In virtual time: mean difference between age by the clocks of nodes and true age (ms)."""
    parts: list[SplitPart]
    """Parts that are not zero."""
    components: list[SplitComponent]
    """Components of the path, and the followed samples that left them."""
    hops: list[SplitHop]
    """Links that the flow's packets pass: those of its path in order, then those of other packets, such
    as acknowledgements and copies; packets that flows share are listed at the first flow of their
    channel.
    """
    unsplit: list[SplitUnsplit]
    """On sockets: contents of the part `unsplit`."""


class LargestNext(Part):
    """The second largest, if it takes at least three quarters of that time."""

    cause: str
    """Name of the part, as in `split`; empty where only places are known."""
    place: str
    """Link, component or channel; empty where it is of none."""
    mean_ms: float
    """Mean time spent on it (ms)."""
    total_ms: float
    """Mean time from source to sink, as in `split` (ms)."""
    share: float
    """Of `total_ms` (share)."""
    key: str
    """Key of the scenario that changes it; empty where there is none."""
    value: str
    """Value of this key, and what else is to be known of it; empty where it is no single number or name."""


class Largest(Part):
    """By flow that delivered: the largest single part of its delay, and what changes it; none of a flow
    without delay, or where on sockets half of the part may be the difference of the clocks. Times of a
    cause are shared among the links or components of the flow's path in proportion to the means of
    `split`.
    """

    cause: str
    """Name of the part, as in `split`; empty where only places are known."""
    place: str
    """Link, component or channel; empty where it is of none."""
    mean_ms: float
    """Mean time spent on it (ms)."""
    total_ms: float
    """Mean time from source to sink, as in `split` (ms)."""
    share: float
    """Of `total_ms` (share)."""
    key: str
    """Key of the scenario that changes it; empty where there is none."""
    value: str
    """Value of this key, and what else is to be known of it; empty where it is no single number or name."""
    next: list[LargestNext]
    """The second largest, if it takes at least three quarters of that time."""


class EchoPoint(Part):
    """List, in the order of the path."""

    point: str
    """As in `points` above."""
    n: int
    """Commands answered."""
    lost: int
    """Commands never answered."""
    superseded: int
    """Commands superseded by a newer sample at a periodic stage or a newer command at the robot (not
    lost).
    """
    round_trip_ms: Distribution
    """Estimate of the time from the command to its answer (ms)."""
    forward_ms: Distribution
    """Estimate of the outbound delay, by the timestamps of the nodes' clocks (ms)."""
    return_ms: Distribution
    """Estimate of the return delay, by the same; the outbound delay is measured, never taken as half a
    round trip (ms).
    """


class EchoComponent(Part):
    """List of components, each the segment between two consecutive points, measured within one round of
    interleaved commands.
    """

    what: str
    """As in `path`."""
    name: str
    """As in `path`."""
    from_: str
    """The first point."""
    to: str
    """The second point."""
    latency_ms: Distribution
    """Estimate: the difference of the outbound delays, or of the round trips without stamps (ms)."""
    ci95: float
    """The same number as `latency_ms.ci95` (ms)."""
    ci95_batch: float
    """The same number as `latency_ms.ci95_batch` (ms)."""
    source: str
    """`one_way` or `round_trip`."""
    halved: bool
    """True only for a link whose latency is half the difference of the round trips, because the echo
    returns over the same link. A component is never halved: only the outbound path passes it.
    """
    round_trip_difference_ms: Distribution
    """Estimate of the difference of the round trips, as measured (ms)."""


class EchoClocks(Part):
    """The two clocks of the round trips; null if commands are sent and answered at one node."""

    from_: str
    """Node of the source, which sends the commands."""
    to: str
    """Node of the component that receives the answers (`test-pc`)."""
    corrected: bool
    """Whether stamps are corrected by the estimated offsets (`measure.sync`)."""
    unknown: int
    """Answers received before both clocks were known; no result counts them."""
    correction_ms: float
    """Mean correction, null if there was none (ms)."""
    bound_ms: float
    """Largest error of the correction, for any asymmetry of the paths: the bounds of both clocks added
    (ms).
    """


class Echo(Part):
    """By flow: echo commands."""

    commands: int
    """Echo commands whose fate is known."""
    points: list[EchoPoint]
    """List, in the order of the path."""
    components: list[EchoComponent]
    """List of components, each the segment between two consecutive points, measured within one round of
    interleaved commands.
    """
    links: list[EchoComponent]
    """List of segments that are links, with the keys of `components`."""
    spans: list[EchoComponent]
    """List of segments, with the keys of `components`, that are neither a component nor a link, because
    points in between were not measured.
    """
    actuation_ms: Distribution
    """Estimate of the time from the robot's component (exit or entry) to the point `held`, at which the
    robot has reached the command (ms).
    """
    clocks: EchoClocks
    """The two clocks of the round trips; null if commands are sent and answered at one node."""


class Media(Part):
    """By flow: pictures and sound; empty without displays."""

    kind: str
    """`picture` or `sound`."""
    shown: int
    """Frames shown after the warm-up."""
    shown_per_s: float
    """Frame rate."""
    coded_bytes: float
    """Mean size of a coded frame, at the exit of the component that codes it (B)."""
    coded_bps: float
    """Bit rate of coded frames, at the same place (bit/s)."""
    mouth_to_ear_ms: Distribution
    """Of sound with `mark`: distribution of the age of the mark when heard, once a second, by the
    clocks of the two nodes, including the reported delay of a loudspeaker of this machine; null without
    marks (ms).
    """
    loudness_db: float
    """Of sound: mean level in dB of full scale (dB)."""
    unread: int
    """Pictures whose time blocks could not be read."""
    repeated: int
    """Pictures whose number had been shown before."""
    glass_to_glass_ms: Distribution
    """Distribution of the age of pictures when shown, from the capture time drawn into each, by the
    clocks of the two nodes. Pictures that were compared are left out, because comparing delays them; if
    all were compared, all count (ms).
    """
    psnr_db: float
    """Mean over the compared frames; null if nothing differs (dB)."""
    ssim: float
    """Mean over the compared frames."""


class Network(Part):
    """List of links."""

    name: str
    """Of the link."""
    packets: int
    """Packets carried."""
    bytes: float
    """Bytes carried (B)."""
    dropped_packets: int
    """Packets dropped."""
    dropped_bytes: float
    """Bytes dropped (B)."""
    drops: dict[str, int]
    """Dropped packets by reason."""
    max_queue_bytes: float
    """Longest queue: exact, at every packet (B)."""
    max_queue_packets: int
    """Most packets in the queue: exact, at every packet."""
    duplicated: int
    """Packets that left twice."""
    corrupted: int
    """Packets carried, and dropped by their receivers."""
    marked: int
    """Packets marked instead of dropped (`ecn = true`)."""
    loss: float
    """Dropped over all that arrived (share)."""
    jitter: str
    """The extra delay that was set at the start; `changed in the run` where an emulated network between
    your own programs had another later; absent where the link drew none, as the next.
    """
    jitter_ms: Distribution
    """Distribution of the extra delays that the link drew for its packets, those of background traffic
    and copies, too: `n`, `sd` and as usual. It has neither queueing nor the lateness of this machine,
    nor what a packet waits for one before it so that they stay in order (ms).
    """
    utilisation: float
    """Share of the run in which the line was busy (share of the time)."""


class Queue(Part):
    """List of sampled queues (`measure.queues`)."""

    link: str
    """Link of the queue."""
    bytes: Distribution
    """Distribution of the queue length at the moments of sampling; between them it may be longer, see
    `network.max_queue_bytes` (B).
    """
    packets: Distribution
    """Distribution of the queue length, as of `bytes`."""
    delay_ms: Distribution
    """Distribution of the queueing delay of a packet that arrives at that time (for `slots` and gates,
    without the time until they open) (ms).
    """


class Traffic(Part):
    """List of background traffic."""

    name: str
    """Of the traffic."""
    packets: int
    """Packets sent; over TCP and QUIC in both directions, with retransmissions."""
    bytes: float
    """Bytes sent (B)."""
    delivered_packets: int
    """Packets that arrived."""
    dropped_packets: int
    """Packets dropped."""


class Channel(Part):
    """List, with `measure.records = "packets"`."""

    name: str
    """Of the channel."""
    sent_packets: int
    """Packets that left a node."""
    sent_bytes: float
    """Bytes of these on the wire (B)."""
    received_packets: int
    """Packets that reached a node."""
    received_bytes: float
    """Bytes of these on the wire (B)."""
    peak_packets: int
    """Most that a node sent in any 100 ms."""


class Stage(Part):
    """List of stages."""

    component: str
    """Where it is."""
    flow: str
    """Flow of its samples."""
    kind: str
    """Kind of stage."""
    name: str
    """Name of its code."""
    calls: int
    """How often it was called."""
    failures: int
    """Calls that failed."""
    not_finite: int
    """Calls whose output was not finite."""
    overruns: int
    """On the machine's clock: calls longer than the cost set in the scenario."""
    cpu_ns: Distribution
    """`mean`, `p50`, `p99`, `p999`, `max` of the processor time of a call (ns)."""
    core_share: float
    """Share of a core over the run (share)."""


class Component(Part):
    """List, sums over all stages of a component, for the choice of a board."""

    component: str
    """Whose stages they are."""
    busy_s: float
    """Processor time of all its stages (s)."""
    core_share: float
    """Of a core over the run (share)."""


class Node(Part):
    """List; on the machine's clock one row per loop, with the keys from `sessions` on."""

    name: str
    """Of the node."""
    cores: int
    """Of the node."""
    busy_s: float
    """Processor time of its stages (s)."""
    missed_ticks: int
    """Ticks skipped because the loop did not run in time."""
    asides_refused: int
    """Datagrams for no channel of the node, and echo answers or clock exchanges that cannot be parsed
    or that it does not wait for.
    """
    sessions: list[str]
    """Session of the loop, if the node has several loops, else empty."""
    ticks: int
    """Of the loop."""
    late_ns: Distribution
    """Lateness of its loop at a wake-up (ns)."""
    gaps_over_1ms: int
    """Stalls of the loop for over 1 ms."""
    ring_overflows: int
    """Rows lost because the ring was full."""
    socket_drops: int
    """Datagrams that the kernel dropped at sockets: no room, or a wrong checksum of UDP."""
    stamp_to_loop_ns: Distribution
    """From the kernel's receive timestamp to the loop (ns)."""
    send_ns: Distribution
    """Duration of a send call (ns)."""
    interpreter_wait_ns: Distribution
    """Time until the loop got Python's interpreter (GIL) after a wait (ns)."""
    strangers: int
    """Datagrams from senders that are no node of the run."""
    unread: int
    """Packets whose port cannot be read: behind extension headers, in a VLAN, in a later fragment."""
    unsent: int
    """Datagrams that the kernel refused to send."""
    clock_steps: int
    """Steps of the wall clock."""
    waiting: str
    """Its way of waiting (`real.waiting`)."""
    privileges: list[str]
    """Privileges granted and refused."""


class Robot(Part):
    """List, on the machine's clock, of robots with a loop of their own (robots); for a restarted robot,
    since its restart.
    """

    component: str
    """Of the robot."""
    node: str
    """Where it is."""
    ticks: int
    """Of its own loop."""
    missed_ticks: int
    """Ticks skipped because the loop did not run in time; one step made up for them."""
    late_ns: Distribution
    """`p50`, `p99`, `max` of its lateness at a wake-up (ns)."""
    gaps_over_1ms: int
    """Stalls of the loop for over 1 ms."""
    watchdog: int
    """Times that its watchdog acted."""


class Emulator(Part):
    """List, on the machine's clock."""

    path: str
    """Sending and receiving node; of `proxy` and `netns` the flow, and of `netns` also each port at
    which a program listens, with the program if it is known.
    """
    part_of: str
    """Of such a port: the path that has its packets, too; absent otherwise."""
    packets: int
    """Packets that entered."""
    copies: int
    """Copies that the network made of them."""
    delivered: int
    """Packets that left, copies included."""
    inside: int
    """Packets in flight at the end."""
    set_loss: float
    """Share of packets that the network dropped (share)."""
    delivered_loss: float
    """Share of packets that did not leave (share)."""
    set_delay_ms: float
    """Mean delay that the network chose; null if no packet left (ms)."""
    set_p50_ms: float
    """Median of the delay that the network chose (ms)."""
    set_p99_ms: float
    """Its 99th percentile (ms)."""
    delivered_delay_ms: Distribution
    """From the timestamp of entry to the end of the send call; null if no packet left (ms)."""
    error_ms: Distribution
    """Emulation error: delivered delay minus set delay; null if no packet left (ms)."""
    set_rate_bps: float
    """Bytes of all packets but the first, divided by the time from the first packet to the last, as the
    network released them; null below 1 s (bit/s).
    """
    wire_rate_bps: float
    """`set_rate_bps` with all headers, as the `rate` of a link counts packets; absent where that has
    them, and below 1 s (bit/s).
    """
    delivered_rate_bps: float
    """The rate passed to the kernel: `set_rate_bps` times the share of packets that the kernel
    accepted, lower if the lateness grew (bit/s).
    """
    longest_repair_ms: float
    """Of TCP behind `netns`: the longest time from the loss of a segment in the network until its bytes
    came out, of losses that were repaired; what came out meanwhile behind it waited in the receiver for
    so long, or less. A copy that was on its way when the segment was lost counts as the repair. Absent
    where no lost segment came out (ms).
    """
    lost_by: dict[str, int]
    """Causes of loss, each with its number of packets; connections and datagrams that the target of a
    `proxy` refused are named here, too.
    """
    stamps: str
    """Source of the time of entry: `kernel`, or `after the read` in network namespaces."""


class ProgramsSetting(Part):
    """Of `delay`, `rate`, `loss` and `jitter` those that a link set at the start, and those beyond the
    margin, and `delivery` where a path delivered nothing.
    """

    what: str
    """Which of them."""
    verdict: str
    """`good`, `not good`, or `not shown`: the run does not tell."""
    said: str
    """What was measured against what was set, at the worst path."""


class ProgramsTcp(Part):
    """Of `netns`: what TCP sent in each namespace, as its kernel counts it (RFC 4022)."""

    side: str
    """`near` or `far`."""
    sent: int
    """Segments but those sent again."""
    retransmitted: int
    """Segments sent again."""


class Programs(Part):
    """Of `proxy` and `netns`, absent otherwise and where they were killed: the verdict over the network
    between your own programs; its reasons are in `disturbances`.
    """

    verdict: str
    """`good`, `not good`, or `no packet arrived`."""
    settings: list[ProgramsSetting]
    """Of `delay`, `rate`, `loss` and `jitter` those that a link set at the start, and those beyond the
    margin, and `delivery` where a path delivered nothing.
    """
    margin_ms: float
    """The emulation error at p99 that was accepted (`--margin-ms`) (ms)."""
    remedies: list[str]
    """What to do where it is not good."""
    tcp: list[ProgramsTcp]
    """Of `netns`: what TCP sent in each namespace, as its kernel counts it (RFC 4022)."""
    late_ms: Distribution
    """Of `netns`: how late this machine woke a program that sleeps 2 ms at a time (ms)."""


class Host(Part):
    """List, world `hosts`."""

    name: str
    """Of the host."""
    address: str
    """Address for ssh."""
    data: str
    """IP address of its sockets."""
    nodes: list[str]
    """Nodes on it."""
    python: str
    """Version."""
    files_sha256: str
    """Hash of the copied files."""
    clock_error_ns: float
    """Largest error of its clock's reading (ns)."""
    clock_drift_ns: float
    """Change of its clock until the end (ns)."""
    lost: str
    """Reason for which it was lost."""
    lost_at_s: float
    """When (s)."""


class Endpoint(Part):
    """List of transport endpoints."""

    channel: str
    """Of the scenario."""
    side: str
    """The node."""
    malformed: int
    """Datagrams that cannot be parsed."""
    duplicates: int
    """Datagrams received again."""
    incomplete: int
    """Samples that lack a fragment."""
    recovered: int
    """Of `rtp`, `repeat` and `parity`: samples or packets recovered by redundancy."""
    lost: int
    """Of `rtp`: packets."""
    reports: int
    """Of `rtp`: reports of the peer that were parsed."""
    rtt_ns: float
    """Round-trip time of `rtp`, and of `kernel-tcp` as reported by the kernel; null if unknown (ns)."""
    jitter_ns: float
    """Jitter of `rtp` (RFC 3550, worst flow); null if unknown (ns)."""
    peer_loss: float
    """Of `rtp`: loss in the peer's last report; null if unknown (share)."""
    refused: int
    """Samples refused because the send queue was full."""
    retransmits: int
    """Retransmissions: TCP segments sent before, QUIC packets declared lost, `rtp` packets that the
    peer requested; of `kernel-tcp` as reported by the kernel.
    """
    unanswered: int
    """Given up without an acknowledgement: samples (`rtp` that sends one sample at a time) or key
    datagrams (`irtp`, `smoothed-sctp`).
    """
    told: int
    """Of `rtp` with `feedback`: packets whose arrival or loss the peer reported."""
    told_lost: int
    """Packets reported as lost; a later report of arrival corrects the count. Feedback that is older
    than the last, or whose clock runs ahead, is `malformed`.
    """
    told_queue_ns: float
    """Mean excess of their delays over the smallest delay of the last 60 s (ns)."""
    allowed_bps: float
    """Rate that `congestion` allows at the end, null without (bit/s)."""
    secure_sessions: int
    """Of a channel with `security`: sessions whose keys both sides hold."""
    handshake_ns: float
    """Time from the first message of the first handshake to its keys; null without (ns)."""
    key_changes: int
    """Changes of the keys of both directions."""
    unverified: int
    """Datagrams dropped because they did not verify, `unsealed` ones among them."""
    unsealed: int
    """Those that were not sealed at all; with `tls` over `tcp` connections that began without TLS."""
    refused_handshakes: int
    """Messages of handshakes that did not verify: another key, another channel, or changed."""
    refused_connections: int
    """With `tls`: connections that this side ended because a part did not verify."""
    expired_handshakes: int
    """With `tls`: handshakes that this side gave up because they took too long (20 s in `tcp`, 10 s
    without a packet in `quic`).
    """
    alerts: int
    """With `tls`: connections that the other side ended, and proved it."""
    unproven_alerts: int
    """With `tls`: handshakes that ended with an alert, which anybody on the path can send."""
    replayed: int
    """Datagrams dropped because one of their number had been received, or it was too late to know, and
    messages of the handshake that came again.
    """
    unkeyed: int
    """Datagrams dropped because no key could seal them, as before the handshake."""
    security_bytes: float
    """Bytes that security added to what was sent, handshakes included (B)."""
    connections: int
    """Of `tcp`, `quic` and `kernel-tcp`: connections established, with `tls` those whose handshake is
    complete.
    """
    connections_lost: int
    """Connections lost before the end of the run."""
    first_lost_ns: float
    """When the first of them was lost; null if none was (ns)."""
    down_since_ns: float
    """When the last one was lost, if none followed; else null (ns)."""
    longest_down_ns: float
    """Longest time from the loss of one to the next (ns)."""
    lost_in_flight: int
    """Samples that lost connections had not acknowledged; some may have arrived. Always 0 of
    `kernel-tcp` and of `quic` in datagrams.
    """
    stalls: int
    """Times without an acknowledgement for 200 ms or more, including one that lasts to the end."""
    longest_stall_ns: float
    """The longest of these stalls (ns)."""
    silent_at_end_ns: float
    """Stall that lasts to the end, 0 if there is none (ns)."""
    window_waits: int
    """Of `tcp`: times that, with nothing in flight, data waited for the other side's window: it did not
    read, or somebody on the path forged this.
    """
    strangers: int
    """Connection requests from senders other than the peer."""


class BoardDamaged(Part):
    """Damaged data from the board; null for a modelled one."""

    no_crc: int
    """Frames with a wrong checksum."""
    no_cobs: int
    """Incomplete frames."""
    too_long: int
    """Byte sequences without an end."""
    unknown: int
    """Complete frames of unknown type."""
    missing: int
    """Numbered frames that never arrived."""


class BoardDamagedThere(Part):
    """Data that arrived damaged at the board, as it reports at the end; null if the board is gone or
    modelled.
    """

    no_crc: int
    """Frames with a wrong checksum."""
    no_cobs: int
    """Incomplete frames."""
    too_long: int
    """Byte sequences without an end."""
    unknown: int
    """Complete frames of unknown type."""
    missing: int
    """Numbered frames that never arrived."""
    overflown: float
    """Bytes for which its port had no room (B)."""


class BoardGone(Part):
    """Time and cause of its disconnection, else null."""

    at_s: float
    """When (s)."""
    why: str
    """Reason, as text."""


class Board(Part):
    """List of boards."""

    component: str
    """Where it is."""
    sent: int
    """Samples sent to it."""
    answered: int
    """Samples answered by it."""
    lost: int
    """Samples lost on the line or in it."""
    safe: int
    """Times that its watchdog switched to the safe output; `states` has the times."""
    late: int
    """Answers to samples already given up; null for a modelled board."""
    damaged: BoardDamaged
    """Damaged data from the board; null for a modelled one."""
    damaged_there: BoardDamagedThere
    """Data that arrived damaged at the board, as it reports at the end; null if the board is gone or
    modelled.
    """
    refused_values: int
    """Values that were not finite."""
    clock_bound_ns: float
    """Largest error of its stamps; null for a modelled board (ns)."""
    gone: BoardGone
    """Time and cause of its disconnection, else null."""


class Clock(Part):
    """List of synchronised nodes."""

    node: str
    """Node that estimates."""
    reference: str
    """Node whose clock is estimated."""
    exchanges: int
    """Exchanges between them."""
    offset_ms: float
    """Reference minus own clock. The estimate assumes equal delays in both directions: if they differ
    by d, it is off by d / 2 (ms).
    """
    bound_ms: float
    """Strict: half the shortest round trip, whatever the asymmetry (ms)."""
    drift_ppm: float
    """Drift of one clock against the other (ppm)."""
    true_error_ms: float
    """Estimate minus truth at the end; null without a common clock of the nodes (ms)."""
    true_error_max_ms: float
    """The largest (ms)."""


class Metric(Part):
    """List of values of your own metrics (`measure.metrics`); absent without these."""

    name: str
    """Name in the scenario, or of its class."""
    of: str
    """The flow, link or other name that the value belongs to; empty for a single value."""
    value: float
    """The value; null if there is none, or the metric failed."""
    unit: str
    """Of the value."""
    meaning: str
    """The first line of its docstring."""


class Event(Part):
    """List of events that occurred: of the scenario, those asked for, and the first 10 000 moments at
    which links closed and opened by `outages`, or by `slots` whose cycle is 1 s or more.
    """

    t_s: float
    """Time of the event (s)."""
    name: str
    """Name of the event."""
    by: str
    """Who asked for it while the run went on, such as `viewer 2`; absent: the scenario."""


class Outage(Part):
    """List of the first 10 000 times in which a link was down by the plan: by its `outages`, or from an
    event that took it down (`up = false`) to the one that brought it up, or to the end; as one where
    these overlap.
    """

    link: str
    """Of the network; without a direction if both were down."""
    from_s: float
    """When it went down (s)."""
    length_s: float
    """For how long (s)."""


class StateFirst(Part):
    """The initial state."""

    t_s: float
    """Time at which the component first reported it (s)."""
    state: str
    """Name of the state."""


class StateChange(Part):
    """The first 1000."""

    t_s: float
    """When (s)."""
    from_: str
    """The state before."""
    to: str
    """The state after."""
    age_ms: float
    """Of the newest accepted sample (ms)."""
    cause: str
    """Cause, as text."""


class State(Part):
    """List of supervisors and predictive displays, even if their state never changed, and of boards
    whose watchdog acted (safety, boards). States are `normal`, `degraded`, `hold`, `safe stop`,
    `recovering`; of a predictive display `live`, `predicted`.
    """

    component: str
    """Where."""
    flow: str
    """Of which flow."""
    first: StateFirst
    """The initial state."""
    count: int
    """Of changes."""
    changes: list[StateChange]
    """The first 1000."""
    spent_s: dict[str, float]
    """Time in each state (s)."""
    causes: dict[str, dict[str, int]]
    """Counts by state and cause: `"hold": {"no command arrived": 2}`; empty for boards, and if the node
    died before it reported.
    """
    limited: float
    """Share of calls after which a supervisor's limits kept the follower farther than `near` from its
    command; null if unknown (share).
    """


class EffectDelay(Part):
    """One-way delay of genuine samples meanwhile."""

    n: int
    """Samples that arrived meanwhile."""
    p50_ms: float
    """Median of their one-way delay (ms)."""
    p99_ms: float
    """Its 99th percentile (ms)."""
    added_p50_ms: float
    """`p50_ms` less the median outside of all effects; null if fewer than 20 samples arrived meanwhile
    or there (ms).
    """
    added_p99_ms: float
    """The same of `p99_ms`, which below 100 samples is their longest (ms)."""


class Effect(Part):
    """List of the effects of the first 64 link events and attacks. An event that only gives links their
    own settings back ends an effect and is none.
    """

    name: str
    """Name of the event."""
    kind: str
    """`link`, or the kind of the attack."""
    flow: str
    """The attacked flow; null if none."""
    from_s: float
    """When it began (s)."""
    until_s: float
    """When the attack ended; of `link` the next event of the same links (s)."""
    sent: int
    """Datagrams that the attacker sent or changed."""
    component: str
    """The component that they are for; null of `link`, `flood`, `reset` and `clock-lie`."""
    channel: str
    """The channel that is attacked; null if none."""
    accepted: int
    """Those whose sample entered the component that it is for: a supervisor there may refuse it (next
    key); of `clock-lie` answers that the estimate of the clock took; of `reset` connections that the
    receiver lost before the next effect began; null of `link`, and on sockets if the numbers of samples
    cannot be read.
    """
    accepted_share: float
    """`accepted` over `sent`; null where these are not both numbers of datagrams (share)."""
    refused: int
    """Commands that a supervisor at that component refused in the whole run, of whatever origin; null
    where there is none.
    """
    hold_ms: float
    """From the beginning until a supervisor entered `hold`; null if none did before the next effect
    began (ms).
    """
    safe_stop_ms: float
    """The same of `safe stop` (ms)."""
    delays: dict[str, EffectDelay]
    """One-way delay of genuine samples meanwhile."""


class StallsFlow(Part):
    """Of each flow of which samples arrived that were made after the warm-up."""

    samples: int
    """Arrived samples that a stall touched."""
    share: float
    """Of those that arrived (share)."""


class Stalls(Part):
    """Stalls of loops on the machine's clock; absent without one. A stall *touched* a sample if it
    overlaps the time in which the sample was in flight, from its creation to its arrival. Loops on the
    sample's path count: all loops of its nodes, also those of other sessions, and the emulator's if it
    crosses from one node to another.
    """

    n: int
    """Stalls over 1 ms that ended after the warm-up, of nodes and emulator."""
    longest_ms: float
    """The longest of them (ms)."""
    flows: dict[str, StallsFlow]
    """Of each flow of which samples arrived that were made after the warm-up."""


class Protection(Part):
    """List of channels and how they are protected; empty of runs in virtual time without security and
    attacks.
    """

    channel: str
    """Name of the channel."""
    method: str
    """`aead`, `hmac`, `srtp`, `tls` or `none`."""
    cipher: str
    """What it uses."""
    key: str
    """Where its key is from."""


class Summary(Part):
    """Content of `summary.json`."""

    version: int
    """1; grows when a key changes its meaning."""
    name: str
    """Of the scenario."""
    world: str
    """Value of `--world` (worlds); `proxy` or `netns` of a network between your own programs."""
    seed: int
    """Of the scenario."""
    duration_s: float
    """Planned length (s)."""
    warmup_s: float
    """Warm-up at the start, excluded from all numbers (s)."""
    ran_s: float
    """Time of the last record: less than `duration_s` if the run was stopped (s)."""
    versions: dict[str, str]
    """Versions by name: `tcpsbed`, `python`, packages loaded in the process, and `commit` if tcpsbed
    runs from a git tree (with `-dirty` if that was changed).
    """
    machine: dict[str, Any]
    """`cpu` (model), `cores` (available to the process), `system`, `kernel`, `python`, `governor` (of
    the clock frequency, if readable), `virtual` (the hypervisor, or `yes`).
    """
    promise: str
    """Reproducibility: a repetition gives the same records on any machine (only built-in code ran), on
    this machine with these versions (Python or library code ran), or similar ones (on the machine's
    clock).
    """
    random: bool
    """`false` if nothing is drawn from the seed, so that other seeds give the same records; `true` if
    something is or may be (your own code, the machine's clock).
    """
    wall: Wall
    """Wall-clock time."""
    records: Records
    """The recorded rows."""
    across_seeds: AcrossSeeds
    """Results of `tcpsbed run --seeds N`; everything else in the file belongs to the first seed."""
    records_sha256: str
    """SHA-256 of `records.bin`."""
    flows: dict[str, Flow]
    """What each flow did."""
    path: dict[str, list[Path]]
    """By flow, a list in the order of the path: the delay by place."""
    points: dict[str, list[Point]]
    """By flow, a list: age of samples at the echo points."""
    split: dict[str, Split]
    """By flow: true time of delivered samples by cause; on sockets the parts also of those sent during
    the warm-up. Of more than 65,536 samples one in 2, 4, 8 … is followed; with `measure.records =
    "packets"` every one.
    """
    largest: dict[str, Largest]
    """By flow that delivered: the largest single part of its delay, and what changes it; none of a flow
    without delay, or where on sockets half of the part may be the difference of the clocks. Times of a
    cause are shared among the links or components of the flow's path in proportion to the means of
    `split`.
    """
    echo: dict[str, Echo]
    """By flow: echo commands."""
    media: dict[str, Media]
    """By flow: pictures and sound; empty without displays."""
    network: list[Network]
    """List of links."""
    queues: list[Queue]
    """List of sampled queues (`measure.queues`)."""
    traffic: list[Traffic]
    """List of background traffic."""
    channels: list[Channel]
    """List, with `measure.records = "packets"`."""
    stages: list[Stage]
    """List of stages."""
    components: list[Component]
    """List, sums over all stages of a component, for the choice of a board."""
    nodes: list[Node]
    """List; on the machine's clock one row per loop, with the keys from `sessions` on."""
    robots: list[Robot]
    """List, on the machine's clock, of robots with a loop of their own (robots); for a restarted robot,
    since its restart.
    """
    emulator: list[Emulator]
    """List, on the machine's clock."""
    programs: Programs
    """Of `proxy` and `netns`, absent otherwise and where they were killed: the verdict over the network
    between your own programs; its reasons are in `disturbances`.
    """
    hosts: list[Host]
    """List, world `hosts`."""
    endpoints: list[Endpoint]
    """List of transport endpoints."""
    boards: list[Board]
    """List of boards."""
    clocks: list[Clock]
    """List of synchronised nodes."""
    metrics: list[Metric]
    """List of values of your own metrics (`measure.metrics`); absent without these."""
    events: list[Event]
    """List of events that occurred: of the scenario, those asked for, and the first 10 000 moments at
    which links closed and opened by `outages`, or by `slots` whose cycle is 1 s or more.
    """
    outages: list[Outage]
    """List of the first 10 000 times in which a link was down by the plan: by its `outages`, or from an
    event that took it down (`up = false`) to the one that brought it up, or to the end; as one where
    these overlap.
    """
    drops_together: list[list[str]]
    """Lists of flows whose packets a link cannot tell apart on the machine's clock: those of a secured
    channel, and of a stream. `drops` of the flows of a list are those of all of them; absent without
    one.
    """
    states: list[State]
    """List of supervisors and predictive displays, even if their state never changed, and of boards
    whose watchdog acted (safety, boards). States are `normal`, `degraded`, `hold`, `safe stop`,
    `recovering`; of a predictive display `live`, `predicted`.
    """
    effects: list[Effect]
    """List of the effects of the first 64 link events and attacks. An event that only gives links their
    own settings back ends an effect and is none.
    """
    stalls: Stalls
    """Stalls of loops on the machine's clock; absent without one. A stall *touched* a sample if it
    overlaps the time in which the sample was in flight, from its creation to its arrival. Loops on the
    sample's path count: all loops of its nodes, also those of other sessions, and the emulator's if it
    crosses from one node to another.
    """
    protection: list[Protection]
    """List of channels and how they are protected; empty of runs in virtual time without security and
    attacks.
    """
    assumed_free: list[str]
    """Zero-cost stages: they run code, have no cost in the scenario, and so took no simulated time."""
    ignored: list[str]
    """Keys of the scenario without effect in this world, each with the reason (`cores`, `scheduling`
    and `priority` describe cores in virtual time; `radio.lena` is for 5G-LENA).
    """
    untried: list[str]
    """Sentences: features of this run that were never tested; also on standard error (5G-LENA)."""
    disturbances: list[str]
    """Sentences: what to check before trusting the result. Stalls over 1 ms and the samples that they
    touched, skipped ticks and lateness over 1 ms (p99) of nodes and of robots' own loops; full rings;
    dropped datagrams; steps of clocks; the emulator beyond its margins (50 µs at the median, 0.3 ms at
    p99, 1 % of the rate, 0.5 percentage points of loss); hooks slower than half their period; your own
    code in the network slower than 50 µs (p99); unreadable or unordered rows; another world than
    requested; a stop before the end.
    """
    attacked: list[str]
    """Sentences: what was accepted of the scenario's own attacks."""
    as_set: list[str]
    """Sentences: what the scenario's own attacks sent, and what was refused or happened because of
    them. It disturbs nothing; only what goes beyond the number of their datagrams is among
    `disturbances`.
    """
    supervisors: list[str]
    """Sentences: commands that supervisors refused, which is their task."""
    errors: list[str]
    """Sentences: what failed."""
