"""Events of a run, and what is measured."""

from typing import Annotated, Any, ClassVar, Literal

from tcpsbed.scenarios.fields import BeforeValidator, Field
from tcpsbed.scenarios.model.table import Names, Table
from tcpsbed.scenarios.units import Duration, Offset, Period, PeriodOrNone, PositiveRate, Share


class Event(Table):
    """A change at one time: of a link, the routes, a flow, traffic, a component or a clock."""

    at_ns: Duration = Field(alias="at")
    """A span of time from the start, such as "5 s"."""
    name: str | None = None
    """Its name in the report."""
    by: str | None = None
    """Who asked for it while a run went on, such as "viewer 2"; the name ends with it."""
    link: Names | None = None
    """Links to change ("l1": both directions)."""
    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """link: its new rate."""
    delay_ns: Duration | None = Field(None, alias="delay")
    """link: its new propagation."""
    loss: Share | None = None
    """link: its new independent loss."""
    up: bool | None = None
    """link: down or up again."""
    reroute: bool | None = None
    """Recompute all routes, over links that are up."""
    flow: Names | None = None
    """Flows to stop or start."""
    traffic: Names | None = None
    """Background traffic to stop or start."""
    running: bool | None = None
    """flow, traffic: whether it runs from now on."""
    component: Names | None = None
    """Components to kill or restart."""
    alive: bool | None = None
    """component: whether it lives from now on; a dead one drops all samples."""
    node: Names | None = None
    """Nodes whose clocks step forward or back."""
    step_ns: Offset | None = Field(None, alias="step")
    """node: by how much, such as "-3 s"."""


class Echo(Table):
    """Echo commands on one flow, interleaved over points (Polachan 2022)."""

    shorthand: ClassVar[str | None] = "points"
    flow: str | None = None
    """The flow whose samples carry the commands; absent: kinematic, else the first forward flow."""
    points: Names = Field(["all"])
    """Points such as "srv.entry", "srv.exit", "arm.held", or "all" on the flow's path."""
    period_ns: PeriodOrNone = Field(10_000_000, alias="period")
    """The time between commands; "0 ms": every sample."""
    drawn: bool = False
    """Sends each command at a random time within its period, to sample every phase of periodic traffic."""
    start_ns: Duration = Field(0, alias="start")
    """The first command."""
    count: int | None = Field(None, ge=1)
    """Number of commands; absent: to the end."""
    session: str | None = None
    """The session of the flow; absent: every session."""


class Sync(Table):
    """Clock synchronisation of all nodes with one; a string is its period alone."""

    shorthand: ClassVar[str | None] = "period"
    period_ns: Period = Field(125_000_000, alias="period")
    """The time between exchanges with a node."""
    reference: str | None = None
    """The reference node; absent: that of the test-pc, else the first."""


def _echoes(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


def _pcapng(value: Any) -> Any:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class Measure(Table):
    """What to measure."""

    records: Literal["samples", "packets", "events"] = "samples"
    """How much is recorded; each level includes the previous ones."""
    queues_ns: Period | None = Field(None, alias="queues")
    """How often queue lengths are sampled; absent: never."""
    snr: bool = False
    """Whether values are recorded and compared at source and sink."""
    echo: Annotated[list[Echo], BeforeValidator(_echoes, json_schema_input_type=Echo | list[Echo])] = Field(
        []
    )
    """Echo commands."""
    sync: Sync | None = None
    """Clock synchronisation of the nodes."""
    signals: Names = Field([])
    """Points at which sample values are recorded: "srv.exit", or "arm.sense" for a robot's sense."""
    metrics: Names = Field([])
    """Metrics of your own, such as "./mine.py:Late"."""
    pcapng: Annotated[
        Literal["auto", "on", "off"],
        BeforeValidator(_pcapng, json_schema_input_type=bool | Literal["auto", "on", "off"]),
    ] = "auto"
    """Whether packets are written for Wireshark; auto: in runs up to 60 s."""
    grace_ns: Duration = Field(1_000_000_000, alias="grace")
    """Samples sent this close to the end do not count as lost."""
