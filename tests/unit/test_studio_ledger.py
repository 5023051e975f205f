"""What a page says of a run that goes on is counted as the summary counts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcpsbed
from tcpsbed.studio import collector
from tcpsbed.studio.collector import ROW, Collector
from tcpsbed.studio.ledger import Ledger, Moments
from tcpsbed.studio.sinks import openmetrics

EVERY_NS, WHOLE_NS = 50_000_000, 1 << 62
PERIODIC = ("edge-placement", "predictive-display", "polachan-demo", "dumbbell-dpm", "lte-access", "two-ways")
HEAVY = ("predictive-display", "polachan-demo")
"""With pictures or physics, of which a second takes one."""
MOVES = ['duration="4 s"', "measure.signals=['tactile-teleoperator.sense']"]
HERE = Path(__file__).parent


def blocks(run: Any, every_ns: int = EVERY_NS) -> list[np.ndarray[Any, Any]]:
    """The rows of a run as a page gets them, 50 ms at a time, or of a run that is over, all at once."""
    rows = np.fromfile(run.folder / "records.bin", ROW)
    block = np.maximum.accumulate(rows["time"] // every_ns)
    return np.split(rows, np.flatnonzero(np.diff(block)) + 1)


def plan_of(run: Any) -> tuple[dict[str, Any], Moments]:
    plan = json.loads((run.folder / "plan.json").read_text())
    return plan, Moments.of((run.folder / "scenario.toml").read_text())


def same(totals: dict[str, Any], summary: dict[str, Any]) -> None:
    for key in ("sent", "delivered", "lost"):
        assert totals[key] == summary[key], key
    assert totals["loss"] == pytest.approx(summary["loss"], abs=1e-12)
    mean_ms = summary["delay_ms"] and summary["delay_ms"]["mean"]
    assert totals["mean_ms"] == (None if mean_ms is None else pytest.approx(mean_ms, rel=1e-9))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in PERIODIC]
)
def test_at_the_end_the_totals_are_those_of_the_summary(
    shipped_scenarios: Path, tmp_path: Path, name: str
) -> None:
    run = tcpsbed.run(shipped_scenarios / f"{name}.toml", out=tmp_path / "run", set=['duration="3 s"'])
    plan, moments = plan_of(run)
    for every_ns in (EVERY_NS, WHOLE_NS):
        made = Ledger(plan, moments)
        for rows in blocks(run, every_ns):
            made.add(rows)
        for totals, flow in zip(made.totals(plan["duration_ns"]), run.summary["flows"].values(), strict=True):
            same(totals.told(), flow)


@pytest.mark.parametrize("every_ns", [pytest.param(EVERY_NS, marks=pytest.mark.slow), WHOLE_NS])
def test_a_run_that_is_longer_than_the_window_loses_none(
    shipped_scenarios: Path, tmp_path: Path, every_ns: int
) -> None:
    # A window holds 32 s of samples, rounded up to a power of two.
    script = ['duration="80 s"', "flows.kinematic.rate='100 Hz'", "flows.haptic.rate='100 Hz'"]
    run = tcpsbed.run(shipped_scenarios / "quickstart.toml", out=tmp_path / "run", set=script)
    plan, moments = plan_of(run)
    made = Ledger(plan, moments)
    for rows in blocks(run, every_ns):
        made.add(rows)
    for totals, flow in zip(made.totals(plan["duration_ns"]), run.summary["flows"].values(), strict=True):
        same(totals.told(), flow)


@pytest.fixture(scope="module")
def held(shipped_scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A supervisor at 1 kHz repeats commands of 500 Hz, and all of them while the line is cut."""
    script = [
        'duration="6 s"',
        f"hooks.kinematics.run='{HERE / 'pushing.py'}:Pushing'",
        f"flows.video.picture.camera='{HERE / 'pushing.py'}:Grey'",
        "flows.video.rate='2 fps'",
        "links.line.delay='60 ms'",
        "events=[{at='3 s', link='line', up=false, name='cut'}, {at='4 s', link='line', up=true, name='back'}]",
    ]
    out = tmp_path_factory.mktemp("held") / "run"
    return tcpsbed.run(shipped_scenarios / "demo.toml", out=out, set=script)


