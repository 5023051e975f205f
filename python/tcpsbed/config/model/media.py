"""Pictures and sound of a flow: where they come from, how they are coded, who is shown them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt

from tcpsbed.config.model.span import Span
from tcpsbed.config.model.table import Table
from tcpsbed.config.units import Frequency, Parameters, PositiveRate

PICTURE_CODECS = Literal["raw", "jpeg", "h264", "vp8", "vp9"]
"""Codecs of pictures: all but the first need a package, which a message names."""
SOUND_CODECS = Literal["pcm", "opus"]
"""Codecs of sound."""
_Side = Annotated[StrictInt, Field(ge=16, le=4096)]


class _Media(Table):
    """What pictures and sound have in common: the places of their stages, and what those cost."""

    encode_at: str | None = None
    """The component that encodes; absent: the first board on the way, else the first component."""
    decode_at: str | None = None
    """The component that decodes; absent: the last board on the way, else the last component."""
    queue: StrictInt = Field(2, ge=1, le=64)
    """Samples that may wait for a stage; one more is dropped."""
    capture_cost: Span | None = None
    """Time that a capture occupies a core."""
    encode_cost: Span | None = None
    """Time that encoding occupies a core."""
    decode_cost: Span | None = None
    """Time that decoding occupies a core."""
    show_cost: Span | None = None
    """Time that showing occupies a core."""


class Region(Table):
    """A part of the picture that is sent better and more often than the rest."""

    x: StrictInt = Field(0, ge=0, le=4096)
    """Its left edge."""
    y: StrictInt = Field(0, ge=0, le=4096)
    """Its upper edge."""
    width: _Side
    """Its width."""
    height: _Side
    """Its height."""
    track: StrictBool = False
    """Whether it follows what moves."""
    quality: StrictInt = Field(90, ge=1, le=100)
    """Quality inside; 100 is raw."""
    every: StrictInt = Field(4, ge=1, le=1000)
    """The background is sent with every so many pictures."""
    shrink: StrictInt = Field(1, ge=1, le=8)
    """The background is coded this many times smaller, each way."""
    marks: str | None = None
    """Name of the marks by which the operator moves it: that of the hook `tcpsbed.media.region:Mark`."""


class Picture(_Media):
    """Pictures of a camera."""

    camera: str = "builtin:clip"
    """Where they come from: "builtin:clip" (320 x 180), "test", a camera ("/dev/video0"), a video file, `module:Class`."""
    params: Parameters = Field({})
    """Parameters of a camera that is code, of no other; quantities arrive in SI with the unit in their name."""
    width: _Side = 640
    """Picture elements in a row."""
    height: _Side = 480
    """Rows."""
    stereo: StrictBool = False
    """Whether a frame is the pictures of two eyes, side by side."""
    codec: PICTURE_CODECS = "jpeg"
    """How a frame becomes bytes."""
    quality: StrictInt = Field(75, ge=1, le=100)
    """Quality of `jpeg`."""
    bitrate_bps: PositiveRate = Field(2e6, alias="bitrate")
    """What an encoder aims at, and the most where it follows the transport."""
    keyframe: StrictInt = Field(30, ge=1, le=100_000)
    """Frames from one that needs no other to the next."""
    follow: StrictBool = False
    """Whether bit rate or quality follow what the transport allows."""
    region: Region | None = None
    """A part of the picture that is sent better and more often than the rest (`jpeg`)."""
    stamp: StrictBool = True
    """Whether time and number are drawn into the picture and read where it is shown."""
    compare: StrictInt = Field(0, ge=0, le=1_000_000)
    """Every so many shown frames are compared with what the camera gave; 0: none."""
    display: str = "none"
    """Who is shown them: "none", "window", "console", or `module:Class`."""


class Sound(_Media):
    """Sound of a microphone."""

    microphone: str = "builtin:speech"
    """Where it comes from: a "builtin:" one, "test", a wav file, "device", "ring:FILE", or `module:Class`."""
    sampling_hz: Frequency = Field(16_000.0, alias="sampling")
    """Samples a second and channel."""
    channels: StrictInt = Field(1, ge=1, le=2)
    """One, or two."""
    codec: SOUND_CODECS = "pcm"
    """How a frame becomes bytes."""
    bitrate_bps: PositiveRate = Field(32e3, alias="bitrate")
    """What `opus` aims at."""
    speaker: str = "none"
    """Who hears it: "none", a wav file to be written, "device", "ring:FILE", or `module:Class`."""
    mark: StrictBool = False
    """Whether a chirp is laid over it every second and found again where it is heard: the delay from mouth to ear."""
