"""The step experiment in virtual time against its difference equations, solved here on their own."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis import signals
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.lab.control import experiment, figure, table
from tcpsbed.lab.control.verdict import Limits


def solved(there: int, back: int, period: int, kp: float, ki: float, c: float, ticks: int) -> np.ndarray:
    """H at every tick: k(n) = kp e(n) + I(n), h(n) = s(n) k(n - there), e(n) = 1 - h(n - back), delays in ticks."""
    h, k, integral = np.ones(ticks), np.ones(ticks), 1.0
    for n in range(ticks):
        e = 1 - h[n - back] if n >= back else 0.0
        integral = min(max(integral + ki * period * e, -10.0), 10.0)
        k[n] = kp * e + integral
        h[n] = (1.0 if n * period < 200 else 1 / c) * (k[n - there] if n >= there else 1.0)
    return h


@given(
    there=st.integers(1, 12),
    back=st.integers(1, 12),
    period=st.sampled_from([1, 2, 5]),
    kp=st.floats(0, 0.5),
    ki=st.floats(0, 0.2),
    c=st.floats(1.1, 8),
)
def test_virtual_time_solves_the_difference_equations(shipped_scenarios, there, back, period, kp, ki, c):
    """[Polachan 2022: steps] Without loss the loop of components, hooks, endpoints and links is the recursion, to 1e-9, also
    where it is unstable (then relative to what it has grown to).
    """
    sets = [
        f'links.line.forward={{delay="{there * period} ms"}}',
        f'links.line.backward={{delay="{back * period} ms"}}',
        *(f'flows.{flow}.rate="{1000 / period} Hz"' for flow in ("kinematic", "haptic")),
        f'components.tactile-teleoperator.robot.period="{period} ms"',
        f"components.tactile-teleoperator.robot.params.c={c}",
        f"hooks.pi.params={{kp={kp}, ki_per_ms={ki}}}",
    ]
    [found] = experiment.run(scenarios.load(shipped_scenarios / "step.toml", sets), runs=1)
    curve = found.curves[0]
    truth = solved(there, back, period, kp, ki, c, len(curve.h))
    assert np.array_equal(curve.t_ms, np.arange(len(truth)) * period)
    assert np.max(np.abs(curve.h - truth) / np.maximum(1, np.abs(truth))) < 1e-9


def test_the_shipped_scenario_is_described_by_its_loop(shipped_scenarios):
    [found] = experiment.run(scenarios.load(shipped_scenarios / "step.toml"), runs=2)
    loop = found.loop
    assert (loop.name, loop.step.c, loop.step.t0_ms, loop.period_ms) == ("tactile-teleoperator", 2, 200, 1)
    assert (loop.kp, loop.ki_per_ms) == (0.2, 0.0909)
    assert np.array_equal(found.curves[0].h, found.curves[1].h), "without loss seeds do not differ"
    assert found.responses[0].rise_ms == 39


def test_phases_differ_between_runs_and_repeat(shipped_scenarios):
    """Two computers do not tick together: rise times spread over about two periods, the same with the same seed."""
    scenario = scenarios.load(shipped_scenarios / "step.toml")
    rises = [
        [r.rise_ms for r in experiment.run(scenario, runs=20, phases=True)[0].responses] for _ in range(2)
    ]
    assert rises[0] == rises[1]
    assert len(set(rises[0])) > 1 and max(rises[0]) - min(rises[0]) < 8


def test_values_at_points_are_recorded_as_they_are(shipped_scenarios, tmp_path: Path):
    """What the controller sends, what arrives and what the robot senses, in the run that asks for them."""
    points = ["controller.exit", "ss-com.entry", "tactile-teleoperator.sense"]
    tcpsbed.run(shipped_scenarios / "step.toml", out=tmp_path, set=[f"measure.signals={points}"])
    k, arrived, h = (
        signals.read(tmp_path, point, flow)
        for point, flow in zip(points, ["kinematic", "kinematic", None], strict=True)
    )
    assert np.array_equal(k.values[: len(arrived.values)], arrived.values)
    assert np.allclose(arrived.t_s - k.t_s[: len(arrived.t_s)], 0.005)
    assert np.array_equal(h.values[300:400, 0], arrived.values[295:395, 0] / 2)
    with pytest.raises(DataError, match=r"measure\.signals"):
        signals.read(tmp_path, "srv.exit")
    with pytest.raises(DataError, match="point"):
        signals.read(tmp_path, "srv.middle")
    with pytest.raises(DataError, match="flow"):
        signals.read(tmp_path, points[0], "cinematic")


def test_asking_for_values_changes_no_other_row(shipped_scenarios, tmp_path: Path):
    """[design: random streams] Turning signals on changes no event and no draw."""
    lossy = ["links.line.loss=20 %"]
    points = ["controller.exit", "ss-com.entry", "tactile-teleoperator.sense"]
    runs = [
        tcpsbed.run(
            shipped_scenarios / "step.toml",
            out=tmp_path / str(len(asked)),
            set=[*lossy, f"measure.signals={asked}"],
        )
        for asked in (points[2:], points)
    ]
    rows = [run.records for run in runs]
    kept = [np.asarray(some[some["kind"] != signals.SIGNAL]) for some in rows]
    assert len(rows[1]) > len(rows[0]) and np.array_equal(kept[0], kept[1])


def test_unknown_points_are_refused_with_what_there_is(shipped_scenarios):
    scenario = scenarios.load(shipped_scenarios / "step.toml", ['measure.signals=["srv.middle"]'])
    with pytest.raises(ConfigError, match=r'measure.signals: found "srv.middle".*srv\.'):
        scenarios.check(scenario)


def test_a_scenario_without_a_step_is_refused(shipped_scenarios):
    with pytest.raises(ConfigError, match='robot = "step"'):
        experiment.run(scenarios.load(shipped_scenarios / "quickstart.toml"), runs=1)


def test_what_the_controller_sees_is_late_by_the_way_back(shipped_scenarios):
    """[arXiv:2107.05343] 5 ms late and right without loss; off where 60 % of the values are lost."""
    found = [
        experiment.run(
            scenarios.load(shipped_scenarios / "step.toml", [f"links.line.loss={p} %"]), runs=1, warped=True
        )
        for p in (0, 60)
    ]
    seen = [one[0].seen for one in found]
    assert seen[0].time_ms == pytest.approx(5, abs=0.5) and seen[0].value < 0.002
    assert seen[1].value > seen[0].value


def test_gains_that_make_no_sense_are_called_unstable_in_a_table_that_can_be_read(shipped_scenarios):
    """Figures of 300 digits say nothing; what is wrong does. A loop that holds its quantity is not called so."""
    found = []
    for gains in ((1e9, 1e9), (3.0, 1.0), (0.2, 0.05)):
        sets = [f"hooks.pi.params.kp={gains[0]}", f"hooks.pi.params.ki_per_ms={gains[1]}"]
        [one] = experiment.run(scenarios.load(shipped_scenarios / "step.toml", sets), runs=1)
        found.append((f"gain {gains[0]:g}", one))
    said = table.text(found, Limits())
    assert max(len(line) for line in said.splitlines()) < 160
    wild = [line for line in said.splitlines() if line.startswith("UNSTABLE")]
    assert wild[0] == "UNSTABLE by theory at gain 1e+09; gain 3", "the third is stable"
    assert len(wild) == 3 and "gain 1e+09" in wild[1] and "1 of 1 runs of gain 3" in wild[2]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("more", "names"), [([], ["RTT 10 ms"]), (["--rtt", "5 ms,20 ms"], ["RTT 5 ms", "RTT 20 ms"])]
)
def test_a_figure_names_its_settings_and_limits(
    shipped_scenarios: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    names: list[str],
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(figure, "saved", lambda shown, file: drawn.append(shown) or file)
    words = ["--runs", "1", "--out", str(tmp_path / "out"), "--figure", str(tmp_path / "a.svg"), *more]
    done = CliRunner().invoke(app, ["step", str(shipped_scenarios / "step.toml"), *words])
    assert done.exit_code == 0, done.output
    legends = [[text.get_text() for text in one.get_texts()] for one in drawn[0].legends]
    assert legends == [[*names, "overshoot of 20 %", "90 % of the step"]]


def test_the_command_says_where_its_results_are(
    shipped_scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["step", str(shipped_scenarios / "step.toml"), "--runs", "1"]
    said = CliRunner().invoke(app, command).stdout
    [folder] = Path("runs").iterdir()
    assert f"results: {folder}\n" in said and folder.name.startswith("step-step-"), "runs/latest is of runs"
    told = CliRunner().invoke(app, [*command, "--loss", "0", "--out", "mine", "--json"]).stdout
    assert json.loads(told)["settings"] and Path("mine/step.json").read_text() == told
    Path("mine/notes").write_text("mine")
    refused = CliRunner().invoke(app, [*command, "--out", "mine"])
    assert refused.exit_code == 2 and "holds notes" in refused.stderr
