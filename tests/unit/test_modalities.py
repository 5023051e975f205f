"""The step by force, by sound and by light: three loops of one scenario, and the critical one is named."""

from __future__ import annotations

import math

import pytest

from tcpsbed import config
from tcpsbed.control import experiment, table
from tcpsbed.control.verdict import Limits


@pytest.fixture(scope="module")
def found(scenarios):
    scenario = config.load(scenarios / "step-modalities.toml")
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
