"""Pictures and sound of a flow: sources, codecs, sinks."""

from typing import Annotated, Literal

from tcpsbed.scenarios.fields import Called, Field
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

    encode_at: Annotated[str, Called("component")] | None = None
    """Component where frames are coded; absent: the first board on the path, else its first component."""
    decode_at: Annotated[str, Called("component")] | None = None
    """Component where frames are decoded; absent: the last board on the path, else its last component."""
    queue: int = Field(2, ge=1, le=64)
    """How many frames may wait for a stage. Further frames are dropped as `overload`."""
    capture_cost: Span | None = None
    """Cost of capturing a frame."""
    encode_cost: Span | None = None
    """Cost of coding it."""
    decode_cost: Span | None = None
    """Cost of decoding it."""
    show_cost: Span | None = None
    """Cost of showing it."""


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
    """Whether the region follows motion."""
    quality: int = Field(90, ge=1, le=100)
    """Quality inside the region. With 100 the region is raw."""
    every: int = Field(4, ge=1, le=1000)
    """The background is sent with every n-th picture."""
    shrink: int = Field(1, ge=1, le=8)
    """The background is coded at 1/n of its width and height."""
    marks: str | None = None
    """Name of the marks by which the operator [moves the region](media.md#a-region). A hook at the encoding
    node (`tcpsbed.media.region:Mark`) receives them. This works in one session only.
    """


class Picture(_Media):
    """Pictures of a camera."""

    camera: str = "builtin:clip"
    """Where pictures come from. `"builtin:clip"` is 2 s of a film of 320 x 180 pixels,
    [enlarged](media.md#the-film-that-ships). `"test"` is a moving view of noise. Or a camera of the machine
    such as `"/dev/video0"`, a video file, `"./file.py:Class"` or `"module:Class"`.
    """
    params: Parameters = Field({})
    """Parameters of a camera that is code. Any other camera refuses them."""
    width: _Side = 640
    """Pixels in a row of one eye."""
    height: _Side = 480
    """Rows of one eye."""
    stereo: bool = False
    """Whether a frame holds the pictures of both eyes side by side."""
    codec: PICTURE_CODECS = "jpeg"
    """How a frame becomes bytes."""
    quality: int = Field(75, ge=1, le=100)
    """Quality of `jpeg`."""
    bitrate_bps: PositiveRate = Field(2e6, alias="bitrate")
    """Target of the codecs other than `raw` and `jpeg`. With `follow` it is the upper limit."""
    keyframe: int = Field(30, ge=1, le=100_000)
    """Distance between key frames."""
    follow: bool = False
    """Whether bit rate or quality [follow the rate of the transport](media.md#following-the-transport)."""
    region: Region | None = None
    """Part of the picture that is sent better and more often than the rest (`jpeg` only)."""
    stamp: bool = True
    """Whether the camera draws time and number into the picture and the display reads them."""
    compare: int = Field(0, ge=0, le=1_000_000)
    """Every n-th shown frame is compared with the captured one ([PSNR](glossary.md#psnr),
    [SSIM](glossary.md#ssim)). With 0 none is.
    """
    display: str = "none"
    """Where pictures are shown: `"none"`, `"window"`, `"console"`, `"./file.py:Class"` or `"module:Class"`."""


class Sound(_Media):
    """Sound of a microphone."""

    microphone: str = "builtin:speech"
    """Where sound comes from. `"builtin:speech"` is speech. `"builtin:sound"` is the sound of the film.
    `"test"` is a tone. `"device"` or `"device:NAME"` is a
    [device](media.md#cameras-microphones-and-speakers-of-the-machine) of the machine. Or a wav file,
    `"ring:FILE"`, `"./file.py:Class"` or `"module:Class"`.
    """
    sampling_hz: Frequency = Field(16_000.0, alias="sampling")
    """Samples per second in each channel."""
    channels: int = Field(1, ge=1, le=2)
    """Number of sound channels."""
    codec: SOUND_CODECS = "pcm"
    """How a frame becomes bytes."""
    bitrate_bps: PositiveRate = Field(32e3, alias="bitrate")
    """Target of `opus`."""
    speaker: str = "none"
    """Where sound goes: `"none"`, a wav file to be written, `"device"`, `"device:NAME"`, `"ring:FILE"`,
    `"./file.py:Class"` or `"module:Class"`.
    """
    mark: bool = False
    """Whether a chirp every second measures [mouth to ear](media.md#from-mouth-to-ear)."""
