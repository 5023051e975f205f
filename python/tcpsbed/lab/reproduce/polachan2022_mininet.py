"""Polachan et al. 2022 in Mininet, as they ran it: real processes in hosts, links of the kernel, datagrams of other hosts.

```text
usnet9 in Mininet ─► known delays (table II, figure 13)   replay (table I, figure 11)   srv (figure 17)   buffers (figure 20)
a relayed link    ─► a far side by a measured profile (figure 12)
```
The scenarios are those of `polachan2022`, but for the delay of their links: in Mininet hosts and switches take time
themselves. Runs follow each other, since they share this machine's clock and cores. [Polachan 2022]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed import worlds
from tcpsbed.lab.reproduce import echoes, polachan2022, polachan2022_buffers, polachan2022_placement
from tcpsbed.lab.reproduce.polachan2022 import (
    BLOCKS,
    CAPTURES,
    FIGURES,
    RATES,
    REPLAYS,
    SUTURING,
    Spread,
    latency_of_srv,
    spread,
)
from tcpsbed.lab.reproduce.polachan2022_buffers import TWO, remedy
from tcpsbed.lab.reproduce.polachan2022_placement import ENDS, LAST, PLACES, POINTS
from tcpsbed.lab.reproduce.recordings import absent
from tcpsbed.lab.reproduce.repeats import high, margin
from tcpsbed.lab.reproduce.study import WHOLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.lab.reproduce.study import Study

    Floats = NDArray[np.float64]

WORLD = "mininet"
AT_ONCE = "topology.link.delay='0 ms'"
"""Links of the kernel without a delay of their own."""


def reproduce(study: Study) -> None:
    """Runs all experiments, one after the other; without Mininet, every row names the requirement."""
    if lack := worlds.named(WORLD).missing():
        for key in study.expected:
            study.cannot(key, f"Mininet is not ready here: it needs {lack}")
        return
    known_delays(study)
    replay(study)
    placement(study)
    buffers(study)
    polachan2022.far(study, 101 if study.full else 11)


# [Polachan 2022]
def known_delays(study: Study) -> None:
    """Table II: delays that are known, as the difference of two echo points."""
    blocks, rates = (BLOCKS, RATES) if study.full else (BLOCKS[-1:], RATES[::2])
    echoes = 500 if study.full else 100

    def run(case: tuple[int, int]) -> float:
        block_ms, kbps = case
        settings = [
            AT_ONCE,
            f"hooks.block.cost='{block_ms} ms'",
            f"traffic.background.rate='{kbps} kbit/s'",
            f"duration='{echoes / 50 + 1} s'",
            f"measure.echo.count={echoes}",
        ]
        return study.run("usnet9-latency", settings, latency_of_srv)

    found = study.each([(b, r) for b in blocks for r in rates], run)
    study.worst("table2-error", polachan2022.off(found))
    study.figure(
        "figure13",
        "Figure 13 in Mininet: errors of known delays under other traffic",
        lambda figure: polachan2022.bars(figure, found),
    )


# [Polachan 2022]
def replay(study: Study) -> None:
    """Table I and figure 11: a recorded operation while other hosts replay captures."""
    keys = [f"table1-{case}-{what}" for case in REPLAYS for what in FIGURES]
    if not (SUTURING.exists() and CAPTURES.exists()):
        for key in [*keys, "figure11", "figure11-free"]:
            study.cannot(key, absent("suturing", "captures"))
        return
    seconds = 60 if study.full else 8

    def run(case: str) -> Spread:
        settings = [*polachan2022.replay_settings(study, case), AT_ONCE, f"duration='{seconds} s'"]
        return study.run("polachan-replay", settings, spread)

    found = study.each(REPLAYS if study.full else ("100-1x", "10-1x"), run)
    for key, case, what in ((f"table1-{c}-{w}", c, w) for c in REPLAYS for w in FIGURES):
        if case in found:
            study.compare(key, found[case].of(what))
        else:
            study.cannot(key, WHOLE)
    polachan2022.above_1_ms(study, {case: seen.half_ms for case, seen in found.items()})


# [Polachan 2022]
def placement(study: Study) -> None:
    """Figure 17: srv at the hosts of S0, S1, S5, S6 and S8; components on one host share a loop."""
    places = PLACES if study.full else ("S0", "S5")
    seconds = 30 if study.full else 2

    def run(place: str) -> dict[str, Floats]:
        where = f"components.srv.node='{ENDS[place]}'" if place in ENDS else f"nodes.server.at='{place}'"
        settings = [AT_ONCE, where, echoes.asked(POINTS), f"duration='{seconds} s'"]
        return study.run("polachan-placement", settings, echoes.at_points(POINTS))

    found = study.each(places, run)
    if study.full:
        difference = polachan2022_placement.order({place: found[place][LAST] for place in places})
        said = margin(mean for trips in found.values() for mean in echoes.means(trips))
        note = f"{study.expected['figure17-order'].why}; {difference}; {said}"
        study.compare("figure17-order", high(difference), note)
    else:
        study.cannot("figure17-order", WHOLE)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        polachan2022_placement.bars(axes, found)
        axes.set(xlabel="srv at", ylabel="round trip (ms)")
        axes.legend(fontsize=7, ncols=3)

    study.figure("figure17", "Figure 17 in Mininet: where srv stands, at every echo point", draw)


# [Polachan 2022]
def buffers(study: Study) -> None:
    """Figure 20: buffer size and transmit interval, and a small buffer for the telehaptic flow only."""
    sizes, intervals = ((2, 20, 100, 200), (10, 1)) if study.full else ((2, 100), (1,))
    deepest = max(sizes)
    length = ["links.shared.delay='0 ms'", f"duration='{20 if study.full else 7} s'"]
    cases = [(f"links.shared.queue='{size} packets'", ms, "cbr") for size in sizes for ms in intervals]
    cases += [(remedy(deepest), 1, "cbr"), (TWO, 1, "poisson")]
    found = study.each(cases, lambda case: polachan2022_buffers.once(study, case, length))
    small, deep = (found[f"links.shared.queue='{size} packets'", 1, "cbr"] for size in (2, deepest))
    polachan2022_buffers.compare(study, small, deep, found[remedy(deepest), 1, "cbr"])
    polachan2022_buffers.lost(study, small, found[TWO, 1, "poisson"])
    study.figure(
        "figure20",
        "Figure 20 in Mininet: buffers and transmit interval",
        lambda figure: polachan2022_buffers.draw(figure, found, sizes, intervals, ("cbr",)),
    )
