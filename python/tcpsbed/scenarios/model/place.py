"""Nodes, their components, and the settings of a real run."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Unpack

from tcpsbed.scenarios.fields import AfterValidator, Called, Field, FiniteFloat
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

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.keys import NodeKeys

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
KINDS = {
    "tactile-operator": "the person, or the recording in place of one, that sends motion and receives force",
    "ms-embsys": "the board on the operator's side, which captures the hand and drives what it feels",
    "ms-embsys-app": "one of several boards on the operator's side",
    "ms-com": "what connects the operator's board to the network",
    "ms-ei": "predicts feedback close to the operator",
    "srv": "a server between both sides",
    "ss-ei": "predicts commands close to the robot",
    "ss-com": "what connects the robot's board to the network",
    "ss-embsys": "the board on the robot's side, which drives actuators and senses forces",
    "ss-embsys-app": "one of several boards on the robot's side",
    "tactile-teleoperator": "the robot or other device that obeys the motion and senses force",
    "emu": "stands for a network simulator",
    "test-pc": "receives the answers to echo commands",
}
"""The built-in kinds of components, and what each is."""
if TYPE_CHECKING:
    ComponentKind = str
else:
    ComponentKind = Annotated[name_of("component", tuple(KINDS)), Called("kind")]


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
    """`"host"`: the firmware of the project as a process of this machine. `"qemu"`: the same firmware on a
    Cortex-M3 in QEMU. A file: your own program, which gets the name of a terminal as its argument, or an ARM
    image for the machine lm3s6965evb of QEMU; absent: `"host"` unless there is a `line`.
    """
    line: str | None = None
    """Serial port or unix socket of a board that is already connected."""
    rate_bps: PositiveRate = Field(1e6, alias="rate")
    """Bit rate of the line. A byte takes ten bits."""
    watchdog_ns: Duration = Field(50_000_000, alias="watchdog")
    """Time without samples of the driving flow after which the board switches to its safe outputs, in whole
    milliseconds. With `"0 ms"` it never does.
    """
    safe: Literal["hold", "zero"] | list[FiniteFloat] | None = None
    """Safe outputs of the board. Numbers missing in a list are 0; absent: `"hold"` (ss-embsys), `"zero"`
    (ms-embsys).
    """


class Component(Table):
    """A component instance; a string names its node alone."""

    shorthand: ClassVar[str | None] = "node"
    kind: ComponentKind
    """A built-in kind, or [a kind of your own](own-parts.md#a-kind-of-component) such as `"./mine.py:Mine"`;
    absent: the name of the entry.
    """
    node: Name
    """The node on which the component runs, such as "edge"."""
    session: Annotated[str, Called("name")] | None = None
    """The session of the component. Without this key every session has an instance of it; absent: all."""
    robot: Robot | None = None
    """For a tactile-teleoperator: its robot."""
    board: Board | None = None
    """For an embsys: the board whose firmware does its work."""
    params: Parameters = Field({})
    """For a kind of your own: its parameters."""
    cost: Span | None = None
    """Time that every sample occupies a core. With a board it is the time that the firmware holds the sample,
    in whole microseconds.
    """
    delay: Span | None = None
    """Time that every sample spends here without occupying a core."""


class Scheduling(Table):
    """How stages compete for the cores of a node; a string names a kind without settings."""

    shorthand: ClassVar[str | None] = "kind"
    kind: Literal["run-to-completion", "priority", "round-robin"] = "round-robin"
    """`"priority"` follows the `priority` of flows. `"round-robin"` gives turns; absent: `"round-robin"`."""
    round_robin_ns: Period = Field(1_000_000, alias="round_robin")
    """Length of a turn."""


class Clock(Table):
    """The error of a node's clock."""

    offset_ns: Offset = Field(0, alias="offset")
    """Error at the start. May be negative."""
    drift_ppb: Drift = Field(0, alias="drift")
    """Rate of the error, at most 100000 ppm. May be negative. With a positive drift the clock runs fast."""


class Interrupts(Table):
    """Interrupt coalescing of a network card, modelled in virtual time."""

    packets: int = Field(ge=1, le=4096)
    """Datagrams that raise an interrupt at once."""
    after_ns: PositiveDuration = Field(alias="after")
    """Time after the first datagram that raises one."""


class Node(Table):
    """A computer."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[NodeKeys]) -> None: ...

    cores: int = Field(1, ge=1, le=1024)
    """Processor cores for its stages (virtual time only)."""
    scheduling: Scheduling = Scheduling(kind="run-to-completion")
    """How stages share the cores (virtual time only)."""
    clock: Clock = Field(default_factory=Clock)
    """Error of its clock, in virtual time and on a real clock; absent: no error."""
    interrupts: Interrupts | None = None
    """Interrupt coalescing of its network card (virtual time only), known as rx-frames and rx-usecs of `ethtool -C`.
    The kernel receives datagrams at interrupts only. Background traffic ends inside the network and causes no interrupt;
    absent: each arrival causes an interrupt.
    """
    at: Annotated[str, Called("router")] | None = None
    """Router at the other end of its access link."""
    link: LinkSettings | None = None
    """Settings of the access link, which has the name `NODE-ROUTER`; absent: no limit of rate and no delay."""


class Host(Table):
    """A computer that `--world hosts` reaches by ssh."""

    address: SshName
    """Address for ssh. "localhost" is this computer."""
    user: SshName | None = None
    """User name; absent: as ssh decides."""
    port: int | None = Field(None, ge=1, le=65535)
    """Port of its ssh server; absent: as ssh decides."""
    role: Literal["nodes", "network"] = "nodes"
    """What runs on it: nodes, or the network between them."""
    nodes: Annotated[AnyNames, Called("list of nodes")] = Field([])
    """Nodes that run on it; absent: none."""
    data: str | None = None
    """IP address of its data sockets; absent: the `address`."""
    python: str = "python3"
    """The Python on that computer in which tcpsbed is installed."""
    options: Annotated[list[str], Called("list of texts")] = Field([])
    """Further options of ssh, such as `["-i", "key"]`; absent: none."""


class Real(Table):
    """Settings of the real driver."""

    waiting: Literal["blocking", "timer", "hybrid"] = "timer"
    """How a loop waits for sockets and deadlines."""
    spin_ns: Duration = Field(50_000, alias="spin")
    """How long a `"hybrid"` wait spins at its end."""
    crowded: bool = False
    """Whether a loop may spin although no core is spare. By default such a run is refused."""
    realtime: bool = True
    """Whether the run asks for SCHED_FIFO and locked memory."""
    ipv6: bool = False
    """Whether IPv6 takes the place of IPv4."""
    network: Literal["gates", "namespaces"] = "gates"
    """`"gates"`: nodes are on loopback, with UDP ports of the emulator between them. This is unrelated to the
    queue discipline `gates`. `"namespaces"` (needs root or a user namespace): each node is in a network namespace with
    a TUN device ([worlds](worlds.md)).
    """
    background: Literal["events", "datagrams"] = "events"
    """How [background traffic](#background-traffic) is carried. `"events"`: as events of the network.
    `"datagrams"`: as datagrams of [containers or namespaces of its own](containers.md#background-traffic).
    """
    insecure: bool = False
    """Whether datagrams between [hosts](hosts.md) may go without security: what `--insecure` of `tcpsbed run` sets."""
