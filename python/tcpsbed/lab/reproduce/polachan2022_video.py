"""Polachan 2022, figure 18, measured: the latency of commands without and with video, on the clock of this machine.

```text
master: ms-com, srv ── commands 1 kHz, echoes ──► slave: ss-com      in turns: without video, with video, ...
                    ◄── 30 frames of 20 kB a second ── camera        on loopback; in network namespaces
```
The paper saw a lower latency with video. What a machine does is reported whichever way it comes out: a difference whose
interval over the rounds holds zero is neither. [Polachan 2022]
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis.records import plan_of
from tcpsbed.analysis.stats import interval
from tcpsbed.clocks import REAL
from tcpsbed.lab.reproduce.echoes import ECHO
from tcpsbed.lab.reproduce.polachan2022_arm import NO_ECHO
from tcpsbed.lab.reproduce.repeats import high

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

    Floats = NDArray[np.float64]

CABLE = (
    "links.cable={ from = 'master', to = 'slave', rate = '1 Gbit/s', delay = '5 us', queue = '100 packets' }"
)
WORLDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "loopback": ("real", ()),
    "namespaces": ("namespaces", (CABLE,)),
}
"""World and overrides of each place."""
NO_VIDEO = "flows.video.stop='1 ms'"


def measured(study: Study) -> None:
    """Runs both cases in turns in each place, one run at a time."""
    found = {}
    for place, (world, settings) in WORLDS.items():
        key = f"figure18-{place}"
        if study.full and not study.clock:
            study.leave_out([key])
            continue
        if lack := missing(world):
            study.cannot(key, f"this machine lacks {lack}")
            continue
        pairs = turns(study, world, settings)
        if pairs is None:
            study.cannot(key, NO_ECHO)
            continue
        without, shown = found[place] = pairs
        added = interval((np.array(shown) - np.array(without)).tolist())
        note = f"{study.expected[key].why}; {added}; {_told(without, shown)}"
        study.compare(key, high(added), note)
    if found:
        study.figure(
            "figure18-measured", "Figure 18: video and the latency of commands", _bars(found), "real time"
        )


def missing(world: str) -> str | None:
    """What a world lacks here; `None` if it is ready."""
    from tcpsbed import worlds

    return None if world == REAL else worlds.named(world).missing()


def turns(study: Study, world: str, settings: tuple[str, ...]) -> tuple[list[float], list[float]] | None:
    """Median round trips in us without and with video, a pair for each round; `None` if a run had no echo."""
    rounds, seconds = (5, 30) if study.full else (2, 2)
    shared = [f"duration='{seconds} s'", "measure.pcapng='off'", *settings]
    pairs: tuple[list[float], list[float]] = [], []
    for number in range(rounds):
        for trips, more in zip(pairs, ([NO_VIDEO], []), strict=True):
            trip_us = study.run("polachan-video", [*shared, *more], median_us, world)
            if trip_us is None:
                return None
            trips.append(trip_us)
        study.tell(f"{study.work}: figure 18, {world}, round {number + 1} of {rounds}")
    return pairs


def median_us(run: Run) -> float | None:
    """Median round trip of echoes to the exit of ss-com, after the warm-up; `None` without such echoes."""
    names = [component["name"] for component in plan_of(run.folder)["components"]]
    warmup_ns = run.summary["warmup_s"] * 1e9
    rows = run.records
    rows = rows[(rows["kind"] == ECHO) & (rows["time"] >= warmup_ns)]
    rows = rows[rows["point"] == 2 * names.index("ss-com") + 1]
    return float(np.median(rows["value"])) / 1e3 if len(rows) else None


def _told(without: list[float], shown: list[float]) -> str:
    rounds = "; ".join(f"{a:.1f} and {b:.1f}" for a, b in zip(without, shown, strict=True))
    return (
        f"median round trips without and with video, us: {rounds}; load {os.getloadavg()[0]:.1f}; the paper's "
        "two computers had network cards that gather arrivals, which neither loopback nor namespaces have"
    )


def _bars(found: dict[str, tuple[list[float], list[float]]]) -> Callable[[Figure], None]:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for i, name in enumerate(("without video", "with video")):
            rounds = [np.array(pair[i]) for pair in found.values()]
            heights = [float(np.median(trips)) for trips in rounds]
            spread = [[h - t.min() for h, t in zip(heights, rounds, strict=True)]]
            spread += [[t.max() - h for h, t in zip(heights, rounds, strict=True)]]
            axes.bar(np.arange(len(found)) + 0.4 * i - 0.2, heights, 0.4, yerr=np.array(spread), label=name)
        axes.set(xticks=range(len(found)), xticklabels=list(found), ylabel="median round trip (us)")
        axes.legend()

    return draw
