"""The follower's supervisor in scenarios that are absurd, before robots that fail, and over a restart of its component."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed import config
from tcpsbed.analysis import signals
from tcpsbed.errors import ConfigError, DataError

NORMAL, DEGRADED, HOLD, SAFE_STOP, RECOVERING = range(5)
SCENARIO = """
name = "follower"
duration = "{duration}"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-com = "ss"
[components.tactile-teleoperator]
node = "ss"
robot = {{ run = "./robots.py:{robot}", senses = 1 }}
[flows.kinematic]
source = {{ recording = "motion.csv", columns = ["x", "clutch"], repeat = "loop" }}
codec = "f64"
[flows.haptic]
sample = "8 B"
codec = "f64"
{hooks}
[hooks.safety]
kind = "predict"
run = "supervisor"
at = "ss-com"
flow = "kinematic"
period = "1 ms"
params = {{ {params} }}
[measure]
signals = ["ss-com.exit"]
"""
ROBOTS = """
class Follows:
    def step(self, t_ns, command, sense):
        sense[0] = 0.0
        return 1

class Raises(Follows):
    def step(self, t_ns, command, sense):
        if t_ns > 300_000_000:
            raise RuntimeError("the gripper is stuck")
        return super().step(t_ns, command, sense)

class Nowhere(Follows):
    def step(self, t_ns, command, sense):
        sense[0] = float("nan")
        return 1

class Widths:
    def __call__(self, t_ns, index, x, other, y):
        n = 2 if index < 300 else 1 + index % 3
        y[:n] = 0.1
        return n
