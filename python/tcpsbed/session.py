"""One run from scenario to summary, as the command line and notebooks start it.

```text
scenario ─► worlds.run ─► folder with records ─► analysis ─► summary.json, series.json ─► Run
```
"""

from __future__ import annotations

import json
import signal
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tcpsbed.errors import ConfigError

if TYPE_CHECKING:
    from tcpsbed.analysis import Run
    from tcpsbed.config import Scenario

RUNS = Path("runs")
"""Where runs go that are given no folder."""

DERIVED = (
    "summary.json",
    "series.json",
    "result.json",
    "doctor.json",
    "samples.parquet",
    "packets.pcapng",
    "report.html",
)
"""Files of an earlier run in the same folder, which would lie about this one."""

Progress = Callable[[float], None]
Live = Callable[[bytes, float], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its folder, and whether the user stopped it."""

    folder: Path
    stopped: bool


def run(
    scenario: Scenario | Path | str,
    *,
    world: str = "virtual",
    out: Path | str | None = None,
    set: Sequence[str] = (),
    seed: int | None = None,
) -> Run:
    """Runs a scenario and opens what it left.

    Parameters
    ----------
    scenario : Scenario, Path or str
        A loaded scenario, the path of its file, or its TOML text (anything with a line break).
    world : str
        A name that the registry of worlds knows.
    out : Path or str, optional
        The run folder; absent: a new one under `runs/`.
    set : sequence of str
        Overrides such as `traffic.cbr.rate="310 kbit/s"`.
    seed : int, optional
        Replaces the scenario's seed.

    Returns
    -------
    Run
        The finished run, with `summary`, `samples`, `latency` and plots.

    Raises
    ------
    TcpsbedError
        With the file, the key, what was found and what is allowed.

    Examples
    --------
    >>> import tcpsbed
    >>> run = tcpsbed.run("scenarios/quickstart.toml", seed=7)  # doctest: +SKIP
    >>> run.summary["flows"]["kinematic"]["delay_ms"]["p99"]  # doctest: +SKIP
    """
    from tcpsbed.analysis import Run

    loaded = _loaded(scenario, [*set, *([] if seed is None else [f"seed={seed}"])])
    outcome = execute(loaded, world=world, out=new_folder(loaded.name) if out is None else Path(out))
    if outcome.stopped:
        raise KeyboardInterrupt(f"stopped; what was recorded is in {outcome.folder}")
    return Run(outcome.folder)


def _loaded(scenario: Scenario | Path | str, overrides: Sequence[str]) -> Scenario:
    from tcpsbed import config

    if isinstance(scenario, str) and "\n" in scenario:
        return _loaded_text(scenario, overrides)
    if isinstance(scenario, (str, Path)):
        return config.load(scenario, overrides)
    if overrides:
        raise ConfigError(
            "found overrides of a scenario that is loaded already",
            key="set",
            allowed="give them to tcpsbed.load",
        )
    return scenario


def _loaded_text(text: str, overrides: Sequence[str]) -> Scenario:
    """A scenario given as text: relative paths start from the working folder unless it names another."""
    from tcpsbed import config

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(text, encoding="utf-8")
        return config.load(file, [*_base(text), *overrides])


def _base(text: str) -> list[str]:
    try:
        given = "base" in tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        given = True
    return [] if given else [f"base={json.dumps(str(Path.cwd()))}"]


def execute(
    scenario: Scenario,
    *,
    world: str,
    out: Path,
    progress: Progress | None = None,
    live: Live | None = None,
    samples: bool = True,
) -> Outcome:
    """Runs a loaded scenario into a folder and summarises it; Ctrl-C ends the run early and keeps what it recorded.

    Parameters
    ----------
    scenario, world, out
        What runs, in which world, and its folder.
    progress, live
        Called with the share done; with new rows and the run time in seconds.
    samples
        Whether `samples.parquet` is written, beside the analysis.
    """
    from tcpsbed import worlds

    for name in DERIVED:
        (out / name).unlink(missing_ok=True)
    with _interrupts() as stop:

        def tell(share: float) -> bool:
            if progress is not None:
                progress(share)
            return not stop.asked

        worlds.run(scenario, world=world, out=out, progress=tell, live=live)
        _glance(out)
        _analyse(out, samples=samples)
    return Outcome(out, stop.asked)


def _glance(folder: Path) -> None:
    """What the machine can do, beside what it did."""
    from tcpsbed import doctor

    (folder / "doctor.json").write_text(json.dumps(doctor.glance(), indent=1), encoding="utf-8")


def _analyse(folder: Path, *, samples: bool) -> None:
    """Summary and samples at the same time: both read the same rows."""
    from tcpsbed import analysis

    if not samples:
        analysis.summarise(folder)
        return
    from tcpsbed.analysis import export

    with ThreadPoolExecutor(1) as beside:
        written = beside.submit(export.to_parquet, folder)
        analysis.summarise(folder)
        written.result()


@dataclass
class _Stop:
    """Whether the user asked for the end. No `Event`: a second signal in the middle of its `set` would wait for itself."""

    asked: bool = False


@contextmanager
def _interrupts() -> Iterator[_Stop]:
    """Turns the first Ctrl-C, or the first request to end, into a flag; the second does what it usually does."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(_signal: int, _frame: FrameType | None) -> None:
        stop.asked = True
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()


def new_folder(name: str) -> Path:
    """A new folder `runs/NAME-YYYYmmdd-HHMMSS`, with `runs/latest` linked to it."""
    safe = (
        "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip(".-")
        or "run"
    )
    stem = f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    RUNS.mkdir(parents=True, exist_ok=True)
    for number in range(1000):
        folder = RUNS / (stem if number == 0 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        _link_latest(folder)
        return folder
    raise ConfigError(
        "found a thousand runs of this second", file=RUNS, key="--out", allowed="a folder of your own"
    )


def _link_latest(folder: Path) -> None:
    """Points `runs/latest` at the folder, in one step; a file system without links goes without."""
    fresh = RUNS / f".latest-{folder.name}"
    try:
        fresh.symlink_to(folder.name)
        fresh.replace(RUNS / "latest")
    except OSError:
        fresh.unlink(missing_ok=True)


def summary_of(folder: Path) -> dict[str, Any]:
    """The content of a run's summary.json."""
    from tcpsbed import documents

    return documents.read(folder / "summary.json")
