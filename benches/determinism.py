"""The same scenario and seed give the same rows: again, in a debug build, with another C library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import OUT, ROOT, CannotMeasureError, Result, Row, summary_of, tcpsbed

TITLE = "Determinism"
SCENARIOS = {"dumbbell-udp": "20 s", "quickstart": "5 s"}
NO_FMA = "glibc.cpu.hwcaps=-FMA,-AVX2"


def debug_package() -> Path:
    """A folder with the package as it is, but for a native module that was built without optimisation."""
    if not shutil.which("cargo"):
        raise CannotMeasureError("cargo is not there")
    build = subprocess.run(
        ["cargo", "build", "--quiet", "--package", "tcps-py"],
        cwd=ROOT,
        env={**os.environ, "PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"},
        capture_output=True,
        text=True,
    )
    if build.returncode:
        raise CannotMeasureError(f"the debug build failed: {build.stderr.strip()[-600:]}")
    place = OUT / "debug"
    shutil.rmtree(place, ignore_errors=True)
    package = place / "tcpsbed"
    package.mkdir(parents=True)
    for path in (ROOT / "python" / "tcpsbed").iterdir():
        if not path.name.startswith("_tcps"):
            (package / path.name).symlink_to(path)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    shutil.copy(target / "debug" / "lib_tcps.so", package / "_tcps.abi3.so")
    return place


def measure(quick: bool) -> Result:
    """Hashes of each scenario in each surrounding."""
    debug = str(debug_package())
    ways = [("run 1", {}), ("run 2", {}), ("run 3", {}), ("debug build", {"PYTHONPATH": debug})]
    ways.append(("without FMA and AVX2", {"GLIBC_TUNABLES": NO_FMA}))
    hashes: dict[str, dict[str, str]] = {}
    for name, duration in SCENARIOS.items():
        with tempfile.TemporaryDirectory() as place:
            for i, (way, environment) in enumerate(ways):
                folder = Path(place) / str(i)
                keys = {"duration": f'"{"2 s" if quick else duration}"'}
                scenario = ROOT / "scenarios" / f"{name}.toml"
                tcpsbed("run", scenario, "--out", str(folder), "--no-report", keys=keys, **environment)
                hashes.setdefault(name, {})[way] = summary_of(folder)["records_sha256"]
    rows = []
    for name, found in hashes.items():
        kinds = len(set(found.values()))
        what = f"{name}: rows of {', '.join(found)}"
        rows.append(Row(what, next(iter(found.values()))[:16], "", f"{kinds} hash", "1 hash", kinds == 1))
    return Result("determinism", TITLE, rows, hashes)
