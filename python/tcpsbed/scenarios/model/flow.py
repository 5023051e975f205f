"""Flows: streams of samples in one direction, their sources and their sinks."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack

from tcpsbed.nearest import meant
from tcpsbed.scenarios.fields import BeforeValidator, Called, Discriminator, Field, FiniteFloat
from tcpsbed.scenarios.model.code import Transport
from tcpsbed.scenarios.model.entries import entries
from tcpsbed.scenarios.model.media import Picture, Sound
from tcpsbed.scenarios.model.table import AnyNames, Table
from tcpsbed.scenarios.units import (
    Dscp,
    Duration,
    Frequency,
    PositiveDuration,
    SampleSize,
    Size,
    free,
    refuse,
    shown,
)

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.keys import FlowKeys

PRESETS: dict[str, dict[str, Any]] = {
    "kinematic": {"direction": "forward", "rate": "1 kHz", "sample": "24 B"},
    "haptic": {"direction": "backward", "rate": "1 kHz", "sample": "12 B"},
    "audio": {"direction": "backward", "rate": "50 Hz", "sample": "160 B"},
    "video": {"direction": "backward", "rate": "25 Hz", "sample": "2000 B"},
}
"""What flows of these names are like unless they say otherwise. [Gokhale 2017 §4]"""


class Generated(Table):
    """A sine per value, or a byte pattern, that a receiver can check."""

    kind: Literal["generated"]


class RobotSource(Table):
    """What the robot of the first component senses."""

    kind: Literal["robot"]


class Recording(Table):
    """A recording, resampled to the flow's rate."""

    kind: Literal["recording"] = "recording"
    recording: Annotated[str, Called("file or folder")]
    """A file: `.csv` or another text table, JIGSAWS text, `.parquet` of a LeRobot data set, mouse log or
    kinesthetic trace. A folder: a LeRobot data set or VibTac-12. Or a built-in recording.
    """
    repeat: Literal["loop", "mirror", "hold"] = "loop"
    """What happens at the end: `"loop"` starts again, `"mirror"` plays backwards, `"hold"` repeats the last
    row.
    """
    format: str | None = None
    """Format of the recording: `"csv"`, `"jigsaws"`, `"lerobot"`, `"mouse"`, `"kinesthetic"` or `"vibtac12"`;
    absent: detected.
    """
    columns: Annotated[list[str | int], Called("list of names or numbers")] | None = None
    """Columns to read, in this order: names, prefixes of names, or numbers from 0; absent: the usual columns of
    the format.
    """
    scale: FiniteFloat | list[FiniteFloat] | None = None
    """Factor to SI units: one for all columns, or one for each."""
    start_ns: Duration | None = Field(None, alias="start")
    """Moment in the recording where the flow begins; absent: the beginning."""
    stop_ns: PositiveDuration | None = Field(None, alias="stop")
    """Moment in the recording where it ends; absent: the end."""
    rate_hz: Frequency | None = Field(None, alias="rate")
    """Rows per second of a csv file without a time column."""
    time: Annotated[str | int, Called("column")] | None = None
    """Time column of a csv file; absent: `time`, `t` or `timestamp`."""
    time_unit: str | None = None
    """Unit of the time column: `"s"`, `"ms"`, `"us"` or `"ns"`; absent: the unit at the end of the name of the
    column, else `"s"`.
    """
    episode: Annotated[int, Field(ge=0)] | None = None
    """Episode of a LeRobot data set (v2, v2.1 or v3). It is required for a v3 file with several episodes;
    absent: `0`.
    """
    texture: Annotated[int, Field(ge=1, le=12)] | None = None
    """Texture of VibTac-12. Its columns are `x`, `y`, `z`, and `sound` if the folder has `S.csv` or
    `TextureN.wav`; absent: 1 for VibTac-12.
    """

    def spec(self) -> dict[str, Any]:
        """What the reader of recordings takes."""
        keys = (
            "recording",
            "format",
            "columns",
            "scale",
            "rate_hz",
            "time",
            "time_unit",
            "episode",
            "texture",
        )
        return _given(self, keys)


class Replayed(Table):
    """Motion of an operator in an earlier session, in place of the hooks at the operator."""

    kind: Literal["operator"] = "operator"
    operator: Annotated[str, Called("file")]
    """A file that `tcpsbed export DIR --operator FILE` wrote."""
    repeat: Literal["loop", "mirror", "hold"] = "hold"
    """What happens at the end: `"loop"` starts again, `"mirror"` plays backwards, `"hold"` repeats the last
    row.
    """


class Frames(Table):
    """Frames of a recorded stream, one per period of the flow."""

    kind: Literal["frames"] = "frames"
    frames: Annotated[str, Called("file")]
    """A complete wav file, which is cut into frames of one period. Or an index `{"file": "clip.h264",
    "offsets": [0, 812, …]}` in JSON. Or any file, together with `frame`. Or a built-in stream.
    """
    frame_bytes: SampleSize | None = Field(None, alias="frame")
    """Size of the frames into which any file is cut."""
    start_ns: Duration | None = Field(None, alias="start")
    """Moment in the recording where the flow begins; absent: the beginning."""
    stop_ns: PositiveDuration | None = Field(None, alias="stop")
    """Moment in the recording where it ends; absent: the end."""

    def spec(self) -> dict[str, Any]:
        """What the reader of frames takes."""
        return _given(self, ("frames", "frame_bytes"))


class Sizes(Table):
    """Frames of recorded sizes with generated bytes."""

    kind: Literal["sizes"] = "sizes"
    sizes: Annotated[str, Called("file")]
    """A text file with one line per frame, `time bits`, or a table with a column named `bytes` or `bits`."""


