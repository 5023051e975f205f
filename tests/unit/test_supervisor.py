"""The follower's supervisor in scenarios that are absurd, before robots that fail, and over a restart of its component."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from failing_run import SAFETY

import tcpsbed
from tcpsbed import scenarios
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
{safety}
params = {{ {params} }}
[measure]
signals = ["ss-com.exit"]
"""
ROBOTS = """
import numpy as np

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

class Throws:
    def __call__(self, t_ns, index, x, other, y):
        y[:2] = (1e9, np.nan)[index // 50 % 2] if index // 50 % 5 > 2 else x
        return 2

class Force:
    def __call__(self, t_ns, index, x, other, y):
        y[0] = 0.9
        return 1

class Device:
    def __call__(self, t_ns, index, x, other, y):
        y[0] = 2 * x[0]
        return 1
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
    file.write_text(
        SCENARIO.format(params=params, robot=robot, hooks=hooks, duration=duration, safety=SAFETY)
    )
    return file


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ("speed = -1", "speed: found -1; allowed: a number from 0.000000001 to"),
        ("speed = 0", "speed: found 0"),
        ("speed = 1e300", r"speed: found 1e\+300"),
        ("speed = 1e-300", "speed: found 1e-300"),
        ("speed = nan", "speed: found nan; allowed: .*a finite number"),
        ("acceleration = inf", "acceleration: found inf"),
        ("hold_ms = 1e300, stop_ms = 1e300", r"hold_ms: found 1e\+300; allowed: .* to 86400000"),
        (
            "hold_ms = 600",
            "hold_ms: found 600 beside degraded_ms = 20, stop_ms = 500; allowed: times that rise",
        ),
        (
            "hold_ms = 0.5, degraded_ms = 0.5",
            r"period: found 1 ms, longer than hold_ms = 0.5; allowed: .*at most hold",
        ),
        (
            "hold_ms = 0",
            "hold_ms: found 0; allowed: a number from 0.001 to",
        ),
        (
            "least = 20",
            r"least: found 20, a number without a unit; allowed: a frequency .*, or least_hz = 20",
        ),
        (
            "leats_hz = 20",
            r'found "leats_hz", which is not a parameter of supervisor.*\(did you mean least_hz\?\)',
        ),
        ("speed = [1, 2]", r"speed: found \[1,2\]; allowed: a number from"),
        ("clock_ms = 1000", "found end_to_end_ms = 1000; allowed: above clock_ms = 1000"),
        ("loss = 2", "loss: found 2; allowed: a number from 0 to 1"),
        ("ease = 9", "ease: found 9"),
        ("workspace = [[]]", r"workspace: found \[\[\]\]; allowed: a list, each a list of 2"),
        ("workspace = [[1, 1]]", r"found \[1.0, 1.0\]; allowed: \[least, most\] of a value, within 1e6"),
        ("workspace = [[0.1, 1]], start = [0.0]", "start: found value 0 is 0e0, outside the workspace"),
        ("start = []", r"start: found \[\]; allowed: a number for each value of a command, such as \[0\]"),
        ("start = [1e300]", "value 0 is 1e300"),
        ("measured = []", r"measured: found \[\]"),
        ("measured = [-1]", "allowed: a list, each a whole number from 0 on"),
        ('engage = "clutch"', 'found no parameter "clutch"; allowed: engage = "clutch" and clutch'),
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
        scenarios.check(scenarios.load(file))
    assert any(f"follower.toml:{line}: hooks.safety.p" in str(refused.value) for line in lines)
    assert "; allowed: " in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("workspace=[[nan, 1]]", "workspace.0.0: found nan; allowed: .*a finite number"),
        ("speed=inf", "speed: found inf; allowed"),
        ('hold="1e99 ms"', 'hold: found "1e99 ms", which is too large; allowed: a span'),
    ],
)
def test_what_was_typed_is_refused_where_it_was_typed(tmp_path: Path, typed: str, said: str) -> None:
    file = scenario(tmp_path, "start = [0.0, 0.0], workspace = [[-1, 1]]")
    with pytest.raises(ConfigError, match=said) as refused:
        scenarios.load(file, [f"hooks.safety.params.{typed}"])
    assert str(refused.value).startswith(f"--set hooks.safety.params.{typed}: ")


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
        "the measured position of the follower is not finite, or beyond 10^6" in error
        for error in run.summary["errors"]
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
    assert any("a command of 1 values, of 2 before" in said for said in run.summary["supervisors"])


LATER = '[hooks.later]\nkind = "{kind}"\nrun = "./robots.py:Throws"\nat = "{at}"\nflow = "kinematic"'


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["predict", "inverse_kinematics", "feedback"])
def test_nothing_passes_a_supervisor_by_at_its_component(tmp_path: Path, kind: str, first: bool) -> None:
    """It is the last that makes values there, wherever hooks stand in the file."""
    hook = LATER.format(kind=kind, at="ss-com")
    limits = "start = [0.0, 0.0], speed = 10, workspace = [[-0.1, 1.0]]"
    file = scenario(tmp_path, limits, hooks=hook if first else "")
    if not first:
        file.write_text(f"{file.read_text()}\n{hook}\n")
    run = tcpsbed.run(file, out=tmp_path / "out")
    out = signals.read(run.folder, "ss-com.exit", "kinematic").values
    assert len(out) > 900 and np.isfinite(out).all() and np.abs(out).max() <= 1.0
    assert np.abs(np.diff(out, axis=0)).max() <= 10e-3 + 1e-12
    assert any("refused" in said for said in run.summary["supervisors"])


def refused(file: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        scenarios.check(scenarios.load(file))


@pytest.mark.parametrize(
    "kind", ["decode", "kinematics", "inverse_kinematics", "predict", "sense", "feedback", "code"]
)
def test_a_hook_between_a_supervisor_and_its_robot_is_refused(tmp_path: Path, kind: str) -> None:
    at = "ss-com" if kind == "code" else "tactile-teleoperator"
    file = scenario(tmp_path, "start = [0.0, 0.0]", hooks=LATER.format(kind=kind, at=at))
    refused(file, f'hooks.later: found a {kind} hook behind the supervisor "safety"')


MORE = {
    "without passing the supervisor": """[flows.other]
