"""Files, includes and overrides become one tree; what is written out reads back the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import check, compile_plan, dump, init_template, load
from tcpsbed.scenarios.compile import builtins

ROOT = Path(__file__).resolve().parents[2]
BASE = """
[components]
tactile-operator = "op"
srv = "edge"
tactile-teleoperator = "top"
[flows.kinematic]
rate = "1 kHz"
"""


@pytest.fixture(autouse=True)
def _builtins(monkeypatch):
    known = {"hooks": ["arm3", "zoh"], "robots": ["arm"], "transports": ["udp"]}
    monkeypatch.setattr(builtins, "known", lambda: known)


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "scenario.toml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_scenario_of_six_lines_has_everything_a_run_needs(write, tmp_path):
    scenario = load(write(BASE))
    plan = compile_plan(scenario, tmp_path / "inputs")
    assert (scenario.name, scenario.duration_ns, scenario.seed) == ("scenario", 10_000_000_000, 1)
    assert [node["name"] for node in plan["nodes"]] == ["op", "edge", "top"]
    assert plan["flows"][0]["source"] == {"kind": "generated", "bytes": 24}
    assert [channel["name"] for channel in plan["channels"]] == ["kinematic@op-edge", "kinematic@edge-top"]


def test_the_including_file_wins_over_the_included_ones_in_order(write):
    write(BASE + 'duration = "1 s"\n'.join(["", ""]), "empty.toml")
    write('seed = 1\nduration = "1 s"\n' + BASE, "sub/base.toml")
    write("seed = 2\n[nodes.op]\ncores = 2\n", "middle.toml")
    scenario = load(
        write('include = ["sub/base.toml", "middle.toml"]\n[nodes.op]\nclock = { offset = "1 ms" }\n')
    )
    assert (scenario.seed, scenario.duration_ns) == (2, 1_000_000_000)
    assert (scenario.nodes["op"].cores, scenario.nodes["op"].clock.offset_ns) == (2, 1_000_000)


def test_an_error_in_an_included_file_names_that_file(write, tmp_path):
    write('duration = "1"\n' + BASE, "base.toml")
    with pytest.raises(ConfigError) as error:
        load(write('include = "base.toml"\n'))
    assert str(error.value).startswith(
        f'{tmp_path}/base.toml:1: duration: found "1", a number without a unit'
    )


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ('flows.kinematic.rate="2 kHz"', "rate_hz", 2000.0),
        ("flows.kinematic.rate=2 kHz", "rate_hz", 2000.0),
        ("flows.kinematic.priority = 3", "priority", 3),
        ('"flows".kinematic.dscp="EF"', "dscp", 46),
    ],
)
def test_overrides_are_toml_or_plain_text(write, override, key, value):
    assert getattr(load(write(BASE), [override]).flows["kinematic"], key) == value


def test_overrides_reach_into_what_was_written_short(write):
    """`hooks.kinematics = "arm3"` is moved with one key. [issue 2, section 2]"""
    text = BASE + '[hooks]\nkinematics = "arm3"\n'
    scenario = load(write(text), ["hooks.kinematics.at=tactile-operator", "components.srv.cost=3 ms"])
    assert scenario.hooks["kinematics"].run == "arm3"
    assert scenario.hooks["kinematics"].at == ["tactile-operator"]
    assert scenario.components["srv"].node == "edge"


def test_the_later_override_counts(write):
    assert load(write(BASE), ["seed=2", "seed=3"]).seed == 3


def test_a_dumped_scenario_is_the_same_scenario_elsewhere(write, tmp_path):
    (tmp_path / "delays.csv").write_text("delay_ms\n1\n2\n")
    text = BASE + (
        '[links."S 1"]\nfrom = "op"\nto = "edge"\nqueue = { limit = "20 packets" }\n'
        '[links.b]\nfrom = "edge"\nto = "top"\nloss = "50 %"\n'
        '[[events]]\nat = "1 s"\nlink = ["b"]\nup = false\n'
        '[hooks.x]\nkind = "work"\nat = "srv"\ncost = { trace = "delays.csv" }\n'
    )
    scenario = load(write(text), ['name=a "quoted" name'])
    again = load(write(dump(scenario), "elsewhere/run.toml"))
    assert again.folder == scenario.folder
    inputs = tmp_path / "inputs"
    assert compile_plan(again, inputs) == compile_plan(scenario, inputs)


def test_the_template_runs_as_it_is(write):
    check(load(write(init_template())))
