"""The demonstration: what delay does to force in its scenario, its predictor, and what it says if something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import webbrowser
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import FIELDS, KINDS
from tcpsbed.cli.app import app
from tcpsbed.cli.page import Page, _seen
from tcpsbed.console.hooks import Hand
from tcpsbed.console.model import Answered, Model
from tcpsbed.errors import HookError
from tcpsbed.scenarios.compile import compile_plan
from tcpsbed.studio.collector import Collector
from tcpsbed.studio.listening import Listening

HERE = Path(__file__).parent
ROBOT = pytest.mark.needs("python:mujoco", "python:simplejpeg")


def felt(scenarios: Path, out: Path, *more: str) -> np.ndarray:
    """Force at the hand, N, in the last two seconds of a push into the wall."""
    script = [
        "duration='6 s'",
        f"hooks.kinematics.run='{HERE / 'pushing.py'}:Pushing'",
        f"flows.video.picture.camera='{HERE / 'pushing.py'}:Grey'",
        "flows.video.rate='1 fps'",
        'measure.signals=["tactile-operator.entry"]',
    ]
    run = tcpsbed.run(scenarios / "demo.toml", out=out, set=[*script, *more])
    assert run.summary["errors"] == [] and not [s for s in run.summary["stages"] if s["failures"]]
    found = signals.read(run.folder, "tactile-operator.entry", "haptic")
    return np.linalg.norm(found.values[found.t_s > 4.0, :3], axis=1)


@ROBOT
def test_the_wall_is_steady_without_delay_and_oscillates_with_it(
    shipped_scenarios: Path, tmp_path: Path
) -> None:
    clean = felt(shipped_scenarios, tmp_path / "clean")
    some = felt(shipped_scenarios, tmp_path / "some", "links.line.delay='50 ms'")
    late = felt(shipped_scenarios, tmp_path / "late", "links.line.delay='150 ms'")
    assert 3.0 < clean.mean() < 8.0 and clean.std() < 0.2
    assert np.ptp(some) < 0.5 * np.ptp(late), "it still settles"
    assert late.min() < 0.5 and late.max() > 6.0 and late.std() > 1.5, (
        "the probe leaves the wall and hits it again"
    )


@ROBOT
@pytest.mark.parametrize("wall", [0.45, 0.8, 1.0])
def test_the_force_swings_wherever_behind_the_face_the_pointer_is(
    shipped_scenarios: Path, tmp_path: Path, wall: float
) -> None:
    held = (f"hooks.kinematics.params.wall={wall}", "links.line.delay='150 ms'")
    late = felt(shipped_scenarios, tmp_path / "late", *held)
    assert late.min() < 1.0 and np.ptp(late) > 4.0, (late.min(), late.max())


@ROBOT
def test_the_predictor_steadies_the_force(shipped_scenarios: Path, tmp_path: Path) -> None:
    late = ("links.line.delay='150 ms'", "events=[]")  # without the event that stops the switch's flow
    predicted = felt(shipped_scenarios, tmp_path / "predicted", *late)
    assert predicted.std() < 0.3 and 3.0 < predicted.mean() < 8.0


def test_the_model_learns_a_spring_and_gives_it_while_the_switch_is_on() -> None:
    model, y = Model(stale_ms=100.0, most_n=15.0), np.zeros(8)
    off, force = np.array([0.0, 0.0, 0.0, -1.0]), 0.0
    for ms in range(2000):
        at_m = 0.02 + 0.01 * np.sin(ms / 100)  # the surface of 300 N/m is at 0.015
        force = -300.0 * max(at_m - 0.015, 0.0)
        assert model(ms * 1_000_000, ms, np.array([force, 0, 0, at_m, 0, 0]), off, y) == 3
        assert y[0] == force, "as it came"
    now_ns = 2_000_000_000
    for at_m, expected in ((0.025, -3.0), (0.010, 0.0), (0.030, -4.5)):
        model(now_ns, 2000, None, np.array([at_m, 0.0, 0.0, 1.95]), y)
        assert y[0] == pytest.approx(expected, abs=0.05)
    model(now_ns, 2000, None, np.array([0.025, 0.0, 0.0, 1.5]), y)
    assert y[0] == force, "the switch is off again"
    model(now_ns + 200_000_000, 2001, None, off, y)
    assert y[:3].tolist() == [0.0, 0.0, 0.0], "what no longer comes is not felt"


def test_friction_is_no_surface() -> None:
    model, y = Model(stale_ms=100.0, most_n=15.0), np.zeros(8)
    for ms in range(4000):  # into a surface at 0.015, while it slides to and fro on it
        into, slid = 0.02 + 0.01 * np.sin(ms / 100), 0.02 * np.sin(ms / 700)
        force = -300.0 * max(into - 0.015, 0.0)
        friction = (0.9 if ms % 1000 < 500 else 0.3) * force * np.sign(np.cos(ms / 700))
        model(ms * 1_000_000, ms, np.array([0, force, friction, 0, into, slid]), np.zeros(4), y)
    for slid in (-0.05, -0.01, 0.0, 0.01, 0.05):
        model(4_000_000_000, 4000, None, np.array([0.0, 0.025, slid, 3.95]), y)
        assert y[:3] == pytest.approx([0.0, -3.0, 0.0], abs=0.05)


def test_a_force_goes_back_with_the_position_that_it_answers() -> None:
    y = np.zeros(8)
    assert Answered()(0, 0, np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0, 1.0, 0.0]), y) == 6
    assert y[:6].tolist() == [1, 2, 3, 4, 5, 6]
    assert Answered()(0, 0, np.array([1.0, 2.0, 3.0]), np.zeros(0), y) == 0


def test_force_moves_the_hand_and_a_wrong_list_is_refused() -> None:
    y, feedback = np.zeros(8), np.array([0.0, 5.0, 0.0, 0.001, 0.02, -0.003])
    assert Hand(yields=[3, 4, 5])(0, 0, None, feedback, y) == 6
    assert y[:3] == pytest.approx([0.001, 0.02, -0.003])
    assert Hand()(0, 0, None, feedback, y) == 6 and y[:3].tolist() == [0.0, 0.0, 0.0]
    for wrong in ([3], [3, 4, -5]):
        with pytest.raises(HookError, match=r"yields.*\[3, 4, 5\]"):
            Hand(yields=wrong)


def test_force_moves_no_hand_that_nobody_holds() -> None:
    """What a robot at rest pushed meanwhile counts no more when the operator is back; what it pushes then does."""
    hand, y = Hand(yields=[3, 4, 5]), np.zeros(8)

    def called(moved_m: float) -> float:
        n = hand(0, 1, None, np.array([0.0, 0.0, 0.0, 0.0, moved_m, 0.0]), y)
        return float(y[1]) if n else np.nan

    assert called(0.02) == pytest.approx(0.02)
    hand.console.away = True
    assert np.isnan(called(0.02)) and np.isnan(called(0.24))
    hand.console.away = False
    assert called(0.24) == pytest.approx(0.02), "where it was"
    assert called(0.10) == pytest.approx(0.0), "on its way back"
    assert called(0.15) == pytest.approx(0.05) and called(-0.01) == pytest.approx(-0.01)
    assert called(0.05) == pytest.approx(0.05)


def test_the_page_is_told_in_which_state_the_supervisor_is(shipped_scenarios: Path, tmp_path: Path) -> None:
    plan = compile_plan(scenarios.load(shipped_scenarios / "quickstart.toml"), tmp_path)
    made = Collector(plan)
    for state, name in ((0, "normal"), (2, "hold"), (6, "hold")):  # 6: a predictive display
        row = np.zeros(1, np.dtype(FIELDS))
        row["kind"], row["point"], row["detail"] = 1 + KINDS.index("state"), 1, state
        made.add(row.tobytes(), 1.0, 0)
        assert made.states == {plan["components"][1]["name"]: name}


def test_without_a_screen_the_address_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, served = Page(Listening(), browser=True, label="demo"), Mock(fingerprint="")
    served.address, served.watch = (f"http://127.0.0.1:4711/?token={token}" for token in "ab")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    page.announce(served)
    said = capsys.readouterr()
    both = "demo: http://127.0.0.1:4711/?token=a\nwatch: http://127.0.0.1:4711/?token=b\n"
    assert said.out == both, "that to watch only is there without --listen, too"
    assert "DISPLAY is not set" in said.err and "ssh -L 4711:127.0.0.1:4711 " in said.err
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "get", lambda: (_ for _ in ()).throw(webbrowser.Error("none")))
    page.announce(served)
    assert "no browser found" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["arm", "network"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setitem(sys.modules, "websockets.sync.server", None)
    done = CliRunner().invoke(app, ["demo", what])
    assert done.exit_code == 2, done.output
    assert (
        "tcpsbed demo needs the package websockets.sync.server" in done.stderr
        and "pip install 'tcpsbed[" in done.stderr
    )


def test_a_folder_whose_sockets_have_too_long_paths_is_named(tmp_path: Path) -> None:
    long = tmp_path / ("m" * 100)
    long.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", "demo", "--no-browser"],
        env=os.environ | {"TCPSBED_MEMORY": str(long)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert (
        "allowed: at most 107 bytes: TCPSBED_MEMORY=/dev/shm" in done.stderr
        and len(done.stderr.splitlines()) == 1
    )
    assert [path.name for path in tmp_path.rglob("*")] == [long.name]


def test_another_demonstration_is_refused_with_those_that_there_are() -> None:
    done = CliRunner().invoke(app, ["demo", "netwrk"])
    assert done.exit_code == 2 and 'found "netwrk"' in done.stderr and "network" in done.stderr


def test_the_pane_knows_the_component_of_the_supervisor(shipped_scenarios: Path) -> None:
    """The page compares its name with those in events: a list with this name would match none."""
    shown = _seen(scenarios.load(shipped_scenarios / "demo.toml"))
    assert shown == {"fps": 20, "supervisor": "ss-embsys", "marks": False}
