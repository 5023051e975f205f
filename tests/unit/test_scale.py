"""Many operators: set-up grows with what there is, numbers that end are told, and what is shown stays readable."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError
from tcpsbed.runs import forecast
from tcpsbed.scenarios.compile import limits, room, routes
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.glance import MOST, glance

sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))
from operators import scenario as written


def loaded(folder: Path, count: int, overrides: Sequence[str] = ()) -> scenarios.Scenario:
    file = folder / f"{count}.toml"
    file.write_text(written(count, 1), encoding="utf-8")
    return scenarios.load(file, overrides)


def steps_of(call) -> int:
    """Steps of the interpreter in a call."""
    steps = 0

    def trace(frame, event, _):
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


def test_compiling_twice_the_operators_takes_twice_the_steps(tmp_path):
    scenarios.compile_plan(loaded(tmp_path, 3), tmp_path)  # what is made once is made
    read = [loaded(tmp_path, count) for count in (20, 40, 80)]
    few, some, many = (steps_of(partial(scenarios.compile_plan, one, tmp_path)) for one in read)
    assert many - some < 2.1 * (some - few), (few, some, many)


def test_the_folder_of_a_scenario_is_looked_up_once_for_all_files_that_it_may_name(tmp_path, monkeypatch):
    scenario, looks, resolve = loaded(tmp_path, 30), [], Path.resolve
    monkeypatch.setattr(Path, "resolve", lambda path: looks.append(path) or resolve(path))
    assert scenario.files == [tmp_path / "30.toml"]
    assert len(looks) <= 2


@pytest.mark.parametrize("duplex", ["full", "simplex"])
def test_ways_behind_one_router_are_looked_for_once(tmp_path, monkeypatch, duplex):
    """Also where the bottleneck leads one way only, so that the two sides do not reach each other."""
    scenario, looks = loaded(tmp_path, 30, [f"links.bottleneck.duplex={duplex}"]), []
    reach = routes._reach
    monkeypatch.setattr(routes, "_reach", lambda onward, start: looks.append(start) or reach(onward, start))
    scenarios.compile_plan(scenario, tmp_path)
    assert len(looks) <= 3


def test_a_way_that_does_not_exist_is_told_with_all_that_is_reached(tmp_path):
    turned = ["links.bottleneck.duplex=simplex", "links.bottleneck.from=right", "links.bottleneck.to=left"]
    with pytest.raises(
        ConfigError, match=r'no route from "o0-home" to "o0-away".*o0-home reaches left, o1-home'
    ) as refused:
        scenarios.compile_plan(loaded(tmp_path, 3, turned), tmp_path)
    assert "right" not in str(refused.value)


def test_more_components_than_can_be_numbered_are_refused_with_the_reason(tmp_path):
    file = tmp_path / "many.toml"
    names = json.dumps([f"s{i}" for i in range(4_097)])
    file.write_text(
        f"sessions = {names}\n[components]\ntactile-operator = 'a'\nms-com = 'a'\nss-com = 'b'\n"
        "tactile-teleoperator = 'b'\n[flows.kinematic]\nrate = '100 Hz'\n"
    )
    with pytest.raises(ConfigError) as refused:
        scenarios.compile_plan(scenarios.load(file), tmp_path)
    text = str(refused.value)
    assert "many.toml" in text and "components: found 16,388" in text
    assert "points end at 16,384 components" in text and "do this as shards" in text


def test_more_channels_than_have_ports_are_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(limits.MOST, "channels", (3, limits.MOST["channels"][1]))
    file = tmp_path / "many.toml"
    flow = "[flows.f{}]\ndirection = 'forward'\nrate = '100 Hz'\nsample = '24 B'\n"
    text = "[components]\nms-com = 'a'\nss-com = 'b'\n" + "".join(map(flow.format, range(4)))
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        scenarios.compile_plan(scenarios.load(file), tmp_path)
    said = str(refused.value)
    assert "many.toml: channels: found 4, with those of all sessions; allowed: at most 3: " in said
    assert "do this as shards" in said and "[channels.both] flows = " in said
    file.write_text(text + "[channels.both]\nflows = ['f0', 'f1']\n")
    assert len(scenarios.compile_plan(scenarios.load(file), tmp_path)["channels"]) == 3


def test_python_refuses_as_many_as_the_engine():
    text = (Path(__file__).resolve().parents[2] / "crates/tcps-plan/src/check.rs").read_text()
    for name in ("components", "channels"):
        [bits] = re.findall(rf"const MOST_{name.upper()}: usize = 1 << (\d+);", text)
        assert limits.MOST[name][0] == 1 << int(bits)


def test_warnings_of_queues_ask_for_the_ways_that_flows_go(tmp_path):
    scenario = loaded(tmp_path, 3)
    plan = scenarios.compile_plan(scenario, tmp_path)
    assert room.warnings(plan) == []
    for flow in plan["flows"]:
        flow["source"] = {"kind": "generated", "bytes": 5_000_000}
    found = room.warnings(plan)
    assert len(found) == 3 and all("bottleneck.forward" in sentence for sentence in found)


def test_a_forecast_counts_a_flow_in_its_own_session_once(tmp_path):
    assert forecast._samples(loaded(tmp_path, 7)) == 700


def test_of_thousands_of_flows_the_first_are_shown_and_the_rest_is_said(tmp_path):
    def run(count: int) -> RunFolder:
        flows = {f"f{i}": {} for i in range(count)}
        run = RunFolder(tmp_path)
        vars(run).update(summary={"flows": flows, "errors": ["e"] * 500}, series={}, scenario="")
        return run

    few = run(MOST)
    assert glance(few) == (few, "")
    shown, said = glance(run(4_000))
    assert (len(shown.summary["flows"]), len(shown.summary["errors"])) == (MOST, 500)
    assert "100 of 4,000 (flows)" in said
