"""Pictures and sound of a flow: sources, codecs, sinks."""

from typing import Annotated, Literal

from tcpsbed.scenarios.fields import Field
from tcpsbed.scenarios.model.span import Span
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import Frequency, Parameters, PositiveRate

PICTURE_CODECS = Literal["raw", "jpeg", "h264", "vp8", "vp9"]
"""Codecs of pictures: all but the first need a package, which a message names."""
SOUND_CODECS = Literal["pcm", "opus"]
"""Codecs of sound."""
_Side = Annotated[int, Field(ge=16, le=4096)]


class _Media(Table):
    """What pictures and sound have in common: the places of their stages, and what those cost."""

    encode_at: str | None = None
    """The component that encodes; absent: the first board on the path, else the first component."""
    decode_at: str | None = None
    """The component that decodes; absent: the last board on the path, else the last component."""
    queue: int = Field(2, ge=1, le=64)
    """Samples that may wait for a stage; further ones are dropped."""
    capture_cost: Span | None = None
    """Core time of capturing."""
    encode_cost: Span | None = None
    """Core time of encoding."""
    decode_cost: Span | None = None
    """Core time of decoding."""
    show_cost: Span | None = None
    """Core time of showing."""


class Region(Table):
    """A part of the picture sent better and more often than the rest."""

    x: int = Field(0, ge=0, le=4096)
    """Its left edge."""
    y: int = Field(0, ge=0, le=4096)
    """Its upper edge."""
    width: _Side
    """Its width."""
    height: _Side
    """Its height."""
    track: bool = False
    """Whether it follows motion."""
    quality: int = Field(90, ge=1, le=100)
    """Quality inside; 100 is raw."""
    every: int = Field(4, ge=1, le=1000)
    """The background is sent with every n-th picture."""
    shrink: int = Field(1, ge=1, le=8)
    """The background is coded at 1/n of its width and height."""
    marks: str | None = None
    """Name of the marks by which the operator moves it: that of the hook `tcpsbed.media.region:Mark`."""


class Picture(_Media):
    """Pictures of a camera."""

    camera: str = "builtin:clip"
    """Where they come from: "builtin:clip" (320 x 180), "test", a camera ("/dev/video0"), a video file, `module:Class`."""
    params: Parameters = Field({})
    """Parameters of a camera that is code, of no other; quantities arrive in SI with the unit in their name."""
    width: _Side = 640
    """Pixels in a row."""
    height: _Side = 480
    """Rows."""
    stereo: bool = False
    """Whether a frame holds the pictures of both eyes, side by side."""
    codec: PICTURE_CODECS = "jpeg"
    """How a frame becomes bytes."""
    quality: int = Field(75, ge=1, le=100)
    """Quality of `jpeg`."""
    bitrate_bps: PositiveRate = Field(2e6, alias="bitrate")
    """Target of the encoder, and the upper limit with `follow`."""
    keyframe: int = Field(30, ge=1, le=100_000)
    """Distance between key frames."""
    follow: bool = False
    """Whether bit rate or quality follow the transport."""
    region: Region | None = None
    """A part of the picture sent better and more often than the rest (`jpeg`)."""
    stamp: bool = True
    """Whether time and number are drawn into the picture and read at the display."""
    compare: int = Field(0, ge=0, le=1_000_000)
    """Compare every n-th shown frame with the captured one; 0: never."""
    display: str = "none"
    """Where they are shown: "none", "window", "console", or `module:Class`."""


class Sound(_Media):
    """Sound of a microphone."""

    microphone: str = "builtin:speech"
    """Where it comes from: a "builtin:" one, "test", a wav file, "device", "ring:FILE", or `module:Class`."""
    sampling_hz: Frequency = Field(16_000.0, alias="sampling")
    """Samples per second and channel."""
    channels: int = Field(1, ge=1, le=2)
    """One, or two."""
    codec: SOUND_CODECS = "pcm"
    """How a frame becomes bytes."""
    bitrate_bps: PositiveRate = Field(32e3, alias="bitrate")
    """Target of `opus`."""
    speaker: str = "none"
    """The destination: "none", a wav file to be written, "device", "ring:FILE", or `module:Class`."""
    mark: bool = False
    """Whether a chirp every second measures the delay from mouth to ear."""