direction = "forward"
rate = "1 kHz"
sample = "16 B"
codec = "f64"
sink = "robot\"""",
    "second supervisor": """[hooks.again]
kind = "predict"
run = "supervisor"
at = "tactile-teleoperator"
flow = "kinematic"
period = "1 ms"
params = { start = [5.0, 5.0] }""",
    r"hooks.safety.other is missing where haptic, posture return": """[flows.posture]
direction = "backward"
rate = "1 kHz"
sample = "8 B"
codec = "f64\"""",
}


@pytest.mark.parametrize("said", MORE)
def test_no_flow_reaches_a_robot_past_its_supervisor(tmp_path: Path, said: str) -> None:
    begins = "measured = [0, 0]" if "other" in said else "start = [0.0, 0.0]"
    refused(scenario(tmp_path, begins, hooks=MORE[said]), said)


def test_no_session_reaches_a_shared_robot_past_the_supervisor_of_another(tmp_path: Path) -> None:
    file = scenario(tmp_path, "start = [0.0, 0.0]")
    text = file.read_text().replace('ss-com = "ss"', 'ss-com = { node = "ss", session = "a" }')
    file.write_text(text.replace("[components]", 'sessions = ["a", "b"]\n[components]', 1))
    refused(
        file, "found the flow b/kinematic, which reaches tactile-teleoperator without passing the supervisor"
    )


def test_what_a_board_gives_out_by_itself_is_in_the_workspace(tmp_path: Path) -> None:
    file = scenario(tmp_path, "start = [0.0, 0.0], workspace = [[-0.1, 1.0]]")
    board = 'ss-com = "ss"\nss-embsys = { node = "ss", board = { safe = [0.5, 50.0] } }'
    text = file.read_text().replace('ss-com = "ss"', board).replace('codec = "f64"', "")
    file.write_text(text)
    refused(
        file, r'board.safe: found 50, outside the workspace of the supervisor "safety"; allowed: -0.1 to 1'
    )


def test_what_the_safe_output_of_a_board_leaves_out_is_zero(
    tmp_path: Path,
) -> None:
    file = scenario(tmp_path, "start = [0.5, 0.5], workspace = [[0.1, 1.0], [0.2, 1.0]]")
    board = 'ss-com = "ss"\nss-embsys = { node = "ss", board = { safe = "zero" } }'
    text = file.read_text().replace('ss-com = "ss"', board).replace('codec = "f64"', "")
    file.write_text(text)
    refused(file, r'board.safe: found 0, outside the workspace of the supervisor "safety"; allowed: 0.1 to 1')
    file.write_text(text.replace('"zero"', "[0.5]"))
    refused(file, r"board.safe: found 0, outside .* allowed: 0.2 to 1")


def test_the_board_of_the_hand_gives_what_is_in_the_workspace(tmp_path: Path) -> None:
    """It gives 0 by itself where nothing else is said."""
    hand = """[hooks.hand]
kind = "predict"
run = "supervisor"
at = "ms-com"
flow = "haptic"
period = "1 ms"
params = { workspace = [[-10.0, 10.0]] }"""
    file = scenario(tmp_path, "start = [0.0, 0.0]", hooks=hand)
    board = 'ms-embsys = { node = "ms", board = { safe = [500.0] } }'
    text = file.read_text().replace('ms-com = "ms"', f'ms-com = "ms"\n{board}').replace('codec = "f64"', "")
    file.write_text(text)
    refused(
        file, r'board.safe: found 500, outside the workspace of the supervisor "hand"; allowed: -10 to 10'
    )
    file.write_text(
        text.replace("{ workspace = [[-10.0", "{ start = [5.0], workspace = [[1.0").replace(
            "{ safe = [500.0] }", "{}"
        )
    )
    refused(file, r"board.safe: found 0, outside .* allowed: 1 to 10")


