"""What a campaign takes from an earlier one in its folder, and why it repeats the rest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpsbed import documents
from tcpsbed.campaign.filling import DESCRIPTION, filling
from tcpsbed.errors import TcpsbedError

if TYPE_CHECKING:
    from tcpsbed.campaign.grid import Cell
    from tcpsbed.campaign.survey import Survey

UNKNOWN = "the earlier tcpsbed did not keep from what they were computed"
BUILD = "tcpsbed, Python or a package is another version or build"
PROCESSOR = "code ran on another processor"


@dataclass(frozen=True)
class Before:
    """The campaign that was in a folder: its cells that had a result, and what all were computed from."""

    survey: Survey | None = None
    had: Mapping[Cell, str] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)


def before(survey: Survey) -> Before:
    """What is in the folder of a campaign before it runs; nothing where there was none."""
    described = survey.out / DESCRIPTION
    if not described.is_file():
        return Before()
    with suppress(TcpsbedError):
        earlier = filling(survey.out)
        had = {cell: key for key, cell in earlier.keys.items() if earlier.survey.result(key).is_file()}
        return Before(earlier.survey, had, documents.read(described).get("inputs") or {})
    return Before()


def told(found: Before, survey: Survey, ran: Collection[str]) -> str:
    """How many cells were reused, and how many repeated and why; empty where no cell had a result.

    Parameters
    ----------
    found
        From `before`.
    survey
        The campaign after its run.
    ran
        Names of the cells that ran.
    """
    if found.survey is None or not found.had:
        return ""
    jobs = survey.jobs()
    taken = sum(job.key not in ran and survey.result(job.key).is_file() for job in jobs)
    again = [job for job in jobs if job.key in ran and job.cell in found.had]
    new = len(ran) - len(again)
    now = survey.inputs
    why = Counter(
        "their results could not be read"
        if found.had[job.cell] == job.key
        else _why(found, found.survey, survey, job.cell.values, now)
        for job in again
    )
    reasons = "; ".join(reason if len(why) == 1 else f"{count}: {reason}" for reason, count in why.items())
    repeated = f"{len(again)} repeated" + (f" ({reasons})" if reasons else "")
    return f"Cells: {taken} reused, {repeated}, {new} run for the first time."


def _why(
    found: Before, earlier: Survey, survey: Survey, values: tuple[str, ...], now: Mapping[str, Any]
) -> str:
    """What of a combination is not as it was."""
    if not found.inputs:
        return UNKNOWN
    said = []
    if found.inputs["build"] != now["build"]:
        said.append(BUILD)
    processors = {inputs.get("processor", "") for inputs in (found.inputs, now)}
    if len(processors) == 2 and "" not in processors:
        said.append(PROCESSOR)
    if earlier.world_of(values) != survey.world_of(values):
        said.append("another world")
    name = json.dumps(values)
    if tuple(earlier.settings) != tuple(survey.settings):
        said.append("other overrides")
    elif found.inputs["scenario"].get(name) != now["scenario"][name]:
        said.append(f"{survey.file.name}, or a file that it includes, has changed")
    files = found.inputs["files"]
    mine = (str(path) for path in survey.begun[values] if path != survey.file)
    changed = [path for path in mine if files.get(path) != now["files"][path]]
    if changed:
        said.append(f"{', '.join(path.rpartition('/')[2] for path in changed)} changed")
    return " and ".join(said) or UNKNOWN
