"""Polachan, Pal, Singh, Prabhakar, Kuipers 2022: latency by echo points, other traffic, placement, buffers, interrupts.

```text
echoes ─► known delays (table II)   replay (table I)   a far side (figure 12)
         placement of srv (figure 17)   interrupts (figures 18, 19)   buffers (figure 20)   boards and an arm (figure 8)
```
The scenarios are `scenarios/polachan-*.toml` and `scenarios/usnet9-latency.toml`, in virtual time but for what
`polachan2022_video` and `polachan2022_arm` measure. [PROTOCOLS 6.5]
"""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis.records import KINDS, plan_of
from tcpsbed.reproduce import polachan2022_arm, polachan2022_video
from tcpsbed.reproduce.recordings import DATA, absent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.analysis import Run
    from tcpsbed.reproduce.study import Study

    Floats = NDArray[np.float64]

SUTURING = DATA / "kinematics" / "jigsaws" / "Suturing_D001.txt"
CAPTURES = DATA / "network" / "pcap"
PINGS = DATA / "network" / "5g" / "5G-production-dataset.zip"
ECHO = 1 + KINDS.index("echo")


def reproduce(study: Study) -> None:
    """Runs all experiments, but for those of `tcpsbed step`."""
    simulated(study)
    on_the_clock(study)


def simulated(study: Study) -> None:
    """Runs what takes place in virtual time."""
    known_delays(study)
    replay(study)
    far(study)
    placement(study)
    video(study)
    external(study)
    buffers(study)
    polachan2022_arm.simulated(study)


def on_the_clock(study: Study) -> None:
    """Runs what is measured on the machine's clock."""
    polachan2022_video.measured(study)
    polachan2022_arm.measured(study)


def trips(run: Run, point: str) -> Floats:
    """Round trips of the echoes of a point, in ms, in the order of their return."""
    names = [component["name"] for component in plan_of(run.folder)["components"]]
    component, side = point.rsplit(".", 1)
    number = 2 * names.index(component) + (side == "exit")
    rows = run.records
    rows = rows[(rows["kind"] == ECHO) & (rows["point"] == number)]
    return np.asarray(rows["value"], dtype=np.float64) / 1e6


# [PROTOCOLS 6.1] [PROTOCOLS 6.5]
def known_delays(study: Study) -> None:
    """Table II and figure 13: delays that are known, as the difference of two echo points."""
    blocks, rates = (1, 3, 5, 10, 15), (0, 500, 750)
    echoes = 5000 if study.full else 300

    def run(case: tuple[int, int]) -> tuple[float, Floats]:
        block_ms, kbps = case
        settings = [
            f"hooks.block.cost='{block_ms} ms'",
            f"traffic.background.rate='{kbps} kbit/s'",
            f"duration='{echoes / 50 + 1} s'",
            f"measure.echo.count={echoes}",
        ]
        return study.run("usnet9-latency", settings, read)

    def read(run: Run) -> tuple[float, Floats]:
        parts = run.summary["echo"]["kinematic"]["components"]
        mean = next(part["latency_ms"]["mean"] for part in parts if part["name"] == "srv")
        return float(mean), trips(run, "srv.exit")

    found = study.each([(b, r) for b in blocks for r in rates], run)
    for (block_ms, kbps), (mean, _) in found.items():
        study.compare(f"table2-{block_ms}-{kbps}", mean)
    errors = {case: 100.0 * abs(mean / case[0] - 1.0) for case, (mean, _) in found.items()}
    study.compare("table2-error", max(errors.values()))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for kbps in rates:
            left.plot(blocks, [found[b, kbps][0] for b in blocks], "o-", label=f"{kbps} kbit/s")
            trip = np.sort(found[blocks[0], kbps][1])
            right.plot(trip, np.arange(1, len(trip) + 1) / len(trip), label=f"{kbps} kbit/s")
        left.set(xlabel="delay in srv (ms)", ylabel="found by echo points (ms)")
        right.set(xlabel="round trip to the exit of srv (ms), 1 ms in srv", ylabel="share")
        left.legend()

    study.figure("figure13", "Table II and figure 13: known delays under other traffic", draw)


@dataclass(frozen=True)
class Spread:
    """Half round trips in ms."""

    half_ms: Floats
    packet_bytes: float

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return float(self.half_ms.std())


