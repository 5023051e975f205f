"""Whether a better signal makes a better task: a simulated operator traces a circle on a wall through a congested dumbbell.

```text
scenarios/trace.toml      transports × seeds (tremor, drift of the aim, noise of the background)
   ├─ signal   SNR of the force that the hand is shown
   └─ task     distance of the tip from the circle, time to close it, highest force on the wall
```
The operator closes the loop: where he moves follows from the force and the pictures that came. He is a model
(`crates/tcps-control/src/hooks/aim.rs`, `grip.rs`), and no person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis import signals, stats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from tcpsbed.analysis import Run
    from tcpsbed.reproduce.study import Study

SCENARIO = "trace"
SHORT, FULL = 3, 10
"""Seeds of a short and of a full run."""
CENTER_M, RADIUS_M = (0.0, 0.18), 0.03
"""The circle in y and z: the defaults of the hook `aim`."""
CLOSED_RAD = 0.1
"""Short of a whole turn by this (3 mm), the circle counts as closed."""
ON_WALL_N = 0.05
"""Force from which the tip is on the wall."""
QUIET = ("traffic.cbr.rate='0 bit/s'", "traffic.vbr.rate='0 bit/s'")
WEBER = "hooks.adaptive={ kind = 'code', run = 'weber', at = 'tactile-teleoperator', flow = 'haptic' }"
CASES: dict[str, tuple[str, ...]] = {
    "quiet": ("channels.session.transport='no-merge'", *QUIET),
    "no-merge": ("channels.session.transport='no-merge'",),
    "udp": ("channels.session.transport='udp'",),
    "weber": ("channels.session.transport='udp'", WEBER),
    "dpm": ("channels.session.transport='dpm'",),
    "dpm-g": ("channels.session.transport='dpm-g'",),
}
"""Transports by the names of their rows."""


@dataclass(frozen=True)
class Trace:
    """What one run of one operator came to."""

    snr_db: float | None
    """Of the force that the hand is shown; none where nothing differs from what the robot felt."""
    error_mm: float
    """Root mean square of the tip's distance from the circle, from the first contact to its end."""
    time_s: float
    """When the circle was closed; the end of the run if it was not."""
    peak_n: float
    """Highest force on the wall."""
    delay_ms: float
    """99th percentile of the haptic delay."""


def read(run: Run) -> Trace:
    """What a finished run shows."""
    sensed = signals.read(run.folder, "tactile-teleoperator.sense")
    force, tip = -sensed.values[:, 0], sensed.values[:, 4:6] - CENTER_M
    begun = int(np.argmax(force > ON_WALL_N))
    angle = np.unwrap(np.arctan2(tip[begun:, 1], tip[begun:, 0]))
    closed = np.flatnonzero(angle >= 2 * np.pi - CLOSED_RAD)
    end = begun + (int(closed[0]) if len(closed) else len(angle) - 1)
    off = np.hypot(*tip[begun : end + 1].T) - RADIUS_M
    haptic = run.flows["haptic"]
    return Trace(
        snr_db=haptic["snr_db"],
        error_mm=1e3 * float(np.sqrt(np.mean(off**2))),
        time_s=float(sensed.t_s[end]),
        peak_n=float(force.max()),
        delay_ms=float(haptic["delay_ms"]["p99"]),
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
        for key, values in columns(traces).items():
            mean = stats.interval(values)
            study.compare(f"task-{name}-{key}", mean.mean, f"{mean}")
    study.figure("task", "Signal and task: a circle traced on a wall", lambda figure: draw(figure, found))


def columns(traces: Sequence[Trace]) -> dict[str, list[float]]:
    """What is compared, by the ends of the rows' names; the SNR only where every run has one."""
    ratios = [trace.snr_db for trace in traces if trace.snr_db is not None]
    task = {
        "error": [trace.error_mm for trace in traces],
        "time": [trace.time_s for trace in traces],
        "peak": [trace.peak_n for trace in traces],
        "delay": [trace.delay_ms for trace in traces],
    }
    return task | ({"snr": ratios} if len(ratios) == len(traces) else {})


def draw(figure: Figure, found: Mapping[tuple[str, int], Trace]) -> None:
    """A point a run: SNR across, what the task came to upwards."""
    panels = figure.subplots(1, 3)
    labels = {"error_mm": "error of the shape (mm)", "time_s": "time (s)", "peak_n": "highest force (N)"}
    for axes, (field, label) in zip(panels, labels.items(), strict=True):
        for name in CASES:
            own = [trace for (case, _), trace in found.items() if case == name and trace.snr_db is not None]
            axes.plot([t.snr_db for t in own], [getattr(t, field) for t in own], "o", label=name)
        axes.set(xlabel="SNR of the force (dB)", ylabel=label)
    panels[0].legend(fontsize=7)
