"""Runs what an archive holds again, and compares.

```text
simulated time, built-in code only        the same SHA-256 of the records, on any machine
simulated time, code of the user's        the same SHA-256, or metrics within 1 %: rows may differ between processors
the machine's clock                       95 % intervals that overlap, for each flow and metric
```
Intervals are Student's t over the seeds of a combination of values. One seed has no interval: nothing is proved then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed.analysis.facts import PROMISES
from tcpsbed.analysis.stats import interval
from tcpsbed.archive.content import Cell
from tcpsbed.campaign import grid
from tcpsbed.campaign.worker import Answer, Here, Job
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import counted
from tcpsbed.views.paired import METRICS

CLOSE = 0.01
"""Largest relative difference of a metric that code on another processor may make."""
LINES_KEPT = 3

Summary = Mapping[str, Any]
Told = Callable[[int, int], None]


@dataclass(frozen=True)
class Verdict:
    """How a run came out again.

    Attributes
    ----------
    cell : Cell
        The archived run.
    passed : bool or None
        Whether it agrees; None if nothing can be said.
    said : str
        Why.
    records_sha256 : str
        The hash of the new records; empty if it failed.
    ran : bool
        Whether it came to its end, so that there was something to compare.
    """

    cell: Cell
    passed: bool | None
    said: str
    records_sha256: str = ""
    ran: bool = True


def again(scenario: Path, work: Path, cells: Sequence[Cell], width: int, told: Told) -> list[Summary | str]:
    """Runs cells again, as those of a campaign: the summary of each, or the message of one that failed.

    Parameters
    ----------
    scenario : Path
        The unpacked file.
    work : Path
        An empty folder for what the runs leave.
    cells
        What to run.
    width
        Runs at a time.
    told
        Hears of (done, all) as runs end.
    """
    place = Here(scenario, work, width)
    jobs = [Job(str(n), grid.Cell((), cell.seed), cell.settings, cell.world) for n, cell in enumerate(cells)]
    try:
        waiting = [place.executor.submit(place.call(job)) for job in jobs]
        for done, _ in enumerate(as_completed(waiting), 1):
            told(done, len(cells))
        return [_summary(one.result()) for one in waiting]
    finally:
        place.stop()


def _summary(answer: Answer) -> Summary | str:
    try:
        return kept(json.loads(answer.text))
    except ValueError:
        said = " ".join(answer.said.strip().splitlines()[-LINES_KEPT:])
        return said or f"exit status {answer.status}"


def kept(summary: Mapping[str, Any]) -> Summary:
    """What is compared of a summary, which is large where there are thousands of runs."""
    return {key: summary.get(key) for key in ("records_sha256", "flows", "errors", "disturbances")}


def verdicts(archived: Mapping[Cell, Summary], again: Mapping[Cell, Summary | str]) -> list[Verdict]:
    """A verdict for each archived run.

    Parameters
    ----------
    archived
        The runs with their summaries.
    again
        Their new summaries, or the messages of those that failed.
    """
    found: dict[Cell, Verdict] = {}
    groups: dict[tuple[str, ...], dict[Cell, Summary]] = {}
    for cell, summary in again.items():
        if isinstance(summary, str):
            found[cell] = Verdict(cell, False, f"failed: {summary}", ran=False)
        elif summary.get("errors") and not archived[cell].get("errors"):
            found[cell] = Verdict(cell, False, f"failed: {summary['errors'][0]}", ran=False)
        elif cell.world in SIMULATED:
            found[cell] = _simulated(cell, archived[cell], summary)
        else:
            groups.setdefault(cell.combination, {})[cell] = summary
    for new in groups.values():
        found |= _clocked({cell: archived[cell] for cell in new}, new)
    return [found[cell] for cell in archived]


# same records on any machine, or by code on this one [design: same on every machine]
def _simulated(cell: Cell, before: Summary, after: Summary) -> Verdict:
    now = str(after.get("records_sha256") or "")
    if cell.records_sha256 and now == cell.records_sha256:
        return Verdict(cell, True, "same records", now)
    if cell.promise == PROMISES["anywhere"]:
        return Verdict(cell, False, "DIFFERENT records", now)
    far = max(_differences(before, after), key=lambda one: one[0], default=(math.inf, "no flow in both"))
    if far[0] <= CLOSE:
        return Verdict(cell, True, f"other records, as code on another processor may give; {far[1]}", now)
    return Verdict(cell, False, f"DIFFERENT: {far[1]}", now)


def _differences(before: Summary, after: Summary) -> Iterator[tuple[float, str]]:
    """Relative differences of the compared metrics, with a sentence."""
    for name, flow in before["flows"].items():
        for number, metric in METRICS.items():
            old, new = metric.number(flow), metric.number(after["flows"].get(name) or {})
            if old is None and new is None:
                continue
            if old is None or new is None:
                yield math.inf, f"{name} {number} has a value on one side only"
                continue
            far = 0.0 if old == new else abs(new - old) / max(abs(old), abs(new))
            yield far, f"{name} {number} differs by {far:.2%}"


def _clocked(before: Mapping[Cell, Summary], after: Mapping[Cell, Summary]) -> dict[Cell, Verdict]:
    """The same verdict for the runs of a combination on the machine's clock."""
    old, new = list(before.values()), list(after.values())
    passed: bool | None
    if len(old) == 1:
        far = max(_differences(old[0], new[0]), key=lambda one: one[0], default=(math.inf, "no flow in both"))
        passed, said = None, f"not judged, one seed has no interval; {far[1]}"
    else:
        flows = dict.fromkeys(name for one in (*old, *new) for name in one["flows"])
        samples = {
            f"{flow} {number}": (_values(old, flow, metric), _values(new, flow, metric))
            for flow in flows
            for number, metric in METRICS.items()
        }
        judged = [(name, _overlap(*both)) for name, both in samples.items() if any(both)]
        apart = [f"{name} {why}" for name, why in judged if why]
        passed = not apart
        more = f", and {len(apart) - 1} more" if apart[1:] else ""
        said = f"DIFFERENT: {apart[0]}{more}" if apart else f"{counted(len(judged), 'interval')} overlap"
    if any(summary.get("disturbances") for summary in new):
        said += "; disturbed here"
    return {
        cell: Verdict(cell, passed, said, str(summary.get("records_sha256") or ""))
        for cell, summary in after.items()
    }


def _values(summaries: Sequence[Summary], flow: str, metric: Any) -> list[float]:
    found = (metric.number(one["flows"].get(flow) or {}) for one in summaries)
    return [value for value in found if value is not None]


def _overlap(before: Sequence[float], after: Sequence[float]) -> str:
    """How the intervals of two samples are apart; empty if they overlap."""
    old, new = interval(before), interval(after)
    if old.half is None or new.half is None:
        return f"has {old.n} values in the archive, {new.n} here"
    if abs(old.mean - new.mean) <= old.half + new.half:
        return ""
    return f"was {old.mean:.4g} ± {old.half:.2g}, is {new.mean:.4g} ± {new.half:.2g}"
