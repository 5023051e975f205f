"""The studio's page in a browser, beside runs on sockets: panels have data, sliders act on the emulator, one steers."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from browsing import becomes
from test_studio_live import Watched, until

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
SECONDS = 300
IN_FORCE_MS = 50
"""From the click to the event in force at the emulator, at most (median)."""
CHANGES = 15
pytestmark = [
    pytest.mark.realtime,
    pytest.mark.slow,
]


def ended(run: Watched) -> None:
    """One Ctrl-C ends the run, the next its page."""
    run.process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        run.process.wait(20)
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) in (0, 130), run.process.stderr and run.process.stderr.read()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, shipped_scenarios: Path) -> Iterator[Watched]:
    """One run for the tests that only look or change links: each has pages of its own."""
    out = tmp_path_factory.mktemp("page") / "out"
    made = Watched(
        shipped_scenarios / "quickstart.toml", out, "--set", 'measure.sync="125 ms"', seconds=SECONDS
    )
    yield made
    ended(made)


def ready(page: Any) -> None:
    becomes(page, "document.querySelectorAll('#fall .bar i').length > 4")
    becomes(page, "document.querySelectorAll('#presets button').length > 10")
    becomes(page, "document.querySelectorAll('#charts .readout b').length > 8")


def window(page: Any, chart: int) -> tuple[float, float]:
    """First and last moment that a chart's table shows."""
    times = page.evaluate(
        f"[...document.querySelectorAll('#charts figure')[{chart}].querySelectorAll('tbody th')].map((c) => +c.textContent)"
    )
    return times[0], times[-1]


def test_every_panel_has_data(watched: Watched, opened: Callable[..., Any]) -> None:
    page = opened(watched.address)
    ready(page)
    becomes(page, "document.querySelectorAll('#charts figure:not([hidden]) .uplot').length === 8")
    becomes(
        page,
        "[...document.querySelectorAll('#charts figure:not([hidden]) .readout')].every((r) => /\\d/.test(r.textContent))",
    )
    becomes(page, "/0\\.\\d+ ms/.test(document.querySelector('#path').textContent)")
    drawing = page.text_content("#path")
    assert all(text in drawing for text in ("4 Mbit/s, 5 ms", "cross traffic", " of 15 kB")), drawing
    becomes(page, "/Emulation error of the fastest/.test(document.querySelector('#health').textContent)")
    becomes(
        page,
        "/Clock offset of (edge at operator|operator at edge): [+−]\\d/.test(document.querySelector('#health').textContent)",
    )
    assert "rows shown" in page.text_content("#health")
    assert "None so far" in page.text_content("#events")
    preset = page.locator("#presets button", has_text="5g-edge").text_content()
    assert "1.5 Mbit/s · 18 + 8 ms · 2 %" in preset.replace("\u00a0", " "), preset
    assert page.locator("#switches button").all_text_contents()[:6] == [
        "kinematic",
        "haptic",
        "audio",
        "video",
        "cbr",
        "vbr",
    ]
    page.hover("#health [data-term]")
    assert "Difference between two clocks" in page.text_content("#tip")
    page.click("#fall [data-flow=haptic]")
    total, parts = page.evaluate(
        "(() => { const row = document.querySelectorAll('#fall .row')[1];"
        " return [parseFloat(row.querySelector('.total').textContent),"
        " [...row.querySelectorAll('.parts td:nth-child(2)')].reduce((sum, c) => sum + +c.textContent, 0)] })()"
    )
    assert parts == pytest.approx(total, rel=0.05)


def test_a_slider_moves_the_measured_delay_soon_after_the_click(
    watched: Watched, opened: Callable[..., Any]
) -> None:
    page = opened(watched.address)
    ready(page)
    page.select_option("#link", "access")
    before = page.evaluate("parseFloat(document.querySelector('#fall .total').textContent)")
    page.evaluate(
        "window.clicks = [];"
        "document.addEventListener('change', () => clicks.push(performance.timeOrigin + performance.now()), true)"
    )
    slider = page.locator("#slide-delay")
    with watched.viewer() as viewer:
        for number in range(CHANGES):
            slider.focus()
            slider.press("ArrowRight" if number % 2 else "ArrowLeft")
            time.sleep(0.13)
        page.fill("#number-delay", "41")
        page.press("#number-delay", "Enter")
        zero_s = run_began(viewer)
        becomes(page, "document.querySelectorAll('#events li .flag').length >= 16")
        happened = until(viewer, lambda told: told["k"] == "now" and len(told["events"]) > CHANGES)["events"]
    clicks = page.evaluate("clicks")
    assert len(clicks) == CHANGES + 1
    late_ms = [
        1000 * (event["t_s"] - (click / 1000 - zero_s)) for event, click in zip(happened, clicks, strict=True)
    ]
    print("from click to event in force, ms:", [round(late) for late in sorted(late_ms)])
    assert 0 < statistics.median(late_ms) <= IN_FORCE_MS
    becomes(
        page,
        f"Math.abs(parseFloat(document.querySelector('#fall .total').textContent) - {before} - 40) < 1.5",
    )
    assert "access: delay 41 ms (viewer" in page.text_content("#events")
    page.locator("#presets button", has_text="scenario").click()
    becomes(
        page, f"Math.abs(parseFloat(document.querySelector('#fall .total').textContent) - {before}) < 1.5"
    )


