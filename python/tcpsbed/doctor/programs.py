"""Optional programs and devices that parts of tcpsbed use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tcpsbed.doctor.finding import Finding, attempt, ran
from tcpsbed.processes import PYTHON

PROGRAMS = {
    "ns-3": (["pkg-config", "--modversion", "ns3-core"], "apt install libns3-dev libgsl-dev pkg-config g++"),
    "Mininet": (["mn", "--version"], "apt install mininet openvswitch-switch"),
    "Docker": (
        ["docker", "version", "--format", "{{.Server.Version}}"],
        "apt install docker.io && systemctl start docker",
    ),
    "Podman": (["podman", "--version"], "apt install podman"),
    "ssh": (["ssh", "-V"], "apt install openssh-client"),
    "C compiler": (["cc", "--version"], "apt install gcc"),
    "ARM compiler": (["arm-none-eabi-gcc", "--version"], "apt install gcc-arm-none-eabi"),
    "QEMU (boards)": (["qemu-system-arm", "--version"], "apt install qemu-system-arm"),
}
"""Command that shows a version, and how to have it."""
RENDERERS = ("egl", "osmesa")
RENDER = "import mujoco; c = mujoco.GLContext(64, 64); c.make_current(); c.free(); print('mujoco', mujoco.__version__)"
LIBRARIES = "pip install 'tcpsbed[robot]'; apt install libegl1 libgl1-mesa-dri libosmesa6"
CODECS = ("h264", "vp8", "libvpx-vp9", "libaom-av1", "opus")
"""Codecs of PyAV."""


def programs() -> Iterator[Finding]:
    """Programs, each asked for its version."""
    from tcpsbed.worlds import ns3_program

    for name, (command, remedy) in PROGRAMS.items():
        yield attempt(name, partial(ran, command), remedy)
        if name == "ns-3":
            yield attempt("5G-LENA (ns-3)", _lena, ns3_program.LENA_NEEDS)


def _lena() -> str:
    """The version of ns-3 with the module, which has no version of its own."""
    from tcpsbed.worlds import ns3_program

    said = ran(["pkg-config", "--modversion", ns3_program.LENA])
    if (age := ns3_program.lena_age()) is not None:
        raise OSError(f"a version {age}, with ns-3 {said}")
    return f"module nr of ns-3 {said}"


def media() -> Iterator[Finding]:
    """Renderer, codecs, sound and camera."""
    for name in RENDERERS:
        environment = os.environ | {"MUJOCO_GL": name}
        yield attempt(f"renderer {name}", partial(ran, [*PYTHON, "-c", RENDER], env=environment), LIBRARIES)
    yield attempt("codec jpeg", _jpeg, "pip install 'tcpsbed[media]'")
    for name in CODECS:
        yield attempt(f"codec {name}", partial(_codec, name), "pip install 'tcpsbed[av]'")
    yield attempt(
        "sound card",
        partial(_opened, "/dev/snd/pcm*p"),
        "a sound card; without one: pulseaudio with a null sink",
    )
    yield attempt(
        "camera", partial(_opened, "/dev/video*"), "a camera; without one, files and robots' cameras serve"
    )
    yield attempt("input devices (uinput)", partial(_opened, "/dev/uinput"), "modprobe uinput, as root")


def _jpeg() -> str:
    import numpy as np
    import simplejpeg

    coded = simplejpeg.encode_jpeg(np.zeros((16, 16, 3), np.uint8))
    return f"libjpeg-turbo, {len(simplejpeg.decode_jpeg(coded))} lines there and back"


def _codec(name: str) -> str:
    import av

    context = av.CodecContext.create(name, "w" if name != "h264" else "r")
    return f"{context.codec.long_name}"


def _opened(pattern: str) -> str:
    """Opens the first device of a kind."""
    found = sorted(Path("/").glob(pattern.lstrip("/")))
    if not found:
        raise OSError(f"no {pattern}")
    os.close(os.open(found[0], os.O_RDWR | os.O_NONBLOCK))
    return str(found[0])