def _given(source: Recording | Frames, names: tuple[str, ...]) -> dict[str, Any]:
    """The given keys of a source, with times in seconds."""
    given = {name: getattr(source, name) for name in names if getattr(source, name) is not None}
    spans = {"start": source.start_ns, "stop": source.stop_ns}
    return given | {name: ns / 1e9 for name, ns in spans.items() if ns is not None}


_OPERATOR = "operator:"
_SOURCES = '"generated", "robot", "operator:FILE", { recording = "…" }, { frames = "…" } or { sizes = "…" }'


def _source(value: Any) -> Any:
    if value in ("generated", "robot"):
        return {"kind": value}
    if isinstance(value, str) and value.startswith(_OPERATOR):
        return {"kind": "operator", "operator": value.removeprefix(_OPERATOR)}
    if isinstance(value, dict):
        for kind in ("operator", "recording", "frames", "sizes"):
            if kind in value:
                return {"kind": kind} | value
        raise refuse(f"found a table with the keys {', '.join(value) or 'none'}", _SOURCES)
    raise refuse(f"found {shown(value)}", _SOURCES + meant(str(value), ["generated", "robot", "operator"]))


Source = Annotated[
    Generated | RobotSource | Recording | Replayed | Frames | Sizes,
    Discriminator("kind"),
    BeforeValidator(
        _source,
        json_schema_input_type=Literal["generated", "robot"]
        | Annotated[str, Field(pattern="^operator:")]
        | Recording
        | Replayed
        | Frames
        | Sizes,
    ),
    Called("source"),
]
"""Where samples come from."""


if TYPE_CHECKING:
    _Policy = str
else:
    _Policy = Literal[tuple(entries("playout"))]


class Playout(Table):
    """When the last component shows arrived samples, with parameters; a string names it alone."""

    extra: ClassVar[bool] = True
    shorthand: ClassVar[str | None] = "kind"
    kind: _Policy
    """The policy."""

    def _check(self) -> None:
        """Parameters that can be handed on."""
        free(self.parameters())

    def parameters(self) -> dict[str, Any]:
        """The keys beside the kind."""
        return dict(self.model_extra or {})


class Flow(Table):
    """A stream of samples of one kind in one direction."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[FlowKeys]) -> None: ...

    direction: Literal["forward", "backward"]
    """`"forward"`: operator to robot. `"backward"`: robot to operator; absent: by name, else required."""
    rate_hz: Frequency = Field(alias="rate")
    """Samples or frames per second, at most 1 MHz, such as "1 kHz"; absent: by name, else required."""
    sample_bytes: SampleSize | None = Field(None, alias="sample")
    """Size of a generated sample, at most 16 MB. For what a robot senses it is the upper limit, unless a
    `sense` hook sets the size. Recordings, frames and the hook `force` have a size of their own, and another
    `sample` is refused; absent: by name, else required for generated samples.
    """
    source: Source | None = None
    """Where samples come from; absent: the robot for `haptic` from a robot, else `"generated"`."""
    picture: Picture | None = None
    """Pictures of a camera, in place of samples."""
    sound: Sound | None = None
    """Sound of a microphone, in place of samples."""
    sink: Literal["count", "robot", "verify"] | None = None
    """Where samples go; absent: `"robot"` for values that reach a robot, `"verify"` for frames, else `"count"`."""
    playout: Playout | None = None
    """When the last component shows samples that arrived; absent: at once."""
    codec: Literal["f32", "f64", "raw"] | None = None
    """How values become bytes; absent: `"raw"` for frames and for sizes that are no multiple of 4 B, else
    `"f32"`.
    """
    transport: Transport | None = None
    """Transport of a flow that shares no channel; absent: `"udp"`."""
    overhead_bytes: Size | None = Field(None, alias="overhead")
    """Bytes counted for all headers of a packet. Some published profiles prescribe this number; absent: the
    true size.
    """
    start_ns: Duration = Field(0, alias="start")
    """Time of the first sample."""
    stop_ns: PositiveDuration | None = Field(None, alias="stop")
    """No sample is sent at this time or later; absent: never."""
    dscp: Dscp = 0
    """Code point ([DSCP](glossary.md#dscp)) of its packets: a number or a name such as `"EF"`."""
    priority: int = 0
    """Urgency under priority [scheduling](#nodes). A larger number is more urgent."""
    authority: FiniteFloat = Field(1.0, ge=0)
    """Weight of its operator at a robot with several operators. With 0 the operator only watches. The key
    `authority` of a [robot](#robots) is something else: the policy that uses these weights.
    """
    blocking_send: bool = False
    """Whether a sample waits at its component until the first link has taken the previous sample. This also
    holds behind a `delay`.
    """
    buffers: int | None = Field(None, ge=1, le=1_000_000)
    """How many samples may be between source and first link at once. The source skips a sample if no buffer is
    free. With `blocking_send` and 1 buffer, the source makes a sample only after the previous one was sent.
    With 2 buffers, and a source and a sender at different components, it makes the next sample while the
    previous one is sent; absent: any number.
    """
    session: Annotated[str, Called("name")] | None = None
    """Its session; absent: every session."""
    via: AnyNames = Field([])
    """Components that the flow passes, where there is a choice; absent: none."""
    from_: Annotated[str, Called("component")] | None = Field(None, alias="from")
    """Component where the flow starts; absent: the first on the path."""
    to: Annotated[str, Called("component")] | None = None
    """Component where the flow ends; absent: the last on the path."""
    path: Annotated[list[str], Called("list of components")] | None = None
    """All components that the flow passes, in this order; absent: the [usual order](#components)."""
