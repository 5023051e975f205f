"""Sessions, absent components, several apps on a side, and cores that are shared: latency as arithmetic says.

A sample leaves its first component at k ms; links take the time they say and nothing else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from virtual_run import CAPTURE, Simulated, captured, simulated

SHARED = """
duration = "500 ms"
sessions = ["left", "right"]
[components.hand-left]
kind = "tactile-operator"
node = "a"
session = "left"
[components.hand-right]
kind = "tactile-operator"
node = "b"
session = "right"
[components.srv]
node = "edge"
[components.tactile-teleoperator]
node = "field"
robot = "arm"
[hooks]
inverse_kinematics = "arm3"
[flows.kinematic]
sample = "12 B"
[flows.haptic]
[topology]
routers = ["n"]
[links.left]
from = "a"
to = "n"
delay = "1 ms"
[links.right]
from = "b"
to = "n"
delay = "4 ms"
[links.edge]
from = "n"
to = "edge"
[links.field]
from = "n"
to = "field"
delay = "2 ms"
"""
CORE = """
duration = "600 ms"
[components]
ms-com = "a"
srv = "b"
ss-com = "c"
[nodes.b]
cores = 1
[flows.kinematic]
rate = "100 Hz"
priority = 1
[flows.plan]
direction = "forward"
rate = "100 Hz"
sample = "24 B"
[hooks.plan]
kind = "work"
at = "srv"
flow = "plan"
cost = "4 ms"
[hooks.kinematic]
kind = "work"
at = "srv"
flow = "kinematic"
cost = "2 ms"
"""


def delays(run: Simulated, flow: str) -> set[float]:
    """The different delays of a flow, in milliseconds."""
    return set(np.round(run.delays_ms(flow), 6))


def test_two_operators_move_one_robot(tmp_path: Path) -> None:
    run = simulated(tmp_path, SHARED)
    found = run.summary["flows"]
    assert delays(run, "left/kinematic") == {3.0} and delays(run, "right/kinematic") == {6.0}
    assert delays(run, "left/haptic") == {3.0} and delays(run, "right/haptic") == {6.0}
    assert {flow["session"] for flow in found.values()} == {"left", "right"}
    robots = [c for c in run.plan["components"] if c["kind"] == "tactile-teleoperator"]
    assert len(robots) == 1, "both drive the same arm"
    assert len([c for c in run.plan["components"] if c["kind"] == "srv"]) == 2, "each has a server of its own"
    assert all(flow["delivered"] > 480 for flow in found.values())


ROBOT = '''
class Echo:
    """Senses what it was commanded."""

    def step(self, t_ns, command, sense):
        sense[: len(command)] = command
        return len(command)
'''
FEEL = """
[hooks.feel-{session}]
kind = "feedback"
run = "./capture.py:Capture"
flow = "haptic"
at = "hand-{session}"
params = {{ path = "{path}" }}
"""


def test_operators_of_one_robot_have_equal_authority_and_feel_the_same(tmp_path: Path) -> None:
    (tmp_path / "robot.py").write_text(ROBOT)
    (tmp_path / "capture.py").write_text(CAPTURE)
    (tmp_path / "low.csv").write_text("time,x\n0,1.0\n1,1.0\n")
    (tmp_path / "high.csv").write_text("time,x\n0,3.0\n1,3.0\n")
    files = {session: tmp_path / f"{session}.bin" for session in ("left", "right")}
    text = SHARED.replace('[hooks]\ninverse_kinematics = "arm3"\n', "")
    text = text.replace('robot = "arm"', 'robot = "./robot.py:Echo"')
    text = text.replace(
        '[flows.kinematic]\nsample = "12 B"\n',
        '[flows.low]\nsession = "left"\ndirection = "forward"\nrate = "1 kHz"\n'
        'source = { recording = "low.csv", columns = ["x"] }\n'
        '[flows.high]\nsession = "right"\ndirection = "forward"\nrate = "1 kHz"\n'
        'source = { recording = "high.csv", columns = ["x"] }\n',
    )
    text += "".join(FEEL.format(session=session, path=path) for session, path in files.items())
    simulated(tmp_path, text)
    felt = {session: captured(path) for session, path in files.items()}
    for samples in felt.values():
        assert samples[-1] == (2.0,), "the mean of 1 and 3"
        assert set(samples[20:]) == {(2.0,)}


def test_one_operator_moves_two_robots(tmp_path: Path) -> None:
    text = """
