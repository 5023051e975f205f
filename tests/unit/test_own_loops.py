"""Loops of the user's own: plants and controllers as transfer functions, matrices, objects, code, MuJoCo models."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import signal
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import _tcps, linear, scenarios, shipped
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.lab.control import identified, systems, theory, tuning
from tcpsbed.lab.control.batch import Bench, Cell
from tcpsbed.lab.control.response import Step
from tcpsbed.lab.control.theory import LoopModel, margins

HEADER = Path(tcpsbed.__file__).parent / "data"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LAG = {"kind": "lag", "time_constant_ns": 20_000_000}
LAG_PY = """
import math
import numpy as np
import tcpsbed

class Called:
    def __init__(self):
        self.x, self.u, self.at = 0.0, 0.0, None

    def __call__(self, t_ns, index, x, other, y):
        dt = 0.0 if self.at is None else (t_ns - self.at) * 1e-9
        self.x = self.u + (self.x - self.u) * math.exp(-50.0 * dt)
        self.at, self.u = t_ns, x[0] - 1.0
        y[0] = 1.0 + self.x
        return 1

class Matrices(tcpsbed.Plant):
    def matrices(self):
        return [[-50.0]], [50.0], [1.0]

class Equation(tcpsbed.NonlinearPlant):
    x0 = (1.0,)
    def rates(self, x, u): return [50.0 * (u - x[0])]
    def output(self, x, u): return x[0]

class Saturated(tcpsbed.NonlinearPlant):
    x0 = (1.0,)
    def rates(self, x, u): return [50.0 * (min(u, 1.5) - x[0])]
    def output(self, x, u): return x[0]

class Raises(Called):
    def __call__(self, *given): raise ValueError("boom")

class Later(Called):
    def __call__(self, t_ns, *rest):
        if t_ns > 300_000_000: raise ValueError("late boom")
        return super().__call__(t_ns, *rest)

class NotANumber(Called):
    def __call__(self, t_ns, index, x, other, y):
        y[0] = math.nan
        return 1

class Silent(Called):
    def __call__(self, *given): return 0

class Restless(Called):
    def __call__(self, t_ns, index, x, other, y):
        y[0] = 0.5
        return 1

class Rough(Called):
    def __call__(self, t_ns, index, x, other, y):
        self.u = self.u or x[0] - 1.0
        y[0] = 1.0 + self.u * math.sin(index**2)
        return 1

class Deaf(Called):
    def __call__(self, t_ns, index, x, other, y):
        y[0] = 1.0
        return 1

def compiled(t_ns, index, x, other, state, y):
    dt = (t_ns - state[2]) * 1e-9 if state[3] > 0 else 0.0
    state[0] = state[1] + (state[0] - state[1]) * math.exp(-50.0 * dt)
    state[1] = x[0] - 1.0
    state[2] = t_ns
    state[3] = 1
    y[0] = 1.0 + state[0]
    return 1
"""
PENDULUM = """
<mujoco><option timestep="0.001" gravity="0 0 0" integrator="implicit"/>
  <worldbody><body><joint name="hinge" type="hinge" axis="0 1 0" damping="10" armature="1"/>
    <geom type="sphere" size="0.01" mass="1e-9"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor></mujoco>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("own")
    (found / "mine.py").write_text(LAG_PY)
    (found / "hinge.xml").write_text(PENDULUM)
    if compiler := shutil.which("cc"):
        library = found / "liblag.so"
        command = [
            compiler,
            "-O2",
            "-shared",
            "-fPIC",
            f"-I{HEADER}",
            "-o",
            library,
            EXAMPLES / "own_plant.c",
            "-lm",
        ]
        subprocess.run(command, check=True)
    return found


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def curve(plant: Any, tmp_path: Path, **more: Any) -> Any:
    """H of a run of the shipped scenario with this plant."""
    given = {"controller": ([0.2, 30.0], [1.0, 0.0])} | more
    return tcpsbed.step(plant=plant, runs=1, out=tmp_path / "out", **given)[""].curves[0].h


@pytest.mark.parametrize(
    "plant",
    [
        ([1.0], [0.02, 1.0]),
        ([[-50.0]], [50.0], [1.0]),
        ([[-50.0]], [[50.0]], [[1.0]], [[0.0]]),
        ([1 - math.exp(-0.05)], [1.0, -math.exp(-0.05)], 0.001),
        signal.TransferFunction([1.0], [0.02, 1.0]),
        signal.StateSpace([[-50.0]], [[50.0]], [[1.0]], [[0.0]]),
        signal.ZerosPolesGain([], [-50.0], 50.0),
        signal.TransferFunction([1.0], [0.02, 1.0]).to_discrete(0.001),
        {"kind": "transfer-function", "num": [1], "den": [0.02, 1]},
        "mine.py:Matrices",
        "mine.py:Called",
        "mine.py:Equation",
        "mine.py:compiled",
        "liblag.so:lag",
    ],
    ids=str,
)
def test_the_same_plant_in_every_form_answers_the_same(plant: Any, here: Path, tmp_path: Path) -> None:
    if plant == "mine.py:compiled":
        pytest.importorskip("numba")
    if isinstance(plant, str):
        plant = f"{here}/{plant}"
    if isinstance(plant, str) and ".so:" in plant and not shutil.which("cc"):
        pytest.skip("no C compiler")
    built_in, found = (curve(one, tmp_path / str(n)) for n, one in enumerate(("lag", plant)))
    near = 1e-9 if isinstance(plant, str) and plant.endswith("Equation") else 1e-12
    assert len(found) == 1200 and np.ptp(found) > 0.5
    assert found == pytest.approx(built_in, abs=near, rel=0)


