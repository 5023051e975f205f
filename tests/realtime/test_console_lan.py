"""The console from another computer, in Chromium: the warning is accepted once, one page moves the hand, others watch."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpsbed.analysis import signals

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
pytest.importorskip("cryptography", reason="needs the extra studio")
pytest.importorskip("simplejpeg", reason="needs the extra console")
pytestmark = [
    pytest.mark.realtime,
    pytest.mark.slow,
    pytest.mark.beside,
    pytest.mark.skipif(BROWSER is None, reason="needs chromium"),
]
SECONDS = 90


@pytest.fixture
def served(
    tmp_path: Path, shipped_scenarios: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[dict[str, str], Path, Any]]:
    """What the command prints, the folder of its run, and its process."""
    from tcpsbed.studio.certificate import own_addresses

    if not own_addresses():
        pytest.skip("needs an address other than loopback")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tcpsbed", "console", str(shipped_scenarios / "console.toml")]
    command += ["--out", str(out), "--duration", f"{SECONDS} s", "--quiet", "--no-browser"]
    process = subprocess.Popen(
        [*command, "--listen", "0.0.0.0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip().split(": ", 1) for _ in range(3)]
        yield dict(lines), out, process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def wrong() -> list[str]:
    """What pages complain of: exceptions, what their policy forbids."""
    return []


def accepted(browser: Any, address: str, wrong: list[str]) -> Any:
    """A page of a browser of its own, behind the warning, as a person gets there."""
    page = browser.new_context(viewport={"width": 1280, "height": 1400}).new_page()
    with pytest.raises(sync_api.Error, match="ERR_CERT_AUTHORITY_INVALID"):
        page.goto(address)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.click("#details-button")
    page.click("#proceed-link")
    becomes(page, "window.seen && seen.pictures.length > 5 && seen.trip !== null && seen.forces.length > 5")
    return page


def becomes(page: Any, holds: str, seconds: float = 30) -> None:
    """Waits until an expression is true; `wait_for_function` is what the page's own policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(holds):
        assert time.monotonic() < end, f"{holds}\n{page.inner_text('body')}"
        time.sleep(0.05)


def push(page: Any, to: float) -> None:
    """Moves the pointer over the picture to a share of its width."""
    box = page.locator("#stage").bounding_box()
    for number in range(12):
        page.mouse.move(
            box["x"] + (0.5 + (to - 0.5) * number / 11) * box["width"], box["y"] + box["height"] / 2
        )
        time.sleep(0.03)


def test_a_headset_of_the_network_gets_a_secure_page_and_one_page_moves_the_hand(
    served: tuple[dict[str, str], Path, Any], wrong: list[str]
) -> None:
    told, out, process = served
    assert set(told) == {"console", "watch", "certificate"}
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        first = accepted(browser, told["console"], wrong)
        assert first.evaluate("isSecureContext && 'xr' in navigator"), "what WebXR needs"
        second, class_ = accepted(browser, told["console"], wrong), accepted(browser, told["watch"], wrong)
        becomes(first, "/You steer, and move the hand/.test(document.querySelector('#control').textContent)")
        becomes(second, "/Viewer 1 moves the hand/.test(document.querySelector('#reads').textContent)")
        becomes(class_, "/You watch/.test(document.querySelector('#control').textContent)")
        for page in (second, class_):
            assert page.is_visible("#reads") and page.evaluate("document.querySelector('#hand').disabled")
            push(page, 0.9)
            assert page.evaluate("seen.events") == 0
        push(first, 0.1)
        assert first.evaluate("seen.events") > 5 and not first.is_visible("#reads")
        assert class_.locator("#control button").count() == 0
        second.click("#control button >> text=Ask for control")
        first.click("#control button >> text=Hand over")
        becomes(second, "document.querySelector('#reads').hidden")
        becomes(first, "!document.querySelector('#reads').hidden")
        push(first, 0.1)
        push(second, 0.9)
        second.click("#control button >> text=Let go")
        becomes(second, "/Take control/.test(document.querySelector('#control').textContent)")
        push(second, 0.5)
        assert not second.evaluate("document.querySelector('#reads').hidden"), "the pointer takes nothing"
        second.click("#control button >> text=Take control")
        becomes(second, "document.querySelector('#reads').hidden")
        browser.close()
    assert wrong == []
    process.send_signal(signal.SIGINT)
    process.wait(60)
    commands = signals.read(out, "ss-embsys.entry", "kinematic")
    left = commands.values[:, 1]
    assert left.max() > 0.05 and left.min() < -0.05, "first to the left, then to the right"
    assert np.argmax(left) < np.argmin(left)
