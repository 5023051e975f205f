"""What all benchmarks share: rows of a result, programs that are compiled and run, the machine."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benches"
OUT = ROOT / "bench-out"
PROGRAM = Path(sys.executable).with_name("tcpsbed")
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


class CannotMeasureError(Exception):
    """Something that a benchmark needs is not there; the message says what."""


@dataclass
class Row:
    """One line of a table: what was measured, against what, and whether the target is met."""

    what: str
    measured: str
    against: str
    ratio: str
    bar: str
    holds: bool | None = None


@dataclass
class Result:
    """What a benchmark leaves: rows for the table and everything that it measured."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The result with the machine it came from."""
        return {**asdict(self), "machine": machine()}


@dataclass
class Ended:
    """A program that has ended: its output, its wall time, its own processor time and its peak memory."""

    out: str
    wall_s: float
    processor_s: float
    peak_mb: float

    def json(self) -> Any:
        """The output, or its last line, read as JSON."""
        text = self.out.strip()
        return json.loads(text if text.startswith("{") and text.endswith("}") else text.splitlines()[-1])


def run_program(command: Sequence[str | Path], limit_s: float = 900, **environment: str) -> Ended:
    """Run a program to its end; processor time and peak memory are what the kernel counted for it alone."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.monotonic()
        # Packages that pip installs have their byte code beside them: what is measured keeps it, too.
        given = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}
        child = subprocess.Popen(words, stdout=out, stderr=err, env=given, cwd=ROOT)
        limit = threading.Timer(limit_s, child.kill)
        limit.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.monotonic() - begin
        limit.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            told = err.read().strip()[-600:] or f"nothing said after {wall_s:.0f} s of {limit_s:.0f} s"
            raise CannotMeasureError(f"{' '.join(words[:4])} ended with {child.returncode}: {told}")
        return Ended(out.read(), wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def compile_c(name: str) -> Path:
    """Compile benches/c/NAME.c."""
    return _compile("cc", ["-std=gnu11"], HERE / "c" / f"{name}.c", [])


def compile_library(name: str) -> Path:
    """Compile benches/hooks/NAME.c as a shared library beside it."""
    source = HERE / "hooks" / f"{name}.c"
    return _compile("cc", ["-std=gnu11", "-shared", "-fPIC"], source, [], source.with_name(f"lib{name}.so"))


def compile_ns3(name: str) -> Path:
    """Compile benches/ns3/NAME.cc against the ns-3 of this machine."""
    modules = ["ns3-applications", "ns3-internet", "ns3-point-to-point", "ns3-traffic-control"]
    found = shutil.which("pkg-config") and subprocess.run(
        ["pkg-config", "--cflags", "--libs", *modules], capture_output=True, text=True
    )
    if not found or found.returncode:
        raise CannotMeasureError(
            "ns-3 is not there; on Debian: apt-get install libns3-dev libgsl-dev pkg-config g++"
        )
    flags = [flag for flag in found.stdout.split() if not flag.startswith("-I/usr\\;")]
    return _compile("g++", ["-std=c++17"], HERE / "ns3" / f"{name}.cc", flags)


def _compile(
    compiler: str, options: list[str], source: Path, flags: list[str], to: Path | None = None
) -> Path:
    target = to or OUT / "bin" / source.stem
    if target.exists() and target.stat().st_mtime > max(f.stat().st_mtime for f in source.parent.iterdir()):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    if not shutil.which(compiler):
        raise CannotMeasureError(f"{compiler} is not there; on Debian: apt-get install gcc g++")
    words = [compiler, *options, "-O2", *WARNINGS, "-o", str(target), str(source), *flags]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasureError(f"{source.name} does not compile: {done.stderr.strip()[-600:]}")
    return target


def tcpsbed(
    command: str, scenario: Path, *options: str | Path, keys: dict[str, str] | None = None, **more: Any
) -> Ended:
    """Run `tcpsbed COMMAND SCENARIO`, with keys of the scenario replaced (values as TOML)."""
    sets = [word for key, value in (keys or {}).items() for word in ("--set", f"{key}={value}")]
    return run_program([PROGRAM, command, scenario, *options, *sets], **more)


def summary_of(folder: Path) -> dict[str, Any]:
    """The summary that a run left."""
    told: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return told


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median with smallest and largest."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def machine() -> dict[str, Any]:
    """The machine and the versions."""
    cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = next(
        (line.split(":", 1)[1].strip() for line in cpu.splitlines() if line.startswith("model name")), "?"
    )
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release().split("-")[0],
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "?"),
        "python": platform.python_version(),
        "rust": _first_line(["rustc", "--version"]),
        "cc": _first_line(["cc", "--version"]),
        "commit": _first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]),
        "load": round(os.getloadavg()[0], 2),
    }


def _first_line(command: list[str]) -> str:
    done = shutil.which(command[0]) and subprocess.run(command, capture_output=True, text=True)
    return done.stdout.splitlines()[0] if done and done.stdout else "not there"
