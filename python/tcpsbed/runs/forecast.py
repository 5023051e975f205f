"""The forecast of a run's cost: extrapolated from two short runs of the same scenario.

```text
cost(duration) = fixed + slope x duration        slope from two short rehearsals in virtual time
```
Only what may be large is rehearsed. The line holds where a run is alike from end to end; a flow or background traffic that
starts later than the rehearsal, or TCP that grows for longer, is not seen in it.

Nothing is rehearsed for a run on the machine's clock, or with code, robots, devices or files to write: they would be moved,
opened or written before anybody has agreed. There samples are counted, and each costs what it does in shipped scenarios.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.clocks import SIMULATED
from tcpsbed.devices import DEVICES
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.robots import OUTPUTS, ROBOTS
from tcpsbed.views import numbers

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

LOOKED_AT_SAMPLES, LOOKED_AT_S = 1e7, 1800.0
"""More samples, or a longer time of all runs together, is rehearsed first."""
REHEARSED_SAMPLES, REHEARSED_S = 30_000, 5.0
PATIENCE_S = 1.0
"""A rehearsal that took longer than this is the last one."""
EVENTS_A_PACKET, SECONDS_AN_EVENT = 2.0, 1e-6
"""Least that a sample or packet costs, for those that begin after the rehearsal, or where there is none."""
BYTES_A_SAMPLE = 320.0
"""Rows of a sample and its line in Parquet: 110 to 920 B in shipped scenarios (without packets), and this in the middle."""
_CODE = re.compile(r"(?!builtin:)[^\s:]+:[A-Za-z_]\w*")
"""Code as scenarios name it: `./file.py:Class`, `module:Class`, `./library.so:function`."""
MOST_HOURS, MOST_BYTES, MOST_OF_DISK = 1.0, 10e9, 0.5
"""More is asked about: an hour, 10 GB, half of what is free where the results go."""


@dataclass(frozen=True)
class Forecast:
    """What runs are going to take.

    Attributes
    ----------
    events
        Steps of the simulation.
    seconds
        Time of this machine, with the runs that go at the same time.
    bytes
        Largest size of the folders that are there at one time.
    """

    events: float
    seconds: float
    bytes: float

    def __str__(self) -> str:
        return f"about {self.events:.2g} events, {_span(self.seconds)}, {numbers.size(self.bytes)} on disk"

    def huge(self, folder: Path) -> bool:
        """Whether the user is to be asked first."""
        free = shutil.disk_usage(next(p for p in (folder, *folder.absolute().parents) if p.exists())).free
        return self.seconds > MOST_HOURS * 3600 or self.bytes > min(MOST_BYTES, MOST_OF_DISK * free)


def ask(
    file: Path,
    settings: Sequence[str],
    scenario: Scenario,
    world: str,
    folder: Path,
    *,
    runs: int = 1,
    width: int = 1,
    kept: bool = True,
) -> Forecast | None:
    """The question to the user before a huge run; `None` if it is not huge.

    Parameters
    ----------
    file, settings, scenario
        The scenario of one of the runs: its file, its overrides, and as loaded from both.
    world, folder
        Where it runs, and where results go.
    runs, width
        How many there are, and how many at a time.
    kept
        Whether each keeps its folder, and not its summary alone.
    """
    total_s = runs * scenario.duration_ns / 1e9
    rates_hz = _per_second(scenario)
    if total_s * rates_hz <= LOOKED_AT_SAMPLES and total_s <= LOOKED_AT_S:
        return None
    least = EVENTS_A_PACKET * rates_hz * scenario.duration_ns / 1e9
    if world not in SIMULATED or touches(scenario.document):
        found = Forecast(
            least, least * SECONDS_AN_EVENT, _bytes_per_second(scenario) * scenario.duration_ns / 1e9
        )
    else:
        try:
            found = _rehearsed(file, settings, scenario.duration_ns / 1e9, rates_hz, world)
        except TcpsbedError:
            return None  # the run itself says what is wrong, at once
        found = Forecast(max(found.events, least), max(found.seconds, least * SECONDS_AN_EVENT), found.bytes)
    seconds = found.seconds * runs / width
    if world not in SIMULATED:
        seconds = total_s if runs > 1 else 0.0
    size = found.bytes * (runs if kept else min(runs, width))
    whole = Forecast(found.events * runs, seconds, size)
    return whole if whole.huge(folder) else None


def _bytes_per_second(scenario: Scenario) -> float:
    """Of samples, and of background traffic where its packets are recorded."""
    recorded = _samples if scenario.measure.records == "samples" else _per_second
    return BYTES_A_SAMPLE * recorded(scenario)


def _samples(scenario: Scenario) -> float:
    sessions = len(scenario.sessions)
    return sum(flow.rate_hz * (sessions if flow.session is None else 1) for flow in scenario.flows.values())


def _per_second(scenario: Scenario) -> float:
    """Samples, and packets of background traffic whose rate is known."""
    rates = (
        (getattr(t, "rate_bps", None), getattr(t, "packet_bytes", 500)) for t in scenario.traffic.values()
    )
    return _samples(scenario) + sum((bps or 0.0) / (8 * size) for bps, size in rates)


def touches(value: Any, key: str = "") -> bool:
    """Whether a scenario names code, a robot, a device, or a file to write: anything beyond tcpsbed itself."""
    if isinstance(value, dict):
        return any(touches(item, name) for name, item in value.items())
    if isinstance(value, list):
        return any(touches(item, key) for item in value)
    if not isinstance(value, str):
        return False
    written = key in OUTPUTS and value != "none"
    of_the_machine = value in {*ROBOTS, *DEVICES, "window", "console"} or value.startswith(
        ("/dev/", "device")
    )
    return written or of_the_machine or _CODE.fullmatch(value) is not None


def refuse(found: Forecast, what: str) -> ConfigError:
    """The error of a run that nobody has agreed to."""
    remedy = '--yes to continue; less with --duration "10 s", fewer seeds or values, measure.records = "off"'
    return ConfigError(f"found {what} that would take {found}", key="duration", allowed=remedy)


def _rehearsed(
    file: Path, settings: Sequence[str], duration_s: float, rates_hz: float, world: str
) -> Forecast:
    span_s = min(REHEARSED_S, duration_s, REHEARSED_SAMPLES / max(rates_hz, 1e-9))
    before_s, before = 0.0, (0.0, 0.0, 0.0)
    for now_s in (span_s / 100, span_s / 5, span_s):  # the first loads what is loaded once
        now = _measured(file, settings, now_s, world)
        slope = [max(0.0, b - a) / (now_s - before_s) for a, b in zip(before, now, strict=True)]
        whole = Forecast(*(b + s * (duration_s - now_s) for b, s in zip(now, slope, strict=True)))
        if now[1] > PATIENCE_S:
            break
        before_s, before = now_s, now
    return whole


def _measured(file: Path, settings: Sequence[str], span_s: float, world: str) -> tuple[float, float, float]:
    """Events, seconds and bytes of a run of this length."""
    from tcpsbed import documents, scenarios
    from tcpsbed.runs import session

    shorter = [*settings, f'duration="{round(span_s * 1e9)} ns"', 'warmup="0 s"']
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        out = Path(folder) / "run"
        scenario = scenarios.load(file, shorter)
        begun = time.process_time()
        if session.execute(scenario, world=world, out=out).stopped:
            raise KeyboardInterrupt("stopped before it began")
        seconds = time.process_time() - begun
        size = sum(part.stat().st_size for part in out.rglob("*") if part.is_file())
        return float(documents.read(out / "result.json")["events"]), seconds, float(size)


def _span(seconds: float) -> str:
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
