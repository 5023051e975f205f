"""Figures of step responses against curves drawn by hand, and the verdict on them."""

import math

import numpy as np
import pytest

from tcpsbed.lab.control.response import Response, Step, characterise
from tcpsbed.lab.control.verdict import Limits, reliability, wilson


def response(*h: float, c: float = 2.0) -> Response:
    """The response to values of one millisecond each, the first of them at the moment of the step."""
    return characterise(np.arange(-1.0, len(h)), np.array([1.0, *h]), Step(c, 0.0))


def test_every_figure_of_a_curve_drawn_by_hand():
    """[Polachan 2022: steps] Rise from t0 to 90 % of the step; over- and undershoot in percent of the step."""
    found = response(0.5, 0.5, 0.7, 0.94, 0.95, 1.1, 1.05, 0.96, 0.99, 1.01, *[1.0] * 90)
    assert found.rise_ms == 4
    assert found.overshoot == pytest.approx(20)
    assert found.undershoot == pytest.approx(8)
    assert found.settling_ms == 8
    assert found.error == pytest.approx(0)


def test_the_size_of_the_step_counts():
    """[Polachan 2022: steps] With c = 4 the step is 0.75 high: 90 % of it is 0.925, and 0.15 above 1 is 20 % of it."""
    found = response(0.25, 0.92, 0.925, 1.15, 1.0, *[1.0] * 50, c=4)
    assert (found.rise_ms, found.overshoot) == (2, pytest.approx(20))


def test_a_response_that_never_arrives_is_bad_and_has_no_rise_time():
    """[Polachan 2022: steps] An undefined rise time counts as bad, whatever the limits."""
    found = response(*np.linspace(0.5, 0.94, 200))
    assert math.isnan(found.rise_ms) and math.isnan(found.settling_ms)
    assert found.error < -10 and found.undershoot == 0
    assert not Limits(math.inf, math.inf, math.inf).good(found)


def test_what_rises_without_crossing_one_has_no_undershoot():
    assert response(0.5, 0.96, 0.999, *[0.9999] * 50).undershoot == 0


def test_a_run_that_ends_before_the_step_has_no_figures():
    found = characterise(np.arange(10.0), np.ones(10), Step(2, 200))
    assert all(math.isnan(value) for value in vars(found).values())


def test_limits_are_kept_or_not():
    """[Polachan 2022: steps] Good if the rise time and the overshoot are at most what is asked for."""
    limits = Limits(rise_ms=40, overshoot=20, undershoot=5)
    assert limits.good(Response(40, 20, 5, 100, 0))
    for bad in (Response(41, 20, 5, 100, 0), Response(40, 20.1, 5, 100, 0), Response(40, 20, 6, 100, 0)):
        assert not limits.good(bad)


def test_reliability_has_the_score_interval():
    """[Wilson 1927] Against the solution of (p - x)^2 = z^2 x (1 - x) / n for x."""
    z2 = 3.841458820694124
    for good, runs in ((0, 20), (9, 10), (195, 200), (20, 20)):
        found, p = wilson(good, runs), good / runs
        roots = np.sort(np.roots([1 + z2 / runs, -(2 * p + z2 / runs), p * p]).real)
        assert found.low == pytest.approx(roots[0], abs=1e-9)
        assert found.high == pytest.approx(roots[1], abs=1e-9)
    fine, wild = Response(30, 5, 0, 50, 0), Response(30, 50, 0, 50, 0)
    assert reliability([fine, fine, wild, fine], Limits()).share == 0.75
