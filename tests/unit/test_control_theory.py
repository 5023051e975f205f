"""Theory of the step experiment's loop against its characteristic polynomial and against runs; tuning; offsets."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.cli.app import app
from tcpsbed.lab.control import tuning
from tcpsbed.lab.control.batch import Bench, Cell
from tcpsbed.lab.control.offsets import offsets
from tcpsbed.lab.control.response import Step, dip
from tcpsbed.lab.control.theory import LoopModel, delay_of_drops_ms, margins, nyquist, response
from tcpsbed.lab.control.verdict import Limits

loops = st.builds(
    LoopModel,
    kp=st.floats(0, 1.5),
    ki_per_ms=st.floats(0.001, 0.5),
    period_ms=st.sampled_from([0.5, 1.0, 4.0]),
    delay_ms=st.floats(0, 60),
    c=st.floats(1.2, 6),
)


def largest_root(loop):
    """Largest magnitude among the roots of the closed loop: z^d (z - 1) + ((Kp + g) z - Kp) / c = 0."""
    polynomial = np.zeros(loop.ticks + 2)
    polynomial[0], polynomial[1] = 1.0, -1.0
    polynomial[-2] += (loop.kp + loop.g) / loop.c
    polynomial[-1] -= loop.kp / loop.c
    return np.abs(np.roots(polynomial)).max()


@given(loops)
def test_margins_agree_with_the_roots_of_the_closed_loop(loop):
    """[Polachan 2022: steps] A gain margin below 1 is a root outside the unit circle; at the margin the root is on it."""
    found = margins(loop)
    if abs(found.gain - 1) > 1e-3:
        assert found.stable == (largest_root(loop) < 1)
    if math.isfinite(found.gain):
        edge = LoopModel(
            loop.kp * found.gain, loop.ki_per_ms * found.gain, loop.period_ms, loop.delay_ms, loop.c
        )
        assert largest_root(edge) == pytest.approx(1, abs=1e-3)


@given(loops)
def test_the_delay_margin_is_the_last_delay_that_is_borne(loop):
    """[Polachan 2022: steps] In whole ticks: stable just within the margin, unstable just beyond."""
    found = margins(loop)
    if not 0 < found.delay_ms < 500:
        return
    ticks = loop.ticks + found.delay_ms / loop.period_ms
    for n, stable in ((math.floor(ticks), True), (math.ceil(ticks), False)):
        if abs(n - ticks) > 1e-2:
            shifted = LoopModel(loop.kp, loop.ki_per_ms, loop.period_ms, n * loop.period_ms, loop.c)
            assert (largest_root(shifted) < 1) == stable, (n, ticks)


def test_integral_action_alone_is_unstable_beyond_half_pi():
    """[Polachan 2022: steps] g = Ki theta / 2 > pi / 2, for a period much shorter than the delay."""
    for g, stable in ((1.55, True), (1.59, False)):
        assert margins(LoopModel(0, 2 * g / 1000, 1, 1000)).stable == stable


def test_the_nyquist_curve_crosses_where_the_margins_say():
    loop = LoopModel(0.2, 0.09, 1, 10)
    hz, curve = nyquist(loop, 200_000)
    found = margins(loop)
    crossing = hz[np.argmin(np.abs(np.abs(curve) - 1))]
    assert crossing == pytest.approx(found.crossing_hz, rel=1e-3)
    below = np.flatnonzero((curve.imag[:-1] < 0) & (curve.imag[1:] >= 0) & (curve.real[1:] < 0))[0]
    assert -1 / curve.real[below] == pytest.approx(found.gain, rel=1e-3)


def test_runs_diverge_where_theory_says():
    """The last stable and the first unstable round trip of the shipped gains, in runs of 20 s."""
    loop = LoopModel(0.2, 0.0909, 1, 10)
    last = math.floor(loop.ticks + margins(loop).delay_ms)
    found = Bench(Step(2, 200), runs=1, duration_ms=20_000).run(
        [Cell(1, 0, rtt, 0.2, 0.0909) for rtt in (last - 1, last + 2)], keep=True
    )
    assert [one["runs"][0]["settling_ms"] is not None for one in found] == [True, False]


def test_drops_act_as_delay():
    """[Polachan 2022: steps] p / (1 - p) T per direction: with as much delay instead the overshoot is about the same."""
    assert delay_of_drops_ms(0.5, 1) == 2 and math.isinf(delay_of_drops_ms(1, 1))
    lossy, slow = Bench(runs=4000).run(
        [
            Cell(1, 10, 10, 0.2, 0.0758, loss={"kind": "random", "p": 0.5}),
            Cell(1, 11, 11, 0.2, 0.0758),
        ]
    )
    clean = Bench(runs=1).run([Cell(1, 10, 10, 0.2, 0.0758)])[0]["overshoot"]["mean"]
    rise = [one["overshoot"]["mean"] - clean for one in (lossy, slow)]
    assert rise[0] == pytest.approx(rise[1], rel=0.5)


@pytest.mark.parametrize("c", [1.5, 4.0])
def test_another_step_with_gains_in_proportion_answers_the_same(c):
    """Why gains are tuned relative to c: all figures are the same, in percent of the step."""
    cells = [
        Bench(Step(x, 200), runs=1).run([Cell(1, 4, 6, 0.15 * x, 0.05 * x)], keep=True)[0] for x in (2.0, c)
    ]
    first, second = (cell["runs"][0] for cell in cells)
    for name in ("rise_ms", "overshoot", "undershoot", "settling_ms"):
        assert first[name] == pytest.approx(second[name], abs=1e-6), name


def test_tuned_gains_keep_their_limits_and_no_neighbour_is_faster():
    """[model: rise-time index] Overshoot, undershoot at most 5 % in 95 % of runs, Kp / c at most 0.4, shortest rise time."""
    network = tuning.Network(10.0, loss={"kind": "random", "p": 0.1})
    best = tuning.tune(network, runs=100)
    assert best is not None and 0 <= best.kp <= 0.8
    around = [(best.kp * a, best.ki_per_ms * b) for a in (0.8, 1, 1.2) for b in (0.85, 1, 1.15)]
    bench = Bench(Step(2, 22), 100, 682, 1, tuning.TIGHT)
    for gains, cell in zip(around, bench.run([network.cell(*pair) for pair in around]), strict=True):
        if gains == (best.kp, best.ki_per_ms):
            assert cell["good"] >= 95 and cell["rise_ms"]["mean"] == pytest.approx(best.rise_ms, abs=0.2)
        elif cell["good"] >= 95 and gains[0] <= 0.8:
            assert cell["rise_ms"]["mean"] >= best.rise_ms - 0.5, gains


def test_the_rise_time_index_falls_with_the_network():
    """[model: rise-time index] log10(1 ms / t*): 0 for a rise in 1 ms, -1 for ten times as long."""
    assert tuning.index(1) == 0 and tuning.index(10) == -1
    found = [tuning.tune(tuning.Network(rtt), runs=20) for rtt in (2.0, 20.0)]
    assert found[0] and found[1] and found[0].index > found[1].index + 0.5


def test_sensitive_gains_show_a_change_of_the_network_more():
    limits = Limits(overshoot=20)
    fast, sensitive = (
        tuning.tune(tuning.Network(10.0), goal=goal, limits=limits, runs=40)
        for goal in ("rise", "sensitivity")
    )
    assert fast and sensitive and sensitive.per_ms >= fast.per_ms and sensitive.rise_ms >= fast.rise_ms


def test_no_gains_for_a_network_that_loses_everything():
    assert tuning.tune(tuning.Network(10.0, loss={"kind": "random", "p": 1.0}), runs=4) is None


def test_offsets_part_delay_from_error():
    """[arXiv:2107.05343] [Sakoe and Chiba 1978] A delayed signal is late and right; a scaled one is wrong and in time."""
    signal = [0.0] * 40 + [math.sin(i / 15) for i in range(200)] + [0.0] * 40
    late = offsets(signal, [0.0] * 12 + signal[:-12], 1.0)
    assert late.time_ms == pytest.approx(12, abs=0.5) and late.value < 0.01
    wrong = offsets(signal, [x + 0.3 for x in signal], 1.0, 2.0)
    assert abs(wrong.time_ms) < 2 and wrong.value > 0.2
    same = offsets(signal, signal, 1.0)
    assert (same.time_ms, same.value) == (0, 0)
    assert math.isnan(offsets([], [], 1.0).value)


def test_every_step_rises_alike_and_the_largest_shows_the_network_most():
    """[Polachan 2022: steps] Gains in proportion to c answer the same in percent of the step; h grows by 1 - 1/c of that."""
    network, limits = tuning.Network(10.0), Limits(overshoot=20.0, undershoot=20.0)
    for kp, ki in ((0.1, 0.05), (0.05, 0.0325)):
        means = [
            (found["rise_ms"]["mean"], found["overshoot"]["mean"])
            for c in (1.5, 2.0, 4.0, tuning.MOST_C)
            for found in Bench(Step(c, 22), 40, 682, 1, limits).run([network.cell(kp * c, ki * c)])
        ]
        assert all(one == pytest.approx(means[0], rel=1e-6, abs=1e-6) for one in means), means
    found = [
        tuning.tune(network, goal="sensitivity", limits=limits, c=c, runs=20) for c in (1.5, tuning.MOST_C)
    ]
    small, large = (one for one in found if one is not None)
    assert large.growth > 1.5 * small.growth and large.per_ms == pytest.approx(small.per_ms, rel=0.1)
    assert tuning.best([small, large], "sensitivity") is large
    assert tuning.best([], "rise") is None


@pytest.mark.parametrize("goal", ["rise", "sensitivity"])
def test_gains_with_which_an_error_stays_come_after_all_others(goal):
    quick = tuning.Tuned(0.1, 0.01, 5.0, 0.0, 9.0, error=-9.0)
    slow = tuning.Tuned(0.1, 0.01, 50.0, 0.0, 0.1, error=-0.1)
    assert tuning.best([quick, slow], goal) is slow
    quicker = tuning.Tuned(0.1, 0.01, 4.0, 0.0, 10.0, error=8.0)
    assert tuning.best([quick, quicker], goal) is quicker


def test_gains_without_an_integral_are_said_not_to_settle():
    slow = ([1.0], [0.2, 1.0])
    found = tcpsbed.tune("6 ms", plant=slow, controller=([1.0], [1.0]), runs=4)
    assert found is not None and found.best.lasting and found.figures["lasting"]
    law = found.loop.controller
    left = 100 / (1 + law["d"] / found.best.c)
    assert abs(found.best.error) == pytest.approx(left, rel=0.02) and left < 10, "it rises to 90 %"
    assert f"NOT settled  an error of {left:.1f} % of the step stays" in str(found)
    integral = tcpsbed.tune("6 ms", plant=slow, controller=([1.0, 5.0], [1.0, 0.0]), runs=4)
    assert integral is not None and not integral.best.lasting and "NOT settled" not in str(integral)


def test_gains_that_theory_calls_unstable_are_never_the_best(capsys) -> None:
    plant = '{ kind = "transfer-function", num = [1], den = [1, -1] }'
    done = CliRunner().invoke(app, ["tune", "--rtt", "10 ms", "--runs", "5", "--plant", plant])
    assert done.exit_code == 1 and done.stdout.startswith("no gains that are stable by theory keep"), (
        done.stdout
    )
    unstable, stable = tuning.Tuned(2.0, 0.5, 1.0, 0.0, 0.0), tuning.Tuned(0.1, 0.05, 9.0, 0.0, 0.0)
    kept = [tuning.ANY.kept(tuning.Network(10.0), one, 2.0) for one in (unstable, stable)]
    assert kept == [False, True]


def test_nothing_stops_faster_gains_where_they_are_not_wanted_and_a_margin_may() -> None:
    assert tcpsbed.tune("20 ms", goal="sensitivity", runs=5).best.stopped_by == ()
    found = tcpsbed.tune("20 ms", margin="6", runs=5)
    assert found.best.stopped_by == ("margin",) and "the limit of margin" in str(found)


def test_what_stops_faster_gains_is_named() -> None:
    loop = {
        "plant": {"kind": "transfer-function", "num": [40.0], "den": [1.0, 6.0, 0.0]},
        "controller": {"kind": "transfer-function", "num": [1.5, 3.0], "den": [1.0, 12.0]},
    }
    for limits, stopped in (({}, "undershoot"), ({"undershoot": 1000.0}, "overshoot")):
        found = tcpsbed.tune("150 ms", **loop, disturbance="output", runs=1, **limits)  # type: ignore[arg-type]
        assert found.best.stopped_by == (stopped,)
        assert f"stopped by   the limit of {stopped}: faster gains exceed it" in str(found)


SWAYS = {
    "plant": ([40.0], [1.0, 6.0, 0.0]),
    "controller": ([1.5, 3.0], [1.0, 12.0]),
    "disturbance": "output",
}
"""Its fastest response within the limits falls far before it first crosses the target."""


def test_a_dip_before_the_target_is_told_with_the_gains_that_have_none(tmp_path):
    found = tcpsbed.tune("150 ms", **SWAYS, runs=1)
    best, calm = found.best, found.best.without_dip
    assert best.undershoot == 0 and 15 < best.dip < 30, "undershoot counts from the crossing on"
    assert calm is not None and calm.dip <= 5 and calm.rise_ms > best.rise_ms and calm.factor < best.factor
    told = str(found)
    assert f"dips         by {best.dip:.1f} % of the step at {best.dip_ms:.1f} ms, before" in told
    written = f"multiply it by {calm.factor:.4g} (--factor {calm.factor:.4g} of tcpsbed step and map)"
    assert f"without dip  {written}: rise time {calm.rise_ms:.1f} ms" in told
    assert found.figures["dip"] == best.dip and found.figures["without_dip"]["factor"] == calm.factor
    for one in (best, calm):
        asked = {"rtt": "150 ms", "factor": one.factor, "runs": 1, "duration": "4 s"}
        ran = tcpsbed.step(**SWAYS, **asked, out=tmp_path / f"{one.factor}")
        [curve] = ran[f"RTT 150 ms, factor {one.factor!r}"].curves
        after = curve.t_ms >= 200
        fall, place = dip(2 * curve.h[after] - 1)  # h falls to 1/2
        assert (100 * fall, curve.t_ms[after][place] - 200) == pytest.approx((one.dip, one.dip_ms), abs=1e-6)


def test_gains_without_a_dip_say_nothing_of_it():
    found = tcpsbed.tune("10 ms", runs=5)
    assert found is not None and found.best.dip <= 5 and found.best.without_dip is None
    assert "dip" not in str(found)
    lone = replace(found, best=replace(found.best, dip=9.0, dip_ms=7.0))
    assert "without dip  none of the gains that were tried keep the limits with a dip up to 5 %" in str(lone)


def test_the_response_by_theory_is_that_of_the_equations():
    loop = LoopModel(0.4, 0.1, 2.0, 9.0)
    [cell] = Bench(Step(2, 0), runs=1, duration_ms=400.0).run([Cell(2.0, 4, 5, 0.4, 0.1)], keep=True)
    h = response(loop, 200)
    assert 100 * (h.max() - 1) == pytest.approx(cell["runs"][0]["overshoot"], abs=1e-6)
    assert 2.0 * np.flatnonzero(h >= 0.9)[0] == cell["runs"][0]["rise_ms"]


def test_the_progress_of_tune_leaves_a_part_to_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    at: list[float] = []
    asked = tuning.margins
    monkeypatch.setattr(tuning, "margins", lambda loop: at.append(shares[-1]) or asked(loop))
    tuning.tune(tuning.Network(2.0), runs=2, progress=shares.append)
    assert at[0] == pytest.approx(0.35) and at[-1] < 0.95, "both times"
