"""All findings in their sections, in full and at a glance."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

from tcpsbed.doctor import commands, hardware, interfaces, kernel, programs, timing
from tcpsbed.doctor.finding import Finding
from tcpsbed.processes import cores

Sections = dict[str, list[Finding]]


def examine(progress: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Tries everything; takes some seconds, three of them for the clock.

    Parameters
    ----------
    progress
        Called with the name of each section before it begins.

    Returns
    -------
    dict
        `kernel`, `cores`, `sections` (name to list of `name`, `there`, `said`, `remedy`) and `timing`, the figures.
    """
    figures: dict[str, Any] = {}
    sections: Sections = {}

    def clock() -> Iterator[Finding]:
        found, measured = timing.measured()
        figures.update(measured)
        return chain(timing.privileges(), found)

    steps: dict[str, Callable[[], Iterator[Finding]]] = {
        "clock": clock,
        "kernel": kernel.examine,
        "interfaces": interfaces.examine,
        "programs": programs.programs,
        "media and devices": programs.media,
        "hardware": hardware.examine,
        "worlds": worlds,
        "commands": lambda: commands.verdicts(sections),
    }
    for name, step in steps.items():
        if progress is not None:
            progress(name)
        sections[name] = list(step())
    return _answer(sections) | {"timing": figures}


def glance() -> dict[str, Any]:
    """What costs no process and no time: privileges, stamps, interfaces. Beside every run as `doctor.json`."""
    return _answer({"clock": list(timing.privileges()), "interfaces": list(interfaces.examine())})


def worlds() -> Iterator[Finding]:
    """Whether each world is ready here."""
    from tcpsbed.clocks import NS3_VIRTUAL, REAL, VIRTUAL
    from tcpsbed.worlds import registry

    yield Finding(VIRTUAL, True, registry.ALONE[VIRTUAL])
    lack = registry.named("ns3").network.missing()
    yield Finding(NS3_VIRTUAL, lack is None, registry.ALONE[NS3_VIRTUAL], lack or "")
    yield Finding(REAL, True, registry.ALONE[REAL])
    for name in [*registry.PAIRS, *registry.pairs()]:
        world = registry.named(name)
        lack = world.missing()
        instead = None if lack else world.hosting.fallback()
        hosting = world.hosting.what if instead is None else f"by the fallback, {instead}"
        said = f"{hosting}; {world.network.what}"
        if not world.hosting.here:
            said += "; what it needs is looked for there when a run starts"
        yield Finding(name, lack is None, said, lack or "")


def _answer(sections: Sections) -> dict[str, Any]:
    return {
        "kernel": kernel.release(),
        "cores": cores(),
        "root": os.geteuid() == 0,
        "sections": {name: [asdict(one) for one in found] for name, found in sections.items()},
    }
