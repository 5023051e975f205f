"""Polachan 2022: echo points, placement, interrupts, buffers, by the short sweeps of `tcpsbed reproduce`.

What it measures on the machine's clock is in `test_polachan2022_clock.py`.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tcpsbed.analysis.stats import Interval
from tcpsbed.lab.reproduce import (
    polachan2022,
    polachan2022_arm,
    polachan2022_demo,
    polachan2022_placement,
    polachan2022_video,
    repeats,
)
from tcpsbed.lab.reproduce.polachan2022 import CAPTURES, PINGS, SUTURING
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study

WORK, LONG = "polachan2022", True
NEEDS_DATA = "needs recordings: tcpsbed data captures, tcpsbed data suturing"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The experiments in virtual time, short."""
    study = Study(WORK, tmp_path_factory.mktemp("figures"), full=False)
    polachan2022.simulated(study)
    return study


def skip_without_an_arm(rows: dict[str, Row]) -> None:
    """Skips where the package that simulates the arm is not there."""
    if (reason := rows["figure8-actuation"].reason).startswith("needs"):
        pytest.skip(reason)


# [Polachan 2022]
def test_known_delays_are_found_under_other_traffic_and_are_inputs() -> None:
    alone = Study(WORK, None, full=False)
    polachan2022.known_delays(alone)
    rows = {row.key: row for row in alone.rows}
    table = rows["table2-error"]
    assert len(rows) == 1 and len(table.beside) == 15 and table.verdict == "no evidence (input)"
    assert (table.ours or 0.0) < 2.0, "300 echoes under other traffic; a block takes what it is set to"


# [Polachan 2022]
def test_contention_for_a_host_gives_the_order_of_places_and_goes_with_it(rows: dict[str, Row]) -> None:
    assert rows["figure17-order"].verdict == "no evidence (fitted)" and rows["figure17-alone"].within


# [Polachan 2022]
def test_the_order_of_places_follows_from_what_components_cost(rows: dict[str, Row]) -> None:
    """Sides of 0.05 ms beside 0.25 ms in srv reverse it, 0.1 ms do not."""
    assert 0.0 < (rows["figure17-costs"].ours or 0.0) < 100.0
    assert rows["figure17-costs"].verdict == "nothing published"


def test_the_order_of_places_is_judged_by_the_ends_of_an_interval() -> None:
    trips = {"S0": [3.0, 3.1], "S8": [2.9, 3.0], "S1": [1.0, 1.1], "S5": [1.2, 1.3], "S6": [2.0, 2.1]}
    found = polachan2022_placement.order({at: np.array(values) for at, values in trips.items()})
    assert found.mean == pytest.approx(2.05 - 2.95) and (found.half or 0.0) > 0.1


# [Polachan 2022]
def test_a_card_that_gathers_arrivals_makes_traffic_speed_a_path_up(rows: dict[str, Row]) -> None:
    assert rows["figure19-fall"].within and rows["figure19-rise"].within


# [Polachan 2022]
def test_a_sign_that_repeats_do_not_settle_is_not_true(rows: dict[str, Row]) -> None:
    assert "repeats" in rows["figure18"].reason and not rows["figure18"].within


# [Welch 1947]
def test_two_means_are_apart_by_an_interval() -> None:
    noise = repeats.apart([1.0, 3.0, 2.0], [1.5, 2.5, 1.7])
    assert abs(noise.mean) < (noise.half or 0.0)
    assert repeats.low(repeats.apart([3.0, 3.1, 2.9], [1.0, 1.1, 0.9])) > 1.5
    single = repeats.apart([3.0], [1.0])
    assert (repeats.low(single), repeats.high(single)) == (-np.inf, np.inf), "single values say nothing"


