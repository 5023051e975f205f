"""Nodes, their components, and the settings of a real run."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from tcpsbed.scenarios.fields import AfterValidator, Field, FiniteFloat
from tcpsbed.scenarios.model.code import Robot
from tcpsbed.scenarios.model.entries import name_of
from tcpsbed.scenarios.model.link import LinkSettings
from tcpsbed.scenarios.model.span import Span
from tcpsbed.scenarios.model.table import AnyNames, Name, Table
from tcpsbed.scenarios.units import (
    Drift,
    Duration,
    Offset,
    Parameters,
    Period,
    PositiveDuration,
    PositiveRate,
    refuse,
    shown,
)

_MASTER = ("ms-embsys", "ms-embsys-app")
_SLAVE = ("ss-embsys", "ss-embsys-app")
ORDER: dict[str, list[tuple[str, ...]]] = {
    "forward": [
        ("tactile-operator",),
        _MASTER,
        ("ms-com",),
        ("srv",),
        ("ss-ei",),
        ("ss-com",),
        _SLAVE,
        ("tactile-teleoperator",),
    ],
    "backward": [
        ("tactile-teleoperator",),
        _SLAVE,
        ("ss-com",),
        ("srv",),
        ("ms-ei",),
        ("ms-com",),
        _MASTER,
        ("tactile-operator",),
    ],
}
"""The kinds of components that a flow passes, by its direction."""
KINDS = (
    "tactile-operator", *_MASTER, "ms-com", "ms-ei", "srv", "ss-ei", "ss-com", *_SLAVE,
    "tactile-teleoperator", "emu", "test-pc",
)  # fmt: skip
"""The built-in kinds of components."""
if TYPE_CHECKING:
    ComponentKind = str
else:
    ComponentKind = name_of("component", KINDS)


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
    """"host", "qemu", or your program or ARM image; absent: "host", unless a line is named."""
    line: str | None = None
    """The serial port or unix socket of a board that is already connected."""
    rate_bps: PositiveRate = Field(1e6, alias="rate")
    """Rate of the line; a byte takes ten bits."""
    watchdog_ns: Duration = Field(50_000_000, alias="watchdog")
    """Silence of the driving flow after which it switches to its safe outputs, in whole milliseconds; 0: never."""
    safe: Literal["hold", "zero"] | list[FiniteFloat] | None = None
    """Its safe outputs; absent: hold at an ss-embsys, 0 at an ms-embsys."""


class Component(Table):
    """A component instance; a string names its node alone."""

    shorthand: ClassVar[str | None] = "node"
    kind: ComponentKind
    """A built-in kind such as "srv", or code such as "./mine.py:Mine"; absent: the entry's name."""
    node: Name
    """The node that it runs on, such as "edge"."""
    session: str | None = None
    """Its session; absent: every session has one (a robot is shared)."""
    robot: Robot | None = None
    """The robot of a tactile-teleoperator."""
    board: Board | None = None
    """The board of an embsys, whose firmware does the work behind a serial line."""
    params: Parameters = Field({})
    """Parameters of a kind of your own; quantities arrive in SI with the unit in their name."""
    cost: Span | None = None
    """Core time of every sample."""
    delay: Span | None = None
    """Time of every sample without occupying a core."""


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
    """Interrupt coalescing of a network card, modelled in virtual time."""

    packets: int = Field(ge=1, le=4096)
    """Datagrams that raise an interrupt at once."""
    after_ns: PositiveDuration = Field(alias="after")
    """Time after the first datagram that raises one."""


class Node(Table):
    """A computer."""

    cores: int = Field(1, ge=1, le=1024)
    """Processor cores for its stages."""
    scheduling: Scheduling = Scheduling(kind="run-to-completion")
    """How stages share the cores (virtual time)."""
    clock: Clock = Field(default_factory=Clock)
    """Error of its clock."""
    interrupts: Interrupts | None = None
    """Interrupt coalescing of its network card (virtual time); absent: each arrival interrupts."""
    at: str | None = None
    """The router at the other end of its access link."""
    link: LinkSettings | None = None
    """The access link; absent: infinitely fast and without delay."""


class Host(Table):
    """A computer that `--world hosts` reaches by ssh."""

    address: SshName
    """Address for ssh (a name, an address, an alias of its configuration); "localhost" is this computer."""
    user: SshName | None = None
    """User name; absent: as ssh decides."""
    port: int | None = Field(None, ge=1, le=65535)
    """The port of its ssh server; absent: as ssh decides."""
    role: Literal["nodes", "network"] = "nodes"
    """What runs on it: nodes, or the network between them."""
    nodes: AnyNames = Field([])
    """The nodes that run on it."""
    data: str | None = None
    """IP address of its data sockets; absent: `address`, which then is an IP address."""
    python: str = "python3"
    """Its Python with tcpsbed installed."""
    options: list[str] = Field([])
    """More options of ssh, such as ["-i", "key"]."""


class Real(Table):
    """Settings of the real driver."""

    waiting: Literal["blocking", "timer", "hybrid"] = "timer"
    """How a loop waits."""
    spin_ns: Duration = Field(50_000, alias="spin")
    """Length of the spin at the end of a hybrid wait."""
    crowded: bool = False
    """Spin even without a spare core."""
    realtime: bool = True
    """Ask for SCHED_FIFO and locked memory."""
    ipv6: bool = False
    """IPv6 in place of IPv4."""
    network: Literal["gates", "namespaces"] = "gates"
    """Nodes on loopback and UDP ports of the emulator, or (root) each node in a network namespace with a TUN device."""
    background: Literal["events", "datagrams"] = "events"
    """Background traffic as events of the network, or, where nodes are in namespaces, as datagrams of ends of its own."""
