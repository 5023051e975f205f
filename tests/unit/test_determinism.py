"""The same scenario and seed leave the same rows, whatever runs them and whatever else is recorded.

[DECISIONS 6], [DECISIONS 7], [DECISIONS 8]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpsbed import config, worlds
from tcpsbed.analysis.records import open_records

SHIPPED = {"quickstart": (), "dumbbell-udp": ('duration="10 s"',), "usnet9-latency": ()}
SAMPLES = (1, 2, 3)
"""Kinds of rows that tell of samples: sent, delivered, dropped."""
WITHOUT_FMA = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2"}


def simulate(file: Path, out: Path, *overrides: str) -> str:
    """Runs a scenario in virtual time: the hash of its rows."""
    worlds.run(config.load(file, ['measure.pcapng="off"', *overrides]), world="virtual", out=out)
    return hash_of(out)


def hash_of(out: Path) -> str:
    """The hash that a run folder states."""
    found: str = json.loads((out / "result.json").read_text())["records_sha256"]
    assert len(found) == 64
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_three_runs_leave_the_same_rows(scenarios: Path, tmp_path: Path, name: str) -> None:
    file = scenarios / f"{name}.toml"
    hashes = [simulate(file, tmp_path / str(i), *SHIPPED[name]) for i in range(3)]
    assert hashes == hashes[:1] * 3
    rows = [(tmp_path / str(i) / "records.bin").read_bytes() for i in range(2)]
    assert rows[0] == rows[1]


def test_another_seed_leaves_other_rows(scenarios: Path, tmp_path: Path) -> None:
    file, short = scenarios / "quickstart.toml", 'duration="3 s"'
    assert simulate(file, tmp_path / "one", short) != simulate(file, tmp_path / "two", short, "seed=2")


@pytest.mark.parametrize("name", SHIPPED)
def test_another_mathematical_library_leaves_the_same_rows(
    scenarios: Path, tmp_path: Path, name: str
) -> None:
    sets = [word for override in SHIPPED[name] for word in ("--set", override)]
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "run",
        str(scenarios / f"{name}.toml"),
        "--quiet",
        "--no-report",
        *sets,
    ]
    for kind, more in (("usual", {}), ("without-fma", WITHOUT_FMA)):
        out = ["--set", 'measure.pcapng="off"', "--out", str(tmp_path / kind)]
        subprocess.run([*command, *out], env=os.environ | more, check=True, timeout=60)
    assert hash_of(tmp_path / "usual") == hash_of(tmp_path / "without-fma")


@pytest.mark.slow
@pytest.mark.needs("cargo")
@pytest.mark.timeout(600)
def test_debug_and_release_builds_leave_the_same_rows(root: Path, scenarios: Path, tmp_path: Path) -> None:
    expected = simulate(scenarios / "quickstart.toml", tmp_path)
    for build in ([], ["--release"]):
        command = ["cargo", "run", "--quiet", "-p", "tcps-run", "--example", "run_plan", *build, "--"]
        done = subprocess.run(
            [*command, tmp_path / "plan.json", tmp_path / "own.bin"], cwd=root, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["records_sha256"] == expected, f"cargo run {build}"
        assert (tmp_path / "own.bin").read_bytes() == (tmp_path / "records.bin").read_bytes()


def sample_rows(out: Path) -> Any:
    """Rows that tell of samples, in a fixed order within each moment."""
    found = np.asarray(open_records(out / "records.bin"))
    found = found[np.isin(found["kind"], SAMPLES)]
    return np.sort(found, order=["time", "kind", "flow", "index", "point"])


@pytest.mark.parametrize(
    "watched",
    [
        ('measure.records="packets"',),
        ('measure.records="events"',),
        ('measure.queues="1 ms"',),
        ('measure.pcapng="on"',),
    ],
    ids=["packets", "events", "queues", "pcapng"],
)
@pytest.mark.parametrize("name", SHIPPED)
def test_watching_changes_no_sample(
    scenarios: Path, tmp_path: Path, name: str, watched: tuple[str, ...]
) -> None:
    file, short = scenarios / f"{name}.toml", 'duration="3 s"'
    simulate(file, tmp_path / "plain", short)
    simulate(file, tmp_path / "watched", short, *watched)
    plain, other = sample_rows(tmp_path / "plain"), sample_rows(tmp_path / "watched")
    assert len(plain) > 100
    assert np.array_equal(plain, other)
    if "pcapng" in watched[0]:
        assert (tmp_path / "watched" / "packets.pcapng").stat().st_size > 10_000
    elif "records" in watched[0]:
        assert len(open_records(tmp_path / "watched" / "records.bin")) > len(
            open_records(tmp_path / "plain" / "records.bin")
        )