duration = "500 ms"
sessions = ["near", "far"]
[components]
tactile-operator = "a"
[components.arm-near]
kind = "tactile-teleoperator"
node = "b"
session = "near"
robot = "wall_mass"
[components.arm-far]
kind = "tactile-teleoperator"
node = "c"
session = "far"
robot = "wall_mass"
[flows.kinematic]
[flows.haptic]
[links.near]
from = "a"
to = "b"
delay = "1 ms"
[links.far]
from = "a"
to = "c"
delay = "7 ms"
"""
    run = simulated(tmp_path, text)
    for session, delay_ms in (("near", 1.0), ("far", 7.0)):
        for flow in ("kinematic", "haptic"):
            assert delays(run, f"{session}/{flow}") == {delay_ms}
    assert len([c for c in run.plan["components"] if c["kind"] == "tactile-teleoperator"]) == 2


def test_sessions_share_the_network(tmp_path: Path) -> None:
    # A packet of 24 + 24 + 28 + 18 = 94 B or so takes its time on l1; both sessions send at the same moment,
    # so that one of them waits for exactly one packet of the other.
    text = """
duration = "500 ms"
sessions = ["one", "two"]
[components.ms-com]
node = "a"
[components.ss-com]
node = "b"
[flows.kinematic]
overhead = "76 B" # 100 B on the wire: 0.4 ms
[links.l1]
from = "a"
to = "b"
rate = "2 Mbit/s"
delay = "1 ms"
"""
    run = simulated(tmp_path, text)
    assert {frozenset(delays(run, f"{name}/kinematic")) for name in ("one", "two")} == {
        frozenset({1.4}),
        frozenset({1.8}),
    }
    (forward,) = [link for link in run.summary["network"] if link["name"] == "l1.forward"]
    assert forward["utilisation"] == pytest.approx(0.8, rel=0.01)
    alone = simulated(tmp_path, text.replace('["one", "two"]', '["one"]'), out="alone")
    assert delays(alone, "kinematic") == {1.4}


ALL = {
    "tactile-operator": "a",
    "ms-embsys": "a",
    "ms-com": "b",
    "ms-ei": "b",
    "srv": "c",
    "ss-ei": "d",
    "ss-com": "d",
    "ss-embsys": "e",
    "tactile-teleoperator": "e",
}
LINE = "".join(
    f'[links.{a}{b}]\nfrom = "{a}"\nto = "{b}"\ndelay = "1 ms"\n' for a, b in zip("abcd", "bcde", strict=True)
)


@pytest.mark.parametrize(
    "absent",
    [
        (),
        ("ms-ei",),
        ("ss-ei",),
        ("srv",),
        ("ms-embsys", "ss-embsys"),
        ("ms-ei", "ss-ei", "srv", "ms-embsys", "ss-embsys"),
    ],
)
def test_components_may_be_absent(tmp_path: Path, absent: tuple[str, ...]) -> None:
    there = {kind: node for kind, node in ALL.items() if kind not in absent}
    components = "".join(
        f'[components.{kind}]\nnode = "{node}"\ndelay = "2 ms"\n' for kind, node in there.items()
    )
    nodes = "".join(f"[nodes.{node}]\n" for node in "abcde")
    text = f'duration = "300 ms"\n{nodes}{components}[flows.kinematic]\n[flows.haptic]\n{LINE}'
    run = simulated(tmp_path, text)
    for flow, other in (("kinematic", "ms-ei"), ("haptic", "ss-ei")):
        between = [kind for kind in there if kind != other][1:-1]
        # Counted from the first component's exit to the last one's entry: 4 links and 2 ms at each one between,
        # and the delay of the first, which comes after the sample was made.
        assert delays(run, flow) == {4.0 + 2.0 * (len(between) + 1)}
        ways = [part["name"] for part in run.summary["path"][flow] if part["what"] == "component"]
        assert set(ways) <= set(there) and not set(ways) & set(absent)
        assert set(between) <= set(ways)


def test_a_side_may_hold_several_apps(tmp_path: Path) -> None:
    text = """
