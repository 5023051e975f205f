"""Polachan 2022, figure 8: the way of a command from board to board, and the time that an arm takes.

```text
ms-embsys ─UART─ ms-com, srv ══ ss-com ─UART─ ss-embsys ── arm      echoes to entry and exit of each, and held until arrived
```
The arm takes its time in physics, so that virtual time tells it; what components take is measured on the machine's clock, in
repeats: a bar counts as the tallest if the interval over repeats says so.
[Polachan 2022]
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis.records import HELD
from tcpsbed.analysis.stats import Interval, interval
from tcpsbed.clocks import REAL
from tcpsbed.lab.reproduce import echoes
from tcpsbed.lab.reproduce.echoes import ECHO
from tcpsbed.lab.reproduce.polachan2022_demo import lacking
from tcpsbed.lab.reproduce.repeats import low, margin, settled
from tcpsbed.worlds import firmware

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

    Floats = NDArray[np.float64]

HALF_NS, FIRST_NS = 500_000_000, 20_000_000
"""From one way of the arm to the next, and how late a first command of one may be."""
NO_ECHO = "no echo came back"
"""Why a row has no value of ours where echoes are what it is measured by."""
UART = "ss-com -> ss-embsys"
MEASURED = ("figure8-srv", "figure8-uart-measured", "figure8-actuation-measured")
NAMED = ("ms-com", "srv", "ss-com", "ss-embsys")
POINTS = tuple(f"{name}.{side}" for name in NAMED for side in ("entry", "exit"))
"""Echo points in the order of the way: bars of the figure, each on top of all before it."""
THREE = NAMED[:3]
"""Components whose bars figure 8 sets against each other."""
STALLED_N_M, SLOPE_STEPS, STEP_DEG = 1.2, 32, 0.29
"""Servo of the arm (AX-12): torque at 9.6 V, compliance slope from the factory in steps, and a step in degrees."""
LEAST_MS = 1e-3
"""Left end of the bars of parts; differences of medians may be less than that."""
PARTS = ("ms-com", "ms-com -> srv", "srv", "srv -> ss-com", "ss-com", UART, "ss-embsys")
"""Components and links on the path of a command, in order; the arm follows the last."""


@dataclass(frozen=True)
class Way:
    """Round trips of a run to each point in ms, and median latencies in ms between the points."""

    trips: dict[str, Floats]
    parts: dict[str, float]


def simulated(study: Study) -> None:
    """The arm of figure 8, whose time is that of physics, and the line of its board."""
    if lack := lacking("mujoco"):
        for key in ("figure8-actuation", "figure8-actuation-factory", "figure8-uart"):
            study.cannot(key, lack)
        return
    seconds = 20 if study.full else 6
    one_way_ms = study.run("polachan-centimetre", [f"duration='{seconds} s'"], actuation_ms)
    compare(study, "figure8-actuation", _doubled(one_way_ms))
    compare(study, "figure8-actuation-factory", _doubled(factory_ms(study, seconds)))
    found = study.run("polachan-arm", ["measure.pcapng='off'"], parts)
    compare(study, "figure8-uart", found.get(UART))


def factory_ms(study: Study, seconds: int) -> float | None:
    """The same path in ms with factory settings of the servos: no controller damping, and the lowest stiffness.

    An AX-12 leaves the factory with a compliance slope of 32 steps of 0.29 degrees: so far from its goal it turns with all
    that it has, which is 1.2 N m (ROBOTIS e-Manual, AX-12A, control table 28, 29).
    """
    from tcpsbed.robots.scene import SCENES

    stiffness = STALLED_N_M / math.radians(SLOPE_STEPS * STEP_DEG)
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        arm = (SCENES / "reactor.xml").read_text(encoding="utf-8")
        for servos in (1, 2):
            held = f'kp="{25 * servos}" kv="{0.4 * servos:g}"'
            assert held in arm, "the gains are those that reactor.xml has"
            arm = arm.replace(held, f'kp="{stiffness * servos:.4g}" kv="0"')
        (Path(folder) / "reactor.xml").write_text(arm, encoding="utf-8")
        scene = Path(shutil.copy(SCENES / "pick.xml", folder))
        settings = [
            f"duration='{seconds} s'",
            f"components.tactile-teleoperator.robot.params.scene='{scene}'",
        ]
        return study.run("polachan-centimetre", settings, actuation_ms)


def measured(study: Study) -> None:
    """The components of figure 8 on the machine's clock."""
    if study.full and not study.clock:
        study.leave_out(MEASURED)
        return
    lacking_compiler = firmware.missing("host")
    if lack := lacking("mujoco") or (f"this machine lacks {lacking_compiler}" if lacking_compiler else None):
        for key in MEASURED:
            study.cannot(key, lack)
    else:
        bars(study)


