"""Polachan 2022: echo points, placement, interrupts, buffers, by the short sweeps of `tcpsbed reproduce`."""

from __future__ import annotations

import pytest

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
    "figure14",
    "figure21",
}
"""Maxima that hosts or bursts of another capture make; a lone packet that a shaped link lets pass at once; video, which a
card with fixed settings does not turn into a gain; phases of constant flows, which decide who is dropped; figures whose
content is not known here."""
MEASURED = {
    "figure18-loopback",
    "figure18-namespaces",
    "figure8-srv",
    "figure8-uart-measured",
    "figure8-actuation-measured",
}
"""On the clock of the machine, which may say either."""
NEEDS_DATA = "needs recordings (set TCPSBED_DATA)"


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


def test_what_is_not_within_is_known(study: Study) -> None:
    if not (SUTURING.exists() and CAPTURES.exists() and PINGS.exists()):
        pytest.skip(NEEDS_DATA)
    assert {row.key for row in study.rows if row.within is not True} - MEASURED == NOT_WITHIN
    drawn = {f"figure{n}" for n in (8, 11, 12, 13, 14, 17, 18, 19, 20, 21)} | {"figure18-measured"}
    assert {name for name, _ in study.figures} == drawn


# [Polachan 2022] [PROTOCOLS 6.1] [PROTOCOLS 6.5]
def test_an_arm_behind_a_board_takes_the_published_time(rows: dict[str, Row]) -> None:
    if rows["figure8-actuation"].within is None:
        pytest.skip(rows["figure8-actuation"].reason)
    assert rows["figure8-actuation"].within and rows["figure8-uart"].within
    uart = rows["figure8-uart-measured"]
    if uart.within is None:
        pytest.skip(uart.reason)
    assert (uart.ours or 0.0) > 0.3, "the bytes alone take 0.32 ms"
    assert (rows["figure8-actuation-measured"].ours or 0.0) > 60.0


def test_figures_that_no_text_tells_of_are_drawn_as_we_read_them(rows: dict[str, Row]) -> None:
    for key in ("figure14", "figure21"):
        assert rows[key].verdict == "not reproducible" and f"{key}.png draws" in rows[key].reason


# [PROTOCOLS 6.5]
def test_video_beside_commands_is_measured_whichever_way_it_comes_out(rows: dict[str, Row]) -> None:
    loopback, namespaces = (rows[f"figure18-{place}"] for place in ("loopback", "namespaces"))
    assert loopback.within is not None and "median round trips" in loopback.reason
    assert abs(loopback.ours or 0.0) < 1000.0, "20 kB thirty times a second are no load"
    assert namespaces.within is not None or namespaces.reason.startswith("this machine lacks")
