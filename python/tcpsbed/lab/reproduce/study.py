"""A study: the runs of one work, and their rows and figures."""

from __future__ import annotations

import hashlib
import math
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tcpsbed import drawing, executors, palette, shipped
from tcpsbed.clocks import SIMULATED, VIRTUAL
from tcpsbed.errors import DataError, WorldError
from tcpsbed.lab.reproduce.expected import FOLDER, Expected, load
from tcpsbed.lab.reproduce.rows import NOTHING, Row
from tcpsbed.processes import cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed import Run

T = TypeVar("T")
Case = TypeVar("Case")
WHOLE = "only in a whole run"
"""Why a row has no value of ours in a short study that leaves its runs out."""


QUANTITY = re.compile(r"([\d.]+) ?([a-zA-Z/%]+)")
"""A value of a scenario with its unit."""


def _quantities(value: Any, key: str) -> Iterator[tuple[tuple[float, str], str]]:
    """The values above 0 with a unit in a tree of tables, each with its key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _quantities(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _quantities(inner, key)
    elif isinstance(value, str) and (found := QUANTITY.fullmatch(value)) and float(found[1]) > 0.0:
        yield (float(found[1]), found[2]), key


def named(case: object) -> str:
    """A case in words: its values, without the names, brackets and quotes of Python."""
    if is_dataclass(case) and not isinstance(case, type):
        case = astuple(case)
    if isinstance(case, tuple | list):
        return " ".join(filter(None, map(named, case)))
    if isinstance(case, float):
        return f"{case:g}"
    return "" if case is None else str(getattr(case, "__name__", case))


@dataclass(frozen=True)
class _Found(Generic[T]):
    """What came of a case: its result, the inputs of its scenarios, and the time that it took."""

    result: T
    inputs: dict[tuple[float, str], str]
    took_s: float


def _found(study: Study, run: Callable[[Case], T], case: Case) -> _Found[T]:
    """Runs a case."""
    since = time.monotonic()
    result = run(case)
    return _Found(result, study.inputs, time.monotonic() - since)


def _silent(_: str) -> None:
    """Says nothing."""


@dataclass
class Study:
    """What a work is given to run its experiments with."""

    work: str
    out: Path | None
    """Folder of the figures; absent: none are drawn."""
    full: bool = True
    """False: short sweeps, for tests."""
    tell: Callable[[str], None] = _silent
    """Hears of every case that is done."""
    world: str = VIRTUAL
    """Where its runs take place, unless one says otherwise."""
    clock: bool = True
    """Whether a full study may take minutes of the machine's clock."""
    note: str = ""
    """What is to be said of the run, such as what else the machine did meanwhile."""
    executor: Executor | None = None
    """Runs the cases in simulated time; absent: threads on all cores."""
    stopped: bool = False
    """Whether it was stopped (Ctrl-C) before all its rows were there."""
    rows: list[Row] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)
    inputs: dict[tuple[float, str], str] = field(default_factory=dict)
    """Values with units that the scenarios were given, and their keys."""

    def __post_init__(self) -> None:
        self.expected: dict[str, Expected] = load(self.work)

    def compare(
        self, key: str, ours: float, note: str = "", beside: Mapping[str, float] | None = None
    ) -> Row:
        """Adds the row of an item with our result, a note and numbers beside it.

        What is no number (the median of nothing) is a measurement that is broken: the row has no value and is not
        within, whatever is published. A work that knows why there is none says so by `cannot`.
        """
        if math.isnan(ours):
            return self.cannot(key, NOTHING)
        e = self._item(key)
        self.rows.append(Row(key, e, float(ours), "", note, beside or {}, self._given(e, float(ours))))
        return self.rows[-1]

    def worst(self, key: str, ours: Mapping[str, float]) -> Row:
        """Adds the row of a statement that was tried at several settings, by name: the worst result."""
        return self._of(key, max(ours, key=lambda name: self._item(key).off(ours[name])), ours)

    def nearest(self, key: str, ours: Mapping[str, float], note: str = "") -> Row:
        """Adds the row of an item with several readings, by name: the result of the nearest."""
        return self._of(key, min(ours, key=lambda name: self._item(key).off(ours[name])), ours, note)

    def _of(self, key: str, chosen: str, ours: Mapping[str, float], note: str = "") -> Row:
        """The row of one of several results; where one of them is no number, none is."""
        value = math.nan if any(map(math.isnan, ours.values())) else ours[chosen]
        return self.compare(key, value, note, ours)

    def cannot(self, key: str, reason: str) -> Row:
        """Adds the row of an item that cannot be reproduced, with the reason."""
        self.rows.append(Row(key, self._item(key), None, reason))
        return self.rows[-1]

    def _given(self, e: Expected, value: float) -> str:
        """The key whose value this is, to a thousandth, in the unit that the item ends with."""
        near = (
            key
            for (given, of), key in self.inputs.items()
            if of == e.unit and abs(value - given) < 1e-3 * value
        )
        return next(near, "")

    def leave_out(self, keys: Iterable[str]) -> None:
        """Adds the rows of items that take minutes of the machine's clock, which this study is not to take."""
        reason = f"takes minutes of the machine's clock, which only `tcpsbed reproduce {self.work}` does"
        for key in keys:
            self.cannot(key, reason)

    def add_what_needs_hardware(self) -> None:
        """Adds the rows of items that no run here can answer, so that they are seen to be open."""
        there = {row.key for row in self.rows}
        for key, entry in self.expected.items():
            if entry.hardware and key not in there:
                self.cannot(key, f"needs {entry.hardware}")

    def to_json(self) -> dict[str, object]:
        """Results with their conditions, from which `tools/scoreboard.py` draws the scoreboard."""
        from tcpsbed import __version__
        from tcpsbed.analysis.machine import commit

        kernel = re.match(r"[\d.]*", platform.release())
        machine = f"{platform.machine()}, {cores()} cores, {platform.system()} {kernel[0] if kernel else ''}"
        return {
            "work": self.work,
            "version": __version__,
            "commit": commit(),
            "expected_sha256": hashlib.sha256((FOLDER / f"{self.work}.toml").read_bytes()).hexdigest(),
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine.strip(),
            "note": self.note,
            "full": self.full and not self.stopped,
            "rows": [row.to_json() for row in self.rows],
        }

    def _item(self, key: str) -> Expected:
        if key not in self.expected:
            raise DataError(f"has no entry in data/expected/{self.work}.toml", key=f"{self.work}.{key}")
        return self.expected[key]

    def run(
        self, scenario: str, settings: Sequence[str], read: Callable[[Run], T], world: str | None = None
    ) -> T:
        """Runs a shipped scenario, by its name without `.toml`, with overrides: what `read` makes of it.

        Raises
        ------
        WorldError
            If something failed in a run on the machine's clock.
        """
        from tcpsbed import Run, scenarios
        from tcpsbed.runs import session

        loaded = scenarios.load(shipped.find(scenario), settings)
        self.inputs |= dict(_quantities(loaded.document, ""))
        folder = Path(tempfile.mkdtemp(prefix="tcpsbed-reproduce-"))
        try:
            if session.execute(loaded, world=world or self.world, out=folder, samples=False).stopped:
                raise KeyboardInterrupt
            run = Run(folder)
            if errors := run.summary["errors"]:
                raise WorldError(f"{scenario}: {errors[0]}")
            return read(run)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def each(self, cases: Iterable[Case], run: Callable[[Case], T]) -> dict[Case, T]:
        """Runs a function on every case, in simulated time on all cores at once or on the executor; results by case."""
        listed = list(cases)
        begun = time.monotonic()

        def told(done: int, number: int, found: _Found[T]) -> None:
            self.inputs |= found.inputs
            spent_s = time.monotonic() - begun
            self.tell(
                f"{self.work}: {named(listed[number])} took {found.took_s:.1f} s; {done} of {len(listed)}, "
                f"{spent_s:.0f} s of about {spent_s * len(listed) / done:.0f} s"
            )

        simulated = self.world in SIMULATED
        with ExitStack() as stack:
            executor = self.executor if simulated else None
            if executor is None:
                executor = stack.enter_context(executors.threads(cores() if simulated else 1))
            every = executors.each(executor, [partial(_found, self, run, case) for case in listed], told)
        return {case: found.result for case, found in zip(listed, every, strict=True)}

    def __getstate__(self) -> dict[str, Any]:
        """What a case needs of it elsewhere."""
        return vars(self) | {"tell": _silent, "executor": None, "rows": [], "figures": []}

    def figure(self, name: str, title: str, draw: Callable[[Figure], None], where: str | None = None) -> None:
        """Draws a figure of runs `where` they were (absent: the study's world), given a folder and matplotlib."""
        if self.out is None or not palette.drawable():
            return
        from tcpsbed import __version__

        with drawing.styled():
            figure = drawing.canvas()
            draw(figure)
        figure.suptitle(title)
        place = where or f"world {self.world}"
        figure.text(0.995, 0.005, f"tcpsbed {__version__}, {place}", ha="right", size=6, color="gray")
        self.out.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.out / f"{name}.png", dpi=120)
        self.figures.append((name, title))
