"""Loops with several axes: packets, difference equations, margins and maps agree with each other and with python-control."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import signal
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import linear, scenarios, shipped
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, HookError, Refused, TcpsbedError
from tcpsbed.lab.control import loci, systems, theory
from tcpsbed.lab.control.batch import Bench, Cell, bursty
from tcpsbed.lab.control.loci import AxesMargins
from tcpsbed.lab.control.response import Step
from tcpsbed.lab.control.theory import LoopModel, Open
from tcpsbed.robots import axes

LAGS = [([1.0], [0.02, 1.0]), ([1.0], [0.005, 1.0])]
LAWS = [([0.4, 20.0], [1.0, 0.0]), ([0.1, 30.0], [1.0, 0.0])]
COUPLED = (
    [[[1.0], [0.4]], [[-0.3], [1.2]]],
    [[[0.05, 1.0], [0.1, 1.0]], [[0.02, 1.0], [0.03, 1.0]]],
)
DECOUPLED = ([[[0.8, 20.0], [0.0]], [[0.0], [0.5, 15.0]]], [[[1.0, 0.0], [1.0]], [[1.0], [1.0, 0.0]]])
A, B, C = [[-50.0, 5.0], [-8.0, -20.0]], [[50.0, 0.0], [0.0, 20.0]], [[1.0, 0.0], [0.0, 1.0]]
TWO_PY = """
import numpy as np
import tcpsbed

A, B = np.array([[-50.0, 5.0], [-8.0, -20.0]]), np.array([[50.0, 0.0], [0.0, 20.0]])

class Matrices(tcpsbed.Plant):
    def matrices(self):
        return A, B, np.eye(2)

class Equation(tcpsbed.NonlinearPlant):
    axes = 2
    x0 = (1.0, 1.0)
    step_s = 2.5e-4
    def rates(self, x, u): return A @ (x - 1) + B @ (u - 1)
    def output(self, x, u): return x

class Saturated(Equation):
    def rates(self, x, u): return A @ (x - 1) + B @ (np.minimum(u, 1.4) - 1)

class Called:
    axes = 2
    def __init__(self):
        self.plant = Equation()
    def __call__(self, t_ns, index, x, other, y):
        return self.plant(t_ns, index, x, other, y)

class Restless(Called):
    def __call__(self, t_ns, index, x, other, y):
        y[:2] = 1.0, 0.5
        return 2

class Short(Called):
    def __call__(self, t_ns, index, x, other, y):
        y[0] = 1.0
        return 1

class Later(Called):
    def __call__(self, t_ns, *rest):
        if t_ns > 300_000_000: raise ValueError("late boom")
        return super().__call__(t_ns, *rest)

class TooMany(Called):
    axes = 17
