"""Polachan, Pal, Singh, Prabhakar, Kuipers 2022: latency by echo points, under other traffic and over a far side.

```text
here                      known delays (table II, figure 13)   replay (table I, figures 10, 11)   a far side (figure 12)
polachan2022_arm          boards and an arm (figures 8, 14, 21)        polachan2022_demo        the whole of it (figure 7)
polachan2022_placement    where srv stands (figure 17)                 polachan2022_buffers     buffers (figure 20)
polachan2022_cards        a card that gathers arrivals (figures 18, 19)  polachan2022_video     figure 18, measured
```
The scenarios are `scenarios/polachan-*.toml` and `scenarios/usnet9-latency.toml`, in virtual time but for what
`polachan2022_video` and `polachan2022_arm` measure. [Polachan 2022]
"""

from __future__ import annotations

import csv
import io
import math
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.lab.reproduce import (
    polachan2022_arm,
    polachan2022_buffers,
    polachan2022_cards,
    polachan2022_demo,
    polachan2022_placement,
    polachan2022_video,
)
from tcpsbed.lab.reproduce.echoes import trips
from tcpsbed.lab.reproduce.recordings import DATA, absent
from tcpsbed.lab.reproduce.study import WHOLE
from tcpsbed.palette import PALETTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

    Floats = NDArray[np.float64]

SUTURING = DATA / "kinematics" / "jigsaws" / "Suturing_D001.txt"
CAPTURES = DATA / "network" / "pcap"
PINGS = DATA / "network" / "5g" / "5G-production-dataset.zip"
BLOCKS, RATES = (1, 3, 5, 10, 15), (0, 500, 750)
"""Delays in srv of table II in ms, and what all hosts send each other in kbit/s."""


def reproduce(study: Study) -> None:
    """Runs all experiments, but for those of `tcpsbed step`."""
    simulated(study)
    on_the_clock(study)


def simulated(study: Study) -> None:
    """Runs what takes place in virtual time."""
    known_delays(study)
    replay(study)
    far(study, 101 if study.full else 21)
    polachan2022_placement.simulated(study)
    polachan2022_cards.simulated(study)
    polachan2022_buffers.simulated(study)
    polachan2022_arm.simulated(study)
    polachan2022_demo.simulated(study)


def on_the_clock(study: Study) -> None:
    """Runs what is measured on the machine's clock."""
    polachan2022_video.measured(study)
    polachan2022_arm.measured(study)


# [Polachan 2022]
def known_delays(study: Study) -> None:
    """Table II and figure 13: delays that are known, as the difference of two echo points.

    In virtual time a block takes what it is set to, so that this reads an input back through the method.
    """
    echoes = 5000 if study.full else 300

    def run(case: tuple[int, int]) -> float:
        block_ms, kbps = case
        settings = [
            f"hooks.block.cost='{block_ms} ms'",
            f"traffic.background.rate='{kbps} kbit/s'",
            f"duration='{echoes / 50 + 1} s'",
            f"measure.echo.count={echoes}",
        ]
        return study.run("usnet9-latency", settings, latency_of_srv)

    found = study.each([(b, r) for b in BLOCKS for r in RATES], run)
    study.worst("table2-error", off(found))
    study.figure(
        "figure13", "Figure 13: errors of known delays under other traffic", lambda f: bars(f, found)
    )


def latency_of_srv(run: Run) -> float:
    """What the echo points find for srv, in ms."""
    parts = run.summary["echo"]["kinematic"]["components"]
    return float(next(part["latency_ms"]["mean"] for part in parts if part["name"] == "srv"))


