"""Start page, sweep, demonstration and a run that is over, in a browser: they fit every screen, and axe finds nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import becomes

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
pytestmark = [
    pytest.mark.slow,
]
TOML = 'duration="2 s"', 'warmup="0 s"'


@contextmanager
def served(folder: Path, *words: str) -> Iterator[str]:
    """The address of a command's page."""
    command = [sys.executable, "-m", "tcpsbed", *words, "--no-browser"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert "http://" in line, line + process.stderr.read()
        yield line[line.index("http://") :].strip()
    finally:
        process.terminate()
        try:
            process.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shipped_scenarios: Path) -> Path:
    """Two runs and a sweep of the same scenario."""
    made = tmp_path_factory.mktemp("looks")
    scenario = str(shipped_scenarios / "quickstart.toml")
    short = [word for text in TOML for word in ("--set", text)]
    over = ["--over", "links.l1.rate=3 Mbit/s,4 Mbit/s", "--out", "sweep", "--jobs", "1"]
    for words in (["run", "--quiet"], ["run", "--quiet", "--seed", "2"], ["sweep", *over]):
        command = [sys.executable, "-m", "tcpsbed", words[0], scenario, *short, *words[1:]]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return made


def is_fit(page: Any) -> None:
    """No page is wider than its window, and axe has no complaint."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    for width in (390, 1280, 2200):
        page.set_viewport_size({"width": width, "height": 900})
        time.sleep(0.3)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = axe.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_start_page(folder: Path, opened: Callable[..., Any], scheme: str) -> None:
    with served(folder, "studio") as address:
        page = opened(address, color_scheme=scheme, bypass_csp=True)
        becomes(page, "document.querySelectorAll('.drawing svg').length > 3")
        becomes(page, "document.querySelectorAll('#runs input').length === 2")
        for number in (0, 1):
            page.locator("#runs input").nth(number).check()
        becomes(page, "document.querySelectorAll('#pair tbody tr').length === 24")
        is_fit(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_sweep(folder: Path, opened: Callable[..., Any], scheme: str) -> None:
    with served(folder, "studio", "sweep") as address:
        page = opened(address, color_scheme=scheme, bypass_csp=True)
        becomes(page, "document.querySelectorAll('#plot circle').length === 2")
        assert "Delay mean of kinematic" in page.text_content("#sentence")
        is_fit(page)


def test_a_report_draws_and_reaches_no_other_page(folder: Path, opened: Callable[..., Any]) -> None:
    """It stands in a folder, which may be a stranger's: its origin is none."""
    (run,) = [one for one in sorted((folder / "runs").iterdir()) if (one / "report.html").is_file()][:1]
    with served(folder, "studio", str(run)) as address:
        page = opened(address.replace("/?", "/report?"))
        becomes(page, "document.querySelectorAll('.uplot').length > 1")
        assert page.evaluate("self.origin") == "null"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_demonstration_in_virtual_time(tmp_path: Path, opened: Callable[..., Any], scheme: str) -> None:
    with served(tmp_path, "demo", "network", "--duration", "90 s", "--out", "run") as address:
        page = opened(address, color_scheme=scheme, bypass_csp=True)
        becomes(page, "document.querySelectorAll('#fall .bar i').length > 8", 30)
        tops = page.evaluate("[...document.querySelectorAll('#path rect')].map((r) => +r.getAttribute('y'))")
        assert len(set(tops)) == 2, "a row for each session"
        page.locator(".tour button.main").nth(1).click()
        becomes(page, "/\\d dropped in 10 s/.test(document.querySelector('#path').textContent)", 30)
        becomes(
            page,
            "[...document.querySelectorAll('#charts figure')].some((f) => /packet, k/.test(f.textContent))",
        )
        assert "cross traffic 500 kbit/s" in page.text_content("#path")
        is_fit(page)


def test_a_run_that_is_over_has_no_controls_and_its_totals(folder: Path, opened: Callable[..., Any]) -> None:
    with served(folder, "studio", "runs/latest") as address:
        page = opened(address, bypass_csp=True)
        becomes(page, "!document.querySelector('#report').hidden")
        becomes(page, "/mean/.test(document.querySelectorAll('#charts .readout')[4]?.textContent ?? '')")
        assert not page.is_visible("#steer")
        rates = page.locator("#charts .readout").nth(4).locator("b").all_text_contents()
        assert all(float(rate) > 10 for rate in rates), rates
        is_fit(page)


def test_labels_lie_between_boxes(folder: Path, opened: Callable[..., Any]) -> None:
    """No text of a link under a box, in a drawing with a label of two directions."""
    with served(folder, "studio", "runs/latest") as address:
        page = opened(address)
        becomes(page, "document.querySelectorAll('#path .edge text').length > 4")
        crossed = page.evaluate(
            "(() => { const box = (e) => e.getBoundingClientRect();"
            " const boxes = [...document.querySelectorAll('#path .box rect')].map(box);"
            " return [...document.querySelectorAll('#path .edge text')].filter((e) => e.textContent && boxes.some((b) =>"
            " box(e).left < b.right && box(e).right > b.left && box(e).top < b.bottom && box(e).bottom > b.top))"
            ".map((e) => e.textContent) })()"
        )
        assert crossed == []
