"""What is drawn: lines over bins shorter than a period, zoom, ticks that leave room, and one palette everywhere."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import becomes
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import Run, drawing, palette
from tcpsbed.cli.app import app
from tcpsbed.studio import freeze

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
SLOW = """
duration = "2 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "30 Hz"
[links.wan]
from = "a"
to = "b"
delay = "1 ms"
jitter = { kind = "uniform", low = "0 ms", high = "4 ms" }
[[events]]
at = "1 s"
link = "wan"
up = false
[[events]]
at = "1.4 s"
link = "wan"
up = true
[measure]
grace = "10 ms"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """30 samples a second in bins of 5 ms, with an outage of 0.4 s."""
    return tcpsbed.run(SLOW, out=tmp_path_factory.mktemp("slow") / "run")


def test_a_line_goes_on_over_bins_in_which_no_sample_was_due_and_stops_at_an_outage(run: Run) -> None:
    curve = run.series["flows"]["kinematic"]
    assert run.series["bin_s"] < 1 / 30 < curve["bridge_s"] < 0.4
    assert sum(value is None for value in curve["delay_mean_ms"]) > 200, "most bins are empty"
    (line,) = run.plot.delay().lines[:1]
    times = line.get_xdata()
    (gap,) = [time for time, y in zip(times, line.get_ydata(), strict=True) if math.isnan(y)]
    assert 1 < gap < 1.45
    assert len(times) > 40, "a point for each sample"


def test_rate_and_age_are_no_comb_where_bins_are_shorter_than_the_period(run: Run) -> None:
    curve = run.series["flows"]["kinematic"]
    before = [rate for t, rate in zip(run.series["t_s"], curve["rate_bps"], strict=True) if 0.3 < t < 0.8]
    assert max(before) < 1.25 * min(before)
    ages = [age for t, age in zip(run.series["t_s"], curve["age_ms"], strict=True) if 0.3 < t < 0.8]
    assert max(ages) < 1.5 * min(ages)


def test_a_cumulative_curve_begins_at_0(run: Run) -> None:
    (line,) = run.plot.cdf().lines
    assert line.get_ydata()[0] == 0 and line.get_ydata()[-1] == 1


def test_one_palette_paints_page_and_figures(run: Run) -> None:
    package = Path(tcpsbed.__file__).parent
    assert run.plot.delay().lines[0].get_color() == palette.PALETTE[0]
    with drawing.styled():
        from matplotlib.figure import Figure

        assert Figure().subplots().plot([0])[0].get_color() == palette.PALETTE[0]
    own = [
        f"{file.relative_to(package)}: {found}"
        for file in package.rglob("*.py")
        if file.name != "palette.py"
        for found in re.findall(r"#[0-9A-Fa-f]{6}\b", file.read_text(encoding="utf-8"))
    ]
    assert own == [], "colours come from tcpsbed.palette"
    style = (freeze.PAGE / "studio.css").read_text(encoding="utf-8").upper()
    for name, colour in (
        ("component", palette.COMPONENT),
        ("link", palette.LINK),
        ("lost", palette.LOST),
        ("flow0", palette.PALETTE[0]),
        ("flow1", palette.PALETTE[1]),
    ):
        assert f"--{name}: light-dark({colour}".upper() in style


needs_browser = pytest.mark.skipif(
    BROWSER is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium and the package playwright",
)


@pytest.fixture
def wrong() -> list[str]:
    """What a page said on the console, threw or asked for."""
    return []


@pytest.fixture
def opened(run: Run, wrong: list[str]) -> Iterator[Any]:
    """Opens the report of a run from the disk, without a network; nothing may go wrong in it."""
    from playwright.sync_api import sync_playwright

    freeze.write(run.folder)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])

        def open_(width: int = 1280, file: Path | None = None, **keys: Any) -> Any:
            context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **keys)
            page = context.new_page()
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("console", lambda said: wrong.append(said.text))
            page.on(
                "request", lambda asked: None if asked.is_navigation_request() else wrong.append(asked.url)
            )
            page.goto((file or run.folder / "report.html").as_uri())
            if file is None and keys.get("java_script_enabled", True):
                becomes(page, "document.querySelector('#charts figure')?.plot.data[0].length > 1")
            return page

        yield open_
        assert wrong == []
        browser.close()


def window(page: Any) -> tuple[float, float]:
    """Ends of the first chart's x axis."""
    low, high = page.evaluate(
        "(() => { const x = document.querySelector('#charts figure').plot.scales.x; return [x.min, x.max]; })()"
    )
    return low, high