duration = "500 ms"
[components]
ms-com = "a"
ss-com = "c"
display = { kind = "ms-embsys-app", node = "a", delay = "3 ms" }
speaker = { kind = "ms-embsys-app", node = "a", delay = "1 ms" }
camera = { kind = "ss-embsys-app", node = "c", delay = "5 ms" }
microphone = { kind = "ss-embsys-app", node = "c", delay = "2 ms" }
[flows.video]
via = ["camera", "display"]
sink = "verify"
[flows.audio]
via = ["microphone", "speaker"]
sink = "verify"
[links.l1]
from = "a"
to = "c"
delay = "10 ms"
"""
    run = simulated(tmp_path, text)
    names = [component["name"] for component in run.plan["components"]]
    ways = {f["name"]: [names[visit["component"]] for visit in f["path"]] for f in run.plan["flows"]}
    assert ways == {
        "video": ["camera", "ss-com", "ms-com", "display"],
        "audio": ["microphone", "ss-com", "ms-com", "speaker"],
    }
    assert delays(run, "video") == {15.0} and delays(run, "audio") == {12.0}
    for flow in run.summary["flows"].values():
        # The last one may be in the app, between its entry and its sink, when the run ends.
        assert flow["verified"]["bad"] == 0 and flow["verified"]["good"] >= flow["delivered"] - 1


@pytest.mark.parametrize(
    ("scheduling", "kinematic_ms", "plan_ms"),
    [
        # Both ask for the core of srv at the same moment; kinematic (2 ms) was first in line, then plan (4 ms).
        ('"run-to-completion"', 2.0, 6.0),
        # 2 ms turns: kinematic 0-2, plan 2-4 and 4-6.
        ('{ kind = "round-robin", round_robin = "2 ms" }', 2.0, 6.0),
        # 1 ms turns: kinematic 0-1, plan 1-2, kinematic 2-3, plan 3-6.
        ('{ kind = "round-robin", round_robin = "1 ms" }', 3.0, 6.0),
        ('"priority"', 2.0, 6.0),
    ],
)
def test_two_flows_share_a_core(tmp_path: Path, scheduling: str, kinematic_ms: float, plan_ms: float) -> None:
    run = simulated(tmp_path, CORE, f"nodes.b.scheduling={scheduling}")
    assert delays(run, "kinematic") == {kinematic_ms} and delays(run, "plan") == {plan_ms}
    (node,) = [node for node in run.summary["nodes"] if node["name"] == "b"]
    assert node["busy_s"] == pytest.approx(0.6 * 0.6, abs=0.01), "6 ms of every 10"


@pytest.mark.parametrize(
    ("scheduling", "kinematic_ms", "plan_ms"),
    [
        # plan asks at 0 ms, kinematic at 1 ms: it waits 3 ms for plan to end.
        ('"run-to-completion"', 5.0, 4.0),
        # It takes the core from plan at 1 ms and gives it back at 3 ms.
        ('"priority"', 2.0, 6.0),
        # Turns of 2 ms: plan 0-2, kinematic 2-4, plan 4-6.
        ('{ kind = "round-robin", round_robin = "2 ms" }', 3.0, 6.0),
    ],
)
def test_the_flow_that_comes_second(
    tmp_path: Path, scheduling: str, kinematic_ms: float, plan_ms: float
) -> None:
    run = simulated(tmp_path, CORE, f"nodes.b.scheduling={scheduling}", 'flows.kinematic.start="1 ms"')
    assert delays(run, "kinematic") == {kinematic_ms} and delays(run, "plan") == {plan_ms}


def test_two_cores_serve_both(tmp_path: Path) -> None:
    run = simulated(tmp_path, CORE, "nodes.b.cores=2")
    assert delays(run, "kinematic") == {2.0} and delays(run, "plan") == {4.0}


def test_a_blocking_send_holds_the_next_sample_and_frees_the_core(tmp_path: Path) -> None:
    # A packet takes 12 ms on l1, a sample comes every 10 ms: what waits does so in the component instead of the queue.
    text = """
duration = "400 ms"
[components]
ms-com = "a"
ss-com = "b"
[flows.kinematic]
rate = "100 Hz"
overhead = "126 B" # 150 B on the wire
[links.l1]
from = "a"
to = "b"
rate = "100 kbit/s"
queue = "1000 packets"
[measure]
queues = "1 ms"
"""
    waits, blocks = (
        simulated(tmp_path, text),
        simulated(tmp_path, text, "flows.kinematic.blocking_send=true", out="b"),
    )
    expected = 12.0 + 2.0 * np.arange(40)
    for run in (waits, blocks):
        found = run.delays_ms("kinematic")
        assert found == pytest.approx(expected[: len(found)]), "it gets 2 ms later with every sample"
    longest = [
        next(link["max_queue_packets"] for link in run.summary["network"] if link["name"] == "l1.forward")
        for run in (waits, blocks)
    ]
    assert longest[0] >= 5 and longest[1] <= 1, "the queue of the link, and that of the component"
