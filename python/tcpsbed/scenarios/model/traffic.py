"""Background traffic by name [Gokhale 2017 §6]."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from tcpsbed import _tcps
from tcpsbed.scenarios.fields import BeforeValidator, Called, Field, FiniteFloat
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
    """Where the traffic passes: `"l1"` (both directions of a link), `"l1.forward"` (one direction), `"n1->n2"` (the
    route between two nodes or routers) or `"all-to-all"` (the routes between all nodes or routers in `among`). If
    links are parallel, only the one on the route carries this traffic.
    """
    among: Annotated[list[str], Called("list of nodes or routers")] = Field([])
    """Nodes or routers that `"all-to-all"` joins; absent: the vertices of the graph, else the nodes."""
    start_ns: Duration = Field(0, alias="start")
    """Time of the first packet."""
    stop_ns: PositiveDuration | None = Field(None, alias="stop")
    """No packet is sent at this time or later; absent: never."""
    dscp: Dscp = 0
    """Code point of its packets: a number or a name such as `"AF41"`."""


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
    file: Annotated[str, Called("file")]
    """A pcap, pcapng or csv file (`time in s, bytes`)."""
    offset_ns: Duration = Field(0, alias="offset")
    """Time in the round at which the recording starts."""


def _captures(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


Captures = Annotated[
    list[Capture],
    Field(min_length=1),
    BeforeValidator(_captures, json_schema_input_type=Capture | list[Capture]),
    Called("file, table or list of them"),
]


class Replay(_Traffic):
    """Recorded captures, merged."""

    kind: Literal["replay"]
    file: Captures
    """Recordings: pcap, pcapng or csv (`time in s, bytes`)."""
    speed: Annotated[FiniteFloat, Field(gt=0)] = 1.0
    """How many times faster than recorded the packets are sent."""
    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Mean rate, reached by scaling the times. It takes the place of `speed`."""
    loop: bool = True
    """Whether the recording is repeated."""


class Video(_Traffic):
    """Video from a trace of frame sizes."""

    kind: Literal["video"]
    file: Annotated[str, Called("file")]
    """A file with one line per frame, `time bits`, or a table with a column named `bytes` or `bits`."""
    frame_rate_hz: Frequency = Field(25.0, alias="frame_rate")
    """Frames per second."""
    rate_bps: PositiveRate | None = Field(None, alias="rate")
    """Mean rate on the wire, reached by scaling the sizes of frames; absent: the recorded sizes."""
    packet_bytes: PacketSize = Field(1278, alias="packet")
    """Largest packet on the wire, including 78 B of headers. The packets of a frame are sent back to back."""
    loop: bool = True
    """Whether the recording is repeated."""


class _Connected(_Traffic):
    transport: Literal["tcp", "quic"] = "tcp"
    """Transport of the connections."""
    congestion: Literal["cubic", "reno", "newreno", "none"] = "cubic"
    """Congestion control. `"reno"` and `"none"` need TCP, `"newreno"` needs QUIC."""
    mtu_bytes: PositiveSize = Field(1500, alias="mtu")
    """Largest IP packet, from 300 B (QUIC: 1228 B) to 65507 B."""
    buffer_bytes: PositiveSize = Field(65536, alias="buffer")
    """Send buffer of a server and receive buffer of a client, from 4096 B to 100 MB. QUIC has windows of its
    own and refuses this key.
    """


class _Users(_Connected):
    users: Annotated[int, Field(ge=1, le=_tcps.MOST_USERS)] = 32
    """Number of users. Each loads one thing at a time."""
    utilisation: Share | None = None
    """Target utilisation of the link in `on`, by all its traffic together. Users read faster or slower to reach
    it. Without this key they read at their own pace.
    """


class Web(_Users):
    """Users who load web pages over TCP or QUIC."""

    kind: Literal["web"]
    pages: str = "builtin:web"
    """Model of pages. It is `"builtin:web"`, `"builtin:3gpp-http"`, or a JSON file of distributions. It may
    also be a folder with `HttpRequestLength.cdf`, `HttpReplyLength.cdf`, `HttpConnections.cdf` and
    `HttpThinkTime.cdf` (Mah 1997).
    """
    connection: Literal["page", "object"] = "page"
    """One connection per page (HTTP/1.1) or per object (HTTP/1.0)."""


class Transfers(_Users):
    """Transfers over TCP or QUIC with sizes of a measured distribution."""

    kind: Literal["transfers"]
    sizes: Annotated[str, Called("file")]
    """Distribution of the bytes of a transfer. The file has lines of value and cumulative probability (the last
    column), or is a table with a column `cdf`.
    """
    pause_ns: Period = Field(1_000_000_000, alias="pause")
    """Mean of the exponential pause between a user's transfers."""


class Bulk(_Connected):
    """Endless transfers over TCP or QUIC."""

    kind: Literal["bulk"]
    connections: Annotated[int, Field(ge=1, le=_tcps.MOST_USERS)] = 1
    """Number of endless transfers."""


if TYPE_CHECKING:
    Traffic = Source | Own | Replay | Video | Web | Transfers | Bulk
else:
    _BY_KIND = {k: _SOURCES.get(k) or globals()[k.title()] for k in TRAFFIC_KINDS} | {"vbr": Vbr}
    Traffic = with_own("traffic", _BY_KIND, Own)
"""An entry of background traffic."""
