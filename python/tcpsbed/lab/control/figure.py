"""Figures of step responses: the curves with their envelope, and stability maps."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.drawing import canvas, keyed, saved, styled
from tcpsbed.lab.control.verdict import Limits
from tcpsbed.palette import PALETTE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.experiment import Experiment
    from tcpsbed.lab.control.prediction import Score
    from tcpsbed.lab.control.stability import StabilityMap
    from tcpsbed.lab.control.theory import LoopModel
    from tcpsbed.lab.control.verification import Point

CAPTION = 110
"""Letters in a line of a caption."""
ROUNDS = ("-", "-.", ":")
"""Lines of settings beyond those that have a colour to themselves."""
MOST_CURVES = 40
"""Single curves drawn; of more, only the envelope."""


@styled()
def responses(
    experiments: Sequence[tuple[str, Experiment]], limits: Limits, caption: str, file: Path
) -> Path:
    """Draws the curves of settings with their envelopes and the limit of the overshoot.

    Parameters
    ----------
    experiments
        Each with what it is called.
    limits
        Their lines are drawn.
    caption
        What, where, and with which seed.
    file
        The figure; the ending says which kind.
    """
    figure, axes = plot(caption)
    for number, (name, experiment) in enumerate(experiments):
        around, color = divmod(number, len(PALETTE))
        known_ms = experiment.loop.delay_ms
        label = name or ("median" if known_ms is None else f"RTT {known_ms:g} ms")
        _curves(axes, experiment, PALETTE[color], ROUNDS[around % len(ROUNDS)], label)
    step = experiments[0][1].loop.step
    for share, line, label in (
        (limits.overshoot / 100, "--", f"overshoot of {limits.overshoot:g} %"),
        (-0.1, ":", "90 % of the step"),
    ):
        axes.axhline(1 + share * step.height, color="0.4", linestyle=line, linewidth=0.8, label=label)
    axes.set_xlabel("time from the step, ms")
    axes.set_ylabel("h")
    keyed(figure, axes)
    return saved(figure, file)


def _curves(axes: Any, experiment: Experiment, color: str, line: str, name: str) -> None:
    import numpy as np

    t, table = resampled(experiment)
    low, middle, high = np.percentile(table, [0, 50, 100], axis=0)
    axes.fill_between(t, low, high, color=color, alpha=0.15, linewidth=0, step="post")
    if len(table) <= MOST_CURVES:
        for row in table:
            axes.plot(t, row, color=color, alpha=0.25, linewidth=0.5, drawstyle="steps-post")
    axes.plot(t, middle, line, color=color, linewidth=1.5, label=name, drawstyle="steps-post")
    for other in (axis for axis in range(experiment.loop.axes) if axis != experiment.loop.step.axis):
        moved = np.median(resampled(experiment, other)[1], axis=0)
        axes.plot(t, moved, color=color, linewidth=0.8, linestyle="--", drawstyle="steps-post")


def resampled(
    experiment: Experiment, axis: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All curves of an experiment at the same times, of the axis that jumps or of another.

    Returns
    -------
    tuple
        Times from the step in ms, shape (n,), and h, shape (runs, n).
    """
    import numpy as np

    curves, step = experiment.curves, experiment.loop.step
    end = min(float(curve.t_ms[-1]) for curve in curves)
    grid = np.arange(max(0.0, step.t0_ms - 20), end, 1.0)
    place = step.axis if axis is None else axis
    rows = [c.axes[np.maximum(np.searchsorted(c.t_ms, grid, side="right") - 1, 0), place] for c in curves]
    return grid - step.t0_ms, np.array(rows)


def plot(caption: str) -> tuple[Any, Any]:
    """A figure with one pair of axes and its caption, inside `styled`; refuses where matplotlib is absent."""
    figure = canvas()
    axes = figure.subplots()
    lines = [part for line in caption.split("\n") for part in textwrap.wrap(line, CAPTION)]
    axes.set_title("\n".join(lines), fontsize=8, loc="left")
    return figure, axes


LEVELS = (5.0, 10.0, 20.0, 50.0, 100.0)
"""Overshoots in percent at which contours are drawn."""


