"""The same scenario and seed leave the same rows, whatever runs them and whatever else is recorded.

[design: records], [design: random streams], [design: same on every machine]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpsbed import scenarios, worlds
from tcpsbed.analysis.records import open_records

SHIPPED = {"quickstart": (), "dumbbell-udp": ('duration="10 s"',), "usnet9-latency": ()}
SHORT = 'duration="3 s"'
SAMPLES = (1, 2, 3)
"""Kinds of rows that tell of samples: sent, delivered, dropped."""
WITHOUT_FMA = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2"}


def simulate(file: Path, out: Path, *overrides: str) -> str:
    """Runs a scenario in virtual time: the hash of its rows."""
    worlds.run(scenarios.load(file, ['measure.pcapng="off"', *overrides]), world="virtual", out=out)
    return hash_of(out)


def hash_of(out: Path) -> str:
    """The hash that a run folder states."""
    found: str = json.loads((out / "result.json").read_text())["records_sha256"]
    assert len(found) == 64
    return found


Kept = Callable[..., Path]


@pytest.fixture(scope="module")
def kept(shipped_scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Folders of runs that several tests look at, by scenario and overrides; each is run once."""

    @cache
    def run(name: str, *overrides: str) -> Path:
        out = tmp_path_factory.mktemp(name)
        simulate(shipped_scenarios / f"{name}.toml", out, *overrides)
        return out

    return run


@pytest.mark.parametrize("name", SHIPPED)
def test_three_runs_leave_the_same_rows(
    shipped_scenarios: Path, tmp_path: Path, kept: Kept, name: str
) -> None:
    first, again = kept(name, *SHIPPED[name]), [tmp_path / "1", tmp_path / "2"]
    hashes = [simulate(shipped_scenarios / f"{name}.toml", out, *SHIPPED[name]) for out in again]
    assert hashes == [hash_of(first)] * 2
    assert (first / "records.bin").read_bytes() == (again[0] / "records.bin").read_bytes()


def test_another_seed_leaves_other_rows(shipped_scenarios: Path, tmp_path: Path, kept: Kept) -> None:
    other = simulate(shipped_scenarios / "quickstart.toml", tmp_path, SHORT, "seed=2")
    assert hash_of(kept("quickstart", SHORT)) != other


@pytest.mark.parametrize("name", SHIPPED)
def test_another_mathematical_library_leaves_the_same_rows(
    shipped_scenarios: Path, tmp_path: Path, kept: Kept, name: str
) -> None:
    sets = [word for override in SHIPPED[name] for word in ("--set", override)]
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "run",
        str(shipped_scenarios / f"{name}.toml"),
        "--quiet",
        "--no-report",
        *sets,
    ]
    out = ["--set", 'measure.pcapng="off"', "--out", str(tmp_path)]
    subprocess.run([*command, *out], env=os.environ | WITHOUT_FMA, check=True, timeout=60)
    assert hash_of(tmp_path) == hash_of(kept(name, *SHIPPED[name]))


@pytest.mark.slow
@pytest.mark.needs("cargo")
@pytest.mark.timeout(600)
def test_debug_and_release_builds_leave_the_same_rows(root: Path, tmp_path: Path, kept: Kept) -> None:
    usual = kept("quickstart", *SHIPPED["quickstart"])
    for build in ([], ["--release"]):
        command = ["cargo", "run", "--quiet", "-p", "tcps-run", "--example", "run_plan", *build, "--"]
        done = subprocess.run(
            [*command, usual / "plan.json", tmp_path / "own.bin"], cwd=root, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["records_sha256"] == hash_of(usual), f"cargo run {build}"
        assert (tmp_path / "own.bin").read_bytes() == (usual / "records.bin").read_bytes()


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
    shipped_scenarios: Path, tmp_path: Path, kept: Kept, name: str, watched: tuple[str, ...]
) -> None:
    usual = kept(name, SHORT)
    simulate(shipped_scenarios / f"{name}.toml", tmp_path, SHORT, *watched)
    plain, other = sample_rows(usual), sample_rows(tmp_path)
    assert len(plain) > 100
    assert np.array_equal(plain, other)
    if "pcapng" in watched[0]:
        assert (tmp_path / "packets.pcapng").stat().st_size > 10_000
    elif "records" in watched[0]:
        assert len(open_records(tmp_path / "records.bin")) > len(open_records(usual / "records.bin"))
