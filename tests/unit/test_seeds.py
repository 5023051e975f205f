"""`tcpsbed run --seeds N`: means over seeds with intervals; one seed says that it is one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import scenario, tcpsbed

from tcpsbed.analysis.stats import t975

SHORT = """
duration = "1 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "200 Hz"
[links.wan]
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "1 ms"
loss = "10 %"
[measure]
grace = "10 ms"
"""


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def test_the_interval_is_that_of_the_seeds_means(tmp_path: Path) -> None:
    """Student's t over the losses of four runs that were started one by one."""
    (tmp_path / "short.toml").write_text(SHORT)
    command = [sys.executable, "-m", "tcpsbed", "run", "short.toml", "--no-samples"]
    for arguments in (
        ["--seeds", "4", "--out", "all"],
        *(["--seed", str(n), "--out", str(n)] for n in range(1, 5)),
    ):
        subprocess.run([*command, *arguments], cwd=tmp_path, check=True, capture_output=True)
    losses = [summary(tmp_path / str(n))["flows"]["kinematic"]["loss"] for n in range(1, 5)]
    mean = sum(losses) / 4
    sd = (sum((loss - mean) ** 2 for loss in losses) / 3) ** 0.5
    across = summary(tmp_path / "all")["across_seeds"]
    assert across["seeds"] == [1, 2, 3, 4] and across["failed"] == []
    assert sd > 0, "the scenario draws its losses"
    found = across["flows"]["kinematic"]["loss"]
    assert found["n"] == 4
    assert found["mean"] == pytest.approx(mean)
    assert found["ci95"] == pytest.approx(t975(3) * sd / 2)


def test_tables_and_report_state_the_interval(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--seeds", "3", "--out", "here")
    assert done.returncode == 0, done.stderr
    assert "Means over 3 seeds with the 95 % interval; all else is about seed 1." in done.stdout
    assert "Across seeds" in (tmp_path / "here/report.html").read_text()
    assert "Means over 3 seeds" in tcpsbed(tmp_path, "show", "here").stdout


def test_one_seed_says_so(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--out", "here")
    assert "One seed, one draw of everything random: --seeds 10 gives intervals" in done.stdout
    assert "One seed, one draw" in (tmp_path / "here/report.html").read_text()
    real = tcpsbed(tmp_path, "run", "short.toml", "--world", "real", "--out", "there")
    assert "One seed" not in real.stdout


def test_a_later_run_in_the_folder_does_not_keep_the_interval(tmp_path: Path) -> None:
    file = str(scenario(tmp_path))
    tcpsbed(tmp_path, "run", file, "--seeds", "2", "--out", "here")
    tcpsbed(tmp_path, "run", file, "--out", "here")
    assert not (tmp_path / "here/seeds").exists()
    assert summary(tmp_path / "here")["across_seeds"] == {
        "seeds": [1],
        "failed": [],
        "disturbed": [],
        "flows": {},
    }


def test_seeds_that_fail_are_counted_and_the_others_go_on(tmp_path: Path) -> None:
    """The run goes well under the first seed; under seed 3 the stand-in fails."""
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\nfails_at_seed = 3\n')
    done = tcpsbed(tmp_path, "run", str(file), "--seeds", "4", "--out", "here")
    assert done.returncode == 1
    assert "1 of 4 seeds failed" in done.stderr and "Traceback" not in done.stderr
    across = summary(tmp_path / "here")["across_seeds"]
    assert (across["seeds"], across["failed"]) == ([1, 2, 4], [3])
