"""Polachan 2022 in Mininet, by the short sweeps of `tcpsbed reproduce`: what holds on any machine that has it."""

from __future__ import annotations

import pytest

from tcpsbed.lab.reproduce.expected import load
from tcpsbed.lab.reproduce.polachan2022 import CAPTURES, PINGS, SUTURING
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import WHOLE, Study
from tcpsbed.lab.reproduce.works import find
from tcpsbed.worlds import registry


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    """The rows by key."""
    if not (SUTURING.exists() and CAPTURES.exists() and PINGS.exists()):
        pytest.skip("needs recordings: tcpsbed data captures, tcpsbed data suturing")
    return {row.key: row for row in find("polachan2022-mininet").reproduce(None, full=False).rows}


# [Polachan 2022]
@pytest.mark.needs("root", "tun", "mininet")
@pytest.mark.slow
@pytest.mark.realtime
def test_queues_and_known_delays_come_out_in_mininet(rows: dict[str, Row]) -> None:
    """Medians and orderings only: maxima and tenths of a millisecond are this machine's."""
    ours = {key: row.ours or 0.0 for key, row in rows.items()}
    assert rows["table2-error"].within and len(rows["table2-error"].beside) == 2
    assert ours["table1-10-1x-mean"] > 10 * ours["table1-100-1x-mean"]
    assert rows["figure20-deep"].within and rows["figure20-kept"].within
    assert abs(ours["figure12-median"]) < 10
    assert set(rows) == set(load("polachan2022-mininet")), "what a short run leaves out is named"
    left = {key for key, row in rows.items() if row.reason == WHOLE}
    assert {"figure17-order", "table1-free-mean"} < left
    assert all((rows[key].ours, rows[key].within) == (None, None) for key in left)


def test_without_mininet_every_row_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.named("mininet").hosting, "missing", classmethod(lambda cls: "Mininet"))
    study = Study("polachan2022-mininet", None, world="mininet")
    from tcpsbed.lab.reproduce import polachan2022_mininet

    polachan2022_mininet.reproduce(study)
    assert {row.key for row in study.rows} == set(study.expected)
    assert {row.ours for row in study.rows} == {None}
    assert all("needs Mininet" in row.reason for row in study.rows)
