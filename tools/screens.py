"""Pictures of live pages in docs/pictures, light and dark, and the recording of the README: make screens

Each comes from a real run that this script starts and ends, on a machine with little else to do. Needs Chromium
(Debian: apt-get install chromium), the package playwright and the extras `robot`, `console` and `studio`. Names after the
command make only those.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from canvas import ROOT

PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1600, "height": 1000}
FRAMES, EVERY_S = 110, 0.125
"""Of the recording."""
RECORDED = (1280, 760)
"""Size of the page in it; half of that is written."""
MOST_BYTES = 3_000_000


@contextmanager
def served(*words: str) -> Iterator[str]:
    """The address of the page of a command while it runs, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tcpsbed", *words, "--no-browser"]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            try:
                assert process.stdout is not None
                yield next(line.split(": ", 1)[1].strip() for line in process.stdout if ": http" in line)
            finally:
                for _ in range(3):  # the run, then its page
                    process.send_signal(signal.SIGINT)
                    with suppress(subprocess.TimeoutExpired):
                        process.communicate(timeout=15)
                        break
                else:
                    process.kill()


def push(page: Page, depth: float, swing: float = 0.0) -> None:
    """Moves the hand into the wall, as far as this share of the picture right of its middle."""
    box = page.locator("#stage").bounding_box()
    if box is None:
        return
    x = box["x"] + box["width"] * (0.5 + depth + swing)
    page.mouse.move(x, box["y"] + box["height"] * 0.5, steps=4)


def still(page: Page, name: str) -> None:
    """The visible part of a page, light and dark."""
    for scheme, ending in (("light", ""), ("dark", "-dark")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_timeout(700)
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        picture.quantize(192).save(PICTURES / f"{name}{ending}.png", optimize=True)


def demo(browser: Any) -> None:
    """The demonstration at 50 ms each way, with the hand in the wall."""
    with served("demo") as address:
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        page.wait_for_timeout(4000)
        page.get_by_role("button", name="50 ms each way").click()
        page.get_by_role("button", name="Delay of 50 ms").click()
        for step in range(40):
            push(page, 0.25, 0.02 * math.sin(step / 3))
            page.wait_for_timeout(100)
        page.evaluate("scrollTo(0, 0)")
        still(page, "demo")
        page.close()


def studio(browser: Any) -> None:
    """The quickstart in virtual time at the speed of the clock: no loop of a busy machine disturbs it."""
    words = ("--world", "virtual", "--pace", "1", "--set", 'duration="60 s"')
    with served("studio", str(ROOT / "scenarios" / "quickstart.toml"), *words) as address:
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        page.wait_for_timeout(20_000)
        still(page, "studio")
        page.close()


def console(browser: Any) -> None:
    """The pane of the operator, over the link that its scenario has."""
    with served("console", str(ROOT / "scenarios" / "console-arm.toml")) as address:
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        page.wait_for_timeout(4000)
        for step in range(40):
            push(page, 0.1 * math.sin(step / 6))
            page.wait_for_timeout(100)
        page.evaluate("scrollTo(0, 0)")
        still(page, "console")
        page.close()


def recording(browser: Any) -> None:
    """A hand at the wall: a clean line, 150 ms each way, the predictor, the cut."""
    steps = {
        0: ("Feel the wall", "Clean line"),
        24: ("150 ms: it oscillates", "Delay of 150 ms"),
        64: ("The predictor", "150 ms with predictor"),
        92: ("Cut the line", "Cut the line"),
    }
    pictures = []
    with served("demo") as address:
        page = browser.new_page(viewport={"width": RECORDED[0], "height": RECORDED[1]})
        page.goto(address)
        page.wait_for_timeout(4000)
        begun = time.monotonic()
        for number in range(FRAMES):
            if number in steps:
                title, act = steps[number]
                page.locator(".tour .head", has_text=title).click()
                page.locator(".tour .main", has_text=act).first.click()
            push(page, 0.24, 0.03 * math.sin(number / 5))
            pictures.append(Image.open(io.BytesIO(page.screenshot(type="jpeg", quality=85))))
            time.sleep(max(begun + (number + 1) * EVERY_S - time.monotonic(), 0))
        took_s = time.monotonic() - begun
        page.close()
    small = [
        picture.resize((RECORDED[0] * 5 // 8, RECORDED[1] * 5 // 8), Image.Resampling.LANCZOS)
        for picture in pictures
    ]
    file = PICTURES / "demo.webp"
    small[0].save(
        file,
        save_all=True,
        append_images=small[1:],
        duration=round(took_s * 1000 / FRAMES),
        loop=0,
        quality=60,
        method=6,
    )
    size = file.stat().st_size
    print(f"{file.name}: {size / 1e6:.2f} MB, {took_s:.1f} s")
    if size > MOST_BYTES:
        raise SystemExit(f"{file} has {size} bytes; allowed: {MOST_BYTES}")


MADE: dict[str, Callable[[Any], None]] = {one.__name__: one for one in (demo, studio, console, recording)}


def main() -> None:
    """Makes those that are asked for."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no chromium found; Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in sys.argv[1:] or MADE:
            MADE[name](browser)
            print(name)
        browser.close()


if __name__ == "__main__":
    main()
