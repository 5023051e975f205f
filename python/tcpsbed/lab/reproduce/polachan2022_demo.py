"""Polachan 2022, figures 7, 14 and 21: what the demonstrations show, run by simulated devices.

```text
figure 7    glove ─► arm that carries an object; force, picture and sound back     scenarios/polachan-demo.toml
figure 14   the gripper open and closed                                            scenarios/polachan-arm.toml
figure 21   a belt clockwise and counter-clockwise                                 scenarios/conveyor.toml
```
The paper shows photographs and screens of its own arm and belt, so that nothing here has a number to be compared with;
rows say what came out of ours. [Polachan 2022]
"""

from __future__ import annotations

import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.analysis import signals
from tcpsbed.errors import HookError
from tcpsbed.palette import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

    Floats = NDArray[np.float64]
    Picture = NDArray[np.uint8]

PACKAGES = {
    "mujoco": "needs MuJoCo: pip install 'tcpsbed[robot]'",
    "simplejpeg": "needs simplejpeg: pip install 'tcpsbed[media]'",
}
"""What figures need besides, and how to have it."""
FLOWS = ("kinematic", "haptic", "video", "audio")
SENSED = "tactile-teleoperator.sense"
GRIPPER_S = {"open": 1.0, "closed": 6.0}
"""Moments of the task at which the hand has not reached the object yet, and carries it."""
BELT_M_S = 0.05
"""The belt goes one way if it is at least so fast."""


@dataclass(frozen=True)
class Demonstration:
    """A run: per flow the samples delivered and lost and the mean delay in ms; over time gripper, wings, object, motor."""

    flows: dict[str, dict[str, Any]]
    t_s: Floats
    opening_m: Floats
    force_n: Floats
    object_z_m: Floats
    motor_t_s: Floats
    motor_hz: Floats

    def whole(self) -> int:
        """How many of the four flows lost nothing, of those that delivered something."""
        return sum(f["delivered"] > 0 and f["lost"] == 0 for name, f in self.flows.items() if name in FLOWS)


def lacking(*packages: str) -> str | None:
    """The command that installs a missing package; `None` if none is missing."""
    return next((PACKAGES[name] for name in packages if importlib.util.find_spec(name) is None), None)


def simulated(study: Study) -> None:
    """The three figures, in virtual time."""
    whole(study)
    gripper(study)
    belt(study)


def whole(study: Study) -> None:
    """Figure 7: glove, arm and four flows between two hosts in one scenario."""
    if lack := lacking("mujoco", "simplejpeg"):
        study.cannot("figure7", lack)
        return
    seconds = 12 if study.full else 6
    found = study.run("polachan-demo", [f"duration='{seconds} s'", "measure.pcapng='off'"], demonstration)
    told = ", ".join(
        f"{name} {f['delivered']} delivered, mean {f['delay_ms']:.2f} ms" for name, f in found.flows.items()
    )
    study.compare("figure7", found.whole(), f"{study.expected['figure7'].why}; {told}")
    study.figure("figure7", "Figure 7: glove, arm, four flows, two hosts", lambda f: _whole(f, found))


def demonstration(run: Run) -> Demonstration:
    """What a run of the whole shows of flows, arm, object and glove."""
    flows = {
        name: {"delivered": flow["delivered"], "lost": flow["lost"], "delay_ms": flow["delay_ms"]["mean"]}
        for name, flow in run.flows.items()
    }
    sensed = signals.read(run.folder, SENSED)
    motors = signals.read(run.folder, "ms-com.exit", "haptic")
    values = sensed.values
    return Demonstration(
        flows,
        sensed.t_s,
        values[:, 8],
        values[:, 3:5].sum(axis=1),
        values[:, 11],
        motors.t_s,
        motors.values[:, 0],
    )


def gripper(study: Study) -> None:
    """Figure 14: the gripper open and closed, each as a run leaves it."""
    if lack := lacking("mujoco"):
        study.cannot("figure14", lack)
        return
    found = study.each(GRIPPER_S, lambda name: hand(study, GRIPPER_S[name]))
    told = ", ".join(f"{name} {1e3 * opening:.1f} mm" for name, (opening, _) in found.items())
    apart = 1e3 * (found["open"][0] - found["closed"][0])
    study.compare("figure14", apart, f"{study.expected['figure14'].why}; {told}")
    pictures = {name: picture for name, (_, picture) in found.items() if picture is not None}
    if len(pictures) == len(found):
        title = "Figure 14: the gripper open and closed (simulated arm)"
        study.figure("figure14", title, lambda figure: _pictures(figure, pictures))


