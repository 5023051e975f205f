"""The step by force, by sound and by light: three loops of one scenario, and the critical one is named."""

from __future__ import annotations

import math

import pytest

from tcpsbed import _tcps, scenarios
from tcpsbed.lab.control import experiment, table
from tcpsbed.lab.control.verdict import Limits


@pytest.fixture(scope="module")
def found(shipped_scenarios):
    scenario = scenarios.load(shipped_scenarios / "step-modalities.toml")
    return experiment.run(scenario, runs=3, phases=True)


# [Polachan 2022: steps] [Polachan 2022]
def test_each_modality_closes_a_loop_of_its_own(found) -> None:
    rise = {one.loop.name: [r.rise_ms for r in one.responses] for one in found}
    assert list(rise) == ["press", "speaker", "lamp"]
    assert all(math.isfinite(ms) for times in rise.values() for ms in times)
    assert max(rise["press"]) < min(rise["speaker"]) < max(rise["lamp"])
    assert all(abs(r.error) < 1 for one in found for r in one.responses), "each comes back to 1"
    assert {one.loop.controller for one in found} == {"touch", "listen", "look"}


def test_the_critical_modality_is_named(found) -> None:
    named = [(one.loop.name, one) for one in found]
    slowest = max(found, key=lambda one: min(r.rise_ms for r in one.responses)).loop.name
    limit = max(max(r.rise_ms for r in one.responses) for one in found if one.loop.name != slowest)
    assert f"critical: {slowest}\n" in table.text(named, Limits(rise_ms=limit, overshoot=1000))


def test_each_loop_draws_a_phase_of_its_own() -> None:
    """Two computers do not tick together, and neither do two of them with a third."""
    drawn = {_tcps.step_phase(1, 0, 1_000_000, name) for name in ("", "press", "speaker", "lamp")}
    assert len(drawn) == 4 and all(0 <= phase < 1_000_000 for phase in drawn)
