"""Commands that supervisors refused: their task, and no error of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Found = Mapping[str, Any]

_REFUSED = re.compile(
    r"hook \S+ at (?P<at>.+) \((?P<flow>.+)\): refused: (?P<why>.*), (?P<times>once|\d+ times)", re.S
)
"""How the engine says that a hook refused, and how often."""
_LIMIT = re.compile(r"within ([\d.]+) ms \(end_to_end_ms = ([\d.]+)\)")
_POWER = re.compile(r"-?\d+(?:\.\d+)?e-?\d+")


def split(result: Found) -> tuple[list[str], list[str]]:
    """The errors of a run, and what supervisors refused; parameters and texts are those of `result.json`."""
    watching = {(one["component"], one["flow"]) for one in result.get("stages", ()) if one.get("watch")}
    errors, refused = [], []
    for text in result.get("errors", ()):
        found = _REFUSED.fullmatch(text)
        if found and (found["at"], found["flow"]) in watching:
            refused.append(_said(found))
        else:
            errors.append(text)
    return errors, refused


def _said(found: re.Match[str]) -> str:
    """`ss-com refused 27 commands of kinematic, the first for this reason: …`."""
    times = found["times"].removesuffix(" times")
    commands = "1 command" if times == "once" else f"{times} commands"
    first = "" if times == "once" else ", the first"
    why = _LIMIT.sub(_limit, _POWER.sub(lambda power: f"{float(power[0]):g}", found["why"]))
    return f"{found['at']} refused {commands} of {found['flow']}{first} because: {why}"


def _limit(found: re.Match[str]) -> str:
    """The limit that holds: the difference of both."""
    clock, whole = float(found[1]), float(found[2])
    return f"within {clock:g} ms; the limit is {whole - clock:g} ms (end_to_end_ms {whole:g} less clock_ms {clock:g})"
