"""A campaign carried out: checked whole, run, and its table and page written."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import documents, scenarios
from tcpsbed.analysis import metrics
from tcpsbed.analysis.frame import Frame, field
from tcpsbed.campaign import again, design, grid, page
from tcpsbed.campaign.design import Until
from tcpsbed.campaign.file import joined
from tcpsbed.campaign.filling import DESCRIPTION, filling
from tcpsbed.campaign.results import remarks
from tcpsbed.campaign.survey import Survey, Told, table_of, write_parquet
from tcpsbed.campaign.warm import Warm
from tcpsbed.campaign.worker import LINES_KEPT, Job, Place
from tcpsbed.errors import ConfigError, DataError, TcpsbedError, counted
from tcpsbed.processes import cores, how_ended
from tcpsbed.results import growing
from tcpsbed.runs import forecast
from tcpsbed.views import markup
from tcpsbed.views.folder import state_of
from tcpsbed.views.tables import fields

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Outcome(Frame):
    """What a sweep or a campaign left; `print` shows its tables, `.to_pandas()` has a line for each cell and flow.

    Attributes
    ----------
    survey
        What it was.
    rows
        A row for every cell and flow: values of the factors, `seed`, `flow`, metrics with their units in the name.
    failures
        Messages of the cells that failed, by the names of their files.
    state
        What is missing, as a sentence; empty if it is finished and whole.
    again
        How many cells were reused, and how many repeated and why; empty where none had a result before.
    """

    survey: Survey
    rows: list[dict[str, Any]]
    failures: dict[str, str]
    state: str = ""
    again: str = ""

    @property
    def folder(self) -> Path:
        """Where its results are: `sweep.parquet`, `sweep.html`, and a file for each cell."""
        return self.survey.out

    @property
    def remarks(self) -> list[str]:
        """What a reader of the table has to know: seeds that change nothing, intervals that are narrow or stayed wide."""
        absent = [
            f"{one.path} has no value in any cell."
            for one in self.survey.design.metrics
            if all(row["flow"] != one.flow or row.get(one.key) is None for row in self.rows)
        ]
        said = [*absent, *remarks(self.rows, self.survey.shown), *_wide(self.survey, self.rows)]
        return [*filter(None, [self.state, self.again]), *said]

    def to_arrow(self) -> pa.Table:
        """An Arrow table of `rows`: factors, `world`, `flow` and hashes are texts, metrics are numbers."""
        import pyarrow

        table = table_of(self.rows)
        units = {one.name: one.metric.unit for one in fields(metrics.section("flows").parts)}
        units |= {one.key: one.column.metric.unit for one in self.survey.shown.metrics}
        named = [field(one.name, one.type, units.get(one.name, "")) for one in table.schema]
        return table.cast(pyarrow.schema(named))

    def __str__(self) -> str:
        return "\n".join([self.survey.shown.tables(self.rows), *self.remarks])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = self.survey.shown
        tables = (
            f"<p><b>{markup.escaped(flow)}</b></p>{markup.table(shown.headings(flow), lines)}"
            for flow, lines in shown.cells(self.rows).items()
        )
        return "".join([*tables, *map(markup.note, self.remarks)])


def opened(folder: Path) -> Outcome:
    """What is in the folder of a sweep or a campaign, finished or not.

    Raises
    ------
    DataError
        If it holds none, or no finished cell.
    """
    sweep = filling(folder)
    rows = sweep.read()
    if not rows:
        raise DataError("has no finished cell", file=folder, allowed="the same command continues it")
    keys = ((key, folder / "failed" / f"{key}.txt") for key in sweep.keys)
    failures = {
        key: file.read_text(encoding="utf-8", errors="replace").strip()
        for key, file in keys
        if key not in sweep.rows and file.is_file()
    }
    unread = sum((folder / "cells" / f"{key}.json").exists() for key in sweep.keys if key not in sweep.rows)
    left_out = (
        f"{counted(unread, 'cell')} cannot be read; the same command computes {'it' if unread == 1 else 'them'} anew"
        if unread
        else ""
    )
    return Outcome(sweep.survey, rows, failures, "; ".join(filter(None, [state_of(folder), left_out])))


def carried_out(
    survey: Survey,
    told: Told,
    width: int | None = None,
    cluster: Callable[[Sequence[Job]], Place] | None = None,
    inputs: Sequence[Path] = (),
) -> Outcome:
    """Runs what is missing of a campaign, and writes its table and page; parameters as of `Survey.run`.

    Raises
    ------
    ConfigError
        If its folder holds another campaign.
    KeyboardInterrupt
        If it was stopped: says how to go on.
    """
    with growing(survey.out, "sweep", inputs=inputs):
        _refuse_another(survey)
        before = again.before(survey)
        ran: set[str] = set()

        def heard(done: int, number: int, job: Job, failure: str | None) -> None:
            (ran.add if failure is None else ran.discard)(job.key)
            told(done, number, job, failure)

        try:
            failures = survey.run(width, heard, cluster=cluster)
        except KeyboardInterrupt:
            kept = len(list((survey.out / "cells").glob("[!.]*.json")))
            raise KeyboardInterrupt(
                f"stopped; {kept} finished cells are in {survey.out}; the same command continues from there"
            ) from None
        if rows := survey.rows():
            write_parquet(rows, survey.out / "sweep.parquet")
            page.write(survey, rows, len(failures))
        said = again.told(before, survey, ran)
    return Outcome(survey, rows, failures, state_of(survey.out), said)


def _refuse_another(survey: Survey) -> None:
    """Raises ConfigError if the folder holds a campaign of another file, whose table would be replaced."""
    described = survey.out / DESCRIPTION
    if not described.is_file():
        return
    held = documents.read(described, ("scenario", "file"))
    mine = {"scenario": str(survey.file), "file": str(survey.design.file or "")}
    for key, name in mine.items():
        if Path(held[key]).name != Path(name).name:  # folders may have moved
            found = f"found the results of {held['file'] or held['scenario']} in {survey.out}"
            allowed = f"a folder of its own, such as --out {survey.out}-2"
            raise ConfigError(found, key="--out", allowed=allowed)


def check(survey: Survey, told: Callable[[float], object] = lambda _: None) -> None:
    """Checks the scenario of every combination before any runs; what names code of a user's in a process of its own.

    Parameters
    ----------
    survey
        What is checked.
    told
        Hears of the share that is checked.

    Raises
    ------
    ConfigError
        With the messages of all that cannot run, each once, with the values that it is about, or where they are written.
    """
    warm, combinations = Warm(), survey.cells(survey.seeds[:1])
    wrong: dict[str, tuple[TcpsbedError, bool, dict[tuple[str, str], None]]] = {}
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder, ThreadPoolExecutor(cores()) as pool:
        try:
            said = pool.map(lambda one: _checked(warm, survey, one, Path(folder)), combinations)
            for done, (cell, error) in enumerate(zip(combinations, said, strict=True), 1):
                told(done / len(combinations))
                if error is not None:
                    placed = design.placed(error, survey.design.places)
                    pairs = [f"{a.key}={v}" for a, v in zip(survey.axes, cell.values, strict=True)]
                    like = str(error) if placed is error else _without(str(placed), cell.values)
                    wrong.setdefault(like, (placed, placed is error, {}))[2][
                        str(placed), ", ".join(pairs)
                    ] = None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            warm.close()
    if wrong:
        raise joined([_at(*one) for one in wrong.values()])


def _at(error: TcpsbedError, unplaced: bool, where: Mapping[tuple[str, str], None]) -> TcpsbedError:
    """An error with the combinations that have it; where the place of a value says it, with the number of such values."""
    if not unplaced:
        others = len({text for text, _ in where}) - 1
        return ConfigError(f"{error} (and {counted(others, 'other value')})") if others else error
    more = f" (and {counted(len(where) - 1, 'other combination')})" if len(where) > 1 else ""
    return ConfigError(f"{error}{more}", key=next(iter(where))[1])


def _without(text: str, values: Sequence[str]) -> str:
    """A message without the values of its combination: what is wrong with several values alike is said once."""
    for value in values:
        text = re.sub(rf"(?<![\w.]){re.escape(value.strip(chr(34)))}(?![\w.])", "…", text)
    return text


def _checked(warm: Warm, survey: Survey, cell: grid.Cell, folder: Path) -> TcpsbedError | None:
    """What is wrong with a combination."""
    settings = [*survey.settings, *grid.overrides(survey.axes, cell)]
    try:
        scenario = scenarios.load(survey.file, settings)
        if not forecast.touches(scenario.document):
            scenarios.check(scenario)
            return None
    except TcpsbedError as error:
        return error
    words = ["check", str(survey.file), *(word for setting in settings for word in ("--set", setting))]
    out, err = (folder / f"{os.urandom(8).hex()}.{ending}" for ending in ("out", "err"))
    status = warm.run(words, out, err)
    if status == 0:
        return None
    lines = err.read_text(encoding="utf-8", errors="replace").strip().splitlines() if err.is_file() else []
    told = "\n".join(lines[-LINES_KEPT:]).removeprefix("tcpsbed: ")
    return ConfigError(told or f"tcpsbed check ended {how_ended(status)}")


def _wide(survey: Survey, rows: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence about combinations whose interval stayed wider than was asked for."""
    rule = survey.design.until
    if not isinstance(rule, Until):
        return []
    groups = survey.shown.groups(rows) or {}
    found = groups.get(rule.metric.flow, [])
    wide = [
        group for group in found if not group.unchanged and not rule.reached(group.mean(rule.metric.column))
    ]
    if not wide:
        return []
    place = f"{counted(len(wide), 'combination')} of {len(found)}"
    metric, _, width = rule.text.partition(" within ")
    said = (
        f"{place}: {survey.shown.called(metric)} is not known within {width} after {len(survey.seeds)} seeds."
    )
    means = [mean for group in wide if (mean := group.mean(rule.metric.column)) is not None]
    if not rule.width and any(abs(mean.mean) <= (mean.half or 0.0) for mean in means):
        unit = rule.metric.column.metric.unit
        said += f' Near 0 a share of the mean is no width that can be reached; add one: "within {width} or 0.1 {unit}".'
    return [said]
