"""A run that is predicted to be huge says what it would take and waits for `--yes`; the prediction is held to the run."""

from __future__ import annotations

import tomllib

import pytest
from test_inputs import limited, within

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError
from tcpsbed.runs import forecast


@pytest.mark.parametrize("name", ["quickstart", "two-ways", "texture"])
def test_what_is_predicted_is_what_comes(shipped_scenarios, name):
    """Events and bytes of a run six times as long as its rehearsal, within 5 %; its time within a factor of 4."""
    file, sets = shipped_scenarios / f"{name}.toml", ['duration="30 s"']
    found = forecast._rehearsed(file, sets, 30.0, forecast._per_second(scenarios.load(file, sets)), "virtual")
    events, seconds, size = forecast._measured(file, sets, 30.0, "virtual")
    assert found.events == pytest.approx(events, rel=0.05)
    assert found.bytes == pytest.approx(size, rel=0.05)
    assert seconds / 4 < found.seconds < seconds * 4


@pytest.mark.parametrize(
    ("settings", "runs"),
    [
        (['duration="200 h"'], 1),
        (["flows.kinematic.rate='100 kHz'", 'duration="10 h"'], 1),
        pytest.param(["flows.kinematic.rate='1 MHz'", 'duration="1 h"'], 1, marks=pytest.mark.slow),
        (["traffic.cbr.rate='900 Gbit/s'"], 1),
        ([], 100_000),
    ],
)
def test_what_is_huge_is_said_before_it_begins(shipped_scenarios, tmp_path, settings, runs):
    file = shipped_scenarios / "quickstart.toml"
    loaded = scenarios.load(file, settings)
    with within(60):
        found = forecast.ask(file, settings, loaded, "virtual", tmp_path, runs=runs)
    assert found is not None
    said = str(forecast.refuse(found, "a run"))
    assert "events" in said and "on disk" in said and "allowed: --yes to continue" in said


ROBOT = """
name = "watched"
duration = "200 h"
[components]
tactile-operator = "ms"
tactile-teleoperator = { kind = "tactile-teleoperator", node = "ss", robot = "./own.py:Robot" }
[flows.kinematic]
[flows.haptic]
"""
CODE = """
from pathlib import Path
class Robot:
    def __init__(self, **params): Path(__file__).with_name("touched").touch()
    def step(self, t_ns, command, sense): return 0
"""


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_nothing_of_the_users_is_rehearsed(tmp_path, world):
    """A robot of the user's would be stepped, as fast as it can, before anybody has agreed."""
    (tmp_path / "own.py").write_text(CODE)
    (tmp_path / "s.toml").write_text(ROBOT)
    found = forecast.ask(tmp_path / "s.toml", [], scenarios.load(tmp_path / "s.toml"), world, tmp_path)
    assert found is not None and found.events == pytest.approx(2 * 1000 * 200 * 3600 * 2, rel=0.5)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("world", ["real", "namespaces", "mininet"])
def test_a_run_on_the_clock_is_not_rehearsed(shipped_scenarios, tmp_path, monkeypatch, world):
    monkeypatch.setattr(forecast, "_measured", lambda *_: pytest.fail("it was rehearsed"))
    file, sets = shipped_scenarios / "quickstart.toml", ['duration="200 h"']
    loaded = scenarios.load(file, sets)
    found = forecast.ask(file, sets, loaded, world, tmp_path)
    assert found is not None and found.bytes == pytest.approx(forecast._bytes_per_second(loaded) * 200 * 3600)


@pytest.mark.parametrize("name", ["quickstart", "two-ways", "texture", "dumbbell-dpm"])
def test_what_is_counted_is_near_what_comes(shipped_scenarios, name):
    """Without packets, within a factor of 4 for what has not been rehearsed."""
    file, sets = shipped_scenarios / f"{name}.toml", ['duration="4 s"', 'measure.pcapng="off"']
    _, _, size = forecast._measured(file, sets, 4.0, "virtual")
    assert 1 / 4 < size / (4 * forecast._bytes_per_second(scenarios.load(file, sets))) < 4


@pytest.mark.parametrize(
    ("text", "touched"),
    [
        ('a = "./own.py:Robot"', True),
        ('a = "package.module:Class"', True),
        ('a = "./lib.so:step"', True),
        ('a = [{ b = "mujoco-arm" }]', True),
        ('a = "/dev/ttyUSB0"', True),
        ('microphone = "device:Front"', True),
        ('speaker = "heard.wav"', True),
        ('archive = "heights"', True),
        ('speaker = "none"', False),
        ('source = "builtin:speech"', False),
        ('source = "operator:hand.csv"', False),
        ('delay = "5 ms"', False),
    ],
)
def test_what_is_the_users_is_known_by_its_name(text, touched):
    assert forecast.touches(tomllib.loads(text)) == touched


def test_what_is_usual_is_not_asked_about(shipped_scenarios, tmp_path):
    for file in sorted(shipped_scenarios.glob("*.toml")):
        try:
            loaded = scenarios.load(file)
        except ConfigError:
            continue  # a part of others
        assert loaded.duration_ns / 1e9 * forecast._per_second(loaded) <= forecast.LOOKED_AT_SAMPLES, (
            file.name
        )


def test_the_command_asks_and_leaves_nothing(shipped_scenarios, tmp_path):
    command = ("-m", "tcpsbed", "run", str(shipped_scenarios / "quickstart.toml"))
    done = limited(tmp_path, *command, "--duration", "200 h", "--out", "x", timeout_s=60)
    assert done.returncode == 2 and "found a run that would take about" in done.stderr, done.stderr
    assert "--yes" in done.stderr and not (tmp_path / "x").exists()


def test_a_sweep_is_asked_about_as_a_whole(shipped_scenarios, tmp_path):
    over = [f"--over=links.l1.delay={','.join(f'{n} ms' for n in range(100))}", "--seeds", "10000"]
    command = ("-m", "tcpsbed", "sweep", str(shipped_scenarios / "quickstart.toml"))
    done = limited(tmp_path, *command, *over, "--out", "x", timeout_s=60)
    assert done.returncode == 2 and "found a sweep of 1000000 runs that would take" in done.stderr, (
        done.stderr
    )
    assert not (tmp_path / "x").exists()