# [PROTOCOLS 6.1] [PROTOCOLS 6.5]
def replay(study: Study) -> None:
    """Table I and figure 11: a recorded operation while other hosts replay captures."""
    keys = [f"table1-{case}-{what}" for case in REPLAYS for what in ("min", "mean", "max")]
    if not (SUTURING.exists() and CAPTURES.exists()):
        for key in [*keys, "figure11"]:
            study.cannot(key, absent("the suturing recording and captures"))
        return
    found = study.each(
        REPLAYS, lambda case: study.run("polachan-replay", replay_settings(study, case), spread)
    )
    for case, seen in found.items():
        note = f"deviation {seen.deviation:.2f} ms; mean packet of our captures {seen.packet_bytes:.0f} B"
        half = seen.half_ms
        for what, value in (("min", half.min()), ("mean", half.mean()), ("max", half.max())):
            row = study.expected[f"table1-{case}-{what}"]
            study.compare(f"table1-{case}-{what}", value, f"{row.why}; {note}")
    study.compare("figure11", 100.0 * float((found["10-1x"].half_ms > 1.0).mean()))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for case, seen in found.items():
            half = np.sort(seen.half_ms)
            axes.plot(half, np.arange(1, len(half) + 1) / len(half), label=case)
        axes.set(xscale="log", xlabel="half a round trip (ms)", ylabel="share")
        axes.legend()

    study.figure("figure11", "Figure 11: latency with replayed traffic", draw)


REPLAYS = {
    "free": ("100 Mbit/s", "0 bit/s"),
    "100-1x": ("100 Mbit/s", "9.5 Mbit/s"),
    "100-5x": ("100 Mbit/s", "47.5 Mbit/s"),
    "10-1x": ("10 Mbit/s", "9.5 Mbit/s"),
}
"""Rate of the links, and of what is replayed: 9.5 Mbit/s is the mean of the published capture. [PROTOCOLS 6.5]"""


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
    """Half of what a command took to the exit of ss-com and back."""
    links = [x for x in run.summary["network"] if x["packets"] > 0]
    busiest = max(links, key=lambda x: x["bytes"])
    return Spread(trips(run, "ss-com.exit") / 2.0, busiest["bytes"] / busiest["packets"])


