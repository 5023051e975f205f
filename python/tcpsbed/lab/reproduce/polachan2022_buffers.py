"""Polachan 2022, figure 20: buffer size and transmit interval, and the remedy, a small buffer for the telehaptic flow only.

Two background flows leave 0.6 of 10 Mbit/s, and 1 kHz asks for 0.7. With flows of constant rate hardly a sample is lost
in a buffer of two packets, whatever their phases; with packets at random moments some are; commands that alone have the
small buffer lose all that is lacking. How the packets of the paper's background come is not said.
[Polachan 2022]
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpsbed.analysis.stats import Interval, interval, t975
from tcpsbed.lab.reproduce.repeats import margin, settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

    Case = tuple[str, int, str]

SCENARIO = "polachan-buffers"
TWO = "links.shared.queue='2 packets'"
PERIOD_US = 851
"""Time between two packets of a background flow."""


@dataclass(frozen=True)
class Buffered:
    """Commands: mean delay in ms with its interval, and loss in %. Background: share that was delivered, in %."""

    mean: Interval
    loss: float
    kept: float

    @property
    def delay(self) -> float:
        """Mean delay in ms."""
        return self.mean.mean


def simulated(study: Study) -> None:
    """Sweeps of size and interval, arrivals of the background at random, and its phases."""
    sizes = (2, 5, 10, 20, 50, 100, 200) if study.full else (2, 20, 100)
    intervals_ms = (10, 5, 2, 1) if study.full else (10, 1)
    kinds = ("cbr", "poisson")
    queues = {size: f"links.shared.queue='{size} packets'" for size in sizes}
    cases = [(queue, ms, kind) for queue in queues.values() for ms in intervals_ms for kind in kinds]
    cases += [(remedy(max(sizes)), ms, kind) for ms in intervals_ms for kind in kinds]
    found = study.each(cases, lambda case: run(study, case))
    rows(study, found, sizes)
    study.figure(
        "figure20",
        "Figure 20: buffers, transmit interval, and two packets for this flow only (dotted)",
        lambda figure: draw(figure, found, sizes, intervals_ms, kinds),
    )


def rows(study: Study, found: dict[Case, Buffered], sizes: Sequence[int]) -> None:
    """The paper's values for 1 kHz."""
    remedied = found[remedy(max(sizes)), 1, "cbr"]
    small, deep = (found[f"links.shared.queue='{size} packets'", 1, "cbr"] for size in (2, max(sizes)))
    compare(study, small, deep, remedied)
    lost(study, small, found[TWO, 1, "poisson"], phases(study))


def compare(study: Study, small: Buffered, deep: Buffered, remedied: Buffered) -> None:
    """The rows of latencies, with what is known of their means, and of the remedy."""
    study.compare("figure20-deep", deep.delay / small.delay, margin([deep.mean, small.mean]))
    study.compare("figure20-small", small.delay, margin([small.mean]))
    study.compare("figure20-remedy", remedied.delay, margin([remedied.mean]))
    study.compare("figure20-remedy-drops", remedied.loss)
    study.compare("figure20-kept", remedied.kept)


def lost(study: Study, constant: Buffered, poisson: Buffered, note: str = "") -> None:
    """Losses of a buffer of two packets by the pattern of the background, which the paper does not give."""
    by_arrivals = {"at a constant rate": constant.loss, "at random moments": poisson.loss}
    study.nearest("figure20-lost", by_arrivals, note)


def remedy(deepest: int) -> str:
    """A buffer of two packets for the telehaptic flow, and a deep one for the rest."""
    return (
        f"links.shared.queue={{ limit = '{deepest} packets', discipline = 'round-robin', "
        "flow_limits = { kinematic = '2 packets' } }"
    )


def once(study: Study, case: Case, more: Sequence[str]) -> Buffered:
    """One run of a setting."""
    queue, interval_ms, kind = case
    settings = [queue, f"flows.kinematic.rate='{1000 / interval_ms} Hz'", *more]
    settings += [f"traffic.{name}.kind='{kind}'" for name in ("one", "two")]
    return study.run(SCENARIO, settings, buffered)


def run(study: Study, case: Case, *more: str) -> Buffered:
    """One setting, as long as its mean delay needs."""
    return settled(
        lambda seconds: once(study, case, [*more, f"duration='{seconds:.3f} s'"]),
        lambda one: [one.mean],
        20.0,
        200.0 if study.full else 20.0,
    )


def phases(study: Study) -> str:
    """What a buffer of two packets loses over phases of the background and of the commands, in words."""

    def one(number: int) -> float:
        chance = random.Random(number)
        names = ("traffic.one", "traffic.two", "flows.kinematic")
        starts = [f"{name}.start='{chance.randrange(PERIOD_US)} us'" for name in names]
        return run(study, (TWO, 1, "cbr"), *starts).loss

    losses = list(study.each(range(20 if study.full else 4), one).values())
    mean, least, most = interval(losses), min(losses), max(losses)
    return (
        f"over {mean.n} phases of flows of constant rate {least:.1f} to {most:.1f} % (mean {mean.mean:.1f})"
    )


def buffered(run: Run) -> Buffered:
    """Results of a run of the buffers on the outbound path."""
    flow = run.flows["kinematic"]
    there = [x for x in run.summary["traffic"] if x["name"].endswith("forward")]
    kept = sum(x["delivered_packets"] for x in there) / max(1, sum(x["packets"] for x in there))
    delay = flow["delay_ms"]
    half = t975(delay["n"] - 1) * delay["sd"] / delay["n"] ** 0.5 if delay["n"] > 1 else None
    return Buffered(Interval(delay["n"], delay["mean"], half), 100.0 * flow["loss"], 100.0 * kept)


def draw(
    figure: Figure,
    found: dict[Case, Buffered],
    sizes: Sequence[int],
    intervals_ms: Sequence[int],
    kinds: Sequence[str],
) -> None:
    """Mean delay and loss over the size of the buffer, a line for each interval; solid constant, dashed random."""
    left, right = figure.subplots(1, 2)
    deepest = max(sizes)
    for i, ms in enumerate(intervals_ms):
        for kind, style in zip(kinds, ("o-", "x--"), strict=False):
            line = [found[f"links.shared.queue='{size} packets'", ms, kind] for size in sizes]
            label = f"every {ms} ms, {'constant' if kind == 'cbr' else 'Poisson'}"
            left.plot(sizes, [one.delay for one in line], style, color=f"C{i}", label=label)
            right.plot(sizes, [one.loss for one in line], style, color=f"C{i}", label=label)
        remedied = found.get((remedy(deepest), ms, kinds[0]))
        if remedied is not None:
            left.axhline(remedied.delay, color="gray", linestyle=":", linewidth=1)
            right.axhline(remedied.loss, color="gray", linestyle=":", linewidth=1)
    left.set(xlabel="buffer (packets)", ylabel="mean delay (ms)", xscale="log", yscale="log")
    right.set(xlabel="buffer (packets)", ylabel="samples lost (%)", xscale="log")
    left.legend(fontsize=6)
