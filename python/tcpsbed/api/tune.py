"""Gains for a network from Python, with stability margins and the rise-time index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import shipped
from tcpsbed.api.run import Progress, told
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control import systems
from tcpsbed.lab.control.setting import loop_of
from tcpsbed.lab.control.theory import LoopModel, Margins
from tcpsbed.lab.control.tuning import Goal, Least, Tuned

if TYPE_CHECKING:
    from tcpsbed.lab.control.identified import Linearised
    from tcpsbed.lab.control.loop import Loop
    from tcpsbed.lab.control.systems import System

SCENARIOS = (".toml", ".xlsx")
"""Ends of names of scenarios."""
MOST_PERIOD_MS = 1000
"""The shipped step falls so long before its run ends."""
LATE = 2
"""A response that settles after more than so many rise times is said to."""
MOST_RTT_NS = 10_000_000_000
"""Longest round trip. A run lasts many round trips and thousands of runs are made, so a longer one would take too long."""


@dataclass(frozen=True)
class Gains:
    """Gains for a network; `print` shows them with what they are good for.

    Attributes
    ----------
    best
        The gains: `kp`, `ki_per_ms`, with the mean rise time `rise_ms`, settling time `settling_ms`, `overshoot` and
        `undershoot` (% of the step) measured with them, the limits that faster gains exceed (`stopped_by`), the ends of the
        searched range at which they are (`at_end`), the rise-time `index`, and the `error` that is left in the end (%), with
        whether it is `lasting`. `settled` is whether 95 % of the runs settle in the `simulated_ms` after the step; if not,
        the limits are known to be kept only until then. The deepest fall before h first crosses the target, without loss, is
        `dip` (%) at `dip_ms`; if it exceeds the limit of undershoot, `without_dip` has the best gains whose dip does not, or
        None.
    steps
        The best gains for each step that was tried.
    loop, margins
        The loop with these gains, and its gain margin (a factor) and delay margin (ms) without loss, by theory.
    delay_of_drops_ms
        The delay that the losses act as, by theory.
    undershoot
        The limit of undershoot in percent of the step, above which a dip is told.
    linearised
        The linear model in place of a plant that is code.
    """

    best: Tuned
    steps: tuple[Tuned, ...]
    loop: LoopModel
    margins: Margins
    delay_of_drops_ms: float
    undershoot: float
    linearised: Linearised | None = None

    @property
    def figures(self) -> dict[str, Any]:
        """All numbers, as `tcpsbed tune --json` prints them."""
        from tcpsbed.lab.control.table import plain

        found: dict[str, Any] = plain(
            asdict(self.best)
            | {
                "growth": self.best.growth,
                "lasting": self.best.lasting,
                "rise_time_index": self.best.index,
                "margins": asdict(self.margins),
                "delay_of_drops_ms": self.delay_of_drops_ms,
                "steps": [asdict(one) | {"growth": one.growth, "lasting": one.lasting} for one in self.steps],
            }
        )
        return found

    def draw(self, file: Path | str) -> Path:
        """Draws the Nyquist curve into a file, such as `loop.svg`; needs matplotlib.

        Raises
        ------
        ConfigError, DataError
            If the file may not be overwritten, or matplotlib is not installed.
        """
        from tcpsbed.lab.control import figure

        loop, gain = self.loop, self.margins.gain
        gains = (
            f"Kp {loop.kp:g}, Ki {loop.ki_per_ms:g} per ms" if loop.controller is None else "own controller"
        )
        return figure.nyquist(
            loop, f"{gains}, delay {loop.delay_ms:g} ms, gain margin {gain:.2f}", Path(file)
        )

    @property
    def _ends_errors(self) -> bool:
        """Whether no error stays for ever in this loop: an integral ends it, or a plant that integrates."""
        from tcpsbed.lab.control.theory import Open

        return self.best.ki_per_ms > 0 or Open(self.loop).integrates

    def __str__(self) -> str:
        found, spare = self.best, self.margins
        compared = self.steps if len(self.steps) > 1 else ()
        lines = [
            f"c = {one.c:<8g} rise time {one.rise_ms:.1f} ms, h higher by {one.growth:.2f} % for each ms of RTT"
            + f", not settled, an error of {abs(one.error):.1f} % in the end" * (not one.settled)
            for one in compared
        ]
        lines += [f"step         c = {found.c:g}"] if compared else []
        lines += [
            f"{'gains     ' if found.factor is None else 'controller'}   {_written(found)}",
            f"measured     rise time {found.rise_ms:.1f} ms, {_settling(found)}, overshoot {found.overshoot:.1f} %, "
            f"undershoot {found.undershoot:.1f} %; overshoot plus {found.per_ms:.2f} points for each ms of RTT",
            f"theory       {spare} without loss; these losses act as {self.delay_of_drops_ms:.2f} ms of delay",
            f"index        rise-time index {found.index:.2f}: log10(1 ms / rise time)",
        ]
        if found.stopped_by:
            lines.append(
                f"stopped by   the limit of {' and '.join(found.stopped_by)}: faster gains exceed it"
            )
        if found.at_end:
            ends = " and ".join(_end(found, one) for one in found.at_end)
            option = "--gain" if found.factor is None else "--factor"
            lines.append(
                f"stopped by   the end of the searched range: {ends}; better gains may lie beyond it (tcpsbed step {option})"
            )
        if found.settling_ms > LATE * found.rise_ms:
            lines.append(
                f"settles late {found.settling_ms / found.rise_ms:.1f} times the rise time: look at the response "
                "(tcpsbed step)"
            )
        if found.dip > self.undershoot:
            lines += [
                f"dips         by {found.dip:.1f} % of the step at {found.dip_ms:.1f} ms, before h first crosses 1: "
                "no undershoot by definition",
                f"without dip  {_other(found.without_dip, self.undershoot)}",
            ]
        if found.lasting and not self._ends_errors:
            lines.append(
                f"NOT settled  an error of {abs(found.error):.1f} % of the step stays, as with all gains that keep the "
                "limits: has the controller an integral?"
            )
        elif not found.settled:
            lines.append(
                f"NOT settled  within the {found.simulated_ms:g} ms that are simulated: the limits are kept until then, "
                "and may be exceeded later (tcpsbed step --duration)"
            )
        lines += [str(self.linearised)] if self.linearised is not None else []
        return "\n".join(lines)


def _end(found: Tuned, which: str) -> str:
    """An end of the searched range, in words."""
    end, gain = which.split()
    name, unit = {"kp": ("Kp", ""), "ki_per_ms": ("Ki", " per ms"), "factor": ("a factor", "")}[gain]
    return f"{name} {'up to' if end == 'most' else 'from'} {getattr(found, gain):.4g}{unit}"


def _other(found: Tuned | None, undershoot: float) -> str:
    """The gains whose dip keeps the limit, in words."""
    if found is None:
        return f"none of the gains that were tried keep the limits with a dip up to {undershoot:g} %"
    return f"{_written(found)}: rise time {found.rise_ms:.1f} ms, {_settling(found)}, overshoot {found.overshoot:.1f} %"


def _written(found: Tuned) -> str:
    """Gains as they are written, or what a controller is multiplied by."""
    if found.factor is not None:
        return f"multiply it by {found.factor:.4g} (--factor {found.factor:.4g} of tcpsbed step and map)"
    return f"params = {{ kp = {found.kp:.4g}, ki_per_ms = {found.ki_per_ms:.4g} }}"


def _settling(found: Tuned) -> str:
    """The settling time in words."""
    return "not settled" if math.isnan(found.settling_ms) else f"settling time {found.settling_ms:.1f} ms"


def tune(
    rtt: str,
    *,
    loss: str = "0",
    bursts: float = 1.0,
    period: str = "1 ms",
    c: str | float | Sequence[float] = 2.0,
    plant: System | None = None,
    controller: System | None = None,
    disturbance: str | None = None,
    goal: Goal = "rise",
    overshoot: float = 5.0,
    undershoot: float = 5.0,
    margin: str | None = None,
    runs: int = 200,
    seed: int = 1,
    progress: Progress = False,
) -> Gains | None:
    """Finds gains of the step experiment's controller for a network.

    Parameters
    ----------
    rtt : str
        Round trip, such as `10 ms`.
    loss : str
        Loss each way, such as `30%`.
    bursts : float
        Mean length of a loss burst, in packets.
    period : str
        Time between commands.
    c : float, sequence of float or str
        The step falls to 1/c; of several values the best is chosen.
    plant : object, optional
        A plant as of `tcpsbed.step`; or a scenario or the path of its file, whose plant it is. Absent: the static one.
    controller : object, optional
        A linear controller as of `tcpsbed.step`, of which the gain is tuned: `best.factor`.
    disturbance : str, optional
        As of `tcpsbed.step`.
    goal : str
        `rise`: the shortest mean rise time. `sensitivity`: the steepest growth of the overshoot with the round trip.
    overshoot, undershoot : float
        What 95 % of the runs keep, in percent of the step.
    margin : str, optional
        The least margin of the loop by theory, without loss: of the gain, a factor such as `3`, of the delay, a time such as
        `5 ms`, or both: `3,5 ms`.
    runs : int
        Runs of each pair of gains.
    seed : int
        Of every random number.
    progress : bool or callable
        As of `tcpsbed.run`.

    Returns
    -------
    Gains or None
        The best gains; none if no gains that are stable by theory keep the limits.

    Raises
    ------
    ConfigError
        If a value cannot be.

    Examples
    --------
    >>> import tcpsbed
    >>> found = tcpsbed.tune("10 ms")  # doctest: +SKIP
    >>> found.best.kp, found.margins.delay_ms  # doctest: +SKIP
    """
    from tcpsbed.lab.control import loci, theory, tuning, values
    from tcpsbed.lab.control.batch import bursty

    share = values.share(loss, "--loss")
    rtt_ms = values.duration_ns(rtt, "--rtt", MOST_RTT_NS) / 1e6
    period_ms = values.positive_ns(period, "--period") / 1e6
    loop, linear = _loop(plant, controller, disturbance, period_ms)
    network = tuning.Network(
        rtt_ms,
        period_ms,
        bursty(share, bursts),
        plant=loop.step.plant,
        controller=loop.law,
        disturbance=loop.step.disturbance,
    )
    steps, limits, least = _steps(c), values.limits(math.inf, overshoot, undershoot), _least(margin)
    every: list[Tuned | None] = []
    with told(progress, "tuning") as tell:
        for number, one in enumerate(steps):
            part = lambda done, n=number: tell((n + done) / len(steps))  # noqa: E731
            every.append(
                tuning.tune(
                    network, goal=goal, limits=limits, least=least, c=one, runs=runs, seed=seed, progress=part
                )
            )
    tuned = tuple(one for one in every if one is not None)
    found = tuning.best(tuned, goal)
    if found is None:
        return None
    divisor = replace(loop.step, c=found.c).divisor
    model = network.loop(found, divisor)
    drops_ms = theory.delay_of_drops_ms(share, period_ms)
    return Gains(found, tuned, model, loci.margins(model), drops_ms, undershoot, linear)


def _loop(
    plant: System | None, controller: System | None, disturbance: str | None, period_ms: float
) -> tuple[Loop, Linearised | None]:
    """The loop to tune, with a linear plant: that of a scenario, or the shipped one with this plant and controller."""
    from tcpsbed.lab.control import identified
    from tcpsbed.runs.given import given

    base: Any = shipped.find("step")
    given_one = isinstance(plant, Path) or hasattr(plant, "document") or str(plant).endswith(SCENARIOS)
    if given_one:
        base, plant = plant, None
    with given(base) as asked:
        first = asked.scenario if given_one else systems.paced(asked.scenario, round(period_ms * 1e6))
        scenario = systems.applied(first, plant, controller, disturbance)
        if not given_one and period_ms >= MOST_PERIOD_MS:
            allowed = (
                f'less than {MOST_PERIOD_MS} ms, such as "1 ms", or a scenario as --plant that lasts longer'
            )
            raise ConfigError(
                f"found {period_ms:g} ms, too long for the shipped step", key="--period", allowed=allowed
            )
        return identified.with_linear(loop_of(scenario, None, "--plant"), period_ms)


def _least(margin: str | None) -> Least:
    """The least margins that are asked for."""
    from tcpsbed.lab.control import values

    if margin is None:
        return Least(1.0, 0.0)
    gains: list[float] = []
    delays_ms: list[float] = []
    allowed = 'a gain margin of at least 1, such as "3", a delay margin, such as "5 ms", or both: "3,5 ms"'
    wrong = ConfigError(f'found "{margin}"', key="--margin", allowed=allowed)
    for part in values.several(margin, "--margin", "3,5 ms"):
        try:
            gains.append(values.number(part))
        except ValueError:
            if not part[:1].isdigit():
                raise wrong from None
            delays_ms.append(values.positive_ns(part, "--margin", MOST_RTT_NS) / 1e6)
    if (len(gains), len(delays_ms)) not in ((1, 0), (0, 1), (1, 1)) or not all(
        1 <= g < math.inf for g in gains
    ):
        raise wrong
    return Least(*(gains or [1.0]), *(delays_ms or [0.0]))


def _steps(c: str | float | Sequence[float]) -> list[float]:
    """Steps to be tried."""
    from tcpsbed.lab.control import tuning, values

    given = values.texts(c)
    text = given if isinstance(given, str) else ",".join(str(one) for one in given)
    try:
        parts = values.parts(text)
        steps = [values.number(part) for part in parts]
    except ValueError:
        steps = []
    if not steps or not all(1.01 <= step <= tuning.MOST_C for step in steps):
        allowed = f"numbers from 1.01 to {tuning.MOST_C:g}, separated by commas, such as 1.5,2,4"
        beyond = next((step for step in steps if not 1.01 <= step <= tuning.MOST_C), None)
        which = "" if beyond is None else f", with {beyond:g}"
        raise ConfigError(f'found "{text}"{which}', key="--c", allowed=allowed)
    values.once(parts, steps, "--c")
    return steps