@styled()
def stability(found: StabilityMap, points: Sequence[Point], caption: str, file: Path) -> Path:
    """Draws a stability map: colour and contours for the mean overshoot, the limit as a thick line; and the cells that were
    compared with packets, those that contradict the map as crosses. Of one loss: the mean overshoot over the round trip.
    """
    figure, axes = plot(caption)
    if len(found.grid.loss) == 1:
        return _row(figure, axes, found, points, file)
    x, y = list(found.grid.rtt_ms), [100 * loss for loss in found.grid.loss]
    table = found.mean["overshoot"]
    drawn = axes.pcolormesh(x, y, table.clip(0, 2 * LEVELS[-1]), cmap="viridis", shading="nearest")
    figure.colorbar(drawn, ax=axes, label="mean overshoot, % of the step")
    lines = axes.contour(x, y, table, levels=LEVELS, colors="white", linewidths=0.8)
    # in the middle of its line no label is cut off by the edge
    middles = [max(level, key=len) for level in lines.allsegs if any(map(len, level))]
    halfway = [(one[(len(one) - 1) // 2] + one[len(one) // 2]) / 2 for one in middles]
    axes.clabel(lines, fmt="%g", fontsize=8, manual=[tuple(one) for one in halfway])
    limit = found.bench.limits.overshoot
    axes.contour(x, y, table, levels=[limit], colors=PALETTE[1], linewidths=2)
    _compared(axes, points, lambda point: 100 * point.loss, "lower left")
    # cells are drawn about their values, and would reach beyond what can be
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    axes.set_xlabel("RTT, ms")
    axes.set_ylabel("loss each way, %")
    return saved(figure, file)


def _row(figure: Any, axes: Any, found: StabilityMap, points: Sequence[Point], file: Path) -> Path:
    """The mean overshoot at the only loss, up to twice the highest level that maps have."""
    most = 2 * LEVELS[-1]
    axes.plot(found.grid.rtt_ms, found.mean["overshoot"][0].clip(0, most), color=PALETTE[0])
    axes.axhline(found.bench.limits.overshoot, color=PALETTE[1], linewidth=2)

    def tested(point: Point) -> float:
        return most if point.tested.overshoot is None else min(point.tested.overshoot.mean, most)

    _compared(axes, points, tested, "upper left")
    axes.set_xlim(found.grid.rtt_ms[0], found.grid.rtt_ms[-1])
    axes.set_xlabel("RTT, ms")
    axes.set_ylabel(f"mean overshoot at {100 * found.grid.loss[0]:.3g} % loss, % of the step")
    return saved(figure, file)


def _compared(axes: Any, points: Sequence[Point], height: Callable[[Point], float], loc: str) -> None:
    """Marks the cells that were compared with packets."""
    for agrees, marker, label in ((True, "o", "packets agree"), (False, "X", "packets contradict the map")):
        seen = [(point.rtt_ms, height(point)) for point in points if point.agrees is agrees]
        if seen:
            axes.scatter(
                *zip(*seen, strict=True), marker=marker, s=70, color="white", edgecolor="black", zorder=3,
                label=label, clip_on=False,
            )  # fmt: skip
    if points:
        axes.legend(fontsize=8, loc=loc, framealpha=0.9)


@styled()
def nyquist(loop: LoopModel, caption: str, file: Path) -> Path:
    """Draws the open loop in the complex plane, and the point -1; the curve of a stable loop does not encircle it."""
    from tcpsbed.lab.control import theory

    figure, axes = plot(caption)
    curve = theory.nyquist(loop)[1]
    axes.plot(curve.real, curve.imag, color=PALETTE[0])
    axes.plot([-1], [0], marker="+", markersize=12, color=PALETTE[1])
    axes.set_xlim(-3, 2)
    axes.set_ylim(-2.5, 2.5)
    axes.set_aspect("equal")
    axes.set_xlabel("real part of L")
    axes.set_ylabel("imaginary part of L")
    return saved(figure, file)


@styled()
def errors(scores: Sequence[Score], caption: str, file: Path) -> Path:
    """Draws the RMS error of predictors over the horizon."""
    figure, axes = plot(caption)
    for number, name in enumerate(dict.fromkeys(score.predictor for score in scores)):
        mine = [score for score in scores if score.predictor == name]
        x, y = [score.horizon_ms for score in mine], [score.rms for score in mine]
        axes.plot(x, y, marker="o", color=PALETTE[number % len(PALETTE)], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("horizon, ms")
    axes.set_ylabel("RMS error")
    keyed(figure, axes)
    return saved(figure, file)
