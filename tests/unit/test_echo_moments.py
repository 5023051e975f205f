"""Echo commands against traffic of their own period: drawn moments meet it at every phase. [Polachan 2022: echoes]"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tcpsbed import _tcps, scenarios
from tcpsbed.analysis import stats
from tcpsbed.analysis.records import KINDS, open_records

SCENARIO = """
name = "beat"
duration = "1.2 s"

[components]
tactile-operator = "op"
tactile-teleoperator = "top"

[flows.kinematic]
sample = "24 B"
rate = "1 kHz"
transport = "udp"

[links.narrow]
from = "op"
to = "top"
rate = "4 Mbit/s"
delay = "2 ms"

[traffic.film]
on = "narrow"
rate = "1.2 Mbit/s"
packet = "1500 B"

[measure]
pcapng = false
echo = { points = "tactile-teleoperator.entry", period = "10 ms" }
"""
SEEDS = 100


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Round trips in milliseconds of a run with this seed and these settings of its echo commands."""
    folder = tmp_path_factory.mktemp("beat")
    (folder / "beat.toml").write_text(SCENARIO)
    plan = scenarios.compile_plan(scenarios.load(folder / "beat.toml"), folder)

    def run(seed: int, **echo: Any) -> np.ndarray:
        asked = plan | {"seed": seed, "probes": [plan["probes"][0] | echo]}
        _tcps.run_virtual(json.dumps(asked), folder / "records.bin")
        found = np.asarray(open_records(folder / "records.bin"))
        trips: np.ndarray = found[found["kind"] == 1 + KINDS.index("echo")]["value"] / 1e6
        return trips

    return run


@pytest.mark.parametrize("drawn", [True, False])
def test_the_interval_has_the_mean_of_all_samples_where_moments_are_drawn(trips: Any, drawn: bool) -> None:
    # Every sample once, as samples that carry a command are longer than others: a command at each of the ten in a period.
    truth = np.mean([trips(1, start_ns=tick * 1_000_000).mean() for tick in range(10)])
    intervals = [stats.interval(trips(seed, drawn=drawn)) for seed in range(SEEDS)]
    right = sum(abs(found.mean - truth) <= found.half for found in intervals)
    assert all(found.n > 100 for found in intervals)
    assert right >= 93 if drawn else right == 0
