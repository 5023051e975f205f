"""Links: rate, propagation, queue and impairments."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack

from tcpsbed import door
from tcpsbed.nearest import meant
from tcpsbed.scenarios.fields import BeforeValidator, Called, Discriminator, Field, Refusal, Tag
from tcpsbed.scenarios.model.entries import (
    Chosen,
    OwnCode,
    choices,
    entries,
    is_code,
    keys,
    kind_of,
    kinds,
    name_of,
    with_own,
)
from tcpsbed.scenarios.model.radio import Radio
from tcpsbed.scenarios.model.span import FILES, Span
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import (
    PACKETS,
    Dscp,
    Duration,
    Parameters,
    PositiveDuration,
    PositiveRate,
    Share,
    dimension_of,
    packets,
    plain_digits,
    positive_size_bytes,
    refuse,
    shown,
)

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.keys import LinkKeys, QueueKeys, TopologyKeys


def _limit(value: Any) -> tuple[str, int]:
    if dimension_of(value) is PACKETS:
        return "limit_packets", packets(value)
    try:
        return "limit_bytes", positive_size_bytes(value)
    except Refusal as error:
        allowed = '"15000 B", "20 packets" or a table'
        if str(value).isdecimal() and int(value) > 0:
            allowed = f'"{value} packets", "{value} B" or a table'
        hint = meant(str(value).lstrip("0123456789. "), PACKETS.units)
        raise refuse(error.context["found"] + hint, plain_digits(value) or allowed) from None


Limit = Annotated[
    tuple[str, int],
    BeforeValidator(_limit, json_schema_input_type=str),
    Called("size or packets"),
]
"""Room in a queue: `"15000 B"` or `"20 packets"`."""

if TYPE_CHECKING:
    _Queue = Chosen
    _Discipline = str
else:
    _Queue, _Discipline = keys("queue"), Annotated[name_of("queue"), Called("name")]


class Queue(_Queue):
    """The queue before a link; a string is its limit alone."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[QueueKeys]) -> None: ...

    shorthand: ClassVar[str | None] = "limit"
    refuses_numbers: ClassVar[bool] = True
    limit: Limit | None = None
    """Largest number of bytes or packets that may wait. The packet being sent does not count."""
    discipline: _Discipline = "drop-tail"
    """In which order packets leave, and which are dropped: a name from the list below, or [code of your
    own](#queue-disciplines-and-background-sources-of-your-own).
    """
    params: Parameters = Field({})
    """Parameters of code of your own."""
    by: ClassVar[str] = "discipline"

    @property
    def plan(self) -> dict[str, Any]:
        """The queue as the plan has it."""
        return {"discipline": self._plan} | ({} if self.limit is None else {self.limit[0]: self.limit[1]})


def _loss(value: Any) -> Any:
    if isinstance(value, OwnCode) or (isinstance(value, dict) and "kind" in value):
        return value
    if isinstance(value, str) and (is_code(value) or value[:1].isalpha()):
        return {"kind": value}
    if isinstance(value, dict):
        raise refuse(
            f"found {shown(value)} without a kind",
            '"1 %" or { kind = "gilbert-elliott", p = "1 %", r = "10 %" }',
        )
    return {"kind": "random", "p": value}


if TYPE_CHECKING:
    Loss = Chosen | OwnCode
else:
    _LOSS = with_own("loss", kinds("loss"), OwnCode)
    Loss = Annotated[
        _LOSS, BeforeValidator(_loss, json_schema_input_type=str | float | _LOSS), Called("loss")
    ]
"""Loss: a share, the name of code of your own, or a table with a kind."""


