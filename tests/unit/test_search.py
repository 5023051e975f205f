"""Searches: the sequential test, how often the interval is right, the curve beside the whole grid, kills, bad input."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from typing import Any

import pytest
from command import scenario, start, tcpsbed

import tcpsbed as package
from tcpsbed.analysis.stats import Interval
from tcpsbed.archive import packing
from tcpsbed.campaign import design, sequential, worker
from tcpsbed.campaign.search import asked, ground, optimum, picture
from tcpsbed.campaign.search import page as search_page
from tcpsbed.campaign.search.bisection import Line, bisected
from tcpsbed.campaign.search.boundary import Boundary
from tcpsbed.campaign.search.contour import BoundaryCurve
from tcpsbed.campaign.search.curve import Edge, Traced, traced
from tcpsbed.campaign.search.found import Context
from tcpsbed.campaign.search.ground import Runs
from tcpsbed.campaign.search.opened import opened
from tcpsbed.campaign.search.optimum import Optimum, Trial
from tcpsbed.campaign.search.votes import Answers, Batch, Index, Votes, answered
from tcpsbed.drawing import STYLES, saved
from tcpsbed.errors import ConfigError, DataError, TcpsbedError
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.views.metric import named

QUICKSTART = Path(__file__).resolve().parents[2] / "scenarios/quickstart.toml"
SEEDS = 20
LATE = "haptic.delay_ms.p99 > 30"


def looks(most: int) -> list[int]:
    """Numbers of seeds at which a campaign looks."""
    rule, ends = design.condition(LATE), [min(2, most)]
    while ends[-1] < most:
        ends.append(min(rule.more(ends[-1]), most))
    return ends


@dataclass
class Synthetic:
    """Answers of a metric that is known: above 0 the condition holds. Counts the runs that they take."""

    metric: Callable[[Index, int], float]
    seeds: int = SEEDS
    runs: dict[Index, int] = field(default_factory=dict)

    def __call__(self, batch: Batch) -> Answers:
        return {point: self.votes(point, 2 if batch.glance else self.seeds) for point in batch.points}

    def votes(self, point: Index, most: int) -> Votes:
        values = [self.metric(point, seed) for seed in range(most)]
        for number in looks(most):
            holding = [value > 0 for value in values[:number]]
            if sequential.decided(number, sum(holding)) is not None:
                break
        self.runs[point] = max(number, self.runs.get(point, 0))
        return Votes(tuple(values[:number]), tuple(holding))


def deciding(p: float, most: int) -> tuple[float, float]:
    """Exact probabilities that the test ever says yes, and no, within so many seeds, if a share p of all hold."""
    open_, said = {0: 1.0}, {True: 0.0, False: 0.0}
    for n in range(1, most + 1):
        after: dict[int, float] = {}
        for k, share in open_.items():
            for more, chance in ((1, p), (0, 1 - p)):
                after[k + more] = after.get(k + more, 0.0) + share * chance
        open_ = {}
        for k, share in after.items():
            answer = sequential.decided(n, k)
            if answer is None:
                open_[k] = share
            else:
                said[answer] += share
    return said[True], said[False]


def test_a_wrong_decision_is_as_rare_as_it_says_and_a_right_one_comes() -> None:
    """[Robbins 1970] Looked at after every seed, for ever: here 150 of them, computed exactly."""
    for p in (0.3, 0.45, 0.5):
        yes, _ = deciding(p, 150)
        assert yes <= 1 / sequential.ONE_IN
    assert deciding(0.5, 150)[0] > 0.6 / sequential.ONE_IN, "the bound is used, not only kept"
    yes, no = deciding(0.5, 150)
    assert yes == pytest.approx(no)
    assert deciding(0.9, 40)[0] > 0.95 and deciding(0.1, 40)[1] > 0.95


def test_the_test_is_the_mixture_that_is_written() -> None:
    """[Robbins 1970] Half of p = 1, half of p uniform above 1/2, integrated in small steps."""
    for n in range(1, 25):
        for k in range(n + 1):
            steps = 20_000
            middle = ((0.5 + (i + 0.5) / (2 * steps)) for i in range(steps)) if (n * 31 + k) % 40 == 0 else ()
            values = [(2 * p) ** k * (2 * (1 - p)) ** (n - k) for p in middle]
            if values:
                mixture = 0.5 * (2**n * (k == n)) + 0.5 * math.fsum(values) / steps
                exact = 0.5 * 2**n * (k == n) + sum(comb(n + 1, i) for i in range(k + 1)) / (
                    2 * (n + 1) * comb(n, k)
                )
                assert mixture == pytest.approx(exact, rel=1e-4)
    assert next(n for n in range(1, 10) if sequential.decided(n, n)) == sequential.FEWEST


def searched(cells: int, draws: random.Random, spread: float, shared: bool) -> tuple[Line, float, int]:
    """A search for a boundary of which the place is known; each seed turns at one of its own, or at any anew."""
    true = draws.uniform(0.05, 0.95) * cells
    own = [true + draws.gauss(0, spread) for _ in range(SEEDS)]
    kept: dict[tuple[Index, int], float] = {}

    def metric(point: Index, seed: int) -> float:
        at = own[seed] if shared else kept.setdefault((point, seed), true + draws.gauss(0, spread))
        return point[0] - at

    answers = Synthetic(metric)
    line = answered(bisected(cells), answers)
    return line, true, sum(answers.runs.values())


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("spread", [0.2, 1.5])
def test_the_interval_holds_the_boundary_in_95_of_100_searches(spread: float, shared: bool) -> None:
    """[Waeber 2013] Over 400 searches of 51 values; with less than a fifth of the runs of the grid."""
    draws, cells, trials = random.Random(7), 50, 400
    found = [searched(cells, draws, spread, shared) for _ in range(trials)]
    lines = [(line, true) for line, true, _ in found if line.low is not None and line.high is not None]
    assert len(lines) > 0.97 * trials, "nearly every search finds an interval"
    missed = sum(not line.low <= true <= line.high for line, true in lines)  # type: ignore[operator]
    assert missed <= 0.05 * trials
    wide = sum(line.high - line.low for line, _ in lines) / len(lines)  # type: ignore[operator]
    assert wide <= 1.1 + 3 * spread, "and is no wider than the seeds differ"
    assert sum(runs for *_, runs in found) / trials < (cells + 1) * SEEDS / 5


def test_a_condition_that_ceases_to_hold_is_found_as_well() -> None:
    line = answered(bisected(50), Synthetic(lambda point, seed: 31.5 - point[0]))
    assert (line.low, line.high, line.rising) == (31, 32, False)


def test_ends_that_do_not_bracket_are_said() -> None:
    for constant in (1.0, -1.0):
        answers = Synthetic(lambda point, seed, value=constant: value)  # type: ignore[misc]
        line = answered(bisected(50), answers)
        assert line.low is None and not line.turns and len(answers.runs) == 5, "nothing between is searched"
    line = answered(bisected(50), Synthetic(lambda point, seed: point[0] + (-1) ** seed))
    assert line.low is None and line.known[0].answer is None, "an end that is not decided brackets nothing"


def test_an_answer_that_turns_more_than_once_is_said() -> None:
    wave = Synthetic(lambda point, seed: abs(point[0] - 25) - 10.5)
    line = answered(bisected(50), wave)
    assert line.low is None and len(line.turns) == 2
    assert all(a <= turn <= b for (a, b), turn in zip(line.turns, (14.5, 35.5), strict=True))
    own = {seed: 20.5 + seed % 3 for seed in range(SEEDS)}
    mixed = Synthetic(lambda point, seed: (point[0] - own[seed]) * (-1 if seed == 4 and point[0] > 40 else 1))
    reversing, several = answered(bisected(50), mixed).reversing
    assert reversing == 1 and several == SEEDS


def curves(draws: random.Random, n: int) -> dict[str, Callable[[float, float], float]]:
    """Surfaces whose zero is a curve over the unit square, of many shapes."""
    a, b = draws.uniform(0.3, 0.7), draws.uniform(0.05, 0.3)
    return {
        "falling": lambda x, y: x + y - 2 * a,
        "steep": lambda x, y: y - 1 / (1 + math.exp(-40 * (x - a))),
        "level": lambda x, y: y - a,
        "upright": lambda x, y: x - a,
        "hyperbola": lambda x, y: (x + 0.1) * (y + 0.1) - b,
        "stairs": lambda x, y: x + math.floor(4 * y) / 5 - a - 0.3,
        "ring": lambda x, y: (x - 0.5) ** 2 + (y - 0.5) ** 2 - (0.25 + b / 3) ** 2,
        "two": lambda x, y: abs(x - 0.5) - a / 2,
    }


def whole(answers: Synthetic, n: int) -> set[Edge]:
    """Edges of the whole grid whose ends differ."""
    said = {(i, j): answers.votes((i, j), SEEDS).majority for i in range(n + 1) for j in range(n + 1)}
    after = [(a, b) for a in said for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)) if b in said]
    return {(a, b) for a, b in after if said[a] != said[b]}


@pytest.mark.slow
@pytest.mark.parametrize("shape", list(curves(random.Random(0), 1)))
def test_the_curve_is_that_of_the_whole_grid_for_a_fifth_of_its_runs(shape: str) -> None:
    """[Lorensen 1987] 1681 points, of which the curve needs those beside it: edge for edge the same, so within one cell."""
    draws, n = random.Random(shape), 40
    for _ in range(2):
        surface, noise = curves(draws, n)[shape], [draws.gauss(0, 0.01) for _ in range(SEEDS)]

        def metric(point: Index, seed: int, of: Any = surface, more: list[float] = noise) -> float:
            return float(of(point[0] / n, point[1] / n)) + more[seed]

        answers = Synthetic(metric)
        found: Traced = answered(traced(n, n), answers)
        runs, grid = sum(answers.runs.values()), Synthetic(metric)
        assert set(found.edges) == whole(grid, n) and found.edges
        assert runs <= SEEDS * (n + 1) ** 2 / 5, "of a grid under all seeds"
        assert runs <= sum(grid.runs.values()) / 4, "and far less than a grid whose points stop early as well"
        ends = {edge for pair in found.segments for edge in pair}
        assert ends == set(found.edges), "every edge is part of the drawn curve"


def opened_again(found: BoundaryCurve | Optimum) -> BoundaryCurve | Optimum:
    """The result that the folder of a search holds which found this."""
    folder = found.context.folder
    (folder / "sweep.json").write_text('{"cells": [], "ended": {"failed": 0, "spared": 0}}')
    (folder / "search.json").write_text(json.dumps(found.figures))
    again = opened(folder)
    assert isinstance(again, type(found))
    return again


def context(folder: Path) -> Context:
    """A search under 20 seeds."""
    return Context("quickstart", "virtual", 700_000_000, 3, SEEDS, folder, 50, 1, ("--seeds", "20"))


def curved(folder: Path, surface: Callable[[int, int], float]) -> BoundaryCurve:
    """A search for a surface's 35 ms over 5 x 5 points, of which all seeds say the same."""
    over = asked.gridded(["links.l1.delay=0..40 ms step 10", "links.access.rate=0..4 Mbit/s step 1"])
    late = asked.condition("kinematic.delay_ms.p99 > 35", "until")

    def votes(batch: Batch) -> Answers:
        seeds = 2 if batch.glance else 6
        middles = {(x, y): surface(x, y) for x, y in batch.points}
        return {at: Votes((ms,) * seeds, (late.holds(ms),) * seeds) for at, ms in middles.items()}

    return BoundaryCurve(context(folder), over, late, answered(traced(4, 4), votes))


