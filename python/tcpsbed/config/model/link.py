"""Links: rate, propagation, queue, and everything that goes wrong on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from tcpsbed.config.model.entries import Chosen, keys, kinds, name_of, one_of
from tcpsbed.config.model.radio import Radio
from tcpsbed.config.model.span import Span
from tcpsbed.config.model.table import Table
from tcpsbed.config.units import (
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
    except PydanticCustomError as error:
        allowed = '"15000 B", "20 packets" or a table'
        if type(value) is int and value > 0:
            allowed = f'"{value} packets", "{value} B" or a table'
        raise refuse((error.context or {})["found"], plain_digits(value) or allowed) from None


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
    """The queue in front of a link; a string is its limit alone."""

    shorthand: ClassVar[str | None] = "limit"
    refuses_numbers: ClassVar[bool] = True
    limit: Limit | None = None
    """Most that may wait, "15000 B" or "20 packets"; the packet in service does not count."""
    discipline: _Discipline = "drop-tail"
    """Who goes first and who is dropped."""
    params: Parameters = Field({})
    """Parameters of a discipline that is code of your own."""
    by: ClassVar[str] = "discipline"

    @property
    def plan(self) -> dict[str, Any]:
        """The queue as the plan has it."""
        return {"discipline": self._plan} | ({} if self.limit is None else {self.limit[0]: self.limit[1]})


def _refuse(key: str, found: str, allowed: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{key}", {"key": key, "found": found, "allowed": allowed})


def _loss(value: Any) -> Any:
    if isinstance(value, dict) and "kind" in value:
        return value
    if isinstance(value, dict):
        raise refuse(
            f"found {shown(value)} without a kind", '"1 %" or { kind = "gilbert-elliott", p = …, r = … }'
        )
    return {"kind": "random", "p": value}


if TYPE_CHECKING:
    Loss = Chosen
else:
    _LOSS = one_of(kinds("loss").values())
    Loss = Annotated[
        _LOSS,
        Discriminator("kind"),
        BeforeValidator(_loss, json_schema_input_type=str | float | _LOSS),
    ]
"""Random loss: a share, or a table."""


class Jitter(Table):
    """Extra delay per packet."""

    delay: Span
    """Its distribution."""
    reorder: StrictBool = False
    """Whether packets may overtake; if not, the mean delay grows."""


def _jitter(value: Any) -> Any:
    if isinstance(value, dict) and ({"kind", "trace", "histogram"} & value.keys()):
        return {"delay": {k: v for k, v in value.items() if k != "reorder"}} | (
            {"reorder": value["reorder"]} if "reorder" in value else {}
        )
    if isinstance(value, dict) and "delay" in value:
        return value
    raise refuse(
        f"found {shown(value)}", '{ kind = "uniform", low = "0 ms", high = "2 ms" } or another distribution'
    )


class Slots(Table):
    """Windows that repeat, in which packets may start."""

    cycle_ns: PositiveDuration = Field(alias="cycle")
    """Length of the cycle, which begins at 0 s."""
    open: list[tuple[Duration, Duration]] = Field(min_length=1)
    """From and to within the cycle, in order."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        last = 0
        for start, end in self.open:
            if start < last or end <= start or end > self.cycle_ns:
                allowed = '[["0 ms", "0.5 ms"]]: from, to, in order and within the cycle'
                raise _refuse("open", "found windows out of order or beyond the cycle", allowed)
            last = end
        return self


class LinkSettings(Table):
    """What a link is like; absent keys have their default or that of the links it inherits from."""

    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Its rate; absent: infinitely fast."""
    delay_ns: Duration | None = Field(None, alias="delay")
    """Its propagation; absent: none."""
    queue: Queue | None = None
    """The queue in front of it; absent: without limit."""
    loss: Loss | None = None
    """Random loss."""
    jitter: (
        Annotated[Jitter, BeforeValidator(_jitter, json_schema_input_type=Jitter | dict[str, Any])] | None
    ) = None
    """Extra delay per packet."""
    duplicate: Share | None = None
    """Probability that a packet is delivered twice."""
    corrupt: Share | None = None
    """Probability that a packet is damaged: it travels on, and its receiver drops it."""
    outages: list[tuple[Duration, Duration]] | None = None
    """Spans, from and to, during which nothing passes."""
    slots: Slots | None = None
    """Windows of a cycle in which packets may start; absent: at any time."""
    trace: str | None = None
    """File of delivery opportunities (mahimahi: a line is the millisecond of one 1500-byte delivery)."""
    duplex: Literal["full", "half", "simplex"] | None = None
    """Two links, two that share a medium, or only one from `from` to `to`; full if absent."""
    medium: str | None = None
    """The half-duplex medium (hub) that this link shares with all links that name it."""
    radio: Radio | None = None
    """Radio access in place of a wire: `from` is the mobile side, `to` the side of the base station."""
    dscp: Dscp | None = None
    """Code point of the packets that it is for; absent: for all."""


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
    """Routers and switches: places that links join and that are no nodes."""
    graph: str | None = None
    """A graph that ships with tcpsbed ("usnet9", "usnet24") or a GraphML file: its vertices are routers."""
    link: LinkSettings = LinkSettings()
    """What the edges of the graph are like."""
    routing: Literal["hops", "delay", "load"] = "hops"
    """How paths are chosen: fewest hops, smallest delay, smallest offered load."""