# [PROTOCOLS 6.5]
def far(study: Study) -> None:
    """Figure 12: a far side by a measured profile of pings."""
    if not PINGS.exists():
        for key in ("figure12-mean", "figure12-median"):
            study.cannot(key, absent("the 5G measurements"))
        return
    pings = ping_profile()
    quantiles = ", ".join(f"'{half:.6f} ms'" for half in np.quantile(pings / 2, np.linspace(0, 1, 401)))
    settings = [
        f"links.far.jitter.delay={{ kind = 'empirical', quantiles = [{quantiles}] }}",
        f"duration='{101 if study.full else 21} s'",
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


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def placement(study: Study) -> None:
    """Figure 17: srv at the hosts of S0, S1, S5, S6 and S8, with a processor for all of a host and one for each."""
    places = ("S0", "S1", "S5", "S6", "S8")
    seconds = 60 if study.full else 10

    def run(case: tuple[str, bool]) -> float:
        place, alone = case
        settings = [f"duration='{seconds} s'"]
        if place in ("S0", "S8"):
            host = "master" if place == "S0" else "slave"
            settings.append(f"components.srv.node='{host}'")
        else:
            settings.append(f"nodes.server.at='{place}'")
        if alone:
            settings += [f"nodes.{node}.cores=16" for node in ("master", "server", "slave")]
        return study.run("polachan-placement", settings, lambda run: float(trips(run, "ss-com.exit").mean()))

    found = study.each([(p, alone) for p in places for alone in (False, True)], run)

    def order(alone: bool) -> float:
        middle = max(found[p, alone] for p in ("S1", "S5", "S6"))
        return middle - min(found[p, alone] for p in ("S0", "S8"))

    study.compare("figure17-order", order(alone=False))
    study.compare("figure17-alone", order(alone=True))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        at = np.arange(len(places))
        for i, (alone, name) in enumerate(((False, "one core a host"), (True, "a core for each stage"))):
            axes.bar(at + 0.4 * i - 0.2, [found[p, alone] for p in places], 0.4, label=name)
        axes.set(
            xticks=at, xticklabels=places, xlabel="srv at", ylabel="round trip to the exit of ss-com (ms)"
        )
        axes.legend()

    study.figure("figure17", "Figure 17: where srv stands", draw)


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def video(study: Study) -> None:
    """Figure 18: the kinematic path without and with video, with a card that gathers arrivals and one that does not."""
    seconds = 60 if study.full else 20
    each = [f"nodes.{node}.interrupts.packets=1" for node in ("master", "slave")]

    def run(case: tuple[bool, bool]) -> float:
        shown, gathers = case
        settings = [f"duration='{seconds} s'", *([] if gathers else each)]
        settings += [] if shown else ["flows.video.stop='1 ms'"]
        return study.run("polachan-interrupts", settings, latency_us)

    found = study.each([(shown, gathers) for shown in (False, True) for gathers in (True, False)], run)
    saved = (found[True, False] - found[False, False]) - (found[True, True] - found[False, True])
    study.compare(
        "figure18",
        found[True, True] - found[False, True],
        f"frames are on the line for 0.5 % of the time, and commands and echoes wait behind them; gathering takes "
        f"{saved:.2f} us off that, and not more: what lowers the latency in the paper is not in this model",
    )
    study.compare("figure18-each", found[True, False] - found[False, False])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for i, shown in enumerate((False, True)):
            heights = [found[shown, gathers] for gathers in (True, False)]
            name = "with video" if shown else "without video"
            axes.bar(np.arange(2) + 0.4 * i - 0.2, heights, 0.4, label=name)
        labels = ["8 packets or 72 us", "every packet"]
        axes.set(
            xticks=(0, 1), xticklabels=labels, xlabel="an interrupt after", ylabel="mean round trip (us)"
        )
        axes.legend()

    study.figure("figure18", "Figure 18: video and the latency of commands (model of a network card)", draw)


def latency_us(run: Run) -> float:
    """Mean round trip to the exit of ss-com."""
    return 1e3 * float(trips(run, "ss-com.exit").mean())


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def external(study: Study) -> None:
    """Figure 19: external packets of 1 kB to the same host, rate swept."""
    rates = (0, 1.1, 4.9, 9.7, 19.3, 48.7, 79.0, 97.0, 108.0, 119.0) if study.full else (0, 9.7, 79.0, 119.0)
    seconds = 5 if study.full else 2

    def run(khz: float) -> float:
        settings = [f"duration='{seconds} s'", "flows.video.stop='1 ms'"]
        if khz > 0:
            settings += [f"flows.external.rate='{khz} kHz'", f"flows.external.stop='{seconds} s'"]
        return study.run("polachan-interrupts", settings, latency_us)

    found = study.each(rates, run)
    study.compare("figure19-fall", min(found.values()) - found[0])
    study.compare("figure19-rise", found[max(rates)] / found[0])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(list(found), list(found.values()), "o-")
        axes.set(
            xlabel="external packets of 1 kB (thousand a second)", ylabel="mean round trip (us)", yscale="log"
        )

    study.figure("figure19", "Figure 19: external packets and latency (model of a network card)", draw)


@dataclass(frozen=True)
class Buffered:
    """Mean delay in ms, and what was lost in percent: of commands, and of the background."""

    delay: float
    loss: float
    kept: float


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def buffers(study: Study) -> None:
    """Figure 20: buffer size and transmit interval, and the remedy: a small buffer for the telehaptic flow only."""
    sizes = (2, 5, 10, 20, 50, 100, 200) if study.full else (2, 20, 100)
    intervals = (10, 5, 2, 1) if study.full else (10, 1)
    deepest = max(sizes)
    remedy = (
        f"links.shared.queue={{ limit = '{deepest} packets', discipline = 'round-robin', "
        "flow_limits = { kinematic = '2 packets' } }"
    )
    cases = [(f"links.shared.queue='{size} packets'", ms) for size in sizes for ms in intervals]
    cases += [(remedy, ms) for ms in intervals]

    def run(case: tuple[str, int]) -> Buffered:
        queue, interval_ms = case
        return study.run(
            "polachan-buffers", [queue, f"flows.kinematic.rate='{1000 / interval_ms} Hz'"], buffered
        )

    found = study.each(cases, run)
    small, deep = (found[f"links.shared.queue='{size} packets'", 1] for size in (2, deepest))
    study.compare("figure20-deep", deep.delay / small.delay)
    study.compare("figure20-small", small.delay)
    study.compare(
        "figure20-drops",
        small.loss,
        "constant flows in step leave the samples their places in the buffer, and who is dropped hangs on phases that the "
        f"paper does not give; with two packets for this flow only {found[remedy, 1].loss:.1f} % are lost",
    )
    study.compare("figure20-remedy", found[remedy, 1].delay)
    study.compare("figure20-kept", found[remedy, 1].kept)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for ms in intervals:
            rows = [found[f"links.shared.queue='{size} packets'", ms] for size in sizes]
            left.plot(sizes, [row.delay for row in rows], "o-", label=f"every {ms} ms")
            right.plot(sizes, [row.loss for row in rows], "o-", label=f"every {ms} ms")
            left.axhline(found[remedy, ms].delay, color="gray", linestyle=":", linewidth=1)
            right.axhline(found[remedy, ms].loss, color="gray", linestyle=":", linewidth=1)
        left.set(xlabel="buffer (packets)", ylabel="mean delay (ms)", xscale="log", yscale="log")
        right.set(xlabel="buffer (packets)", ylabel="samples lost (%)", xscale="log")
        left.legend()

    study.figure(
        "figure20", "Figure 20: buffers, transmit interval, and two packets for this flow only (dotted)", draw
    )


def buffered(run: Run) -> Buffered:
    """What a run of the buffers shows of the way there."""
    flow = run.flows["kinematic"]
    there = [x for x in run.summary["traffic"] if x["name"].endswith("forward")]
    kept = sum(x["delivered_packets"] for x in there) / max(1, sum(x["packets"] for x in there))
    return Buffered(flow["delay_ms"]["mean"], 100.0 * flow["loss"], 100.0 * kept)
