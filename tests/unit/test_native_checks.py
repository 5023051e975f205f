"""The native module refuses before a run what the run would refuse: names and parameters of code and transports."""

from __future__ import annotations

import errno
import json
from functools import partial

import pytest

from tcpsbed import _tcps
from tcpsbed.errors import ROOM, ConfigError, DataError, HookError, Refused, WorldError, of_run

PREDICTOR = """
class Zoh:
    def __init__(self, horizon_ns=0):
        if horizon_ns < 0:
            raise ValueError("horizon_ns is below 0")

    def __call__(self, t_ns, index, x, other, y):
        return 0


class Arm:
    def step(self, t_ns, command, sense):
        return 0
"""


@pytest.fixture
def predictor(tmp_path):
    path = tmp_path / "predictor.py"
    path.write_text(PREDICTOR)
    return path


def test_what_a_run_takes_is_taken(predictor):
    _tcps.check_transport("udp", "{}")
    _tcps.check_transport("udp", json.dumps({"mtu_bytes": 576}))
    _tcps.check_hook("linear", json.dumps({"over": 3}))
    _tcps.check_hook(f"{predictor}:Zoh", json.dumps({"horizon_ns": 5}), kind="predict")
    _tcps.check_robot("wall_mass", "null")
    _tcps.check_playout("moon", json.dumps({"percentile": 99.9}))
    _tcps.check_robot(f"{predictor}:Arm", "{}")


@pytest.mark.parametrize(
    ("check", "name", "params", "said"),
    [
        ("transport", "udb", {}, "udp"),
        ("transport", "udp", {"mtu_bytes": 3}, "from 300 B to 65507 B"),
        ("transport", "udp", {"mtu": 300}, "mtu_bytes"),
        ("hook", "linear", {"colour": 1}, "colour"),
        ("hook", "zho", {}, "zoh"),
        ("hook", "/nowhere/lib.so:hold", {}, "cannot be loaded"),
        (
            "playout",
            "fixed",
            {"window_ns": 5},
            'found "window_ns", which is not a parameter; allowed: delay_ns',
        ),
        ("playout", "later", {}, "hold, fixed"),
        ("robot", "wall_mass", {"mass_kg": -1}, "mass_kg"),
        ("robot", "/nowhere/robot.py:Arm", {}, "does not exist"),
    ],
)
def test_what_a_run_refuses_is_refused_in_its_words(check, name, params, said):
    with pytest.raises(HookError if name.startswith("/") else ConfigError, match=said):
        getattr(_tcps, f"check_{check}")(name, json.dumps(params))


@pytest.mark.parametrize(
    ("symbol", "params", "said"),
    [("Zoh", {"horizon_ns": -1}, "below 0"), ("Zoh", {"gain": 1}, "gain"), ("None", {}, "no such name")],
)
def test_a_class_that_refuses_its_parameters_is_refused(predictor, symbol, params, said):
    with pytest.raises(HookError, match=said):
        _tcps.check_hook(f"{predictor}:{symbol}", json.dumps(params))


def test_parameters_that_are_no_json_are_refused():
    with pytest.raises(ConfigError, match="parameters"):
        _tcps.check_robot("arm", "{")


def test_an_error_comes_with_its_parts():
    with pytest.raises(Refused) as refused:
        _tcps.check_robot("wall_mass", json.dumps({"mass_kg": -1}))
    assert (refused.value.key, refused.value.found, refused.value.allowed) == (
        "mass_kg",
        "-1",
        "a number above 0",
    )
    full = of_run("world", "/dev/full", errno=errno.ENOSPC)
    assert (type(full), str(full)) == (WorldError, f"/dev/full: No space left on device; allowed: {ROOM}")
    other = of_run("", "node a: no such port")
    assert (type(other), str(other)) == (WorldError, "node a: no such port")


@pytest.mark.parametrize(
    "check",
    [_tcps.check_robot, *(partial(_tcps.check_network_code, what) for what in ("queue", "loss", "source"))],
)
def test_an_error_of_the_users_code_keeps_its_kind_and_its_remedy(tmp_path, check):
    (tmp_path / "mine.py").write_text(
        "from tcpsbed import DataError\n"
        "class Mine:\n"
        "    def __init__(self, *name_and_seed):\n"
        "        raise DataError('found no mesh', file='arm.stl', allowed='a mesh')\n"
    )
    with pytest.raises(DataError) as refused:
        check(f"{tmp_path / 'mine.py'}:Mine", "{}")
    assert (refused.value.found, refused.value.allowed) == ("arm.stl: found no mesh", "a mesh")
