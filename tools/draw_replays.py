"""Draws the pictures of the pages on the telerobot, texture, suturing and safety: python tools/draw_replays.py

Needs the extras `robot`, `media` and `plot`. Runs the shipped scenarios in virtual time.
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
from tcpsbed.robots.arm import Arm
from tcpsbed.robots.cell import Cell

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
SCREEN = """
from pathlib import Path
import numpy as np

class Screen:
    def __init__(self, width, height): pass
    def show(self, frame, t_ns, index): np.save(Path(__file__).parent / f"{t_ns:012}.npy", frame)
"""
"""A display that keeps what it is shown."""


def ran(name: str, folder: str, *sets: str) -> Path:
    """A run of a shipped scenario: its folder."""
    return tcpsbed.run(
        ROOT / "scenarios" / f"{name}.toml", world="virtual", out=folder, set=list(sets)
    ).folder


def seen() -> None:
    """What both eyes of the telerobot see while it carries the object."""
    with tempfile.TemporaryDirectory() as folder:
        state = f"{folder}/state"
        publish = f'components.tactile-teleoperator.robot.params.publish="{state}"'
        ran("pick-and-place", folder, 'duration="5.5 s"', publish)
        read = Cell.open(state).read()
    assert read is not None
    arm = Arm()
    arm.show(read[2])
    pair = np.concatenate([arm.render(eye, 360, 288) for eye in ("left", "right")], axis=1)
    pyplot.imsave(PICTURES / "telerobot.png", pair)
    arm.scene.close()


def felt() -> None:
    """What the finger feels along a stroke, and what comes of it at the operator."""
    plain = ('flows.haptic.transport.redundancy="none"', "flows.haptic.playout='hold'")
    shown = {"RFC 2198, playout": (), "plain, as it comes": plain}
    figure, axes = pyplot.subplots(len(shown), 1, figsize=(8, 4.2), sharex=True, sharey=True)
    for place, (title, sets) in zip(axes, shown.items(), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            run = ran("texture", folder, 'duration="4 s"', *sets)
            made = signals.read(run, "tactile-teleoperator.exit", "haptic")
            came = signals.read(run, "tactile-operator.exit", "haptic")
        place.plot(made.t_s, made.values[:, 2], color="lightgray", linewidth=3, label="felt by the finger")
        place.step(came.t_s, came.values[:, 2], where="post", linewidth=0.8, label=f"shown: {title}")
        place.set(xlim=(2.35, 2.6), ylabel="normal (m/s²)")
        place.legend(loc="upper right", fontsize=8)
    axes[-1].set(xlabel="time (s)")
    figure.tight_layout()
    figure.savefig(PICTURES / "texture.png", dpi=80)


def sewn() -> None:
    """The way of both hands, and a part of it over time as recorded and as it reaches the arms."""
    with tempfile.TemporaryDirectory() as folder:
        run = ran("suturing", folder)
        left, there = (signals.read(run, point, "kinematic") for point in ("ms-com.entry", "ss-com.exit"))
    figure, (map_, time) = pyplot.subplots(1, 2, figsize=(9, 3.6))
    for first, name in ((0, "left hand"), (4, "right hand")):
        map_.plot(*(1e3 * left.values[:, first + axis] for axis in (0, 2)), label=name)
    map_.set(xlabel="x (mm)", ylabel="z (mm)")
    map_.legend()
    time.plot(left.t_s, 1e3 * left.values[:, 6], "o", markersize=4, label="recorded, 30 Hz")
    time.plot(there.t_s, 1e3 * there.values[:, 6], linewidth=1, label="at the arms, 1 kHz")
    time.set(xlim=(0.4, 1.6), xlabel="time (s)", ylabel="z of the right hand (mm)")
    time.legend()
    figure.tight_layout()
    figure.savefig(PICTURES / "suturing.png", dpi=80)


def foreseen() -> None:
    """What the operator of the predictive display saw last, and what is shown 0.7 s after the line has broken at 6.4 s."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "screen.py").write_text(SCREEN)
        display = f"flows.video.picture.display='{folder}/screen.py:Screen'"
        ran("predictive-display", f"{folder}/run", 'duration="7.3 s"', display)
        shown = {int(path.stem) / 1e9: np.load(path) for path in sorted(Path(folder).glob("*.npy"))}
    live, predicted = (shown[max(t for t in shown if t < latest)] for latest in (6.4, 7.1))
    pyplot.imsave(PICTURES / "predicted.png", np.concatenate([live, predicted], axis=1))


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for draw in (felt, sewn, seen, foreseen):
        draw()


if __name__ == "__main__":
    main()
