"""Polachan 2022, figure 8: the way of a command from board to board, and the time that an arm takes; figures 14, 21.

```text
ms-embsys ─UART─ ms-com, srv ══ ss-com ─UART─ ss-embsys ── arm      echoes to entry and exit of each, and held until arrived
```
The arm takes its time in physics, so that virtual time tells it; what components take is measured on the machine's clock.
[PROTOCOLS 6.1] [PROTOCOLS 6.5]
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.analysis.records import HELD, KINDS
from tcpsbed.clocks import REAL
from tcpsbed.worlds import firmware

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.analysis import Run
    from tcpsbed.reproduce.study import Study

    Floats = NDArray[np.float64]

ECHO = 1 + KINDS.index("echo")
HALF_NS, FIRST_NS = 500_000_000, 20_000_000
"""From one way of the arm to the next, and how late a first command of one may be."""
NO_ECHO = "no echo came back"
"""Why a row has no value of ours where echoes are what it is measured by."""
UNKNOWN = "what the figure shows is not known here: none of the texts that this project works from says it"
STEPS = "the steps of each flow on the machine's clock, as we read its place among the others"
TASK = "an arm that carries an object and what the operator's glove does, as we read its place at the end"
PACKAGES = {
    "mujoco": "needs MuJoCo: pip install 'tcpsbed[robot]'",
    "simplejpeg": "needs simplejpeg: pip install 'tcpsbed[media]'",
}
"""What figures need besides, and how to have it."""
UART = "ss-com -> ss-embsys"
MEASURED = ("figure8-srv", "figure8-uart-measured", "figure8-actuation-measured")
THREE = {"ms-com", "srv", "ss-com"}
"""Components whose bars figure 8 sets against each other."""
LEAST_MS = 1e-3
"""Left end of figure 8; differences of medians may be less than that."""
PARTS = ("ms-com", "ms-com -> srv", "srv", "srv -> ss-com", "ss-com", UART, "ss-embsys")
"""Bars of figure 8, in the order of the way; the arm comes behind them."""


@dataclass(frozen=True)
class Task:
    """A pick and place over time, s and N, m and Hz."""

    t_s: Floats
    opening_m: Floats
    force_n: Floats
    object_z_m: Floats
    motor_t_s: Floats
    motor_hz: Floats


def simulated(study: Study) -> None:
    """The arm of figure 8, whose time is that of physics, and our reading of figure 21."""
    if lack := _without("mujoco"):
        for key in ("figure8-actuation", "figure8-uart"):
            study.cannot(key, lack)
        unknown(study, "figure21", TASK, lack)
        return
    seconds = 20 if study.full else 6
    one_way_ms = study.run("polachan-centimetre", [f"duration='{seconds} s'"], actuation_ms)
    compare(study, "figure8-actuation", _doubled(one_way_ms))
    found, task = study.run("polachan-arm", ["measure.pcapng='off'"], lambda run: (parts(run), task_of(run)))
    compare(study, "figure8-uart", found.get(UART))
    study.figure("figure21", "Pick and place (our reading of figure 21)", lambda figure: _task(figure, task))
    unknown(study, "figure21", TASK)


def measured(study: Study) -> None:
    """The components of figure 8 on the machine's clock, and our reading of figure 14."""
    if study.full and not study.clock:
        study.leave_out((*MEASURED, "figure14"))
        return
    seconds = 30 if study.full else 4
    shared = ["measure.pcapng='off'", f"duration='{seconds} s'"]
    lacking = firmware.missing("host")
    if lack := _without("mujoco") or (f"this machine lacks {lacking}" if lacking else None):
        for key in MEASURED:
            study.cannot(key, lack)
    else:
        bars(study, shared)
    steps(study, shared)


def bars(study: Study, shared: list[str]) -> None:
    """Figure 8, measured: runs of both scenarios with the overrides that they share."""
    found = study.run("polachan-arm", shared, parts, REAL)
    load = f"medians; load {os.getloadavg()[0]:.1f}"
    above = found["srv"] - max(found["ms-com"], found["ss-com"]) if found.keys() >= THREE else None
    compare(study, "figure8-srv", None if above is None else 1e3 * above, load)
    compare(study, "figure8-uart-measured", found.get(UART), load)
    held_ms = study.run("polachan-centimetre", shared, actuation_ms, REAL)
    compare(study, "figure8-actuation-measured", _doubled(held_ms), load)
    virtual = [row.ours for row in study.rows if row.key == "figure8-actuation" and row.ours is not None]
    arm = {"arm, 1 cm": held_ms, "arm, 1 cm, virtual time": virtual[0] / 2.0 if virtual else None}
    drawn = found | {name: value for name, value in arm.items() if value is not None}
    title = "Figure 8: where the time of a command goes"
    study.figure("figure8", title, lambda figure: _bars(figure, drawn), "real time")


