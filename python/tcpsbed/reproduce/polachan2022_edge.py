"""Polachan et al. 2022: a gripper over a lossy last mile without and with prediction at the edge, and the step experiment.

Figure 15: the gripper is toggled every 100 ms, the last mile loses half of the packets, ss-ei holds at 1 kHz. Figure 16:
overshoot and rise time over round trip and drops. The gripper with ss-ei also runs on the machine's clock, in full sweeps.
[PROTOCOLS 6.2] [PROTOCOLS 6.3]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.analysis import Run
    from tcpsbed.analysis.signals import Signal
    from tcpsbed.control.batch import Cell
    from tcpsbed.reproduce.study import Study

TOGGLE_MS = 100.0
HOLD_MS = 1.0
REAL_S = 182
"""Length of the run on the machine's clock: at 1800 toggles 91.7 % are told from 90 % by 2.6 standard errors."""
SHARES = 5
"""Delays of n periods whose shares are compared with 2^-n: n = 1 to 5."""
GAINS = {2: 0.568, 5: 0.276, 10: 0.146, 20: 0.0758}
"""Ki per ms by round trip in ms for which 30 % of drops cost 20 % of overshoot, with Kp = 0.2 [PROTOCOLS 6.2]."""
GRID_RTT_MS = (2, 5, 10, 15, 20, 25, 30)
GRID_DROPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


@dataclass(frozen=True)
class Toggles:
    """What became of the commands.

    Attributes
    ----------
    given_ms, obeyed_ms : numpy.ndarray
        Shape (n,): when each was given, and when the gripper obeyed; not a number if it did not.
    copies : numpy.ndarray
        Shape (n,): which of the copies that left ss-ei was the first to come, from 1 on; 0 if it did not obey.
    t_ms, closed : numpy.ndarray
        Shape (m,): the gripper over time.
    """

    given_ms: NDArray[np.float64]
    obeyed_ms: NDArray[np.float64]
    copies: NDArray[np.int64]
    t_ms: NDArray[np.float64]
    closed: NDArray[np.float64]

    @property
    def lost(self) -> float:
        """Share of the toggles that did not take place before the next command, in percent."""
        return 100 * float(np.isnan(self.obeyed_ms).mean())

    @property
    def came(self) -> NDArray[np.int64]:
        """For each toggle that took place, how many copies, one a period of the hold, it took, from 1 on."""
        return self.copies[self.copies > 0]

    @property
    def off_ms(self) -> NDArray[np.float64]:
        """How far the time between two toggles is from 100 ms."""
        whole: NDArray[np.float64] = np.abs(np.diff(self.obeyed_ms) - TOGGLE_MS)
        return whole[~np.isnan(whole)]

    @property
    def late_ms(self) -> NDArray[np.float64]:
        """What of that is not due to copies that were lost: loops and the emulator were late."""
        whole: NDArray[np.float64] = np.abs(np.diff(self.obeyed_ms - HOLD_MS * self.copies) - TOGGLE_MS)
        return whole[~np.isnan(whole)]


def reproduce(study: Study) -> None:
    """The gripper in its three places, then the step experiment."""
    seconds = 300 if study.full else 180
    cases = {
        "without": ("polachan-gripper", []),
        "with": ("polachan-gripper-hold", []),
        "behind": ("polachan-gripper-hold", ['components.ss-ei="h4"']),
    }
    length = [f'duration="{seconds} s"']
    found = study.each(cases, lambda name: study.run(cases[name][0], [*length, *cases[name][1]], toggles))
    gripper(study, found)
    if study.full:
        length = [f'duration="{REAL_S} s"']
        found["real"] = study.run("polachan-gripper-hold", length, toggles, world="real")
        clock(study, found["real"])
    statement(study)
    study.cannot(
        "figure5",
        "what the figure shows is not known here beyond its subject; figure5.png draws the step response with the"
        " published definitions of rise time and overshoot",
    )
    figures(study, found)


