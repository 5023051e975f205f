"""Draws the pictures of the pages about robots into docs/pictures: make pictures

Needs the extras `robot` and `plot`. Runs the shipped scenarios in virtual time and steps robots as their pages say.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from canvas import FAR, LIGHT, Theme, drawn, headed, lit, run, save
from tcpsbed import hooks
from tcpsbed.analysis import signals
from tcpsbed.lab.reproduce import surface
from tcpsbed.robots import ROBOTS, view
from tcpsbed.robots.arm import Arm
from tcpsbed.robots.cell import Cell
from tcpsbed.robots.feel import Feel
from tcpsbed.robots.microscope import SCAN
from tcpsbed.robots.neck import LOOK

MS = 1_000_000
CELLS = 288
"""Lines of the scan of `scanned`, and heights along each."""


def stepped(robot: Any, ms: int, command: Sequence[float], since: int = 0) -> None:
    sense = np.zeros(64)
    for t in range(since, since + ms):
        robot.step(t * MS, np.asarray(command, dtype=float), sense)


def left(scenario: str, seconds: float, *points: str) -> tuple[Arm, list[signals.Signal]]:
    """The arm in the state that a scenario leaves after so many seconds, and what was recorded of it."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        publish = f'components.tactile-teleoperator.robot.params.publish="{state}"'
        done = run(scenario, Path(folder) / "run", f'duration="{seconds} s"', publish)
        read = Cell.open(state).read()
        recorded = [signals.read(done.folder, point) for point in points]
    assert read is not None
    arm = hooks.make(*ROBOTS["mujoco-arm"], {})
    arm.show(read[2])
    return arm, recorded


def carried() -> None:
    """The arm with the object, after 6 s of the task."""
    arm, _ = left("pick-and-place", 6)
    save("pick-and-place", lit(arm, (112, -26, 0.6), (1600, 860)), colors=None)
    arm.scene.close()


def by_mouse() -> None:
    """The arm with the object that a mouse has lifted and moves to the right; below it the path of the tool."""
    arm, [sensed] = left("mouse-arm", 7.4, "tactile-teleoperator.sense")

    def draw(paper: Any, theme: Theme) -> None:
        above = paper.add_axes((0, 0.36, 1, 0.64))
        above.imshow(lit(arm, (112, -26, 0.6), (1600, 800), theme))
        above.set_axis_off()
        below = paper.add_axes((0.085, 0.085, 0.885, 0.25))
        for column, name in ((5, "to the front"), (6, "to the left"), (7, "up")):
            below.plot(sensed.t_s, 1e3 * sensed.values[:, column], label=name)
        below.set(xlabel="time (s)", ylabel="tool (mm)", xlim=(0, sensed.t_s[-1]))
        below.grid(axis="y")
        below.legend(frameon=False, ncols=3, loc="center", bbox_to_anchor=(0.5, 0.62))

    drawn("mouse-arm", 1250, draw, themes=(LIGHT,), colors=None)
    arm.scene.close()


def looked() -> None:
    """What both eyes see: ahead, and with a look to the left."""
    arm, _ = left("pick-and-place", 6)
    rows = []
    for look in ((0.0,) * LOOK, (0.35, 0.1, 0.0, 0.0, 0.0, 0.0)):
        arm.look(("left", "right"), np.array(look))
        rows.append(
            np.concatenate([lit(arm, eye, (800, 533), haze=FAR) for eye in ("left", "right")], axis=1)
        )
    save("headset", np.concatenate(rows) & 0xF8, colors=None)
    arm.scene.close()


def belt() -> None:
    conveyor = hooks.make(*ROBOTS["mujoco-conveyor"], {})
    stepped(conveyor, 2500, [0.1])
    save("conveyor", lit(conveyor, "left", (1600, 700), haze=(1.1, 1.7)), colors=None)
    conveyor.scene.close()


def clay() -> None:
    pottery = hooks.make(*ROBOTS["pottery"], {})
    for i, (x, z) in enumerate(((0.09, 0.1), (0.047, 0.1), (0.044, 0.12), (0.09, 0.06), (0.048, 0.05))):
        stepped(pottery, 1500, [x, 0.0, z], 1500 * i)
    save("pottery", pottery.render("front", 1600, 1066))


