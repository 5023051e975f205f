"""The firmware: its own tests in C, its two builds, and what is said where a tool is missing."""

from __future__ import annotations

import subprocess

import pytest

from tcpsbed.errors import WorldError
from tcpsbed.worlds import firmware


@pytest.mark.needs("make", "cc")
def test_the_tests_of_the_core_hold(root, tmp_path):
    """They run with what finds bad memory and undefined behaviour."""
    done = subprocess.run(
        ["make", "-s", "check", f"OUT={tmp_path}"], cwd=root / "firmware", capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    assert "every test holds" in done.stdout


@pytest.mark.needs("make", "cc")
def test_it_is_compiled_once_for_each_state_of_its_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = firmware.built("host")
    made = program.stat().st_mtime_ns
    assert firmware.built("host") == program and program.stat().st_mtime_ns == made
    assert [path.name for path in program.parent.parent.iterdir()] == [program.parent.name], "no half build"


def test_what_is_missing_is_named_with_its_packages(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorldError, match=r"arm-none-eabi-gcc.*gcc-arm-none-eabi qemu-system-arm"):
        firmware.built("qemu")
    monkeypatch.setenv(firmware.SOURCES, str(tmp_path))
    with pytest.raises(WorldError, match=r"core/board.c"):
        firmware.built("host")


def test_a_plan_gets_the_firmware_that_it_names(monkeypatch, tmp_path):
    monkeypatch.setattr(firmware, "built", lambda target: tmp_path / target)
    boards = [{"attached": {"kind": kind, "path": path}} for kind, path in
              (("program", "host"), ("qemu", "qemu"), ("program", "/my/own"), ("port", "/dev/ttyS0"))]  # fmt: skip
    plan = {"components": [{"name": "x", "board": board} for board in [*boards, None]]}
    firmware.provide(plan)
    paths = [board["attached"]["path"] for board in boards]
    assert paths == [str(tmp_path / "host"), str(tmp_path / "qemu"), "/my/own", "/dev/ttyS0"]
