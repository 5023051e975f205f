"""Background traffic by name [Gokhale 2017 §6]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    FiniteFloat,
    StrictBool,
    StrictInt,
    Tag,
    WithJsonSchema,
)

from tcpsbed import door
from tcpsbed.config.model.entries import Chosen, entries, is_code, kinds, one_of
from tcpsbed.config.model.table import Names, Table
from tcpsbed.config.units import (
    Dscp,
    Duration,
    Frequency,
    PacketSize,
    Parameters,
    Period,
    PositiveDuration,
    PositiveRate,
    PositiveSize,
    Share,
)

TRAFFIC_KINDS = (*entries("traffic"), "replay", "video", "web", "transfers", "bulk")


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


if TYPE_CHECKING:

    class Source(_Traffic, Chosen):
        """A source by name."""

    _Vbr = Source
else:
    _SOURCES = kinds("traffic", _Traffic)
    _Vbr = _SOURCES["vbr"]


class Vary(Table):
    """What varies in VBR traffic; a string names a kind."""

    shorthand: ClassVar[str | None] = "kind"
    kind: Literal["constant", "per-packet", "piecewise", "size"] = "piecewise"
    """Nothing, the rate of every packet, the rate of every period, or the size of packets."""
    piecewise_ns: Period = Field(100_000_000, alias="piecewise")
    """How long a rate holds."""


class Own(_Traffic):
    """A source that is code of your own."""

    kind: Annotated[str, WithJsonSchema({"type": "string", "pattern": ":"})]
    """"./mine.py:Mine", "module:Class" or "./libmine.so:source"."""
    params: Parameters = Field({})
    """Its parameters."""


class Vbr(_Vbr):
    """Variable bit rate, uniform about a mean."""

    vary: Vary = Vary()
    """What varies; with `piecewise` in a table of its own or beside it."""

    def _given(self) -> dict[str, Any]:
        given = super()._given()
        if "piecewise_ns" in self.vary.model_fields_set:
            given["piecewise_ns"] = self.vary.piecewise_ns
        return given | {"vary": self.vary.kind}


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


class Video(_Traffic):
    """Video from a trace of frame sizes."""

    kind: Literal["video"]
    file: str
    """A trace with a frame a line: time and size in bits, or a column named `bytes` or `bits`."""
    frame_rate_hz: Frequency = Field(25.0, alias="frame_rate")
    """Frames a second."""
    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Mean rate on the wire that the sizes of frames are scaled to; absent: the recorded sizes."""
    packet_bytes: PacketSize = Field(1278, alias="packet")
    """Largest packet on the wire, of which 78 B are headers."""
    loop: StrictBool = True
    """Whether it is repeated."""


class _Connected(_Traffic):
    transport: Literal["tcp", "quic"] = "tcp"
    """What the connections are of."""
    congestion: Literal["cubic", "reno", "newreno", "none"] = "cubic"
    """Congestion control: "reno" and "none" of TCP, "newreno" of QUIC, "cubic" of both."""
    mtu_bytes: PositiveSize = Field(1500, alias="mtu")
    """Largest IP packet."""
    buffer_bytes: PositiveSize = Field(65536, alias="buffer")
    """Send buffer of the server and receive buffer of the client; of TCP."""


class _Users(_Connected):
    users: Annotated[StrictInt, Field(ge=1, le=1000)] = 32
    """How many load, each one thing after the other."""
    utilisation: Share | None = None
    """Share of its rate to which a link is to be used, by all traffic; absent: users take their own time."""


class Web(_Users):
    """Users who load web pages over TCP or QUIC."""

    kind: Literal["web"]
    pages: str = "builtin:web"
    """What pages are like: "builtin:web", "builtin:3gpp-http", a JSON file of laws or a folder of Mah's files."""
    connection: Literal["page", "object"] = "page"
    """What has a connection of its own: a page (HTTP/1.1) or each object (HTTP/1.0)."""


class Transfers(_Users):
    """Transfers over TCP or QUIC with sizes of a measured distribution."""

    kind: Literal["transfers"]
    sizes: str
    """A cumulative distribution of bytes: lines of value and probability, or a table with a column `cdf`."""
    pause_ns: Period = Field(1_000_000_000, alias="pause")
    """Mean of the exponential pause between a user's transfers."""


class Bulk(_Connected):
    """Transfers over TCP or QUIC without end."""

    kind: Literal["bulk"]
    connections: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    """How many of them."""


_CODE = "./mine.py:Mine"
"""What stands for code of the user's among the kinds that are allowed."""


def _kind(entry: Any) -> Any:
    return entry.get("kind") if isinstance(entry, dict) else getattr(entry, "kind", None)


def _installed(entry: Any) -> Any:
    """An entry whose kind is the name of an installed package's code, with that code."""
    kind = _kind(entry)
    unknown = isinstance(kind, str) and kind not in TRAFFIC_KINDS and not is_code(kind)
    return entry | {"kind": door.named("traffic", kind)} if unknown else entry


if TYPE_CHECKING:
    Traffic = Source | Own | Replay | Video | Web | Transfers | Bulk
else:
    _BY_KIND = {k: _SOURCES.get(k) or globals()[k.title()] for k in TRAFFIC_KINDS} | {"vbr": Vbr}
    _ALL = one_of(Annotated[table, Tag(kind)] for kind, table in (_BY_KIND | {_CODE: Own}).items())
    _WHICH = Discriminator(lambda entry: _CODE if is_code(_kind(entry)) else _kind(entry))
    Traffic = Annotated[_ALL, _WHICH, BeforeValidator(_installed)]
"""An entry of background traffic."""
