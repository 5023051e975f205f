"""Virtual time runs where there is no Linux; what needs Linux says so. The calls that macOS lacks are taken away here."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tcpsbed import _tcps
from tcpsbed.cli.app import app

LACKING = {
    os: "O_PATH getxattr memfd_create posix_fallocate sched_getaffinity sched_getscheduler sched_setscheduler setxattr",
    _tcps: "Drain Proxy measure_timing merge_captures run_isolated run_node",
}
"""What of Python macOS has not, and what the module has not that is built there."""


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in LACKING.items():
        for name in names.split():
            monkeypatch.delattr(module, name)
    monkeypatch.setattr(sys, "platform", "darwin")


def test_a_scenario_runs_in_virtual_time(elsewhere: None, shipped_scenarios: Path, tmp_path: Path) -> None:
    out, scenario = tmp_path / "run", shipped_scenarios / "quickstart.toml"
    for _ in range(2):  # the second in place of the first
        done = CliRunner().invoke(app, ["run", str(scenario), "--duration", "1 s", "--out", str(out)])
        assert done.exit_code == 0, done.output
    assert json.loads((out / "summary.json").read_text())["machine"]["cores"] > 0


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["run", "{quickstart}", "--world", "real"], "world real"),
        (["run", "{quickstart}", "--world", "namespaces"], "world namespaces"),
        (["proxy", "--delay", "5 ms", "7000=127.0.0.1:7100"], "the proxy"),
        (["netns", "--delay", "5 ms", "--", "true"], "netns"),
        (["doctor"], "doctor"),
    ],
)
def test_what_needs_linux_says_so(
    elsewhere: None, shipped_scenarios: Path, tmp_path: Path, words: list[str], what: str
) -> None:
    words = [word.format(quickstart=shipped_scenarios / "quickstart.toml") for word in words]
    if words[0] == "run":
        words += ["--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and f"{what} is not ready here: it needs Linux" in done.output, done.output
