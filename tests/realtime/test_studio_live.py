"""The studio beside a run: numbers arrive, a slider changes the emulator, a page that hangs holds nothing up."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tcpsbed

client = pytest.importorskip("websockets.sync.client", reason="needs the package websockets")
SECONDS = 12
"""Length of a run; a change by hand shows within half of it."""
pytestmark = [pytest.mark.realtime, pytest.mark.slow]


class Watched:
    """A run with its studio: the process, the address, the folder."""

    def __init__(self, scenario: Path, out: Path, *more: str, seconds: int = SECONDS) -> None:
        command = [
            sys.executable,
            "-m",
            "tcpsbed",
            "studio",
            str(scenario),
            "--out",
            str(out),
            "--no-browser",
        ]
        self.out = out
        self.process = subprocess.Popen(
            [*command, "--duration", f"{seconds} s", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.match(r"studio: (http://127\.0\.0\.1:(\d+)/\?token=(\S+))", line)
        assert found, line
        self.address, self.port, self.token = found.groups()

    def get(self, path: str, token: str = "") -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}?token={token or self.token}") as got:
            return str(got.read().decode())

    def viewer(self) -> Any:
        return client.connect(f"ws://127.0.0.1:{self.port}/live?token={self.token}", max_size=None)

    def ended(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        assert any(line.startswith("report: ") for line in self.process.stdout)  # behind the tables
        summary: dict[str, Any] = json.loads((self.out / "summary.json").read_text())
        return summary


@pytest.fixture
def watched(tmp_path: Path, shipped_scenarios: Path) -> Iterator[Watched]:
    made = Watched(shipped_scenarios / "quickstart.toml", tmp_path / "out")
    yield made
    made.process.send_signal(signal.SIGINT)
    assert made.process.wait(60) in (0, 130), made.process.stderr and made.process.stderr.read()


def until(viewer: Any, wanted: Callable[[dict[str, Any]], Any], seconds: float = 20) -> dict[str, Any]:
    """The first message that is wanted."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        told: dict[str, Any] = json.loads(viewer.recv(timeout=seconds))
        if wanted(told):
            return told
    raise AssertionError("no such message came")


def median_ms(told: dict[str, Any]) -> Any:
    return told["k"] == "now" and told["flows"][0].get("p50_ms")


def test_a_change_by_hand_is_in_force_recorded_and_saved(watched: Watched, tmp_path: Path) -> None:
    with watched.viewer() as viewer, watched.viewer() as second:
        plan = until(viewer, lambda told: told["k"] == "plan")["plan"]
        assert [flow["name"] for flow in plan["flows"]] == ["kinematic", "haptic", "audio", "video"]
        before = until(viewer, lambda told: median_ms(told) and told["t_s"] > 3)["flows"][0]
        assert before["p50_ms"] == pytest.approx(7.3, abs=1)
        assert sum(part["ms"] for part in before["parts"]) == pytest.approx(before["mean_ms"], rel=0.02)
        event = {"link": "access", "delay": "41 ms", "name": "access: <b>41</b> ms"}
        viewer.send(json.dumps({"k": "event", "id": "1", "event": event}))
        assert "refused" not in until(viewer, lambda told: told["k"] == "asked")
        second.send(json.dumps({"k": "event", "id": "7", "event": event}))
        refused = until(second, lambda told: told["k"] == "asked" and told["id"] == "7")
        assert refused["refused"] == "viewer 1 steers"
        viewer.send(json.dumps({"k": "event", "id": "2", "event": {"link": "nowhere", "delay": "1 ms"}}))
        assert "nowhere" in until(viewer, lambda told: told["k"] == "asked" and told["id"] == "2")["refused"]
        viewer.send("no JSON")
        until(viewer, lambda told: median_ms(told) and abs(told["flows"][0]["p50_ms"] - 47.3) < 1.5)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            watched.get("/", "wrong")
        summary = watched.ended()
        assert summary["errors"] == []
        (told,) = summary["events"]
        assert (told["name"], told["by"]) == (f"{event['name']} (viewer 1)", "viewer 1")
        until(viewer, lambda told: told["k"] == "over")
        assert "<title>" in watched.get("/report")
    saved = tmp_path / "steered.toml"
    saved.write_text(watched.get("/scenario.toml"))
    again = tcpsbed.run(saved, out=tmp_path / "again", set=[f'duration="{SECONDS} s"'])
    told, repeated = summary["events"][0], again.summary["events"][0]
    assert (repeated["name"], repeated["by"]) == (told["name"], told["by"])
    assert repeated["t_s"] == pytest.approx(told["t_s"], abs=0.2)


@pytest.mark.parametrize(("sign", "stays"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_the_end_of_a_run_leaves_the_page_to_ctrl_c_alone(
    watched: Watched, sign: signal.Signals, stays: bool
) -> None:
    """A request to end, as of a service manager, ends both."""
    assert watched.process.stderr is not None
    with watched.viewer() as viewer:
        while json.loads(viewer.recv(timeout=20)).get("k") != "bins":
            pass
        watched.process.send_signal(sign)
        watched.ended()
    if stays:
        with pytest.raises(subprocess.TimeoutExpired):
            watched.process.wait(3)
        watched.process.send_signal(signal.SIGINT)
    watched.process.wait(20)
    assert ("the page stays until Ctrl-C" in watched.process.stderr.read()) == stays


def test_a_page_that_hangs_holds_nothing_up(watched: Watched) -> None:
    children = Path(f"/proc/{watched.process.pid}/task/{watched.process.pid}/children").read_text().split()
    page = next(
        int(pid) for pid in children if b"tcpsbed.studio" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(page, signal.SIGSTOP)
    try:
        summary = watched.ended()
    finally:
        os.kill(page, signal.SIGCONT)
    assert summary["errors"] == []
    assert summary["ran_s"] == SECONDS and summary["flows"]["kinematic"]["loss"] < 0.01
