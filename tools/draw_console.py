"""Draws docs/pictures/console.png, the browser console while it moves the arm: python tools/draw_console.py

Needs the extras `robot` and `console`, the package playwright and a Chromium.
"""

from __future__ import annotations

import math
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 660, "height": 360}


def push(page: Page) -> None:
    """Moves the tool about, and with the button held down onto the table."""
    box = page.locator("#stage").bounding_box()
    assert box is not None

    def to(u: float, v: float) -> None:
        page.mouse.move(box["x"] + u * box["width"], box["y"] + v * box["height"])
        page.wait_for_timeout(20)

    for i in range(80):
        to(0.5 + 0.2 * math.sin(i / 10), 0.5 + 0.1 * math.cos(i / 10))
    page.mouse.down()
    for i in range(60):
        to(0.5, 0.5 + 0.3 * i / 60)
    page.wait_for_timeout(1000)


def main() -> None:
    """Starts the console, opens it, and takes a picture of the page."""
    browser = next(path for name in BROWSERS if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder:
        scenario = ROOT / "scenarios" / "console-arm.toml"
        command = [
            sys.executable,
            "-m",
            "tcpsbed",
            "console",
            str(scenario),
            "--quiet",
            "--out",
            f"{folder}/out",
        ]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        address = re.match(r"console: (http\S+)", run.stdout.readline())
        assert address is not None
        try:
            with sync_playwright() as playwright:
                opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
                page = opened.new_page(viewport=SIZE, bypass_csp=True)
                page.goto(address[1])
                page.wait_for_function("window.seen && seen.pictures.length > 10", timeout=60_000)
                push(page)
                page.screenshot(path=str(ROOT / "docs" / "pictures" / "console.png"))
                opened.close()
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(60)


if __name__ == "__main__":
    main()
