"""Events of a run, and what is measured."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack

from tcpsbed.scenarios.fields import BeforeValidator, Called, Field
from tcpsbed.scenarios.model.attack import Attack
from tcpsbed.scenarios.model.link import AnyJitter, Limit
from tcpsbed.scenarios.model.table import Names, Table
from tcpsbed.scenarios.units import Duration, Offset, Period, PeriodOrNone, PositiveRate, Share, refuse, shown

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.keys import EventKeys, MeasureKeys


class Event(Table):
    """A change at one time: of a link, the routes, a flow, traffic, a component or a clock; or an attack."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[EventKeys]) -> None: ...

    at_ns: Duration = Field(alias="at")
    """The moment, from the start and before the end, such as "5 s". A run that `--duration` shortens skips
    later events.
    """
    name: str | None = None
    """Name of the event in the report; absent: generated."""
    by: str | None = None
    """Who asked for it during an earlier run, such as `"viewer 2"`: *Save as scenario* of the studio writes it. The
    name ends with it, and `summary.json` has it.
    """
    link: Names | None = None
    """Links to change (`"l1"`: both directions)."""
    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """With `link`: the new rate."""
    delay_ns: Duration | None = Field(None, alias="delay")
    """With `link`: the new propagation delay."""
    loss: Share | None = None
    """With `link`: the new random loss."""
    jitter: AnyJitter | None = None
    """With `link`: the new extra delay per packet, of a built-in model."""
    duplicate: Share | None = None
    """With `link`: the new probability that a packet is delivered twice."""
    queue: Limit | None = None
    """With `link`: the new limit of its queue, from the next packet on: `fq-codel` then drops what is beyond it.
    """
    up: bool | None = None
    """With `link`: `false` takes the link down, `true` brings it back."""
    reroute: bool | None = None
    """`true` computes all routes again, over links that are up then, also by their `outages`. Routes go back over a link
    that is up again with the next `reroute`.
    """
    flow: Names | None = None
    """Flows to start or to stop."""
    traffic: Names | None = None
    """Background traffic to start or to stop."""
    running: bool | None = None
    """With `flow` or `traffic`: `true` starts, `false` stops."""
    component: Names | None = None
    """Components to kill or to restart. A dead component drops all samples, also those inside it. A restarted
    component has new hooks, new playout and a new robot.
    """
    alive: bool | None = None
    """With `component`: `false` kills, `true` restarts."""
    node: Names | None = None
    """Nodes whose clocks step. Timestamps, hooks, playout, clock synchronisation and ages of dropped samples
    use this clock. Timers of transports do not, as in a kernel. [Delays measured by
    transports](#steps-of-clocks) use both clocks.
    """
    step_ns: Offset | None = Field(None, alias="step")
    """With `node`: length of the step, back if it is negative, such as `"-3 s"`."""
    attack: Attack | None = None
    """An [attack](#attacks) that begins now."""


class Echo(Table):
    """Echo commands on one flow, interleaved over points (Polachan 2022)."""

    shorthand: ClassVar[str | None] = "points"
    flow: Annotated[str, Called("name")] | None = None
    """Flow whose samples carry the commands; absent: `kinematic`, else the first forward flow."""
    points: Names = Field(["all"])
    """Echo points such as `"srv.entry"` and `"srv.exit"`. `"tactile-teleoperator.held"` answers when the robot
    has reached its target. `"all"` means all points on the path of the flow.
    """
    period_ns: PeriodOrNone = Field(10_000_000, alias="period")
    """Time between commands. With `"0 ms"` every sample carries one."""
    drawn: bool = False
    """Whether each command is sent at a random time within its period. The commands then meet every phase of
    periodic traffic. `tcpsbed latency` does so.
    """
    start_ns: Duration = Field(0, alias="start")
    """Time of the first command."""
    count: int | None = Field(None, ge=1)
    """Number of commands; absent: as many as fit into the run."""
    session: Annotated[str, Called("name")] | None = None
    """Session of the flow; absent: every session."""


class Sync(Table):
    """Clock synchronisation of all nodes with one; a string is its period alone."""

    shorthand: ClassVar[str | None] = "period"
    period_ns: Period = Field(125_000_000, alias="period")
    """Time between exchanges with a node."""
    reference: Annotated[str, Called("node")] | None = None
    """Node with the reference clock; absent: the node of the test-pc, else the first."""


def _echoes(value: Any) -> Any:
    if not isinstance(value, str | dict | list):
        allowed = 'a table such as { points = "all", period = "10 ms" }, or points such as "srv.entry"'
        raise refuse(f"found {shown(value)}", allowed)
    return [value] if isinstance(value, str | dict) else value


def _pcapng(value: Any) -> Any:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class Measure(Table):
    """What to measure."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[MeasureKeys]) -> None: ...

    records: Literal["samples", "packets", "events"] = "samples"
    """What `records.bin` holds ([records](glossary.md#records)). `"samples"`: every sample at every point.
    `"packets"`: also every packet and each of its hops. `"events"`: also every call of a stage.
    """
    queues_ns: Period | None = Field(None, alias="queues")
    """Period at which queue lengths are sampled; absent: never."""
    snr: bool = False
    """Whether values of flows are compared between source and sink. The result is
    [`snr_db`](summary.md#flows-by-name).
    """
    echo: Annotated[
        list[Echo],
        BeforeValidator(_echoes, json_schema_input_type=Echo | list[Echo]),
        Called("table or list of tables"),
    ] = Field([])
    """Echo commands; absent: none."""
    sync: Sync | None = None
    """Clock synchronisation of the nodes."""
    signals: Names = Field([])
    """Points at which values of samples are recorded, such as `"srv.exit"`. `"tactile-teleoperator.sense"` is
    what a robot senses; absent: none.
    """
    metrics: Names = Field([])
    """[Metrics of your own](summary.md#metrics-of-your-own), such as `"./mine.py:Late"`; absent: none."""
    pcapng: Annotated[
        Literal["auto", "on", "off"],
        BeforeValidator(_pcapng, json_schema_input_type=bool | Literal["auto", "on", "off"]),
    ] = "auto"
    """Whether packets are written for Wireshark. `"auto"` writes them in runs up to 60 s. `true` and `false`
    mean `"on"` and `"off"`.
    """
    grace_ns: Duration = Field(1_000_000_000, alias="grace")
    """Span before the end of the run. Samples sent in it do not count as lost."""
