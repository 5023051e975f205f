"""A run on sockets is told of events while it goes on: they are in force, and in its record."""

from __future__ import annotations

import json

import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.errors import ConfigError
from tcpsbed.runs import session
from tcpsbed.worlds import Steering

pytestmark = [pytest.mark.realtime, pytest.mark.beside]

SCENARIO = """
duration = "3 s"
warmup = "0 s"

[links.wan]
from = "home"
to = "away"
delay = "5 ms"

[components]
ms-com = "home"
ss-com = "away"

[flows.kinematic]
rate = "100 Hz"
sample = "48 B"
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    file = tmp_path_factory.mktemp("steered") / "steered.toml"
    file.write_text(SCENARIO)
    return scenarios.load(file)


def test_a_link_and_a_flow_change_while_the_run_goes_on(scenario, tmp_path):
    steering = Steering(scenario)
    asked = [(1.0, {"link": "wan", "delay": "200 ms"}), (2.0, {"flow": "kinematic", "running": False})]

    def live(rows, t_s, split):
        while asked and t_s > asked[0][0]:
            steering.event(**asked.pop(0)[1])

    outcome = session.execute(scenario, world="real", out=tmp_path / "run", live=live, steering=steering)
    run = tcpsbed.Run(outcome.folder)
    assert run.summary["errors"] == []
    slower, rests = run.summary["events"]
    assert (slower["name"], rests["name"]) == ("link wan delay 200 ms", "flow kinematic stops")
    assert 1.0 < slower["t_s"] < 2.0 < rests["t_s"] < 3.0
    planned = json.loads((outcome.folder / "plan.json").read_text())["events"]
    assert [event["name"] for event in planned] == [slower["name"], rests["name"]]
    delays = run.summary["flows"]["kinematic"]["delay_ms"]
    assert delays["min"] < 100 and delays["max"] >= 200, delays
    assert run.summary["flows"]["kinematic"]["sent"] < 100 * (rests["t_s"] + 0.5)


def test_what_a_scenario_could_not_have_is_refused_at_once(scenario):
    steering = Steering(scenario)
    for event, words in [
        ({"link": "lan", "delay": "1 ms"}, r"event: .*lan.*wan"),
        ({"link": "wan", "delay": "soon"}, r"event: .*soon.*allowed"),
        ({"link": "wan", "running": False}, r"event: .*running: found beside link"),
        ({"link": "wan", "delay": "1 ms", "at": "99 s"}, r"at: found a time after the run; .* 3 s"),
    ]:
        with pytest.raises(ConfigError, match=words):
            steering.event(**event)
    steering.refusal = "found an event of the network"
    with pytest.raises(ConfigError, match="found an event of the network; allowed: an event of a flow"):
        steering.event(link="wan", delay="1 ms")
    assert steering.event(flow="kinematic", running=False)[0]["name"] == "flow kinematic stops"