def test_matrices_of_a_class_and_of_the_call_are_the_built_in_plant_byte_for_byte(
    here: Path, tmp_path: Path
) -> None:
    found = [
        curve(plant, tmp_path / str(n)).tobytes()
        for n, plant in enumerate(("lag", f"{here}/mine.py:Matrices", ([1.0], [0.02, 1.0])))
    ]
    assert found[0] == found[1] == found[2]


def test_a_controller_in_z_with_the_equation_of_pi_is_pi(tmp_path: Path) -> None:
    """K = Kp e + I with I += Ki T e, as C(z) = ((Kp + g) z - Kp) / (z - 1); in the scenario, and in the engine."""
    kp, g = 0.2, 0.0909
    law = ([kp + g, -kp], [1.0, -1.0], 0.001)
    pi, own = (
        tcpsbed.step(runs=2, phases=True, controller=one, out=tmp_path / str(n))[""].responses
        for n, one in enumerate((None, law))
    )
    for one, other in zip(pi, own, strict=True):
        assert vars(one) == pytest.approx(vars(other), abs=1e-9)
    table = systems.table(law, "controller") | {"sample_time_ns": 1_000_000}
    del table["sample_time"]
    for jitter in (None, {"kind": "exponential", "mean_ns": 500_000}):
        cells = [
            Cell(
                1, 5, 5, kp, g, loss={"kind": "random", "p": 0.2}, jitter=jitter, phases=True, controller=one
            )
            for one in (None, table)
        ]
        for plant in (None, LAG):
            built_in, linear = Bench(Step(plant=plant), runs=20, duration_ms=1200).run(cells, keep=True)
            for one, other in zip(built_in["runs"], linear["runs"], strict=True):
                assert one == pytest.approx(other, abs=1e-7, nan_ok=True)


def test_an_output_disturbance_is_the_step_response_of_the_textbook(tmp_path: Path) -> None:
    """H less its level after the step, in shares of the step, is T = L / (1 + L) of the sampled loop, with its delay."""
    plant, law, ticks = ([1.0], [0.05, 1.0]), ([0.8, 20.0], [1.0, 0.0]), 10
    found = tcpsbed.step(plant=plant, controller=law, disturbance="output", runs=1, out=tmp_path)[""]
    g, c = signal.cont2discrete(plant, 0.001), signal.cont2discrete(law, 0.001, "bilinear")
    num = np.polymul(np.ravel(g[0]), np.ravel(c[0]))
    den = np.append(np.polymul(np.ravel(g[1]), np.ravel(c[1])), np.zeros(ticks))
    closed = np.polyadd(den, num)
    _, [right] = signal.dimpulse((num, closed, 0.001), n=900)
    t, h = found.curves[0].t_ms, found.curves[0].h
    assert (h[t >= 200][:800] - 0.5) / 0.5 == pytest.approx(np.cumsum(np.ravel(right))[:800], abs=1e-9)


def sampled(system: Any, period_ms: float, controls: bool = False) -> tuple[Any, Any, Any, float]:
    """A, B, C and D of a system of one axis from tick to tick; B and C are vectors."""
    found = linear.sampled(system, round(period_ms * 1e6), controls=controls)
    return found.a, found.b[:, 0], found.c[0], float(found.d[0, 0])


def closed_roots(loop: LoopModel) -> float:
    """Largest magnitude of the eigenvalues of the closed loop, by its whole state with its delay line."""
    a, b, c, d = _chain(loop)
    n, ticks = len(a), loop.ticks
    full = np.zeros((n + ticks, n + ticks))
    full[:n, :n], full[:n, -1] = a, -b
    full[n, :n], full[n, -1] = c, -d
    for i in range(1, ticks):
        full[n + i, n + i - 1] = 1
    return float(np.abs(np.linalg.eigvals(full)).max())


def _chain(loop: LoopModel) -> tuple[Any, Any, Any, float]:
    """Controller, then plant, over c, from tick to tick."""
    g = sampled(loop.plant or {"kind": "static"}, loop.period_ms)
    law = loop.controller
    c = (
        sampled(law, loop.period_ms, controls=True)
        if law
        else (np.eye(1), np.array([loop.g]), np.ones(1), loop.kp + loop.g)
    )
    a = np.block([[c[0], np.zeros((len(c[0]), len(g[0])))], [np.outer(g[1], c[2]), g[0]]])
    return (
        a,
        np.concatenate([c[1], g[1] * c[3]]),
        np.concatenate([g[3] * c[2], g[2]]) / loop.c,
        g[3] * c[3] / loop.c,
    )


def tf(num: list[float], den: list[float]) -> dict[str, Any]:
    return {"kind": "transfer-function", "num": num, "den": den}


