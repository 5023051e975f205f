"""Plants of the step experiment: the engine against the scenario, classes of the user's, in both worlds; what is refused."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import door, scenarios
from tcpsbed.analysis import signals
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control import experiment, tuning
from tcpsbed.lab.control.batch import Bench, Cell
from tcpsbed.lab.control.loop import loops
from tcpsbed.lab.control.response import Step
from tcpsbed.lab.control.theory import LoopModel, margins

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_plant.toml"
PLANT = "components.tactile-teleoperator.robot.params.plant"
LAG = '{ kind = "lag", time_constant = "4 ms" }'
CODE = "import tcpsbed\nclass Mine(tcpsbed.Plant):\n"


def load(file: Path, plant: str, *sets: str) -> scenarios.Scenario:
    return scenarios.load(file, [f"{PLANT}={plant}", *sets])


@pytest.mark.parametrize("phases", [False, True])
@pytest.mark.parametrize(
    ("plant", "kp", "ki"),
    [
        ('"static"', 0.2, 0.0909),
        (LAG, 0.2, 0.06),
        ('{ kind = "second-order", frequency = "30 Hz", damping = 0.5 }', 0.05, 0.03),
        ('{ kind = "mass", acceleration = 2000, friction = 60 }', 0.8, 0.0005),
    ],
)
def test_the_engine_is_the_scenario_with_every_plant(
    shipped_scenarios: Path, plant: str, kp: float, ki: float, phases: bool
) -> None:
    """All five figures of each run, without loss."""
    ways = ['links.line={delay="5.2 ms"}', f"hooks.pi.params={{kp={kp}, ki_per_ms={ki}}}"]
    scenario = load(shipped_scenarios / "step.toml", plant, *(ways if phases else ways[1:]))
    [run] = experiment.run(scenario, runs=3, phases=phases)
    delay = 5.2 if phases else 5.0
    bench = Bench(run.loop.step, runs=3, duration_ms=1200, seed=scenario.seed)
    [cell] = bench.run([Cell(1, delay, delay, kp, ki, phases=phases)], keep=True)
    for response, mine in zip(run.responses, cell["runs"], strict=True):
        for name, value in vars(response).items():
            own = math.nan if mine[name] is None else mine[name]
            assert own == pytest.approx(value, abs=1e-6, nan_ok=True), name
    assert math.isfinite(run.responses[0].rise_ms)


def test_runs_one_by_one_are_those_side_by_side() -> None:
    """Jitter of nothing leaves the delays as they are, and the plant."""
    for plant in (None, {"kind": "lag", "time_constant_ns": 4_000_000}):
        bench = Bench(Step(plant=plant), runs=9, duration_ms=1200)
        none = {"kind": "constant", "span_ns": 0}
        cells = [Cell(1, 5, 5, 0.2, 0.06, jitter=jitter) for jitter in (None, none)]
        block, single = bench.run(cells, keep=True)
        for one, other in zip(block["runs"], single["runs"], strict=True):
            assert one == pytest.approx(other, abs=1e-9, nan_ok=True)


def test_a_class_that_says_the_matrices_of_a_built_in_plant_is_that_plant(
    shipped_scenarios: Path, tmp_path: Path
) -> None:
    body = "    def matrices(self): return [[-self.rate]], [self.rate], [1.0]\n"
    params = '    params = {"rate": tcpsbed.Param("number", 1, 1000, "250", "per s")}\n'
    (tmp_path / "mine.py").write_text(CODE + params + body)
    file = tmp_path / "step.toml"
    file.write_text((shipped_scenarios / "step.toml").read_text())
    own, built_in = (
        tcpsbed.run(file, set=[f"{PLANT}={plant}"], out=tmp_path / name).summary["records_sha256"]
        for name, plant in (("own", '"./mine.py:Mine"'), ("built-in", LAG))
    )
    assert own == built_in
    plan = json.loads((tmp_path / "own" / "plan.json").read_text())
    (robot,) = [component["robot"] for component in plan["components"] if component["robot"]]
    plant = robot["run"]["params"]["plant"]
    assert plant.pop("code").endswith("mine.py:Mine")
    assert plant == {"kind": "state-space", "a": [[-250.0]], "b": [250.0], "c": [1.0], "d": 0.0}


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_the_example_comes_back_to_one(world: str, tmp_path: Path) -> None:
    run = tcpsbed.run(EXAMPLE, world=world, out=tmp_path)
    assert run.summary["errors"] == []
    h = signals.read(tmp_path, "tactile-teleoperator.sense").values[:, 0]
    assert h.min() == pytest.approx(0.5, abs=0.01) and h[-200:] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("plant", "body", "message"),
    [
        ('"leg"', "", 'found "leg" (did you mean lag?); allowed: "static", "lag", '),
        ("7", "", 'found 7; allowed: "lag", { kind = "lag"'),
        ('{ kind = "lag", time_constant = 3 }', "", "found 3, a number without a unit"),
        ('{ kind = "lag", frequency = "3 Hz" }', "", "not a parameter of lag; allowed: time_constant"),
        ('"./mine.py:Mine"', "", "has no method matrices; allowed: def matrices(self)"),
        ('"./mine.py:Mine"', "    def matrices(self): return 1 / 0\n", "matrices() fails (ZeroDivisionError"),
        (
            '"./mine.py:Mine"',
            "    def matrices(self): return [[1.0]]\n",
            "gives [[1.0]]; allowed: (a, b, c) or",
        ),
        (
            '"./mine.py:Mine"',
            "    def matrices(self): return [[1.0, 2.0]], [1.0], [1.0]\n",
            "matrices() gives a = rows of [2] values; allowed: as many values in each row",
        ),
        ('{ kind = "./mine.py:Mine", rate = 3 }', "", "unknown key beside code of your own; allowed: kind"),
        (
            '{ kind = "./mine.py:Mine", params = { rate = 3 } }',
            '    params = {"gain": tcpsbed.Param("number", 0, 1, "1")}\n',
            'found "rate", which is not a parameter of Mine; allowed: gain',
        ),
    ],
)
def test_what_is_wrong_is_said_before_the_run(
    shipped_scenarios: Path, tmp_path: Path, plant: str, body: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(CODE + (body or "    pass\n"))
    file = tmp_path / "step.toml"
    file.write_text((shipped_scenarios / "step.toml").read_text())
    with pytest.raises(ConfigError) as refused:
        scenarios.check(load(file, plant))
    assert message in str(refused.value) and "robot.params.plant" in str(refused.value), refused.value


def test_an_installed_package_gives_one_a_name(
    shipped_scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brought.py").write_text(CODE + "    def matrices(self): return [[-9.0]], [9.0], [1.0]\n")
    about = tmp_path / "brought-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[tcpsbed.plant]\nslow = brought:Mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    door.installed.cache_clear()
    plan = scenarios.check(load(shipped_scenarios / "step.toml", '"slow"'))
    door.installed.cache_clear()
    (robot,) = [component["robot"] for component in plan["components"] if component["robot"]]
    assert robot["run"]["params"]["plant"]["a"] == [[-9.0]]


def test_margins_of_the_curve_are_those_of_the_closed_form_and_of_the_roots() -> None:
    loop = LoopModel(0.2, 0.05, 1.0, 10.0)
    sampled = margins(replace(loop, plant={"kind": "static"}))
    assert vars(sampled) == pytest.approx(vars(margins(loop)), rel=1e-3)
    lag = replace(loop, plant={"kind": "lag", "time_constant_ns": 5_000_000})
    found = margins(lag)

    def largest(gain: float, ticks: int) -> float:
        """Of the roots of z^d (z - 1) (z - a) c + gain ((Kp + g) z - Kp) (1 - a)."""
        a = math.exp(-1 / 5)
        open_loop = np.polymul([1, -1], [2, -2 * a])
        loop_gain = gain * (1 - a) * np.array([lag.kp + lag.g, -lag.kp])
        return float(np.abs(np.roots(np.polyadd(np.append(open_loop, np.zeros(ticks)), loop_gain))).max())

    assert largest(0.999 * found.gain, 10) < 1 < largest(1.001 * found.gain, 10)
    more = int(found.delay_ms)
    assert largest(1, 10 + more) < 1 < largest(1, 11 + more)


def test_gains_are_tuned_for_the_plant_of_a_scenario(shipped_scenarios: Path, tmp_path: Path) -> None:
    command = ["tune", "--rtt", "4 ms", "--period", "2 ms", "--runs", "2", "--json", "--plant"]
    done = CliRunner().invoke(app, [*command, str(EXAMPLE)])
    found = json.loads(done.stdout)
    assert found["margins"]["gain"] > 1 and found["overshoot"] <= 5 and found["rise_ms"] < 100
    [plant] = [loop.step.plant for loop in loops(scenarios.check(scenarios.load(EXAMPLE)))]
    network = tuning.Network(4.0, 2.0, plant=plant)
    assert network.theta_ms == pytest.approx(6 + 1e3 / (0.4 * 2 * math.pi * 20))
    refused = CliRunner().invoke(app, [*command, str(shipped_scenarios / "step-modalities.toml")])
    assert refused.exit_code == 2 and "--plant: found 3 loops" in refused.stderr


def test_the_map_of_a_plant_with_a_memory(shipped_scenarios: Path) -> None:
    def mapped(*options: str) -> Any:
        command = ["map", str(shipped_scenarios / "step.toml"), "--cells", "2x2", "--runs", "2", "--json"]
        return CliRunner().invoke(app, [*command, "--set", f"{PLANT}={LAG}", *options])

    said = json.loads(mapped().stdout)
    assert said["bench"]["step"]["plant"] == {"kind": "lag", "time_constant_ns": 4_000_000}
    assert mapped("--on-command").exit_code == 0
    refused = mapped("--on-command", "--jitter", "1 ms")
    assert refused.exit_code == 2 and "--on-command: found it with --jitter" in refused.stderr