def test_its_period_is_a_key_of_the_hook(tmp_path: Path) -> None:
    refused(
        scenario(tmp_path, "start = [0.0, 0.0], period_ms = 2"), r'found period_ms among .* period = "1 ms"'
    )


@pytest.mark.parametrize("at", ["ms-embsys", "tactile-operator"])
def test_a_supervisor_of_the_hand_is_before_the_device(tmp_path: Path, at: str) -> None:
    """With `action = "zero"` the last that a device is given after a cut are zeros."""
    hooks = f"""[hooks.device]
kind = "feedback"
run = "./robots.py:Device"
at = "{at}"
flow = "haptic"
[hooks.hand]
kind = "predict"
run = "supervisor"
at = "ms-embsys"
flow = "haptic"
period = "1 ms"
params = {{ action = "zero", speed = 100 }}
[hooks.force]
kind = "sense"
run = "./robots.py:Force"
flow = "haptic"
at = "tactile-teleoperator"
[[events]]
at = "0.3 s"
component = "ss-com"
alive = false"""
    file = scenario(tmp_path, "start = [0.0, 0.0]", hooks=hooks)
    file.write_text(
        file.read_text()
        .replace('ms-com = "ms"', 'ms-com = "ms"\nms-embsys = "ms"')
        .replace('signals = ["ss-com.exit"]', f'signals = ["{at}.exit"]')
    )
    run = tcpsbed.run(file, out=tmp_path / "out")
    given = signals.read(run.folder, f"{at}.exit", "haptic")
    t_ms, force = given.t_ns / 1e6, given.values[:, 0]
    assert (force[(t_ms > 100) & (t_ms < 290)] == 2 * 0.9).all(), "what the device makes of it"
    assert (force[t_ms > 360] == 0).all() and t_ms[-1] > 900


def test_code_of_the_same_name_is_no_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module `supervisor` of the user's runs before it, as every hook."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "supervisor.py").write_text(ROBOTS)
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    hook = LATER.format(kind="predict", at="ss-com").replace("./robots.py:Throws", "supervisor:Throws")
    limits = "start = [0.0, 0.0], speed = 10, workspace = [[-0.1, 1.0]]"
    file = scenario(tmp_path, limits)
    file.write_text(f"{file.read_text()}\n{hook}\n")
    run = tcpsbed.run(file, out=tmp_path / "out")
    assert np.abs(signals.read(run.folder, "ss-com.exit", "kinematic").values).max() <= 1.0


@pytest.mark.parametrize("behind", ["safety", "load"])
def test_what_a_dead_component_swallowed_is_nothing_to_go_on_from(tmp_path: Path, behind: str) -> None:
    """What the supervisor gives out takes time to leave its component: the robot follows the last that did."""
    file = scenario(tmp_path, "start = [0.0], recover_ms = 20, tell = true")
    text = file.read_text().replace('["x", "clutch"]', '["x"]')
    text += '[hooks.load]\nkind = "work"\nat = "ss-com"\n'
    for at, alive in ((0.52, "false"), (0.525, "true")):
        text += f'[[events]]\nat = "{at} s"\ncomponent = "ss-com"\nalive = {alive}\n'
    file.write_text(text)
    run = tcpsbed.run(file, set=[f'hooks.{behind}.delay="40 ms"'], out=tmp_path / "out")
    where = signals.read(run.folder, "ss-com.exit", "kinematic").values[:, 0]
    assert np.ptp(where) > 0.05 and np.abs(np.diff(where)).max() <= 1e-3 + 1e-12


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
    assert delivered < 700, "what is given out carries the origin of the newest command, also after a restart"


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
        scenarios.check(scenarios.load(file))


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
        scenarios.check(scenarios.load(file))
    assert 'flows.kinematic.sample = "24 B" holds 6' in str(error.value)


def test_a_hook_of_another_flow_makes_no_other_values(tmp_path: Path) -> None:
    file = tmp_path / "beside.toml"
    file.write_text(
        f'{NETLESS}at = "ss-com"\nflow = "kinematic"\nperiod = "1 ms"\nparams = {{ start = [0, 0] }}\n'
        '[hooks.sense]\nrun = "force"\n'
    )
    with pytest.raises(ConfigError, match="found start for 2 values"):
        scenarios.check(scenarios.load(file))


