"""The process that holds everything of Mininet, with a stand-in that needs neither root nor Mininet."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tcpsbed.errors import WorldError
from tcpsbed.worlds import mininet


def box(script: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> mininet.Box:
    script.write_text(f"import sys\nsys.stdin.readline()\n{text}\n")
    monkeypatch.setattr(mininet, "UNSHARE", ())
    monkeypatch.setattr(mininet, "SYSTEM_PYTHON", sys.executable)
    monkeypatch.setattr(mininet, "mininet_box", SimpleNamespace(__file__=str(script)))
    return mininet.Box({})


def test_a_box_that_says_much_is_not_blocked_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = 'print(\'{"op": "ready", "wrong": [], "pids": []}\', flush=True)\n'
    much = "sys.stderr.write(1_000_000 * 'x')\nsys.stderr.flush()\n"
    done = tmp_path / "done"
    made = box(
        tmp_path / "box.py", f"{said}{much}open({str(done)!r}, 'w').close()\nsys.stdin.read()", monkeypatch
    )
    made.end()
    assert done.exists() and made.child.returncode == 0, "blocked by its own words"
    assert made.child.stdout is not None and made.child.stdout.closed and made.errors.closed
    made.end()


def test_the_last_words_of_a_box_that_fails_are_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WorldError, match="Mininet: no bridge here"):
        box(tmp_path / "box.py", "sys.exit('first\\nno bridge here')", monkeypatch)