# [Polachan 2022]
def test_runs_become_longer_until_means_are_known_within_five_percent() -> None:
    asked: list[float] = []

    def run(seconds: float) -> Interval:
        asked.append(seconds)
        return Interval(int(10 * seconds), 10.0, 5.0 / seconds**0.5)

    enough = repeats.settled(run, lambda mean: [mean], 10.0, 1000.0)
    assert asked[0] == 10.0 and 100.0 <= asked[-1] < 200.0, "half of 0.5 at 100 s"
    assert repeats.margin([enough]) == "every mean known within 5 %"
    asked.clear()
    wide = repeats.settled(run, lambda mean: [mean], 10.0, 20.0)
    assert asked == [10.0, 20.0]
    assert repeats.margin([enough, wide]) == "NOT every mean known within 5 % (1 of 2)"


# [Polachan 2022]
def test_rows_of_figures_17_to_20_say_whether_their_means_are_known(rows: dict[str, Row]) -> None:
    keys = (
        "figure17-order",
        "figure17-costs",
        "figure18",
        "figure19-fall",
        "figure20-deep",
        "figure20-small",
    )
    assert [key for key in keys if "very mean known within 5 %" not in rows[key].told] == []


# [Polachan 2022]
def test_deep_buffers_cost_delay_and_small_ones_samples(rows: dict[str, Row]) -> None:
    assert rows["figure20-deep"].within and rows["figure20-kept"].within
    assert 1.0 < (rows["figure20-remedy"].ours or 0.0) < 2.5, "round robin lets a packet of the background by"


# [Polachan 2022]
def test_what_a_small_buffer_loses_hangs_on_arrivals_and_not_on_phases(rows: dict[str, Row]) -> None:
    lost = rows["figure20-lost"]
    assert 8.0 < (lost.ours or 0.0) < 16.0 and not lost.within, "12 is not the published 20"
    assert "at random moments (of all: at a constant rate: " in lost.told and "phases" in lost.told
    assert 13.0 < (rows["figure20-remedy-drops"].ours or 0.0) < 25.0, "commands lose what the line lacks"


# [Polachan 2022]
def test_replayed_captures_fill_the_narrow_links_only(rows: dict[str, Row]) -> None:
    if not (SUTURING.exists() and CAPTURES.exists()):
        pytest.skip(NEEDS_DATA)
    wide, narrow = (rows[f"table1-{case}-mean"].ours or 0.0 for case in ("100-1x", "10-1x"))
    assert narrow > 20 * wide
    assert rows["figure11-free"].ours == 0.0 and (rows["figure11"].ours or 0.0) > 50.0


# [Polachan 2022]
def test_a_line_of_ten_megabits_takes_longer_than_the_published_least(rows: dict[str, Row]) -> None:
    if not (SUTURING.exists() and CAPTURES.exists()):
        pytest.skip(NEEDS_DATA)
    assert rows["table1-free-min"].ours == pytest.approx(0.71, abs=0.005)
    assert rows["table1-free-min"].verdict == "not reproduced"
    assert all(f"table1-{case}-sd" in rows for case in polachan2022.REPLAYS)


# [Polachan 2022]
def test_a_measured_profile_comes_out_as_it_went_in(rows: dict[str, Row]) -> None:
    if not PINGS.exists():
        pytest.skip(NEEDS_DATA)
    assert rows["figure12-mean"].within and rows["figure12-median"].within


def test_what_is_said_to_be_set_was_set(not_set: list[str]) -> None:
    assert not_set == []


def test_what_is_not_within_says_why_and_all_figures_are_drawn(study: Study, rows: dict[str, Row]) -> None:
    if not (SUTURING.exists() and CAPTURES.exists() and PINGS.exists()):
        pytest.skip(NEEDS_DATA)
    skip_without_an_arm(rows)
    missed = [row for row in study.rows if row.within is False]
    # Of its value only where that does not hang on what else the machine does.
    assert [r.key for r in missed if not (r.expected.refuted or r.expected.not_reproduced)] == []
    drawn = {f"figure{n}" for n in (7, 10, 11, 12, 13, 17, 18, 19, 20, 21)} | {"figure17-costs"}
    assert {name for name, _ in study.figures} - {"figure14"} == drawn


