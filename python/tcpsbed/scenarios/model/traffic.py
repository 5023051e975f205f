"""Background traffic by name [Gokhale 2017 §6]."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from tcpsbed import _tcps
from tcpsbed.scenarios.fields import (
    BeforeValidator,
    Field,
    FiniteFloat,
)
from tcpsbed.scenarios.model.entries import Chosen, OwnCode, entries, kinds, with_own
from tcpsbed.scenarios.model.table import Names, Table
from tcpsbed.scenarios.units import (
    Dscp,
    Duration,
    Frequency,
    PacketSize,
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
    """The places joined by "all-to-all"; absent: the graph's vertices, else the nodes."""
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
    """Nothing, the rate of each packet, the rate of each period, or the size of packets."""
    piecewise_ns: Period = Field(100_000_000, alias="piecewise")
    """How long a rate holds."""


class Own(_Traffic, OwnCode):
    """A source that is code of your own."""


class Vbr(_Vbr):
    """Variable bit rate, uniform about a mean."""

    vary: Vary = Field(default_factory=Vary)
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
    """Mean rate after scaling times (in place of `speed`)."""
    loop: bool = True
    """Whether it is repeated."""


class Video(_Traffic):
    """Video from a trace of frame sizes."""

    kind: Literal["video"]
    file: str
    """A trace with one line per frame: time and size in bits, or a column named `bytes` or `bits`."""
    frame_rate_hz: Frequency = Field(25.0, alias="frame_rate")
    """Frames per second."""
    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Mean rate on the wire after scaling frame sizes; absent: the recorded sizes."""
    packet_bytes: PacketSize = Field(1278, alias="packet")
    """Largest packet on the wire, with 78 B of headers."""
    loop: bool = True
    """Whether it is repeated."""


class _Connected(_Traffic):
    transport: Literal["tcp", "quic"] = "tcp"
    """Transport of the connections."""
    congestion: Literal["cubic", "reno", "newreno", "none"] = "cubic"
    """Congestion control: "reno" and "none" of TCP, "newreno" of QUIC, "cubic" of both."""
    mtu_bytes: PositiveSize = Field(1500, alias="mtu")
    """Largest IP packet."""
    buffer_bytes: PositiveSize = Field(65536, alias="buffer")
    """Send buffer of the server and receive buffer of the client; of TCP."""


class _Users(_Connected):
    users: Annotated[int, Field(ge=1, le=_tcps.MOST_USERS)] = 32
    """Number of users; each loads one thing at a time."""
    utilisation: Share | None = None
    """Target utilisation of a link by all its traffic; absent: users read at their own pace."""


class Web(_Users):
    """Users who load web pages over TCP or QUIC."""

    kind: Literal["web"]
    pages: str = "builtin:web"
    """Model of pages: "builtin:web", "builtin:3gpp-http", a JSON file of laws or a folder of Mah's files."""
    connection: Literal["page", "object"] = "page"
    """One connection per page (HTTP/1.1) or per object (HTTP/1.0)."""


class Transfers(_Users):
    """Transfers over TCP or QUIC with sizes of a measured distribution."""

    kind: Literal["transfers"]
    sizes: str
    """A cumulative distribution of bytes: lines of value and probability, or a table with a column `cdf`."""
    pause_ns: Period = Field(1_000_000_000, alias="pause")
    """Mean of the exponential pause between a user's transfers."""


class Bulk(_Connected):
    """Endless transfers over TCP or QUIC."""

    kind: Literal["bulk"]
    connections: Annotated[int, Field(ge=1, le=_tcps.MOST_USERS)] = 1
    """Number of transfers."""


if TYPE_CHECKING:
    Traffic = Source | Own | Replay | Video | Web | Transfers | Bulk
else:
    _BY_KIND = {k: _SOURCES.get(k) or globals()[k.title()] for k in TRAFFIC_KINDS} | {"vbr": Vbr}
    Traffic = with_own("traffic", _BY_KIND, Own)
"""An entry of background traffic."""
