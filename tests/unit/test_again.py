"""Tests of the clock that fail beside load are made again; without it they may fail once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import again
import pytest

TESTS = """
import again
import pytest

OWN_WORDS = "ns-3 was 60.0 ms behind the clock at 3.000 s (allowed: 50 ms): this machine cannot simulate this network"
times = {}


@pytest.fixture(autouse=True)
def counted(request):
    name = request.node.name
    times[name] = times.get(name, 0) + 1
    again.Witness.load = property(lambda _: "busy" if "busy" in name else "", lambda *_: None)


@pytest.fixture(scope="module")
def measured():
    times["measured"] = times.get("measured", 0) + 1
    return times["measured"]


@pytest.mark.realtime
@pytest.mark.parametrize("needed", [1, 2, 3, 4])
def test_busy(tmp_path, request, needed):
    (tmp_path / "made").mkdir()
    assert times[request.node.name] == needed


@pytest.mark.realtime
def test_busy_with_the_same_words():
    assert not "so"


@pytest.mark.interop
def test_quiet():
    assert times["test_quiet"] == 3


@pytest.mark.interop
def test_quiet_but_once():
    assert times["test_quiet_but_once"] == 2


@pytest.mark.interop
def test_own_words():
    assert times["test_own_words"] == 2, OWN_WORDS


@pytest.mark.interop
def test_own_words_alone():
    assert times["test_own_words_alone"] == 4, f"{OWN_WORDS} {times}"


@pytest.mark.realtime
@pytest.mark.beside
def test_busy_beside():
    assert times["test_busy_beside"] == 3


def test_busy_of_units():
    assert times["test_busy_of_units"] == 2


@pytest.mark.realtime
def test_busy_while_it_was_measured(measured):
    assert measured == 1


@pytest.mark.realtime
def test_what_was_measured(measured):
    assert measured == 2


@pytest.mark.realtime
@pytest.mark.timeout(0.2)
def test_busy_for_ever():
    while True:
        pass


@pytest.mark.realtime
@pytest.mark.timeout(0.4)
def test_busy_for_long():
    import time
    time.sleep(0.25)
    assert times["test_busy_for_long"] == 2
"""
RUNS = """
import again
import pytest

SAID = {
    "stalled": "node a stalled 2 times, up to 12.00 ms, one of them at 1.000 s",
    "late": "emulator a -> b: emulation error 12.000 ms (p99; margin 0.3 ms)",
    "full": "node a lost 5 datagrams in its sockets",
    "short": "node a stalled once, 9.00 ms at 1.000 s",
    "clock": "node a saw 2 steps of the wall clock",
}
times = {}
again.Witness.load = property(lambda _: "", lambda *_: None)


@pytest.mark.realtime
@pytest.mark.parametrize("needed", [1, 2, 4])
@pytest.mark.parametrize("said", SAID)
def test_run(said, needed):
    made = times[said, needed] = times.get((said, needed), 0) + 1
    with again.in_time(["node a skipped 2 ticks", SAID[said]]):
        assert made == needed
"""
MARKS = "[pytest]\naddopts = -rA\nmarkers =\n realtime\n interop\n beside\n"


def made(folder: Path, *arguments: str, tests: str = TESTS) -> tuple[dict[str, str], str]:
    """What became of each test, and all that was printed."""
    (folder / "test_clock.py").write_text(tests)
    (folder / "pytest.ini").write_text(MARKS)
    command = [sys.executable, "-m", "pytest", "-p", "pytest_timeout", "-p", "again", *arguments]
    path = os.pathsep.join([str(Path(again.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\S+)", done.stdout, re.M)
    return {name: outcome for outcome, name in found}, done.stdout + done.stderr


def test_what_fails_beside_load_is_made_again_and_else_once(tmp_path: Path) -> None:
    found, told = made(tmp_path)
    assert found == {
        **{f"test_busy[{needed}]": "PASSED" for needed in (1, 2, 3)},
        "test_busy_with_the_same_words": "FAILED",
        "test_quiet": "FAILED",
        "test_quiet_but_once": "PASSED",
        "test_own_words": "PASSED",
        "test_own_words_alone": "FAILED",
        "test_busy_beside": "PASSED",
        "test_busy_of_units": "FAILED",
        "test_busy_while_it_was_measured": "PASSED",
        "test_what_was_measured": "PASSED",
        "test_busy_for_ever": "FAILED",
        "test_busy_for_long": "PASSED",
    }, told
    assert "the machine was too loaded to measure on, 3 times: busy" in told
    lines = [line for line in told.splitlines() if line.startswith("[again]")]
    names = [re.sub(r".*::(\S+): .*", r"\1", line.split(" (")[0]) for line in lines]
    assert sorted(names) == sorted(
        [
            *("test_busy[2]", "test_busy[3]", "test_busy[3]", *["test_busy[4]"] * 3),
            *["test_busy_with_the_same_words", "test_own_words_alone"] * 3,
            *("test_quiet", "test_quiet_but_once", "test_busy_beside", "test_busy_beside"),
            *("test_own_words", "test_what_was_measured", "test_busy_for_long"),
        ]
    ), lines
    assert "test_clock.py::test_busy[2]: busy (assert 1 == 2" in told
    assert "test_quiet_but_once: failed once, undisturbed (" in told
    assert "it said: behind the clock at 3.000 s (AssertionError: ns-3 was 60.0 ms" in told


def test_what_a_disturbed_run_says_of_itself_is_not_judged(tmp_path: Path) -> None:
    """It is made again until its run is in time, and else skipped in the run's words."""
    found, told = made(tmp_path, tests=RUNS)
    assert found == {
        **{
            f"test_run[{said}-{needed}]": "PASSED"
            for said in ("stalled", "late", "full", "short", "clock")
            for needed in (1, 2)
        },
        **{f"test_run[{said}-4]": "FAILED" for said in ("short", "clock")},
    }, told
    skipped = [line for line in told.splitlines() if line.startswith("SKIPPED [1] test_clock.py:")]
    assert len(skipped) == 3 and all("not judged: the run was disturbed: " in line for line in skipped), told
    assert "disturbed: node a lost 5 datagrams in its sockets (assert 3 == 4" in told


def test_a_stop_at_the_first_failure_waits_for_the_last_try(tmp_path: Path) -> None:
    found, told = made(tmp_path, "-x")
    passed = {f"test_busy[{needed}]": "PASSED" for needed in (1, 2, 3)}
    assert found == {**passed, "test_busy_with_the_same_words": "FAILED"}, told


def test_the_loop_tells_when_it_stood_still() -> None:
    with again.Witness() as witness:
        for number in (signal.SIGSTOP, signal.SIGCONT) * 3:  # a stop between two sleeps is not seen
            time.sleep(0.1)
            os.kill(witness.process.pid, number)
    found = re.search(r"late \d+ of \d+ times, by up to (\d+) ms", witness.load)
    assert found and int(found[1]) >= 90, witness.load
    with pytest.raises(ProcessLookupError):
        os.kill(witness.process.pid, 0)