"""
ARM = """
<mujoco><option timestep="0.001" gravity="0 0 0" integrator="implicit"/>
  <worldbody><body><joint name="one" type="hinge" axis="0 1 0" damping="10" armature="1"/>
    <geom type="sphere" size="0.01" mass="1e-9"/>
    <body pos="0 0 1"><joint name="two" type="hinge" axis="1 0 0" damping="20" armature="1"/>
    <geom type="sphere" size="0.01" mass="1e-9"/></body></body></worldbody>
  <actuator><motor name="m1" joint="one"/><motor name="m2" joint="two"/></actuator>
  <sensor><jointpos name="a1" joint="one"/><jointpos name="a2" joint="two"/></sensor></mujoco>
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "two.py").write_text(TWO_PY)
    (tmp_path / "arm.xml").write_text(ARM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tf(parts: tuple[Any, Any]) -> dict[str, Any]:
    return {"kind": "transfer-function", "num": parts[0], "den": parts[1]}


def diagonal(parts: list[tuple[list[float], list[float]]]) -> tuple[Any, Any]:
    """Systems of one axis beside each other."""
    n = range(len(parts))
    num, den = ([[parts[i][key] if i == j else [float(key)] for j in n] for i in n] for key in (0, 1))
    return num, den


@pytest.mark.parametrize("disturbance", ["gain", "output"])
@pytest.mark.parametrize(
    ("there", "back", "phases"), [(5, 5, False), (3.3, 7.9, True), (0, 0, True), (0, 0, False)]
)
def test_axes_that_are_not_coupled_are_loops_of_their_own(
    disturbance: Any, there: float, back: float, phases: bool
) -> None:
    """[Polachan 2022: steps] Every figure of every run is that of the engine for one axis."""
    for axis in (0, 1):
        more = {"phases": phases}
        step = Step(plant=tf(LAGS[axis]), disturbance=disturbance)
        [alone] = Bench(step, runs=4, duration_ms=700).run(
            [Cell(1, there, back, 0, 0, controller=tf(LAWS[axis]), **more)], keep=True
        )
        bench = Bench(replace(step, plant=tf(diagonal(LAGS))), runs=4, duration_ms=700, axes=(axis,))
        [beside] = bench.run([Cell(1, there, back, 0, 0, controller=tf(diagonal(LAWS)), **more)], keep=True)
        assert alone["good"] == beside["good"]
        for one, other in zip(alone["runs"], beside["runs"], strict=True):
            assert other == pytest.approx(one, abs=1e-9)


@pytest.mark.parametrize(
    "network",
    [
        {"loss": {"kind": "random", "p": 0.4}},
        {"loss": bursty(0.3, 5)},
        {"loss": bursty(0.3, 5), "jitter": {"kind": "exponential", "mean_ns": 2_000_000}},
    ],
    ids=["single", "bursts", "jitter"],
)
def test_losses_and_jitter_are_those_of_the_engine_for_one_axis(network: dict[str, Any]) -> None:
    """Other random numbers, the same distribution: means of 800 runs agree within four standard errors."""
    plant, law = ([1.0], [0.005, 1.0]), ([0.1, 150.0], [1.0, 0.0])
    cell = Cell(1, 5, 5, 0, 0, phases=True, controller=tf(law), **network)
    [alone] = Bench(Step(plant=tf(plant)), runs=800, duration_ms=600).run([cell])
    several = replace(cell, controller=tf(diagonal([law, law])))
    [beside] = Bench(Step(plant=tf(diagonal([plant, plant]))), runs=800, duration_ms=600).run([several])
    for name in ("rise_ms", "overshoot", "undershoot", "error"):
        one, other = alone[name], beside[name]
        error = math.hypot(one["sd"], other["sd"]) / math.sqrt(800)
        assert abs(one["mean"] - other["mean"]) < 4 * error + 1e-9, name
    assert alone["overshoot"]["sd"] > 1


def test_runs_side_by_side_are_those_of_one_cell_alone() -> None:
    laws = [tf(diagonal([([f * 0.4, f * 20.0], [1.0, 0.0])] * 2)) for f in (1.0, 1.5)]
    spaces = [
        {"kind": "state-space", "a": [[0.0, 0.0], [0.0, 0.0]], "b": [[1.0, 0.0], [0.0, 1.0]],
         "c": [[f, 0.0], [0.0, f]], "d": [[0.1, 0.0], [0.0, 0.1]]} for f in (10.0, 20.0)
    ]  # fmt: skip
    cells = [
        Cell(1, delay, 5, 0, 0, phases=True, controller=law, loss=loss)
        for law in (*laws, *spaces)
        for delay in (2, 6)
        for loss in (None, bursty(0.2, 3))
    ]
    bench = Bench(Step(plant=tf(COUPLED), disturbance="output"), runs=6, duration_ms=500, axes=(0, 1))
    together = bench.run(cells, keep=True)
    for cell, found in zip(cells, together, strict=True):
        [alone] = bench.run([cell], keep=True)
        for one, other in zip(alone["runs"], found["runs"], strict=True):
            assert other == pytest.approx(one, abs=1e-9)


@pytest.mark.parametrize("disturbance", ["gain", "output"])
def test_the_equations_are_the_scenario_without_packets(disturbance: str, tmp_path: Path) -> None:
    """Of coupled axes every figure of every run with packets, phases too, is that of the difference equations."""
    loop = {"plant": COUPLED, "controller": DECOUPLED, "disturbance": disturbance}
    found = tcpsbed.step(**loop, rtt="22 ms", runs=2, phases=True, out=tmp_path)
    for rtt in (22,):
        for axis in (1, 2):
            mine = found[f"axis {axis}, RTT {rtt} ms"]
            bench = Bench(mine.loop.step, runs=2, duration_ms=1200, axes=(axis - 1,))
            [cell] = bench.run(
                [Cell(1, rtt / 2, rtt / 2, 0, 0, phases=True, controller=mine.loop.law)], keep=True
            )
            for run, response in zip(cell["runs"], mine.responses, strict=True):
                assert run == pytest.approx(vars(response), abs=1e-9)
            assert all(5 < curve.coupling < 60 for curve in mine.curves)
    assert found.figures["settings"][0]["loop"]["axis"] == 1 and "coupling" in str(found)


def test_each_output_is_that_of_the_textbook(tmp_path: Path) -> None:
    """H of both axes after a step on each is that of the sampled closed loop with its delay, by python-control."""
    control = pytest.importorskip("control", reason="python-control is not installed: pip install control")
    dt, ticks = 0.001, 10
    plant = control.sample_system(control.ss(A, B, C, np.zeros((2, 2))), dt, "zoh")
    law = control.sample_system(
        control.ss(np.zeros((2, 2)), np.eye(2), np.diag([20.0, 15.0]), np.diag([0.8, 0.5])), dt, "tustin"
    )
    line = control.ss(
        np.eye(2 * ticks, k=-2), np.eye(2 * ticks, 2), np.eye(2 * ticks)[-2:], np.zeros((2, 2)), dt
    )
    # what is subtracted from h on an axis comes back through S = (I + L)^-1
    s = control.feedback(control.ss([], [], [], np.eye(2), dt), plant * law * line)
    found = tcpsbed.step(
        plant=(A, B, C), controller=DECOUPLED, disturbance="output", rtt="10 ms", runs=1, out=tmp_path
    )
    for axis in (0, 1):
        curve = found[f"axis {axis + 1}, RTT 10 ms"].curves[0]
        d = np.zeros((2, 900))
        d[axis] = 0.5
        answer = control.forced_response(s, U=d, T=dt * np.arange(900)).outputs
        after = curve.axes[curve.t_ms >= 200][:900]
        assert np.ptp(after[:, axis]) > 0.4 and np.ptp(after[:, 1 - axis]) > 0.01
        assert 1 - after == pytest.approx(answer.T, abs=1e-8)


def unchanged(loop: LoopModel, factors: list[float]) -> float:
    """Largest root of the loop with a factor on each axis."""
    assert loop.plant is not None
    num = [
        [[f * x for x in entry] for entry in row] for f, row in zip(factors, loop.plant["num"], strict=True)
    ]
    return loci.largest_root(replace(loop, plant={**loop.plant, "num": num}))


THREE = (
    [[[1.0], [0.5], [0.0]], [[0.2], [2.0], [-0.4]], [[0.1], [0.3], [1.0]]],
    [
        [[0.02, 1.0], [0.1, 1.0], [1.0]],
        [[0.05, 1.0], [0.001, 0.04, 1.0], [0.03, 1.0]],
        [[0.2, 1.0], [0.1, 1.0], [0.01, 1.0]],
    ],
)  # fmt: skip
RISING = diagonal([([30.0], [1.0, -2.0]), ([1.0], [0.02, 1.0])])
LOOPS = [
    LoopModel(0, 0, 1.0, 10.0, 1.0, tf(COUPLED), tf(DECOUPLED)),
    LoopModel(0, 0, 1.0, 25.0, 2.0, tf(COUPLED), tf(DECOUPLED), axis=1),
    LoopModel(0, 0, 2.0, 8.0, 1.0, tf(THREE), tf(diagonal([([0.1, 4.0], [1.0, 0.0])] * 3))),
    LoopModel(0, 0, 1.0, 2.0, 1.0, tf(RISING), tf(diagonal([([1.0], [1.0]), LAWS[0]]))),
    LoopModel(0, 0, 1.0, 60.0, 1.0, tf(COUPLED), tf(diagonal([([0.8, 30.0], [1.0, 0.0])] * 2))),
]  # fmt: skip


@cache
def margins(number: int) -> AxesMargins:
    """Those of a loop of `LOOPS`, computed once."""
    found = loci.margins(LOOPS[number])
    assert isinstance(found, AxesMargins)
    return found


@pytest.mark.parametrize("number", range(len(LOOPS)))
def test_margins_are_where_eigenvalues_leave_the_circle(number: int) -> None:
    """[MacFarlane 1977] Of all axes alike, of the delay that all have in common, and of each axis alone."""
    loop, found = LOOPS[number], margins(number)
    assert found.stable == (unchanged(loop, [1.0] * loop.axes) < 1)
    n = loop.axes
    if math.isfinite(found.gain) and found.gain > 0:
        inner, outer = (unchanged(loop, [found.gain * by] * n) for by in (0.9995, 1.0005))
        assert inner < 1 < outer
    if math.isfinite(found.delay_ms):
        more = math.floor(found.delay_ms / loop.period_ms + 1e-9)
        first, second = (
            loci.largest_root(replace(loop, delay_ms=(loop.ticks + k) * loop.period_ms))
            for k in (more, more + 1)
        )
        assert first < 1 < second
    assert len(found.one_at_a_time) == (n if found.stable else 0)
    for axis, alone in enumerate(found.one_at_a_time):
        if math.isfinite(alone.gain):
            inner, outer = (
                unchanged(loop, [alone.gain * by if one == axis else 1.0 for one in range(n)])
                for by in (0.999, 1.001)
            )
            assert inner < 1 < outer


def test_both_ways_of_telling_stability_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """[Nyquist 1932] Eigenvalues, and the winding of det(I + L) that long delay lines use."""
    for delay_ms in (5.0, 40.0, 66.0, 69.0, 90.0):
        model = Open(replace(LOOPS[0], delay_ms=delay_ms))
        found = []
        for largest in (loci.LARGEST, 0):
            monkeypatch.setattr(loci, "LARGEST", largest)
            found.append(loci.stable(model, model.grid()))
        assert found == [delay_ms < 67.6] * 2


def test_the_loop_with_one_axis_is_a_case_of_several() -> None:
    plant, law = tf(([1.0], [0.05, 1.0])), tf(([0.8, 20.0], [1.0, 0.0]))
    alone = theory.margins(LoopModel(0, 0, 1.0, 10.0, 1.0, plant, law))
    nested = (tf(([[of["num"]]], [[of["den"]]])) for of in (plant, law))
    found = loci.margins(LoopModel(0, 0, 1.0, 10.0, 1.0, *nested))
    assert isinstance(found, AxesMargins)
    for one in (found, *found.one_at_a_time):
        for key, value in vars(alone).items():
            assert getattr(one, key) == pytest.approx(value, rel=1e-6), key


@pytest.mark.parametrize("number", range(len(LOOPS) - 1))
def test_disk_margins_are_those_of_python_control(number: int) -> None:
    """[Seiler 2020] Of all axes at once; the last loop is not stable, and has none."""
    control = pytest.importorskip("control", reason="python-control is not installed: pip install control")
    if not hasattr(control, "disk_margins"):
        pytest.skip("this python-control has no disk_margins: pip install 'control>=0.10.2'")
    pytest.importorskip(
        "slycot", reason="slycot is not installed, without which python-control has no mu: pip install slycot"
    )
    loop, found = LOOPS[number], margins(number)
    assert found.disk is not None
    dt, model = loop.period_ms * 1e-3, Open(loop)
    g, c = (control.ss(one.a, one.b, one.c, one.d, dt) for one in model.systems)
    n, ticks = loop.axes, loop.ticks
    late = np.eye(n * ticks, k=-n)
    line = control.ss(late, np.eye(n * ticks, n), np.eye(n * ticks)[-n:], np.zeros((n, n)), dt)
    scale = np.ones(n)
    scale[loop.axis] /= loop.c
    peak = 2 * math.pi * found.disk.hz
    omega = np.unique(
        np.concatenate([np.geomspace(0.01, math.pi / dt, 600), peak * np.linspace(0.98, 1.02, 41)])
    )
    opened = control.ss([], [], [], np.diag(scale), dt) * g * c * line
    alpha, _, phase = control.disk_margins(opened, omega[omega < math.pi / dt], skew=0.0)
    assert found.disk.alpha == pytest.approx(float(alpha), rel=1e-3)
    assert found.disk.phase_deg == pytest.approx(float(phase), rel=1e-3)


def test_mu_is_what_the_worst_factors_find() -> None:
    """[Doyle 1982] For two axes the bound is mu, found by all phases. [Osborne 1960] Scaling does not change it."""
    draws = np.random.default_rng(3)
    some = draws.normal(size=(6, 2, 2)) + 1j * draws.normal(size=(6, 2, 2))
    turns = np.exp(1j * np.linspace(0, 2 * np.pi, 4001))
    for matrix, bound in zip(some, loci.mu(some), strict=True):
        phased = np.array([np.diag([1.0, turn]) @ matrix for turn in turns])
        assert bound == pytest.approx(float(np.abs(np.linalg.eigvals(phased)).max()), rel=1e-4)
    alone = np.array([[[2.0, 0.0, 0.0], [0.0, 3.0j, 0.0], [0.0, 0.0, 1.0]]])
    assert loci.mu(alone) == pytest.approx([3.0])
    diag = np.diag([1.0, 20.0, 0.1, 4.0, 1.0])
    large = draws.normal(size=(5, 5)) + 1j * draws.normal(size=(5, 5))
    assert loci.mu(np.array([large, diag @ large @ np.linalg.inv(diag)])) == pytest.approx(
        [loci.mu(large[None])[0]] * 2, rel=1e-4
    )


def test_within_the_disk_nothing_is_unstable() -> None:
    """Factors and phases of the disk margin, of each axis its own: all at once stay stable, and some just beyond do not."""
    found = margins(1)
    assert isinstance(found, AxesMargins) and found.disk is not None
    low, high = found.disk.gain
    for first in np.linspace(low, high, 5):
        for second in np.linspace(low, high, 5):
            assert unchanged(LOOPS[1], [float(first), float(second)]) < 1
    model = Open(LOOPS[1])
    at = np.array([found.disk.hz * 2 * math.pi * 1e-3])
    half = np.linalg.inv(np.eye(2) + model.matrix(np.exp(1j * at))) - np.eye(2) / 2
    assert 1 / loci.mu(half)[0] == pytest.approx(found.disk.alpha, rel=1e-9)


FORMS: list[Any] = [
    (A, B, C),
    (A, B, C, [[0.0, 0.0], [0.0, 0.0]]),
    signal.StateSpace(A, B, C, np.zeros((2, 2))),
    signal.StateSpace(A, B, C, np.zeros((2, 2))).to_discrete(0.001),
    {"kind": "state-space", "a": A, "b": B, "c": C},
    "two.py:Matrices",
    "two.py:Equation",
    "two.py:Called",
]


@pytest.mark.slow
@pytest.mark.parametrize("plant", FORMS, ids=str)
def test_the_same_plant_in_every_form_answers_the_same(plant: Any, here: Path) -> None:
    if isinstance(plant, str):
        plant = f"{here}/{plant}"
    right, found = (
        tcpsbed.step(plant=one, runs=1, axis=1, out=here / str(n))["axis 1"].curves[0].axes
        for n, one in enumerate((FORMS[0], plant))
    )
    assert right.shape == (1200, 2) and np.ptp(right[:, 0]) > 0.4 and np.ptp(right[:, 1]) > 0.01
    assert found == pytest.approx(right, abs=1e-9)


def test_objects_of_python_control_are_taken() -> None:
    control = pytest.importorskip("control", reason="python-control is not installed: pip install control")
    s = control.tf("s")
    plant = control.combine_tf(
        [[1 / (0.05 * s + 1), 0.4 / (0.1 * s + 1)], [-0.3 / (0.02 * s + 1), 1.2 / (0.03 * s + 1)]]
    )
    assert systems.table(plant, "plant") == tf(COUPLED)
    found = systems.table(control.ss(A, B, C, np.zeros((2, 2))), "plant")
    assert found == {"kind": "state-space", "a": A, "b": B, "c": C, "d": [[0.0, 0.0], [0.0, 0.0]]}
    one = systems.table(control.ss([[-50.0]], [[50.0, 1.0]], [[1.0]], [[0.0, 0.0]]), "plant")
    assert linear.shape(one) == (1, 2) and isinstance(one, dict) and one["b"] == [[50.0, 1.0]]


def test_plants_need_not_be_square(tmp_path: Path) -> None:
    """Two actuators and one quantity: the controller shares the work between them, as one of the same sum would do it."""
    shared = {
        "plant": ([[[1.0], [1.0]]], [[[0.02, 1.0], [0.02, 1.0]]]),
        "controller": ([[[0.2, 10.0]], [[0.2, 10.0]]], [[[1.0, 0.0]], [[1.0, 0.0]]]),
    }
    alone = {"plant": LAGS[0], "controller": ([0.4, 20.0], [1.0, 0.0])}
    two, one = (
        tcpsbed.step(**loop, runs=1, out=tmp_path / str(n)).settings[0][1]
        for n, loop in enumerate((shared, alone))
    )
    assert two.curves[0].axes.shape == (1200, 1) and two.loop.axes == 1
    assert two.curves[0].h == pytest.approx(one.curves[0].h, abs=1e-9)
    assert two.margins is not None and one.margins is not None
    assert two.margins.delay_ms == pytest.approx(one.margins.delay_ms, rel=1e-6)


def test_a_controller_of_one_axis_is_on_each_and_without_one_it_is_that_of_the_scenario(
    tmp_path: Path,
) -> None:
    given, each = (
        tcpsbed.step(plant=(A, B, C), controller=law, runs=1, axis=2, out=tmp_path / str(n))["axis 2"]
        for n, law in enumerate((([0.2, 10.0], [1.0, 0.0]), diagonal([([0.2, 10.0], [1.0, 0.0])] * 2)))
    )
    assert given.curves[0].axes.tobytes() == each.curves[0].axes.tobytes()
    pi = ([0.2 + 0.0909, -0.2], [1.0, -1.0], 0.001)
    absent, own = (
        tcpsbed.step(plant=(A, B, C), controller=law, runs=1, axis=1, out=tmp_path / f"pi{n}")["axis 1"]
        for n, law in enumerate((None, pi))
    )
    assert absent.curves[0].axes == pytest.approx(own.curves[0].axes, abs=1e-12)


@pytest.mark.slow
def test_a_map_of_axes_agrees_with_runs_with_packets(tmp_path: Path) -> None:
    loop = {"plant": COUPLED, "controller": DECOUPLED, "disturbance": "output"}
    found = tcpsbed.map(
        **loop,
        cells="8x3",
        runs=40,
        rtt="0 ms..80 ms",
        loss="0..40%",
        verify=3,
        verify_runs=8,
        out=tmp_path / "map",
    )
    assert [point.agrees for point in found.points] == [True] * 3 and "of every axis" in str(found)
    assert all(
        point.tested.overshoot is not None and point.tested.overshoot.mean > 3 for point in found.points
    )
    again = tcpsbed.load(tmp_path / "map")
    assert (
        str(again) == str(found) and "axis 2 alone: gain margin" in str(again) and "disk margin" in str(again)
    )
    single = [tcpsbed.map(**loop, cells="3x2", runs=5, axis=axis) for axis in (1, 2)]
    both = tcpsbed.map(**loop, cells="3x2", runs=5)
    worst = np.maximum(*(one.map.mean["rise_ms"] for one in single))
    assert both.map.mean["rise_ms"] == pytest.approx(worst, rel=0.05)
    assert (
        "of axis 2" in str(single[1])
        and (both.map.good <= np.minimum(*(one.map.good for one in single))).all()
    )


@pytest.mark.slow
def test_a_map_of_other_axes_does_not_agree() -> None:
    """The comparison can fail: a queue in the scenario, of which the map knows nothing."""
    found = tcpsbed.map(
        plant=COUPLED, controller=DECOUPLED, cells="6x2", rtt="0 ms..40 ms", loss="0..10%", runs=20, verify=2,
        verify_runs=3, set={"links.line.rate": "190 kbit/s"},
    )  # fmt: skip
    assert not any(point.agrees for point in found.points) and "CONTRADICT" in str(found)


def test_the_map_ends_at_the_delay_margin_of_all_axes() -> None:
    """Without loss, with both sides in step, runs of 8 s settle on every axis up to the margin, and not beyond."""
    found = tcpsbed.map(
        plant=COUPLED, controller=diagonal([([0.8, 30.0], [1.0, 0.0])] * 2), disturbance="output",
        rtt="1 ms..61 ms", loss="0..1%", cells="31x2", runs=1, aligned=True, overshoot=1000, set={"duration": "8 s"},
    )  # fmt: skip
    settles = ~np.isnan(found.map.mean["settling_ms"][0])
    last = max(rtt for rtt, well in zip(found.map.grid.rtt_ms, settles, strict=True) if well)
    most_ms = found.margins.delay_ms + 1
    assert 10 < most_ms < 60 and most_ms - 6 <= last <= most_ms


@pytest.mark.parametrize("code", ["Equation", "Called"])
def test_code_is_linearised_to_what_it_is(code: str, here: Path) -> None:
    """[Kung 1978] With a column for each command."""
    right, own = (tcpsbed.map(plant=one, cells="3x2", runs=3) for one in ((A, B, C), f"{here}/two.py:{code}"))
    assert own.linearised is not None and own.linearised.order == 2 and own.linearised.off < 1e-6
    assert own.map.mean["rise_ms"] == pytest.approx(right.map.mean["rise_ms"], rel=1e-5)
    assert own.margins.delay_ms == pytest.approx(right.margins.delay_ms, rel=1e-5)
    assert isinstance(own.margins, AxesMargins) and own.margins.disk is not None


def test_what_is_not_linear_shows_in_the_runs(here: Path) -> None:
    found = tcpsbed.map(plant=f"{here}/two.py:Saturated", cells="2x2", runs=2)
    assert (
        found.linearised is not None
        and found.linearised.off > 0.3
        and "linear model of order 2" in str(found)
    )
    run = tcpsbed.step(plant=f"{here}/two.py:Saturated", runs=1, axis=1, out=here / "out")["axis 1"]
    assert run.curves[0].h[-1] < 0.75 and run.margins is not None


def test_a_model_in_mujoco_with_two_joints_is_a_plant(here: Path) -> None:
    """Inertia 1, damping 10 and 20: 1 / (s^2 + 10 s) and 1 / (s^2 + 20 s); MuJoCo's integrator is implicit Euler."""
    pytest.importorskip("mujoco")
    arm = {
        "kind": "mujoco", "file": f"{here}/arm.xml", "actuator": ["m1", "m2"], "sensor": ["a1", "a2"], "gain": [100.0]
    }  # fmt: skip
    law = diagonal([([1.0, 4.0], [0.005, 1.0])] * 2)
    right = diagonal([([100.0], [1.0, 10.0, 0.0]), ([100.0], [1.0, 20.0, 0.0])])
    mass, own = (
        tcpsbed.step(plant=one, controller=law, runs=1, axis=2, out=here / str(n))["axis 2"].curves[0].axes
        for n, one in enumerate((right, arm))
    )
    assert np.ptp(mass[:, 1]) > 0.4 and own == pytest.approx(mass, abs=0.02)
    found = tcpsbed.map(plant=arm, controller=law, cells="2x2", runs=2)
    theirs = tcpsbed.map(plant=right, controller=law, cells="2x2", runs=2)
    assert found.linearised is not None and found.linearised.order == 4
    assert found.margins.delay_ms == pytest.approx(theirs.margins.delay_ms, rel=0.05)


def test_tune_finds_the_factor_of_a_controller_with_axes() -> None:
    found = tcpsbed.tune(
        "10 ms", plant=(A, B, C), controller=diagonal([([0.1, 5.0], [1.0, 0.0])] * 2), runs=4
    )
    assert found is not None and found.best.factor is not None and found.margins.stable
    assert f"multiply it by {found.best.factor:.4g}" in str(found) and "disk margin" in str(found)
    assert found.figures["margins"]["disk"]["alpha"] > 0


@pytest.mark.parametrize(
    "rows",
    [
        {"kind": "state-space", "a": [[-20.0]], "b": [[20.0]], "c": [[1.0]], "d": [[0.0]]},
        {"kind": "state-space", "a": [[-20.0]], "b": [[20.0]], "c": [[1.0]]},
        {"kind": "transfer-function", "num": [[[1.0]]], "den": [[[0.05, 1.0]]]},
    ],
)
def test_one_axis_written_with_rows_is_tuned_as_one_without(rows: dict[str, Any]) -> None:
    one, other = (
        tcpsbed.tune("10 ms", plant=plant, runs=1)
        for plant in (rows, {"kind": "transfer-function", "num": [1.0], "den": [0.05, 1.0]})
    )
    assert one is not None and other is not None and one.best.factor is None
    assert (one.best.kp, one.best.ki_per_ms) == pytest.approx((other.best.kp, other.best.ki_per_ms))


def test_one_axis_with_rows_in_a_scenario_keeps_its_gains(here: Path) -> None:
    from tcpsbed import shipped

    rows = "plant = { kind = 'state-space', a = [[-20.0]], b = [[20.0]], c = [[1.0]], d = [[0.0]] }"
    text = shipped.find("step").read_text()
    assert text.count('t0 = "200 ms"') == 1
    file = here / "rows.toml"
    file.write_text(text.replace('t0 = "200 ms"', f't0 = "200 ms", {rows}'))
    found = tcpsbed.tune("10 ms", plant=file, runs=1)
    assert found is not None and found.best.factor is None and found.best.kp > 0
    assert tcpsbed.map(file, cells="2x2", runs=1).margins.stable


def test_axes_on_the_clock_of_the_machine(tmp_path: Path) -> None:
    loop = {"plant": (A, B, C), "controller": ([0.2, 10.0], [1.0, 0.0]), "runs": 1, "axis": 1}
    simulated, own = (
        tcpsbed.step(**loop, world=world, out=tmp_path / world)["axis 1"] for world in ("virtual", "real")
    )
    assert own.responses[0].rise_ms == pytest.approx(simulated.responses[0].rise_ms, rel=0.5)
    assert abs(own.responses[0].error) < 5 and own.curves[0].axes.shape[1] == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"plant": (A, B, C), "axis": 3}, r"^--axis: found 3; allowed: 1 to 2, the axes of tactile-teleoperator"),
    ({"plant": LAGS[0], "axis": 2}, r"^--axis: found 2; allowed: 1: .* one axis"),
    ({"axis": 2}, r"^--axis: found 2; allowed: 1: .* one axis"),
    (
        {"plant": ([[[1.0], [1.0]]], [[[0.02, 1.0], [0.02, 1.0]]]), "controller": LAWS[0]},
        r"^controller: found a controller of one axis for a plant of 1 outputs and 2 inputs",
    ),
    (
        {"plant": (A, B, C), "controller": diagonal([LAWS[0]] * 3)},
        r"^controller: found a controller of 3 outputs and 3 inputs; allowed: one of 2 outputs and 2 inputs",
    ),
    (
        {"plant": LAGS[0], "controller": diagonal(LAWS)},
        r"^controller: found a controller of 2 outputs and 2 inputs; allowed: one of 1 outputs and 1 inputs",
    ),
    (
        {"plant": {"kind": "state-space", "a": A, "b": B, "c": [[1.0], [0.0]]}},
        r"^--plant: c: found 2 x 1 entries; allowed: 2 x 2, as A and D have",
    ),
    (
        {"plant": {"kind": "transfer-function", "num": COUPLED[0], "den": [COUPLED[1][0]]}},
        r"^--plant: den: found 1 x 2 entries; allowed: 2 x 2, as num has",
    ),
    (
        {"plant": {"kind": "transfer-function", "num": [[[1.0], "x"], [[1.0], [1.0]]], "den": COUPLED[1]}},
        r"^--plant: num: found .*allowed: rows with a list of coefficients for each column",
    ),
    (
        {"plant": ([[[1.0, 0.0], [1.0]], [[1.0], [1.0]]], [[[1.0], [1.0]], [[1.0], [1.0]]])},
        r"^--plant: num: found degree 1 over degree 0, which is improper",
    ),
    ({"plant": "two.py:Restless"}, r"^--plant: found .*Restless\", which answers k = 1 with 1, 0.5, 1, 0.5"),
    (
        {"plant": "two.py:Short"},
        r"^--plant: found .*Short\", which answers with 1 values, 1, nan, not with 2 finite",
    ),
    ({"plant": "two.py:TooMany"}, r"^--plant: found .*with axes = 17; allowed: a whole number from 1 to 16"),
]


