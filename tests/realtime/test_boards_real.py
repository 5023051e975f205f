"""Boards on real lines: UART and board as bars of their own, lines that damage, a board that goes away, the watchdog."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from again import in_time
from real_run import shown, whole

from tcpsbed.worlds import firmware

SCENARIO = """
name = "boards"
duration = "3 s"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-com = "ss"
ss-embsys = {{ node = "ss", board = {{ {board} }} }}
tactile-teleoperator = {{ node = "ss", robot = "wall_mass" }}
[flows.kinematic]
rate = "500 Hz"
sample = "24 B"
[flows.haptic]
rate = "500 Hz"
sample = "12 B"
[flows.status]
direction = "backward"
rate = "100 Hz"
sample = "16 B"
path = ["ss-com", "ms-com"]
[measure]
echo = {{ points = "all", period = "10 ms" }}
{more}
"""
DOWN_MS, UP_MS = 0.32, 0.42
"""What a sample of 24 B and its answer take on a line of 1 Mbit/s."""

BETWEEN = """#!{python}
# Stands between a line and the firmware, and does something to every byte that passes.
import os, pty, random, select, subprocess, sys, tty

near = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
far, name = pty.openpty()
tty.setraw(near); tty.setraw(far)
board = subprocess.Popen([{board!r}, os.ttyname(name)])
chance, seen = random.Random(1), [0, 0]
try:
    while True:
        for fd in select.select([near, far], [], [])[0]:
            way, to = (0, far) if fd == near else (1, near)
            data = os.read(fd, 4096)
            if not data: raise OSError
            seen[way] += len(data)
            {what}
            os.write(to, data)
except OSError:
    board.kill()
"""


def scenario(board: str = 'firmware = "host"', more: str = "") -> str:
    return SCENARIO.format(board=board, more=more)


def between(folder: Path, what: str) -> str:
    """A program that stands between line and firmware and does `what`: its key in the scenario."""
    program = folder / "between"
    program.write_text(BETWEEN.format(python=sys.executable, board=str(firmware.built("host")), what=what))
    program.chmod(0o755)
    return f'firmware = "{program}"'


# [Polachan 2022: echoes]
@pytest.mark.needs("make", "cc")
def test_uart_and_board_are_bars_of_their_own(tmp_path):
    found, _ = whole(tmp_path, scenario())
    (board,) = found["boards"]
    assert board["component"] == "ss-embsys" and board["gone"] is None
    assert not any(board["damaged"].values()) and not any(board["damaged_there"].values())
    assert set(found["flows"]["kinematic"]["drops"]) <= {"ss-embsys line"}
    points = {point["point"] for point in found["echo"]["kinematic"]["points"]}
    assert points >= {"ss-embsys.entry", "ss-embsys.exit"}
    assert "ss-embsys" in shown(tmp_path / "out")
    parts = {part["name"]: part["latency_ms"] for part in found["path"]["kinematic"]}
    assert list(parts)[-3:] == ["ss-com -> ss-embsys", "ss-embsys", "ss-embsys -> tactile-teleoperator"]
    assert DOWN_MS <= parts["ss-com -> ss-embsys"]["p50"] + 0.05 < DOWN_MS + 0.5
    assert UP_MS <= parts["ss-embsys -> tactile-teleoperator"]["p50"] + 0.05 < UP_MS + 0.8
    assert 0 <= parts["ss-embsys"]["p50"] < 0.2
    with in_time(found["disturbances"]):
        assert board["lost"] <= 0.01 * board["sent"]


@pytest.mark.needs("make", "cc")
def test_damage_is_survived_and_counted_at_both_ends(tmp_path):
    flip = "if seen[way] > 2000 and chance.random() < 0.05: data = bytes([data[0] ^ 0x10]) + data[1:]"
    found, _ = whole(tmp_path, scenario(between(tmp_path, flip)))
    (board,) = found["boards"]
    for end in ("damaged", "damaged_there"):
        assert board[end]["no_crc"] + board[end]["no_cobs"] > 0, end
        assert board[end]["missing"] > 0, end
    flow = found["flows"]["kinematic"]
    assert flow["delivered"] > 0.5 * flow["sent"] and flow["drops"]["ss-embsys line"] > 0
    assert found["flows"]["status"]["loss"] == 0


@pytest.mark.needs("make", "cc")
def test_a_line_that_babbles_and_cuts_is_survived(tmp_path):
    noise = (
        "if seen[way] > 2000 and chance.random() < 0.02: data = data[: len(data) // 2] + b'\\x55' * 700\n"
        "            if seen[way] > 2000 and chance.random() < 0.01: data = b''"
    )
    found, _ = whole(tmp_path, scenario(between(tmp_path, noise)))
    (board,) = found["boards"]
    assert board["damaged"]["too_long"] > 0 and board["damaged_there"]["too_long"] > 0
    assert found["flows"]["kinematic"]["delivered"] > 100 and found["flows"]["status"]["loss"] == 0


@pytest.mark.needs("make", "cc")
def test_a_board_that_goes_away_is_told_and_the_other_flows_go_on(tmp_path):
    leave = "if seen[0] > 20000: board.kill(); sys.exit(3)"
    found, output = whole(tmp_path, scenario(between(tmp_path, leave)), ok=False)
    (board,) = found["boards"]
    assert "exit status: 3" in board["gone"]["why"] or "closed" in board["gone"]["why"]
    assert 0 < board["gone"]["at_s"] < 3
    (error,) = found["errors"]
    assert error.startswith("board ss-embsys:") and "lost from then on" in error
    assert "board ss-embsys" in output
    # The run goes to its end: its last row is one of the last samples.
    assert found["ran_s"] > 2.9 and found["flows"]["status"]["loss"] == 0
    assert found["flows"]["kinematic"]["loss"] > 0.05


@pytest.mark.needs("make", "cc")
def test_silence_leads_to_the_safe_output(tmp_path):
    more = """
