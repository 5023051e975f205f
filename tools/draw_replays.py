"""Draws the pictures of the pages on the telerobot, texture, suturing and safety: make pictures

Needs the extras `robot`, `media` and `plot`. Runs the shipped scenarios in virtual time.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from canvas import FAR, LIGHT, Theme, drawn, headed, lit, run, save
from tcpsbed import hooks
from tcpsbed.analysis import signals
from tcpsbed.media import picture_code
from tcpsbed.robots import ROBOTS
from tcpsbed.robots.cell import Cell

SCREEN = """
from pathlib import Path
import numpy as np

class Screen:
    def __init__(self, width, height): pass
    def show(self, frame, t_ns, index): np.save(Path(__file__).parent / f"{t_ns:012}.npy", frame)
"""
"""A display that keeps what it is shown."""


def seen() -> None:
    """What both eyes of the telerobot see while it carries the object."""
    with tempfile.TemporaryDirectory() as folder:
        state = f"{folder}/state"
        publish = f'components.tactile-teleoperator.robot.params.publish="{state}"'
        run("pick-and-place", Path(folder) / "run", 'duration="5.5 s"', publish)
        read = Cell.open(state).read()
    assert read is not None
    arm = hooks.make(*ROBOTS["mujoco-arm"], {})
    arm.show(read[2])
    eyes = [lit(arm, eye, (800, 640), haze=FAR) for eye in ("left", "right")]
    save("telerobot", np.concatenate(eyes, axis=1), colors=None)
    arm.scene.close()


def felt() -> None:
    """What the finger feels along a stroke, and what comes of it at the operator."""
    plain = ('flows.haptic.transport.redundancy="none"', "flows.haptic.playout='hold'")
    found = {}
    for title, sets in {"RFC 2198 and playout": (), "plain RTP, as it arrives": plain}.items():
        with tempfile.TemporaryDirectory() as folder:
            done = run("texture", Path(folder), 'duration="4 s"', *sets).folder
            points = ("tactile-teleoperator.exit", "tactile-operator.exit")
            found[title] = [signals.read(done, point, "haptic") for point in points]

    def draw(paper: Any, theme: Theme) -> None:
        headed(paper, theme, "A texture under the finger and at the operator", "normal acceleration in m/s²")
        for place, (title, (made, came)) in enumerate(found.items()):
            axes = paper.add_axes((0.075, 0.5 - 0.4 * place, 0.9, 0.28))
            axes.plot(
                made.t_s, made.values[:, 2], color=theme.propagation, linewidth=6, label="felt by the finger"
            )
            axes.step(came.t_s, came.values[:, 2], where="post", linewidth=2, label="shown to the operator")
            axes.set(xlim=(2.35, 2.6), ylim=(-0.75, 0.75))
            axes.set_title(title, loc="left", color=theme.ink)
            axes.grid(axis="y")
        axes.set_xlabel("time (s)")
        paper.legend(
            *axes.get_legend_handles_labels(),
            frameon=False,
            loc="upper right",
            ncols=2,
            bbox_to_anchor=(0.98, 0.875),
        )

    drawn("texture", 900, draw, themes=(LIGHT,))


def sewn() -> None:
    """The path of both hands, and a part of it over time as recorded and as it reaches the arms."""
    with tempfile.TemporaryDirectory() as folder:
        done = run("suturing", Path(folder)).folder
        left, there = (signals.read(done, point, "kinematic") for point in ("ms-com.entry", "ss-com.exit"))

    def draw(paper: Any, theme: Theme) -> None:
        headed(
            paper,
            theme,
            "Four stitches",
            "left: both hands from the front · right: a height, recorded and at the arms",
        )
        front, time = paper.add_axes((0.075, 0.12, 0.4, 0.67)), paper.add_axes((0.56, 0.12, 0.41, 0.67))
        for first, name in ((0, "left hand"), (4, "right hand")):
            front.plot(*(1e3 * left.values[:, first + axis] for axis in (0, 2)), label=name)
        front.set(xlabel="x (mm)", ylabel="z (mm)")
        time.plot(left.t_s, 1e3 * left.values[:, 6], "o", markersize=8, label="recorded, 30 Hz")
        time.plot(there.t_s, 1e3 * there.values[:, 6], linewidth=2.5, label="at the arms, 1 kHz")
        time.set(xlim=(0.4, 1.6), xlabel="time (s)", ylabel="z of the right hand (mm)")
        for axes in (front, time):
            axes.grid()
            axes.legend(frameon=False, loc="upper right")

    drawn("suturing", 760, draw, themes=(LIGHT,))


def foreseen() -> None:
    """What the operator of the predictive display saw last, and what is shown 0.7 s after the line has broken at 6.4 s.

    The pictures are larger than those of the scenario, and without their code.
    """
    larger = (  # six times as many pixels, and a link with room for them
        "links.l1.rate='60 Mbit/s'",
        "flows.video.picture.width=800",
        "flows.video.picture.height=600",
        "hooks.preview.params.width=800",
        "hooks.preview.params.height=600",
        "hooks.preview.params.pixels=[[982.5, 0], [0, -325], [0, -927.5]]",
        "hooks.preview.params.tool=[202.5, 377.5]",
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "screen.py").write_text(SCREEN)
        display = f"flows.video.picture.display='{folder}/screen.py:Screen'"
        run("predictive-display", Path(folder) / "run", 'duration="7.3 s"', display, *larger)
        shown = {int(path.stem) / 1e9: np.load(path) for path in sorted(Path(folder).glob("*.npy"))}
    live, predicted = (shown[max(t for t in shown if t < latest)] for latest in (6.4, 7.1))
    code = picture_code.ROWS * picture_code.block(live.shape[1])
    save("predicted", np.concatenate([live, predicted], axis=1)[code:] & 0xF8, colors=None)


def main() -> None:
    """Draws all, or those that are named."""
    pictures = {"texture": felt, "suturing": sewn, "telerobot": seen, "predicted": foreseen}
    for name in sys.argv[1:] or pictures:
        pictures[name]()


if __name__ == "__main__":
    main()
