"""Hooks that give nonsense, raise or block, on the machine's clock: the follower at the other node is safe."""

from __future__ import annotations

import json
from pathlib import Path

import failing_run
import pytest
from real_run import summary

import tcpsbed
from tcpsbed.errors import TcpsbedError
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
