"""Abdullah and Monnet 2023: RTP over an LTE-like access, by the short sweep of `tcpsbed reproduce`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tcpsbed.errors import WorldError
from tcpsbed.lab.reproduce import abdullah2023, lte, recordings
from tcpsbed.lab.reproduce.lte import ping_pong
from tcpsbed.lab.reproduce.packets import Delays, stop_and_wait
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study
from tcpsbed.worlds import registry

WORK = "abdullah2023"
OVER_NS3 = ("ns3-", "clock-", "boxes-")


# [Abdullah 2023]
def test_delays_up_down_and_both_are_the_published_ones(rows: dict[str, Row]) -> None:
    assert all(rows[f"{way}-{what}"].within for way in ("up", "down", "trip") for what in ("mean", "min"))
    assert rows["duration"].within and rows["loss"].within


# [Abdullah 2023]
def test_what_is_not_within_says_why(study: Study) -> None:
    assert {row.key for row in study.rows} == set(study.expected)
    assert not [row.key for row in study.rows if row.verdict == "missed, unexplained"]
    none = {row.key for row in study.rows if row.within is None and not row.key.startswith(OVER_NS3)}
    assert none <= {"stream-mean", "figure4-zeros"}
    assert {f"figure{number}" for number in range(5, 13)} <= {name.split("-")[0] for name, _ in study.figures}


# [Abdullah 2023]
def test_what_was_set_counts_as_input_and_what_ns3_gives_as_outcome(rows: dict[str, Row]) -> None:
    set_by_us = {f"{way}-{what}" for way in ("up", "down", "trip") for what in ("mean", "min", "max")}
    assert {rows[key].expected.basis for key in set_by_us | {"duration", "loss"}} == {"input"}
    assert {rows[key].verdict for key in set_by_us - {"up-max", "down-max", "trip-max"}} == {
        "no evidence (input)"
    }
    over_ns3 = {key: row.expected.basis for key, row in rows.items() if key.startswith(OVER_NS3)}
    assert {key for key, basis in over_ns3.items() if basis != "outcome"} == {"ns3-trip"}


# [Abdullah 2023]
def test_packets_carry_zeros_between_motions(rows: dict[str, Row]) -> None:
    if rows["figure4-zeros"].ours is None:
        pytest.skip(rows["figure4-zeros"].reason)
    assert rows["figure4-zeros"].within


def test_what_is_said_to_be_set_was_set(not_set: list[str]) -> None:
    assert not_set == []


def test_without_the_textures_the_row_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(abdullah2023, "TEXTURES", tmp_path)
    monkeypatch.setattr(recordings, "DATA", tmp_path)
    alone = Study("abdullah2023", None)
    abdullah2023.multimodal(alone)
    assert [row.reason for row in alone.rows] == ["needs recordings: tcpsbed data vibtac12"]


def test_what_stands_in_for_containers_is_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    world = registry.named(lte.BOXES)
    monkeypatch.setattr(type(world), "missing", lambda _: "")
    monkeypatch.setattr(
        world.hosting, "fallback", classmethod(lambda cls: "plain network namespaces: no engine")
    )
    alone = Study("abdullah2023", None)
    lte.in_boxes(alone)
    assert {row.key for row in alone.rows} == {key for key in alone.expected if key.startswith("boxes-")}
    assert all(row.ours is None and "namespaces" in row.reason for row in alone.rows)


# [Abdullah 2023]
@pytest.mark.needs("ns3")
def test_the_lte_of_ns3_takes_as_long_on_the_air(rows: dict[str, Row]) -> None:
    assert all(rows[f"ns3-{what}"].within for what in ("up", "down", "loss", "trip", "trip-mean"))
    duration = rows["ns3-duration"]
    assert duration.ours is not None and duration.expected.explains(duration.ours)
    # Streamed packets are granted with the ones before: no request, and less than half of the delay.
    assert (rows["ns3-stream"].ours or 0.0) < 0.5 * (rows["ns3-up"].ours or 0.0)


# [Abdullah 2023]
@pytest.mark.needs("ns3")
def test_the_dependence_on_the_rate_is_drawn_and_what_takes_the_clock_is_left_out_visibly(
    study: Study,
) -> None:
    assert "rates" in {name for name, _ in study.figures}
    by_clock = [row for row in study.rows if row.key.startswith(("clock-", "boxes-"))]
    assert len(by_clock) == 11
    assert all(row.ours is None and ("clock" in row.reason or "needs" in row.reason) for row in by_clock)


# [Abdullah 2023]
@pytest.mark.slow
@pytest.mark.realtime
@pytest.mark.needs("ns3")
def test_a_packet_on_the_clock_takes_as_long_as_in_ns3s_own_time() -> None:
    keys = ["flows.kinematic.stop='25 ms'", "duration='5 s'"]
    d: Delays = Study("abdullah2023", None).run("lte-ns3", keys, stop_and_wait, world="ns3")
    assert d.lost == 0 and d.in_order and len(d.trip) > 150
    assert np.median(d.trip) == pytest.approx(16.95, abs=1.5)
    assert 0 < np.median(d.turn) < 0.3
    assert d.trip == pytest.approx(d.up + d.turn + d.down)


def test_a_trip_without_a_packet_back_is_a_message() -> None:
    point = {"n": 0, "lost": 9, "round_trip_ms": None, "return_ms": None}
    flows = {"kinematic": {"delay_ms": None}}
    run = SimpleNamespace(summary={"echo": {"kinematic": {"points": [point]}}, "flows": flows})
    with pytest.raises(WorldError, match="no packets came back"):
        ping_pong(run)  # type: ignore[arg-type]


def test_without_ns3_its_rows_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcpsbed.lab.reproduce.lte import over_ns3
    from tcpsbed.worlds import ns3_program

    monkeypatch.setattr(ns3_program, "MODULES", ("ns3-that-is-not-there",))
    alone = Study("abdullah2023", None)
    over_ns3(alone, 1000)
    assert {row.key for row in alone.rows} >= {"ns3-up", "clock-trip", "boxes-trip"}
    assert all(row.within is None and "libns3-dev" in row.reason for row in alone.rows)
