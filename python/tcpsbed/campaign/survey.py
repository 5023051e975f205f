"""One campaign from axes to results: its cells, which of them are done, and their results."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tcpsbed import results
from tcpsbed.analysis import metrics
from tcpsbed.beside import imported
from tcpsbed.campaign import grid
from tcpsbed.campaign.design import Design
from tcpsbed.campaign.grid import Axis, Cell
from tcpsbed.campaign.results import EFFECT_COLUMNS, Shown, unchanged
from tcpsbed.campaign.worker import Crew, Here, Job, Place, width_of
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.executors.build import build
from tcpsbed.runs import forecast
from tcpsbed.views.metric import EFFECTS, OWN, QUALITY, Metric, effects
from tcpsbed.views.numbers import statistic
from tcpsbed.views.tables import field, fields

SELDOM = re.compile(r"\b(loss(_good|_bad)?|duplicate|corrupt|block_error)\b")
"""Keys of what may strike so seldom that two runs without it are no proof that the next will be."""
Told = Callable[[int, int, Job, str | None], object]
"""Hears of (done, all, job, failure) as cells end."""
DESIGN = Design()
"""That of a sweep: the whole grid."""


@dataclass(frozen=True)
class Survey:
    """A campaign: scenario, axes, seeds, world, folder, and its design. A sweep is one with a grid and nothing else.

    Parameters
    ----------
    file : Path
        The scenario.
    axes : sequence of Axis
        Keys and their values; the first is the x axis of the figure. One with the key `world` says where cells run.
    seeds : sequence of int
        The same for every combination of values (common random numbers); with `design.until` the most.
    settings : sequence of str
        Overrides of every cell.
    world : str
        A name that the registry of worlds knows, for cells without a value of their own.
    out : Path
        Where results are kept; a campaign in the same folder goes on where it stopped.
    design : Design
        Points, stopping rule, metrics, baseline, labels and order.
    """

    file: Path
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    settings: tuple[str, ...]
    world: str
    out: Path
    design: Design = DESIGN

    def cells(self, seeds: Sequence[int] | None = None) -> list[Cell]:
        """All cells, or those under these seeds, in the order of tables."""
        return grid.cells(self.axes, self.seeds if seeds is None else seeds, self.design.points)

    def jobs(self) -> list[Job]:
        """All cells as jobs. A cell whose scenario cannot be loaded is one too: it fails when it is its turn."""
        found = []
        for cell in self.cells():
            settings, world = (*self.settings, *grid.overrides(self.axes, cell)), self.world_of(cell.values)
            content = "".join(self.begun[cell.values].values())
            found.append(
                Job(grid.key(content, settings, world, build("ns3" in world)), cell, settings, world)
            )
        return found

    @property
    def kind(self) -> str:
        """What messages call it."""
        return ("campaign" if self.design.named else "sweep") if self.axes else "run"

    @property
    def shown(self) -> Shown:
        """What tables and figures show."""
        design = self.design
        if not design.metrics:
            return Shown(self.axes, baseline=design.baseline, labels=design.labels)
        wanted = tuple(one.dressed(design.labels, self._first) for one in design.metrics)
        columns = tuple({one.key: one.column for one in wanted}.values())
        flows = tuple(dict.fromkeys(one.flow for one in wanted))
        return Shown(self.axes, columns, columns, flows, design.baseline, design.labels, wanted)

    @property
    def _first(self) -> Mapping[str, Any]:
        """The summary of some finished cell, which has the units of the user's metrics; empty where none is wanted."""
        files = (
            (self.out / "cells").glob("*.json")
            if any(one.listed == OWN for one in self.design.metrics)
            else ()
        )
        return next(filter(None, map(summary_in, files)), {})

    def world_of(self, values: tuple[str, ...]) -> str:
        """Where the cells of a combination run."""
        named = {axis.key: value for axis, value in zip(self.axes, values, strict=True)}
        return named.get(grid.WORLD, self.world)

    @cached_property
    def begun(self) -> dict[tuple[str, ...], dict[Path, str]]:
        """What every combination of values was computed from when it was first asked: cells keep that name."""
        return {
            cell.values: self._content([*self.settings, *grid.overrides(self.axes, cell)[:-1]])
            for cell in self.cells(self.seeds[:1])
        }

    def _content(self, settings: Sequence[str]) -> dict[Path, str]:
        """The scenario with its includes, and hashes of the files that it names, as far as they can be read."""
        from tcpsbed import scenarios

        try:
            scenario = scenarios.load(self.file, settings)
        except TcpsbedError as error:
            return {self.file: str(error)}
        text = scenarios.dump(scenario)
        if forecast.touches(scenario.document):  # with code in it, records may be others on another processor
            text += _on_processor()
        return dict(_digests(scenario.folder, scenario.document)) | {self.file: text}

    @property
    def inputs(self) -> dict[str, Any]:
        """What all cells are computed from: the build, the processor where code runs on it, the scenario of each combination
        and files that it names; all but the processor as hashes.
        """
        found: dict[str, Any] = {"build": _short(build()), "processor": "", "scenario": {}, "files": {}}
        on = _on_processor()
        for values, of in self.begun.items():
            found["scenario"][json.dumps(values)] = _short(of[self.file].removesuffix(on))
            if of[self.file].endswith(on):
                found["processor"] = processor()
            found["files"] |= {str(path): digest for path, digest in of.items() if path != self.file}
        return found

    def refuse_changed(self, job: Job) -> None:
        """Raises ConfigError if a finished cell may have read inputs that changed meanwhile."""
        begun, now = self.begun[job.cell.values], self._content(job.settings[:-1])
        changed = [file for file in begun | now if begun.get(file) != now.get(file)]
        if changed:
            it = "it or a file that it includes " if self.file in changed else ""
            raise ConfigError(
                f"{it}changed while the {self.kind} was running",
                file=self.file if it else changed[0],
                allowed=f"files that stay as they are until the end; start the {self.kind} again",
            )

    def run(
        self,
        width: int | None,
        told: Told,
        known: str = "",
        cluster: Callable[[Sequence[Job]], Place] | None = None,
        *,
        alone: bool = True,
    ) -> dict[str, str]:
        """Runs the cells that have no result yet, except where further seeds change nothing, or as little as was asked.

        Cells on a simulated clock run first; those on the machine's clock have it for themselves.

        Parameters
        ----------
        width
            Runs at a time; absent: as many as the world allows.
        told
            Hears of (done, all, job, failure) as cells end.
        known
            Hash of the records of a run under another seed, if there is one.
        cluster
            Makes the place where the cells run; absent: on this machine.
        alone
            Whether these are all cells of the folder; otherwise the caller writes `sweep.json`, and stops the place.

        Returns
        -------
        dict
            Messages of the cells that failed, by key.

        Raises
        ------
        ConfigError
            If the scenario, or a file that it names, changes meanwhile.
        """
        jobs = self.jobs()
        failures: dict[str, str] = {}
        kept: list[Job] = []
        done = 0

        def note(job: Job, failure: str | None) -> None:
            nonlocal done
            done += 1
            if failure is not None:
                failures[job.key] = failure
            else:
                kept.append(job)
            told(done, len(jobs), job, failure)

        self.out.mkdir(parents=True, exist_ok=True)
        if alone:
            self.describe(jobs, inputs=self.inputs)
        _set_broken_aside(self.result(job.key) for job in jobs)
        for simulated in (True, False):
            mine = [job for job in jobs if (job.world in SIMULATED) == simulated]
            if not mine:
                continue
            here = width or max(width_of(job.world) for job in mine)
            place = cluster(mine) if cluster else Here(self.file, self.out / "work", here)
            settled: set[tuple[str, ...]] = set()
            with Crew(place, self.out, self.refuse_changed).at_work(stops=alone) as crew:
                if not simulated:
                    crew.warm_up(
                        [job for job in mine if not self.result(job.key).is_file()][: self.design.warmup]
                    )
                for tried, part in self._rounds(mine, 1 if known else 2):
                    asked = [job for job in part if job.cell.values not in settled]
                    open_ = [job for job in asked if not self.result(job.key).is_file()]
                    done += len(part) - len(open_)
                    random.Random(self.design.order).shuffle(open_)
                    crew.run(open_, note)
                    settled |= self._settled([job for job in tried if job.cell.values not in settled], known)
        for job in kept:
            if not self.result(job.key).is_file():
                failures[job.key] = f"its result was removed while the {self.kind} was running"
                told(done, len(jobs), job, failures[job.key])
        if alone:
            self.describe(jobs, failures, self.inputs)
        return failures

    def _rounds(self, jobs: Sequence[Job], first: int) -> Iterator[tuple[list[Job], list[Job]]]:
        """Jobs in rounds of seeds: those of a round with all before, and those of the round alone.

        Where a rule decides, each round has half as many seeds again.
        """
        for begin, end in itertools.pairwise([0, *self.looks(first)]):
            before, part = set(self.seeds[:end]), set(self.seeds[begin:end])
            yield [j for j in jobs if j.cell.seed in before], [j for j in jobs if j.cell.seed in part]

    def looks(self, first: int = 2) -> list[int]:
        """Numbers of seeds after which a combination may have enough."""
        rule, most = self.design.until, len(self.seeds)
        ends = [min(first, most)]
        while ends[-1] < most:
            ends.append(min(rule.more(ends[-1]), most) if rule is not None else most)
        return ends

    def _settled(self, tried: Sequence[Job], known: str) -> set[tuple[str, ...]]:
        """Combinations that need no further seed: with the same records under several seeds, and nothing so rare that more
        of them could differ; or with an interval as narrow as asked.
        """
        found = set()
        for values, jobs in itertools.groupby(
            tried, lambda job: job.cell.values
        ):  # as one, thousands are large
            runs = [(job.cell, summary) for job, summary in self.summaries(jobs)]
            if runs and (self.unchanged(runs, known) or self.narrow(runs)):
                found.add(values)
        return found

    def unchanged(self, runs: Sequence[tuple[Cell, Mapping[str, Any]]], known: str = "") -> bool:
        """Whether these runs of a combination have the same records, and further seeds would give them again."""
        values = runs[0][0].values
        hashes = [str(summary.get("records_sha256", "")) for _, summary in runs]
        return (
            self.world_of(values) in SIMULATED
            and unchanged([known, *hashes] if known else hashes)
            and not SELDOM.search(self.begun[values][self.file])
        )

    def narrow(self, runs: Sequence[tuple[Cell, Mapping[str, Any]]]) -> bool:
        """Whether the interval over these runs of a combination is as narrow as asked."""
        rule = self.design.until
        if rule is None:
            return False
        rows = [row for run in runs for row in self.rows_of(*run) if row["flow"] == rule.metric.flow]
        values = [row[rule.metric.key] for row in rows if row.get(rule.metric.key) is not None]
        return bool(values) and rule.enough(values)

    def result(self, key: str) -> Path:
        """Where the result of a cell is kept."""
        return self.out / "cells" / f"{key}.json"

    def describe(
        self,
        jobs: Sequence[Job],
        failures: Collection[str] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes what the folder holds into `sweep.json`: with the cells that failed, once it has ended, and where they are
        known with the `inputs` of all cells.
        """
        design = self.design
        described = {
            "scenario": str(self.file),
            "axes": [{"key": a.key, "values": a.values} for a in self.axes],
            "points": design.points,
            "seeds": self.seeds,
            "settings": self.settings,
            "world": self.world,
            "until": design.until.text if design.until else "",
            "metrics": [one.path for one in design.metrics],
            "baseline": design.baseline,
            "labels": design.labels,
            "order": design.order,
            "warmup": design.warmup,
            "campaign": design.named,
            "file": str(design.file or ""),
            "document": design.document,
            "cells": [job.key for job in jobs],
        }
        if failures is not None:
            files = _names(self.out / "cells")
            missing = sum(f"{job.key}.json" not in files for job in jobs)
            described["ended"] = {"failed": len(failures), "spared": missing - len(failures)}
        if inputs is not None:
            described["inputs"] = inputs
        results.write_whole(self.out / "sweep.json", json.dumps(described, indent=1))

    def under(self, seeds: Sequence[int]) -> Survey:
        """The same under some of its seeds; what it is computed from is not read again."""
        found = replace(self, seeds=tuple(seeds))
        vars(found)["begun"] = self.begun
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One row for every cell that has a result and every flow in it."""
        found = self.summaries(self.jobs())
        return [row for job, summary in found for row in self.rows_of(job.cell, summary)]

    def summaries(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Summaries of the jobs that have a result, one after the other: thousands are large."""
        for job in jobs:
            file = self.result(job.key)
            summary = summary_in(file) if file.is_file() else None
            if summary is not None:
                yield job, summary

    def rows_of(self, cell: Cell, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
        """One row for every flow in the summary of a cell, and for whatever else has a metric in the design."""
        place = dict(zip((a.key for a in self.axes), cell.values, strict=True)) | {"seed": cell.seed}
        about = {
            "records_sha256": str(summary.get("records_sha256", "")),
            "disturbed": bool(summary.get("disturbances")),
        }
        media, flows = summary.get("media") or {}, summary.get("flows", {})
        wanted: dict[str, dict[str, float | None]] = {}
        rule = self.design.until
        for one in (*self.design.metrics, *([rule.metric] if rule else ())):
            if one.listed:
                wanted.setdefault(one.flow, {})[one.key] = one.number(summary)
        for name in () if self.design.metrics else effects([summary]):
            of = (Metric("", name, one, EFFECTS) for one in EFFECT_COLUMNS)
            wanted[name] = {one.key: one.number(summary) for one in of}
        return [
            place
            | {"flow": name}
            | numbers(flow)
            | pictured(media.get(name) or {})
            | wanted.get(name, {})
            | about
            for name, flow in flows.items()
        ] + [
            place | {"flow": name} | of | about
            for name, of in wanted.items()
            if name not in flows and any(value is not None for value in of.values())
        ]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()


@cache
def processor() -> str:
    """The model of this machine's processor."""
    from tcpsbed.analysis import machine

    return str(machine.machine().get("cpu", ""))


def _on_processor() -> str:
    """What the text of a scenario with code ends with."""
    return f"\n# {processor()}"


def summary_in(file: Path) -> dict[str, Any] | None:
    """The summary that the file of a cell holds; none if it is broken, as after a crash of the machine."""
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))["summary"]
        whole = all(isinstance(flow, dict) for flow in summary["flows"].values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, IsADirectoryError):
        return None
    return summary if whole else None