@needs_browser
def test_zooming_in_shows_the_part_that_was_marked(opened: Any) -> None:
    page = opened()
    assert window(page) == (0, pytest.approx(2, abs=0.05))
    over = page.locator("#charts .u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 50, steps=5)
    page.mouse.up()
    becomes(page, "document.querySelector('#charts figure').plot.scales.x.min > 0.5")
    assert window(page) == (pytest.approx(1.0, abs=0.05), pytest.approx(1.5, abs=0.05))
    page.locator("#charts figure").first.press("Escape")
    becomes(page, "document.querySelector('#charts figure').plot.scales.x.min === 0")


@needs_browser
def test_gaps_are_drawn_for_outages_only(opened: Any) -> None:
    found = opened().evaluate(
        "document.querySelector('#charts figure').plot.series.slice(1, 3).map((s) => s._paths.gaps.length)"
    )
    assert found == [1, 1]


@needs_browser
@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "light"), (2200, "dark")]
)
def test_a_report_is_whole_in_one_file(opened: Any, wrong: list[str], width: int, scheme: str) -> None:
    page = opened(width, color_scheme=scheme)
    assert re.match(r"\d+ % of the delay of kinematic is .* is lost", page.inner_text("#sentence"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(14, 17, 22)") == (scheme == "dark")
    assert page.locator("#fall .bar i").count() and page.locator("#path svg").count() == 1
    leads = "(a) => document.querySelector(a.hash).checkVisibility()"
    assert page.evaluate(f"[...document.querySelectorAll('#contents a')].every({leads})")
    assert page.locator("#contents a").count() > 8
    assert page.locator("text=Steer").is_hidden()
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'found = 1'}))"
    )
    assert page.evaluate("typeof found") == "undefined"
    assert "Content Security Policy" in wrong.pop()


@needs_browser
@pytest.mark.parametrize(
    ("words", "charts"),
    [
        ("compare RUN RUN --page page.html", 1),
        ("check-qos RUN --profile telehaptics --page page.html", 0),
        ("step STEP --runs 1 --out out", 1),
        ("map STEP --cells 2x2 --runs 1 --out out", 1),
    ],
)
def test_pages_of_commands_are_drawn_under_their_policy(
    run: Run,
    shipped_scenarios: Path,
    opened: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    charts: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    named = {"RUN": str(run.folder), "STEP": str(shipped_scenarios / "step.toml")}
    done = CliRunner().invoke(app, [named.get(word, word) for word in words.split()])
    assert done.exit_code == 0, done.output
    [file] = tmp_path.rglob("*.html")
    page = opened(file=file)
    becomes(page, "document.documentElement.classList.contains('drawn')")
    becomes(page, f"[...document.querySelectorAll('figure')].filter((one) => one.plot).length === {charts}")
    leads = "(a) => document.querySelector(a.hash).checkVisibility()"
    assert page.evaluate(f"[...document.querySelectorAll('#contents a')].every({leads})")
    assert page.locator("#contents a").count() >= 1 + charts
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground not in ("rgba(0, 0, 0, 0)", ""), "its style was let in"


@needs_browser
def test_a_distribution_answers_at_any_x(opened: Any) -> None:
    page = opened()
    box = page.locator("#spread .u-over").first.bounding_box()
    page.locator("#spread .u-over").first.hover(position={"x": 2, "y": 20})
    assert page.inner_text("#spread .readout b >> nth=0") == "0"
    page.locator("#spread .u-over").first.hover(position={"x": box["width"] - 2, "y": 20})
    assert float(page.inner_text("#spread .readout b >> nth=0")) > 0.9


@needs_browser
def test_charts_are_saved_as_pictures_and_numbers(opened: Any, tmp_path: Path) -> None:
    page = opened()
    for chart in ("#charts figure", "#spread figure"):
        kept = {}
        for kind in ("PNG", "SVG", "CSV"):
            with page.expect_download() as download:
                page.locator(chart).first.get_by_text(kind, exact=True).click()
            kept[kind] = Path(download.value.path()).read_bytes()
        assert kept["PNG"].startswith(b"\x89PNG") and kept["SVG"].count(b"<path") > 5
        assert (b"clip-path" in kept["SVG"] and b"Delay" in kept["SVG"]) or b"delay" in kept["SVG"]
        head, *rows = kept["CSV"].decode().splitlines()
        assert "," in head and len(rows) > 10 and all(row.count(",") == head.count(",") for row in rows)


@needs_browser
def test_without_scripts_there_are_the_tables(opened: Any) -> None:
    page = opened(java_script_enabled=False)
    assert page.locator("table").count() > 5 and "of the delay of" in page.inner_text("#sentence")
    assert page.locator("#fall").is_hidden() and page.locator("#strip").is_hidden()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_report(opened: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    found = axe.Axe().run(opened(color_scheme=scheme, bypass_csp=True))
    assert found.violations_count == 0, found.generate_report()
