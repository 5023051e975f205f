"""`check` refuses what a run would refuse: transports, hooks and robots are made once, and the plan is set up once."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpsbed
from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import check, load

PAIR = """
duration = "1 s"
[components]
tactile-operator = "a"
[components.tactile-teleoperator]
node = "b"
robot = { run = "./code.py:Robot", senses = 3 }
[flows.kinematic]
[flows.haptic]
"""
CODE = """
class Robot:
    def __init__(self, says=3):
        self.says = says

    def step(self, t_ns, command, sense):
        return self.says


class NoStep:
    pass


class Hold:
    def __init__(self, horizon_ns=0):
        if horizon_ns > 10**9:
            raise ValueError("a horizon above 1 s")

    def __call__(self, t_ns, index, x, other, y):
        return 0
"""
ROBOT = "components.tactile-teleoperator.robot"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(CODE)
    path = tmp_path / "pair.toml"
    path.write_text(PAIR)
    return path


REFUSED = {
    'flows.kinematic.transport={kind="udp", mtu="10 B"}': 'mtu: found "10 B"; allowed: a size from 300 B to 65507 B',
    'flows.kinematic.transport={kind="udp", foo=1}': 'found "foo", which is not a parameter of udp; allowed: mtu, overhead',
    'flows.kinematic.transport={kind="udp", mtu=1000}': "mtu: found 1000, a number without a unit",
    f'{ROBOT}={{run="wall_mass", params={{mass_kg=-1}}}}': "mass_kg: found -1; allowed: a number above 0",
    f'{ROBOT}="./code.py:NoStep"': "has no method step",
    f'{ROBOT}={{run="./code.py:Robot", params={{colour=1}}}}': "robot.params: .*unexpected keyword argument 'colour'",
    'hooks.predict={run="linear", at="tactile-operator", params={colour=1}}': "hooks.predict.params: .*colour",
    'hooks.predict={run="./code.py:Hold", at="tactile-operator", params={horizon="2 s"}}': "a horizon above 1 s",
}


@pytest.mark.parametrize("override", REFUSED)
def test_what_a_run_would_refuse_is_refused_with_its_key(file: Path, override: str) -> None:
    with pytest.raises(ConfigError, match=REFUSED[override]) as refused:
        check(load(file, [override]))
    text = str(refused.value)
    key = override.partition("=")[0]
    assert text.startswith(f"--set {override[:60]}") and f": {key}" in text and "\n" not in text
    assert text.count("Error: ") <= 1, "an error is named once"


HOLD = (
    'hooks.predict={run="supervisor", at="ss-com", flow="kinematic", period="1 ms", params={start=[0], %s}}'
)
LINEAR = 'hooks.predict={run="linear", at="tactile-operator", params={%s}}'
PARAMETERS = {
    HOLD % 'speed="fast"': 'params.speed: found "fast"; allowed: a number from 0.000000001 to 1000000000',
    HOLD % 'degraded_ms="20 ms"': 'params.degraded_ms: found "20 ms", whose unit is in the name of the key; '
    "allowed: a number, such as degraded_ms = 20",
    HOLD % 'measured=["a"]': 'params.measured: found ["a"]; allowed: a list, each a whole number from 0 on',
    HOLD % "tell=1": "params.tell: found 1; allowed: true or false",
    HOLD % "action=3": 'params.action: found 3; allowed: "hold", "decelerate"',
    HOLD % 'action="agent"': 'params: found no agent; allowed: action = "agent" and an agent, or neither',
    HOLD
    % "hold_ms=10": "params.hold_ms: found 10 beside degraded_ms = 20, stop_ms = 500; allowed: times that rise",
    LINEAR % "over=0": "params.over: found 0; allowed: a whole number from 1 to 1000",
    f'{ROBOT}={{run="wall_mass", params={{mass_kg=-1}}}}': "params.mass_kg: found -1; allowed: a number above 0",
    f'{ROBOT}={{run="arm", params={{start_rad=[9]}}}}': "found [9]; allowed: a list of 3, each a number",
    f'{ROBOT}={{run="arm", params={{start_rad=[9, 9, 9]}}}}': "start_rad: found [9.0, 9.0, 9.0]; allowed: angles within [[",
}


@pytest.mark.parametrize("override", PARAMETERS)
def test_a_parameter_that_is_wrong_is_refused_with_what_is_allowed_for_it(file: Path, override: str) -> None:
    file.write_text(PAIR.replace('tactile-operator = "a"', 'tactile-operator = "a"\nss-com = "b"'))
    with pytest.raises(ConfigError) as refused:
        check(load(file, [override]))
    assert PARAMETERS[override] in str(refused.value)
    assert "can be loaded" not in str(refused.value)


def test_what_a_run_takes_is_right(file: Path) -> None:
    check(load(file, ['flows.kinematic.transport={kind="udp", mtu="576 B"}']))
    check(
        load(file, ['hooks.predict={run="./code.py:Hold", at="tactile-operator", params={horizon="1 ms"}}'])
    )


@pytest.mark.parametrize("says", [4, 257, -1])
def test_a_robot_that_writes_too_much_is_an_error_of_the_run(file: Path, tmp_path: Path, says: int) -> None:
    text = f"{ROBOT}.params={{says={says}}}"
    run = tcpsbed.run(file, out=tmp_path / "out", set=[text])
    error, ended = run.summary["errors"]
    assert f"step returned {says} as its number of values; allowed: 0 to 3 (senses)" in error + ended
    assert "failed at" in error + ended


def test_a_built_in_stage_is_called_by_its_name(file: Path, tmp_path: Path) -> None:
    hold = 'hooks.predict={run="zoh", at="tactile-operator", flow="kinematic"}'
    run = tcpsbed.run(file, out=tmp_path / "out", set=[hold])
    assert [stage["name"] for stage in run.summary["stages"]] == ["zoh"]


def test_a_shorter_run_leaves_out_what_comes_later_and_can_be_repeated(file: Path, tmp_path: Path) -> None:
    """An event after the end is refused in a file, and left out where the run was made shorter."""
    file.write_text(PAIR + '[[events]]\nat = "0.5 s"\nflow = "haptic"\nrunning = false\n')
    run = tcpsbed.run(file, out=tmp_path / "out", set=['duration="0.2 s"'])
    assert run.summary["events"] == []
    check(load(tmp_path / "out" / "scenario.toml"))