def toggles(run: Run) -> Toggles:
    """Commands as they leave ms-com, and the gripper as ss-com drives it."""
    from tcpsbed.analysis import signals

    given, left, got = (
        signals.read(run.folder, point, "kinematic")
        for point in ("ms-com.entry", "ss-ei.exit", "ss-com.exit")
    )
    t_ms, closed = got.t_ns / 1e6, got.values[:, 0]
    changes = np.flatnonzero(np.diff(closed, prepend=0.0) != 0)
    commands = given.t_ns[1:] / 1e6  # the first one leaves it as it is
    wanted = given.values[1:, 0]
    obeyed, copies = np.full(len(commands), np.nan), np.zeros(len(commands), dtype=np.int64)
    for n, at in enumerate(commands):
        inside = changes[(t_ms[changes] >= at) & (t_ms[changes] < at + TOGGLE_MS)]
        right = inside[closed[inside] == wanted[n]]
        if len(right):
            obeyed[n] = t_ms[right[0]]
            copies[n] = int(got.numbers[right[0]]) - _first(left, at, wanted[n]) + 1
    return Toggles(commands[:-1], obeyed[:-1], copies[:-1], t_ms, closed)


def _first(left: Signal, after_ms: float, wanted: float) -> int:
    """Number of the first copy of a command that left ss-ei."""
    start = int(np.searchsorted(left.t_ns, after_ms * 1e6))
    return int(left.numbers[start + int(np.argmax(left.values[start:, 0] == wanted))])


def gripper(study: Study, found: dict[str, Toggles]) -> None:
    """The rows of figure 15."""
    held = found["with"]
    study.compare(
        "lost-without",
        found["without"].lost,
        "half of the commands are lost, and of the others one that repeats the last to come toggles nothing",
    )
    study.compare("lost-with", held.lost)
    study.compare("lost-behind", found["behind"].lost, "behind the last mile there is nothing left to hold")
    _delays(study, held, "")
    study.compare("interval-p90", float(np.percentile(held.off_ms, 90)))


def clock(study: Study, held: Toggles) -> None:
    """The rows of figure 15 on the machine's clock."""
    study.compare("lost-real", held.lost)
    _delays(study, held, "-real")
    off, late = (float(np.percentile(ms, 90)) for ms in (held.off_ms, held.late_ms))
    study.compare("interval-p90-real", off - late, f"the bar; {off:.2f} ms, where lateness was {late:.2f} ms")


def _delays(study: Study, held: Toggles, where: str) -> None:
    for n in range(1, SHARES + 1):
        study.compare(f"delay-{n}{where}", 100 * float((held.came == n).mean()))
    study.compare(f"delay-mean{where}", float(held.came.mean()))


def statement(study: Study) -> None:
    """Drops up to 30 % keep the overshoot within 20 %: the rows of figure 16."""
    runs = 20_000 if study.full else 4_000
    at = _batch(runs, [_cell(rtt, GAINS[rtt], 0.3) for rtt in GAINS])
    beyond = _batch(runs, [_cell(rtt, GAINS[rtt], 0.4) for rtt in GAINS])
    for rtt, here, more in zip(GAINS, at, beyond, strict=True):
        study.compare(f"overshoot-{rtt}", here[0])
        study.compare(f"beyond-{rtt}", more[0])


def _cell(rtt_ms: float, ki_per_ms: float, drops: float) -> Cell:
    from tcpsbed.control.batch import Cell

    loss = {"kind": "random", "p": drops}
    return Cell(1.0, rtt_ms / 2, rtt_ms / 2, 0.2, ki_per_ms, loss=loss)


def _batch(runs: int, cells: list[Cell]) -> list[tuple[float, float]]:
    """Mean overshoot in percent and mean rise time in ms of each cell."""
    from tcpsbed.control.batch import Bench

    found = Bench(runs=runs, answers="commands").run(cells)
    return [(one["overshoot"]["mean"], one["rise_ms"]["mean"]) for one in found]


