"""Flows find their way: components, channels, stages, sessions."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
from config_tools import CHAIN, compiled, steps, ways

from tcpsbed.errors import ConfigError


@pytest.fixture
def plan(tmp_path):
    return partial(compiled, tmp_path)


def test_flows_pass_the_components_that_are_there_in_the_order_of_the_house(plan):
    """Forward through ss-ei, backward through ms-ei."""
    forward = [
        "tactile-operator",
        "ms-embsys",
        "ms-com",
        "srv",
        "ss-ei",
        "ss-com",
        "ss-embsys",
        "tactile-teleoperator",
    ]
    backward = [
        "tactile-teleoperator",
        "ss-embsys",
        "ss-com",
        "srv",
        "ms-ei",
        "ms-com",
        "ms-embsys",
        "tactile-operator",
    ]
    assert ways(plan(CHAIN)) == {"kinematic": forward, "haptic": backward}


def test_apps_are_passed_by_the_flows_that_name_them(plan):
    text = CHAIN + (
        '[flows.video]\nfrom = "camera"\nto = "display"\n[flows.audio]\nvia = ["microphone"]\n'
        '[components.camera]\nkind = "ss-embsys-app"\nnode = "e"\n'
        '[components.microphone]\nkind = "ss-embsys-app"\nnode = "e"\n'
        '[components.display]\nkind = "ms-embsys-app"\nnode = "a"\n'
    )
    found = ways(plan(text))
    assert found["video"] == ["camera", "ss-com", "srv", "ms-ei", "ms-com", "display"]
    assert found["audio"][:2] == ["tactile-teleoperator", "microphone"]
    assert found["haptic"][1] == "ss-embsys", "the plain board where a flow names none"


def test_an_explicit_path_is_taken_as_it_is(plan):
    text = CHAIN.replace("[flows.kinematic]", '[flows.kinematic]\npath = ["ms-com", "ms-ei", "ss-com"]')
    assert ways(plan(text))["kinematic"] == ["ms-com", "ms-ei", "ss-com"]


def test_each_flow_has_a_channel_for_each_pair_of_nodes_on_its_way(plan):
    found = plan(CHAIN)
    names = [channel["name"] for channel in found["channels"]]
    assert names[:4] == ["kinematic@a-b", "kinematic@b-c", "kinematic@c-d", "kinematic@d-e"]
    assert names[4:] == ["haptic@d-e", "haptic@c-d", "haptic@b-c", "haptic@a-b"]
    used = [visit["channel"] for visit in found["flows"][0]["path"]]
    assert used == [None, 0, 1, 2, None, 3, None, None]
    assert all(channel["a"] < channel["b"] for channel in found["channels"]), "side a is the operator's"


def test_flows_of_a_channel_travel_together_both_ways(plan):
    text = (
        CHAIN
        + '[channels.both]\nflows = ["kinematic", "haptic"]\ntransport = { kind = "udp", mtu = "576 B" }\n'
    )
    found = plan(text)
    assert [channel["name"] for channel in found["channels"]] == [
        "both@a-b",
        "both@b-c",
        "both@c-d",
        "both@d-e",
    ]
    assert found["channels"][0]["params"] == {"mtu_bytes": 576}
    kinematic, haptic = (
        [v["channel"] for v in flow["path"] if v["channel"] is not None] for flow in found["flows"]
    )
    assert kinematic == list(reversed(haptic))


def test_a_channel_between_two_nodes_leaves_the_other_legs_to_the_flows(plan):
    text = CHAIN + '[channels.radio]\nflows = ["kinematic", "haptic"]\nbetween = ["d", "e"]\n'
    names = [channel["name"] for channel in plan(text)["channels"]]
    assert "radio@d-e" in names
    assert "kinematic@a-b" in names
    assert "kinematic@d-e" not in names


def test_hooks_run_where_the_house_puts_them(plan):
    """Kinematics and inverse kinematics at srv, sense and feedback at the boards, predictors at the edges."""
    kinds = ["kinematics", "inverse_kinematics", "sense", "feedback", "predict"]
    found = plan(CHAIN + "[hooks]\n" + "".join(f'{kind} = "zoh"\n' for kind in kinds))
    assert steps(found, "kinematic") == {"srv": ["kinematics", "inverse_kinematics"], "ss-ei": ["predict"]}
    assert steps(found, "haptic") == {"ss-embsys": ["sense"], "ms-ei": ["predict"], "ms-embsys": ["feedback"]}


def test_one_key_moves_a_hook(plan):
    """[issue 2, section 2] Moving kinematics is one key."""
    text = CHAIN + '[hooks]\nkinematics = "arm3"\n'
    assert steps(plan(text, "hooks.kinematics.at=ms-com"), "kinematic") == {"ms-com": ["kinematics"]}


def test_code_and_decode_stand_at_every_boundary_around_what_runs_there(plan):
    text = (
        CHAIN
        + '[hooks]\ncode = "zoh"\ndecode = "zoh"\nkinematics = "arm3"\n[hooks.own]\nkind = "code"\nrun = "linear"\n'
    )
    text += 'at = "ms-com"\nflow = "haptic"\n'
    found = plan(text, "components.srv.cost=3 ms")
    kinematic = steps(found, "kinematic")
    assert kinematic["tactile-operator"] == ["code"]
    assert kinematic["srv"] == ["decode", "kinematics", "work", "code"]
    assert kinematic["tactile-teleoperator"] == ["decode"]
    assert steps(found, "haptic")["ms-com"] == ["decode", "code", "code"]


def test_code_is_a_builtin_a_library_or_python(plan, tmp_path):
    (tmp_path / "mod.py").write_text("def fast(x): pass\n")
    (tmp_path / "hook.c").write_text("int predict(void) { return 0; }\n")
    try:
        subprocess.run(["cc", "-shared", "-o", tmp_path / "lib.so", tmp_path / "hook.c"], check=True)
    except FileNotFoundError:
        pytest.skip("needs a C compiler (cc)")
    hooks = {"p1": "zoh", "p2": "mod:fast", "p3": "./lib.so:predict", "p4": "json:loads"}
    entries = "".join(
        f'[hooks.{name}]\nkind = "predict"\nat = "srv"\nflow = "kinematic"\nrun = "{run}"\n'
        + ('params = { horizon = "5 ms" }\n' if ":" in run else "")
        for name, run in hooks.items()
    )
    path = plan(CHAIN + entries)["flows"][0]["path"]
    runs = [step["run"] for visit in path for step in visit["steps"]]
    assert [(run["kind"], run["name"], run.get("symbol")) for run in runs] == [
        ("builtin", "zoh", None),
        ("python", str(tmp_path / "mod.py"), "fast"),
        ("library", str(tmp_path / "lib.so"), "predict"),
        ("python", "json", "loads"),
    ]
    assert runs[1]["params"] == {"horizon_ns": 5_000_000}


def test_costs_are_constants_distributions_traces_or_calibrated(plan, tmp_path):
    """[design: costs]; a calibrated cost stands in where none is given."""
    (tmp_path / "delays.csv").write_text("when,cost_us\n0,1.5\n1,2\n")
    (tmp_path / "measured.json").write_text(
        json.dumps(
            {"stages": {"srv.kinematics": {"quantiles_ns": [1, 2]}, "ms-com.work": {"quantiles_ns": [3, 4]}}}
        )
    )
    text = 'calibration = "measured.json"\n' + CHAIN + '[hooks]\nkinematics = "arm3"\n'
    text += '[hooks.inverse_kinematics]\nrun = "arm3"\ncost = { trace = "delays.csv", column = "cost_us" }\n'
    text += 'delay = { kind = "gumbel", mode = "1 ms", scale = "0.1 ms" }\n'
    visits = {v["component"]: v["steps"] for v in plan(text)["flows"][0]["path"]}
    kinematics, inverse = visits[4]
    assert kinematics["cost"] == {"kind": "empirical", "quantiles_ns": [1, 2]}
    assert inverse["cost"] == {"kind": "trace", "spans_ns": [1_500, 2_000]}
    assert inverse["delay"] == {"kind": "gumbel", "mode_ns": 1_000_000, "scale_ns": 100_000}
    assert visits[2] == [{"kind": "work", "cost": {"kind": "empirical", "quantiles_ns": [3, 4]}}]


def test_one_of_two_columns_of_a_name_is_a_trace_by_its_number(plan, tmp_path):
    (tmp_path / "delays.csv").write_text("cost_us,when,cost_us\n1.5,0,7\n2,1,8\n")
    text = CHAIN + '[hooks.kinematics]\nrun = "arm3"\ncost = { trace = "delays.csv", column = %s }\n'
    with pytest.raises(
        ConfigError, match='column: found 2 columns "cost_us"; allowed: one of them by its number: 0, 2'
    ):
        plan(text % '"cost_us"')
    done = [step for visit in plan(text % 2)["flows"][0]["path"] for step in visit["steps"]]
    assert {"kind": "trace", "spans_ns": [7_000, 8_000]} in [step.get("cost") for step in done]


def test_measured_wake_ups_sends_and_receives_are_those_of_the_node(plan, tmp_path):
    """[design: costs]: socket and wake-up costs are the nodes'."""
    nodes = {"home": {"wakeup": {"quantiles_ns": [5, 9]}, "receive": {"quantiles_ns": [1, 2]}}, "gone": {}}
    (tmp_path / "measured.json").write_text(json.dumps({"stages": {}, "nodes": nodes}))
    text = 'calibration = "measured.json"\n[components]\ntactile-operator = "home"\ntactile-teleoperator = "field"\n'
    home, field = plan(text + "[flows.kinematic]\n")["nodes"]
    assert home["wakeup"] == {"kind": "empirical", "quantiles_ns": [5, 9]}
    assert home["receive"]["quantiles_ns"] == [1, 2] and "send" not in home
    assert not {"wakeup", "send", "receive"} & field.keys()