def scanned() -> None:
    device = hooks.make(*ROBOTS["microscope"], {"noise_nm": 0.3})
    shown = view.SurfaceView((800.0, 800.0), 1000.0, CELLS)
    sense = np.zeros(32)
    for t in range(40_200 * CELLS**2 // 96**2):  # once over the square, and over its front again
        device.step(t * MS, np.array([1, SCAN, 800, 800, 1000, CELLS]), sense)
        shown.learn(*sense[:3])
    shown.hand = np.array([1500.0, 1300.0, 90.0])
    view.MARK_PIXELS, view.RIM_PIXELS = 10, 4
    save("surface", shown.render("front", 1600, 1050))


def felt() -> None:
    """A still hand on a plane through two points, and errors of the felt height under delay and jitter."""
    delays = (0.0, 0.03, 0.1, 0.2)
    tilts = [
        (*seesaw(nm), name) for nm, name in ((0.0, "any two points"), (1.0, "points 1 nm apart or more"))
    ]
    errors = [
        (
            name,
            [surface.rms(*surface.play(d, 0.0, warped=warped)[2:]) for d in delays],
            [surface.rms(*surface.play(0.05, d, warped=warped)[2:]) for d in delays],
        )
        for warped, name in ((False, "plane"), (True, "warped plane"))
    ]

    def draw(paper: Any, theme: Theme) -> None:
        headed(
            paper,
            theme,
            "Which plane does the hand feel?",
            "left: fitted through measured points · right: late ones",
        )
        left = paper.add_axes((0.075, 0.12, 0.4, 0.67))
        right = paper.add_axes((0.56, 0.12, 0.41, 0.67))
        for t_s, degrees, name in tilts:
            left.plot(t_s, degrees, label=name, linewidth=2.5)
        left.set(xlabel="time (s)", ylabel="tilt (degrees)", ylim=(-95, 150))
        left.axvline(2.0, ymax=0.75, color=theme.soft, linewidth=1)
        left.text(1.95, -90, "the hand stops", ha="right", color=theme.soft)
        for name, by_delay, by_jitter in errors:
            (line,) = right.plot([1e3 * d for d in delays], by_delay, "o-", label=f"{name}, delay")
            right.plot(
                [1e3 * d for d in delays], by_jitter, "s--", color=line.get_color(), label=f"{name}, jitter"
            )
        right.set(xlabel="delay, or jitter on 50 ms of delay (ms)", ylabel="RMS error of height (nm)")
        for axes in (left, right):
            axes.grid(axis="y")
            axes.legend(frameon=False, loc="upper left")

    drawn("felt", 760, draw, themes=(LIGHT,))


def seesaw(least_nm: float) -> tuple[np.ndarray, np.ndarray]:
    """A hand goes for 2 s and stops but for a tremor of 0.3 nm; 30 measurements a second, 100 ms late, noise 0.2 nm."""
    rng = np.random.default_rng(1)
    device, feel = hooks.make(*ROBOTS["microscope"], {}), Feel(least_nm=least_nm)
    t = np.arange(0.0, 4.0, 1 / 30)
    x = 500.0 + 150.0 * np.minimum(t, 2.0) + 0.3 * np.sin(2 * np.pi * 8.0 * t)
    tilts = []
    for i in range(len(t)):
        height = device.sample.height(x[i], 600.0) + 0.2 * rng.standard_normal()
        now_ns = int((t[i] + 0.1) * 1e9)
        hand = np.interp(t[i] + 0.1, t, x)
        feel.surface.learn(now_ns, np.array([x[i], 600.0, height]), [0, 1, 2], np.array([hand, 600.0, 0.0]))
        value = feel.surface.at(now_ns, np.array([hand, 600.0, 1e9]))
        tilts.append(np.nan if value is None else np.degrees(np.arctan(value[1])))
    return t + 0.1, np.array(tilts)


def main() -> None:
    """Draws all, or those that are named."""
    pictures = {
        "pick-and-place": carried,
        "mouse-arm": by_mouse,
        "headset": looked,
        "conveyor": belt,
        "pottery": clay,
        "surface": scanned,
        "felt": felt,
    }
    for name in sys.argv[1:] or pictures:
        pictures[name]()


if __name__ == "__main__":
    main()