def run_began(viewer: Any) -> float:
    """When the run began on the wall clock, s: by refused requests, of which the fastest answer bounds the error."""
    best = (float("inf"), 0.0)
    for number in range(20):
        sent = time.time()
        viewer.send(json.dumps({"k": "event", "id": f"clock {number}", "event": {"reroute": True}}))
        told = until(viewer, lambda told, id=f"clock {number}": told["k"] == "asked" and told["id"] == id)
        came = time.time()
        assert told["refused"].endswith("steers")
        best = min(best, (came - sent, (sent + came) / 2 - told["asked_s"]))
    return best[1]


def test_a_window_of_all_charts_is_dragged_scrolled_and_left(
    watched: Watched, opened: Callable[..., Any]
) -> None:
    page = opened(watched.address)
    ready(page)
    becomes(page, "parseFloat(document.querySelector('#clock').textContent) > 8")
    for number in (0, 5):
        page.locator("#charts summary").nth(number).click()
    page.locator("#charts .u-over").first.scroll_into_view_if_needed()
    over = page.locator("#charts .u-over").first.bounding_box()
    page.mouse.move(over["x"] + over["width"] * 0.4, over["y"] + 60)
    page.mouse.down()
    page.mouse.move(over["x"] + over["width"] * 0.7, over["y"] + 70, steps=4)
    page.mouse.up()
    becomes(page, "!document.querySelector('#follow').hidden")
    time.sleep(0.6)
    from_s, to_s = window(page, 0)
    now_s = page.evaluate("parseFloat(document.querySelector('#clock').textContent)")
    assert 0.3 * now_s < from_s < to_s < 0.8 * now_s
    assert window(page, 5) == pytest.approx((from_s, to_s), abs=0.3)
    time.sleep(1)
    assert window(page, 0) == (from_s, to_s), "it stays while the run goes on"
    page.locator("#scroll").press("Home")
    becomes(page, "+document.querySelector('#charts tbody th').textContent < 0.2")
    page.locator("#charts figure").first.focus()
    page.keyboard.press("ArrowRight")
    becomes(page, "+document.querySelector('#charts tbody th').textContent > 0.2")
    page.click("#spans [data-span='10']")
    becomes(page, "document.querySelector('#follow').hidden")
    first = page.evaluate("+document.querySelector('#charts tbody th').textContent")
    becomes(page, f"+document.querySelector('#charts tbody th').textContent > {first} + 1")
    page.click("#pause")
    time.sleep(0.5)
    stands = page.text_content("#fall")
    time.sleep(1.5)
    assert page.text_content("#fall") == stands
    page.click("#pause")
    page.click("#legend button >> nth=0")
    assert page.locator("#charts figure:visible").count() == 7


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600, 2200])
def test_it_fits_every_screen_and_axe_finds_nothing(
    watched: Watched, opened: Callable[..., Any], width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = opened(watched.address, width, color_scheme=scheme, bypass_csp=True)
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(14, 17, 22)") == (scheme == "dark")
    page.locator("#charts summary").first.click()
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_by_keys_alone(watched: Watched, opened: Callable[..., Any]) -> None:
    page = opened(watched.address)
    ready(page)

    def reach(holds: str) -> None:
        for _ in range(120):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({json.dumps(holds)})"):
                return
        raise AssertionError(f"no key leads to {holds}")

    reach("[data-term]")
    assert page.is_visible("#tip")
    reach("#charts figure")
    page.keyboard.press("+")
    becomes(page, "!document.querySelector('#follow').hidden")
    page.keyboard.press("Escape")
    becomes(page, "document.querySelector('#follow').hidden")
    reach("#charts summary")
    page.keyboard.press("Enter")
    becomes(page, "document.querySelectorAll('#charts tbody tr').length > 3")
    reach("#slide-loss")
    page.keyboard.press("ArrowRight")
    becomes(page, "/l1: loss 0.01 %/.test(document.querySelector('#events').textContent)")
    reach("#cut")
    page.keyboard.press("Enter")
    becomes(page, "document.querySelector('#cut').textContent === 'Restore'")
    page.keyboard.press("Enter")
    becomes(page, "document.querySelector('#cut').textContent === 'Cut'")


def test_one_of_two_viewers_steers(watched: Watched, opened: Callable[..., Any]) -> None:
    first, second = opened(watched.address), opened(watched.address, 390)
    ready(first)
    ready(second)
    first.click("#switches button >> text=cbr")
    becomes(first, "/You steer/.test(document.querySelector('#control').textContent)")
    becomes(first, "/traffic cbr stopped .viewer/.test(document.querySelector('#events').textContent)")
    becomes(second, "/Viewer \\d+ steers/.test(document.querySelector('#control').textContent)")
    becomes(second, "/traffic cbr stopped .viewer/.test(document.querySelector('#events').textContent)")
    assert second.is_disabled("#slide-delay") and second.is_disabled("#cut")
    seen_s = first.evaluate("parseFloat(document.querySelector('#clock').textContent)")
    first.reload()
    ready(first)
    first.locator("#charts summary").first.click()
    becomes(first, "document.querySelectorAll('#charts tbody tr').length > 3")
    from_s, to_s = window(first, 0)
    assert from_s < 2 and to_s > seen_s - 5, "the whole run's curves come again"
    becomes(first, "/You steer/.test(document.querySelector('#control').textContent)")
    assert "traffic cbr stopped" in first.text_content("#events")
    second.click("#control button")
    becomes(first, "/asks for control/.test(document.querySelector('#control').textContent)")
    first.click("#control button >> text=Hand over")
    becomes(second, "/You steer/.test(document.querySelector('#control').textContent)")
    assert first.is_disabled("#slide-delay") and second.is_enabled("#slide-delay")
    second.click("#switches button >> text=cbr")
    becomes(second, "/traffic cbr started/.test(document.querySelector('#events').textContent)")


def test_a_name_with_markup_stays_text_and_a_refusal_has_its_reason(
    watched: Watched, opened: Callable[..., Any]
) -> None:
    page = opened(watched.address)
    ready(page)
    name = "<img src=x onerror=alert(1)>"
    with watched.viewer() as viewer:
        viewer.send(
            json.dumps({"k": "event", "id": "1", "event": {"link": "l1", "delay": "5 ms", "name": name}})
        )
        becomes(page, "document.querySelector('#events').textContent.includes('<img src=x')")
        assert page.locator("#events img").count() == 0
        viewer.send(json.dumps({"k": "event", "id": "2", "event": {"link": "nowhere", "delay": "5 ms"}}))
        becomes(page, "/refused: .*nowhere/.test(document.querySelector('#events').textContent)")
        viewer.send(json.dumps({"k": "event", "id": "3", "event": {"link": "l1", "jitter": "5 ms"}}))
        becomes(page, "/refused: .*jitter/.test(document.querySelector('#events').textContent)")


def test_a_wrong_token_is_refused(watched: Watched) -> None:
    for path in ("/", "/presets.json", "/terms.json", "/scenario.toml"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{watched.port}{path}?token=wrong")


def test_a_browser_without_websockets_shows_the_run_and_changes_nothing(
    watched: Watched, browser: Any
) -> None:
    page = browser.new_page()
    page.add_init_script("delete window.WebSocket")
    page.goto(watched.address)
    becomes(page, "/no WebSocket/.test(document.querySelector('#why').textContent)")
    ready(page)
    assert page.is_disabled("#slide-delay")
    seen_s = page.evaluate("parseFloat(document.querySelector('#clock').textContent)")
    becomes(page, f"parseFloat(document.querySelector('#clock').textContent) > {seen_s} + 1")
    page.close()


def test_a_browser_without_a_canvas_gets_tables(watched: Watched, opened: Callable[..., Any]) -> None:
    page = opened("about:blank")
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.goto(watched.address)
    becomes(page, "document.querySelectorAll('#charts tbody tr').length > 30")
    page.reload()
    becomes(page, "document.querySelectorAll('#charts tbody tr').length > 30")
    assert page.locator("#charts .uplot").count() == 0


def test_a_component_dies_lives_again_and_the_run_ends(
    tmp_path: Path, shipped_scenarios: Path, opened: Callable[..., Any]
) -> None:
    run = Watched(shipped_scenarios / "quickstart.toml", tmp_path / "out", seconds=14)
    try:
        page = opened(run.address)
        ready(page)
        page.click("#switches button >> text=srv")
        becomes(page, "/component srv killed/.test(document.querySelector('#events').textContent)")
        becomes(page, "/lost/.test(document.querySelector('#fall').textContent)")
        page.click("#switches button >> text=srv")
        becomes(page, "/component srv restarted/.test(document.querySelector('#events').textContent)")
        page.locator("#presets button", has_text="wifi-crowded").click()
        becomes(page, "document.querySelector('#presets [data-preset=wifi-crowded]').ariaPressed === 'true'")
        becomes(page, "!document.querySelector('#report').hidden", 60)
        becomes(page, "/Emulation error .*p99/.test(document.querySelector('#health').textContent)")
        becomes(page, "document.querySelectorAll('#more table').length > 10")
        assert page.locator("#spread canvas").count() == 4
        assert not page.is_visible("#steer"), "nothing can be changed any more"
        page.click("#report")
        page.wait_for_selector("h1")
        names = [one["name"] for one in json.loads((tmp_path / "out/summary.json").read_text())["events"]]
        assert [name.split(" (")[0] for name in names] == [
            "component srv killed",
            "component srv restarted",
            "l1.forward: preset wifi-crowded",
            "l1.backward: preset wifi-crowded",
        ]
    finally:
        ended(run)