def _delay(value: Any) -> Any:
    """Its kind may be the name that a package gave to code."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind in entries("delay") or is_code(kind):
        return value
    if not is_code(named := door.named("delay", kind)):
        raise refuse(f'found the kind "{kind}"', choices("delay", list(entries("delay")), kind))
    return value | {"kind": named}


_WHICH = Discriminator(lambda value: "own" if is_code(kind_of(value)) else "built in")
_Delay = Annotated[
    Annotated[Span, Tag("built in")] | Annotated[OwnCode, Tag("own")], _WHICH, BeforeValidator(_delay)
]


class Jitter(Table):
    """Extra delay per packet."""

    delay: _Delay
    """Distribution of the delay, or a delay model of your own."""
    reorder: bool = False
    """Whether packets may overtake each other. If not, a packet waits for the previous one, so the mean delay
    grows.
    """


def _jitter(value: Any) -> Any:
    if isinstance(value, str) and (is_code(value) or is_code(door.named("delay", value))):
        return {"delay": {"kind": value}}
    if isinstance(value, dict) and ({"kind"} | FILES.keys()) & value.keys():
        return {"delay": {k: v for k, v in value.items() if k != "reorder"}} | (
            {"reorder": value["reorder"]} if "reorder" in value else {}
        )
    if isinstance(value, dict) and "delay" in value:
        return value
    raise refuse(
        f"found {shown(value)}",
        f'{{ kind = "uniform", low = "0 ms", high = "2 ms" }} or another table with a kind: {", ".join(kinds("delay"))}',
    )


AnyJitter = Annotated[Jitter, BeforeValidator(_jitter, json_schema_input_type=Jitter | dict[str, Any])]


class Slots(Table):
    """Repeating time windows in which packets may start."""

    cycle_ns: PositiveDuration = Field(alias="cycle")
    """Length of a round. The first round begins at 0 s."""
    open: Annotated[list[tuple[Duration, Duration]], Called("list of pairs of times")] = Field(min_length=1)
    """Windows of a round, each from and to, in order."""


class LinkSettings(Table):
    """Settings of a link; absent keys have their default or that of the links it inherits from."""

    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Bit rate on the wire; absent: infinitely fast."""
    delay_ns: Duration | None = Field(None, alias="delay")
    """Propagation delay."""
    queue: Queue | None = None
    """Packets that wait for the link; absent: without limit."""
    loss: Loss | None = None
    """Random loss."""
    jitter: AnyJitter | None = None
    """Extra delay of each packet."""
    duplicate: Share | None = None
    """Probability that a packet is delivered twice; absent: 0."""
    corrupt: Share | None = None
    """Probability that a packet is damaged. The packet continues, and its receiver drops it because of the
    wrong checksum; absent: 0.
    """
    outages: Annotated[list[tuple[Duration, Duration]], Called("list of pairs of times")] | None = None
    """Times, from and to, during which nothing passes. Routes stay as without them until an event with `reroute`."""
    slots: Slots | None = None
    """Repeating time windows in which packets may start, as on a link that several stations use in turns. A
    packet starts if all of it fits into the window. A packet that fits into none is dropped as `managed`.
    """
    trace: Annotated[str, Called("file")] | None = None
    """Opportunities to deliver a packet, in place of a rate (mahimahi). A text file with one whole number per
    line: the millisecond of one opportunity to deliver 1500 B. Several opportunities in one millisecond are
    several lines. The trace repeats after its last line.
    """
    duplex: Literal["full", "half", "simplex"] | None = None
    """`"full"`: both directions at once. `"half"`: both directions share a medium. `"simplex"`: only the
    forward direction; absent: `"full"`.
    """
    medium: Annotated[str, Called("name")] | None = None
    """A half-duplex medium (hub). All links with this name share it."""
    radio: Radio | None = None
    """Radio access in place of a wire. `from` is the mobile side."""
    dscp: Dscp | None = None
    """Only packets with this code point pass. If two routes are equally good, these packets take this link
    rather than a link for all packets.
    """


class Link(LinkSettings):
    """A link between two nodes or routers, or other settings for an edge of the graph."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[LinkKeys]) -> None: ...

    from_: Annotated[str, Called("node or router")] | None = Field(None, alias="from")
    """Node or router where the link begins. An edge of a graph has its ends already; absent: required."""
    to: Annotated[str, Called("node or router")] | None = None
    """Node or router where it ends; absent: required."""
    forward: LinkSettings | None = None
    """Settings that differ in the direction from `from` to `to`."""
    backward: LinkSettings | None = None
    """Settings that differ in the direction from `to` to `from`."""


class Topology(Table):
    """The shape of the network beside its links."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[TopologyKeys]) -> None: ...

    routers: list[str] = Field([])
    """Vertices between links that are no nodes."""
    graph: str | None = None
    """`"usnet9"` (9 switches), `"usnet24"` (24 switches, 43 edges) or a GraphML file. Its vertices are routers."""
    link: LinkSettings = Field(default_factory=LinkSettings)
    """Settings of the graph's edges; absent: infinitely fast."""
    routing: Literal["hops", "delay", "load"] = "hops"
    """How paths are chosen: by the fewest hops, the smallest propagation delay, or the smallest offered load."""
