"""Figure of compared places: received values over a short time, errors and ages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcpsbed.drawing import saved, styled
from tcpsbed.lab.control import figure as drawing
from tcpsbed.palette import PALETTE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.placement import Comparison

PERIODS, SAMPLES = 250, 8
"""Length of what is shown: so many periods of the predictor, or so many of the samples meant if that is longer."""


@styled()
def draw(found: Comparison, caption: str, file: Path) -> Path:
    """Three panels: the value that is most wrong without the predictor, when it is; RMS errors; mean ages.

    Parameters
    ----------
    found
        Places compared.
    caption
        What and where.
    file
        The figure; the ending says which kind.
    """
    import numpy as np

    figure, first = drawing.plot("")
    figure.set_size_inches(11, 4.5)
    first.remove()
    parts = figure.subplot_mosaic([["course", "rms"], ["course", "age"]], width_ratios=[2, 1])
    course = parts["course"]
    t_ms, column = _window(found)
    course.step(
        t_ms, found.meant.held(t_ms)[:, column], where="post", color="black", linestyle=":", label="meant"
    )
    colors = [PALETTE[n % len(PALETTE)] for n in range(len(found.places))]
    for color, one in zip(colors, found.places, strict=True):
        came = one.came.held(t_ms)
        course.step(t_ms, came[:, min(column, came.shape[1] - 1)], where="post", color=color, label=one.place)
    course.set(xlabel="time, ms", ylabel=f"value {column} at {found.edge.next}")
    course.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    names = [one.place if one.node is None else f"{one.place}\n({one.node})" for one in found.places]
    for axes, key, what in (
        (parts["rms"], "rms", "RMS error"),
        (parts["age"], "age_ms", "mean age of the newest sample, ms"),
    ):
        lengths = np.nan_to_num([getattr(one, key) for one in found.places])
        axes.barh(names, lengths, color=colors)
        axes.invert_yaxis()
        axes.set_xlabel(what, fontsize=8)
        axes.tick_params(labelsize=7)
    figure.suptitle(caption, fontsize=9, x=0.01, ha="left")
    return saved(figure, file)


def _window(found: Comparison) -> tuple[NDArray[np.float64], int]:
    """Times in ms around the largest error of the scenario without the predictor, and the value concerned."""
    import numpy as np

    period_ms = found.edge.period_ms
    end = float(found.meant.t_ms[-1])
    grid = np.arange(min(500.0, end / 2), end, period_ms)
    wanted, stood = found.meant.held(grid), found.places[0].came.held(grid)
    columns = [n for n in found.chosen if n < stood.shape[1]]
    off = np.nan_to_num(np.abs(stood[:, columns] - wanted[:, columns]))
    worst, column = np.unravel_index(int(np.argmax(off)), off.shape)
    length = max(PERIODS * period_ms, SAMPLES * float(np.median(np.diff(found.meant.t_ms))))
    begin = max(0.0, float(grid[worst]) - length / 2)
    return np.arange(begin, min(begin + length, end), period_ms), columns[int(column)]