def bars(study: Study) -> None:
    """Figure 8, measured: repeats of the path, then the arm."""
    shared = ["measure.pcapng='off'"]
    repeats, seconds = (5, 30.0) if study.full else (2, 3.0)
    ways: list[Way] = []
    for _ in range(repeats):

        def once(seconds: float) -> Way:
            return study.run("polachan-arm", [*shared, f"duration='{seconds:.3f} s'"], way, REAL)

        found = settled(
            once, lambda one: echoes.means(one.trips), seconds, 4 * seconds if study.full else seconds
        )
        ways.append(found)
    said = margin(mean for one in ways for mean in echoes.means(one.trips))
    load = f"medians of {repeats} repeats; {said}; load {os.getloadavg()[0]:.1f}"
    above = [1e3 * one for one in map(tallest, ways) if one is not None]
    compare(study, "figure8-srv", low(interval(above)) if above else None, load)
    uart = [one.parts[UART] for one in ways if UART in one.parts]
    compare(study, "figure8-uart-measured", float(np.median(uart)) if uart else None, load)
    held_ms = study.run("polachan-centimetre", [*shared, f"duration='{seconds} s'"], actuation_ms, REAL)
    compare(study, "figure8-actuation-measured", _doubled(held_ms), load)
    title = "Figure 8: where the time of a command goes"
    study.figure("figure8", title, lambda figure: _draw(figure, ways, held_ms), "real time")


def tallest(one: Way) -> float | None:
    """By how much in ms srv is taller than the taller of the two beside it; `None` without all three."""
    if not set(THREE) <= set(one.parts):
        return None
    return one.parts["srv"] - max(one.parts["ms-com"], one.parts["ss-com"])


def compare(study: Study, key: str, ours: float | None, note: str = "") -> None:
    """Adds the row of an item with the reason of its tolerance, or notes that no echo measured it."""
    if ours is None:
        study.cannot(key, NO_ECHO)
    else:
        study.compare(key, ours, f"{study.expected[key].why}; {note}" if note else "")


def way(run: Run) -> Way:
    """Round trips to each point, and latencies between the points."""
    return Way(echoes.at_points(POINTS)(run), parts(run))


def parts(run: Run) -> dict[str, float]:
    """Median latency in ms of each component and link between the points that were asked."""
    echo = run.summary["echo"]["kinematic"]
    asked = [*echo["components"], *echo["links"], *echo["spans"]]
    known = {part["name"]: part["latency_ms"] for part in asked if part["latency_ms"]}
    return {name: float(known[name]["p50"]) for name in PARTS if name in known}


def actuation_ms(run: Run) -> float | None:
    """Median time in ms from the arrival of a movement's first command until the arm has arrived.

    `None` without such echoes.

    A machine that skips ticks gives later echoes to other commands: those that rode on no first one do not count.
    """
    rows = run.records
    rows = rows[rows["kind"] == ECHO]
    held = (rows["point"] & HELD) != 0
    first = (rows["time"] - rows["value"]) % HALF_NS < FIRST_NS
    away, there = (np.asarray(rows["value"][which], dtype=float) for which in (held & first, ~held))
    return float(np.median(away) - np.median(there)) / 1e6 if len(away) and len(there) else None


def _doubled(value: float | None) -> float | None:
    return None if value is None else 2.0 * value


def _draw(figure: Figure, ways: list[Way], held_ms: float | None) -> None:
    """Cumulated latencies at each entry and exit, and between them."""
    figure.set_size_inches(11, 5)
    left, right = figure.subplots(1, 2)
    cumulated = {
        point: interval([float(np.median(one.trips[point])) for one in ways if len(one.trips[point])])
        for point in POINTS
    }
    _bars(left, {point: mean for point, mean in cumulated.items() if mean.n})
    left.set(xlabel="round trip to the point, median (ms)", xlim=(0, None))
    between = {name: interval([one.parts[name] for one in ways if name in one.parts]) for name in PARTS}
    if held_ms is not None:
        between["arm, 1 cm"] = Interval(1, held_ms, None)
    _bars(right, {name: mean for name, mean in between.items() if mean.n})
    right.set(xscale="log", xlim=(LEAST_MS, 1e3), xlabel="between two points, median (ms)")


def _bars(axes: Axes, means: dict[str, Interval]) -> None:
    """A bar each with its interval over repeats, the first on top."""
    heights = [max(mean.mean, LEAST_MS) for mean in means.values()]
    axes.barh(list(means), heights, xerr=[mean.half or 0.0 for mean in means.values()])
    for row, (end, mean) in enumerate(zip(heights, means.values(), strict=True)):
        axes.text(
            end, row, f" {mean.mean:.3f}" if mean.mean < 10 else f" {mean.mean:.0f}", va="bottom", size=7
        )
    axes.invert_yaxis()
