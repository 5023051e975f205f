"""Questions that Gokhale 2017 leaves open, answered with figures; no published values exist.

```text
against TCP (Reno, CUBIC)      several sessions on one link      ways of different rates      LTE delivery traces
a better signal, a better task? (`task`)
```
All runs are of the dumbbell of `scenarios/dumbbell-dpm.toml`, with its background or its links replaced. The mobile user is
the teleoperator: what the robot sends goes up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis.records import KINDS, plan_of
from tcpsbed.lab.reproduce import task
from tcpsbed.lab.reproduce.recordings import DATA, absent

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

SCENARIO = "dumbbell-dpm"
QUIET = ("traffic.cbr.rate='0 bit/s'", "traffic.vbr.rate='0 bit/s'")
TRACES = DATA / "network" / "mahimahi"
TRANSMIT = 1 + KINDS.index("transmit")


def reproduce(study: Study) -> None:
    """Runs all of them."""
    against_tcp(study)
    sharing(study)
    asymmetric(study)
    lte(study)
    task.compare(study)


def chosen(transport: str, parameters: str = "") -> str:
    """The override that gives the session a transport."""
    given = "k = 4" if transport == "fixed-k" else parameters
    return f"channels.session.transport={{ kind = '{transport}'{', ' if given else ''}{given} }}"


def tail_ms(run: Run) -> float:
    """99th percentile of the haptic delay."""
    return float(run.flows["haptic"]["delay_ms"]["p99"])


def against_tcp(study: Study) -> None:
    """One endless transfer in each direction beside the session."""
    transports = ("udp", "no-merge", "fixed-k", "dpm", "dpm-g", "dpm-q")
    kinds = ("reno", "cubic")
    seconds = 60 if study.full else 15

    def run(case: tuple[str, str]) -> tuple[float, float]:
        kind, transport = case
        settings = [chosen(transport), f"traffic.bulk.congestion='{kind}'", f"duration='{seconds} s'"]
        if transport == "udp":
            settings += ["flows.audio.stop='1 ms'", "flows.video.stop='1 ms'", "flows.haptic.sample='70 B'"]
        return study.run(
            "dumbbell-bulk", settings, lambda run: (tail_ms(run), 100.0 * run.flows["haptic"]["loss"])
        )

    found = study.each([(kind, transport) for kind in kinds for transport in transports], run)
    for (kind, transport), (tail, loss) in found.items():
        study.compare(f"tcp-{kind}-{transport}", tail, beside={"haptic samples lost (%)": loss})

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        at = np.arange(len(transports))
        for i, kind in enumerate(kinds):
            rows = [found[kind, transport] for transport in transports]
            left.bar(at + 0.4 * i - 0.2, [tail for tail, _ in rows], 0.4, label=kind)
            right.bar(at + 0.4 * i - 0.2, [loss for _, loss in rows], 0.4, label=kind)
        for axes, label in (
            (left, "99th percentile of haptic delay (ms)"),
            (right, "haptic samples lost (%)"),
        ):
            axes.set(xticks=at, ylabel=label)
            axes.set_xticklabels(transports, rotation=30)
        left.legend()

    study.figure("tcp", "Against one endless TCP transfer each way", draw)


def sharing(study: Study) -> None:
    """Several sessions on one link that carries each of them at k = 2 or more, not at k = 1."""
    counts = (2, 3, 4)
    seconds = 60 if study.full else 15

    def run(count: int) -> tuple[list[float], list[float]]:
        rate_mbps = 0.85 * count
        settings = [
            "sessions=[" + ", ".join(f"'s{i}'" for i in range(count)) + "]",
            chosen("dpm-q", f"bottleneck = '{rate_mbps} Mbit/s'"),
            f"links.l1.rate='{rate_mbps} Mbit/s'",
            f"links.l1.queue='{10_000 * count} B'",
            *QUIET,
            'measure.records="packets"',
            'measure.pcapng="off"',
            f"duration='{seconds} s'",
        ]
        return study.run(SCENARIO, settings, each_session)

    found = study.each(counts, run)
    for count, (rates, tails) in found.items():
        study.compare(f"share-{count}-jain", jain(rates))
        study.compare(f"share-{count}-delay", max(tails))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for count, (rates, tails) in found.items():
            left.plot([count] * count, rates, "o", label=f"Jain {jain(rates):.4f}")
            right.plot([count] * count, tails, "o")
        left.set(xlabel="sessions on the link", ylabel="rate of the return path (kbit/s)", xticks=counts)
        right.set(xlabel="sessions on the link", ylabel="99th percentile of haptic delay (ms)", xticks=counts)
        left.legend()

    study.figure("sharing", "Sessions of dpm-q on one link of 0.85 Mbit/s each", draw)


def jain(shares: list[float]) -> float:
    """Jain's index of fairness: 1 if all are equal, 1 / n if one has everything."""
    x = np.array(shares)
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def each_session(run: Run) -> tuple[list[float], list[float]]:
    """Rate on the wire in kbit/s and 99th percentile of the delay in ms of each session's return path."""
    rows = run.records
    names = [flow["name"] for flow in plan_of(run.folder)["flows"]]
    haptic = [name for name in names if name.endswith("haptic")]
    sent = rows[rows["kind"] == TRANSMIT]
    seconds = run.summary["ran_s"]
    sizes = [float(sent["size"][sent["flow"] == names.index(name)].sum()) for name in haptic]
    tails = [float(run.flows[name]["delay_ms"]["p99"]) for name in haptic]
    return [size * 8e-3 / seconds for size in sizes], tails