@pytest.mark.parametrize(("loop", "message"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_is_one_message(loop: dict[str, Any], message: str, here: Path) -> None:
    if isinstance(loop.get("plant"), str):
        loop = loop | {"plant": f"{here}/{loop['plant']}"}
    asked: list[Callable[[], Any]] = [
        lambda: tcpsbed.step(**loop, runs=1, out=here / "out"),
        lambda: tcpsbed.map(**loop, cells="2x2", runs=1),
    ]
    for ask in asked:
        with pytest.raises(ConfigError, match=message):
            ask()


def test_code_that_fails_in_a_run_is_one_message(here: Path) -> None:
    with pytest.raises(TcpsbedError, match="late boom"):
        tcpsbed.step(plant=f"{here}/two.py:Later", runs=1, out=here / "out")


def test_a_scenario_names_axes_and_options_choose_them(tmp_path: Path) -> None:
    plant = json.dumps({"kind": "state-space", "a": A, "b": B, "c": C}).replace(":", " =")
    for key in ("kind", "a", "b", "c"):
        plant = plant.replace(f'"{key}" =', f"{key} =")
    runner, file = CliRunner(), str(shipped.find("step"))
    out = ["--out", str(tmp_path / "step")]
    done = runner.invoke(app, ["step", file, "--plant", plant, "--axis", "2", "--runs", "1", "--json", *out])
    assert done.exit_code == 0, done.stderr
    [setting] = json.loads(done.stdout)["settings"]
    assert setting["name"] == "axis 2" and setting["loop"]["axes"] == 2
    assert setting["runs"][0]["coupling"] > 0 and setting["margins"]["disk"]["alpha"] > 0
    made = tmp_path / "step" / "scenario.toml"
    again = runner.invoke(app, ["map", str(made), "--cells", "2x2", "--runs", "2", "--axis", "1", "--json"])
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["bench"]["axes"] == [0]
    for options, message in (
        (["--axis", "5"], "--axis: found 5; allowed: 1 to 2"),
        (["--on-command"], "--on-command: found it; allowed: a loop with one axis"),
        (
            ["--gain", "0.2:0.1"],
            "--gain: found Kp and Ki of one axis, for a loop with 2 axes; allowed: no --gain",
        ),
    ):
        refused = runner.invoke(app, ["map", str(made), "--cells", "2x2", "--runs", "1", *options])
        assert refused.exit_code == 2 and message in refused.stderr and "Traceback" not in refused.stderr
    small = scenarios.load(made, ['flows.haptic.sample="8 B"'])
    with pytest.raises(ConfigError, match='found 8 B; allowed: "16 B": a value for each of 2 axes'):
        scenarios.check(small)


def turned(phi: float) -> LoopModel:
    """A loop whose plant turns the axes: its two eigenvalues have the same size at every frequency."""
    c, s = math.cos(phi), math.sin(phi)
    lag = [0.002, 1.0]
    plant = {"kind": "transfer-function", "num": [[[c], [-s]], [[s], [c]]], "den": [[lag, lag], [lag, lag]]}
    law = {"num": [[[0.02, 10.0], [0.0]], [[0.0], [0.02, 10.0]]]}
    law |= {"kind": "transfer-function", "den": [[[1.0, 0.0]] * 2] * 2}
    return LoopModel(0, 0, 1.0, 20.0, 1.0, plant, law)


def test_the_phase_margin_of_turned_axes_is_less_by_the_angle() -> None:
    straight = loci.margins(turned(0.0)).phase_deg
    for degrees in (3.0, 5.26, 17.0, 40.0, 72.88):
        assert loci.margins(turned(math.radians(degrees))).phase_deg == pytest.approx(
            straight - degrees, abs=1e-3
        )


@pytest.mark.slow
def test_coupled_double_integrators_are_stable_though_rounding_moves_their_roots() -> None:
    k = ((1.5, 0.3, 0.1), (0.3, 1.2, 0.2), (0.1, 0.2, 1.0))
    plant = {"num": [[[100 * one] for one in row] for row in k], "den": [[[1.0, 0.0, 0.0]] * 3] * 3}
    pd = [[[0.1, 0.5] if i == j else [0.0] for j in range(3)] for i in range(3)]
    law = {"kind": "transfer-function", "num": pd, "den": [[[0.002, 1.0]] * 3] * 3}
    for delay_ms in (10.0, 20.0, 30.0, 40.0):
        loop = LoopModel(0, 0, 1.0, delay_ms, 1.0, {"kind": "transfer-function"} | plant, law)
        assert loci.largest_root(loop) < 1 + 1e-6, delay_ms
    assert loci.margins(loop).stable


def test_a_controller_refuses_what_is_no_number_and_keeps_to_its_period() -> None:
    system = {
        "kind": "transfer-function",
        "num": [[[1.0], [0.0]], [[0.0], [1.0]]],
        "den": [[[1.0, 0.0]] * 2] * 2,
    }
    steady, jittered = (axes.Compensator(system, 1_000_000) for _ in range(2))
    y, other = np.zeros((2, 2)), np.array([0.5, 0.8])
    for tick in range(200):
        steady(tick * 1_000_000, tick, other, other, y[0])
        jittered(tick * 1_000_000 + tick % 7 * 1000, tick, other, other, y[1])
    assert np.array_equal(y[0], y[1]) and y[0, 0] > 1.05
    with pytest.raises(HookError, match="no finite number"):
        steady(200_000_000, 200, other, np.array([np.nan, 1.0]), y[0])


@pytest.mark.slow
def test_a_plant_that_cannot_reach_every_step_is_said_to_keep_an_error(
    tmp_path: Path,
) -> None:
    """Both commands move both axes alike: of a step of one, half stays."""
    lag = [0.05, 1.0]
    found = tcpsbed.step(
        plant=([[[1.0], [1.0]], [[1.0], [1.0]]], [[lag, lag], [lag, lag]]),
        controller=([0.3, 8.0], [1.0, 0.0]),
        disturbance="output",
        rtt="10 ms",
        runs=1,
        out=tmp_path / "out",
    )
    assert "axis 1 keeps 50 % of a step as an error" in str(found)
    assert tcpsbed.load(tmp_path / "out").figures == found.figures  # type: ignore[union-attr]
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "out")]).output
    assert "axis 1 keeps 50 % of a step" in shown


