"""Links: rate, propagation, queue and impairments."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from tcpsbed import door
from tcpsbed.nearest import meant
from tcpsbed.scenarios.fields import BeforeValidator, Discriminator, Field, Refusal, Tag
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
]
"""Room in a queue: `"15000 B"` or `"20 packets"`."""

if TYPE_CHECKING:
    _Queue = Chosen
    _Discipline = str
else:
    _Queue, _Discipline = keys("queue"), name_of("queue")


class Queue(_Queue):
    """The queue before a link; a string is its limit alone."""

    shorthand: ClassVar[str | None] = "limit"
    refuses_numbers: ClassVar[bool] = True
    limit: Limit | None = None
    """Most bytes or packets that may wait, "15000 B" or "20 packets"; the packet being sent does not count."""
    discipline: _Discipline = "drop-tail"
    """The order of packets, and the dropped ones."""
    params: Parameters = Field({})
    """Parameters of a discipline that is code of your own."""
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
    Loss = Annotated[_LOSS, BeforeValidator(_loss, json_schema_input_type=str | float | _LOSS)]
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
    """Its distribution, or a delay model of your own."""
    reorder: bool = False
    """Whether packets may overtake; if not, the mean delay grows."""


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
        f"found {shown(value)}", '{ kind = "uniform", low = "0 ms", high = "2 ms" } or another distribution'
    )


class Slots(Table):
    """Repeating time windows in which packets may start."""

    cycle_ns: PositiveDuration = Field(alias="cycle")
    """Length of the cycle, which begins at 0 s."""
    open: list[tuple[Duration, Duration]] = Field(min_length=1)
    """From and to within the cycle, in order."""


class LinkSettings(Table):
    """Settings of a link; absent keys have their default or that of the links it inherits from."""

    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Its rate; absent: infinitely fast."""
    delay_ns: Duration | None = Field(None, alias="delay")
    """Its propagation; absent: none."""
    queue: Queue | None = None
    """The queue before it; absent: without limit."""
    loss: Loss | None = None
    """Which packets are lost."""
    jitter: (
        Annotated[Jitter, BeforeValidator(_jitter, json_schema_input_type=Jitter | dict[str, Any])] | None
    ) = None
    """Extra delay per packet."""
    duplicate: Share | None = None
    """Probability that a packet is delivered twice."""
    corrupt: Share | None = None
    """Probability that a packet is damaged; it continues, and its receiver drops it."""
    outages: list[tuple[Duration, Duration]] | None = None
    """Times, from and to, during which nothing passes."""
    slots: Slots | None = None
    """Time windows of a cycle in which packets may start; absent: at any time."""
    trace: str | None = None
    """File of delivery opportunities (mahimahi: a line is the millisecond of one 1500-byte delivery)."""
    duplex: Literal["full", "half", "simplex"] | None = None
    """Two links, two that share a medium, or only one from `from` to `to`; full if absent."""
    medium: str | None = None
    """The half-duplex medium (hub) that this link shares with all links that name it."""
    radio: Radio | None = None
    """Radio access in place of a wire: `from` is the mobile side, `to` the side of the base station."""
    dscp: Dscp | None = None
    """Only packets with this code point pass; absent: all."""


class Link(LinkSettings):
    """A link between two nodes or routers, or other settings for an edge of the graph."""

    from_: str | None = Field(None, alias="from")
    """Where it begins."""
    to: str | None = None
    """Where it ends."""
    forward: LinkSettings | None = None
    """Other settings in the direction from `from` to `to`."""
    backward: LinkSettings | None = None
    """Other settings in the direction from `to` to `from`."""


class Topology(Table):
    """The shape of the network beside its links."""

    routers: list[str] = Field([])
    """Routers and switches: vertices between links that are no nodes."""
    graph: str | None = None
    """A graph that ships with tcpsbed ("usnet9", "usnet24") or a GraphML file: its vertices are routers."""
    link: LinkSettings = Field(default_factory=LinkSettings)
    """Settings of the graph's edges."""
    routing: Literal["hops", "delay", "load"] = "hops"
    """How paths are chosen: fewest hops, smallest delay, smallest offered load."""