@pytest.mark.parametrize(
    ("plant", "law", "gain", "delay_ms"),
    [
        # L = K / s: crossing at K, phase margin 90 degrees: delay margin pi / (2 K)
        (tf([1.0], [1.0]), tf([20.0], [1.0, 0.0]), math.inf, 1e3 * math.pi / 40),
        # L = K / (tau s + 1), K > 1: w = sqrt(K^2 - 1) / tau, delay margin (pi - atan(w tau)) / w
        (
            tf([1.0], [0.1, 1.0]),
            tf([5.0], [1.0]),
            math.inf,
            1e3 * (math.pi - math.atan(math.sqrt(24))) / (math.sqrt(24) / 0.1),
        ),
        # L = K (s z + 1) / s^2: w^2 = (K^2 z^2 + sqrt(K^4 z^4 + 4 K^2)) / 2, delay margin atan(w z) / w
        (
            tf([1.0], [1.0, 0.0, 0.0]),
            tf([100 * 0.2, 100.0], [1e-9, 1.0]),
            math.inf,
            (lambda w: 1e3 * math.atan(0.2 * w) / w)(
                math.sqrt(((100 * 0.2) ** 2 + math.sqrt((100 * 0.2) ** 4 + 4 * 100**2)) / 2)
            ),
        ),
        # L = K / (s (s + a) (s + b)): gain margin a b (a + b) / K
        (tf([1.0], [1.0, 30.0, 200.0, 0.0]), tf([1000.0], [1.0]), 200 * 30 / 1000, None),
    ],
)  # fmt: skip
def test_margins_of_textbook_loops(plant: Any, law: Any, gain: float, delay_ms: float | None) -> None:
    """[Franklin 2010] In s, which a period of 20 us with its delay of one and a half comes near to."""
    period = 0.02
    found = margins(LoopModel(0, 0, period, 0, 1.0, plant, law))
    if math.isfinite(gain):
        assert found.gain == pytest.approx(gain, rel=0.02)
    if delay_ms is not None:
        assert found.delay_ms + 1.5 * period == pytest.approx(delay_ms, abs=0.1 * period + 1e-3 * delay_ms)
        omega = 2 * math.pi * found.crossing_hz
        assert math.radians(found.phase_deg) == pytest.approx(found.delay_ms * 1e-3 * omega, rel=1e-9)


LOOPS = [
    LoopModel(0.2, 0.05, 1.0, 10.0),
    LoopModel(0.2, 0.05, 1.0, 10.0, plant=LAG),
    LoopModel(0, 0, 1.0, 10.0, 1.0, tf([1.0], [0.05, 1.0]), tf([0.8, 20.0], [1.0, 0.0])),
    LoopModel(0, 0, 2.0, 14.0, 2.0, tf([4.0], [0.001, 0.05, 1.0]), tf([0.1, 2.0], [0.01, 1.0])),
    LoopModel(0, 0, 1.0, 3.0, 1.0, tf([100.0], [1.0, 0.0, -25.0]), tf([0.1, 1.0], [0.002, 1.0])),
    LoopModel(0, 0, 1.0, 30.0, 1.0, tf([400.0], [1.0, 0.4, 400.0]), tf([1.0], [1.0, 0.0])),
    LoopModel(0, 0, 1.0, 30.0, 1.0, tf([1.0], [0.01, 1.0]), tf([3.0], [1.0])),
    LoopModel(0, 0, 1.0, 1.0, 1.0, tf([1.0], [1.0, 0.0, -4.0]), tf([1.0], [1.0])),
    LoopModel(0, 0, 1.0, 796.0, 1.0, tf([40.0], [1.0, 6.0, 0.0]), tf([1.5, 3.0], [1.0, 12.0])),
]
JUST_BEYOND = LOOPS[-1]
"""Less than a thousandth beyond its limit, and between two angles that are looked at."""


@pytest.mark.parametrize(
    "loop",
    [pytest.param(loop, id=str(n), marks=pytest.mark.slow if n == 8 else ()) for n, loop in enumerate(LOOPS)],
)
def test_margins_are_where_eigenvalues_of_the_closed_loop_leave_the_circle(loop: LoopModel) -> None:
    """[Nyquist 1932]"""
    from dataclasses import replace

    found, largest = margins(loop), closed_roots(loop)
    assert found.stable == (largest < 1)
    if loop is JUST_BEYOND:
        assert 0.999 < found.gain < 1
    if loop is LOOPS[6]:  # two crossings of the negative axis are beyond -1
        assert 0 < found.gain < 1
    if math.isfinite(found.gain) and found.gain > 0:
        inner, outer = (closed_roots(replace(loop, c=loop.c / (found.gain * by))) for by in (0.999, 1.001))
        assert inner < 1 < outer
    if math.isfinite(found.delay_ms) and found.delay_ms > 0:
        more = math.floor(found.delay_ms / loop.period_ms + 1e-9)
        near = [
            closed_roots(replace(loop, delay_ms=(loop.ticks + n) * loop.period_ms)) for n in (more, more + 1)
        ]
        assert near[0] < 1 < near[1]


@pytest.mark.parametrize("loop", [one for one in LOOPS if margins(one).stable], ids=str)
def test_margins_are_those_of_python_control(loop: LoopModel) -> None:
    control = pytest.importorskip("control", reason="python-control is not installed: pip install control")
    a, b, c, d = _chain(loop)
    dt = loop.period_ms * 1e-3
    delay = control.tf([1.0], [1.0, *[0.0] * loop.ticks], dt)
    opened = control.ss2tf(control.ss(a, b[:, None], c[None], [[d]], dt)) * delay
    found, theirs = margins(loop), control.stability_margins(opened, returnall=True)
    below = [gm for gm in theirs[0] if gm > 1]
    assert found.gain == pytest.approx(min(below, default=math.inf), rel=1e-4)
    spare = [math.radians(pm % 360) / w * 1e3 for pm, w in zip(theirs[1], theirs[4], strict=True)]
    assert found.delay_ms == pytest.approx(min(spare, default=math.inf), rel=1e-4)
    if len(theirs[4]):
        assert found.crossing_hz == pytest.approx(max(theirs[4]) / (2 * math.pi), rel=1e-6)
        assert found.phase_deg == pytest.approx(min(pm % 360 for pm in theirs[1]), rel=1e-4)


