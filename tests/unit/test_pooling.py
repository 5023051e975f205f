"""Echoes of several rounds: together they are what one round of all of them would have been."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command import scenario, tcpsbed

from tcpsbed.analysis.latency import Confidence
from tcpsbed.analysis.pooling import distribution, pooled
from tcpsbed.analysis.stats import interval
from tcpsbed.api.latency import _verdict
from tcpsbed.views import numbers, text


def told(values: list[float]) -> dict[str, Any]:
    found = interval(values)
    return {
        "n": len(values),
        "mean": found.mean,
        "sd": statistics.stdev(values),
        "min": min(values),
        "max": max(values),
        "ci95": found.half,
        "p50": statistics.median(values),
    }


def test_two_samples_are_pooled_as_one() -> None:
    a, b = [1.0, 2.0, 4.0], [3.0, 3.5, 8.0, 9.0]
    found, whole = distribution(told(a), told(b)), told([*a, *b])
    assert found is not None and found["p50"] is None, "a percentile cannot be pooled"
    for key in ("n", "mean", "sd", "min", "max", "ci95"):
        assert found[key] == pytest.approx(whole[key])
    assert distribution(None, told(b)) == told(b) and distribution(None, None) is None


def probe(values: list[float]) -> dict[str, Any]:
    part = {"name": "srv", "what": "component", "latency_ms": told(values), "ci95": 1.0, "ci95_batch": 1.0}
    point = {"point": "srv.exit", "n": len(values), "lost": 1, "superseded": 0, "round_trip_ms": told(values)}
    lists = {"points": [point], "components": [part], "links": [], "spans": []}
    return {"f": lists | {"commands": 9, "actuation_ms": None}}


def test_rounds_add_up_point_by_point() -> None:
    a, b = [1.0, 2.0, 4.0], [3.0, 3.5, 8.0, 9.0]
    found = pooled(pooled(None, probe(a)), probe(b))["f"]
    assert (found["commands"], found["points"][0]["n"], found["points"][0]["lost"]) == (18, 7, 2)
    assert found["components"][0]["ci95"] == pytest.approx(told([*a, *b])["ci95"])
    assert found["components"][0]["ci95_batch"] is None


def test_a_negative_latency_may_be_0_only_where_its_interval_holds_0() -> None:
    assert numbers.nothing(-0.02, 0.05) == "may be 0"
    assert numbers.nothing(-0.2, 0.05) == "" == numbers.nothing(0.2, 0.05)
    found = probe([1.0, 2.0, 3.0])
    found["f"]["components"][0] |= {"latency_ms": {"mean": -0.02}, "ci95": 0.05}
    shown = text.echo({"echo": found})
    assert "−0.020" in shown and "0.050" in shown and "may be 0" in shown
    found["f"] |= {"components": [], "actuation_ms": told([1.0, 2.0]) | {"mean": -0.02, "ci95": 0.05}}
    assert "may be 0" in text.echo({"echo": found})


def test_a_negative_latency_is_explained_under_the_table() -> None:
    found = probe([1.0, 2.0, 3.0])
    part = found["f"]["components"][0]
    for mean in (-0.02, -0.05):
        part |= {"latency_ms": {"mean": mean}, "ci95": 0.05}
        assert "Negative, but the interval includes 0: srv. These may be 0." in text.echo({"echo": found})
    part |= {"latency_ms": {"mean": -0.2}, "ci95": 0.05}
    assert "Negative beyond the interval: srv. The two points" in text.echo({"echo": found})
    part |= {"latency_ms": {"mean": 0.02}, "ci95": 0.05}
    assert "Negative" not in text.echo({"echo": found})


def test_the_verdict_of_a_run_out_of_time_says_how_well_things_are_known() -> None:
    said = _verdict({"echo": probe([1.0, 2.0, 4.0])}, Confidence(), reached=False, most_s=10.0)
    assert "--max-time is over, with 3 echoes or more per point; the least known is within" in said


@pytest.mark.realtime
@pytest.mark.beside
def test_on_sockets_echoes_of_all_rounds_count_and_max_time_ends_them(tmp_path: Path) -> None:
    file = str(scenario(tmp_path))
    done = tcpsbed(tmp_path, "latency", file, "--world", "real", "--out", "a", "--set", "wide=1.0")
    assert done.returncode == 0, done.stderr
    assert "every point's mean is known within 5 %" in done.stdout
    rounds = [line for line in done.stderr.splitlines() if line.startswith("round ")]
    asked = [int(line.split()[2]) for line in rounds]
    assert all(later <= 2 * before for before, later in pairwise(asked))
    done = tcpsbed(
        tmp_path, "latency", file, "--world", "real", "--out", "b", "--set", "wide=5.0", "--max-time", "3 s"
    )
    assert "--max-time is over" in done.stdout, done.stdout + done.stderr
