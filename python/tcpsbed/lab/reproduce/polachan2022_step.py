"""Polachan et al. 2022, figures 5 and 16: a step of the far side, answered by one controller through the testbed.

```text
PC-1  ms-com, srv, PI controller ── PC-2 emulator: RTT, drops ── PC-3 ss-com, step        `tcpsbed step scenarios/step.toml`
```
The paper gives neither gains nor the period of its controller. Every run here has the controller of
`scenarios/step.toml`, whose gains follow from a rule (docs/step.md) and not from what the paper says of figure 16.
[Polachan 2022]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed import shipped
from tcpsbed.analysis.stats import interval
from tcpsbed.lab.reproduce.repeats import apart, low

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpsbed.lab.control.experiment import Experiment
    from tcpsbed.lab.control.response import Response
    from tcpsbed.lab.reproduce.study import Study

    Found = dict[tuple[int, int], Experiment]

SCENARIO = shipped.find("step")
RTT_MS = (2, 5, 10, 15, 20, 30)
DROPS = (0, 10, 20, 30, 40, 50, 60, 70)
"""Drops in each direction, in percent."""
SHORT = ((2, 10, 15, 30), (0, 30, 60))
"""The same of a short study."""
ASKED = 20.0
"""Overshoot in percent that drops of 30 % cost in the paper."""
BOUNDED_MS = (10, 15)
"""Round trips at which the drops that cost it are looked for."""


@dataclass(frozen=True)
class Setting:
    """A round trip in ms and drops in percent, as overrides of the scenario."""

    rtt_ms: int
    drops: int

    def sets(self) -> list[str]:
        """Half of the round trip and the same loss in each direction."""
        return [f"links.line.delay='{self.rtt_ms / 2} ms'", f"links.line.loss='{self.drops} %'"]


def reproduce(study: Study) -> None:
    """Rows of figure 16, then figures 5 and 16."""
    grid_ms, drops = (RTT_MS, DROPS) if study.full else SHORT
    found = study.each([(rtt, share) for rtt in grid_ms for share in drops], lambda case: _run(study, *case))
    growth(study, found, grid_ms)
    bounds(study, found, drops)
    study.figure("figure5", "Step response: rise time and overshoot (our reading of figure 5)", _response)
    study.figure(
        "figure16",
        "Figure 16: a step through RTT and drops, one controller (Kp 0.2, Ki 0.0909 per ms)",
        lambda figure: _draw(figure, found, grid_ms, drops),
    )


def _run(study: Study, rtt_ms: int, drops: int) -> Experiment:
    from tcpsbed import scenarios
    from tcpsbed.lab.control import experiment

    scenario = scenarios.load(SCENARIO, Setting(rtt_ms, drops).sets())
    [one] = experiment.run(scenario, runs=100 if study.full else 20, phases=True)
    return one


def overshoots(one: Experiment) -> list[float]:
    """Overshoot in percent of each run."""
    return [response.overshoot for response in one.responses]


def rises(one: Experiment) -> list[float]:
    """Rise time in ms of each run that rose."""
    return [response.rise_ms for response in one.responses if not np.isnan(response.rise_ms)]


def growth(study: Study, found: Found, grid_ms: tuple[int, ...]) -> None:
    """What grows with the round trip and with drops: lower ends of intervals of differences over runs."""
    shortest, longest = grid_ms[0], grid_ms[-1]
    told = "; ".join(
        f"RTT {rtt} ms: {interval(overshoots(found[rtt, 30])).mean:.1f} %, {interval(rises(found[rtt, 30])).mean:.1f} ms"
        for rtt in grid_ms
    )
    more = low(apart(overshoots(found[longest, 30]), overshoots(found[shortest, 30])))
    slower = min(low(apart(rises(found[b, 30]), rises(found[a, 30]))) for a, b in pairwise(grid_ms))
    for key, ours in (("figure16-overshoot", more), ("figure16-rise", slower)):
        study.compare(key, ours, f"{study.expected[key].why}; means at 30 % of drops: {told}")
    study.compare("figure16-drops", low(apart(overshoots(found[15, 30]), overshoots(found[15, 0]))))


def bounds(study: Study, found: Found, drops: tuple[int, ...]) -> None:
    """How many drops cost 20 % of overshoot, for the statement that 30 % do, which names no round trip."""
    costs, told = {}, []
    for rtt in BOUNDED_MS:
        means = [interval(overshoots(found[rtt, share])).mean for share in drops]
        bound = crossing(drops, means, ASKED)
        by_drops = ", ".join(f"{share} %: {mean:.1f}" for share, mean in zip(drops, means, strict=True))
        told.append(f"mean overshoot by drops at RTT {rtt} ms: {by_drops}")
        # Where no drops that were tried cost so much, the bound lies beyond them.
        name = f"RTT {rtt} ms" + " (more than)" * (bound is None)
        costs[name] = float(drops[-1]) if bound is None else bound
    study.nearest("figure16-bound", costs, "; ".join(told))


def crossing(at: tuple[int, ...], values: list[float], level: float) -> float | None:
    """Where values first reach a level, on straight lines between them; `None` if they do not."""
    if values[0] >= level:
        return float(at[0])
    for (x0, y0), (x1, y1) in pairwise(zip(at, values, strict=True)):
        if y1 >= level:
            return x0 + (level - y0) / (y1 - y0) * (x1 - x0)
    return None


def _response(figure: Figure) -> None:
    """One response with its rise time and overshoot marked."""
    from tcpsbed import scenarios
    from tcpsbed.lab.control import experiment

    [one] = experiment.run(scenarios.load(SCENARIO, Setting(20, 0).sets()), runs=1)
    [curve], step = one.curves, one.loop.step
    axes = figure.subplots()
    axes.step(curve.t_ms - step.t0_ms, curve.h, where="post")
    _marked(axes, curve.response, step.height)
    axes.set(xlabel="time from the step (ms)", ylabel="h", xlim=(-20, 250), ylim=(0.45, 1.25))


def _marked(axes: Axes, response: Response, height: float) -> None:
    axes.axhline(1 - 0.1 * height, color="0.5", linestyle=":")
    axes.axvline(response.rise_ms, color="0.5", linestyle=":")
    top = 1 + response.overshoot / 100 * height
    axes.axhline(top, color="0.5", linestyle="--")
    axes.annotate(f"rise time {response.rise_ms:.0f} ms", (response.rise_ms + 3, 0.6))
    axes.annotate(f"overshoot {response.overshoot:.1f} %", (120, top + 0.01))


def _draw(figure: Figure, found: Found, grid_ms: tuple[int, ...], drops: tuple[int, ...]) -> None:
    """Curves over time, by drops and by round trip; below them overshoot and rise time over the round trip."""
    (by_drops, by_rtt), (below, beside) = figure.subplots(2, 2)
    figure.set_size_inches(10, 7.5)
    for share in (0, 30, 60):
        _curves(by_drops, found[15, share], f"RTT 15 ms, {share} % drops")
    for rtt in (grid_ms[0], 10, 15, grid_ms[-1]):
        _curves(by_rtt, found[rtt, 30], f"RTT {rtt} ms, 30 % drops")
    for share in drops:
        label = f"{share} % drops"
        below.plot(grid_ms, [interval(overshoots(found[r, share])).mean for r in grid_ms], ".-", label=label)
        beside.plot(grid_ms, [interval(rises(found[r, share])).mean for r in grid_ms], ".-", label=label)
    for axes in (by_drops, by_rtt):
        axes.axhline(1 + ASKED / 200, color="0.4", linestyle="--", linewidth=0.8)
        axes.set(xlabel="time from the step (ms)", ylabel="h", xlim=(-20, 300), ylim=(0.4, 1.5))
        axes.legend(fontsize=7)
    below.axhline(ASKED, color="0.4", linestyle="--", linewidth=0.8)
    below.set(xlabel="RTT (ms)", ylabel="mean overshoot (%)")
    beside.set(xlabel="RTT (ms)", ylabel="mean rise time (ms)")
    below.legend(fontsize=7)


def _curves(axes: Axes, one: Experiment, label: str) -> None:
    """The median of all runs over time, between their extremes."""
    from tcpsbed.lab.control.figure import resampled

    t_ms, table = resampled(one)
    low, middle, high = np.percentile(table, [0, 50, 100], axis=0)
    (line,) = axes.plot(t_ms, middle, drawstyle="steps-post", label=label)
    axes.fill_between(t_ms, low, high, color=line.get_color(), alpha=0.15, linewidth=0, step="post")
