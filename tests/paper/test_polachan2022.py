"""Polachan 2022: echo points, placement, interrupts, buffers, by the short sweeps of `tcpsbed reproduce`.

What it measures on the machine's clock is in `test_polachan2022_clock.py`.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tcpsbed.reproduce import polachan2022, polachan2022_arm, polachan2022_video
from tcpsbed.reproduce.polachan2022 import CAPTURES, PINGS, SUTURING
from tcpsbed.reproduce.study import Row, Study

WORK = "polachan2022"
NOT_WITHIN = {
    "table1-free-max",
    "table1-100-1x-max",
    "table1-100-5x-mean",
    "table1-100-5x-max",
    "table1-10-1x-min",
    "figure18",
    "figure20-drops",
    "figure21",
}
"""Maxima that hosts or bursts of another capture make; a lone packet that a shaped link lets pass at once; video, which a
card with fixed settings does not turn into a gain; phases of constant flows, which decide who is dropped; a figure whose
content is not known here."""
NEEDS_DATA = "needs recordings (set TCPSBED_DATA)"


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


# [PROTOCOLS 6.1] [PROTOCOLS 6.5]
def test_known_delays_are_found_under_other_traffic(rows: dict[str, Row]) -> None:
    assert all(row.within for key, row in rows.items() if key.startswith("table2-"))
    assert (rows["table2-error"].ours or 0.0) < 2.0, (
        "300 echoes under other traffic; a block takes what it is set to"
    )


# [PROTOCOLS 6.5]
def test_contention_for_a_host_gives_the_order_of_places_and_goes_with_it(rows: dict[str, Row]) -> None:
    assert rows["figure17-order"].within and rows["figure17-alone"].within


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def test_a_card_that_gathers_arrivals_makes_traffic_speed_a_path_up(rows: dict[str, Row]) -> None:
    assert all(rows[key].within for key in ("figure19-fall", "figure19-rise", "figure18-each"))
    assert (rows["figure18"].ours or 0.0) < (rows["figure18-each"].ours or 0.0), (
        "gathering takes off what video adds"
    )


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def test_deep_buffers_cost_delay_and_small_ones_samples(rows: dict[str, Row]) -> None:
    assert rows["figure20-deep"].within and rows["figure20-remedy"].within and rows["figure20-kept"].within


# [PROTOCOLS 6.5]
def test_replayed_captures_fill_the_narrow_links_only(rows: dict[str, Row]) -> None:
    if not (SUTURING.exists() and CAPTURES.exists()):
        pytest.skip(NEEDS_DATA)
    wide, narrow = (rows[f"table1-{case}-mean"].ours or 0.0 for case in ("100-1x", "10-1x"))
    assert narrow > 20 * wide


# [PROTOCOLS 6.5]
def test_a_measured_profile_comes_out_as_it_went_in(rows: dict[str, Row]) -> None:
    if not PINGS.exists():
        pytest.skip(NEEDS_DATA)
    assert rows["figure12-mean"].within and rows["figure12-median"].within


def test_what_is_not_within_is_known(study: Study, rows: dict[str, Row]) -> None:
    if not (SUTURING.exists() and CAPTURES.exists() and PINGS.exists()):
        pytest.skip(NEEDS_DATA)
    skip_without_an_arm(rows)
    assert {row.key for row in study.rows if row.within is not True} == NOT_WITHIN
    drawn = {f"figure{n}" for n in (11, 12, 13, 17, 18, 19, 20, 21)}
    assert {name for name, _ in study.figures} == drawn


# [Polachan 2022] [PROTOCOLS 6.1] [PROTOCOLS 6.5]
def test_an_arm_behind_a_board_takes_the_published_time(rows: dict[str, Row]) -> None:
    skip_without_an_arm(rows)
    assert rows["figure8-actuation"].within and rows["figure8-uart"].within


def test_the_row_of_a_figure_that_no_text_tells_of_says_what_was_drawn_and_no_more(
    study: Study, rows: dict[str, Row]
) -> None:
    drawn = "figure21" in {name for name, _ in study.figures}
    assert rows["figure21"].verdict == "not reproducible"
    assert ("figure21.png draws" in rows["figure21"].reason) == drawn


def test_without_packages_figures_8_14_and_21_say_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polachan2022_arm.importlib.util, "find_spec", lambda name: None)
    alone = Study(WORK, tmp_path, full=False)
    polachan2022_arm.simulated(alone)
    polachan2022_arm.measured(alone)
    assert alone.figures == [] and len(alone.rows) == 7
    assert all("needs MuJoCo" in row.reason and "draws" not in row.reason for row in alone.rows)


def test_where_echoes_are_lost_the_row_says_so() -> None:
    alone = Study(WORK, None, full=False)
    polachan2022_arm.compare(alone, "figure8-uart", None)
    assert alone.rows[0].verdict == "not reproducible" and alone.rows[0].reason == "no echo came back"
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
    assert [(row.key, row.verdict, row.reason) for row in alone.rows] == [
        (f"figure18-{place}", "not reproducible", "no echo came back") for place in ("loopback", "namespaces")
    ]
    assert alone.figures == []


def test_bars_without_an_echo_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Study(WORK, tmp_path, full=False)
    answers = iter(({"ms-com": 0.1}, None))
    monkeypatch.setattr(alone, "run", lambda *_: next(answers))
    polachan2022_arm.bars(alone, [])
    assert {row.key for row in alone.rows} == set(polachan2022_arm.MEASURED)
    assert {row.reason for row in alone.rows} == {"no echo came back"}
    assert (tmp_path / "figure8.png").exists()
