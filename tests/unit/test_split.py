"""What the true time of samples went to, from a run to the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tcpsbed.analysis.metrics import section
from tcpsbed.cli.app import app

DUMBBELL = Path(__file__).resolve().parents[2] / "scenarios" / "dumbbell-udp.toml"


def test_parts_add_up_and_are_shown(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    run = ["run", str(DUMBBELL), "--out", folder, "--duration", "1 s", "--no-report", "--no-samples"]
    assert CliRunner().invoke(app, run).exit_code == 0
    split = json.loads((tmp_path / "run" / "summary.json").read_text())["split"]
    assert list(split) == ["kinematic", "haptic"]
    for found in split.values():
        assert sum(part["mean_ms"] for part in found["parts"]) == pytest.approx(found["total_ms"])
        assert sum(part["share"] for part in found["parts"]) == pytest.approx(1)
    assert split["kinematic"]["parts"][-1] == pytest.approx(
        {"part": "propagation", "mean_ms": 15.0, "p99_ms": 15.0, "share": 15 / split["kinematic"]["total_ms"]}
    )
    assert [hop["link"] for hop in split["kinematic"]["hops"]] == [
        "access.forward",
        "l1.forward",
        "egress.forward",
    ]
    shown = CliRunner().invoke(app, ["show", folder]).output
    assert "True time by cause" in shown and "True time by link" in shown


def leg(ends: bool, samples: int, total_ns: float, **parts_ns: float) -> dict[str, Any]:
    """What a node on sockets knows of a flow."""
    spans = {part: {"sum": mean * samples, "mean": mean, "p99": 0} for part, mean in parts_ns.items()}
    here = {"flow": "force", "ends": ends, "samples": samples, "total_ns": total_ns, "parts_ns": spans}
    return here | {"clock_error_ns": 0, "components": [], "hops": []}


@pytest.mark.parametrize("emulated", [False, True])
def test_on_sockets_the_rest_is_one_part_that_is_named(emulated: bool) -> None:
    legs = [leg(False, 100, 3e6, waiting=1e6, merging=2e6), leg(True, 90, 5e5, system=1e5, working=4e5)]
    if emulated:
        # Behind the first network a stage makes ten samples of one.
        legs += [
            leg(False, n, 0, queueing=queued, serialisation=1e5, propagation=5e6)
            for n, queued in ((100, 2e6), (1000, 1e6))
        ]
    rows = {"flows": [{"name": "force", "delay_ns": {"mean": 20e6}}, {"name": "none", "delay_ns": None}]}
    found = section("split").value({"told": {"legs": legs}, "rows": rows, "world": "real"})
    assert list(found) == ["force"]
    split = found["force"]
    assert (split["samples"], split["total_ms"]) == (90, 20.5)
    known = {"waiting": 1.0, "working": 0.4, "merging": 2.0, "system": 0.1}
    if emulated:
        known |= {"queueing": 3.0, "serialisation": 0.2, "propagation": 10.0}
    parts = {part["part"]: part["mean_ms"] for part in split["parts"]}
    assert parts == pytest.approx(known | {"unsplit": 20.5 - sum(known.values())})
    assert all("p99_ms" not in part for part in split["parts"]) and "clock_error_ms" not in split
    said = [one["part"] for one in split["unsplit"]]
    assert ("emulation error" in said) is emulated
    assert ("queueing, serialisation, propagation" in said) is not emulated