def _set_broken_aside(files: Iterable[Path]) -> None:
    """Puts aside and names the files of cells that hold no result, so that these are computed anew."""
    for file in files:
        if file.is_file() and summary_in(file) is None:
            aside = file.replace(file.with_suffix(f".{os.getpid()}.broken"))
            told = f"found no result in it, and called it {aside.name}; the cell is computed anew"
            print(f"tcpsbed: {file}: {told}", file=sys.stderr)


def _digests(folder: Path, named: Any) -> Iterator[tuple[Path, str]]:
    """Hashes of the files among the texts of a scenario: code (`./hold.py:Hold`, `hold:Hold`), recordings, traces.

    Code comes with the modules beside it that it imports.
    """
    if isinstance(named, dict | list):
        for item in named.values() if isinstance(named, dict) else named:
            yield from _digests(folder, item)
    elif isinstance(named, str):
        place = named.rpartition(":")[0]
        module = place.replace(".", "/")
        for name in sorted({named, place, f"{module}.py", f"{module}/__init__.py"} - {""}):
            with suppress(OSError, ValueError):
                for file in (folder / name, *sorted(imported(folder / name))):
                    yield file, hashlib.sha256(file.read_bytes()).hexdigest()


def pictured(media: Mapping[str, Any]) -> dict[str, float | None]:
    """What a sweep keeps of pictures and sound, by column: bit rate, quality, median age; no numbers for other flows."""
    parts = metrics.section("media").parts
    kept = {key: field(parts, key).number(media) for key in QUALITY}
    age = media.get("glass_to_glass_ms") or media.get("mouth_to_ear_ms")
    return kept | {"age_p50_ms": statistic(age, "p50")}


def numbers(flow: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of a flow, by column."""
    columns = fields(metrics.section("flows").parts)
    return {one.name: one.number(flow) for one in columns if one.metric.unit}


def table_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """An Arrow table of rows, some of which have columns that others lack."""
    import pyarrow as pa

    columns = dict.fromkeys(column for row in rows for column in row)
    return pa.table({column: [row.get(column) for row in rows] for column in columns})


def write_parquet(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """All rows in one Parquet file."""
    import pyarrow.parquet as pq

    with results.whole(file) as part:
        pq.write_table(table_of(rows), part)
