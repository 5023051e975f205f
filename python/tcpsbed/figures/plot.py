"""One call from folders to a figure: which kind, of what, in which style."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import documents, drawing, inputs
from tcpsbed.drawing import STYLES, Origin, Style, shapes
from tcpsbed.errors import DataError
from tcpsbed.figures import course, lines, picture, spread
from tcpsbed.figures import material as reading
from tcpsbed.figures.material import Material
from tcpsbed.figures.picture import Picture
from tcpsbed.figures.quantities import Quantity, quantity
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {
    "lines": "means with 95 % bands over a factor",
    "cdf": "share of samples up to a delay",
    "ccdf": "share of samples beyond a delay, logarithmic",
    "box": "quartiles of samples, or across seeds",
    "violin": "densities of the same",
    "heat": "means over two factors of a sweep",
    "waterfall": "where the time goes",
    "time": "curves over time",
}
LOGS = ("x", "y", "xy")


@dataclass(frozen=True, repr=False)
class Drawn:
    """A figure, drawn when it is asked for.

    Attributes
    ----------
    panels
        Its parts, one for each unit.
    origin
        Its title, command, seeds and versions.
    notes
        What is missing or amiss in the runs.
    """

    panels: tuple[Picture, ...]
    origin: Origin
    notes: tuple[str, ...]
    style: Style
    wide: bool
    log: str

    @cached_property
    def figure(self) -> Figure:
        """The figure of matplotlib."""
        with drawing.styled(self.style):
            count = len(self.panels)
            found: Figure = drawing.canvas(self.style, wide=self.wide, panels=count)
            places = list(found.subplots(*((1, count) if self.wide else (count, 1)), squeeze=False).flat)
            for axes, one in zip(places, self.panels, strict=True):
                self._draw(axes, one)
                if not self.wide and one is not self.panels[-1]:
                    axes.set_xlabel("")
            drawing.keyed(found, places[0], self.panels[0].legend)
        return found

    def _draw(self, axes: Any, picture: Picture) -> None:
        axes.set(xlabel=picture.x, ylabel=picture.y)
        picture.draw(axes, self.style)
        for letter in self.log:
            try:
                shapes.logarithmic(axes, letter)
            except ValueError:
                amiss = f"found 0 or less on the {letter} axis, which is logarithmic"
                raise DataError(amiss, key="--log", allowed="only values above 0, or no --log") from None

    def save(self, file: Path | str, *, force: bool = False) -> Path:
        """Writes it as PDF, SVG, PGF or PNG, by the ending of the name."""
        drawing.drawable(Path(file), force=force, key="--out")
        with drawing.styled(self.style):
            return drawing.saved(self.figure, Path(file), self.origin, dpi=self.style.dpi)

    @property
    def latex(self) -> str:
        """The plotted numbers with their intervals as a table in LaTeX.

        Raises
        ------
        DataError
            If they are curves over time.
        """
        if not all(one.rows for one in self.panels):
            allowed = "another --kind, or series.json, which has every point"
            raise DataError(
                "a curve over time has too many points for a table", key="--latex", allowed=allowed
            )
        return "\n".join(picture.latex(one, self.origin) for one in self.panels)

    def __repr__(self) -> str:
        return f"Figure: {self.origin.title}"

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        with drawing.styled(self.style):
            self.figure.savefig(content, format="png", dpi=self.style.dpi)
        return content.getvalue()


def plot(
    *folders: Path | str,
    kind: str | None = None,
    y: str | Iterable[str] = (),
    x: str | None = None,
    by: str | Iterable[str] = (),
    where: str | Iterable[str] = (),
    labels: str | Iterable[str] = (),
    style: str = "ieee",
    wide: bool = False,
    log: str = "",
) -> Drawn:
    """Makes a figure from folders of runs, or of sweeps.

    Parameters
    ----------
    folders
        Finished runs, or sweeps with the same factors.
    kind
        One of `KINDS`; absent: `lines` of a sweep or where `y` is a number, otherwise `cdf`.
    y
        Metrics by their paths, such as `haptic.delay_ms.p99`; of a `waterfall` the name of a flow. Lines of metrics with
        different units get a panel each, below each other, or beside each other where the figure is `wide`.
    x, by
        Factors of a sweep: of the x axis, and of the lines. Their last words are enough.
    where
        Values of factors that are drawn: `transport=udp,dpm`.
    labels
        New names of folders, values, factors and metrics: `runs/a=UDP`.
    style
        One of `drawing.STYLES`.
    wide
        Whether it is as wide as both columns.
    log
        Logarithmic axes: `x`, `y` or `xy`.

    Raises
    ------
    ConfigError
        If something is no text.
    DataError
        If there is nothing to draw, with the remedy.

    Examples
    --------
    >>> import tcpsbed
    >>> tcpsbed.plot("runs/udp", "runs/dpm", kind="ccdf").save("delay.pdf")  # doctest: +SKIP
    """
    if not folders:
        raise DataError(
            "found no folder", key="plot", allowed="folders of runs or sweeps, such as runs/latest"
        )
    for key, found, known in (("--kind", kind, KINDS), ("--style", style, STYLES), ("--log", log, LOGS)):
        inputs.texts(found or (), key, next(iter(known)))
        if found and found not in known:
            raise DataError(f'found "{found}"', key=key, allowed=close_match(found, known))
    inputs.texts(() if x is None else x, "--x", "links.l1.rate")
    paths, factors, chosen, names = (
        inputs.texts(given, key, example)
        for given, key, example in (
            (y, "--y", "haptic.delay_ms.p99"),
            (by, "--by", "transport"),
            (where, "--where", "transport=udp,dpm"),
            (labels, "--label", "runs/a=UDP"),
        )
    )
    material = reading.read([inputs.path(folder, "plot") for folder in folders]).renamed(names).only(chosen)
    with documents.trusted(" or ".join(map(str, folders))):
        kind = kind or _kind(material, paths)
        panels = _panels(material, kind, paths, x, factors)
    command = ["tcpsbed", "plot", *map(str, folders), "--kind", kind]
    options = [
        ("--y", paths),
        ("--x", [x] if x else []),
        ("--by", factors),
        ("--where", chosen),
        ("--label", names),
    ]
    command += [word for option, values in options for value in values for word in (option, value)]
    command += ["--style", style, *["--wide"] * wide, *(["--log", log] if log else [])]
    notes = tuple(dict.fromkeys([*material.notes, *(note for one in panels for note in one.notes)]))
    title = "; ".join(one.title for one in panels)
    origin = Origin(title, shlex.join(command), (*_facts(material, panels[0].first), *notes))
    return Drawn(panels, origin, notes, STYLES[style], wide, log)


def _kind(material: Material, paths: Sequence[str]) -> str:
    """Lines for a sweep, and for numbers of runs; otherwise the distribution of delays."""
    if material.swept:
        return "lines"
    number = paths and not quantity(paths[0], material.summary).spread
    return "lines" if number else "cdf"


def _panels(
    material: Material, kind: str, paths: Sequence[str], x: str | None, by: Sequence[str]
) -> tuple[Picture, ...]:
    """Of lines a panel for each unit, where each has one metric; otherwise one."""
    if kind == "lines" and len(paths) > 1:
        units = [one.unit for one in _wanted(material, kind, paths)]
        if len(set(units)) == len(units):
            return tuple(_picture(material, kind, [path], x, by) for path in paths)
    return (_picture(material, kind, paths, x, by),)


def _picture(
    material: Material, kind: str, paths: Sequence[str], x: str | None, by: Sequence[str]
) -> Picture:
    if x and kind not in ("lines", "heat"):
        raise DataError(
            f'found "{x}" for --kind {kind}', key="--x", allowed="--kind lines or heat, or no --x"
        )
    if by and kind not in ("lines", "heat", "waterfall"):
        allowed = "--kind lines, heat or waterfall, or no --by"
        raise DataError(f'found "{by[0]}" for --kind {kind}', key="--by", allowed=allowed)
    if kind == "waterfall":
        return course.waterfall(material, paths, by)
    y = _wanted(material, kind, paths)
    if kind == "lines":
        return lines.lines(material, y, x, by)
    if kind == "heat":
        return lines.heat(material, y, x, by)
    if kind == "time":
        return course.over_time(material, y)
    if kind in ("cdf", "ccdf"):
        return spread.cumulative(material, y, beyond=kind == "ccdf")
    return spread.boxes(material, y, violin=kind == "violin")


def _wanted(material: Material, kind: str, paths: Sequence[str]) -> list[Quantity]:
    """The metrics of a figure; without any the delays of all flows, and over several factors those of the first."""
    if not paths:
        flows = list(material.summary["flows"])
        if not flows:
            raise DataError("found no flow", key="--y", allowed="a run with flows")
        several = sum(len(one.values) > 1 for one in material.factors) > 1
        number = kind == "heat" or kind == "lines" or material.swept
        chosen = flows[:1] if kind == "heat" or (number and several) else flows
        paths = [f"{flow}.delay_ms{'.p99' * number}" for flow in chosen]
    found = [quantity(path, material.summary) for path in paths]
    for one in material.runs:
        for path in paths:
            if one.summary is not material.summary:
                _refuse_absent(path, one)
    return found


def _refuse_absent(path: str, one: reading.One) -> None:
    """Names the run that lacks a metric which the first has."""
    try:
        quantity(path, one.summary)
    except DataError as error:
        where = one.folder.path if one.folder else f"the cell {', '.join(one.values)}, seed {one.seed}"
        raise DataError(f"{where} has no {path}", key="--y", allowed=error.allowed) from None


def _facts(material: Material, first: bool) -> list[str]:
    """Seeds, worlds and versions of the runs that are drawn."""
    seeds = sorted({one.seed for one in material.runs if one.folder or not first})
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    told = f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))
    versions = dict.fromkeys(
        " ".join(filter(None, ["tcpsbed", found.get("tcpsbed"), found.get("commit")]))
        for one in material.runs
        if (found := one.summary.get("versions") or {})
    )
    worlds = dict.fromkeys(str(one.summary.get("world")) for one in material.runs)
    scenarios = dict.fromkeys(str(one.summary.get("name")) for one in material.runs)
    return [
        f"scenario {', '.join(scenarios)}",
        f"world {', '.join(worlds)}",
        f"seed{'s' if len(seeds) > 1 else ''} {told}",
        f"measured by {', '.join(versions)}",
    ]