@pytest.mark.needs("python:mujoco", "python:simplejpeg")
def test_what_a_supervisor_repeats_is_neither_delivered_nor_lost(held: Any) -> None:
    plan, moments = plan_of(held)
    page, scraped = Collector(plan, moments), openmetrics.Tally(plan, moments)
    for rows in blocks(held):
        now_s = float(rows["time"].max()) / 1e9
        page.add(rows.tobytes(), now_s, 0)
        scraped.add(rows, now_s)
        if 2.5 < now_s < 2.56:
            flow = page.lately()["flows"][0]
            assert flow["loss"] == 0 and flow["max_ms"] < 63
            assert sum(part["ms"] for part in flow["parts"]) == pytest.approx(flow["mean_ms"], rel=0.01)
        if 4.98 < now_s < 5.05:
            assert page.lately()["flows"][0]["loss"] == pytest.approx(0.25, abs=0.06), "1 s of 4 s"
    page.add(b"", plan["duration_ns"] / 1e9, 0)
    curves = page.curves_from(0)
    for number, (name, summary) in enumerate(held.summary["flows"].items()):
        same(page.lately()["flows"][number]["total"], summary)
        assert scraped.came[number] == summary["delivered"], name
        if summary["delay_ms"]:
            mean_s = scraped.delay_ns[number] / scraped.dated[number] / 1e9
            assert mean_s * 1e3 == pytest.approx(summary["delay_ms"]["mean"])
            highest = max(value for value in curves["most_ms"][number] if value is not None)
            assert highest == pytest.approx(summary["delay_ms"]["max"], abs=0.01)
    command = list(held.summary["flows"]).index("kinematic")
    assert held.summary["flows"]["kinematic"]["repeated"] > 1000
    oldest = curves["oldest_ms"][command]
    assert max(value for value in oldest if value is not None) == pytest.approx(1060, abs=30)
    assert {line["kind"] for line in page.motion.lines} == {"way", "force"}
    assert all(any(value for value in line if value) for line in curves["moved"])
    ways = [
        values
        for values, line in zip(curves["moved"], page.motion.lines, strict=True)
        if line["kind"] == "way"
    ]
    assert max(value for values in ways for value in values if value) < 500, "mm: no force among the places"


def test_rows_that_are_missing_make_no_losses(shipped_scenarios: Path, tmp_path: Path) -> None:
    run = tcpsbed.run(shipped_scenarios / "quickstart.toml", out=tmp_path / "run", set=['duration="3 s"'])
    plan, moments = plan_of(run)
    made = Collector(plan, moments)
    for number, rows in enumerate(blocks(run)):
        if number % 20 != 10:
            made.add(rows.tobytes(), (number + 1) * 0.05, number // 20)
    for flow in made.lately()["flows"]:
        total, whole = flow["total"], run.summary["flows"][flow["name"]]
        assert total["lost"] <= whole["lost"] + 5
        for key in ("sent", "delivered"):
            assert 0.9 * whole[key] <= total[key] <= whole[key], key


def test_bins_that_late_rows_change_are_told_again(shipped_scenarios: Path, tmp_path: Path) -> None:
    run = tcpsbed.run(shipped_scenarios / "quickstart.toml", out=tmp_path / "run", set=['duration="3 s"'])
    plan, moments = plan_of(run)
    made, late = Collector(plan, moments), []
    for number, rows in enumerate(blocks(run)):
        if number == 10:
            late = rows
        else:
            made.add(rows.tobytes(), (number + 1) * 0.05, 0)
    step = made.steps
    assert made.changed_since(step) == made.bins
    before = made.curves_from(0)["delivered"][0]
    made.add(late.tobytes(), 3.0, 0)
    first = made.changed_since(step)
    assert first == 5
    assert made.curves_from(first)["delivered"][0][0] == pytest.approx(before[5] + 50, abs=2)


def test_a_run_that_comes_at_once_moves_as_far(shipped_scenarios: Path, tmp_path: Path) -> None:
    run = tcpsbed.run(shipped_scenarios / "quickstart.toml", out=tmp_path / "run", set=MOVES)
    plan, moments = plan_of(run)
    moved = []
    for every_ns in (EVERY_NS, WHOLE_NS):
        made = Collector(plan, moments)
        for rows in blocks(run, every_ns):
            made.add(rows.tobytes(), float(rows["time"].max()) / 1e9, 0)
        moved.append(made.moved[: made.bins])
    assert moved[0].size and np.isfinite(moved[0]).mean() > 0.9
    np.testing.assert_array_equal(*moved)


def test_spans_that_were_not_sent_stay_few(shipped_scenarios: Path, tmp_path: Path) -> None:
    run = tcpsbed.run(shipped_scenarios / "quickstart.toml", out=tmp_path / "run", set=['duration="1 s"'])
    made = Collector(*plan_of(run))
    for number in range(1, 2001):
        made.add(b"", 5.0 * number - 1, number - 1)
        made.add(b"", 5.0 * number, number)
    assert len(made.unseen) <= collector.MOST_SPANS
    assert made.unseen[0][0] == 4 and made.unseen[-1][1] == 10_000