def test_behind_a_hook_of_the_users_lists_are_as_long_as_the_robot_needs(tmp_path: Path) -> None:
    (tmp_path / "robots.py").write_text(ROBOTS)
    file = tmp_path / "behind.toml"
    file.write_text(
        f'{NETLESS}at = "ss-com"\nflow = "kinematic"\nperiod = "1 ms"\nparams = {{ start = [0, 0, 0, 0] }}\n'
        '[hooks.mine]\nkind = "kinematics"\nrun = "./robots.py:Throws"\n'
    )
    scenarios.check(scenarios.load(file))
    said = "params.start: found start for 2 values, but tactile-teleoperator takes 3; allowed: start with 3"
    with pytest.raises(ConfigError, match=said):
        scenarios.check(scenarios.load(file, ["hooks.safety.params.start=[0, 0]"]))


def test_behind_a_hook_that_makes_other_values_lists_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "behind.toml"
    file.write_text(
        f'{NETLESS}at = "ss-com"\nflow = "kinematic"\nperiod = "1 ms"\nparams = {{ start = [0, 0, 0] }}\n'
        '[hooks.inverse]\nkind = "inverse_kinematics"\nrun = "arm3"\n'
    )
    scenarios.check(scenarios.load(file))
    with pytest.raises(
        ConfigError, match=r"found start for 1 values, but hooks.inverse \(arm3\) gives 3; all"
    ):
        scenarios.check(scenarios.load(file, ["hooks.safety.params.start=[0]"]))


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


TIMED = {
    "its own delay": ('delay = "1 s"', "found 1000 ms behind the supervisor of the flow kinematic, so that"),
    "its own cost": (
        'cost = "2 ms"',
        "found 2 ms of work for a sample behind .* on ss, where one arrives every 1 ms",
    ),
    "both": (
        'cost = "0.5 ms"\ndelay = "49.6 ms"',
        "found 50.1 ms behind .*; allowed: at most hold_ms, 50 ms",
    ),
    "a hook behind it": ('[hooks.slow]\nkind = "work"\nat = "ss-com"\ndelay = "3 s"', "found 3000 ms behind"),
    "one at the robot": (
        '[hooks.slow]\nkind = "work"\nat = "tactile-teleoperator"\ndelay = "51 ms"',
        r"found 51 ms .*most: delay of work at tactile-teleoperator \(constant\)",
    ),
    "many that work": (
        'cost = "0.5 ms"\n[hooks.slow]\nkind = "work"\nat = "tactile-teleoperator"\ncost = "0.5 ms"',
        "found 1 ms of work for a sample",
    ),
    "a span without an end": (
        'delay = { kind = "exponential", mean = "1 us" }',
        r"found delay of predict at ss-com \(exponential\) .*any time; allowed: .*uniform",
    ),
    "the longest of a span": ('delay = { kind = "uniform", low = "1 ms", high = "60 ms" }', "found 60 ms"),
}


@pytest.mark.parametrize("case", TIMED)
def test_what_takes_longer_than_its_threshold_behind_it_is_refused(tmp_path: Path, case: str) -> None:
    more, said = TIMED[case]
    file = scenario(tmp_path, "start = [0.0, 0.0]")
    file.write_text(file.read_text().replace("[measure]", f"{more}\n[measure]"))
    refused(file, f"hooks.safety: {said}")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('components.ss-com={ node = "ss", delay = "2 s" }', "found 2000 ms behind"),
        ('components.ss-com={ node = "ss", cost = "3 ms" }', "found 3 ms of work for a sample"),
        ('flows.kinematic.playout={ kind = "fixed", delay = "500 ms" }', "found 500 ms behind"),
        ('flows.kinematic.playout="ramjee"', "found the playout ramjee behind .*any time"),
        ('flows.kinematic.playout={ kind = "hold", period = "2 ms" }', "found the playout hold behind"),
        ('flows.kinematic.playout="overwrite"', "found 200 ms behind"),
    ],
)
def test_components_and_playout_behind_it_are_in_that_sum(tmp_path: Path, key: str, said: str) -> None:
    file = scenario(tmp_path, "start = [0.0, 0.0]")
    with pytest.raises(ConfigError, match=f"hooks.safety: {said}"):
        scenarios.check(scenarios.load(file, [key]))


@pytest.mark.parametrize(
    "key",
    [
        'components.ss-com={ node = "ss", delay = "49 ms", cost = "0.9 ms" }',
        'components.ms-com={ node = "ms", delay = "2 s" }',
        'flows.kinematic.playout="fixed"',
        'flows.kinematic.playout={ kind = "hold", period = "50 ms", display = "burst" }',
        'flows.kinematic.playout="hold"',
    ],
)
def test_what_takes_less_or_stands_before_it_is_taken(tmp_path: Path, key: str) -> None:
    file = scenario(tmp_path, "start = [0.0, 0.0]")
    scenarios.check(scenarios.load(file, [key]))
