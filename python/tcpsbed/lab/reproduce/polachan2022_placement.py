"""Polachan 2022, figure 17: where srv stands among nine switches, with ms-com at S0 and ss-com at S8.

```text
S0: ms-com ── S1, S5 or S6: srv ── S8: ss-com        the paper: lower than with srv at S0 or S8
```
Hops alone say the opposite at S1 and S6. What can give the order is contention for a host's processor, so that it depends on
what components cost there, which the paper does not say: the costs are ours, and the order is shown over them.
[Polachan 2022]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis.stats import interval
from tcpsbed.lab.reproduce import echoes
from tcpsbed.lab.reproduce.repeats import apart, high, low, margin, settled
from tcpsbed.palette import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.analysis.stats import Interval
    from tcpsbed.lab.reproduce.study import Study

    Floats = NDArray[np.float64]
    Trips = dict[str, Floats]

SCENARIO = "polachan-placement"
PLACES = ("S0", "S1", "S5", "S6", "S8")
ENDS = {"S0": "master", "S8": "slave"}
"""Places at the ends, and the host there."""
SIDED = ("ms-com", "ss-com")
POINTS = tuple(f"{name}.{side}" for name in ("ms-com", "srv", "ss-com") for side in ("entry", "exit"))
LAST = POINTS[-1]
LONGEST_S = 300.0
SIDE_MS, SRV_MS = (0.05, 0.1, 0.15, 0.2, 0.25), (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""Mean costs of ms-com and ss-com, and of srv, over which the order is looked at."""
SHORT_MS = ((0.05, 0.1), (0.25, 0.3))
MOST_LOAD = 0.95
"""Share of a host's processor above which nothing is in equilibrium: two flows of 1 kHz pass every component."""


def simulated(study: Study) -> None:
    """Bars at every echo point, with the scenario's costs and without contention; then the order over costs."""
    cases = [(place, alone) for place in PLACES for alone in (False, True)]
    found = study.each(cases, lambda case: place(study, case[0], cores(alone=case[1]), POINTS))
    said = margin(mean for trips in found.values() for mean in echoes.means(trips))
    for key, alone in (("figure17-order", False), ("figure17-alone", True)):
        difference = order({at: found[at, alone][LAST] for at in PLACES})
        end = low(difference) if alone else high(difference)
        note = f"{study.expected[key].why}; {difference.mean:.3f} ± {difference.half or 0:.3f} ms; {said}"
        study.compare(key, end, note)
    boundary(study)
    study.figure(
        "figure17",
        "Figure 17: where srv stands, round trips at every echo point",
        lambda figure: _draw(figure, found),
    )


def place(study: Study, at: str, settings: list[str], points: tuple[str, ...]) -> Trips:
    """Round trips with srv at a switch, in a run that is as long as their means need."""
    where = f"components.srv.node='{ENDS[at]}'" if at in ENDS else f"nodes.server.at='{at}'"
    shared = [where, echoes.asked(points), *settings]

    def run(seconds: float) -> Trips:
        return study.run(SCENARIO, [*shared, f"duration='{seconds:.3f} s'"], echoes.at_points(points))

    return settled(run, echoes.means, 20.0, LONGEST_S if study.full else 20.0)


def cores(*, alone: bool) -> list[str]:
    """Overrides that give every component a processor of its own."""
    return [f"nodes.{node}.cores=16" for node in ("master", "server", "slave")] if alone else []


def costs(side_ms: float, srv_ms: float) -> list[str]:
    """Overrides of what components cost, exponential as in the scenario."""
    named = [(name, side_ms) for name in SIDED] + [("srv", srv_ms)]
    return [f"components.{name}.cost={{ kind = 'exponential', mean = '{ms} ms' }}" for name, ms in named]


def order(found: Trips) -> Interval:
    """The largest mean with srv between the ends, less the smallest with it at one of them; below 0 is the paper's order."""
    middle = max((found[at] for at in PLACES if at not in ENDS), key=lambda trips: float(trips.mean()))
    end = min((found[at] for at in ENDS), key=lambda trips: float(trips.mean()))
    return apart(middle.tolist(), end.tolist())


def boundary(study: Study) -> None:
    """For which costs the paper's order comes out."""
    sides, srvs = (SIDE_MS, SRV_MS) if study.full else SHORT_MS
    cells = [(side, srv) for side in sides for srv in srvs if 2 * (side + srv) < MOST_LOAD]

    def run(case: tuple[str, tuple[float, float]]) -> Floats:
        at, (side, srv) = case
        return place(study, at, costs(side, srv), (LAST,))[LAST]

    found = study.each([(at, cell) for at in PLACES for cell in cells], run)
    orders = {cell: order({at: found[at, cell] for at in PLACES}) for cell in cells}
    said = margin(interval(trips.tolist()) for trips in found.values())
    told = ", ".join(f"{side}/{srv}: {one.mean:+.3f}" for (side, srv), one in orders.items())
    study.compare(
        "figure17-costs",
        100.0 * sum(high(one) < 0 for one in orders.values()) / len(orders),
        f"{study.expected['figure17-costs'].why}; cost of the sides / of srv (ms): difference (ms): {told}; {said}",
    )
    study.figure(
        "figure17-costs", "Figure 17: the order over what components cost", lambda f: _boundary(f, orders)
    )


def _draw(figure: Figure, found: dict[tuple[str, bool], Trips]) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, alone, name in ((upper, False, "one core a host"), (lower, True, "a core for each component")):
        bars(axes, {at: found[at, alone] for at in PLACES})
        axes.set(ylabel="round trip (ms)", title=name)
    lower.set_xlabel("srv at")
    upper.legend(fontsize=7, ncols=3)


def bars(axes: Axes, found: dict[str, Trips]) -> None:
    """A group for each place, a bar with its interval for each echo point."""
    places = list(found)
    at = np.arange(len(places))
    for i, point in enumerate(POINTS):
        means = [interval(found[where][point].tolist()) for where in places]
        halves = [mean.half or 0.0 for mean in means]
        axes.bar(at + 0.13 * (i - 2.5), [mean.mean for mean in means], 0.13, yerr=halves, label=point)
    axes.set(xticks=at, xticklabels=places)


def _boundary(figure: Figure, orders: dict[tuple[float, float], Interval]) -> None:
    axes = figure.subplots()
    for (side, srv), one in orders.items():
        sign = (high(one) < 0) - (low(one) > 0)
        color = {1: PALETTE[2], 0: "0.6", -1: PALETTE[1]}[sign]
        axes.scatter(side, srv, s=900, color=color, marker="s")
        axes.annotate(f"{one.mean:+.2f}", (side, srv), ha="center", va="center", size=8)
    axes.margins(0.2)
    axes.set(
        xlabel="mean cost of ms-com and of ss-com (ms)",
        ylabel="mean cost of srv (ms)",
        title="S1, S5, S6 less S0, S8 (ms): green the paper's order, red the reverse, grey not settled",
    )