def test_the_robot_is_driven_and_felt_without_being_asked(plan):
    found = plan(CHAIN)
    kinematic, haptic = found["flows"]
    assert kinematic["sink"] == {"kind": "robot"}
    assert haptic["source"] == {"kind": "robot"}
    assert found["components"][8]["robot"]["senses"] == 3, "12 B of 4-byte values"


def test_every_session_has_its_own_flows_and_components_and_shares_the_robot(plan):
    """Several operators on one robot. [issue 2, section 2]"""
    text = (
        'sessions = ["left", "right"]\n'
        + CHAIN
        + '[nodes.a]\n[[events]]\nat = "1 s"\nflow = "haptic"\nrunning = false\n'
    )
    found = plan(text)
    names = [component["name"] for component in found["components"]]
    assert names.count("tactile-teleoperator") == 1
    assert {"left/srv", "right/srv"} <= set(names)
    assert [flow["name"] for flow in found["flows"]] == [
        "left/kinematic",
        "right/kinematic",
        "left/haptic",
        "right/haptic",
    ]
    assert ways(found)["right/kinematic"][-2:] == ["right/ss-embsys", "tactile-teleoperator"]
    assert "right/kinematic@a-b" in [channel["name"] for channel in found["channels"]]
    assert [event["action"]["flow"] for event in found["events"]] == [2, 3]


def test_one_operator_has_several_robots_in_sessions_of_their_own(plan):
    text = 'sessions = ["x", "y"]\n[components]\ntactile-operator = "a"\n[flows.kinematic]\n'
    for session in "xy":
        text += (
            f'[components.arm-{session}]\nkind = "tactile-teleoperator"\nnode = "{session}"\nrobot = "arm"\n'
        )
        text += f'session = "{session}"\n'
    assert ways(plan(text)) == {
        "x/kinematic": ["x/tactile-operator", "x/arm-x"],
        "y/kinematic": ["y/tactile-operator", "y/arm-y"],
    }


def test_sources_are_read_in_threads_side_by_side() -> None:
    """CPython 3.11 mixes up syntax trees of two threads where the garbage collector lets the other one on."""
    import gc
    import time
    from concurrent.futures import ThreadPoolExecutor

    from tcpsbed.robots import pottery
    from tcpsbed.scenarios.compile.code import _names

    def let_others_on(*_: object) -> None:
        time.sleep(0)

    gc.callbacks.append(let_others_on)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(_names, [Path(pottery.__file__)] * 100))
    finally:
        gc.callbacks.remove(let_others_on)
    assert all("Pottery" in names for names in found)