[[events]]
at = "1 s"
flow = "kinematic"
running = false
[[events]]
at = "2 s"
flow = "kinematic"
running = true
"""
    found, _ = whole(tmp_path, scenario('watchdog = "200 ms", safe = [0.5]', more))
    (watched,) = found["states"]
    changes = [(c["from"], c["to"]) for c in watched["changes"]]
    assert ("normal", "safe stop") in changes and ("safe stop", "normal") in changes
    assert found["boards"][0]["safe"] >= 1
    assert any(1.15 < c["t_s"] < 2 for c in watched["changes"] if c["to"] == "safe stop")


@pytest.mark.beside
def test_a_port_that_is_not_there_is_named(tmp_path):
    (tmp_path / "scenario.toml").write_text(scenario('line = "/dev/no-such-port"'))
    command = [sys.executable, "-m", "tcpsbed", "run", "scenario.toml", "--world", "real", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "components.ss-embsys.board" in done.stderr and "/dev/no-such-port" in done.stderr
    assert "allowed: a serial port that is there" in done.stderr


@pytest.mark.needs("make", "arm-none-eabi-gcc", "qemu-system-arm")
def test_the_same_on_a_cortex_m_in_qemu(tmp_path):
    found, _ = whole(tmp_path, scenario('firmware = "qemu"', "").replace("500 Hz", "100 Hz"))
    (board,) = found["boards"]
    assert board["gone"] is None
    assert not any(board["damaged_there"].values())
    assert board["answered"] > 0.9 * board["sent"] > 270
    parts = {part["name"]: part["latency_ms"] for part in found["path"]["kinematic"]}
    assert parts["ss-com -> ss-embsys"]["p50"] > DOWN_MS - 0.05
    assert 0 <= parts["ss-embsys"]["p50"] < 1
