"""The fuzz targets of parsers in Python: their seeds and random changes of them find nothing, and what is wrong is found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2] / "fuzz"
_spec = importlib.util.spec_from_file_location("drive", HERE / "drive.py")
assert _spec is not None and _spec.loader is not None
drive = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(drive)

CHANGES = 100
"""Of a target; `fuzz/run.sh` goes on from there."""
PACKAGES = {
    "console": "websockets",
    "inverse3": "websockets",
    "coppeliasim": "coppeliasim_zmqremoteapi_client",
    "files": "openpyxl",
}


@pytest.mark.parametrize("name", drive.names())
def test_seeds_and_random_changes_of_them_find_nothing(name):
    pytest.importorskip(PACKAGES.get(name, "numpy"), reason=f"fuzz target {name}")
    module = drive.load(name)
    fuzzer = drive.Fuzzer(module.target, drive.Cover(drive.files(module)), 1, getattr(module, "JSON", False))
    seeds = [path.read_bytes() for path in sorted((HERE / "corpus" / name).iterdir())]
    assert seeds
    for seed in seeds:
        fuzzer.try_(seed)
        fuzzer.kept.append(seed)
    seen = len(fuzzer.cover.seen)
    assert seen > 20, "the seeds reach the parser"
    for _ in range(CHANGES):
        data = fuzzer.next()
        if fuzzer.try_(data):
            fuzzer.kept.append(data)
    assert len(fuzzer.cover.seen) > seen, "changes reach more of it"


PLANTED = """
MODULES = ("planted",)
JSON = True
from planted import parse
def target(data):
    parse(data)
"""
PARSER = """
import json
def parse(data):
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(said, dict):
        if "x" in said:
            if not isinstance(said["x"], str):
                raise ZeroDivisionError("planted")
"""


def test_what_is_wrong_is_found_and_its_input_kept(tmp_path):
    """The whole program, with a parser that fails for inputs that are two steps away from the seed."""
    for folder in ("devices", "local", "corpus", "crashes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "drive.py").write_text((HERE / "drive.py").read_text())
    (tmp_path / "planted.py").write_text(PARSER)
    (tmp_path / "devices" / "wrong.py").write_text(PLANTED)
    (tmp_path / "corpus" / "seed").write_text('{"a": "b"}')

    def run(inputs: str) -> subprocess.CompletedProcess[str]:
        words = ["drive.py", "wrong", "60", inputs, "local", "corpus", "crashes"]
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    limited = run("1")
    assert (limited.returncode, limited.stdout.split()[-1]) == (0, "1")
    done = run("-1")
    assert done.returncode == drive.FOUND, done.stdout + done.stderr
    assert "ZeroDivisionError: planted" in done.stderr and "stat::number_of_executed_units" in done.stdout
    (crash,) = (tmp_path / "crashes").iterdir()
    assert b"x" in crash.read_bytes()
