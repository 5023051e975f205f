"""Surfaces as a hand feels them: local models of a measured surface that arrive late. (Hudson et al. 2001)

```text
plane          through the last two measured points, held until the next one
warped plane   the same, shifted to where the hand is now: the newest known shape is felt here
feel patch     a grid of heights around the requested point, bilinear between them
```
One axis of the sample is scanned; heights and places in nm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Line = NDArray[np.float64]


def profile(points: int = 4000, seed: int = 1) -> tuple[Line, Line]:
    """A generated scan line: steps of a grating and slow waves; places and heights."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 4000.0, points)
    height = 20.0 * np.sin(x / 180.0) + 12.0 * np.sin(x / 47.0 + rng.uniform(0, 6.28))
    return x, height + 25.0 * np.tanh(4.0 * np.sin(x / 320.0))


# Hudson et al. 2001
def felt(
    x: Line, height: Line, arrivals: Line, measured: Line, hand: Line, now: Line, *, warped: bool
) -> Line:
    """Heights that a hand feels over time.

    Parameters
    ----------
    x, height
        The surface.
    arrivals, measured
        When each measurement is there (s, ascending), and where it was taken.
    hand, now
        Where the hand is at each moment (s).
    warped
        Whether planes are shifted to the hand.

    Returns
    -------
    numpy.ndarray
        One height a moment; NaN before the second measurement.
    """
    z = np.interp(measured, x, height)
    newest = np.searchsorted(arrivals, now, side="right") - 1
    out = np.full(len(now), np.nan)
    known = newest >= 1
    n = newest[known]
    run = measured[n] - measured[n - 1]
    slope = np.divide(z[n] - z[n - 1], run, out=np.zeros(len(n)), where=np.abs(run) > 1e-9)
    # A warped plane is played as a function of time: what was measured counts from the moment it came.
    speed = np.gradient(hand, now)[known]
    offset = speed * (now[known] - arrivals[n]) if warped else hand[known] - measured[n]
    out[known] = z[n] + slope * offset
    return out


# Hudson et al. 2001
def patch(x: Line, height: Line, centre: float, spacing: float, at: Line) -> Line:
    """Heights between three samples around a point; beyond them the nearest sample."""
    grid = centre + spacing * np.array([-1.0, 0.0, 1.0])
    return np.interp(at, grid, np.interp(grid, x, height))


def rms(felt_heights: Line, true_heights: Line) -> float:
    """Root mean square of the difference, where something was felt."""
    difference = felt_heights - true_heights
    return float(np.sqrt(np.nanmean(difference**2)))


def shape_rms(felt_heights: Line, true_heights: Line, longest: int = 300) -> float:
    """The same after the time shift of at most `longest` samples that minimises it: it compares shapes, not places.

    Rows are lines of a map; a line alone is one row.
    """
    got, true = np.atleast_2d(felt_heights), np.atleast_2d(true_heights)
    window = slice(longest, got.shape[1])
    return min(
        rms(got[:, window], true[:, longest - lag : true.shape[1] - lag]) for lag in range(longest + 1)
    )


def play(
    delay_s: float, jitter_s: float, *, warped: bool, rate_hz: float = 300.0, seed: int = 1
) -> tuple[Line, Line, Line, Line]:
    """A hand that scans 3000 nm of the generated line at 200 nm/s: see `sweep`."""
    x, height = profile()
    return sweep(
        x, height, 200.0, rate_hz, delay_s, jitter_s, seed=seed, warped=warped, part_nm=(100.0, 3100.0)
    )


def sweep(
    x: Line,
    height: Line,
    speed_nm_s: float,
    rate_hz: float,
    delay_s: float,
    jitter_s: float,
    *,
    warped: bool,
    seed: int = 1,
    part_nm: tuple[float, float] | None = None,
) -> tuple[Line, Line, Line, Line]:
    """A hand that moves once along a line over measurements with delay and jitter.

    Parameters
    ----------
    x, height
        The line.
    speed_nm_s, rate_hz
        Of the hand; measurements a second.
    delay_s, jitter_s
        Of a measurement: a fixed part, and the mean of an exponential one. Their order is kept.
    part_nm
        From where to where the hand goes; absent: the whole line.

    Returns
    -------
    moments, places, felt, true heights
        One a millisecond; the true heights are those under the hand.
    """
    rng = np.random.default_rng(seed)
    start, stop = part_nm or (float(x[0]), float(x[-1]))
    seconds = (stop - start) / speed_nm_s
    now = np.arange(0.0, seconds, 0.001)
    hand = start + speed_nm_s * now
    sent = np.arange(0.0, seconds, 1.0 / rate_hz)
    measured = np.interp(sent, now, hand)
    arrivals = sent + delay_s + rng.exponential(jitter_s, len(sent)) if jitter_s > 0 else sent + delay_s
    arrivals = np.maximum.accumulate(arrivals)
    got = felt(x, height, arrivals, measured, hand, now, warped=warped)
    return now, hand, got, np.interp(hand, x, height)