def test_objects_of_python_control_are_taken() -> None:
    control = pytest.importorskip("control", reason="python-control is not installed: pip install control")
    s = control.tf("s")
    assert systems.table(1 / (0.05 * s + 1), "plant") == tf([1.0], [0.05, 1.0])
    assert systems.table(control.tf([0.1], [1, -0.9], 0.001), "plant") == {
        "kind": "transfer-function",
        "num": [0.1],
        "den": [1.0, -0.9],
        "sample_time": "1 ms",
    }
    found = systems.table(control.ss([[-50]], [[50]], [[1]], [[0]]), "plant")
    assert found == {"kind": "state-space", "a": [[-50.0]], "b": [50.0], "c": [1.0], "d": 0.0}
    for wrong, message in (
        (control.tf([0.1], [1, -0.9], True), "plant: found dt = True; allowed: a sample time in s"),
        (
            control.nlsys(lambda t, x, u, p: -x, inputs=1, outputs=1, states=1),
            "plant: found a nonlinear system",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            systems.table(wrong, "plant")


def test_the_map_ends_where_python_control_says(tmp_path: Path) -> None:
    """Without loss and with both sides in step, runs of 20 s swing ever more just beyond the delay margin."""
    control = pytest.importorskip("control", reason="python-control is not installed: pip install control")
    plant, law = control.tf([1.0], [0.05, 1.0]), control.tf([1.0, 30.0], [1.0, 0.0])
    opened = control.sample_system(plant, 0.001) * control.sample_system(law, 0.001, "tustin")
    _, pm, _, w = control.margin(opened)
    most_ms = math.radians(pm) / w * 1e3
    found = tcpsbed.map(
        plant=plant, controller=law, disturbance="output", rtt="1 ms..60 ms", loss="0..1%", cells="60x2",
        runs=1, aligned=True, overshoot=1000, set={"duration": "20 s"},
    )  # fmt: skip
    settles = ~np.isnan(found.map.mean["settling_ms"][0])
    last = max(rtt for rtt, well in zip(found.map.grid.rtt_ms, settles, strict=True) if well)
    assert most_ms - 2 <= last <= most_ms
    assert found.margins.delay_ms + 1 == pytest.approx(most_ms, abs=1e-3)
    assert "delay margin" in str(found) and "phase margin" in str(found)


def test_a_map_beside_runs_with_packets_agrees(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app,
        [
            "map", str(Path(tcpsbed.__file__).parent / "data/scenarios/step.toml"), "--plant",
            '{ kind = "transfer-function", num = [1], den = [0.004, 1] }', "--gain", "0.2:0.06", "--cells", "20x3",
            "--rtt", "0 ms..40 ms", "--loss", "0..40%", "--runs", "60", "--verify", "3", "--verify-runs", "12",
            "--bursts", "3", "--jitter", "0.3 ms", "--json",
        ],
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    points = json.loads(done.stdout)["verified"]
    assert [point["agrees"] for point in points] == [True] * 3
    assert [point["loss"] for point in points] == [0.0, 0.2, 0.4]
    assert all(point["testbed"]["runs"] == 12 and point["map"]["runs"] == 60 for point in points)
    assert all(0 < point["testbed"]["overshoot"] < 60 for point in points)


def test_a_map_of_another_loop_does_not_agree(tmp_path: Path) -> None:
    """The comparison can fail: a queue in the scenario, of which the map knows nothing."""
    queue = {"links.line.rate": "150 kbit/s"}
    found = tcpsbed.map(
        cells="10x2", rtt="0 ms..30 ms", loss="0..10%", runs=20, verify=2, verify_runs=3, set=queue
    )
    assert not any(point.agrees for point in found.points)
    assert "NO" in str(found) and "map: overshoot" in str(found)
    assert len(found.sentences) == 2
    for sentence, point in zip(found.sentences, found.points, strict=True):
        assert f"packets at {point.rtt_ms:.1f} ms CONTRADICT the map: overshoot" in sentence
        assert f"{point.tested.good.good} of 3 good" in sentence and "20 good" in sentence
    assert all("agree" not in sentence for sentence in found.figures["sentences"])


def test_the_figure_of_a_map_has_its_margins_and_what_packets_say_and_no_axis_below_zero(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    from tcpsbed.lab.control import figure

    drawn: list[Any] = []
    monkeypatch.setattr(figure, "saved", lambda made, file: drawn.append(made) or file)
    found = tcpsbed.map(
        cells="10x2", rtt="0 ms..30 ms", loss="0..10%", runs=20, verify=2, verify_runs=3,
        set={"links.line.rate": "150 kbit/s"},
    )  # fmt: skip
    found.draw(tmp_path / "map.svg")
    [made] = drawn
    axes = made.axes[0]
    title = axes.get_title(loc="left")
    assert axes.get_ylim() == (0, 10) and axes.get_xlim() == (0, 30)
    assert "gain margin" in title and "CONTRADICT" in title
    assert "packets contradict the map" in axes.get_legend_handles_labels()[1]


@pytest.mark.parametrize("code", ["mine.py:Called", "mine.py:Equation", "liblag.so:lag"])
def test_code_is_linearised_to_what_it_is(code: str, here: Path) -> None:
    """[Kung 1978]"""
    if code.startswith("lib") and not shutil.which("cc"):
        pytest.skip("no C compiler")
    lag, own = (
        tcpsbed.map(plant=one, gain="0.2:0.03", cells="4x2", runs=4)
        for one in (([1.0], [0.02, 1.0]), f"{here}/{code}")
    )
    assert own.linearised is not None and own.linearised.order == 1 and own.linearised.off < 1e-6
    assert own.map.mean["overshoot"] == pytest.approx(lag.map.mean["overshoot"], abs=1e-5)
    assert vars(own.margins) == pytest.approx(vars(lag.margins), rel=1e-5)


def test_what_is_not_linear_shows_in_the_runs_and_is_told_in_the_map(here: Path, tmp_path: Path) -> None:
    found = tcpsbed.map(plant=f"{here}/mine.py:Saturated", gain="0.2:0.03", cells="3x2", runs=4)
    assert found.linearised is not None and found.linearised.off == pytest.approx(1.0, abs=0.01)
    assert "linear model of order 1" in str(found) and "100 % off" in str(found)
    linear, saturated = (
        curve(f"{here}/mine.py:{name}", tmp_path / name) for name in ("Equation", "Saturated")
    )
    assert saturated[-1] == pytest.approx(0.75) and linear[-1] == pytest.approx(1.0, abs=0.01)


def test_a_model_in_mujoco_is_a_plant(here: Path, tmp_path: Path) -> None:
    """Inertia 1, damping 10: 1 / (s^2 + 10 s), of the built-in mass; MuJoCo's integrator is implicit Euler."""
    pytest.importorskip("mujoco")
    plant = {
        "kind": "mujoco", "file": f"{here}/hinge.xml", "actuator": "motor", "sensor": "angle", "gain": 100
    }  # fmt: skip
    mass, own = (
        curve(one, tmp_path / str(n), controller=([1.0, 4.0], [0.005, 1.0]))
        for n, one in enumerate(("mass", plant))
    )
    assert np.ptp(mass) > 0.4 and own == pytest.approx(mass, abs=0.02)
    found = tcpsbed.map(plant=plant, controller=([1.0, 4.0], [0.005, 1.0]), cells="3x2", runs=2)
    right = tcpsbed.map(plant="mass", controller=([1.0, 4.0], [0.005, 1.0]), cells="3x2", runs=2)
    assert found.linearised is not None and found.linearised.order == 2 and found.linearised.off < 1e-6
    assert found.margins.delay_ms == pytest.approx(right.margins.delay_ms, rel=0.05)


def test_tune_finds_the_gain_of_a_controller_of_mine() -> None:
    """The factor is within its limits, and 15 % more is not or is not faster."""
    law = ([0.02, 1.0], [1.0, 0.0])
    found = tcpsbed.tune("10 ms", plant=([1.0], [0.02, 1.0]), controller=law, runs=20)
    assert found is not None and found.best.factor is not None and math.isnan(found.best.kp)
    assert found.margins.stable and f"multiply it by {found.best.factor:.4g}" in str(found)
    assert found.figures["kp"] is None and found.figures["factor"] == found.best.factor
    network = tuning.Network(10.0, plant=tf([1.0], [0.02, 1.0]), controller=tf(*law))
    step = Step(2.0, math.ceil(2 * network.theta_ms), network.plant)
    bench = Bench(step, 20, step.t0_ms + 60 * network.theta_ms, 1, tuning.TIGHT)
    here, more = bench.run([network.cell(found.best.factor * by, 0.0) for by in (1.0, 1.15)])
    assert here["good"] >= 19 and here["rise_ms"]["mean"] == pytest.approx(found.best.rise_ms)
    assert more["good"] < 19 or more["rise_ms"]["mean"] >= here["rise_ms"]["mean"]


def test_a_scenario_with_systems_in_z_at_their_own_period() -> None:
    """The shipped scenario takes the sample time of a system in z; one of the user's is refused where it does not fit."""
    law = ([0.3, -0.2], [1.0, -1.0], 0.004)
    found = tcpsbed.map(controller=law, cells="3x2", runs=2)
    assert found.map.grid.period_ms == 4.0
    with pytest.raises(ConfigError, match='--controller: sample_time: found "4 ms"; allowed: a part of the'):
        tcpsbed.map(_shipped(), controller=law)
    gains = tcpsbed.tune("20 ms", controller=law, period="4 ms", runs=4)
    assert gains is not None and gains.loop.period_ms == 4.0


def _shipped() -> Path:
    from tcpsbed import shipped

    return shipped.find("step")


NAN = float("nan")
IN_Z = "{ kind = 'transfer-function', num = [0.1], den = [1, -0.9], sample_time = '1 ms' }"
WRONG: list[tuple[Any, str]] = [
    (
        ([1.0, 0.0, 0.0], [1.0, 1.0]),
        r"--plant: num: found degree 2 over degree 1, which is improper; allowed: at most",
    ),
    (
        ([1.0], [0.0]),
        r"--plant: den: found no coefficient but 0; allowed: coefficients from the highest power",
    ),
    (([1.0], [1.0] * 18), r"--plant: den: found 18 coefficients; allowed: at most 17"),
    (([NAN], [1.0, 1.0]), r"plant: num: found nan; allowed: a list of finite numbers"),
    (([math.inf], [1.0, 1.0]), r"plant: num: found inf"),
    ((["a"], [1.0]), r"plant: num: found \['a'\]; allowed: a list of finite numbers, such as \[0.05, 1.0\]"),
    (([[1.0]], [1.0]), r"plant: num: found an array of 2 dimensions"),
    (([1.0],), r"plant: found 1 parts; allowed: numerator and denominator"),
    ((), r"plant: found 0 parts; allowed: numerator and denominator"),
    (
        ([[-1.0, 0.0]], [1.0], [1.0]),
        r"--plant: a: found rows of \[2\] values; allowed: as many values in each row",
    ),
    (
        ([[0.0] * 300] * 300, [1.0] * 300, [1.0] * 300),
        r"plant: A: found 300 × 300 numbers; allowed: at most 256 states",
    ),
    (
        ([[0.0] * 20] * 20, [1.0] * 20, [1.0] * 20),
        r"--plant: a: found 20 rows; allowed: as many values in each",
    ),
    (([[-1.0]], [1.0, 2.0], [1.0]), r"plant: B: found 2 numbers; allowed: 1 numbers, as A has rows"),
    (([[-1.0]], [1.0], [1.0], [1.0, 2.0]), r"plant: D: found 2 numbers; allowed: one number"),
    (([1.0], [1.0, -1e9]), r"--plant: found a system without finite matrices from tick to tick \(1 ms\)"),
    (([1.0], [1.0, 0.5], -0.1), r"plant: sample time: found -0.1; allowed: 1e-6 to 1e4 s"),
    (([1.0], [1.0, 0.5], NAN), r"plant: sample time: found nan"),
    ("leg", r'--plant: found "leg" \(did you mean lag\?\); allowed: "static", "lag"'),
    ({"kind": "transfer-function", "num": [1]}, r'--plant: found no parameter "den"'),
    (
        {"kind": "transfer-function", "num": [1], "den": [1, 1], "sample_time": 3},
        r"--plant: sample_time: found 3, a number without a unit",
    ),
    (7.0, r"plant: found float; allowed: numerator and denominator"),
    (lambda k: k, r"plant: found .*lambda.*, which no file has at its top; allowed: a class or function"),
]


@pytest.mark.parametrize(("plant", "message"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_a_plant_is_one_message_that_names_it(plant: Any, message: str) -> None:
    asked: list[Callable[[], Any]] = [
        lambda: tcpsbed.step(plant=plant, runs=1),
        lambda: tcpsbed.map(plant=plant, cells="2x2", runs=1),
        lambda: tcpsbed.tune("5 ms", plant=plant, runs=1),
    ]
    for ask in asked:
        with pytest.raises(ConfigError, match=message):
            ask()


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (([1.0, 0.0], [1.0]), r"--controller: num: found degree 1 over degree 0, which is improper"),
        (([1.0], [1.0, -2000.0]), r"--controller: found a system without finite matrices from tick to tick"),
        (([NAN], [1.0]), r"controller: num: found nan"),
        (
            "mine.py:Called",
            r"--controller: found \".*mine.py:Called\", which has no matrices; allowed: a class with",
        ),
    ],
)
def test_what_cannot_be_a_controller_is_one_message_that_names_it(law: Any, message: str, here: Path) -> None:
    law = f"{here}/{law}" if isinstance(law, str) else law
    for ask in (
        lambda: tcpsbed.map(controller=law, cells="2x2", runs=1),
        lambda: tcpsbed.tune("5 ms", controller=law),
    ):
        with pytest.raises(ConfigError, match=message):
            ask()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "Raises",
            r"--plant: found \".*Raises\", which fails: ValueError: boom, at .*mine.py:\d+ in __call__",
        ),
        (
            "NotANumber",
            r"--plant: found \".*\", which answers 1 with nan, not with a finite number|answers 1 with NaN",
        ),
        ("Silent", r"--plant: found \".*\", which answers with no value, not with y"),
        ("Restless", r"--plant: found \".*\", which answers k = 1 with 0.5, 0.5, 0.5"),
        ("Nowhere", r"--plant: found \"Nowhere\""),
    ],
)
def test_code_that_cannot_be_a_plant_is_found_before_the_run(name: str, message: str, here: Path) -> None:
    scenario = scenarios.load(_shipped())
    with pytest.raises(ConfigError, match=message):
        scenarios.check(systems.applied(scenario, f"{here}/mine.py:{name}"))


@pytest.mark.parametrize(
    ("does", "said"), [("raise SystemExit(0)", "it ends the program"), ("1 / 0", "ZeroDivision")]
)
def test_matrices_that_fail_or_end_the_program_are_one_message(does: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "exits.py"
    file.write_text(
        f"import tcpsbed\nclass Own(tcpsbed.Plant):\n    params = {{}}\n    def matrices(self):\n        {does}\n"
    )
    plant = f"{file}:Own"
    asked: list[Callable[[], Any]] = [
        lambda: scenarios.check(systems.applied(scenarios.load(_shipped()), plant)),
        lambda: tcpsbed.map(plant=plant, cells="2x2", runs=1),
        lambda: tcpsbed.tune("5 ms", plant=plant, runs=1),
    ]
    for ask in asked:
        with pytest.raises(ConfigError, match=rf"whose matrices\(\) fails .*{said}.*exits.py:5"):
            ask()


def test_a_plant_that_is_not_at_rest_is_refused_by_every_command(here: Path, tmp_path: Path) -> None:
    asked: list[Callable[[Any], Any]] = [
        lambda plant: scenarios.check(systems.applied(scenarios.load(_shipped()), plant)),
        lambda plant: tcpsbed.step(plant=plant, runs=1, out=tmp_path / "step"),
        lambda plant: tcpsbed.map(plant=plant, cells="2x2", runs=1),
        lambda plant: tcpsbed.tune("5 ms", plant=plant, runs=1),
    ]
    said = []
    for ask in asked:
        with pytest.raises(
            ConfigError, match=r"^--plant: .*which answers k = 1 with 0\.5, 0\.5, 0\.5"
        ) as refused:
            ask(f"{here}/mine.py:Restless")
        said.append(str(refused.value))
    assert len(set(said)) == 1 and not (tmp_path / "step").exists()


def test_code_that_fails_in_a_run_or_is_not_smooth_is_one_message(here: Path, tmp_path: Path) -> None:
    with pytest.raises(TcpsbedError, match="the plant fails: ValueError: late boom") as failed:
        tcpsbed.step(plant=f"{here}/mine.py:Later", runs=1, out=tmp_path / "later")
    assert "tactile-teleoperator" in str(failed.value)
    with pytest.raises(ConfigError, match=r"^plant: found code that fails: .*late boom"):
        tcpsbed.map(plant=f"{here}/mine.py:Later", cells="2x2", runs=1)
    with pytest.raises(
        ConfigError, match=r"^plant: found code whose answer to a small impulse is not that of a linear"
    ):
        tcpsbed.map(plant=f"{here}/mine.py:Rough", cells="2x2", runs=1)
    with pytest.raises(
        ConfigError, match=r"^plant: found code that does not answer to a small change of its command"
    ):
        tcpsbed.map(plant=f"{here}/mine.py:Deaf", cells="2x2", runs=1)


def test_options_take_tables_names_and_code(here: Path, tmp_path: Path) -> None:
    runner, file = CliRunner(), str(_shipped())
    more = ["--runs", "1", "--json", "--out", str(tmp_path / "step")]
    done = runner.invoke(
        app, ["step", file, "--plant", "{kind='lag', time_constant='20 ms'}", "--gain", "0.2:0.03", *more]
    )
    assert done.exit_code == 0, done.stderr
    setting = json.loads(done.stdout)["settings"][0]
    assert setting["margins"]["delay_ms"] > 0 and setting["loop"]["disturbance"] == "gain"
    again = scenarios.load(tmp_path / "step" / "scenario.toml")
    assert again.components["tactile-teleoperator"].robot.params["plant"]["kind"] == "lag"
    for options, message in (
        (["--plant", "{kind="], "--plant: found"),
        (["--disturbance", "input"], "--disturbance"),
        (["--plant", "leg"], 'found "leg"'),
        (["--plant", IN_Z, "--period", "1.5 ms"], "--period: found 1.5 ms, with sample_time_ns = 1 ms"),
    ):
        refused = runner.invoke(app, ["map", file, "--cells", "2x2", "--runs", "1", *options])
        assert refused.exit_code == 2 and message in refused.stderr and "Traceback" not in refused.stderr
    for options in (["--on-command"], ["--period", "2 ms"]):
        refused = runner.invoke(
            app, ["map", file, "--cells", "2x2", "--runs", "1", "--verify", "1", *options]
        )
        assert refused.exit_code == 2 and f"--verify: found it with {options[0]}" in refused.stderr


def test_the_answer_of_a_plant_to_commands() -> None:
    found = _tcps.plant_response(json.dumps(LAG), 1_000_000, [2.0] * 60)
    assert found == pytest.approx([2 - math.exp(-n / 20) for n in range(60)], abs=1e-12)
    assert identified.EPS > 0


def test_code_is_looked_for_in_the_working_folder_and_beside_the_scenario(here: Path, tmp_path: Path) -> None:
    assert systems.table("./mine.py:Called", "plant") == f"{here / 'mine.py'}:Called"
    assert systems.table({"kind": "mujoco", "file": "hinge.xml"}, "plant")["file"] == str(here / "hinge.xml")
    for other in ("lag", "./nowhere.py:Mine", "module:Mine"):
        assert systems.table(other, "plant") == other
    (tmp_path / "beside.py").write_text(LAG_PY)
    file = tmp_path / "step.toml"
    file.write_text(_shipped().read_text())
    found = tcpsbed.map(file, plant="./beside.py:Matrices", gain="0.2:0.03", cells="2x2", runs=1)
    assert found.margins.stable


@pytest.mark.parametrize("code", ["mine.py:Called", "liblag.so:lag"])
def test_code_is_a_plant_on_the_clock_of_the_machine(code: str, here: Path, tmp_path: Path) -> None:
    if code.startswith("lib") and not shutil.which("cc"):
        pytest.skip("no C compiler")
    given = {"controller": ([0.2, 30.0], [1.0, 0.0]), "runs": 1}
    simulated = tcpsbed.step(plant="lag", out=tmp_path / "virtual", **given)[""].responses[0]
    own = tcpsbed.step(plant=f"{here}/{code}", world="real", out=tmp_path / "real", **given)[""].responses[0]
    assert own.rise_ms == pytest.approx(simulated.rise_ms, rel=0.5) and abs(own.error) < 1


def test_the_example_comes_back_to_one_and_keeps_its_margins(tmp_path: Path) -> None:
    """Crossing where |C G| = 1 in s; 10 ms of links, and the half period for which a command holds, go from the margin."""
    found = tcpsbed.step(EXAMPLES / "own_loop.toml", runs=1, out=tmp_path)[""]
    assert found.responses[0].overshoot < 20 and abs(found.responses[0].error) < 0.1
    w = np.linspace(10.0, 30.0, 200_001)
    opened = 1.5 * (1j * w / 8 + 1) / (1j * w / 80 + 1) * 100 / ((1j * w) ** 2 + 10j * w)
    at = int(np.argmin(np.abs(np.abs(opened) - 1)))
    spare_ms = 1e3 * (np.angle(opened[at]) + np.pi) / w[at]
    assert found.margins is not None
    assert found.margins.crossing_hz == pytest.approx(w[at] / (2 * np.pi), rel=1e-3)
    assert found.margins.delay_ms == pytest.approx(spare_ms - 10 - 0.5, abs=0.1)


@pytest.mark.parametrize("off", [0.0, 1e-8, -1e-8])
def test_margins_at_a_gain_that_tends_to_1_are_not_defined(off: float) -> None:
    """Rounding decides whether such a gain crosses 1, and where: 10^6 s of delay margin, or any delay."""

    def found(gain: float) -> theory.Margins:
        law = {"kind": "transfer-function", "num": [gain], "den": [1.0]}
        lag = {"kind": "transfer-function", "num": [1.0], "den": [0.02, 1.0]}
        return margins(LoopModel(0.0, 0.0, 1.0, 10.0, 2.0, lag, law))

    one, above, below = found(2 * (1 + off)), found(2.02), found(1.98)
    assert one.stable and above.gain < one.gain < below.gain
    assert all(map(math.isnan, (one.delay_ms, one.phase_deg, one.crossing_hz)))
    assert "phase and delay margin not defined (the loop's gain tends to 1 at frequency 0)" in str(one)
    assert 100 < above.delay_ms < 1000 and math.isinf(below.delay_ms), "with 1 % more or less they are"


def test_the_table_of_a_step_has_no_delay_margin_that_is_not_defined(tmp_path: Path) -> None:
    loop = {"plant": ([1.0], [0.02, 1.0]), "controller": ([2.0], [1.0])}
    found = tcpsbed.step(**loop, rtt="10 ms", runs=1, out=tmp_path / "step")
    assert "gain margin" in str(found) and "delay margin" not in str(found), "no column without a value"
    assert found.figures["settings"][0]["margins"]["delay_ms"] is None
    assert str(tcpsbed.load(tmp_path / "step")) == str(found)


def test_gains_beside_a_controller_of_mine_are_refused() -> None:
    with pytest.raises(ConfigError, match="--gain: found it with a controller that is no pi"):
        tcpsbed.map(
            shipped.find("step"),
            plant=([1], [0.02, 1]),
            controller=([0.1, 6], [1, 0]),
            gain="0.1:0.005",
            cells="2x2",
        )


LAWS = {
    "transfer function": (([0.2, 30.0], [1.0, 0.0]), ([0.4, 60.0], [1.0, 0.0])),
    "matrices": (([[-5.0]], [5.0], [0.5], 0.1), ([[-5.0]], [5.0], [1.0], 0.2)),
    "in z": (([0.03], [1.0, -1.0], 0.001), ([0.06], [1.0, -1.0], 0.001)),
    "name": ("lag", ([2.0], [0.02, 1.0])),
    "two axes": (
        ([[[0.2, 30.0], [0.0]], [[0.0], [0.1, 20.0]]], [[[1.0, 0.0], [1.0]], [[1.0], [1.0, 0.0]]]),
        ([[[0.4, 60.0], [0.0]], [[0.0], [0.2, 40.0]]], [[[1.0, 0.0], [1.0]], [[1.0], [1.0, 0.0]]]),
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_factor_multiplies_the_controller(law: str, tmp_path: Path) -> None:
    single, double = LAWS[law]
    lag = ([1.0], [0.02, 1.0])
    two = ([[[1.0], [0.0]], [[0.0], [1.0]]], [[[0.02, 1.0], [1.0]], [[1.0], [0.02, 1.0]]])
    given = {"plant": two if law == "two axes" else lag, "rtt": "5 ms", "runs": 1, "duration": "0.5 s"}
    ours = tcpsbed.step(controller=single, factor=[1, 2.0], **given, out=tmp_path / "a")
    theirs = tcpsbed.step(controller=double, **given, out=tmp_path / "b")
    asked = "axis 1, " if law == "two axes" else ""
    once, twice = (ours[f"{asked}RTT 5 ms, factor {text}"].curves[0].axes for text in ("1", "2.0"))
    assert twice == pytest.approx(theirs[f"{asked}RTT 5 ms"].curves[0].axes, abs=1e-12)
    assert abs(once - twice).max() > 0.01


def test_a_map_takes_the_factor_too() -> None:
    (single, double), lag = LAWS["transfer function"], ([1.0], [0.02, 1.0])
    cells = {"plant": lag, "rtt": "2 ms..8 ms", "loss": "10%", "cells": "2x1", "runs": 2}
    mapped = [
        tcpsbed.map(controller=one, factor=factor, duration="0.5 s", **cells).figures
        for one, factor in ((single, 2), (double, None), (single, None))
    ]
    doubled, alike, other = (one["margins"]["gain"] for one in mapped)
    assert doubled == pytest.approx(alike, rel=1e-9) == pytest.approx(other / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), '--factor: found no hooks with run = "compensator"; allowed: one such hook, or --controller'),
        (("--controller", "lag", "--factor", "0"), '--factor: found "0"; allowed: a number above 0'),
        (("--controller", "lag", "--factor", "1..2"), '--factor: found "1..2", a range; allowed: values'),
        *[
            (
                (
                    "--controller",
                    "{ kind = 'transfer-function', num = [0.1, -4], den = [1, 0] }",
                    "--factor",
                    factor,
                ),
                f'--factor: found "{factor}"; allowed: 2.5e-31 to 2.5e+29, with this controller\n',
            )
            for factor in ("1e-320", "2.4e-31", "2.6e29", "1e308")
        ],
    ],
)
def test_a_factor_that_cannot_be_is_refused(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    more = options or ("--factor", "2")
    refused = CliRunner().invoke(app, ["step", str(_shipped()), *more, "--out", str(tmp_path / "out")])
    assert refused.exit_code == 2 and message in refused.stderr
    assert "takes: --factor" not in refused.stderr
