"""Curves of the dumbbell's figures: each returns a function that draws into a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.lab.reproduce.dumbbell import Seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[["Figure"], None]
Streams = Mapping[str, tuple[float, float, float]]
"""Cross streams by name: from and until when (s), and their rate (kbit/s)."""
LIMIT_MS = 30.0


def over_time(seen: Mapping[str, Seen], until_s: float, flow: str = "haptic") -> Draw:
    """Delay of every sample over time."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, s in seen.items():
            time, delay = s.delay[flow]
            axes.plot(time[time < until_s], delay[time < until_s], label=name, linewidth=1)
        axes.axhline(LIMIT_MS, color="gray", linestyle=":")
        axes.set(xlabel="time (s)", ylabel=f"{flow} delay (ms)")
        axes.legend()

    return draw


def k_and_rate(seen: Seen, until_s: float, streams: Streams | None = None) -> Draw:
    """k, rate of the source and delay, one above the other; above them the cross streams that a scenario sets."""

    def draw(figure: Figure) -> None:
        *above, top, middle, bottom = figure.subplots(4 if streams else 3, 1, sharex=True)
        for axes in above:
            _stack(axes, streams or {}, until_s)
        time, k = seen.merging["haptic"]
        ends = np.append(time, until_s)
        top.step(ends, np.append(k, k[-1]), where="post")
        top.set(ylabel="k", xlim=(0, until_s), yticks=(1, 2, 3, 4))
        at, rate = seen.rates("haptic", 0.05)
        middle.plot(at, rate)
        middle.set(ylabel="rate (kbit/s)")
        time, delay = seen.delay["haptic"]
        bottom.plot(time[time < until_s], delay[time < until_s], linewidth=1)
        bottom.axhline(LIMIT_MS, color="gray", linestyle=":")
        bottom.set(ylabel="delay (ms)", xlabel="time (s)")

    return draw


def _stack(axes: Any, streams: Streams, until_s: float) -> None:
    """The rates of cross streams over time, one on the other."""
    at = np.linspace(0.0, until_s, 901)
    rates = [rate * ((at >= on) & (at < off)) for on, off, rate in streams.values()]
    axes.stackplot(at, rates, labels=list(streams))
    axes.set(ylabel="cross streams\n(kbit/s)")
    axes.legend(fontsize=6, loc="upper left")


def ks(seen: Mapping[str, Seen], until_s: float) -> Draw:
    """K over time, one above the other."""

    def draw(figure: Figure) -> None:
        rows = figure.subplots(len(seen), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, s) in zip(rows, seen.items(), strict=True):
            time, k = s.merging["haptic"]
            axes.step(np.append(time, until_s), np.append(k, k[-1]), where="post")
            axes.set(ylabel="k", title=name, xlim=(0, until_s), yticks=(1, 2, 3, 4))
        rows[-1].set_xlabel("time (s)")

    return draw


def media(seen: Seen, until_s: float) -> Draw:
    """Delay of the frames of sound and picture over time."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for flow in ("audio", "video"):
            time, delay = seen.delay[flow]
            axes.plot(time[time < until_s], delay[time < until_s], ".-", label=flow, linewidth=0.5)
        axes.set(xlabel="time (s)", ylabel="delay of a frame (ms)")
        axes.legend()

    return draw


def over_cbr(seen: Mapping[str, Mapping[float, Seen]]) -> Draw:
    """Rate, largest delay, mean jitter and loss over the rate of constant cross traffic."""

    def draw(figure: Figure) -> None:
        figure.set_size_inches(9, 7)
        quantities: tuple[tuple[str, Callable[[Seen], float]], ...] = (
            ("mean rate (kbit/s)", lambda s: s.rate("haptic", 0.5, float(s.sent["haptic"][0][-1]))),
            ("largest haptic delay (ms)", lambda s: s.peak("haptic")),
            ("largest haptic jitter (ms)", lambda s: s.jitter("haptic")[1]),
            ("haptic samples lost (%)", lambda s: s.loss("haptic")),
        )
        for axes, (label, of) in zip(figure.subplots(2, 2).flat, quantities, strict=True):
            for name, by_rate in seen.items():
                rates = sorted(by_rate)
                if rates:
                    axes.plot(rates, [of(by_rate[r]) for r in rates], ".-", label=name)
            axes.set(xlabel="constant cross traffic (kbit/s)", ylabel=label)
        figure.axes[0].legend(fontsize=7)

    return draw


def media_over_cbr(seen: Mapping[str, Mapping[float, Seen]]) -> Draw:
    """Largest delay and jitter of the frames of sound and picture over the rate of constant cross traffic."""

    def draw(figure: Figure) -> None:
        figure.set_size_inches(9, 7)
        grid = figure.subplots(2, 2)
        for row, flow in zip(grid, ("audio", "video"), strict=True):
            for name, by_rate in seen.items():
                rates = sorted(by_rate)
                row[0].plot(rates, [by_rate[r].peak(flow) for r in rates], ".-", label=name)
                row[1].plot(rates, [by_rate[r].jitter(flow)[1] for r in rates], ".-", label=name)
            row[0].set(xlabel="constant cross traffic (kbit/s)", ylabel=f"largest {flow} delay (ms)")
            row[1].set(xlabel="constant cross traffic (kbit/s)", ylabel=f"largest {flow} jitter (ms)")
        grid[0][0].legend(fontsize=7)

    return draw
