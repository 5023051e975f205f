"""Pictures of live pages in docs/pictures, light and dark, and the recording of the README: make screens

Each comes from a run that this script starts and ends, the pictures on a machine with little else to do. Needs Chromium
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from PIL import Image
from playwright.sync_api import Page, Route, sync_playwright

from canvas import ROOT

PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1600, "height": 1000}
RECORDED, EVERY_S = {"width": 800, "height": 790}, 0.1
"""Size of the recording, as wide as a README shows it, and time between two of its frames."""
PUSHED, NUDGED, NUDGE_S = 0.24, 0.2, (7.0, 7.5)
"""Where the hand ends, as a share of the picture right of its middle, and where it is for half a second."""
SLOW = 8
"""Seconds that a second of the run takes while it is recorded."""
STILL_S = 12.0
"""The frame for readers who want no motion: the loop is unstable."""
UNSTABLE_MS = 150
"""Delay from which the loop does not settle."""
MOST_BYTES = 3_000_000
ARRANGED = ROOT / "tools" / "recording.css"


@contextmanager
def served(*words: str, program: Sequence[str] = ()) -> Iterator[str]:
    """The address of the page of a command, or of a program, while it runs in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *(program or ("-m", "tcpsbed", *words, "--no-browser"))]
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
    """The demonstration at 40 ms each way, with the hand in the wall."""
    with served("demo") as address:
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        page.wait_for_timeout(4000)
        page.get_by_role("button", name="40 ms each way").click()
        page.get_by_role("button", name="Delay of 40 ms").click()
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
    """A hand at the wall: a clean line, the delay raised until the loop is unstable, the line cut.

    The run is in simulated time, `SLOW` times slower than the clock, and the recording plays it at its own speed: so a busy
    machine delays nothing that is seen.
    """
    frames: list[Image.Image] = []
    times_s: list[float] = []
    with served(program=(str(ROOT / "tools" / "paced_demo.py"), f"{1 / SLOW}")) as address:
        page = browser.new_page(viewport=RECORDED, bypass_csp=True)
        page.route("**/pane.js", slowed)
        page.goto(address)
        page.add_style_tag(path=ARRANGED)
        push(page, -0.1)
        page.wait_for_timeout(1000 * SLOW)
        delay = page.locator("#slide-delay")

        def elapsed_s() -> float:
            return (time.monotonic() - begun_s) / SLOW

        def simulated_s() -> float:
            return float(page.locator("#clock").inner_text().split(" s")[0])

        def act(second: float) -> None:
            """Takes pictures until this second of the recording."""
            while (now_s := elapsed_s()) < second:
                push(page, NUDGED if NUDGE_S[0] < now_s < NUDGE_S[1] else min(-0.1 + 0.2 * now_s, PUSHED))
                frames.append(Image.open(io.BytesIO(page.screenshot(type="jpeg", quality=95))))
                times_s.append(now_s)
                time.sleep(max(now_s + EVERY_S - elapsed_s(), 0) * SLOW)

        def step(title: str) -> None:
            page.locator(".tour .head", has_text=title).dispatch_event("click")

        begun_s, first_s = time.monotonic(), simulated_s()
        act(3.5)
        step("150 ms")
        for quarter in range(
            16
        ):  # the slider is logarithmic; a leap would be a gap that the supervisor answers
            set_ms = float(page.locator("#number-delay").input_value())
            for _ in range(0 if set_ms >= UNSTABLE_MS else 3 if 20 < set_ms < 100 else 1):
                delay.press("PageUp" if set_ms < 20 else "ArrowRight")
            act(3.5 + 0.25 * (quarter + 1))
        act(14.5)
        step("Cut")
        page.locator("#cut").press("Enter")
        act(18)
        kept = (simulated_s() - first_s) / elapsed_s()
        page.close()
    if kept < 0.95:
        raise SystemExit(f"found {kept:.0%} of the speed that was asked for: try again, or a larger SLOW")
    spans_ms = [round(1000 * (b - a)) for a, b in zip(times_s, [*times_s[1:], times_s[-1] + 2], strict=True)]
    written = io.BytesIO()
    frames[0].save(
        written,
        "WEBP",
        save_all=True,
        append_images=frames[1:],
        duration=spans_ms,
        loop=0,
        quality=60,
        method=4,
    )
    size = written.tell()
    print(
        f"demo.webp: {size / 1e6:.2f} MB, {len(frames)} frames in {times_s[-1]:.1f} s, {kept:.0%} of the speed"
    )
    if size > MOST_BYTES:
        raise SystemExit(f"found {size} bytes; allowed: {MOST_BYTES}")
    (PICTURES / "demo.webp").write_bytes(written.getvalue())
    number = next(number for number, at_s in enumerate(times_s) if at_s > STILL_S)
    frames[number].save(PICTURES / "demo-still.webp", quality=80, method=4)


def slowed(route: Route) -> None:
    """Answers with the pane of the operator, its curve of force in seconds of the run, which are `SLOW` of the page."""
    text, span = route.fetch().text(), "/ 1000 / SPAN_S"
    if span not in text:
        raise SystemExit(f'pane.js has no "{span}"')
    route.fulfill(body=text.replace(span, f"/ 1000 / ({SLOW} * SPAN_S)"), content_type="text/javascript")


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
