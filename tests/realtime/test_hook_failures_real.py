"""Hooks that give nonsense, raise or block, on the machine's clock: the follower at the other node is safe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import failing_run
import pytest
from real_run import summary

import tcpsbed
from tcpsbed.errors import TcpsbedError
from tcpsbed.processes import GRACE_S
from tcpsbed.worlds import real
from tcpsbed.worlds.process import heard

pytestmark = [pytest.mark.realtime, pytest.mark.beside]


@pytest.mark.parametrize("name", ["Nan", "Raises"])
def test_nonsense_and_exceptions_lead_to_a_safe_stop(tmp_path: Path, name: str) -> None:
    tcpsbed.run(failing_run.scenario(tmp_path, name), world="real", out=tmp_path / "out")
    found = summary(tmp_path / "out")
    failing_run.stands_still(tmp_path / "out", found)
    why = {"Nan": "returned values that are not finite", "Raises": "left its domain"}[name]
    assert why in json.dumps(found)


@pytest.mark.parametrize("name", failing_run.ACCIDENTS)
def test_an_accident_in_a_process_of_its_own_leads_to_a_safe_stop(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node goes on: what it recorded before is kept, its supervisor's peer holds, and no process is left."""
    monkeypatch.setenv(failing_run.MARK, str(tmp_path))
    file = failing_run.scenario(tmp_path, name, more=failing_run.ISOLATED)
    tcpsbed.run(file, world="real", out=tmp_path / "out")
    found = summary(tmp_path / "out")
    failing_run.stands_still(tmp_path / "out", found)
    error, *heirs = found["errors"]
    assert ["was ended" in one for one in heirs] == [True] * (name == "Spins"), "what it had forked"
    assert failing_run.ACCIDENTS[name] in error and "ended its process at 0." in error
    assert found["flows"]["kinematic"]["delivered"] > 100
    assert failing_run.left(tmp_path) == []


def test_the_process_of_a_hook_ends_with_a_node_that_is_killed(tmp_path: Path) -> None:
    """It spins, as does what it has forked: its watcher ends them `GRACE_S` later."""
    code = (
        "import numpy, tcpsbed.isolated as isolated\n"
        f"hook = isolated.Isolated({str(failing_run.HERE / 'failing.py')!r}, 'Spins', {{}}, None,"
        " time_ns=60 * 10**9, memory_bytes=10**9)\n"
        "print('made', flush=True)\n"
        "hook(0, 300, None, numpy.zeros(0), numpy.zeros(4))"
    )
    marked = os.environ | {failing_run.MARK: str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], env=marked, stdout=subprocess.PIPE) as node:
        assert node.stdout is not None
        node.stdout.readline()
        until(lambda: len(failing_run.left(tmp_path)) == 3)
        node.kill()
    until(lambda: failing_run.left(tmp_path) == [])


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 3 * GRACE_S
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_what_a_hook_prints_is_no_word_of_its_node(tmp_path: Path) -> None:
    """Numbers and objects are JSON too; on the control line they would stand for answers."""
    tcpsbed.run(failing_run.scenario(tmp_path, "Prints"), world="real", out=tmp_path / "out")
    found = summary(tmp_path / "out")
    assert found["errors"] == [] and found["flows"]["kinematic"]["delivered"] > 100


@pytest.mark.parametrize("line", ["7", "null", "[1]", '"op"', "{}", "words"])
def test_what_is_no_message_is_told_from_one(line: str) -> None:
    assert heard(line) is None
    assert heard('{"op": "ready"}') == {"op": "ready"}


def test_a_hook_that_stands_still_for_a_while_is_told(tmp_path: Path) -> None:
    """Commands are missing for 0.3 s: hold, safe stop, and back to normal; the gap is a row and a disturbance."""
    file = failing_run.scenario(tmp_path, "Blocks", "{ seconds = 0.3 }")
    tcpsbed.run(file, world="real", out=tmp_path / "out")
    found = summary(tmp_path / "out")
    [watched] = found["states"]
    to = [change["to"] for change in watched["changes"]]
    assert to.index("hold") < to.index("safe stop") < to.index("recovering")
    assert any("stalled" in said for said in found["disturbances"])


def test_a_hook_that_never_returns_ends_the_run_and_keeps_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "END_S", 2.0)
    out = tmp_path / "out"
    try:
        tcpsbed.run(failing_run.scenario(tmp_path, "Blocks"), world="real", out=out)
    except TcpsbedError as error:
        assert "ms" in str(error)
    result = json.loads((out / "result.json").read_text())
    assert any("node ms" in said for said in result["errors"]), result["errors"]
    failing_run.stands_still(out, summary(out))
