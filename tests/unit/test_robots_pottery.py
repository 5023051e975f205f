"""Pottery: volume stays, force and sound come with contact, hostile commands change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made

from tcpsbed.errors import HookError
from tcpsbed.robots.pottery import LEAST_M, Filing, Pottery

MS = 1_000_000
PLACES = st.tuples(st.floats(0.0, 0.1), st.floats(-0.05, 0.05), st.floats(-0.05, 0.25))


def shaped(pottery: Pottery, place, ms: int, since: int = 0) -> np.ndarray:
    """What is sensed after so many ticks with the hand at a place."""
    sense = np.zeros(8)
    for t in range(since, since + ms):
        assert pottery.step(t * MS, np.array(place), sense) == 8
    return sense


@given(st.lists(PLACES, min_size=1, max_size=8))
@pytest.mark.slow
def test_the_volume_stays_wherever_the_hand_goes(places):
    """[Gokhale 2017: opinions]"""
    pottery = made(Pottery)
    before = pottery.volume_m3
    for i, place in enumerate(places):
        shaped(pottery, place, 40, 40 * i)
    assert pottery.volume_m3 == pytest.approx(before, rel=1e-9)
    assert (pottery.radii >= LEAST_M - 1e-12).all() and np.isfinite(pottery.place).all()


@pytest.mark.slow
def test_a_tool_held_in_the_clay_makes_a_waist():
    """[Gokhale 2017: opinions]"""
    pottery = made(Pottery)
    at_once = shaped(pottery, (0.05, 0.0, 0.1), 300)
    assert at_once[0] > 0.5 and at_once[6] == 1.0, "pushed outwards"
    later = shaped(pottery, (0.05, 0.0, 0.1), 5000, 300)
    middle = np.abs(pottery.heights - 0.1) < 0.004
    beside = np.abs(np.abs(pottery.heights - 0.1) - 0.025) < 0.003
    assert pottery.radii[middle].max() < 0.045 and pottery.radii[beside].min() > 0.0505
    assert later[0] < at_once[0], "clay gives way"


def test_filing_sounds_only_in_contact():
    """[Gokhale 2017: opinions]"""
    pottery, filing, sound = made(Pottery), Filing(), np.zeros(256, np.uint8)
    free = shaped(pottery, (0.1, 0.0, 0.1), 300)
    assert free[6] == 0.0 and filing(0, 0, free, np.zeros(0), sound) == 0
    touching = shaped(pottery, (0.05, 0.0, 0.1), 300, 300)
    assert filing(0, 1, touching, np.zeros(0), sound) == 160
    assert len(np.unique(sound[:160])) > 20


def test_mu_law_is_that_of_the_standard():
    """Values of ITU-T G.711, table 2b: 0, both ends, and both signs of a small one."""
    from tcpsbed.robots.pottery import _mu_law

    assert _mu_law(np.array([0.0, 1.0, -1.0, 100 / 8159, -100 / 8159])).tolist() == [
        0xFF,
        0x80,
        0x00,
        0xDF,
        0x5F,
    ]


def test_a_command_that_is_no_number_changes_nothing():
    pottery = made(Pottery)
    goal = pottery.goal.copy()
    shaped(pottery, (np.nan, 0.0, 0.1), 5)
    shaped(pottery, (0.05,), 5, 5)
    assert (pottery.goal == goal).all()
    with pytest.raises(HookError, match="yield_s: found 0; allowed: a number above 0"):
        made(Pottery, yield_s=0)


def test_the_picture_shows_the_shape():
    pottery = made(Pottery)
    before = pottery.render("front", 150, 100)
    assert before.shape == (100, 150, 3) and before.nbytes == 45_000
    shaped(pottery, (0.045, 0.0, 0.1), 2000)
    assert np.abs(before.astype(int) - pottery.render("front", 150, 100)).mean() > 1
