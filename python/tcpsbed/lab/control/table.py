"""Results of the step experiment, as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from statistics import stdev
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.stats import interval
from tcpsbed.lab.control.loci import AxesMargins
from tcpsbed.lab.control.response import Response
from tcpsbed.lab.control.verdict import Limits, reliability
from tcpsbed.views import text as tables
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import NONE
from tcpsbed.views.tables import Table

if TYPE_CHECKING:
    from tcpsbed.lab.control.experiment import Experiment

UNSTABLE = 10_000.0
"""Overshoot or undershoot in percent of the step beyond which a loop has not held its quantity at all."""
_FIGURES = tuple(field.name for field in fields(Response))
FIGURES = {
    "rise_ms": Column("rise time", "ms"),
    "overshoot": Column("overshoot", "%"),
    "undershoot": Column("undershoot", "%"),
    "settling_ms": Column("settling", "ms"),
    "error": Column("error", "%"),
}
"""The figures of a response as columns; percent are of the step."""


def entry(name: str, experiment: Experiment, limits: Limits) -> dict[str, Any]:
    """One setting: its loop, the statistics of its figures, its reliability, and every run."""
    loop = experiment.loop
    found = reliability(experiment.responses, limits)
    return {
        "name": name,
        "loop": {
            "component": loop.name,
            "c": loop.step.c,
            "t0_ms": loop.step.t0_ms,
            "period_ms": loop.period_ms,
            "kp": loop.kp,
            "ki_per_ms": loop.ki_per_ms,
            "disturbance": loop.step.disturbance,
            **({"axes": loop.axes, "axis": loop.step.axis + 1} if loop.axes > 1 else {}),
        },
        "margins": None if experiment.margins is None else asdict(experiment.margins),
        "figures": {name: statistics(experiment.responses, name) for name in _FIGURES}
        | ({"coupling": spread([one.coupling for one in experiment.curves])} if loop.axes > 1 else {}),
        "reliability": {
            "good": found.good,
            "runs": found.runs,
            "share": found.share,
            "ci95": [found.low, found.high],
        },
        "seen": None if experiment.seen is None else asdict(experiment.seen),
        "runs": [
            asdict(c.response)
            | {"disturbed": list(c.disturbed)}
            | ({"coupling": c.coupling} if loop.axes > 1 else {})
            for c in experiment.curves
        ],
        "undisturbed": {
            "runs": len(experiment.undisturbed),
            "figures": {name: statistics(experiment.undisturbed, name) for name in _FIGURES},
        },
    }


def statistics(responses: Sequence[Response], figure: str) -> dict[str, float | int | None]:
    """Number, mean, half the 95 % interval of that, deviation and extremes of a figure where it is defined."""
    return spread([float(getattr(response, figure)) for response in responses])


def spread(every: Sequence[float]) -> dict[str, float | int | None]:
    """The same of values."""
    values = [v for v in every if math.isfinite(v)]
    if not values:
        return {"n": 0, "mean": None, "ci95": None, "sd": None, "min": None, "max": None}
    mean, sd = interval(values), stdev(values) if len(values) > 1 else None
    return {
        "n": mean.n,
        "mean": mean.mean,
        "ci95": mean.half,
        "sd": sd,
        "min": min(values),
        "max": max(values),
    }


def plain(value: Any) -> Any:
    """The value with numbers that JSON does not know as null."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def text(experiments: Sequence[tuple[str, Experiment]], limits: Limits) -> str:
    """The table for the terminal, and what is said below it."""
    found = laid(experiments, limits)
    return f"{tables.table(found.columns, found.rows)}\n{said(experiments, limits)}"


def laid(experiments: Sequence[tuple[str, Experiment]], limits: Limits) -> Table:
    """Means with their 95 % intervals over the runs, and the verdict."""
    figures = (FIGURES[name] for name in _FIGURES)
    seen = (Column("seen late by", "ms"), Column("off by", ""))
    theory = (Column("gain margin", ""), Column("delay margin", "ms"), Column("disk margin", ""))
    moved = Column("coupling", "%")
    columns = (words("setting"), *figures, moved, words("good"), words("95 %"), *seen, *theory)
    rows = (tuple(_row(name, experiment, limits)) for name, experiment in experiments)
    return Table("Settings", columns, tuple(rows))


def said(experiments: Sequence[tuple[str, Experiment]], limits: Limits) -> str:
    """What the table means, and what to doubt in it."""
    return (
        f"±: half the 95 % interval of the mean\ngood: {limits}\n"
        + _theory(experiments)
        + _critical(experiments, limits)
        + disturbed(experiments)
        + unstable(experiments)
        + lasting(experiments)
        + too_short(experiments)
    )


def _theory(experiments: Sequence[tuple[str, Experiment]]) -> str:
    """Of which loop the margins are."""
    loops = [one.loop for _, one in experiments if one.margins is not None]
    is_lossy = any(one.loop.is_lossy for _, one in experiments)
    drops = "; a loss of p each way acts as 2 p / (1 - p) ticks of delay" if is_lossy else ""
    least_ms = max((loop.period_ms for loop in loops if (loop.delay_ms or 0.0) < loop.period_ms), default=0.0)
    tick = f"; an RTT below a tick of {least_ms:g} ms counts as one" if least_ms else ""
    return f"margins: by theory, without loss{loops[0].step.left}{drops}{tick}\n" if loops else ""


def lasting(experiments: Sequence[tuple[str, Experiment]]) -> str:
    """The axes whose error stays by theory, of each setting; nothing where there are none."""
    from tcpsbed.lab.control.loci import AxesMargins

    lines = []
    for name, experiment in experiments:
        margins = experiment.margins
        if isinstance(margins, AxesMargins) and margins.lasting:
            place = f" of {name}" if name else ""
            lines.append(f"KEEPS AN ERROR{place}, by theory: {', '.join(margins.lasting)}\n")
    return "".join(lines)


