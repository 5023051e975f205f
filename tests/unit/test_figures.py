"""What is drawn: lines over bins shorter than a period, zoom, ticks that leave room, and one palette everywhere."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tcpsbed
from tcpsbed import palette
from tcpsbed.analysis import Run
from tcpsbed.lab.control import figure
from tcpsbed.views import charts, html

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
    assert charts.colors(["a", "b"]) == dict(zip("ab", palette.PALETTE[:2], strict=True))
    assert run.plot.delay().lines[0].get_color() == palette.PALETTE[0]
    figure_, axes = figure.plot("")
    assert figure_ is not None and axes is not None
    with palette.drawn():
        from matplotlib.figure import Figure

        assert Figure().subplots().plot([0])[0].get_color() == palette.PALETTE[0]
    own = [
        f"{file.relative_to(package)}: {found}"
        for file in package.rglob("*.py")
        if file.name != "palette.py"
        for found in re.findall(r"#[0-9A-Fa-f]{6}\b", file.read_text(encoding="utf-8"))
    ]
    assert own == [], "colours come from tcpsbed.palette"
    style = (html.HERE / "style.css").read_text(encoding="utf-8").upper()
    assert f"--COMPONENT: {palette.COMPONENT}".upper() in style
    assert f"--LINK: {palette.LINK}".upper() in style


needs_browser = pytest.mark.skipif(
    BROWSER is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium and the package playwright",
)


@pytest.fixture
def opened(run: Run) -> Iterator[Any]:
    """Opens pages of a run in a browser."""
    from playwright.sync_api import sync_playwright

    html.write(run.folder)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])

        def open_(width: int) -> Any:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto((run.folder / "report.html").as_uri())
            return page

        yield open_
        browser.close()


def scale(page: Any) -> tuple[float, float]:
    """Ends of the first chart's x axis."""
    low, high = page.evaluate(
        "(() => { const x = document.querySelector('.chart').plot.scales.x; return [x.min, x.max]; })()"
    )
    return low, high


@needs_browser
def test_zooming_in_shows_the_part_that_was_marked(opened: Any) -> None:
    page = opened(1200)
    assert scale(page)[0] == 0
    over = page.locator(".u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 50, steps=5)
    page.mouse.up()
    low, high = scale(page)
    assert (low, high) == (pytest.approx(1.0, abs=0.05), pytest.approx(1.5, abs=0.05))
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 50)
    assert scale(page)[0] == 0 and scale(page)[1] > 1.9


@needs_browser
def test_gaps_are_drawn_for_outages_only(opened: Any) -> None:
    found = opened(1200).evaluate(
        "document.querySelector('.chart').plot.series.slice(1, 3).map((s) => s._paths.gaps.length)"
    )
    assert found == [1, 1]


@needs_browser
@pytest.mark.parametrize("width", [400, 700, 1200])
def test_ticks_below_bars_leave_each_other_room(opened: Any, width: int) -> None:
    places = """[...document.querySelectorAll('.axis')].map((axis) => [...axis.children].map((tick) => {
        const range = document.createRange();
        range.selectNodeContents(tick);
        const box = range.getBoundingClientRect();
        return [box.left, box.right];
    }))"""
    found = opened(width).evaluate(places)
    assert found
    for ticks in found:
        for (_, right), (left, _) in pairwise(ticks):
            assert right < left, ticks