def errors(found: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """By how many percent of it each delay is found too long, by delay in ms and other traffic in kbit/s."""
    return {case: 100.0 * (mean / case[0] - 1.0) for case, mean in found.items()}


def off(found: dict[tuple[int, int], float]) -> dict[str, float]:
    """How far off each delay is, in percent of it, by delay and other traffic in words."""
    return {f"{ms} ms beside {kbps} kbit/s": abs(error) for (ms, kbps), error in errors(found).items()}


def bars(figure: Figure, found: dict[tuple[int, int], float]) -> None:
    """Errors, a group for each known delay, a bar for each rate of other traffic."""
    axes = figure.subplots()
    blocks, rates = (sorted(set(values)) for values in zip(*found, strict=True))
    shown = errors(found)
    for i, kbps in enumerate(rates):
        heights = [shown.get((block, kbps), 0.0) for block in blocks]
        axes.bar(np.arange(len(blocks)) + 0.27 * (i - 1), heights, 0.27, label=f"{kbps} kbit/s")
    for level in (-10, 10):
        axes.axhline(level, color="gray", linestyle=":", linewidth=1)
    names = [f"{block} ms" for block in blocks]
    axes.set(xticks=range(len(blocks)), xticklabels=names, xlabel="known delay in srv", ylabel="error (%)")
    axes.legend()


@dataclass(frozen=True)
class Spread:
    """Half round trips in ms."""

    half_ms: Floats
    packet_bytes: float

    def of(self, what: str) -> float:
        """One of `FIGURES`."""
        return float(getattr(self.half_ms, {"sd": "std"}.get(what, what))())


FIGURES = ("min", "mean", "max", "sd")
"""Columns of table I; the last one is the standard deviation."""


# [Polachan 2022]
def replay(study: Study) -> None:
    """Table I and figures 10 and 11: a recorded operation while other hosts replay captures."""
    study.figure("figure10", "Figure 10: the graph of switches (our reading)", graph)
    keys = [f"table1-{case}-{what}" for case in REPLAYS for what in FIGURES]
    if not (SUTURING.exists() and CAPTURES.exists()):
        for key in [*keys, "figure11", "figure11-free"]:
            study.cannot(key, absent("suturing", "captures"))
        return
    found = study.each(
        REPLAYS, lambda case: study.run("polachan-replay", replay_settings(study, case), spread)
    )
    for case, seen in found.items():
        note = f"mean packet of our captures {seen.packet_bytes:.0f} B"
        for what in FIGURES:
            key = f"table1-{case}-{what}"
            study.compare(key, seen.of(what), f"{study.expected[key].why}; {note}")
    above_1_ms(study, {case: seen.half_ms for case, seen in found.items()})


def above_1_ms(study: Study, half_ms: Mapping[str, Floats]) -> None:
    """Figure 11 and its rows: latencies without other traffic and with it."""
    for key, case in (("figure11", "10-1x"), ("figure11-free", "free")):
        if case in half_ms:
            study.compare(key, 100.0 * float((half_ms[case] > 1.0).mean()))
        else:
            study.cannot(key, WHOLE)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for case, values in half_ms.items():
            half = np.sort(values)
            axes.plot(half, np.arange(1, len(half) + 1) / len(half), label=CASES[case])
        axes.set(xscale="log", xlabel="half a round trip (ms)", ylabel="share")
        axes.legend()

    study.figure("figure11", "Figure 11: latency without and with replayed traffic", draw)


def graph(figure: Figure) -> None:
    """The nine switches of the scenarios and their links, with a host at each."""
    from tcpsbed.scenarios.compile.graphs import GRAPHS

    axes = figure.subplots()
    found = GRAPHS["usnet9"]
    angles = np.linspace(0.5 * np.pi, 2.5 * np.pi, len(found.vertices), endpoint=False)
    places = dict(zip(found.vertices, zip(np.cos(angles), np.sin(angles), strict=True), strict=True))
    for edge in found.edges:
        axes.plot(*zip(places[edge.a], places[edge.b], strict=True), color="0.6", zorder=0)
    for name, (x, y) in places.items():
        color = {"S0": PALETTE[0], "S8": PALETTE[1]}.get(name, "0.3")
        axes.scatter(x, y, s=500, color=color)
        axes.annotate(name, (x, y), ha="center", va="center", color="white", size=9)
    axes.set(title="ms-com at S0; srv and ss-com at S8; background hosts at every switch")
    axes.set_aspect("equal")
    axes.set_axis_off()


REPLAYS = {
    "free": ("10 Mbit/s", "0 bit/s"),
    "100-1x": ("100 Mbit/s", "9.5 Mbit/s"),
    "100-5x": ("100 Mbit/s", "47.5 Mbit/s"),
    "10-1x": ("10 Mbit/s", "9.5 Mbit/s"),
}
"""Rate of the links, and of what is replayed: 9.5 Mbit/s is the mean of the published capture. [Polachan 2022]"""
CASES = {
    "free": "10 Mbit/s, no other traffic",
    "100-1x": "100 Mbit/s, replay at 1x",
    "100-5x": "100 Mbit/s, replay at 5x",
    "10-1x": "10 Mbit/s, replay at 1x",
}


def replay_settings(study: Study, case: str) -> list[str]:
    """Overrides of a case of table I."""
    link, rate = REPLAYS[case]
    files = sorted(CAPTURES.glob("*.pcap*"))
    named = ", ".join(f"{{ file = '{file}', offset = '{i} s' }}" for i, file in enumerate(files))
    capture = ["traffic.replay.kind='replay'", f"traffic.replay.file=[{named}]"]
    return [
        f"duration='{300 if study.full else 60} s'",
        f"topology.link.rate='{link}'",
        f"flows.kinematic.source={{ recording = '{SUTURING}' }}",
        f"traffic.replay.rate='{rate}'",
        *([] if case == "free" else capture),
    ]


def spread(run: Run) -> Spread:
    """Half of a command's round trip to the exit of ss-com; the load of the kernel's links is unknown."""
    links = [x for x in run.summary["network"] if x["packets"] > 0]
    busiest = max(links, key=lambda x: x["bytes"], default={"bytes": math.nan, "packets": 1})
    return Spread(trips(run, "ss-com.exit") / 2.0, busiest["bytes"] / busiest["packets"])


# [Polachan 2022]
def far(study: Study, seconds: int) -> None:
    """Figure 12: a far side by a measured profile of pings."""
    if not PINGS.exists():
        for key in ("figure12-mean", "figure12-median"):
            study.cannot(key, absent("5g"))
        return
    pings = ping_profile()
    quantiles = ", ".join(f"'{half:.6f} ms'" for half in np.quantile(pings / 2, np.linspace(0, 1, 401)))
    settings = [
        f"links.far.jitter.delay={{ kind = 'empirical', quantiles = [{quantiles}] }}",
        f"duration='{seconds} s'",
    ]
    points = ("srv.entry", "srv.exit", "ss-com.entry", "ss-com.exit")
    seen = study.run("polachan-far", settings, lambda run: {p: trips(run, p) for p in points})
    found = seen["ss-com.exit"]
    both = np.add.outer(pings / 2, pings / 2).ravel()
    study.compare("figure12-mean", found.mean() - pings.mean())
    study.compare("figure12-median", float(np.median(found) - np.median(both)))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.boxplot(list(seen.values()), tick_labels=list(seen), showfliers=False)
        axes.set(ylabel="round trip (ms)")

    study.figure("figure12", "Figure 12: echo points over a measured profile of pings (5G)", draw)


def ping_profile() -> Floats:
    """Mean round trips of pings in ms, of all sessions of the 5G measurements that have some."""
    found: list[float] = []
    with zipfile.ZipFile(PINGS) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".csv") and not name.startswith("__MACOSX"):
                rows = csv.DictReader(io.StringIO(archive.read(name).decode("utf-8", "replace")))
                texts = (row.get("PINGAVG") or "-" for row in rows)
                found += [float(text) for text in texts if text.replace(".", "", 1).isdigit()]
    return np.array(found)
