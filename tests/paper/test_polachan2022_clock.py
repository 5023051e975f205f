"""Polachan 2022 on the machine's clock: figures 8 and 18 as measured, by the short sweeps of `tcpsbed reproduce`."""

from __future__ import annotations

import pytest

from tcpsbed.lab.reproduce import polachan2022
from tcpsbed.lab.reproduce.polachan2022_arm import MEASURED
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study

pytestmark = pytest.mark.realtime
WORK = "polachan2022"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The experiments on the machine's clock, short."""
    study = Study(WORK, tmp_path_factory.mktemp("figures"), full=False)
    polachan2022.on_the_clock(study)
    return study


# [Polachan 2022]
def test_board_line_and_arm_take_what_physics_gives_them_at_least(study: Study, rows: dict[str, Row]) -> None:
    """Which of three components takes longest, and what a line takes beside its bytes, is this machine's."""
    lack = rows["figure8-srv"].reason
    if lack.startswith(("needs", "this machine lacks")):
        pytest.skip(lack)
    assert all(rows[key].ours is not None for key in MEASURED)
    assert (rows["figure8-uart-measured"].ours or 0.0) > 0.3, "the bytes alone take 0.32 ms"
    assert (rows["figure8-actuation-measured"].ours or 0.0) > 60.0
    assert "figure8" in {name for name, _ in study.figures}


# [Polachan 2022]
def test_video_beside_commands_is_measured_whichever_way_it_comes_out(
    study: Study, rows: dict[str, Row]
) -> None:
    loopback, namespaces = (rows[f"figure18-{place}"] for place in ("loopback", "namespaces"))
    assert loopback.within is not None and "median round trips" in loopback.reason
    assert abs(loopback.ours or 0.0) < 1000.0, "20 kB thirty times a second are no load"
    assert namespaces.within is not None or namespaces.reason.startswith("this machine lacks")
    assert "figure18-measured" in {name for name, _ in study.figures}
