"""Which values are best: means over seeds, minimised or maximised by optuna (Akiba et al. 2019), under limits.

```text
optuna (TPE, seeded) ─► 4 points ─► Ground: every point under the same seeds ─► means ─► optuna …
                                    the best point again, under seeds that chose nothing ─► the reported mean
```
The sampler has a seed and points come in batches of a fixed size, so that the same call asks for the same points: those that
have run are not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.frame import Frame, field
from tcpsbed.analysis.stats import Interval
from tcpsbed.campaign.design import Condition
from tcpsbed.campaign.search.asked import Factor
from tcpsbed.campaign.search.found import Context
from tcpsbed.campaign.search.ground import Ground, Runs, Values
from tcpsbed.errors import ConfigError, counted
from tcpsbed.views import markup, text
from tcpsbed.views.markup import Column, words
from tcpsbed.views.metric import Metric

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 4
"""Points that are asked for before the first of them has an answer."""
SAMPLER_SEED = 1


@dataclass(frozen=True)
class Trial:
    """A point that ran: its values, the mean of the metric, means of the limited metrics, whether all limits hold."""

    values: Values
    mean: Interval
    limited: tuple[Interval, ...]
    good: bool


@dataclass(frozen=True)
class Optimum(Frame):
    """Values that are best; `print` shows them, `.to_pandas()` has a row for each point.

    Attributes
    ----------
    context
        Scenario, world, seeds, folder and number of runs.
    factors, metric, minimise, limits
        What was varied; what was minimised, or maximised; what had to hold.
    trials
        Points that ran, in their order.
    best
        The best of those that keep the limits; None if none does.
    fresh
        The best under seeds that chose nothing; None without a best, or if seeds change nothing.
    unchanged
        Whether seeds change nothing at the best.
    """

    context: Context
    factors: tuple[Factor, ...]
    metric: Metric
    minimise: bool
    limits: tuple[Condition, ...]
    trials: tuple[Trial, ...]
    best: Trial | None
    fresh: Trial | None
    unchanged: bool

    @property
    def values(self) -> dict[str, str]:
        """The best values by their keys, as `set` takes them; empty if none keeps the limits."""
        if self.best is None:
            return {}
        return {factor.key: value for factor, value in zip(self.factors, self.best.values, strict=True)}

    @property
    def sentences(self) -> list[str]:
        """The result first, then what a reader has to know about it."""
        of = self.metric.column
        cost = f"{self.context.spent(len(self.trials))}."
        cost = " ".join([*self.context.remarks, cost])
        if self.best is None:
            limits = " and ".join(one.text for one in self.limits)
            return [f"NO optimum: {limits} holds at none of the points.", cost]
        place = ", ".join(f"{key} = {value}" for key, value in self.values.items())
        way = "least" if self.minimise else "greatest"
        shown, unit = self.fresh or self.best, f" {of.unit}".rstrip()
        half = "" if shown.mean.half is None else f" ± {of.shown(shown.mean.half)}"
        found = [f"{self.metric.path} is {way} at {place}: {of.shown(shown.mean.mean)}{half}{unit}."]
        if self.fresh is not None:
            found.append(
                f"That is the mean under {counted(self.fresh.mean.n, 'seed')} that chose nothing, with its 95 % interval; "
                f"under those that chose it, it is {of.shown(self.best.mean.mean)}{unit}."
            )
            if not self.fresh.good:
                found.append("Under these seeds a limit is not kept: take more --seeds.")
        if self.unchanged:
            found.append("Seeds change nothing there: two runs, and no interval.")
        return [
            *found,
            "A better point may lie between those that ran.",
            cost,
        ]

    @property
    def figures(self) -> dict[str, Any]:
        """The content of `search.json`."""
        return self.context.figures | {
            "metric": self.metric.path,
            "minimise": self.minimise,
            "limits": [one.text for one in self.limits],
            "factors": [one.figures for one in self.factors],
            "sentences": self.sentences,
            "best": self.values,
            "unchanged": self.unchanged,
            "found": None if self.best is None else _plain(self.best),
            "fresh": None if self.fresh is None else _plain(self.fresh),
            "points": [_plain(one) for one in self.trials],
        }

    def to_arrow(self) -> pa.Table:
        """A row for each point: values of the factors (numbers in their unit, or names), seeds, mean, half width, kept."""
        import pyarrow

        number, word, unit = pyarrow.float64(), pyarrow.string(), self.metric.column.metric.unit
        fields = [field(one.key, number if one.between else word, one.unit) for one in self.factors]
        fields += [field("seeds", pyarrow.int64()), field(self.metric.key, number, unit)]
        fields += [field(f"{self.metric.key}_ci95", number, unit), field("kept", pyarrow.bool_())]
        names, rows = [one.name for one in fields], []
        for one in self.trials:
            pairs = zip(self.factors, one.values, strict=True)
            cells = [factor.number(value) if factor.between else value for factor, value in pairs]
            rows.append([*cells, one.mean.n, one.mean.mean, one.mean.half, one.good])
        return pyarrow.Table.from_pylist(
            [dict(zip(names, row, strict=True)) for row in rows], pyarrow.schema(fields)
        )

    @property
    def table(self) -> tuple[list[Column], list[list[str]]]:
        """The ten best points."""
        of = self.metric.column
        columns = [*(words(one.key) for one in self.factors), Column("seeds"), Column(of.title, of.unit)]
        columns += [Column("±", of.unit), words("limits")]
        sign = 1 if self.minimise else -1
        once = {one.values: one for one in self.trials}.values()
        ordered = sorted(once, key=lambda one: (not one.good, sign * one.mean.mean))
        lines = [
            [
                *one.values,
                str(one.mean.n),
                of.shown(one.mean.mean),
                of.shown(one.mean.half),
                ("kept" if one.good else "broken") if self.limits else "",
            ]
            for one in ordered[:10]
        ]
        return columns, lines

    def draw(self, file: Path | str, style: str = "page", *, force: bool = False) -> Path:
        """Draws the course of the search into a file, as of `Found.draw`; needs matplotlib.

        Raises
        ------
        ConfigError, DataError
            If the file may not be overwritten, or matplotlib is not installed.
        """
        from tcpsbed.campaign.search import picture

        return picture.course(self, Path(file), style, force=force)

    def __str__(self) -> str:
        return f"{text.table(*self.table)}\n{chr(10).join(self.sentences)}"

    def _repr_html_(self) -> str:
        head, *rest = self.sentences
        return f"<p><b>{markup.escaped(head)}</b></p>{markup.listing(rest)}{markup.table(*self.table)}"


def _plain(one: Trial) -> dict[str, Any]:
    means = {"n": one.mean.n, "mean": one.mean.mean, "ci95": one.mean.half}
    limited = [(of.n, of.mean, of.half) for of in one.limited]
    return {"values": one.values, **means, "limited": limited, "kept": one.good}


def optuna() -> Any:
    """The package.

    Raises
    ------
    ConfigError
        If it is not installed.
    """
    try:
        import optuna as found
    except ImportError:
        remedy = "pip install 'tcpsbed[search]'; a boundary (--until) does without"
        raise ConfigError("needs the package optuna", key="--minimise", allowed=remedy) from None
    found.logging.set_verbosity(found.logging.ERROR)
    return found


def optimised(
    ground: Ground,
    factors: Sequence[Factor],
    metric: Metric,
    limits: Sequence[Condition],
    *,
    minimise: bool,
    trials: int,
    seeds: int,
) -> tuple[list[Trial], Trial | None, Trial | None, bool]:
    """Searches; all trials, the best, the best under fresh seeds, and whether seeds change nothing there."""

    def judged(runs: Runs, first: int = 0) -> Trial:
        means = [
            one.interval(runs.numbers(one)[first:]) for one in (metric, *(limit.metric for limit in limits))
        ]
        good = all(limit.holds(mean.mean) for limit, mean in zip(limits, means[1:], strict=True))
        return Trial(runs.values, means[0], tuple(means[1:]), good)

    study = _study(minimise, limits)
    done: list[Trial] = []
    while len(done) < trials:
        asked = [study.ask() for _ in range(min(AT_ONCE, trials - len(done)))]
        points = [tuple(_drawn(one, factor) for factor in factors) for one in asked]
        measured = ground.measure(list(dict.fromkeys(points)), seeds)
        for one, point in zip(asked, points, strict=True):
            found = judged(measured[point])
            pairs = zip(limits, found.limited, strict=True)
            one.set_user_attr("over", [_over(limit, mean.mean) for limit, mean in pairs])
            study.tell(one, found.mean.mean)
            done.append(found)
    sign: Callable[[Trial], float] = lambda one: one.mean.mean if minimise else -one.mean.mean  # noqa: E731
    best = min((one for one in done if one.good), key=sign, default=None)
    if best is None:
        return done, None, None, False
    again = ground.measure([best.values], 2 * seeds)[best.values]
    return done, best, None if again.unchanged else judged(again, seeds), again.unchanged


def _study(minimise: bool, limits: Sequence[Condition]) -> Any:
    import warnings

    package = optuna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = package.samplers.TPESampler(
            seed=SAMPLER_SEED,
            constant_liar=True,
            constraints_func=(lambda trial: trial.user_attrs["over"]) if limits else None,
        )
    return package.create_study(direction="minimize" if minimise else "maximize", sampler=sampler)


def _over(limit: Condition, mean: float) -> float:
    """By how much a limit is broken; 0 or less: it holds."""
    beyond = limit.limit - mean if limit.sign.startswith(">") else mean - limit.limit
    return beyond if limit.holds(mean) == (beyond <= 0) else abs(beyond) or 1e-12


def _drawn(trial: Any, factor: Factor) -> str:
    if factor.between is None:
        return str(trial.suggest_categorical(factor.key, factor.values))
    if factor.values:
        return factor.values[int(trial.suggest_int(factor.key, 0, factor.cells))]
    return factor.between.at(trial.suggest_float(factor.key, 0.0, 1.0))