def asymmetric(study: Study) -> None:
    """An outbound path with a third of the rate: reports about the return path arrive late, and in merged packets."""
    transports = ("dpm-g", "dpm-q")
    seconds = 60 if study.full else 15

    def run(transport: str) -> tuple[float, float]:
        settings = [
            chosen(transport),
            "links.l1.forward.rate='500 kbit/s'",
            "traffic.cbr.on='l1.backward'",
            "traffic.vbr.on='l1.backward'",
            f"duration='{seconds} s'",
        ]
        return study.run(
            SCENARIO, settings, lambda run: (tail_ms(run), float(run.flows["kinematic"]["delay_ms"]["p99"]))
        )

    found = study.each(transports, run)
    for transport, (tail, there) in found.items():
        study.compare(f"asymmetric-{transport}", tail, beside={"the way there (ms)": there})
    bars = {
        "way back, 1.5 Mbit/s": [t for t, _ in found.values()],
        "way there, 0.5": [t for _, t in found.values()],
    }
    study.figure("asymmetric", "Ways of different rates", _bars(transports, bars))


def lte(study: Study) -> None:
    """The bottleneck follows delivery traces (times of transmission opportunities) that were recorded on LTE."""
    transports = ("no-merge", "fixed-k", "dpm-g", "dpm-q")
    up, down = (TRACES / f"Verizon-LTE-short.{way}" for way in ("up", "down"))
    if not (up.exists() and down.exists()):
        for transport in transports:
            study.cannot(f"lte-{transport}", absent("mahimahi"))
        return
    seconds = 60 if study.full else 15
    access = (
        "links.l1.rate='1 Gbit/s'",
        "links.egress.queue='60000 B'",
        f"links.egress.forward.trace='{down}'",
        f"links.egress.backward.trace='{up}'",
    )

    def run(transport: str) -> tuple[float, float]:
        settings = [chosen(transport), *access, *QUIET, f"duration='{seconds} s'"]
        return study.run(SCENARIO, settings, lambda run: (tail_ms(run), 100.0 * run.flows["haptic"]["loss"]))

    found = study.each(transports, run)
    for transport, (tail, loss) in found.items():
        study.compare(f"lte-{transport}", tail, beside={"haptic samples lost (%)": loss})
    study.figure(
        "lte", "Over LTE delivery traces", _bars(transports, {"way back": [t for t, _ in found.values()]})
    )


def _bars(transports: tuple[str, ...], tails: dict[str, list[float]]) -> Callable[[Figure], None]:
    """99th percentiles by transport, side by side."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        at, width = np.arange(len(transports)), 0.8 / len(tails)
        for i, (name, values) in enumerate(tails.items()):
            axes.bar(at + width * (i - (len(tails) - 1) / 2), values, width, label=name)
        axes.set(xticks=at, xticklabels=transports, ylabel="99th percentile of haptic delay (ms)")
        axes.legend()

    return draw
