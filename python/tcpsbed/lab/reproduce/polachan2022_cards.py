"""Polachan 2022, figures 18 and 19, by a model of a network card that gathers arrivals before it interrupts.

Nothing in the scenario is random, so that repeats differ in the phases of its flows: a difference is judged by the end of
its 95 % interval over them that is nearest to zero. [Polachan 2022]
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis.stats import Interval, interval
from tcpsbed.lab.reproduce import echoes
from tcpsbed.lab.reproduce.repeats import high, low, margin, settled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.lab.reproduce.study import Study

    Floats = NDArray[np.float64]

SCENARIO, POINT = "polachan-interrupts", "ss-com.exit"
NO_VIDEO = "flows.video.stop='1 ms'"
EACH = [f"nodes.{node}.interrupts.packets=1" for node in ("master", "slave")]
"""A card that interrupts for every packet."""
RATES_KHZ = (0, 1.1, 4.9, 9.7, 19.3, 48.7, 79.0, 97.0, 108.0, 119.0)
SHORT_KHZ = (0, 9.7, 79.0, 119.0)


def simulated(study: Study) -> None:
    """Both figures."""
    video(study)
    external(study)


def phases(number: int, flow: str | None) -> list[str]:
    """Overrides for the start times of a repeat's other traffic and echoes."""
    chance = random.Random(number)
    echo, other = chance.randrange(10_000), chance.randrange(33_000)
    begun = [f"flows.{flow}.start='{other} us'"] if flow else []
    return [f"measure.echo.start='{echo} us'", *begun]


def mean_us(study: Study, settings: list[str], seconds: float, longest_s: float) -> Interval:
    """Mean round trip to the exit of ss-com, in a run that is as long as it needs."""

    def run(seconds: float) -> dict[str, Floats]:
        sets = [*settings, f"duration='{seconds:.3f} s'"]
        return study.run(SCENARIO, sets, echoes.at_points([POINT]))

    return interval((1e3 * settled(run, echoes.means, seconds, longest_s)[POINT]).tolist())


def video(study: Study) -> None:
    """Figure 18: the kinematic path without and with video, with a card that gathers arrivals and one that does not."""
    repeats = range(10 if study.full else 4)

    def run(case: tuple[bool, bool, int]) -> Interval:
        shown, gathers, number = case
        settings = [*phases(number, "video" if shown else None), *([] if gathers else EACH)]
        settings += [] if shown else [NO_VIDEO]
        return mean_us(study, settings, 20.0, 120.0)

    both = (False, True)
    runs = study.each([(shown, gathers, n) for shown in both for gathers in both for n in repeats], run)
    found, said = {case: one.mean for case, one in runs.items()}, margin(runs.values())
    added = {g: interval([found[True, g, n] - found[False, g, n] for n in repeats]) for g in both}
    for key, gathers, end in (("figure18", True, high), ("figure18-each", False, low)):
        one = added[gathers]
        note = (
            f"{study.expected[key].why}; {one.mean:.2f} ± {one.half or 0:.2f} us over {one.n} repeats; {said}"
        )
        study.compare(key, end(one), note)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for i, shown in enumerate(both):
            bars = [interval([found[shown, gathers, n] for n in repeats]) for gathers in (True, False)]
            name = "with video" if shown else "without video"
            _bars(axes, 0.4 * i - 0.2, bars, name)
        labels = ["8 packets or 72 us", "every packet"]
        axes.set(
            xticks=(0, 1), xticklabels=labels, xlabel="an interrupt after", ylabel="mean round trip (us)"
        )
        axes.legend()

    study.figure("figure18", "Figure 18: video and the latency of commands (model of a network card)", draw)


def _bars(axes: object, shift: float, bars: list[Interval], name: str) -> None:
    at = np.arange(len(bars)) + shift
    heights, halves = [bar.mean for bar in bars], [bar.half or 0.0 for bar in bars]
    axes.bar(at, heights, 0.4, yerr=halves, label=name)  # type: ignore[attr-defined]


def external(study: Study) -> None:
    """Figure 19: external packets of 1 kB to the same host, rate swept."""
    rates, repeats = (RATES_KHZ, range(5)) if study.full else (SHORT_KHZ, range(3))

    def run(case: tuple[float, int]) -> Interval:
        khz, number = case
        settings = [*phases(number, "external" if khz > 0 else None), NO_VIDEO]
        if khz > 0:
            settings += [f"flows.external.rate='{khz} kHz'", "flows.external.stop='1 h'"]
        return mean_us(study, settings, 3.0, 12.0)

    runs = study.each([(khz, n) for khz in rates for n in repeats], run)
    found, said = {case: one.mean for case, one in runs.items()}, margin(runs.values())
    levels = {khz: interval([found[khz, n] for n in repeats]) for khz in rates}
    least = min(levels, key=lambda khz: levels[khz].mean)
    fall = interval([found[least, n] - found[0, n] for n in repeats])
    note = f"least at {least:g} kHz: {fall.mean:.2f} ± {fall.half or 0:.2f} us over {fall.n} repeats; {said}"
    study.compare("figure19-fall", high(fall), f"{study.expected['figure19-fall'].why}; {note}")
    study.compare("figure19-rise", levels[max(rates)].mean / levels[0].mean)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        halves = [one.half or 0.0 for one in levels.values()]
        axes.errorbar(list(levels), [one.mean for one in levels.values()], yerr=halves, fmt="o-", capsize=3)
        axes.set(
            xlabel="external packets of 1 kB (thousand a second)", ylabel="mean round trip (us)", yscale="log"
        )

    study.figure("figure19", "Figure 19: external packets and latency (model of a network card)", draw)
