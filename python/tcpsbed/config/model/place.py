"""Nodes, the components that stand on them, and the settings of a real run."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, FiniteFloat, StrictBool, StrictInt

from tcpsbed.config.model.code import Robot
from tcpsbed.config.model.link import LinkSettings
from tcpsbed.config.model.span import Span
from tcpsbed.config.model.table import AnyNames, Name, Table
from tcpsbed.config.units import (
    Drift,
    Duration,
    Offset,
    Period,
    PositiveDuration,
    PositiveRate,
    refuse,
    shown,
)

ComponentKind = Literal[
    "tactile-operator",
    "ms-embsys",
    "ms-embsys-app",
    "ms-com",
    "ms-ei",
    "srv",
    "ss-ei",
    "ss-com",
    "ss-embsys",
    "ss-embsys-app",
    "tactile-teleoperator",
    "emu",
    "test-pc",
]
KINDS: tuple[str, ...] = get_args(ComponentKind)
"""The kinds of components."""


def _no_option(text: str) -> str:
    if not text or text.startswith("-"):
        raise refuse(f"found {shown(text)}", "a name that does not begin with -")
    return text


SshName = Annotated[str, AfterValidator(_no_option)]
"""What ssh takes for a name, not for an option of its own."""


class Board(Table):
    """The board that does the work of an embsys; a string names its firmware alone."""

    shorthand: ClassVar[str | None] = "firmware"
    firmware: str | None = None
    """"host", "qemu", or a program or an ARM image of the user's; absent: "host", unless a line is named."""
    line: str | None = None
    """The serial port, or the unix socket, at which a board is already."""
    rate_bps: PositiveRate = Field(1e6, alias="rate")
    """Rate of the line; a byte takes ten bits."""
    watchdog_ns: Duration = Field(50_000_000, alias="watchdog")
    """Silence of the flow that drives it after which it goes to its safe output, whole milliseconds; 0: never."""
    safe: Literal["hold", "zero"] | list[FiniteFloat] | None = None
    """Its outputs then; absent: they hold at an ss-embsys and are 0 at an ms-embsys."""


class Component(Table):
    """A component instance; a string names its node alone."""

    shorthand: ClassVar[str | None] = "node"
    kind: ComponentKind
    """What it is; the component's own name says it if it is one of these."""
    node: Name
    """The node that it stands on."""
    session: str | None = None
    """Its session; absent: every session has one (a robot is shared)."""
    robot: Robot | None = None
    """The robot, at a tactile-teleoperator."""
    board: Board | None = None
    """The board, at an embsys: its firmware does the work, behind a serial line."""
    cost: Span | None = None
    """Time that every sample occupies a core here."""
    delay: Span | None = None
    """Time that every sample takes here without occupying a core."""


class Scheduling(Table):
    """How stages compete for the cores of a node; a string names a kind without settings."""

    shorthand: ClassVar[str | None] = "kind"
    kind: Literal["run-to-completion", "priority", "round-robin"] = "round-robin"
    """First come first served, by priority of the flow, or in turns."""
    round_robin_ns: Period = Field(1_000_000, alias="round_robin")
    """The length of a turn."""


class Clock(Table):
    """The error of a node's clock."""

    offset_ns: Offset = Field(0, alias="offset")
    """Error at the start."""
    drift_ppb: Drift = Field(0, alias="drift")
    """Rate error; positive runs fast."""


class Interrupts(Table):
    """How a network card gathers arrivals before it interrupts: a model, for virtual time."""

    packets: StrictInt = Field(ge=1, le=4096)
    """Datagrams that raise an interrupt at once."""
    after_ns: PositiveDuration = Field(alias="after")
    """Time after which one alone does."""


class Node(Table):
    """A computer."""

    cores: StrictInt = Field(1, ge=1, le=1024)
    """Processor cores that its stages compete for."""
    scheduling: Scheduling = Scheduling(kind="run-to-completion")
    """How they compete (virtual time)."""
    clock: Clock = Clock()
    """Its clock's error."""
    interrupts: Interrupts | None = None
    """How its network card gathers arrivals (virtual time); absent: each interrupts."""
    at: str | None = None
    """The router that an access link joins it to."""
    link: LinkSettings | None = None
    """The access link; absent: infinitely fast and without delay."""


class Host(Table):
    """A computer that `--world hosts` reaches by ssh."""

    address: SshName
    """Where ssh finds it (a name, an address, an alias of its configuration); "localhost" is this computer."""
    user: SshName | None = None
    """Who logs in; absent: as ssh decides."""
    port: StrictInt | None = Field(None, ge=1, le=65535)
    """The port of its ssh server; absent: as ssh decides."""
    role: Literal["nodes", "network"] = "nodes"
    """What runs on it: nodes, or what lies between them."""
    nodes: AnyNames = Field([])
    """The nodes that run on it."""
    data: str | None = None
    """IP address of its sockets for data; absent: `address`, which then is an IP address."""
    python: str = "python3"
    """The Python there in which tcpsbed is installed."""
    options: list[str] = Field([])
    """More options of ssh, such as ["-i", "key"]."""


class Real(Table):
    """Settings of the real driver."""

    waiting: Literal["blocking", "timer", "hybrid"] = "timer"
    """How a loop waits."""
    spin_ns: Duration = Field(50_000, alias="spin")
    """Length of the spin at the end of a hybrid wait."""
    crowded: StrictBool = False
    """Spin though no core is spare."""
    realtime: StrictBool = True
    """Ask for SCHED_FIFO and locked memory."""
    ipv6: StrictBool = False
    """IPv6 in place of IPv4."""
    network: Literal["gates", "namespaces"] = "gates"
    """Nodes on loopback with UDP gates between them, or (root) each in a network namespace with a TUN device."""
    background: Literal["events", "datagrams"] = "events"
    """Background traffic as events of the network, or, where nodes are in namespaces, as datagrams of ends of its own."""
