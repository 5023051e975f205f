"""Draws docs/pictures/board.png, where the time goes behind boards, out of the report of a run: python tools/draw_board.py

`tcpsbed run scenarios/board.toml --world real` makes the page, a browser makes a picture of its first section. Needs
make, a C compiler, the package playwright and a Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SECTION = "#time"
WIDTH = 900


def main() -> None:
    """Runs, opens the report, and takes a picture of the section."""
    browser = next(path for name in BROWSERS if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder:
        scenario = str(ROOT / "scenarios" / "board.toml")
        command = [sys.executable, "-m", "tcpsbed", "run", scenario, "--world", "real", "--out", folder]
        subprocess.run([*command, "--set", "measure.pcapng='off'"], check=True)
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = opened.new_page(viewport={"width": WIDTH, "height": 1200})
            page.goto((Path(folder) / "report.html").as_uri())
            page.locator(SECTION).screenshot(path=str(ROOT / "docs" / "pictures" / "board.png"))
            opened.close()


if __name__ == "__main__":
    main()
