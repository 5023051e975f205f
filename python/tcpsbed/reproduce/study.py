"""A study: the runs of one work, and the rows and figures that come of them."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tcpsbed.clocks import SIMULATED, VIRTUAL
from tcpsbed.errors import DataError, WorldError
from tcpsbed.reproduce.expected import TREE, Expected, load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed.analysis import Run

T = TypeVar("T")
Case = TypeVar("Case")
NOTHING = "no number came out: the runs measured nothing that it is made of"
"""Why a row has no value of ours where a mean or a median had nothing to be of."""


def drawing() -> tuple[Any, Any]:
    """What figures are drawn with: the classes of matplotlib's canvas and figure.

    Raises
    ------
    DataError
        If matplotlib is not there.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError(
            "found no matplotlib, which the figures need", allowed="pip install tcpsbed[plot]"
        ) from None
    return FigureCanvasAgg, Figure


@dataclass(frozen=True)
class Row:
    """One line of the table: an item, what is known of it and from where, what came out, and whether that is near enough.

    `compare` is that of its `Expected`: with `above` and `below` the value is a bound, or stands for an order.
    """

    key: str
    item: str
    published: float | None
    compare: str
    basis: str
    ours: float | None
    tolerance: float
    within: bool | None
    reason: str

    @property
    def verdict(self) -> str:
        """`true`, `false`, `not reproducible`, or `nothing published` to compare ours with."""
        if self.within is None:
            return "not reproducible" if self.ours is None else "nothing published"
        return str(self.within).lower()

    def to_json(self) -> dict[str, object]:
        """The row as `tcpsbed reproduce --json` prints it."""
        return {
            "item": self.item,
            "key": self.key,
            "published": self.published,
            "compare": self.compare,
            "basis": self.basis,
            "ours": self.ours,
            "tolerance": self.tolerance,
            "within": self.verdict if self.within is None else self.within,
            "reason": self.reason,
        }


@dataclass
class Study:
    """What a work is given to run its experiments with.

    Parameters
    ----------
    work : str
        Its name.
    out : Path, optional
        Folder of the figures; absent: none are drawn.
    full : bool
        False: short sweeps, for tests.
    tell : callable
        Hears of every case that is done.
    world : str
        Where its runs take place, unless one says otherwise.
    clock : bool
        Whether a full study may take minutes of the machine's clock.
    """

    work: str
    out: Path | None
    full: bool = True
    tell: Callable[[str], None] = lambda _: None
    world: str = VIRTUAL
    clock: bool = True
    rows: list[Row] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expected: dict[str, Expected] = load(self.work)

    def compare(self, key: str, ours: float, note: str = "") -> Row:
        """Adds the row of an item that came out as `ours`; where nothing is published, `note` says why.

        What is no number (the median of nothing) is nothing that could be compared: the row says so.
        """
        e = self._item(key)
        value = float(ours)
        if math.isnan(value):
            return self.cannot(key, NOTHING)
        row = Row(
            key, e.item, e.published, e.compare, e.basis, value, e.tolerance, e.holds(value), note or e.why
        )
        self.rows.append(row)
        return row

    def cannot(self, key: str, reason: str) -> Row:
        """Adds the row of an item that cannot be reproduced, with the reason."""
        e = self._item(key)
        row = Row(key, e.item, e.published, e.compare, e.basis, None, e.tolerance, None, reason)
        self.rows.append(row)
        return row

    def leave_out(self, keys: Iterable[str]) -> None:
        """Adds the rows of items that take minutes of the machine's clock, which this study is not to take."""
        reason = f"takes minutes of the machine's clock, which only `tcpsbed reproduce {self.work}` does"
        for key in keys:
            self.cannot(key, reason)

    def _item(self, key: str) -> Expected:
        if key not in self.expected:
            raise DataError("has no entry in tests/paper/expected.toml", key=f"{self.work}.{key}")
        return self.expected[key]

    def run(
        self, scenario: str, settings: Sequence[str], read: Callable[[Run], T], world: str | None = None
    ) -> T:
        """Runs a scenario of the tree and reads something off it; the run folder goes away.

        Parameters
        ----------
        scenario
            Its name in `scenarios/`, without `.toml`.
        settings
            Overrides as on the command line.
        read
            Called with the finished run.
        world
            Where; absent: where all runs of the study take place.

        Raises
        ------
        WorldError
            If something failed in a run on the machine's clock.
        """
        from tcpsbed import config, session
        from tcpsbed.analysis import Run

        loaded = config.load(TREE / "scenarios" / f"{scenario}.toml", settings)
        folder = Path(tempfile.mkdtemp(prefix="tcpsbed-reproduce-"))
        try:
            session.execute(loaded, world=world or self.world, out=folder, samples=False)
            run = Run(folder)
            if errors := run.summary["errors"]:
                raise WorldError(f"{scenario}: {errors[0]}")
            return read(run)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def each(self, cases: Iterable[Case], run: Callable[[Case], T]) -> dict[Case, T]:
        """Runs a function on every case, on all cores at once in simulated time; results by case."""
        listed = list(cases)

        def one(case: Case) -> T:
            result = run(case)
            self.tell(f"{self.work}: {case}")
            return result

        width = len(os.sched_getaffinity(0)) if self.world in SIMULATED else 1
        with ThreadPoolExecutor(width) as pool:
            return dict(zip(listed, pool.map(one, listed), strict=True))

    def figure(self, name: str, title: str, draw: Callable[[Figure], None], where: str | None = None) -> None:
        """Draws a figure of runs `where` they were (absent: the study's world); without a folder nothing is drawn."""
        if self.out is None:
            return
        from tcpsbed import __version__

        canvas, blank = drawing()
        figure = blank(figsize=(8, 4.5), layout="constrained")
        canvas(figure)
        draw(figure)
        figure.suptitle(title)
        place = where or f"world {self.world}"
        figure.text(0.995, 0.005, f"tcpsbed {__version__}, {place}", ha="right", size=6, color="gray")
        self.out.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.out / f"{name}.png", dpi=120)
        self.figures.append((name, title))
