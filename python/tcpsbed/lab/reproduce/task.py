"""Whether a better signal makes a better task: a simulated operator traces a circle on a wall through a congested dumbbell.

```text
scenarios/trace.toml      transports × seeds (tremor, drift of the aim, noise of the background)
   ├─ signal   SNR of the force that the hand is shown
   └─ task     distance of the tip from the circle, turns a minute, highest force on the wall
```
The operator closes the loop: where he moves follows from the force and the pictures that came. He is a model
(`crates/tcps-control/src/hooks/aim.rs`, `grip.rs`), and no person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis import signals, stats
from tcpsbed.lab.reproduce.comparisons import WEBER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

SCENARIO = "trace"
SHORT, FULL = 3, 10
"""Seeds of a short and of a full run."""
CENTER_M, RADIUS_M = (0.0, 0.18), 0.03
"""The circle in y and z: the defaults of the hook `aim`."""
SHORT_OF = 0.016
"""Part of a turn (3 mm) by which a circle may be short to count as closed."""
ON_WALL_N = 0.05
"""Force from which the tip is on the wall."""
QUIET = ("traffic.cbr.rate='0 bit/s'", "traffic.vbr.rate='0 bit/s'")
CASES: dict[str, tuple[str, ...]] = {
    "quiet": ("channels.session.transport='no-merge'", *QUIET),
    "no-merge": ("channels.session.transport='no-merge'",),
    "udp": ("channels.session.transport='udp'",),
    "weber": ("channels.session.transport='udp'", WEBER),
    "dpm": ("channels.session.transport='dpm'",),
    "dpm-g": ("channels.session.transport='dpm-g'",),
}
"""Transports by the names of their rows."""
COLUMNS = {"snr": "snr_db", "delay": "delay_ms", "error": "error_mm", "turns": "turns", "peak": "peak_n"}
"""What is compared, by the ends of the rows' names."""


@dataclass(frozen=True)
class Trace:
    """What one run of one operator came to."""

    snr_db: float
    """Of the force that the hand is shown."""
    error_mm: float
    """Root mean square of the tip's distance from the circle, from the first contact to the end."""
    closed: bool
    """Whether the tip went round once before the end of the run; else the error is that of a part of the circle."""
    turns: float
    """Turns a minute, from the first contact to the end."""
    peak_n: float
    """Highest force on the wall."""
    delay_ms: float
    """Mean of the haptic delay."""


def read(run: Run) -> Trace:
    """What a finished run shows."""
    sensed = signals.read(run.folder, "tactile-teleoperator.sense")
    force, tip = -sensed.values[:, 0], sensed.values[:, 4:6] - CENTER_M
    begun = int(np.argmax(force > ON_WALL_N))
    turned = np.unwrap(np.arctan2(tip[begun:, 1], tip[begun:, 0])) / (2 * np.pi)
    off = np.hypot(*tip[begun:].T) - RADIUS_M
    haptic = run.flows["haptic"]
    return Trace(
        snr_db=float(haptic["snr_db"]),
        error_mm=1e3 * float(np.sqrt(np.mean(off**2))),
        closed=bool(turned.max() >= 1 - SHORT_OF),
        turns=60 * float(turned.max() / (sensed.t_s[-1] - sensed.t_s[begun])),
        peak_n=float(force.max()),
        delay_ms=float(haptic["delay_ms"]["mean"]),
    )


def compare(study: Study) -> None:
    """Runs all transports with all operators."""
    seeds = range(1, 1 + (FULL if study.full else SHORT))

    def run(case: tuple[str, int]) -> Trace:
        name, seed = case
        settings = [
            *CASES[name],
            f"seed={seed}",
            f"hooks.aim.params.seed={seed}",
            f"hooks.grip.params.seed={seed}",
            "traffic.vbr.vary='piecewise'",
            "measure.snr=true",
            'measure.pcapng="off"',
        ]
        return study.run(SCENARIO, settings, read)

    found = study.each([(name, seed) for name in CASES for seed in seeds], run)
    for name in CASES:
        traces = [found[name, seed] for seed in seeds]
        open_ones = sum(not trace.closed for trace in traces)
        for key, field in COLUMNS.items():
            if (name, key) == ("udp", "error"):
                continue  # Nobody closes a circle there.
            own = [getattr(trace, field) for trace in traces]
            quiet = [getattr(found["quiet", seed], field) for seed in seeds]
            beside = {"runs": len(own), "half of the 95 % interval": _half(own)}
            if name != "quiet":
                more = np.subtract(own, quiet).tolist()
                beside |= {
                    "less that of the quiet network": float(np.mean(more)),
                    "half of its interval": _half(more),
                }
            if open_ones:
                beside["runs that closed no circle"] = open_ones
            study.compare(f"task-{name}-{key}", float(np.mean(own)), beside=beside)
    loaded = [trace for (name, _), trace in found.items() if name != "quiet"]
    for cause in ("snr", "delay"):
        for effect in ("error", "turns", "peak"):
            # The error of a part of the circle is not that of a circle.
            of = [trace for trace in loaded if trace.closed or effect != "error"]
            pair = (np.array([getattr(trace, COLUMNS[key]) for trace in of]) for key in (cause, effect))
            study.compare(f"task-{cause}-and-{effect}", rank_correlation(*pair))
    study.figure("task", "Signal and task: a circle traced on a wall", lambda figure: draw(figure, found))


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's: that of the ranks of two columns of the same length; equal values share the mean of their ranks."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(x: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(x)
    return np.asarray((np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / 2)


def draw(figure: Figure, found: Mapping[tuple[str, int], Trace]) -> None:
    """A point a run: SNR across, what the task came to upwards."""
    panels = figure.subplots(1, 3)
    labels = {"error_mm": "error of the shape (mm)", "turns": "turns a minute", "peak_n": "highest force (N)"}
    for axes, (field, label) in zip(panels, labels.items(), strict=True):
        for name in [name for name in CASES if name != "quiet"]:
            own = [trace for (case, _), trace in found.items() if case == name]
            axes.plot([t.snr_db for t in own], [getattr(t, field) for t in own], "o", label=name)
        axes.set(xlabel="SNR of the force (dB)", ylabel=label)
    panels[0].legend(fontsize=7)


def _half(values: Sequence[float]) -> float:
    """Half of the 95 % interval of a mean."""
    return stats.interval(values).half or 0.0
