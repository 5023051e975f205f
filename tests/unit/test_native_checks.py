"""The native module refuses before a run what the run would refuse: names and parameters of code and transports."""

from __future__ import annotations

import json

import pytest

from tcpsbed import _tcps

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
        ("transport", "udp", {"mtu_bytes": 3}, "from 300 to 65507"),
        ("transport", "udp", {"mtu": 300}, "mtu_bytes"),
        ("hook", "linear", {"colour": 1}, "colour"),
        ("hook", "zho", {}, "zoh"),
        ("hook", "/nowhere/lib.so:hold", {}, "cannot be loaded"),
        (
            "playout",
            "fixed",
            {"window_ns": 5},
            'playout has no parameter "window_ns"; allowed: kind, delay_ns',
        ),
        ("playout", "later", {}, "hold, fixed"),
        ("robot", "wall_mass", {"mass_kg": -1}, "mass_kg"),
        ("robot", "/nowhere/robot.py:Arm", {}, "does not exist"),
    ],
)
def test_what_a_run_refuses_is_refused_in_its_words(check, name, params, said):
    with pytest.raises(ValueError, match=said):
        getattr(_tcps, f"check_{check}")(name, json.dumps(params))


@pytest.mark.parametrize(
    ("symbol", "params", "said"),
    [("Zoh", {"horizon_ns": -1}, "below 0"), ("Zoh", {"gain": 1}, "gain"), ("None", {}, "no such name")],
)
def test_a_class_that_refuses_its_parameters_is_refused(predictor, symbol, params, said):
    with pytest.raises(ValueError, match=said):
        _tcps.check_hook(f"{predictor}:{symbol}", json.dumps(params))


def test_parameters_that_are_no_json_are_refused():
    with pytest.raises(ValueError, match="parameters"):
        _tcps.check_robot("arm", "{")