def hand(study: Study, seconds: float) -> tuple[float, Picture | None]:
    """Opening of the gripper in m as a run of so many seconds leaves it, and a picture where one can be drawn."""
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        state = Path(folder) / "state"
        publish = f"components.tactile-teleoperator.robot.params.publish='{state}'"
        settings = [publish, f"duration='{seconds} s'", "warmup='0 s'", "measure.pcapng='off'"]
        opening = study.run(
            "polachan-arm",
            settings,
            lambda run: float(signals.read(run.folder, SENSED).values[-1, 8]),
        )
        return opening, drawn(state)


def drawn(state: Path) -> Picture | None:
    """The arm in a published state, seen from the front; `None` where nothing here draws."""
    from tcpsbed import hooks
    from tcpsbed.robots import ROBOTS
    from tcpsbed.robots.arm import Arm
    from tcpsbed.robots.cell import Cell

    read = Cell.open(state).read()
    assert read is not None, "a run publishes its last state"
    arm: Arm = hooks.make(*ROBOTS["mujoco-arm"], {})
    try:
        arm.show(read[2])
        return arm.render("left", 640, 400)
    except HookError:
        return None
    finally:
        arm.scene.close()


def belt(study: Study) -> None:
    """Figure 21: the belt clockwise and counter-clockwise, seen with the direction of positive speed to the right."""
    if lack := lacking("mujoco"):
        study.cannot("figure21", lack)
        return
    t_s, belt_m_s, glass_m_s, glass_m = study.run("conveyor", [], carried)
    ways = {
        "clockwise": belt_m_s > BELT_M_S,
        "counter-clockwise": belt_m_s < -BELT_M_S,
    }
    told = ", ".join(
        f"{way}: belt {np.median(belt_m_s[these]):+.3f}, glass {np.median(glass_m_s[these]):+.3f} m/s"
        for way, these in ways.items()
        if these.any()
    )
    both = sum(bool(these.any()) for these in ways.values())
    study.compare("figure21", both, f"{study.expected['figure21'].why}; {told}")
    study.figure(
        "figure21",
        "Figure 21: a belt clockwise and counter-clockwise (simulated)",
        lambda figure: _belt(figure, t_s, belt_m_s, glass_m, ways),
    )


def carried(run: Run) -> tuple[Floats, Floats, Floats, Floats]:
    """Times in s, speeds of belt and glass in m/s, place of the glass in m along the belt."""
    sensed = signals.read(run.folder, SENSED)
    return sensed.t_s, sensed.values[:, 7], sensed.values[:, 6], sensed.values[:, 3]


def _whole(figure: Figure, found: Demonstration) -> None:
    rows = figure.subplots(4, 1)
    figure.set_size_inches(8, 8)
    rows[0].barh(list(found.flows), [flow["delay_ms"] for flow in found.flows.values()])
    rows[0].set(xlabel="mean delay of a flow (ms)")
    rows[1].plot(found.t_s, 1e3 * found.opening_m, label="opening of the gripper")
    rows[1].plot(found.t_s, 1e3 * found.object_z_m, label="height of the object")
    rows[1].set(ylabel="mm")
    rows[1].legend(fontsize=7)
    rows[2].plot(found.t_s, found.force_n)
    rows[2].set(ylabel="both wings (N)")
    rows[3].plot(found.motor_t_s, found.motor_hz)
    rows[3].set(ylabel="motor (Hz)", xlabel="time (s)")


def _pictures(figure: Figure, pictures: dict[str, Picture]) -> None:
    for axes, (name, picture) in zip(figure.subplots(1, len(pictures)), pictures.items(), strict=True):
        axes.imshow(picture)
        axes.set_title(name)
        axes.set_axis_off()


def _belt(
    figure: Figure, t_s: Floats, belt_m_s: Floats, glass_m: Floats, ways: dict[str, NDArray[np.bool_]]
) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True)
    for (way, these), color in zip(ways.items(), (PALETTE[2], PALETTE[1]), strict=True):
        low, high = belt_m_s.min(), belt_m_s.max()
        upper.fill_between(t_s, low, high, where=these, color=color, alpha=0.2, linewidth=0, label=way)
    upper.plot(t_s, belt_m_s)
    upper.set(ylabel="speed of the belt (m/s)")
    upper.legend(fontsize=8)
    lower.plot(t_s, 1e3 * glass_m)
    lower.set(ylabel="glass along the belt (mm)", xlabel="time (s)")