"""
CLUTCH = 'engage = "clutch", clutch = 1, start = [0.0], stop_ms = 100, recover_ms = 20, tell = true'


def scenario(
    folder: Path, params: str, robot: str = "Follows", *, hooks: str = "", duration: str = "1 s"
) -> Path:
    """Writes a scenario with a follower: its commands have a position and a clutch, which is closed at the beginning of each
    second, open from 0.8 s on.
    """
    t = np.arange(0, 1, 1e-3)
    rows = [f"{s:.3f},{0.05 * np.sin(2 * np.pi * s):.6f},{int(s < 0.8)}" for s in t]
    (folder / "motion.csv").write_text("\n".join(["time,x,clutch", *rows]))
    (folder / "robots.py").write_text(ROBOTS)
    file = folder / "follower.toml"
    file.write_text(SCENARIO.format(params=params, robot=robot, hooks=hooks, duration=duration))
    return file


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ("speed = -1", "allowed: speed from 1e-9 to"),
        ("speed = 0", "speed = 0.0"),
        ("speed = 1e300", "speed = 1e300"),
        ("speed = 1e-300", "speed = 1e-300"),
        ("speed = nan", "found nan for speed; allowed: .*a finite number"),
        ("acceleration = inf", "found inf for acceleration"),
        ("hold_ms = 1e300, stop_ms = 1e300", "= 1e300; allowed: .* to 86400000"),
        ("hold_ms = 600", "hold_ms = 600, stop_ms = 500: they must rise; allowed: degraded_ms = 20"),
        (
            "hold_ms = 0.5, degraded_ms = 0.5",
            r"period: found 1 ms, longer than hold_ms = 0.5; allowed: .*at most hold",
        ),
        (
            "hold_ms = 0",
            "hold_ms = 0, stop_ms = 500: they must rise; allowed: degraded_ms = 20, hold_ms = 50",
        ),
        (
            "least = 20",
            r"found 20 for least, a number without a unit; allowed: a frequency .*, or least_hz = 20",
        ),
        ("leats_hz = 20", r'found "leats_hz"; allowed: .*least_hz, .*\(did you mean least_hz\?\)'),
        ("speed = [1, 2]", r"found speed = \[1, 2\]; allowed: speed = a number, such as speed = 0.5"),
        ("clock_ms = 1000", "end_to_end_ms = 1000; allowed: above clock_ms = 1000"),
        ("loss = 2", "loss = 2.0; allowed: loss from 0.0 to 1.0"),
        ("ease = 9", "ease = 9.0"),
        ("workspace = [[]]", r"workspace = \[\[\]\]; allowed: workspace = \[\[-1, 1\]\]"),
        ("workspace = [[1, 1]]", "the least must be below the most, within 1e6; allowed: "),
        ("workspace = [[0.1, 1]], start = [0.0]", "start: value 0 is 0e0, outside the workspace"),
        ("start = []", r"start = \[\] says nothing; allowed: start = \[0\]"),
        ("start = [1e300]", "value 0 is 1e300"),
        ("measured = []", r"measured = \[\] says nothing"),
        ("measured = [-1]", "allowed: measured = a list of whole numbers from 0"),
        ('engage = "clutch"', "belong together"),
    ],
)
def test_absurd_parameters_are_refused_with_the_line_and_a_remedy(
    tmp_path: Path, params: str, said: str
) -> None:
    begun = (
        params
        if {"start", "measured"} & set(params.replace("=", " ").split())
        else f"{params}, start = [0.0, 0.0]"
    )
    file = scenario(tmp_path, begun)
    lines = [
        n for n, line in enumerate(file.read_text().splitlines(), 1) if line.startswith(("params", "period"))
    ]
    with pytest.raises(ConfigError, match=said) as refused:
        config.check(config.load(file))
    assert any(f"follower.toml:{line}: hooks.safety.p" in str(refused.value) for line in lines)
    assert "; allowed: " in str(refused.value)


def test_a_robot_that_raises_in_the_middle_has_the_supervisor_hold(tmp_path: Path) -> None:
    run = tcpsbed.run(
        scenario(tmp_path, "start = [0.0, 0.0], speed = 10, tell = true", "Raises"), out=tmp_path / "out"
    )
    out = signals.read(run.folder, "ss-com.exit", "kinematic")
    t_ms, state = out.t_ns / 1e6, out.values[:, -1]
    assert set(state[t_ms < 300]) >= {NORMAL} and (state[t_ms > 303] == HOLD).all()
    assert t_ms[-1] < 410, "and the run ends"
    assert any("the gripper is stuck" in error for error in run.summary["errors"])


def test_what_holds_because_a_robot_has_died_holds_after_a_restart(tmp_path: Path) -> None:
    file = scenario(tmp_path, "start = [0.0, 0.0], speed = 10, recover_ms = 5, tell = true", "Raises")
    for at, alive in ((0.32, "false"), (0.33, "true")):
        event = f'\n[[events]]\nat = "{at} s"\ncomponent = "ss-com"\nalive = {alive}\n'
        file.write_text(file.read_text() + event)
    run = tcpsbed.run(file, out=tmp_path / "out")
    out = signals.read(run.folder, "ss-com.exit", "kinematic")
    after = out.t_ns > 331e6
    assert after.sum() > 50 and (out.values[after, -1] == HOLD).all()


def test_a_position_that_is_no_number_is_none(tmp_path: Path) -> None:
    """It holds, gives nothing out, and says why."""
    run = tcpsbed.run(scenario(tmp_path, "measured = [0, 0], tell = true", "Nowhere"), out=tmp_path / "out")
    with pytest.raises(DataError, match="no values"):
        signals.read(run.folder, "ss-com.exit", "kinematic")
    assert any(
        "where the follower is measured to be makes no sense" in error for error in run.summary["errors"]
    )


def test_commands_of_changing_width_lead_to_the_safe_side(tmp_path: Path) -> None:
    hooks = (
        '[hooks.widths]\nkind = "kinematics"\nrun = "./robots.py:Widths"\nat = "ms-com"\nflow = "kinematic"'
    )
    file = scenario(tmp_path, "start = [0.0, 0.0], tell = true", hooks=hooks)
    run = tcpsbed.run(file, out=tmp_path / "out")
    out = signals.read(run.folder, "ss-com.exit", "kinematic")
    assert out.values.shape[1] == 3 and np.isfinite(out.values).all(), "always those of its first command"
    assert np.abs(np.diff(out.values[:, :2], axis=0)).max() <= 1e-3 + 1e-12
    assert (out.values[400:, 2] == DEGRADED).all(), "two of three are refused"
    assert any("a command of 1 values, of 2 before" in error for error in run.summary["errors"])


def test_a_restart_is_no_way_around_the_clutch(tmp_path: Path) -> None:
    """Stopped for want of commands; then its component is restarted, and commands come with the clutch closed all along."""
    events = "".join(
        f'\n[[events]]\nat = "{at} s"\ncomponent = "{component}"\nalive = {alive}\n'
        for at, component, alive in (
            (0.2, "ms-com", "false"),
            (0.4, "ss-com", "false"),
            (0.45, "ss-com", "true"),
            (0.5, "ms-com", "true"),
        )
    )
    file = scenario(tmp_path, CLUTCH, duration="2 s")
    file.write_text(file.read_text() + events)
    run = tcpsbed.run(file, out=tmp_path / "out")
    out = signals.read(run.folder, "ss-com.exit", "kinematic")
    t_ms, where, state = out.t_ns / 1e6, out.values[:, 0], out.values[:, 1]
    stopped = (t_ms > 310) & (t_ms < 1000)
    assert (state[stopped] == SAFE_STOP).all() and np.ptp(where[stopped & (t_ms > 420)]) < 1e-9
    assert (np.diff(t_ms[(t_ms > 450) & (t_ms < 1900)]) < 1.5).all(), "it says so from its first tick on"
    assert (state[(t_ms > 1100) & (t_ms < 1300)] == NORMAL).all(), "let go of and closed again"
    let_go = (t_ms > 1811) & (t_ms < 1990)
    assert np.ptp(where[let_go]) < 1e-9, "and while it is open the follower stays"
    delivered = run.summary["flows"]["kinematic"]["delay_ms"]["max"]
    assert delivered < 700, "what is given out bears the origin of the newest command, also after a restart"


NETLESS = """
[components]
tactile-operator = "ms"
ms-com = "ms"
srv = "edge"
ss-com = "ss"
tactile-teleoperator = { node = "ss", robot = "arm" }
[flows.kinematic]
sample = "24 B"
[flows.haptic]
sample = "12 B"
[flows.audio]
source = { frames = "builtin:sound" }
direction = "forward"
[flows.status]
direction = "forward"
rate = "10 Hz"
sample = "24 B"
sink = "count"
[hooks.safety]
kind = "predict"
run = "supervisor"
"""
PLACES = r'allowed: flow = "kinematic" with at = "ss-com"; flow = "haptic" with at = "ms-com"$'


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ('at = "srv"\nflow = "kinematic"', "at srv on the flow kinematic"),
        ('at = "ms-com"\nflow = "kinematic"', "at ms-com on the flow kinematic"),
        ('at = "tactile-operator"\nflow = "kinematic"', "at tactile-operator on the flow kinematic"),
        ('at = "ss-com"', "at ss-com on the flow haptic"),
        ('at = "ss-com"\nflow = "audio"', "at ss-com on the flow audio"),
        ('at = "ss-com"\nflow = "status"', "at ss-com on the flow status"),
    ],
)
def test_a_supervisor_that_guards_no_robot_is_refused_with_component_and_flow(
    tmp_path: Path, place: str, found: str
) -> None:
    file = tmp_path / "placed.toml"
    file.write_text(f'{NETLESS}{place}\nperiod = "1 ms"\nparams = {{ start = [0, 0, 0, 0, 0, 0] }}\n')
    with pytest.raises(ConfigError, match=f"hooks.safety: found a supervisor {found}; {PLACES}"):
        config.check(config.load(file))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ("start = [0, 0, 0]", "found start for 3 values, .*allowed: start with 6 entries"),
        ("measured = [0, 1, 2]", "found measured for 3 values, .*allowed: measured with 6 entries"),
        (
            "measured = [0, 1, 2, 3, 4, 5], workspace = [[-1, 1], [-1, 1]]",
            "found workspace for 2 values, .*allowed: workspace with 6 entries, or with one for all",
        ),
        (
            'start = [0, 0, 0, 0, 0, 0], engage = "clutch", clutch = 5',
            "holds 6, one of them the clutch; .*5 entries",
        ),
    ],
)
def test_lists_that_do_not_fit_the_sample_are_refused_with_both(
    tmp_path: Path, params: str, said: str
) -> None:
    file = tmp_path / "sized.toml"
    file.write_text(f'{NETLESS}at = "ss-com"\nflow = "kinematic"\nperiod = "1 ms"\nparams = {{ {params} }}\n')
    with pytest.raises(ConfigError, match=said) as error:
        config.check(config.load(file))
    assert 'flows.kinematic.sample = "24 B" holds 6' in str(error.value)


def test_behind_a_hook_that_makes_other_values_lists_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "behind.toml"
    file.write_text(
        f'{NETLESS}at = "ss-com"\nflow = "kinematic"\nperiod = "1 ms"\nparams = {{ start = [0, 0, 0] }}\n'
        '[hooks.inverse]\nkind = "inverse_kinematics"\nrun = "arm3"\n'
    )
    config.check(config.load(file))


@pytest.mark.parametrize(("reordered", "causes"), [(0.1, ["commands are out of order"]), (1.0, [])])
def test_commands_that_share_a_tick_are_judged_by_their_order_too(
    tmp_path: Path, reordered: float, causes: list[str]
) -> None:
    """Jitter within a tick: whatever comes late is superseded by a newer one before the supervisor is asked."""
    params = f"start = [0.0, 0.0], loss = 1.0, reordered = {reordered}, degraded_ms = 40, near = 1.0"
    file = scenario(tmp_path, params)
    jitter = '{ kind = "uniform", low = "0 ms", high = "5 ms", reorder = true }'
    link = f'[links.wan]\nfrom = "ms"\nto = "ss"\njitter = {jitter}\n'
    file.write_text(file.read_text().replace('period = "1 ms"', 'period = "20 ms"') + link)
    (state,) = tcpsbed.run(file, out=tmp_path / "run").summary["states"]
    assert [change["cause"] for change in state["changes"]][:1] == causes
