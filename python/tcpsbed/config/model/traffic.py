"""Background traffic by name (PROTOCOLS 2.10)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, FiniteFloat, StrictBool

from tcpsbed.config.model.table import Names, Table
from tcpsbed.config.units import (
    Dscp,
    Duration,
    PacketSize,
    Period,
    PositiveDuration,
    PositiveRate,
    Rate,
    Share,
)

TRAFFIC_KINDS = ("cbr", "poisson", "vbr", "replay")


class _Traffic(Table):
    on: Names
    """Links ("l1": both directions, "l1.forward": one), pairs ("a->b") or "all-to-all"."""
    among: list[str] = Field([])
    """The places that "all-to-all" joins; absent: the graph's vertices, else the nodes."""
    start_ns: Duration = Field(0, alias="start")
    """The first moment."""
    stop_ns: PositiveDuration | None = Field(None, alias="stop")
    """No packet at or after this moment."""
    dscp: Dscp = 0
    """Code point: a number or a name such as "AF41"."""


class Cbr(_Traffic):
    """Constant bit rate."""

    kind: Literal["cbr"]
    rate_bps: Rate = Field(alias="rate")
    """A rate on the wire such as "400 kbit/s", in each direction or between each pair."""
    packet_bytes: PacketSize = Field(500, alias="packet")
    """Size of a packet on the wire."""


class Poisson(_Traffic):
    """Poisson arrivals."""

    kind: Literal["poisson"]
    rate_bps: Rate = Field(alias="rate")
    """A mean rate on the wire such as "400 kbit/s"."""
    packet_bytes: PacketSize = Field(500, alias="packet")
    """(Mean) size of a packet on the wire."""
    size: Literal["constant", "exponential"] = "constant"
    """The distribution of sizes."""


class Vary(Table):
    """What varies in VBR traffic; a string names a kind."""

    shorthand: ClassVar[str | None] = "kind"
    kind: Literal["constant", "per-packet", "piecewise", "size"] = "piecewise"
    """Nothing, the rate of every packet, the rate of every period, or the size of packets."""
    piecewise_ns: Period = Field(100_000_000, alias="piecewise")
    """How long a rate holds."""


class Vbr(_Traffic):
    """Variable bit rate, uniform about a mean."""

    kind: Literal["vbr"]
    rate_bps: Rate = Field(alias="rate")
    """A mean rate on the wire such as "400 kbit/s"."""
    spread: Share = 0.2
    """How far the rate departs from its mean, either way."""
    packet_bytes: PacketSize = Field(500, alias="packet")
    """Mean size of a packet on the wire."""
    vary: Vary = Vary()
    """What varies, and when it is drawn again."""


class Capture(Table):
    """A recorded capture; a string names its file alone."""

    shorthand: ClassVar[str | None] = "file"
    file: str
    """A pcap, pcapng or csv (time, bytes) file."""
    offset_ns: Duration = Field(0, alias="offset")
    """When it starts within the round."""


def _captures(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


Captures = Annotated[
    list[Capture],
    Field(min_length=1),
    BeforeValidator(_captures, json_schema_input_type=Capture | list[Capture]),
]


class Replay(_Traffic):
    """Recorded captures, merged."""

    kind: Literal["replay"]
    file: Captures
    """A pcap, pcapng or csv (time, bytes) file, or a list of them."""
    speed: Annotated[FiniteFloat, Field(gt=0)] = 1.0
    """How many times faster than recorded."""
    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Mean rate that the times are scaled to (in place of `speed`)."""
    loop: StrictBool = True
    """Whether it is repeated."""


Traffic = Annotated[Cbr | Poisson | Vbr | Replay, Discriminator("kind")]
"""An entry of background traffic."""
