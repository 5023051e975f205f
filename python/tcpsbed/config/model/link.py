"""Links: rate, propagation, queue, and everything that goes wrong on them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from tcpsbed.config.model.radio import Radio
from tcpsbed.config.model.span import Span
from tcpsbed.config.model.table import Table
from tcpsbed.config.units import (
    PACKETS,
    Dscp,
    Duration,
    PositiveDuration,
    PositiveRate,
    PositiveSize,
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

Discipline = Literal["drop-tail", "priority", "gates", "round-robin", "red", "codel", "fq-codel"]
DISCIPLINE_KEYS: dict[str, tuple[str, ...]] = {
    "drop-tail": (),
    "priority": ("classes",),
    "gates": ("classes", "gates"),
    "round-robin": ("quantum_bytes", "flow_limits"),
    "red": ("min_bytes", "max_bytes", "max_p", "weight"),
    "codel": ("target_ns", "interval_ns"),
    "fq-codel": ("target_ns", "interval_ns", "quantum_bytes", "flows"),
}
"""The settings of each discipline."""


class Queue(Table):
    """The queue in front of a link; a string is its limit alone."""

    shorthand: ClassVar[str | None] = "limit"
    refuses_numbers: ClassVar[bool] = True
    limit: Limit | None = None
    """Most that may wait, "15000 B" or "20 packets"; the packet in service does not count."""
    discipline: Discipline = "drop-tail"
    """Who goes first and who is dropped."""
    classes: list[list[Dscp]] = Field([])
    """priority, gates: code points (numbers or names such as "EF") per class, most urgent first."""
    gates: list[tuple[PositiveDuration, list[StrictInt]]] = Field([])
    """gates: spans, and the classes (numbers from 0) whose gates are open meanwhile; repeated from 0 s on."""
    quantum_bytes: PositiveSize = Field(1514, alias="quantum")
    """round-robin, fq-codel: bytes that a flow may send in its turn."""
    flow_limits: dict[str, Limit] = Field({})
    """round-robin: own limits in packets by flow name (`kinematic`, `traffic.cbr`)."""
    min_bytes: PositiveSize | None = Field(None, alias="min")
    """red: average below which nothing is dropped."""
    max_bytes: PositiveSize | None = Field(None, alias="max")
    """red: average at which drops reach `max_p`."""
    max_p: Share = 0.1
    """red: drop probability at `max`."""
    weight: Share = 0.002
    """red: weight of the moving average (Floyd and Jacobson 1993)."""
    target_ns: PositiveDuration = Field(5_000_000, alias="target")
    """codel, fq-codel: acceptable standing delay (RFC 8289)."""
    interval_ns: PositiveDuration = Field(100_000_000, alias="interval")
    """codel, fq-codel: width of the window."""
    flows: StrictInt = Field(1024, ge=1, le=65536)
    """fq-codel: number of hash buckets (RFC 8290)."""

    @model_validator(mode="after")
    def _belong(self) -> Self:
        """Only settings of the discipline, and all that it needs."""
        fields = {name: field.alias or name for name, field in type(self).model_fields.items()}
        settings = DISCIPLINE_KEYS[self.discipline]
        for name in sorted(self.model_fields_set - {"limit", "discipline", *settings}):
            allowed = ", ".join(["limit", "discipline", *(fields[setting] for setting in settings)])
            raise _refuse(fields[name], f"unknown key of a {self.discipline} queue", allowed)
        if self.discipline in ("priority", "gates"):
            self._check_classes()
        if self.discipline == "gates":
            self._check_gates()
        if self.discipline == "red":
            self._check_red()
        return self

    def _check_classes(self) -> None:
        points = [point for points in self.classes for point in points]
        if not 2 <= len(self.classes) <= 64:
            allowed = '2 to 64 classes such as [["EF"], []]; the last one takes the rest'
            raise _refuse("classes", f"found {len(self.classes)} classes", allowed)
        if len(set(points)) < len(points):
            raise _refuse("classes", "found a code point twice", "each code point once")

    def _check_gates(self) -> None:
        """Every class has its gate open at some time, or its packets would wait for ever."""
        opened = {number for _, numbers in self.gates for number in numbers}
        if opened != set(range(len(self.classes))):
            found = f"found gates of the classes {sorted(opened)}" if opened else "found no open gate"
            allowed = f"each of the classes 0 to {len(self.classes) - 1} at least once, and no others"
            raise _refuse("gates", found, allowed)

    def _check_red(self) -> None:
        if self.min_bytes is None or self.max_bytes is None:
            key = "min" if self.min_bytes is None else "max"
            raise _refuse(key, "found nothing", 'a size such as "5000 B"')
        if self.min_bytes >= self.max_bytes:
            raise _refuse("min", "found a minimum that is not below the maximum", "min below max")


def _refuse(key: str, found: str, allowed: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{key}", {"key": key, "found": found, "allowed": allowed})


class RandomLoss(Table):
    """Independent loss."""

    kind: Literal["random"]
    p: Share
    """The probability of a loss."""


class GilbertElliott(Table):
    """Two states with their own loss, left with a probability per packet."""

    kind: Literal["gilbert-elliott"]
    p: Share
    """Good to bad, per packet."""
    r: Share
    """Bad to good, per packet."""
    loss_good: Share = 0.0
    """Loss in the good state."""
    loss_bad: Share = 1.0
    """Loss in the bad state."""


def _loss(value: Any) -> Any:
    if isinstance(value, dict) and "kind" in value:
        return value
    if isinstance(value, dict):
        raise refuse(
            f"found {shown(value)} without a kind", '"1 %" or { kind = "gilbert-elliott", p = …, r = … }'
        )
    return {"kind": "random", "p": value}


Loss = Annotated[
    RandomLoss | GilbertElliott,
    Discriminator("kind"),
    BeforeValidator(_loss, json_schema_input_type=str | float | RandomLoss | GilbertElliott),
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