# [Polachan 2022]
def test_an_arm_takes_the_published_time_with_the_gains_chosen_for_it_and_not_with_the_factorys(
    rows: dict[str, Row],
) -> None:
    skip_without_an_arm(rows)
    assert rows["figure8-actuation"].verdict == "no evidence (fitted)"
    assert rows["figure8-uart"].verdict == "no evidence (input)"
    assert rows["figure8-actuation-factory"].verdict == "not reproduced"


# [Polachan 2022] figure 7
def test_the_whole_demonstration_runs_in_one_scenario(rows: dict[str, Row]) -> None:
    if (reason := rows["figure7"].reason).startswith("needs"):
        pytest.skip(reason)
    assert rows["figure7"].ours == 4 and rows["figure7"].verdict == "nothing published"


# [Polachan 2022] figures 14, 21
def test_the_gripper_opens_and_closes_and_the_belt_runs_both_ways(rows: dict[str, Row]) -> None:
    skip_without_an_arm(rows)
    assert (rows["figure14"].ours or 0.0) > 15.0, rows["figure14"].reason
    assert rows["figure21"].ours == 2 and "counter-clockwise" in rows["figure21"].reason


def test_without_packages_figures_7_8_14_and_21_say_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polachan2022_demo.importlib.util, "find_spec", lambda name: None)
    alone = Study(WORK, tmp_path, full=False)
    polachan2022_arm.simulated(alone)
    polachan2022_arm.measured(alone)
    polachan2022_demo.simulated(alone)
    assert alone.figures == [] and len(alone.rows) == 9
    assert all("needs MuJoCo" in row.reason for row in alone.rows)


def test_where_echoes_are_lost_the_row_says_so() -> None:
    alone = Study(WORK, None, full=False)
    polachan2022_arm.compare(alone, "figure8-uart", None)
    assert alone.rows[0].ours is None and alone.rows[0].reason == "no echo came back"
    nothing = SimpleNamespace(
        records=np.zeros(0, [("kind", "u1"), ("point", "u2"), ("time", "i8"), ("value", "i8")])
    )
    assert polachan2022_arm.actuation_ms(nothing) is None  # type: ignore[arg-type]


def test_video_without_an_echo_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(
        folder=None,
        summary={"warmup_s": 1},
        records=np.zeros(3, [("kind", "u1"), ("point", "u2"), ("time", "i8"), ("value", "i8")]),
    )
    monkeypatch.setattr(polachan2022_video, "plan_of", lambda _: {"components": [{"name": "ss-com"}]})
    assert polachan2022_video.median_us(nothing) is None  # type: ignore[arg-type]
    alone = Study(WORK, None, full=False)
    monkeypatch.setattr(alone, "run", lambda *_: None)
    monkeypatch.setattr(polachan2022_video, "missing", lambda _: None)
    polachan2022_video.measured(alone)
    assert [(row.key, row.ours, row.reason) for row in alone.rows] == [
        (f"figure18-{place}", None, "no echo came back") for place in ("loopback", "namespaces")
    ]
    assert alone.figures == []


def test_bars_without_an_echo_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Study(WORK, tmp_path, full=False)
    trips = {point: np.array([0.1, 0.2]) for point in polachan2022_arm.POINTS}
    way = polachan2022_arm.Way(trips, {"ms-com": 0.1})
    answers = iter((way, way, None))
    monkeypatch.setattr(alone, "run", lambda *_: next(answers))
    polachan2022_arm.bars(alone)
    assert {row.key for row in alone.rows} == set(polachan2022_arm.MEASURED)
    assert {row.reason for row in alone.rows} == {"no echo came back"}
    assert (tmp_path / "figure8.png").exists()
