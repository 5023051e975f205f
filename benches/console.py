"""The hand at the browser console: from an event in Chromium to the robot's board, on loopback, and where the time goes.

```text
event ─► handler of the page ─► WebSocket ─► console ─► hook of the run, once a sample ─► board of the robot
   1              2                                3                        4
```
Pictures of 640 x 480 come at 30 a second meanwhile. The same once more with everything ahead of the machine's other work,
where this user may (`chrt -r 1`).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from measure import ROOT, CannotMeasureError, Result, Row
from tcpsbed.analysis import signals

TITLE = "The hand at the browser console"
BAR_MS = 10.0
EVENT_S = 0.016
"""Time between two moves of the pointer."""
LONGEST_S = 600
"""Longest run; it is ended when all events have been sent."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LISTEN = """
window.ago = [];
window.trips = [];
const said = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
  const message = JSON.parse(text);
  if (message.k === "hand") for (const point of message.p) ago.push(point[0]);
  if (message.k === "ping" && !this.heard) {
    this.heard = true;
    this.addEventListener("message", ({ data }) => {
      const told = JSON.parse(data);
      if (told.k === "pong") trips.push(performance.now() - told.t);
    });
  }
  said.call(this, text);
};
"""
"""Notes how long an event took to the page's handler, and round trips to the console."""


def measure(quick: bool) -> Result:
    """Two runs of 400 events, one in the middle of the machine's other work, one ahead of it."""
    lacks = [
        name for name in ("playwright", "websockets", "simplejpeg") if not importlib.util.find_spec(name)
    ]
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None or lacks:
        lacks += ["chromium (apt-get install chromium)"] if browser is None else []
        raise CannotMeasureError(f"needs {', '.join(lacks)}; pip install 'tcpsbed[console]' playwright")
    rows, raw = [], {}
    for name, first in (("as a user starts it", ()), ("ahead of all else (chrt -r 1)", ahead())):
        if first is None:
            continue
        load = os.getloadavg()[0]
        found = one(list(first), browser, 100 if quick else 400)
        rows += rows_of(name, found, load)
        raw[name] = {"load": load, **{part: values.tolist() for part, values in found.items()}}
    return Result("console", TITLE, rows, raw)


def ahead() -> tuple[str, ...] | None:
    """What puts a command ahead of everything else; `None` where this user may not."""
    words = ("chrt", "-r", "1")
    if not shutil.which("chrt") or subprocess.run([*words, "true"], capture_output=True).returncode:
        return None
    return words


def one(first: list[str], browser: str, events: int) -> dict[str, np.ndarray]:
    """A run of the shipped scenario with so many moves of the pointer; times in ms by part of the way."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "out"
        command = [sys.executable, "-m", "tcpsbed", "console", ROOT / "scenarios" / "console.toml", "--quiet"]
        command += ["--no-browser", "--out", out, "--duration", f"{LONGEST_S} s"]
        words = [*first, *map(str, command)]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert run.stdout is not None
            told = run.stdout.readline()
            address = re.match(r"console: (http\S+)", told)
            if address is None:
                run.kill()
                raise CannotMeasureError(f"the console did not start: {told}{run.stdout.read()}")
            page = moved(first, browser, address[1], events)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=60)
        finally:
            if run.poll() is None:
                run.kill()
                run.wait()
        found = page | hand(out)
        if not all(len(values) for values in found.values()):
            raise CannotMeasureError(f"no event reached the board in {LONGEST_S} s of a run")
        return found


def moved(first: list[str], browser: str, address: str, events: int) -> dict[str, np.ndarray]:
    """Moves the pointer about; what the page noted."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place:
        starter = Path(place) / "browser"
        starter.write_text(f'#!/bin/sh\nexec {" ".join([*first, browser])} "$@"\n', encoding="utf-8")
        starter.chmod(0o755)
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=starter, args=["--no-sandbox"])
            page = opened.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            page.add_init_script(LISTEN)
            page.goto(address)
            page.wait_for_function(
                "window.seen && seen.pictures.length > 30 && seen.trip !== null", timeout=60_000
            )
            time.sleep(2.0)  # the offset of the clocks settles
            page.evaluate("ago.length = trips.length = 0")
            box = page.locator("#stage").bounding_box()
            assert box
            for i in range(events):
                u, v = 0.5 + 0.3 * np.sin(i / 15), 0.5 + 0.2 * np.cos(i / 15)
                page.mouse.move(box["x"] + u * box["width"], box["y"] + v * box["height"])
                time.sleep(EVENT_S)
            noted: dict[str, Any] = page.evaluate("({ ago, trips })")
            opened.close()
    return {"handler": np.array(noted["ago"]), "trip": np.array(noted["trips"])}


def hand(out: Path) -> dict[str, np.ndarray]:
    """From the events to the hook that took them, and on to the board: what was new at each, by its moment."""
    parts = {}
    for part, point in (("hook", "tactile-operator.exit"), ("board", "ss-embsys.entry")):
        seen = signals.read(out, point, "kinematic")
        when_s = seen.values[:, 5]
        fresh = np.flatnonzero(np.diff(when_s, prepend=0.0) > 0.0)
        parts[part] = (seen.t_s[fresh] - when_s[fresh]) * 1e3
    return parts


def rows_of(name: str, found: dict[str, np.ndarray], load: float) -> list[Row]:
    """The latency from end to end against its target, then its parts."""
    p95 = float(np.percentile(found["board"], 95))
    parts = {
        "event to the page's handler": "handler",
        "page to the console and back": "trip",
        "event to the run's hook": "hook",
    }
    whole = f"{name}: event to the robot's board, {len(found['board'])} events"
    rows = [Row(whole, spread(found["board"]), f"load {load:.1f}", "", f"p95 {BAR_MS:.0f} ms", p95 < BAR_MS)]
    return rows + [Row(f"{name}: {what}", spread(found[key]), "", "", "") for what, key in parts.items()]


def spread(values: np.ndarray) -> str:
    """Median, 95th percentile and maximum."""
    p50, p95 = np.percentile(values, [50, 95])
    return f"p50 {p50:.2f}, p95 {p95:.2f}, max {values.max():.2f} ms"