def valley(x: int, y: int) -> float:
    """35 ms where the second number is 2, and by half of 3.5 less the first more or less."""
    return 10.0 * x + 20.0 * abs(y - 2)


def test_a_curve_is_printed_in_units_and_read_from_its_folder(tmp_path: Path) -> None:
    found = curved(tmp_path, lambda x, y: 10.0 * x + 10.0 * y)
    heads, _, *lines = str(found).splitlines()
    assert heads.split() == ["links.access.rate", "Mbit/s", "turns", "between,", "links.l1.delay", "ms"]
    assert [line.split() for line in lines[:4]] == [
        [str(y), str(30 - 10 * y), "…", str(40 - 10 * y)] for y in range(4)
    ]
    assert lines[5].startswith("kinematic.delay_ms.p99 > 35 turns along a curve over (links.l1.delay, ")
    assert opened_again(found) == found


def colors() -> Any:
    return pytest.importorskip("matplotlib.colors")


def drawn(found: Boundary | BoundaryCurve, file: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The axes of the figure of a result, which is in its file."""
    pytest.importorskip("matplotlib")
    figures: list[Any] = []

    def keep(figure: Any, *rest: Any, **more: Any) -> Path:
        figures.append(figure)
        return saved(figure, *rest, **more)

    monkeypatch.setattr(picture, "saved", keep)
    assert found.draw(file) == file
    assert found.sentences[0][:20] in file.read_text(encoding="utf-8").replace("&gt;", ">")
    (axes,) = figures[0].axes
    return axes


def bounded(folder: Path) -> Boundary:
    """A search for 35 ms of 20 ms and more, of which all seeds say the same."""
    over = asked.gridded(["links.l1.delay=0..40 ms step 10"])
    late = asked.condition("kinematic.delay_ms.p99 > 35", "until")

    def votes(batch: Batch) -> Answers:
        middles = {at: 20.0 + 10.0 * at[0] for at in batch.points}
        return {at: Votes((ms,) * 6, (late.holds(ms),) * 6) for at, ms in middles.items()}

    return Boundary(context(folder), over, late, answered(bisected(4), votes))


def test_a_boundary_is_printed_with_a_sentence_a_line(tmp_path: Path) -> None:
    """Halfway between 10 and 20 ms the line through 30 and 40 crosses 35 ms."""
    found = bounded(tmp_path)
    lines = str(found).split("\n")
    assert lines[2].split() == ["0", "ms", "6", "0", "20.000", "no"]
    result = (
        "kinematic.delay_ms.p99 > 35 begins to hold at links.l1.delay = 15 ms, 95 % interval 10 ms to 20 ms."
    )
    assert lines[-len(found.sentences) :] == found.sentences and found.sentences[0] == result


def test_the_figure_of_a_boundary_has_its_medians_limit_and_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = drawn(bounded(tmp_path), tmp_path / "along.svg", monkeypatch)
    told = {line.get_label(): line for line in axes.get_lines()}
    ends = [(0.0, 20.0), (10.0, 30.0), (20.0, 40.0), (30.0, 50.0), (40.0, 60.0)]
    assert list(zip(*told["median over seeds"].get_data(), strict=True)) == ends
    assert list(told["kinematic.delay_ms.p99 > 35"].get_ydata()) == [35.0, 35.0]
    (boundary,) = [line for line in axes.get_lines() if list(line.get_xdata()) == [15.0, 15.0]]
    (interval,) = axes.patches
    assert interval.get_x() == 10.0 and interval.get_width() == 10.0
    assert interval.get_facecolor()[:3] == colors().to_rgb(boundary.get_color()), "they are one thing"
    seeds = [line for line in axes.get_lines() if line.get_marker() == "_" and len(line.get_ydata())]
    assert [sorted(set(line.get_ydata())) for line in seeds] == [[y] for _, y in ends]
    by_answer = [line.get_color() for line in seeds]
    page = STYLES["page"]
    assert by_answer == [page.color(picture.NO)] * 2 + [page.color(picture.YES)] * 3
    assert boundary.get_color() not in by_answer
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("links.l1.delay (ms)", "kinematic.delay_ms.p99 (ms)")


@pytest.mark.parametrize("shape", ["falling", "upright", "ring", "two"])
def test_the_curve_is_followed_between_the_points_of_the_first_glance(shape: str) -> None:
    """Whose neighbours are three values apart: edge for edge that of the whole grid."""
    surface, n = curves(random.Random(1), 12)[shape], 12
    answers = Synthetic(lambda point, seed: surface(point[0] / n, point[1] / n))
    found = answered(traced(n, n), answers)
    assert set(found.edges) == whole(answers, n) and found.edges


def test_a_curve_is_a_table_of_its_points(tmp_path: Path) -> None:
    found = curved(tmp_path, valley).to_arrow()
    assert found.schema.field("links.access.rate").metadata == {b"unit": b"Mbit/s"}
    rows = {(row["links.l1.delay"], row["links.access.rate"]): row for row in found.to_pylist()}
    assert len(rows) == found.num_rows == 25 and rows[10.0, 1.0] == {
        "links.l1.delay": 10.0,
        "links.access.rate": 1.0,
        "seeds": 6,
        "hold": 0,
        "median_delay_p99_ms": 30.0,
        "answer": False,
        "glance": False,
    }
    assert rows[40.0, 4.0]["answer"] is None and rows[40.0, 4.0]["glance"], "two seeds decide nothing"


def charts(page: str) -> list[dict[str, Any]]:
    """The charts of a page."""
    found: list[dict[str, Any]] = json.loads(page.split('id="data">')[1].split("</script>")[0])["charts"]
    return found


def test_the_page_of_a_curve_draws_all_places_at_which_it_crosses_a_value(tmp_path: Path) -> None:
    (chart,) = charts(search_page.render(curved(tmp_path, valley)))
    assert (chart["xLabel"], chart["yLabel"]) == ("links.l1.delay (ms)", "links.access.rate (Mbit/s)")
    assert chart["labels"] == ["kinematic.delay_ms.p99 > 35", "also at, 2"]
    assert chart["data"] == [[0.0, 10.0, 20.0, 30.0], [0.25, 0.75, 1.25, 1.75], [3.75, 3.25, 2.75, 2.25]]
    nowhere = search_page.render(curved(tmp_path, lambda x, y: 0.0))
    assert "NO boundary" in nowhere and charts(nowhere) == []


def test_the_figure_of_a_curve_has_its_points_by_their_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = curved(tmp_path, valley)
    axes = drawn(found, tmp_path / "map.svg", monkeypatch)
    lines = [(line.get_label(), list(zip(*line.get_data(), strict=True))) for line in axes.get_lines()]
    told = dict(lines)
    for label, holds in (("holds", True), ("does not hold", False)):
        at = [(10.0 * x, float(y)) for x, y in found.traced.known if (valley(x, y) > 35) is holds]
        assert sorted(told[label]) == sorted(at)
    assert "undecided" not in told
    glanced = found.traced.glanced.keys() - found.traced.known.keys()
    crosses = [line for line in axes.get_lines() if line.get_marker() == "+"]
    at = sorted(end for line in crosses for end in zip(*line.get_data(), strict=True))
    assert at == sorted((10.0 * x, float(y)) for x, y in glanced) and at
    curve = [end for _, ends in lines if len(ends) == 2 and ends[0] not in told["holds"] for end in ends]
    assert len(curve) == 2 * len(found.segments) > 0
    assert all(abs(y - 2) == pytest.approx((35 - x) / 20) for x, y in curve)


def test_a_figure_is_drawn_over_no_file_of_the_users(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found, file = curved(tmp_path, valley), tmp_path / "map.svg"
    file.write_text("mine")
    with pytest.raises((ConfigError, DataError), match=r"map\.svg"):
        found.draw(file)
    assert file.read_text() == "mine"
    found.draw(file, force=True)
    assert "turns along a curve" in file.read_text()


def test_an_optimum_is_read_from_its_folder(tmp_path: Path) -> None:
    over = (asked.factor("links.l1.delay=0..40 ms"), asked.factor("transport=udp,tcp"))
    limits = (asked.condition("haptic.loss < 1 %", "limits"),)

    def trial(ms: float, half: float | None, good: bool) -> Trial:
        return Trial((f"{ms} ms", "tcp"), Interval(4, ms, half), (Interval(4, 0.001, None),), good)

    every = (trial(20.0, 0.5, True), trial(5.0, None, False))
    metric = named("kinematic.delay_ms.p99", "minimise")
    for best, fresh in ((every[0], trial(21.0, 0.6, True)), (None, None)):
        found = Optimum(context(tmp_path), over, metric, True, limits, every, best, fresh, False)
        assert opened_again(found) == found


def test_a_condition_and_its_unit() -> None:
    late, lost = design.condition("haptic.delay_ms.p99>30 ms"), design.condition("haptic.loss <= 1 %")
    assert (late.metric.key, late.sign, late.limit) == ("delay_p99_ms", ">", 30.0)
    assert late.holds(30.1) and not late.holds(30.0)
    assert lost.limit == 0.01 and lost.holds(0.01)
    for wrong, said in (
        ("haptic.delay_ms.p99", "haptic.loss > 1 %"),
        ("haptic.delay_ms.p99 > 30 s", "haptic.delay_ms.p99 > 30 ms"),
        ("haptic.delay_ms.p99 = 30", "haptic.loss > 1 %"),
        ("haptic.delay_ms.p98 > 30", r"did you mean .*delay_ms\.p99"),
    ):
        with pytest.raises(Refusal, match=said):
            design.condition(wrong)


WRONG: list[tuple[list[str], dict[str, Any], str]] = [
    (["links.l1.delay"], {"until": LATE}, r'found "links\.l1\.delay"; allowed: KEY=LOW\.\.HIGH'),
    (["links.l1.delay=1 ms,2 ms"], {"until": LATE}, r"allowed: KEY=LOW\.\.HIGH"),
    (["links.l1.delay=9..1 ms"], {"until": LATE}, "the smaller end first"),
    (["links.l1.delay=0..9 ms step 2"], {"until": LATE}, "whose last value is 8 ms"),
    (["links.l1.delay=0..9 ms"] * 2, {"until": LATE}, "found a key twice"),
    (
        ["links.l1.delay=0..9 ms"] * 3,
        {"until": LATE},
        r"found 3 factors; allowed: one or two factors, each KEY=LOW\.\.HIGH",
    ),
    (["seed=1..9"], {"until": LATE}, "under the same seeds"),
    (["links.l1.dely=0..9 ms"], {"until": LATE}, "did you mean delay"),
    (["links.l1.delay=0..9 kg"], {"until": LATE}, '^--over links.l1.delay: found .*unknown unit "kg"'),
    (["links.l1.delay=0..9"], {"until": LATE}, "^--over links.l1.delay: found 0, a number without a unit"),
    (["links.l1.delay=0..9 ms"], {"until": "hptic.loss > 1 %"}, "did you mean haptic"),
    (["links.l1.delay=0..9 ms"], {"until": "30"}, "--until"),
    (["links.l1.delay=0..9 ms"], {"until": LATE, "seeds": 5}, "6 to .*: fewer seeds decide nothing"),
    (
        ["links.l1.delay=0..9 ms"],
        {"until": LATE, "minimise": "haptic.loss"},
        "found none of them, or several",
    ),
    (["links.l1.delay=0..9 ms"], {"until": LATE, "limits": "haptic.loss < 1 %"}, "--minimise or --maximise"),
    (["links.l1.delay=0..9 ms"], {"until": LATE, "world": "moon"}, "moon"),
    (["links.l1.delay=0..9 ms"], {"until": LATE, "cluster": "nowhere"}, "--cluster"),
]


@pytest.mark.parametrize(("over", "more", "said"), WRONG)
def test_what_is_wrong_is_one_message_before_anything_runs(
    over: list[str], more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(TcpsbedError, match=said):
        package.search(QUICKSTART, over, out=tmp_path / "out", **more)
    assert not (tmp_path / "out/cells").exists()


def printed(folder: Path, *words: str) -> str:
    """What a command prints, without stand-ins."""
    command = [sys.executable, "-m", "tcpsbed", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


@pytest.mark.slow
def test_a_search_on_a_shipped_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    over, shares = "links.l1.delay=0..48 ms step 8", list[float]()
    found = package.search(
        QUICKSTART, over, until=LATE, duration="0.8 s", seeds=6, out="found", progress=shares.append
    )
    assert found.interval is not None and found.value is not None and found.there
    low, high = found.interval
    assert low < found.value < high and high - low <= 24
    p99 = {point.values[0]: point.middle for point in found.points}
    assert p99[f"{low:g} ms"] <= 30 < p99[f"{high:g} ms"], "decided at both ends"
    alone = package.run(QUICKSTART, duration="0.8 s", set={"links.l1.delay": f"{low:g} ms"}, out="alone")
    assert alone.flows["haptic"].delay_ms is not None and alone.flows["haptic"].delay_ms.p99 <= 30
    assert found.context.runs < found.grid_runs and max(shares) <= 1
    assert package.load("found") == found
    assert found.sentences[0] in printed(tmp_path, "show", "found")
    described = Path("found/sweep.json").read_text()
    Path("found/sweep.json").write_text(described.replace('"ended"', '"begun"'))
    with pytest.raises(package.TcpsbedError, match="holds a search that has not ended"):
        package.load("found")
    with pytest.raises(DataError, match=r"holds a search that has not ended; allowed: .* then archive"):
        packing.pack(Path("found"), Path("unfinished.zip"))
    assert not Path("unfinished.zip").exists()
    Path("found/sweep.json").write_text(described)
    table = found.to_arrow()
    assert table.schema.field("links.l1.delay").metadata == {b"unit": b"ms"}
    assert table.num_rows == len(found.points)
    assert "begins to hold at links.l1.delay" in str(found) and "<table" in found._repr_html_()
    files = {file.name: file.stat().st_mtime_ns for file in Path("found/cells").iterdir()}
    before = Path("found/search.json").read_bytes()
    again = package.search(QUICKSTART, over, until=LATE, duration="0.8 s", seeds=6, out="found")
    assert {file.name: file.stat().st_mtime_ns for file in Path("found/cells").iterdir()} == files
    assert Path("found/search.json").read_bytes() == before and again.figures == found.figures
    for asks, said in (
        ({"until": "haptic.delay_ms.p99 > 40"}, f"with --until {LATE}"),
        ({"duration": "0.9 s"}, 'with --set duration="0.8 s"'),
        ({"set": {"links.access.delay": "1 ms"}}, "without --set links.access.delay="),
        ({"over": "links.access.delay=0..48 ms step 8"}, "with --over links.l1.delay in found;"),
        ({"seed": 5}, "with first seed 1 in found"),
    ):
        more = {"over": over, "until": LATE, "duration": "0.8 s", "seeds": 6} | asks
        with pytest.raises(ConfigError, match=re.escape(f"--out: found the result of a search {said}")):
            package.search(QUICKSTART, out="found", **more)
    assert Path("found/search.json").read_bytes() == before and package.load("found") == found
    wide = "links.l1.delay=0..56 ms step 8"
    wider = package.search(QUICKSTART, wide, until=LATE, duration="0.8 s", seeds=7, out="found")
    assert wider.there and wider.context.seeds == 7
    assert files.keys() <= {file.name for file in Path("found/cells").iterdir()}, "it uses what has run"
    drawn = package.plot("found", y="haptic.delay_ms.p99")
    assert drawn.panels[0].rows, "the tools for campaigns read its folder"
    assert "haptic" in printed(tmp_path, "compare", "found")
    packed = printed(tmp_path, "archive", "found", "a.zip")
    assert f"tcpsbed search scenario/quickstart.toml --over '{wide}' --until" in packed


def test_seeds_that_change_nothing_are_two_runs_a_point(tmp_path: Path) -> None:
    text = QUICKSTART.read_text().partition("[traffic.cbr]")[0]
    found = package.search(
        text, "links.l1.delay=0..40 ms step 4", until="kinematic.delay_ms.p99 > 20", duration="0.8 s",
        out=tmp_path / "out",
    )  # fmt: skip
    assert found.interval is not None and {point.seeds for point in found.points} == {2}
    assert "seeds change nothing" in str(found) and all(point.answer is not None for point in found.points)


SLOW = 'name = "short"\nduration = "10 s"\ntakes_s = 0.03\n'
WORDS = (
    "search",
    "short.toml",
    "--over",
    "delay_ms=0..20",
    "--until",
    "haptic.delay_ms.p99 > 60",
    "--out",
    "out",
)


@pytest.mark.slow
def test_a_search_that_is_killed_at_any_moment_ends_with_the_same_bytes(tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        scenario(tmp_path / name, SLOW)
    done = tcpsbed(tmp_path / "whole", *WORDS)
    assert done.returncode == 0 and "begins to hold at delay_ms" in done.stdout, done.stderr
    quiet = tcpsbed(tmp_path / "whole", *WORDS, "-q")
    assert quiet.stdout in done.stdout and quiet.stdout.count("\n") == 1 and not quiet.stderr
    assert quiet.stdout.startswith("haptic.delay_ms.p99 > 60 begins to hold at delay_ms = ")
    moments, killed, folder = random.Random(4), 0, tmp_path / "killed"
    for _ in range(4):
        run = start(folder, *WORDS, "--jobs", "2")
        time.sleep(moments.uniform(0.5, 2.0))
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=60)
        killed += run.returncode == -signal.SIGKILL
    ended = tcpsbed(folder, *WORDS)
    assert ended.returncode == 0 and killed >= 2, ended.stderr
    for name in ("search.json", "sweep.json", "sweep.parquet"):
        assert (folder / "out" / name).read_bytes() == (tmp_path / "whole/out" / name).read_bytes()
    assert not (folder / "out/work").exists()


@pytest.mark.slow
def test_what_ends_with_status_1(tmp_path: Path) -> None:
    scenario(tmp_path)
    beyond = tcpsbed(
        tmp_path, "search", "short.toml", "--over", "delay_ms=30..40", "--until", "haptic.delay_ms.p99 > 15"
    )
    assert beyond.returncode == 1 and "NO boundary" in beyond.stdout and "take a wider range" in beyond.stdout
    scenario(tmp_path, 'name = "short"\nduration = "10 s"\nfails_at_seed = 3\n')
    failed = tcpsbed(tmp_path, *WORDS)
    assert failed.returncode == 1 and "node cloud died" in failed.stderr and "Traceback" not in failed.stderr


def test_a_metric_that_a_run_does_not_have_is_named(tmp_path: Path) -> None:
    over, aged = "links.l1.delay=0..40 ms step 20", "haptic.age_ms.p99 > 15"
    with pytest.raises(DataError, match=r"haptic\.age_ms\.p99 has no value at 0 ms, seed 1"):
        package.search(QUICKSTART, over, until=aged, duration="0.7 s", seeds=6, out=tmp_path / "o")


@dataclass
class Sums:
    """A place whose cells take no time: their delay is the sum of those of the two links, under every seed."""

    file: Path
    work: Path
    width: int
    executor: ThreadPoolExecutor = field(default_factory=ThreadPoolExecutor)

    def call(self, job: worker.Job) -> Callable[[], worker.Answer]:
        late = sum(float(value.removesuffix("ms")) for value in job.cell.values)
        summary = {"flows": {"kinematic": {"delay_ms": {"p99": late}}}, "records_sha256": str(late)}
        return lambda: worker.Answer(0, json.dumps(summary), "")

    def second(self, job: worker.Job, answer: worker.Answer) -> None: ...

    def slow(self) -> list[str]:
        return []

    def stop(self) -> None:
        self.executor.shutdown()


def test_a_search_over_two_factors_keeps_its_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "Here", Sums)
    over = ("links.l1.delay=0..20 ms step 20", "links.access.delay=0..40 ms step 40")
    text = QUICKSTART.read_text().partition("[traffic.cbr]")[0]
    found = package.search(text, over, until="kinematic.delay_ms.p99 > 35", seeds=6, out=tmp_path / "out")
    assert [(one.at, one.low, one.high) for one in found.crossings] == [
        ((0.0, 35.0), (0.0, 0.0), (0.0, 40.0)),
        ((20.0, 15.0), (20.0, 0.0), (20.0, 40.0)),
    ]
    assert found.segments == [((0.0, 35.0), (20.0, 15.0))]
    assert package.load(tmp_path / "out") == found


@pytest.mark.slow
def test_two_factors_of_a_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    over = ("links.l1.delay=0..40 ms step 5", "links.access.delay=0..40 ms step 5")
    found = package.search(
        QUICKSTART.read_text().partition("[traffic.cbr]")[0], over, until="kinematic.delay_ms.p99 > 30",
        duration="0.7 s", out="out",
    )  # fmt: skip
    assert found.there and found.segments and package.load("out") == found
    for one in found.crossings:
        assert 18 < sum(one.at) < 32, "the delays add up, beside those of the other links and of srv"
    assert {y for y, _ in found.rows} >= {float(n) for n in range(0, 20, 5)}
    assert "turns along a curve" in str(found) and "within one cell" in str(found)
    found.draw("map.png")
    assert Path("map.png").stat().st_size > 5000
    page = Path("out/search.html").read_text(encoding="utf-8")
    assert "data-chart" in page and "turns along a curve" in page


optuna = pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="needs the package optuna")


@optuna
@pytest.mark.parametrize("minimise", [True, False])
def test_the_points_of_an_optimum_come_closer_to_the_best(minimise: bool) -> None:
    """One hill, or valley, at 30 ms of 100: points drawn at random are (30² + 70²) / 200 = 29 ms away in the mean."""
    sign, delay = 1 if minimise else -1, named("haptic.delay_ms.mean", "minimise")

    class Measured:
        def measure(self, points: Any, seeds: int) -> dict[Any, Runs]:
            return {point: self.runs(point, seeds) for point in points}

        def runs(self, point: Any, seeds: int) -> Runs:
            ms = sign * (float(point[0].removesuffix("ms")) - 30.0) ** 2
            row = {"flow": "haptic", delay.key: ms}
            return Runs(point, tuple((seed, [row]) for seed in range(seeds)), True)

    done, best, *_ = optimum.optimised(
        Measured(),  # type: ignore[arg-type]
        (asked.factor("a=0..100 ms"),),
        delay,
        (),
        minimise=minimise,
        trials=40,
        seeds=2,
    )
    apart = [abs(one.mean.mean) ** 0.5 for one in done]
    assert len(done) == 40 and best is not None and abs(best.mean.mean) ** 0.5 == min(apart) < 3
    assert sum(apart[20:]) / 20 < 29 / 2


@optuna
def test_the_best_values_under_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    over = ["links.l1.delay=1..20 ms", "links.access.delay=1..21 ms step 2", "links.l1.queue=9000B,15000B"]
    limit = "kinematic.delay_ms.p99 > 12"
    found = package.search(
        QUICKSTART,
        over,
        minimise="haptic.delay_ms.mean",
        limits=limit,
        trials=8,
        seeds=2,
        duration="0.7 s",
        out="out",
    )
    assert found.best is not None and found.fresh is not None and len(found.trials) == 8
    good = [one for one in found.trials if one.good]
    assert found.best.mean.mean == min(one.mean.mean for one in good) and len(good) < 8
    assert all(one.good == (one.limited[0].mean > 12) for one in found.trials)
    assert found.fresh.mean.n == 2 and found.fresh.mean.mean != found.best.mean.mean
    assert found.values["links.l1.queue"] in ("9000B", "15000B")
    assert package.load("out") == found
    files = set(Path("out/cells").iterdir())
    again = package.search(
        QUICKSTART,
        over,
        minimise="haptic.delay_ms.mean",
        limits=limit,
        trials=8,
        seeds=2,
        duration="0.7 s",
        out="out",
    )
    assert again.figures == found.figures and set(Path("out/cells").iterdir()) == files
    found.draw("course.svg")
    assert found.to_arrow().num_rows == 8 and "chose nothing" in str(found)


def test_without_optuna_a_message_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(
        ConfigError, match=r"needs the package optuna; allowed: pip install 'tcpsbed\[search\]'"
    ):
        package.search(QUICKSTART, "links.l1.delay=0..9 ms", minimise="haptic.loss", out=tmp_path / "out")


@pytest.mark.slow
def test_a_cluster_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    over = "links.l1.delay=0..40 ms step 20"
    here = package.search(QUICKSTART, over, until=LATE, duration="0.7 s", seeds=6, out="here")
    there = package.search(
        QUICKSTART, over, until=LATE, duration="0.7 s", seeds=6, out="there", cluster="local:2"
    )
    assert json.loads(Path("here/search.json").read_text()) == json.loads(
        Path("there/search.json").read_text()
    )
    assert here.figures == there.figures
    assert Path("here/sweep.parquet").read_bytes() == Path("there/sweep.parquet").read_bytes()