def figures(study: Study, found: dict[str, Toggles]) -> None:
    """Figures 5, 15 and 16."""
    if study.out is None:
        return
    study.figure("figure5", "Step response: rise time and overshoot (our reading of figure 5)", _response)
    study.figure(
        "figure15",
        "Figure 15: a gripper over a last mile that loses half of the packets",
        lambda figure: _curves(figure, found),
    )
    cells = [_cell(rtt, GAINS[10], drops) for rtt in GRID_RTT_MS for drops in GRID_DROPS]
    flat = _batch(2_000 if study.full else 200, cells)
    grid = np.array(flat).reshape(len(GRID_RTT_MS), len(GRID_DROPS), 2)
    study.figure(
        "figure16",
        f"Figure 16: overshoot and rise time, Kp = 0.2, Ki = {GAINS[10]} per ms",
        lambda figure: _grid(figure, grid),
    )


def _response(figure: Figure) -> None:
    """One response with its rise time and overshoot marked."""
    from tcpsbed import config
    from tcpsbed.control import experiment
    from tcpsbed.reproduce.expected import TREE

    sets = [f"hooks.pi.params.ki_per_ms={GAINS[10]}"]
    [one] = experiment.run(config.load(TREE / "scenarios" / "step.toml", sets), runs=1)
    [curve], step = one.curves, one.loop.step
    axes = figure.subplots()
    axes.step(curve.t_ms - step.t0_ms, curve.h, where="post")
    axes.axhline(1 - 0.1 * step.height, color="0.5", linestyle=":")
    axes.axvline(curve.response.rise_ms, color="0.5", linestyle=":")
    axes.axhline(1 + curve.response.overshoot / 100 * step.height, color="0.5", linestyle="--")
    axes.annotate(f"rise time {curve.response.rise_ms:.0f} ms", (curve.response.rise_ms, 0.6))
    axes.annotate(
        f"overshoot {curve.response.overshoot:.1f} %",
        (60, 1.01 + curve.response.overshoot / 100 * step.height),
    )
    axes.set(xlabel="time from the step (ms)", ylabel="h", xlim=(-20, 150), ylim=(0.45, 1.15))


def _curves(figure: Figure, found: dict[str, Toggles]) -> None:
    """Curves over the first two seconds: commanded, without, with, and with on the machine's clock where that was run."""
    held = found["with"]
    wanted = np.arange(len(held.given_ms)) % 2 == 0
    shown = [
        ("commanded", held.given_ms, wanted),
        ("without ss-ei", found["without"].t_ms, found["without"].closed),
        ("with ss-ei", held.t_ms, held.closed),
    ]
    if "real" in found:
        shown.append(("with, real time", found["real"].t_ms, found["real"].closed))
    rows = figure.subplots(len(shown), 1, sharex=True)
    for axes, (name, t_ms, closed) in zip(rows, shown, strict=True):
        part = t_ms <= 2000
        axes.step(t_ms[part], closed[part], where="post")
        axes.set(ylabel=name, yticks=[0, 1], yticklabels=["open", "closed"])
    rows[-1].set(xlabel="time (ms)")


def _grid(figure: Figure, grid: NDArray[np.float64]) -> None:
    """Overshoot and rise time, a line for each share of drops."""
    for axes, number, name in zip(
        figure.subplots(1, 2), (0, 1), ("overshoot (%)", "rise time (ms)"), strict=True
    ):
        for column, drops in enumerate(GRID_DROPS):
            axes.plot(GRID_RTT_MS, grid[:, column, number], marker=".", label=f"{100 * drops:.0f} % drops")
        axes.set(xlabel="RTT (ms)", ylabel=name)
        if number == 0:
            axes.axhline(20, color="0.5", linestyle="--", linewidth=0.8)
            axes.set_ylim(0, 150)
            axes.legend(fontsize=7)
