"""What installed packages bring along is named like what is built in, and is listed with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import config, door
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, WorldError
from tcpsbed.worlds import registry

POINTS = """
[tcpsbed.hook]
stand = mine_door:Stand
[tcpsbed.transport]
plain = mine_door:Plain
[tcpsbed.controller]
calm = mine_door:Calm
[tcpsbed.robot]
still = mine_door:Still
[tcpsbed.network]
wire = tcpsbed.worlds.between:Direct
"""
CODE = """
import struct
import tcpsbed

HEADER = struct.Struct("!HIq")


class Stand:
    params = {"gain": tcpsbed.Param("number", 0, 2, "1", "what values are multiplied by")}

    def __init__(self, gain):
        self.gain = gain

    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = self.gain * x
        return len(x)


class Plain:
    def __init__(self, channel):
        pass

    def on_input(self, now_ns, kind, data, out):
        if kind == "sample":
            out.transmit(HEADER.pack(data.flow, data.index, data.origin_ns) + data.bytes, data.flow, data.index)
        elif kind == "datagram":
            out.deliver(*HEADER.unpack_from(data.bytes), data.bytes[HEADER.size :])


class Calm(tcpsbed.RateController):
    def on_feedback(self, now_ns, delay_ns, k, told):
        return 2


class Still:
    def step(self, t_ns, command, sense):
        sense[:3] = 0.5
        return 3
"""
SCENARIO = """
duration = "1 s"
[components]
tactile-operator = "a"
tactile-teleoperator = { node = "b", robot = "still" }
[flows.kinematic]
source = "generated"
sample = "24 B"
codec = "f32"
transport = "plain"
[flows.haptic]
source = "robot"
sample = "12 B"
codec = "f32"
[hooks.kinematics]
run = "stand"
at = "tactile-operator"
params = { gain = 0.5 }
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package."""
    site = tmp_path / "site"
    (site / "mine_door-1.dist-info").mkdir(parents=True)
    (site / "mine_door-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: mine-door\nVersion: 1\n"
    )
    (site / "mine_door-1.dist-info" / "entry_points.txt").write_text(POINTS)
    (site / "mine_door.py").write_text(CODE)
    monkeypatch.syspath_prepend(site)
    door.installed.cache_clear()
    yield site
    door.installed.cache_clear()


def invoke(*given: str):
    return CliRunner().invoke(app, given)


def written(folder: Path, text: str = SCENARIO) -> Path:
    (folder / "s.toml").write_text(text)
    return folder / "s.toml"


def test_names_of_a_package_run_like_built_in_ones(package, tmp_path):
    file = written(tmp_path)
    config.check(config.load(file))
    run = tcpsbed.run(file, out=tmp_path / "out")
    assert run.summary["errors"] == [] and run.flows["kinematic"]["lost"] == 0
    assert [stage["failures"] for stage in run.summary["stages"]] == [0]
    own = 'channels.c={ flows = ["kinematic", "haptic"], transport = { kind = "telehaptic", controller = "calm" } }'
    text = SCENARIO.replace('transport = "plain"', "")
    plan = config.check(config.load(written(tmp_path, text), [own]))
    assert plan["channels"][0]["params"]["controller"]["symbol"] == "Calm"


def test_their_tables_check_parameters(package, tmp_path):
    with pytest.raises(
        ConfigError, match=r"hooks.kinematics.params.gain: found 9; allowed: a number from 0 to 2"
    ):
        config.check(config.load(written(tmp_path), ["hooks.kinematics.params.gain=9"]))


def test_a_name_that_nobody_has_is_answered_with_theirs_too(package, tmp_path):
    with pytest.raises(ConfigError, match=r"did you mean stand\?"):
        config.check(config.load(written(tmp_path), ['hooks.kinematics.run="stant"']))
    with pytest.raises(ConfigError, match=r"did you mean plain\?"):
        config.check(config.load(written(tmp_path), ['flows.kinematic.transport="plein"']))


def test_a_network_of_a_package_makes_a_world(package):
    assert registry.named("hosts+wire").network.__name__ == "Direct"
    with pytest.raises(WorldError):
        registry.named("hosts+wires")


def test_built_in_names_do_not_look_for_packages(root):
    code = (
        "import sys; from tcpsbed import config; "
        "config.check(config.load('scenarios/dumbbell-udp.toml')); "
        "sys.exit('importlib.metadata' in sys.modules and __import__('tcpsbed.door').door.installed.cache_info().misses)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_plugins_lists_what_there_is_with_its_source(package, tmp_path):
    rows = json.loads(invoke("plugins", "--json").stdout)
    found = {(row["kind"], row["name"]): row["source"] for row in rows}
    assert found["transport", "udp"] == found["hook", "zoh"] == found["queue", "codel"] == "built in"
    assert (
        found["hook", "evdev"] == found["robot", "mujoco-arm"] == found["network", "emulator"] == "built in"
    )
    assert found["controller", "calm"] == found["network", "wire"] == "package mine-door"
    example = Path(__file__).resolve().parents[2] / "examples" / "own_controller.toml"
    rows = json.loads(invoke("plugins", "--json", "--kind", "controller", "--scenario", str(example)).stdout)
    assert [row["name"] for row in rows] == ["calm", "Patient"] and rows[1]["source"].endswith(
        "own_controller.py"
    )
    assert "own_controller.py" in invoke("plugins", "--scenario", str(example)).stdout
    refused = invoke("plugins", "--kind", "hok")
    assert refused.exit_code == 2 and "allowed: hook, " in refused.stderr


@pytest.mark.parametrize("kind", ["controller", "predictor", "robot", "transport"])
def test_new_writes_what_runs_and_passes_its_test(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("new", kind, "my_rule")
    assert done.exit_code == 0 and "my_rule.py, " in done.stdout
    assert {"my_rule.py", "my_rule.toml", "test_my_rule.py"} <= {file.name for file in tmp_path.iterdir()}
    assert "class MyRule" in (tmp_path / "my_rule.py").read_text()
    assert not re.search(r"own[_-]|examples", (tmp_path / "my_rule.toml").read_text())
    environment = os.environ | {"PYTHONPATH": str(Path(tcpsbed.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_rule.py"]
    tried = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert tried.returncode == 0, tried.stdout
    kept = (tmp_path / "my_rule.py").read_text()
    again = invoke("new", kind, "my_rule")
    assert (
        again.exit_code == 2 and "exists already; allowed: another name; nothing was written" in again.stderr
    )
    assert (tmp_path / "my_rule.py").read_text() == kept


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("quue", "x"), 'KIND: found "quue"; allowed: controller, predictor, robot, transport'),
        (("robot", "My-Robot"), 'NAME: found "My-Robot"; allowed: small letters'),
    ],
)
def test_new_refuses_what_it_cannot_write(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("new", *given)
    assert done.exit_code == 2 and said in done.stderr and not list(tmp_path.iterdir())
