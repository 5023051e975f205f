"""The step experiment on the machine's clock: what virtual time says, and the runs that were disturbed are told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean

import pytest
from again import in_time

from tcpsbed import scenarios
from tcpsbed.lab.control import experiment, table
from tcpsbed.lab.control.verdict import Limits

pytestmark = pytest.mark.realtime
SCENARIO = Path(__file__).parents[2] / "scenarios" / "step.toml"
RUNS = 4
RISE_MS, OVERSHOOT = 3.0, 6.0
"""Twice what benches/step_real.py allows for the means of fifty runs."""


def test_both_worlds_answer_the_step_alike_and_disturbed_runs_are_told() -> None:
    """[Polachan 2022: steps] Means over the same tick phases in both worlds."""
    scenario = scenarios.load(SCENARIO, ['duration="600 ms"', "hooks.pi.params.ki_per_ms=0.146"])
    virtual, real = (
        experiment.run(scenario, runs=RUNS, world=world, phases=True)[0] for world in ("virtual", "real")
    )
    for one in (virtual, real):
        assert all(math.isfinite(r.rise_ms) for r in one.responses)
    for figure, bar in (("rise_ms", RISE_MS), ("overshoot", OVERSHOOT)):
        means = [fmean(getattr(r, figure) for r in one.responses) for one in (virtual, real)]
        with in_time(text for curve in real.curves for text in curve.disturbed):
            assert means[1] == pytest.approx(means[0], abs=bar), (figure, table.disturbed([("", real)]))
    assert len(virtual.undisturbed) == RUNS and table.disturbed([("", virtual)]) == ""
    hit = RUNS - len(real.undisturbed)
    said = table.text([("", real)], Limits())
    assert (f"DISTURBED: {hit} of {RUNS} runs" in said) == (hit > 0)
    entry = json.loads(json.dumps(table.plain(table.entry("", real, Limits()))))
    assert entry["undisturbed"]["runs"] == RUNS - hit
    assert sum(bool(run["disturbed"]) for run in entry["runs"]) == hit


@pytest.mark.needs("root", "tun")
def test_the_step_is_answered_in_another_world() -> None:
    """A network namespace a node: every run builds its world anew, and the loop closes through it."""
    scenario = scenarios.load(SCENARIO, ['duration="400 ms"'])
    (found,) = experiment.run(scenario, runs=2, world="namespaces")
    assert len(found.curves) == 2 and all(math.isfinite(r.rise_ms) for r in found.responses)
