"""What the true time of samples went to, from a run to the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

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
    assert [hop["link"] for hop in split["kinematic"]["hops"]] == ["access.forward", "l1.forward"]
    shown = CliRunner().invoke(app, ["show", folder]).output
    assert "What the true time went to, by part" in shown and "The same, by link" in shown