def compare(study: Study, key: str, ours: float | None, note: str = "") -> None:
    """Adds the row of an item, with why it is compared so, or says that there was no echo to measure it by."""
    if ours is None:
        study.cannot(key, NO_ECHO)
    else:
        study.compare(key, ours, f"{study.expected[key].why}; {note}" if note else "")


def unknown(study: Study, key: str, drawn: str, lack: str | None = None) -> None:
    """Adds the row of a figure whose content is not known: what ours draws if it was drawn, or what it lacks."""
    own = f"; {key}.png draws {drawn}" if any(name == key for name, _ in study.figures) else ""
    study.cannot(key, UNKNOWN + (own or (f"; ours {lack}" if lack else "")))


def parts(run: Run) -> dict[str, float]:
    """Median latency in ms of each component and link between the points that were asked."""
    echo = run.summary["echo"]["kinematic"]
    asked = [*echo["components"], *echo["links"], *echo["spans"]]
    known = {part["name"]: part["latency_ms"] for part in asked if part["latency_ms"]}
    return {name: float(known[name]["p50"]) for name in PARTS if name in known}


def actuation_ms(run: Run) -> float | None:
    """Median time in ms from the arrival of the first command of a way at the arm until the arm has arrived.

    `None` without such echoes.

    A machine that leaves out ticks gives later echoes to other commands: those that rode on no first one do not count.
    """
    rows = run.records
    rows = rows[rows["kind"] == ECHO]
    held = (rows["point"] & HELD) != 0
    first = (rows["time"] - rows["value"]) % HALF_NS < FIRST_NS
    away, there = (np.asarray(rows["value"][which], dtype=float) for which in (held & first, ~held))
    return float(np.median(away) - np.median(there)) / 1e6 if len(away) and len(there) else None


def task_of(run: Run) -> Task:
    """What a run of the task shows of arm, object and glove."""
    from tcpsbed.analysis import signals

    sensed = signals.read(run.folder, "tactile-teleoperator.sense")
    motors = signals.read(run.folder, "ms-com.exit", "haptic")
    values = sensed.values
    return Task(
        sensed.t_s,
        values[:, 8],
        values[:, 3:5].sum(axis=1),
        values[:, 11],
        motors.t_s,
        motors.values[:, 0],
    )


def steps(study: Study, shared: list[str]) -> None:
    """Our reading of figure 14: the steps of motion, force, picture and sound, measured."""
    if lack := _without("mujoco") or _without("simplejpeg"):
        unknown(study, "figure14", STEPS, lack)
        return
    path = study.run("pictures", shared, lambda run: dict(run.summary["path"]), REAL)
    title = "Steps of each flow (our reading of figure 14)"
    study.figure("figure14", title, lambda figure: _steps(figure, path), "real time")
    unknown(study, "figure14", STEPS)


def _without(package: str) -> str | None:
    """What to install where a package is absent; `None` if it is there."""
    return None if importlib.util.find_spec(package) else PACKAGES[package]


def _doubled(value: float | None) -> float | None:
    return None if value is None else 2.0 * value


def _bars(figure: Figure, bars: dict[str, float]) -> None:
    axes = figure.subplots()
    drawn = [max(value, LEAST_MS) for value in bars.values()]
    axes.barh(list(bars), drawn)
    for row, (end, value) in enumerate(zip(drawn, bars.values(), strict=True)):
        axes.text(end, row, f" {value:.3f}" if value < 10 else f" {value:.0f}", va="center", size=8)
    axes.invert_yaxis()
    axes.set(xscale="log", xlim=(LEAST_MS, 1e3), xlabel="median (ms)")


def _task(figure: Figure, task: Task) -> None:
    rows = figure.subplots(3, 1, sharex=True)
    rows[0].plot(task.t_s, 1e3 * task.opening_m, label="opening of the gripper")
    rows[0].plot(task.t_s, 1e3 * task.object_z_m, label="height of the object")
    rows[1].plot(task.t_s, task.force_n)
    rows[2].plot(task.motor_t_s, task.motor_hz)
    rows[0].set(ylabel="mm")
    rows[0].legend(fontsize=7)
    rows[1].set(ylabel="both wings (N)")
    rows[2].set(ylabel="motor (Hz)", xlabel="time (s)")


def _steps(figure: Figure, path: dict[str, list[dict[str, Any]]]) -> None:
    axes = figure.subplots()
    for row, way in enumerate(path.values()):
        left = 0.0
        for part in way:
            mean = part["latency_ms"]["mean"] or 0.0
            (bar,) = axes.barh(row, mean, left=left, edgecolor="white")
            left += bar.get_width()
            if mean > 3.0:
                name = part["name"].removeprefix("tactile-")
                axes.text(left - mean / 2, row, name, ha="center", va="center", size=6, rotation=30)
    axes.set(yticks=range(len(path)), yticklabels=list(path), xlabel="mean (ms)")
