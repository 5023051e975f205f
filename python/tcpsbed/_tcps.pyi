"""The native module: both drivers, records and their analysis."""

from collections.abc import Callable, Sequence
from os import PathLike

def run_virtual(
    plan_json: str,
    records_path: str | PathLike[str] | None = None,
    *,
    progress: Callable[[int], object] | None = None,
    pcapng_path: str | PathLike[str] | None = None,
) -> str:
    """Runs a plan in virtual time; `progress(t_ns)` stops it with a false answer. Returns the result as JSON."""

def run_node() -> int:
    """Serves one run as a node process, with JSON lines on standard input and output. Returns the exit status."""

def analyse(
    records_path: str | PathLike[str], plan_json: str, warmup_ns: int = 0, grace_ns: int = 1_000_000_000
) -> str:
    """Figures of a stream of rows, as JSON."""

def merge(parts: Sequence[str | PathLike[str]], records_path: str | PathLike[str]) -> tuple[int, str]:
    """Merges files of rows, each in order of time, into one; returns the number of rows and their SHA-256."""

def monotonic_ns() -> int:
    """CLOCK_MONOTONIC in nanoseconds."""

def builtins() -> dict[str, list[str]]:
    """What a scenario can name: `hooks`, `robots`, `predictors`, `transports`."""

def version() -> str:
    """Version of the native module."""

def time_hook(code_json: str, rounds: int) -> list[float]:
    """Nanoseconds per call of a hook, one figure for each of `rounds` blocks of 1000 calls."""

def step_batch(spec_json: str) -> str:
    """The step experiment in every cell of a grid, on all cores; returns the cells' figures as JSON."""

def replay_predictor(
    name: str, params_json: str, rows: Sequence[float], columns: int, period_ns: int, horizons: Sequence[int]
) -> tuple[list[tuple[float, float]], float, list[float]]:
    """A recording through a predictor: (RMS, worst) a horizon; ns an update; ns a guess, one a horizon."""

class Drain:
    """Drains rings of rows in shared memory into files."""

    def __init__(self, pairs: Sequence[tuple[str | PathLike[str], str | PathLike[str]]]) -> None: ...
    def drain(self) -> bytes:
        """Moves all published rows to the files and returns them, unsorted."""

    def lost(self) -> int:
        """Rows lost in all rings."""
