"""What the true time of samples went to, from a run to the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tcpsbed.analysis.metrics import section, split
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
    source = {"told": {"legs": legs}, "rows": rows, "world": "real"}
    value = section("split").value({"split": split.by_flow(source)})
    assert list(value) == ["force"]
    found = value["force"]
    assert (found["samples"], found["total_ms"]) == (90, 20.5)
    known = {"waiting": 1.0, "working": 0.4, "merging": 2.0, "system": 0.1}
    if emulated:
        known |= {"queueing": 3.0, "serialisation": 0.2, "propagation": 10.0}
    parts = {part["part"]: part["mean_ms"] for part in found["parts"]}
    assert parts == pytest.approx(known | {"unsplit": 20.5 - sum(known.values())})
    assert all("p99_ms" not in part for part in found["parts"]) and "clock_error_ms" not in found
    said = [one["part"] for one in found["unsplit"]]
    assert ("emulation error" in said) is emulated
    assert ("queueing, serialisation, propagation" in said) is not emulated


def test_on_sockets_the_last_component_alone_follows_the_delay_by_clocks() -> None:
    """The delay ends at the entry of the last component, behind the first one of its node, which took 3 ms."""
    here = leg(True, 100, 8.3e6, system=2e5, waiting=1e5, working=3e6, playout=5e6)
    spans = {"first": (0.0, 3e6), "last": (1e5, 0.0)}
    here["components"] = [
        {"component": name, "waiting_ns": waiting, "working_ns": working}
        for name, (waiting, working) in spans.items()
    ]
    path = [{"component": 0, "channel": 0}, {"component": 1, "channel": None}, {"component": 2}]
    plan = {
        "flows": [{"name": "force", "path": path}],
        "components": [{"name": name} for name in ("source", "first", "last")],
    }
    rows = {"flows": [{"name": "force", "delay_ns": {"mean": 10e6}}]}
    source = {"told": {"legs": [here]}, "rows": rows, "world": "real", "plan": plan}
    assert split.by_flow(source)["force"]["total_ns"] == 15.1e6
    assert split.by_flow(source | {"plan": None})["force"]["total_ns"] == 18.3e6, "one component at its node"
