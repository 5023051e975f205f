"""What figures are made from: runs by factors, out of run folders or sweep folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tcpsbed import documents
from tcpsbed.campaign import filling as sweeps
from tcpsbed.campaign import grid
from tcpsbed.campaign.grid import Axis
from tcpsbed.campaign.results import Group
from tcpsbed.campaign.survey import summary_in
from tcpsbed.errors import ConfigError, DataError, counted
from tcpsbed.nearest import close_match, meant
from tcpsbed.scenarios import units
from tcpsbed.views.folder import RunFolder, open_folder, state_of

Number = Callable[[Mapping[str, Any]], float | None]
"""Takes a number out of a summary."""
RUN = "run"
"""The factor of run folders: which of them."""
SWEEP = "sweep"
"""The same of sweeps that are not parts of one."""


@dataclass(frozen=True)
class One:
    """One run: its values of the factors, its seed, its summary; and its folder where that was kept."""

    values: tuple[str, ...]
    seed: int
    summary: Mapping[str, Any]
    folder: RunFolder | None = None


@dataclass(frozen=True)
class Material:
    """Runs by factors.

    Attributes
    ----------
    factors
        Keys and their values in the order in which they are drawn.
    runs
        The runs.
    swept
        Whether they are cells of sweeps, which keep no curves.
    notes
        What is missing or amiss.
    names
        New names of values, keys and paths, by the old.
    """

    factors: tuple[Axis, ...]
    runs: tuple[One, ...]
    swept: bool
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> Mapping[str, Any]:
        """That of the first run."""
        return self.runs[0].summary

    @property
    def kept(self) -> dict[str, RunFolder]:
        """Folders of runs by what they are called.

        Raises
        ------
        DataError
            If two are called the same.
        """
        found = [(self.called(one.values[0]), one.folder) for one in self.runs if one.folder is not None]
        if len(dict(found)) < len(found):
            raise DataError("found one name for two runs", key="--label", allowed="a name for each")
        return dict(found)

    def called(self, name: str) -> str:
        """A value, key or path as the figure names it."""
        plain = name.strip().strip("\"'")
        return self.names.get(name, self.names.get(plain, plain))

    def factor(self, name: str, option: str) -> Axis:
        """A factor by its key, by the end of it (`transport` for `channels.session.transport`), or by its label.

        Raises
        ------
        DataError
            If there is none, or several.
        """
        known = [one.key for one in self.factors]
        found = [one for one in self.factors if one.key == name]
        found = found or [one for one in self.factors if one.key.endswith(f".{name}")]
        found = found or [one for one in self.factors if self.called(one.key) == name]
        if len(found) > 1:
            keys = ", ".join(one.key for one in found)
            raise DataError(f'found "{name}", the end of several factors', key=option, allowed=keys)
        if not found:
            ends = [".".join(key.split(".")[-1 - name.count(".") :]) for key in known]
            what = f'found "{name}", which is not a factor{meant(name, ends)}'
            raise DataError(what, key=option, allowed=", ".join(known))
        return found[0]

    def groups(self, by: Sequence[Axis], number: Number) -> dict[tuple[str, ...], Group]:
        """Runs under several seeds by their values of these factors, with a number of each."""
        places = [self.factors.index(one) for one in by]
        rows: dict[tuple[str, ...], dict[int, dict[str, Any]]] = {}
        for one in self.runs:
            key = tuple(one.values[place] for place in places)
            rows.setdefault(key, {})[one.seed] = {
                "value": number(one.summary),
                "records_sha256": one.summary.get("records_sha256", ""),
            }
        return {key: Group(key, "", by_seed) for key, by_seed in rows.items()}

    def only(self, wanted: Iterable[str]) -> Material:
        """Runs with these values: `KEY=VALUE,VALUE` each.

        Raises
        ------
        DataError
            If a key or a value is not there.
        """
        found = self
        for text in wanted:
            key, equals, _ = text.partition("=")
            if not equals:
                raise DataError(f'found "{text}"', key="--where", allowed="KEY=VALUE, such as transport=udp")
            factor = found.factor(key.strip(), "--where")
            plain = {value.strip().strip("\"'"): value for value in factor.values}
            plain |= {found.called(value): value for value in factor.values}
            chosen = [value.strip("\"'") for value in _values(text)]
            for value in chosen:
                if value not in plain:
                    quoted = (one for one in plain if len(_values(f"of={one}")) > 1)
                    hint = [f"""a value with a comma in quotes: --where '{key}="{one}"'""" for one in quoted][
                        :1
                    ]
                    allowed = "; ".join([close_match(value, plain), *hint])
                    raise DataError(f'found "{value}"', key="--where", allowed=allowed)
            kept = tuple(plain[value] for value in chosen)
            place = found.factors.index(factor)
            factors = tuple(replace(one, values=kept) if one is factor else one for one in found.factors)
            runs = tuple(one for one in found.runs if one.values[place] in kept)
            if not runs:
                left = ",".join(dict.fromkeys(one.values[place] for one in found.runs))
                said = f'found "{text}", which no run has beside the values before it'
                raise DataError(said, key="--where", allowed=f"{factor.key}={left}")
            found = replace(found, factors=factors, runs=runs)
        return found

    def renamed(self, names: Iterable[str]) -> Material:
        """With new names: `OLD=NEW` each.

        Raises
        ------
        DataError
            If it is no pair, or if two factors, or two values of one, are called the same.
        """
        names = list(names)
        pairs = [name.rpartition("=") for name in names]
        for (old, _, new), text in zip(pairs, names, strict=True):
            if not old or not new:
                allowed = "OLD=NEW, such as runs/a=UDP or 'links.l1.rate=Bottleneck rate'"
                raise DataError(f'found "{text}"', key="--label", allowed=allowed)
        new_names = {self._known(old): new for old, _, new in pairs}
        found = replace(self, names={**self.names, **new_names})
        for together in ([one.key for one in self.factors], *(one.values for one in self.factors)):
            met: dict[str, str] = {}
            for name in together if names else ():
                label = found.called(name)
                if (other := met.setdefault(label, name)) != name:
                    said = f'found "{label}" for {other} and for {name}'
                    raise DataError(said, key="--label", allowed="a label for each")
        return found

    def _known(self, name: str) -> str:
        """What is to be renamed: a value, the key of a factor or the end of it, or a path of a metric.

        Raises
        ------
        DataError
            If a figure of these runs can name nothing so.
        """
        values = {
            form for one in self.factors for value in one.values for form in (value, value.strip("\"'"))
        }
        known = [*(one.key for one in self.factors), *values, *self.names]
        part = name.partition(".")[0]
        if name in known or any(part in one.summary or part in one.summary["flows"] for one in self.runs):
            return name
        ends = [key for key in known if key.endswith(f".{name}")]
        if len(ends) == 1:
            return ends[0]
        raise DataError(
            f'found "{name}"{meant(name, known)}', key="--label", allowed="a factor, a value or a metric"
        )


def read(folders: Sequence[Path]) -> Material:
    """The runs in these folders, of runs or of sweeps.

    Raises
    ------
    DataError
        If a folder holds no results, or if there are both kinds.
    """
    swept = [(folder / sweeps.DESCRIPTION).is_file() for folder in folders]
    if any(swept) and not all(swept):
        found = f"found a sweep ({folders[swept.index(True)]}) beside a run ({folders[swept.index(False)]})"
        raise DataError(found, key="plot", allowed="folders of runs, or folders of sweeps")
    return _sweeps(folders) if swept[0] else _runs(folders)


def _runs(folders: Sequence[Path]) -> Material:
    runs: list[One] = []
    notes: list[str] = []
    texts = [str(folder) for folder in folders]
    if len(set(texts)) < len(texts):
        raise DataError("found a folder twice", key="plot", allowed="each folder once")
    for folder, text in zip(folders, texts, strict=True):
        with documents.trusted(folder):
            run = open_folder(folder)
            runs.append(One((text,), run.summary["seed"], run.summary, run))
            seeds = folder / "seeds"
            if (seeds / sweeps.DESCRIPTION).is_file():
                cells, _ = _cells(seeds)
                runs += [replace(one, values=(text,)) for one in cells]
        notes += [f"{folder} was disturbed" for _ in run.summary.get("disturbances", ())][:1]
    ends = [folder.name for folder in folders]
    short = dict(zip(texts, ends, strict=True)) if len(set(ends)) == len(ends) else {}
    return Material((Axis(RUN, tuple(texts)),), tuple(runs), False, tuple(notes), short)


def _sweeps(folders: Sequence[Path]) -> Material:
    found = []
    for folder in folders:
        with documents.trusted(folder):
            found.append(_cells(folder))
    axes = found[0][1].survey.axes
    if any(one.survey.axes != axes for _, one in found[1:]):
        raise DataError(
            "found sweeps over different factors", key="plot", allowed="sweeps with the same --over"
        )
    together = _together([sweep for _, sweep in found])
    notes, runs = [], []
    for folder, (cells, _) in zip(folders, found, strict=True):
        if not cells:
            raise DataError(
                "has no finished cell", file=folder, allowed="run the same tcpsbed sweep again; it resumes"
            )
        if missing := state_of(folder):
            notes.append(f"{folder}: {missing}")
        if amiss := sum(bool(one.summary.get("disturbances")) for one in cells):
            notes.append(f"{folder}: {counted(amiss, 'run')} disturbed")
        several = () if together else (str(folder),)
        runs += [replace(one, values=(*one.values, *several)) for one in cells]
    more = () if together else (Axis(SWEEP, tuple(map(str, folders))),)
    names = found[0][1].survey.design.labels
    return Material((*axes, *more), tuple(runs), True, tuple(notes), names)


def _together(sweeps_: Sequence[sweeps.Filling]) -> bool:
    """Whether sweeps are parts of one: they differ only in their seeds, and share none."""
    surveys = [one.survey for one in sweeps_]
    kinds = {
        (one.file.name, one.world, tuple(text for text in one.settings if not text.startswith("seed=")))
        for one in surveys
    }
    seeds = [seed for one in surveys for seed in one.seeds]
    return len(kinds) == 1 and len(set(seeds)) == len(seeds)


def _cells(folder: Path) -> tuple[list[One], sweeps.Filling]:
    """The cells of a sweep that have a result."""
    sweep = sweeps.filling(folder)
    found = []
    for key, cell in sweep.keys.items():
        file = folder / "cells" / f"{key}.json"
        summary = summary_in(file) if file.is_file() else None
        if summary is not None:
            found.append(One(cell.values, cell.seed, summary))
    return found, sweep


def _values(text: str) -> tuple[str, ...]:
    """The values of `KEY=VALUE,VALUE`."""
    try:
        return grid.axis(text).values
    except ConfigError as error:
        raise DataError(error.found, key="--where", allowed=error.allowed) from None


def numbers(values: Sequence[str]) -> tuple[list[float], str] | None:
    """Values of a factor as numbers with a common unit, that of the largest; none if they are no numbers."""
    plain = [value.strip().strip("\"'") for value in values]
    if found := Axis("", tuple(plain)).numbers():
        return found
    kind, *others = map(units.dimension_of, plain)
    if kind is None or any(other is not kind for other in others):
        return None
    base = [units.read(value, kind, signed=True) for value in plain]
    unit = plain[base.index(max(base))].lstrip("+-.0123456789eE ")
    return [float(one / kind.units[unit]) for one in base], unit
