"""Data files and the whole plan, as Rust reads it."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
from config_tools import CHAIN, PAIR, ROOT, compiled, steps

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import compile_plan, load
from tcpsbed.scenarios.compile import builtins


@pytest.fixture
def plan(tmp_path):
    return partial(compiled, tmp_path)


def test_sizes_of_a_trace_become_frames(plan, tmp_path):
    (tmp_path / "video.txt").write_text("0.00 8000 1\n0.04 1600 0\n")
    text = PAIR + '[flows.video]\nsource = { sizes = "video.txt" }\n'
    video = plan(text)["flows"][1]
    assert video["source"] == {"kind": "sizes", "bytes": [1000, 200]}
    assert (video["codec"], video["sink"]) == ("raw", {"kind": "verify"})


def test_recordings_are_written_as_rows_of_little_endian_floats(plan, tmp_path):
    (tmp_path / "hand.csv").write_text("time,x,y\n0,0,1\n1,1,2\n")
    source = '{ recording = "hand.csv", columns = ["x", "y"], repeat = "mirror" }'
    text = PAIR + f'[flows.pose]\ndirection = "forward"\nrate = "2 Hz"\nsource = {source}\n'
    found = plan(text)["flows"][1]["source"]
    assert (found["kind"], found["columns"], found["repeat"]) == ("values", 2, "mirror")
    rows = memoryview(Path(found["path"]).read_bytes()).cast("d").tolist()
    assert rows[:4] == [0.0, 1.0, 0.5, 1.5]


def test_a_recording_whose_column_is_not_there_names_the_key(plan, tmp_path):
    (tmp_path / "hand.csv").write_text("time,x,y\n0,0,1\n1,1,2\n")
    with pytest.raises(ConfigError, match=r"flows\.kinematic\.source.*allowed: "):
        plan(PAIR + 'source = { recording = "hand.csv", columns = ["z"] }\n')


def test_the_quickstart_has_force_sound_and_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(builtins, "known", dict)
    plan = compile_plan(load(ROOT / "scenarios" / "quickstart.toml"), tmp_path)
    assert {flow["name"]: flow["source"]["kind"] for flow in plan["flows"]} == {
        "kinematic": "values",
        "haptic": "robot",
        "audio": "frames",
        "video": "frames",
    }
    assert steps(plan, "kinematic")["srv"] == ["kinematics", "inverse_kinematics", "work"]


@pytest.mark.needs("cargo")
@pytest.mark.parametrize("name", ["dumbbell-udp", "usnet9-latency", "real-loopback"])
def test_rust_reads_what_is_compiled(name, tmp_path):
    """The plan's reader refuses unknown keys, so this also says that nothing is misspelt."""
    plan = json.dumps(compile_plan(load(ROOT / "scenarios" / f"{name}.toml"), tmp_path))
    command = ["cargo", "run", "--quiet", "--package", "tcps-run", "--example", "check_plan"]
    done = subprocess.run(command, input=plan, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{name}: ")


@pytest.mark.needs("cargo")
def test_rust_reads_every_part_of_a_plan(plan, tmp_path):
    (tmp_path / "lte.down").write_text("1\n1\n7\n")
    text = (
        'sessions = ["left", "right"]\n'
        + CHAIN
        + (
            '[flows.video]\nvia = []\n[nodes.a]\nat = "S0"\nscheduling = "priority"\n'
            '[nodes.b]\nat = "S1"\n[nodes.c]\nat = "S2"\n'
            '[nodes.d]\nat = "S3"\nscheduling = { round_robin = "1 ms" }\n[nodes.e]\nat = "S4"\n'
            '[topology]\ngraph = "usnet9"\nrouting = "delay"\n[topology.link]\nrate = "10 Mbit/s"\nqueue = "100 packets"\n'
            '[links.S0-S1]\nloss = { kind = "gilbert-elliott", p = "1 %", r = "30 %" }\noutages = [["1 s", "2 s"]]\n'
            'jitter = { kind = "normal", mean = "1 ms", sd = "1 ms" }\nduplex = "half"\n'
            'duplicate = "10 %"\ncorrupt = "10 %"\n'
            '[links.hub]\nfrom = "a"\nto = "b"\nmedium = "air"\n'
            '[links.lte]\nfrom = "a"\nto = "b"\ntrace = "lte.down"\nqueue = { discipline = "codel" }\n'
            '[hooks.predict]\nrun = "zoh"\nperiod = "1 ms"\ncost = { kind = "pareto", scale = "1 ms", shape = 2 }\n'
            '[hooks]\nkinematics = "arm3"\nsense = "zoh"\n[traffic.poisson]\non = "all-to-all"\nrate = "1 kbit/s"\n'
            '[traffic.vbr]\non = "S0->S4"\nrate = "1 kbit/s"\nstop = "5 s"\ndscp = "CS1"\n'
            '[[events]]\nat = "1 s"\nlink = "S0-S1"\nup = false\n[[events]]\nat = "1 s"\nreroute = true\n'
            '[[events]]\nat = "1 s"\nflow = "haptic"\nrunning = false\n'
            '[[events]]\nat = "1 s"\ntraffic = "vbr"\nrunning = false\n'
            '[[events]]\nat = "2 s"\ncomponent = "srv"\nalive = true\n'
            '[measure]\nrecords = "events"\nqueues = "1 ms"\nsync = "1 s"\necho = "all"\n'
            '[real]\nwaiting = "hybrid"\nipv6 = true\n'
        )
    )
    command = ["cargo", "run", "--quiet", "--package", "tcps-run", "--example", "check_plan"]
    done = subprocess.run(command, input=json.dumps(plan(text)), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
