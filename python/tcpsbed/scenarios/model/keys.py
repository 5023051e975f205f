"""The keys of tables as parameters; made from the tables, which are the place to change them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

# fmt: off


class ChannelKeys(TypedDict, total=False):
    """Of `Channel`."""

    flows: Any
    """Flows that share the channel, of both directions."""
    transport: Any
    """Transport that they share; absent: the transport of the flows."""
    between: Any
    """The two nodes between which the flows share the channel; absent: every pair on the path."""
    dscp: Any
    """Code point of its packets; absent: that of the flows."""
    security: Any
    """What protects it from others on the network: security; absent: nothing."""


class EventKeys(TypedDict, total=False):
    """Of `Event`."""

    at: Any
    """The moment, from the start and before the end, such as "5 s". A run that `--duration` shortens
    skips later events.
    """
    name: str | None
    """Name of the event in the report; absent: generated."""
    by: str | None
    """Who asked for it during an earlier run, such as `"viewer 2"`: *Save as scenario* of the studio
    writes it. The name ends with it, and `summary.json` has it.
    """
    link: Any
    """Links to change (`"l1"`: both directions)."""
    rate: Any
    """With `link`: the new rate."""
    delay: Any
    """With `link`: the new propagation delay."""
    loss: Any
    """With `link`: the new random loss."""
    jitter: Any
    """With `link`: the new extra delay per packet, of a built-in model."""
    duplicate: Any
    """With `link`: the new probability that a packet is delivered twice."""
    queue: Any
    """With `link`: the new limit of its queue, from the next packet on: `fq-codel` then drops what is
    beyond it.
    """
    up: bool | None
    """With `link`: `false` takes the link down, `true` brings it back."""
    reroute: bool | None
    """`true` computes all routes again, over links that are up then, also by their `outages`. Routes go
    back over a link that is up again with the next `reroute`.
    """
    flow: Any
    """Flows to start or to stop."""
    traffic: Any
    """Background traffic to start or to stop."""
    running: bool | None
    """With `flow` or `traffic`: `true` starts, `false` stops."""
    component: Any
    """Components to kill or to restart. A dead component drops all samples, also those inside it. A
    restarted component has new hooks, new playout and a new robot.
    """
    alive: bool | None
    """With `component`: `false` kills, `true` restarts."""
    node: Any
    """Nodes whose clocks step. Timestamps, hooks, playout, clock synchronisation and ages of dropped
    samples use this clock. Timers of transports do not, as in a kernel. Delays measured by transports
    use both clocks.
    """
    step: Any
    """With `node`: length of the step, back if it is negative, such as `"-3 s"`."""
    attack: Any
    """An attack that begins now."""


class FlowKeys(TypedDict, total=False):
    """Of `Flow`."""

    direction: Literal["forward", "backward"]
    """`"forward"`: operator to robot. `"backward"`: robot to operator; absent: by name, else required."""
    rate: Any
    """Samples or frames per second, at most 1 MHz, such as "1 kHz"; absent: by name, else required."""
    sample: Any
    """Size of a generated sample, at most 16 MB. For what a robot senses it is the upper limit, unless
    a `sense` hook sets the size. Recordings, frames and the hook `force` have a size of their own, and
    another `sample` is refused; absent: by name, else required for generated samples.
    """
    source: Any
    """Where samples come from; absent: the robot for `haptic` from a robot, else `"generated"`."""
    picture: Any
    """Pictures of a camera, in place of samples."""
    sound: Any
    """Sound of a microphone, in place of samples."""
    sink: Literal["count", "robot", "verify"] | None
    """Where samples go; absent: `"robot"` for values that reach a robot, `"verify"` for frames, else
    `"count"`.
    """
    playout: Any
    """When the last component shows samples that arrived; absent: at once."""
    codec: Literal["f32", "f64", "raw"] | None
    """How values become bytes; absent: `"raw"` for frames and for sizes that are no multiple of 4 B,
    else `"f32"`.
    """
    transport: Any
    """Transport of a flow that shares no channel; absent: `"udp"`."""
    overhead: Any
    """Bytes counted for all headers of a packet. Some published profiles prescribe this number; absent:
    the true size.
    """
    start: Any
    """Time of the first sample."""
    stop: Any
    """No sample is sent at this time or later; absent: never."""
    dscp: Any
    """Code point (DSCP) of its packets: a number or a name such as `"EF"`."""
    priority: int
    """Urgency under priority scheduling. A larger number is more urgent."""
    authority: Any
    """Weight of its operator at a robot with several operators. With 0 the operator only watches. The
    key `authority` of a robot is something else: the policy that uses these weights.
    """
    blocking_send: bool
    """Whether a sample waits at its component until the first link has taken the previous sample. This
    also holds behind a `delay`.
    """
    buffers: int | None
    """How many samples may be between source and first link at once. The source skips a sample if no
    buffer is free. With `blocking_send` and 1 buffer, the source makes a sample only after the previous
    one was sent. With 2 buffers, and a source and a sender at different components, it makes the next
    sample while the previous one is sent; absent: any number.
    """
    session: Any
    """Its session; absent: every session."""
    via: Any
    """Components that the flow passes, where there is a choice; absent: none."""
    from_: Any
    """Component where the flow starts; absent: the first on the path."""
    to: Any
    """Component where the flow ends; absent: the last on the path."""
    path: Any
    """All components that the flow passes, in this order; absent: the usual order."""


class HookKeys(TypedDict, total=False):
    """Of `Hook`."""

    kind: Literal["kinematics", "inverse_kinematics", "code", "decode", "sense", "feedback", "predict", "work"]
    """What the hook does; absent: the name of the entry."""
    run: str | None
    """A built-in name, `"./lib.so:function"`, `"./file.py:name"` or `"module:name"`; absent: required
    except for `work`.
    """
    at: Any
    """Components or kinds where the hook runs; absent: by kind."""
    flow: Any
    """Its flows; absent: by kind."""
    cost: Any
    """Time that a sample occupies a core; absent: no cost."""
    delay: Any
    """Time that a sample spends without occupying a core."""
    period: Any
    """For `predict`: the hook outputs one sample in each period. Without a period it outputs one per
    arrival.
    """
    answers: Literal["ticks", "arrivals"]
    """With a `period`: when the hook outputs. `"ticks"`: at its own ticks, for which an arrival waits.
    `"arrivals"`: at each arrival, and by its timer after one and a half periods without an arrival.
    """
    other: Any
    """Flows whose newest values at this component the hook receives. The values are concatenated in
    this order, once each flow has one; absent: the newest value of any flow of the other direction.
    """
    isolate: Any
    """Whether a Python class, or a function in C, runs in a process of its own, with limits on time and
    memory; absent: it runs in the process of its node.
    """
    params: Any
    """Parameters of the code."""


class LinkKeys(TypedDict, total=False):
    """Of `Link`."""

    rate: Any
    """Bit rate on the wire; absent: infinitely fast."""
    delay: Any
    """Propagation delay."""
    queue: Any
    """Packets that wait for the link; absent: without limit."""
    loss: Any
    """Random loss."""
    jitter: Any
    """Extra delay of each packet."""
    duplicate: Any
    """Probability that a packet is delivered twice; absent: 0."""
    corrupt: Any
    """Probability that a packet is damaged. The packet continues, and its receiver drops it because of
    the wrong checksum; absent: 0.
    """
    outages: Any
    """Times, from and to, during which nothing passes. Routes stay as without them until an event with
    `reroute`.
    """
    slots: Any
    """Repeating time windows in which packets may start, as on a link that several stations use in
    turns. A packet starts if all of it fits into the window. A packet that fits into none is dropped as
    `managed`.
    """
    trace: Any
    """Opportunities to deliver a packet, in place of a rate (mahimahi). A text file with one whole
    number per line: the millisecond of one opportunity to deliver 1500 B. Several opportunities in one
    millisecond are several lines. The trace repeats after its last line.
    """
    duplex: Literal["full", "half", "simplex"] | None
    """`"full"`: both directions at once. `"half"`: both directions share a medium. `"simplex"`: only
    the forward direction; absent: `"full"`.
    """
    medium: Any
    """A half-duplex medium (hub). All links with this name share it."""
    radio: Any
    """Radio access in place of a wire. `from` is the mobile side."""
    dscp: Any
    """Only packets with this code point pass. If two routes are equally good, these packets take this
    link rather than a link for all packets.
    """
    from_: Any
    """Node or router where the link begins. An edge of a graph has its ends already; absent: required."""
    to: Any
    """Node or router where it ends; absent: required."""
    forward: Any
    """Settings that differ in the direction from `from` to `to`."""
    backward: Any
    """Settings that differ in the direction from `to` to `from`."""


class MeasureKeys(TypedDict, total=False):
    """Of `Measure`."""

    records: Literal["samples", "packets", "events"]
    """What `records.bin` holds (records). `"samples"`: every sample at every point. `"packets"`: also
    every packet and each of its hops. `"events"`: also every call of a stage.
    """
    queues: Any
    """Period at which queue lengths are sampled; absent: never."""
    snr: bool
    """Whether values of flows are compared between source and sink. The result is `snr_db`."""
    echo: Any
    """Echo commands; absent: none."""
    sync: Any
    """Clock synchronisation of the nodes."""
    signals: Any
    """Points at which values of samples are recorded, such as `"srv.exit"`.
    `"tactile-teleoperator.sense"` is what a robot senses; absent: none.
    """
    metrics: Any
    """Metrics of your own, such as `"./mine.py:Late"`; absent: none."""
    pcapng: Any
    """Whether packets are written for Wireshark. `"auto"` writes them in runs up to 60 s. `true` and
    `false` mean `"on"` and `"off"`.
    """
    grace: Any
    """Span before the end of the run. Samples sent in it do not count as lost."""


class NodeKeys(TypedDict, total=False):
    """Of `Node`."""

    cores: int
    """Processor cores for its stages (virtual time only)."""
    scheduling: Any
    """How stages share the cores (virtual time only)."""
    clock: Any
    """Error of its clock, in virtual time and on a real clock; absent: no error."""
    interrupts: Any
    """Interrupt coalescing of its network card (virtual time only), known as rx-frames and rx-usecs of
    `ethtool -C`. The kernel receives datagrams at interrupts only. Background traffic ends inside the
    network and causes no interrupt; absent: each arrival causes an interrupt.
    """
    at: Any
    """Router at the other end of its access link."""
    link: Any
    """Settings of the access link, which has the name `NODE-ROUTER`; absent: no limit of rate and no
    delay.
    """


class QueueKeys(TypedDict, total=False):
    """Of `Queue`."""

    classes: Any
    """priority, gates: 2 to 64 classes, the most urgent first. Each is a list of code points (numbers
    or names such as "EF"). The last class takes all other packets.
    """
    gates: Any
    """gates: windows in their order, each as a span and the numbers (from 0) of the classes with open
    gates. The list begins at 0 s and repeats.
    """
    quantum: Any
    """round-robin, fq-codel: bytes that a flow may send in a turn."""
    flow_limits: Any
    """round-robin: largest number of waiting packets of each named flow, such as `kinematic` or, for
    background traffic, `"traffic.cbr"`.
    """
    min: Any
    """red: average queue below which no packet is dropped."""
    max: Any
    """red: average queue at which the drop probability is `max_p`."""
    max_p: Any
    """red: drop probability at `max`."""
    weight: Any
    """red: weight of the moving average (Floyd and Jacobson 1993)."""
    ecn: bool
    """codel, fq-codel: whether ECN-capable packets are marked instead of dropped (RFC 3168)."""
    target: Any
    """codel, fq-codel: acceptable queueing delay (RFC 8289)."""
    interval: Any
    """codel, fq-codel: time for which the delay must exceed `target` before a packet is dropped."""
    flows: Any
    """fq-codel: number of hash buckets (RFC 8290)."""
    limit: Any
    """Largest number of bytes or packets that may wait. The packet being sent does not count."""
    discipline: Any
    """In which order packets leave, and which are dropped: a name from the list below, or code of your
    own.
    """
    params: Any
    """Parameters of code of your own."""


class ScenarioKeys(TypedDict, total=False):
    """Of `Scenario`."""

    name: str
    """Name of the scenario in reports; absent: the name of the file."""
    description: str
    """Purpose of the scenario; absent: none."""
    duration: Any
    """Length of the run."""
    seed: Any
    """Seed of all random streams. Each random object has a stream of its own."""
    phases: Literal["aligned", "random"]
    """When sources begin. `"aligned"`: each source begins at its `start`, so sources of equal periods
    stay in step. Without random objects the run is then the same for every seed. `"random"`: each flow
    and each entry of background traffic begins later, at a random moment of its first period. Each of
    them draws from its own random stream.
    """
    warmup: Any
    """Time at the start of the run that statistics leave out."""
    base: Any
    """Folder from which relative paths start. The value itself is relative to the folder of the file,
    or one of the folders that come with tcpsbed: `"shipped:scenarios"`, `"shipped:examples"`,
    `"shipped:examples/hooks"`; absent: the folder of the file.
    """
    calibration: Any
    """Costs that `tcpsbed calibrate` measured. They apply to nodes, and to stages without a `cost` in
    the scenario. A stage is a piece of work at a component, such as a hook.
    """
    sessions: Any
    """The sessions that share the network."""
    nodes: Any
    """Nodes that differ from the default."""
    components: Any
    """A table `[components]` with the node of each component, such as `srv = "edge"`."""
    flows: Any
    """Flows by name, such as `[flows.kinematic]`."""
    channels: Any
    """Channels: flows that share a transport."""
    hooks: Any
    """Hooks: code on the path of samples."""
    topology: Any
    """Shape of the network beside its links."""
    links: Any
    """Links by name."""
    traffic: Any
    """Background traffic by name."""
    events: Any
    """Changes during the run."""
    measure: Any
    """What is measured."""
    real: Any
    """Settings for a real clock."""
    hosts: Any
    """Computers on which `--world hosts` runs nodes."""


class TopologyKeys(TypedDict, total=False):
    """Of `Topology`."""

    routers: Any
    """Vertices between links that are no nodes."""
    graph: str | None
    """`"usnet9"` (9 switches), `"usnet24"` (24 switches, 43 edges) or a GraphML file. Its vertices are
    routers.
    """
    link: Any
    """Settings of the graph's edges; absent: infinitely fast."""
    routing: Literal["hops", "delay", "load"]
    """How paths are chosen: by the fewest hops, the smallest propagation delay, or the smallest offered
    load.
    """