def too_short(experiments: Sequence[tuple[str, Experiment]]) -> str:
    """The settings in which no run lasts until h has risen, with a duration that would do; nothing where there are none."""
    lines = []
    for name, experiment in experiments:
        rising = all(math.isnan(one.rise_ms) and one.overshoot < UNSTABLE for one in experiment.responses)
        if rising and experiment.curves:
            end_ms = max(float(curve.t_ms[-1]) for curve in experiment.curves)
            lines.append(
                f"TOO SHORT: h reaches 90 % of the step in no run{f' of {name}' if name else ''} within {end_ms:.0f} ms; "
                f"{_remedy(experiment, end_ms)}\n"
            )
    return "".join(lines)


def _remedy(experiment: Experiment, end_ms: float) -> str:
    from tcpsbed.lab.control.batch import Bench, Cell
    from tcpsbed.lab.control.identified import with_linear
    from tcpsbed.lab.control.length import remedy

    loop = experiment.loop
    if experiment.margins is None or loop.delay_ms is None:
        return f'try a longer one, such as --duration "{2 * end_ms / 1e3:.2g} s"'
    half, linear = loop.delay_ms / 2, with_linear(loop, loop.period_ms)[0]
    cell = Cell(loop.period_ms, half, half, loop.kp or 0.0, loop.ki_per_ms or 0.0, controller=loop.law)
    return remedy(Bench(linear.step, 1, end_ms, axes=(linear.step.axis,)), cell)[1]


def unstable(experiments: Sequence[tuple[str, Experiment]]) -> str:
    """Settings that are unstable by theory, and how many runs of each swung ever more; nothing where none did."""
    beyond = [name for name, one in experiments if one.margins is not None and not one.margins.stable]
    where = f" at {'; '.join(filter(None, beyond))}" if any(beyond) else ""
    lines = [f"UNSTABLE by theory{where}\n"] if beyond else []
    for name, experiment in experiments:
        wild = sum(not one.overshoot < UNSTABLE or one.undershoot >= UNSTABLE for one in experiment.responses)
        if wild:
            lines.append(
                f"UNSTABLE: h left its step by a hundred times its size in {wild} of {len(experiment.curves)} runs"
                f"{f' of {name}' if name else ''}; tcpsbed tune finds gains for a round trip\n"
            )
    return "".join(lines)


def disturbed(experiments: Sequence[tuple[str, Experiment]]) -> str:
    """How many runs of each setting were disturbed, and by what first; nothing where none was."""
    lines = []
    for name, experiment in experiments:
        hit = [curve for curve in experiment.curves if curve.disturbed]
        if hit:
            calm = [statistics(experiment.undisturbed, figure)["mean"] for figure in ("rise_ms", "overshoot")]
            rest = (
                ""
                if calm[0] is None or calm[1] is None
                else f"; the others rise in {calm[0]:.1f} ms and overshoot by {calm[1]:.1f} %"
            )
            lines.append(
                f"DISTURBED: {len(hit)} of {len(experiment.curves)} runs{f' of {name}' if name else ''}, the first"
                f" because {hit[0].disturbed[0]}{rest}\n"
            )
    return "".join(lines)


def _row(name: str, experiment: Experiment, limits: Limits) -> list[str]:
    found = reliability(experiment.responses, limits)
    cells = [_cell(statistics(experiment.responses, figure), name=figure) for figure in _FIGURES]
    interval = f"{100 * found.low:.0f} to {100 * found.high:.0f} %"
    return [
        name,
        *cells,
        _cell(spread([one.coupling for one in experiment.curves])) if experiment.loop.axes > 1 else NONE,
        f"{found.good} of {found.runs}",
        interval,
        *_seen(experiment),
        *_margins(experiment),
    ]


def _seen(experiment: Experiment) -> list[str]:
    seen = experiment.seen
    return [NONE, NONE] if seen is None else [f"{seen.time_ms:.1f}", f"{seen.value:.4f}"]


def _margins(experiment: Experiment) -> list[str]:
    found = experiment.margins
    if found is None:
        return [NONE, NONE, NONE]
    any_delay = NONE if math.isnan(found.delay_ms) else "any" if found.delay_ms > 0 else "none"
    delay = f"{found.delay_ms:.1f}" if math.isfinite(found.delay_ms) else any_delay
    known = found.disk if isinstance(found, AxesMargins) else None
    disk = NONE if known is None else f"{known.alpha:.2f}"
    return [f"{found.gain:.2f}" if math.isfinite(found.gain) else "any", delay, disk]


def _cell(figure: dict[str, float | int | None], name: str = "") -> str:
    mean, half = figure["mean"], figure["ci95"]
    if mean is None:
        return NONE
    if abs(mean) >= UNSTABLE and not name.endswith("_ms"):
        return f"{mean:.1e}"
    return f"{round(mean, 1) + 0.0:.1f}" + (f" ± {half:.1f}" if half else "")


def _critical(experiments: Sequence[tuple[str, Experiment]], limits: Limits) -> str:
    """Where a scenario has several loops, the one that is good least often; of several such, the one that rises last."""
    names = {experiment.loop.name for _, experiment in experiments}
    if len(names) < 2:
        return ""

    def rank(one: tuple[str, Experiment]) -> tuple[float, float]:
        rise = statistics(one[1].responses, "rise_ms")["mean"]
        return reliability(one[1].responses, limits).share, -math.inf if rise is None else -rise

    worst = min(experiments, key=rank)
    return f"critical: {worst[1].loop.name}\n"
