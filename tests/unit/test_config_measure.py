"""Events, echo commands, nodes, clocks."""

from __future__ import annotations

from functools import partial

import pytest
from config_tools import CHAIN, PAIR, compiled

from tcpsbed.errors import ConfigError

LINE = PAIR + '[links.l1]\nfrom = "a"\nto = "b"\n[links.l2]\nfrom = "a"\nto = "b"\nduplex = "simplex"\n'


@pytest.fixture
def plan(tmp_path):
    return partial(compiled, tmp_path)


def test_events_change_links_flows_traffic_and_components(plan):
    text = LINE + (
        '[traffic.cbr]\non = "l1"\nrate = "1 kbit/s"\n'
        '[[events]]\nat = "3 s"\nreroute = true\n'
        '[[events]]\nat = "1 s"\nlink = "l1"\nrate = "1 Mbit/s"\nloss = "2 %"\n'
        '[[events]]\nat = "2 s"\ntraffic = "cbr"\nrunning = false\n'
        '[[events]]\nat = "4 s"\ncomponent = "ss-com"\nalive = false\nname = "crash"\n'
        '[[events]]\nat = "5 s"\nlink = "l1.backward"\nup = false\n'
        '[[events]]\nat = "6 s"\nlink = "l1"\nqueue = "9 packets"\n'
        'jitter = { kind = "exponential", mean = "2 ms" }\n'
    )
    found = plan(text)["events"]
    assert [event["name"] for event in found] == [
        "link l1 rate 1000 kbit/s loss 2 %",
        "traffic cbr stops",
        "reroute",
        "crash",
        "link l1.backward down",
        "link l1 jitter exponential queue 9 packets",
    ]
    assert found[0]["action"] == {"kind": "link", "links": [0, 1], "rate_bps": 1e6, "loss": 0.02}
    assert found[1]["action"] == {"kind": "traffic", "traffic": [0, 1], "running": False}
    assert found[3]["action"] == {"kind": "component", "component": 1, "alive": False}
    assert found[4]["action"]["links"] == [1]
    law = {"kind": "exponential", "mean_ns": 2e6, "shift_ns": 0}
    assert found[5]["action"]["jitter"] == {"delay": law, "reorder": False}
    assert found[5]["action"]["limit_packets"] == 9


def test_an_event_puts_clocks_forward_or_back(plan):
    found = plan(PAIR + '[[events]]\nat = "1 s"\nnode = ["b", "a"]\nstep = "-250 ms"\n')["events"]
    assert [event["name"] for event in found] == 2 * ["node b, a clock -0.25 s"]
    assert [event["action"] for event in found] == [
        {"kind": "clock", "node": node, "step_ns": -250_000_000} for node in (1, 0)
    ]


def test_echo_commands_reach_every_point_and_answer_to_the_test_pc(plan):
    """Entry and exit of every component; a sample is born at the exit of a first component without steps."""
    text = (
        CHAIN
        + '[components.pc]\nkind = "test-pc"\nnode = "c"\n[measure]\necho = { points = "all", count = 9 }\n'
    )
    (probe,) = plan(text)["probes"]
    assert (probe["reply_to"], probe["count"], probe["period_ns"]) == (2, 9, 10_000_000)
    path = [0, 1, 2, 4, 5, 6, 7, 8]
    assert probe["points"] == [2 * c + side for c in path for side in (0, 1)][1:]
    (working,) = plan(text, "components.tactile-operator.cost=1 ms")["probes"]
    assert working["points"][0] == 0
    (held,) = plan(text, 'measure.echo.points=["tactile-teleoperator.held", "srv.exit"]')["probes"]
    assert held["points"] == [0x8000 | 8, 9]


def test_nodes_have_cores_scheduling_and_a_clock(plan):
    text = (
        PAIR
        + '[nodes.a]\ncores = 2\nscheduling = { round_robin = "2 ms" }\nclock = { offset = "-1 ms", drift = "20 ppm" }\n'
    )
    first, second = plan(text)["nodes"]
    assert first["scheduling"] == {"kind": "round_robin", "quantum_ns": 2_000_000}
    assert first["clock"] == {"offset_ns": -1_000_000, "drift_ppb": 20_000}
    assert second["scheduling"] == {"kind": "run_to_completion"}


def test_clocks_are_compared_with_that_of_the_test_pc(plan):
    text = PAIR + '[components.pc]\nkind = "test-pc"\nnode = "pc"\n[measure]\nsync = "125 ms"\n'
    assert plan(text)["sync"] == {"reference": 2, "period_ns": 125_000_000}


@pytest.mark.parametrize("period", ["1e-12 s", "999 ns"])
def test_echo_commands_come_at_most_once_in_a_microsecond(plan, period):
    with pytest.raises(ConfigError, match=f'found "{period}", which is below 1 us'):
        plan(PAIR + f'[measure]\necho = {{period = "{period}"}}\n')
    assert plan(PAIR + '[measure]\necho = {period = "0 ms"}\n')["probes"][0]["period_ns"] == 0
