"""Whether the commands that people try first are ready here, from what the other sections have found."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence

from tcpsbed.doctor.finding import Finding
from tcpsbed.doctor.programs import LIBRARIES, RENDERERS

EXTRAS = "pip install 'tcpsbed[robot,console]'"
NAMESPACES = (
    "sudo, or sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
)


def verdicts(sections: Mapping[str, Sequence[Finding]]) -> Iterator[Finding]:
    """The verdict on each command.

    Parameters
    ----------
    sections
        What was found so far: `kernel` and `media and devices`.
    """
    there = {one.name: one.there for found in sections.values() for one in found}
    drawn = any(there.get(f"renderer {name}") for name in RENDERERS)
    lacks = [
        name for name in ("mujoco", "simplejpeg", "websockets") if importlib.util.find_spec(name) is None
    ]
    if lacks:
        yield Finding("tcpsbed demo", False, f"needs {', '.join(lacks)}", EXTRAS)
    else:
        said = "ready" if drawn else "needs a renderer: neither egl nor osmesa draws"
        yield Finding("tcpsbed demo", drawn, said, LIBRARIES)
    pages = "websockets" not in lacks
    said = "ready" if pages else "needs websockets"
    yield Finding("tcpsbed demo network", pages, said, "pip install 'tcpsbed[studio]'")
    yield Finding("tcpsbed proxy", True, "ready, without root")
    spaces = any(there.get(f"network namespaces {whose} root") for whose in ("as", "without"))
    if not spaces:
        yield Finding("tcpsbed netns", False, "needs root, or network namespaces for users", NAMESPACES)
    else:
        tun = bool(there.get("device tun"))
        yield Finding("tcpsbed netns", tun, "ready" if tun else "needs TUN devices", "modprobe tun, as root")