def test_gains_of_one_axis_for_two_are_refused_as_such(tmp_path: Path) -> None:
    said = "--gain: found Kp and Ki of one axis, for a loop with 2 axes; allowed: no --gain"
    with pytest.raises(ConfigError, match=said):
        tcpsbed.step(plant=COUPLED, controller=DECOUPLED, gain="0.2:0.03", runs=1, out=tmp_path / "step")
    with pytest.raises(ConfigError, match=said):
        tcpsbed.map(plant=COUPLED, controller=DECOUPLED, gain="0.2:0.03", runs=1, cells="2x2")


def test_margins_of_axes_whose_gain_tends_to_1_are_not_defined() -> None:
    loop = LoopModel(0, 0, 1.0, 10.0, 1.0, tf(diagonal(LAGS)), tf(diagonal([([1.0], [1.0])] * 2)))
    found = loci.margins(loop)
    assert (
        isinstance(found, AxesMargins) and found.stable and "phase and delay margin not defined" in str(found)
    )
    assert all(math.isnan(one.delay_ms) for one in (found, *found.one_at_a_time))


def test_more_states_than_can_be_computed_are_refused_at_once() -> None:
    states = linear.MOST_STATES + 1
    huge = {
        "kind": "state-space",
        "a": [[0.0] * states] * states,
        "b": [[0.0, 0.0]] * states,
        "c": [[0.0] * states] * 2,
        "d": [[0.0, 0.0]] * 2,
    }
    with pytest.raises(Refused, match="257 rows") as refused:
        linear.refuse_shapes(huge)
    assert "at most 256" in refused.value.allowed
