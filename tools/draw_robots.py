"""Draws the pictures of the pages about robots into docs/pictures: python tools/draw_robots.py

Needs the extras `robot` and `plot`. Runs the shipped scenarios in virtual time and steps robots as their pages say.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

import tcpsbed
from tcpsbed.analysis import signals
from tcpsbed.reproduce import surface
from tcpsbed.robots.arm import Arm
from tcpsbed.robots.cell import Cell
from tcpsbed.robots.conveyor import Conveyor
from tcpsbed.robots.feel import Feel
from tcpsbed.robots.microscope import SCAN, Microscope
from tcpsbed.robots.neck import LOOK
from tcpsbed.robots.pottery import Pottery
from tcpsbed.robots.view import SurfaceView

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
MS = 1_000_000


def save(name: str, picture: np.ndarray) -> None:
    pyplot.imsave(PICTURES / f"{name}.png", picture)


def stepped(robot, ms: int, command, since: int = 0) -> None:
    sense = np.zeros(64)
    for t in range(since, since + ms):
        robot.step(t * MS, np.asarray(command, dtype=float), sense)


def left(scenario: str, seconds: float, *points: str) -> tuple[Arm, list[signals.Signal]]:
    """The arm in the state that a scenario leaves after so many seconds, and what was recorded of it."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        sets = [f'duration="{seconds} s"', f'components.tactile-teleoperator.robot.params.publish="{state}"']
        run = tcpsbed.run(ROOT / "scenarios" / f"{scenario}.toml", world="virtual", out=folder, set=sets)
        read = Cell.open(state).read()
        recorded = [signals.read(run.folder, point) for point in points]
    assert read is not None
    arm = Arm()
    arm.show(read[2])
    return arm, recorded


def carried() -> None:
    """The arm with the object, after 6 s of the task."""
    arm, _ = left("pick-and-place", 6)
    save("pick-and-place", arm.render("side", 640, 400))
    arm.scene.close()


def by_mouse() -> None:
    """The arm with the object that a mouse has lifted and moves to the right; below it the way of the tool."""
    arm, [sensed] = left("mouse-arm", 7.4, "tactile-teleoperator.sense")
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(6.4, 6), height_ratios=(2.2, 1))
    above.imshow(arm.render("side", 640, 400))
    above.set_axis_off()
    for column, name in ((5, "to the front"), (6, "to the left"), (7, "up")):
        below.plot(sensed.t_s, 1e3 * sensed.values[:, column], label=name)
    below.set(xlabel="time (s)", ylabel="tool (mm)")
    below.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURES / "mouse-arm.png", dpi=70)
    arm.scene.close()


def looked() -> None:
    """What both eyes see: ahead, and with a look to the left."""
    arm, _ = left("pick-and-place", 6)
    rows = []
    for look in ((0.0,) * LOOK, (0.35, 0.1, 0.0, 0.0, 0.0, 0.0)):
        arm.look(("left", "right"), np.array(look))
        rows.append(np.concatenate([arm.render(eye, 216, 144) for eye in ("left", "right")], axis=1))
    save("headset", np.concatenate(rows))
    arm.scene.close()


def belt() -> None:
    conveyor = Conveyor()
    stepped(conveyor, 2500, [0.1])
    save("conveyor", conveyor.render("left", 640, 300))
    conveyor.scene.close()


def clay() -> None:
    pottery = Pottery()
    for i, (x, z) in enumerate(((0.09, 0.1), (0.047, 0.1), (0.044, 0.12), (0.09, 0.06), (0.048, 0.05))):
        stepped(pottery, 1500, [x, 0.0, z], 1500 * i)
    save("pottery", pottery.render("front", 360, 240))


def scanned() -> None:
    device, view = Microscope(noise_nm=0.3), SurfaceView((800.0, 800.0), 1000.0, 96)
    sense = np.zeros(32)
    for t in range(40_200):  # once over the square, and over its front again
        device.step(t * MS, np.array([1, SCAN, 800, 800, 1000, 96]), sense)
        view.learn(*sense[:3])
    view.hand = np.array([1500.0, 1300.0, 90.0])
    save("surface", view.render("front", 640, 420))


def felt() -> None:
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6))
    for least_nm, name in ((0.0, "through any two points"), (1.0, "through points 1 nm apart or more")):
        left.plot(*seesaw(least_nm), label=name)
    left.set(xlabel="time (s)", ylabel="tilt of the plane under the hand (degrees)", ylim=(-95, 130))
    left.axvline(2.0, color="grey", linewidth=0.8)
    left.text(1.97, -90, "the hand stops", ha="right", size=8)
    left.legend(loc="upper left", fontsize=8)
    delays = (0.0, 0.03, 0.1, 0.2)
    for warped, name in ((False, "plane"), (True, "warped plane")):
        by_delay = [surface.rms(*surface.play(d, 0.0, warped=warped)[2:]) for d in delays]
        by_jitter = [surface.rms(*surface.play(0.05, d, warped=warped)[2:]) for d in delays]
        (line,) = right.plot([1e3 * d for d in delays], by_delay, "o-", label=f"{name}, delay")
        right.plot(
            [1e3 * d for d in delays], by_jitter, "s--", color=line.get_color(), label=f"{name}, jitter"
        )
    right.set(
        xlabel="delay, or jitter on top of a delay of 50 ms (ms)", ylabel="RMS error of the felt height (nm)"
    )
    right.legend()
    figure.tight_layout()
    figure.savefig(PICTURES / "felt.png", dpi=80)


def seesaw(least_nm: float) -> tuple[np.ndarray, np.ndarray]:
    """A hand goes for 2 s and stops but for a tremor of 0.3 nm; 30 measurements a second, 100 ms late, noise 0.2 nm."""
    rng = np.random.default_rng(1)
    device, feel = Microscope(), Feel(least_nm=least_nm)
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
    PICTURES.mkdir(exist_ok=True)
    for draw in (carried, by_mouse, looked, belt, clay, scanned, felt):
        draw()


if __name__ == "__main__":
    main()
