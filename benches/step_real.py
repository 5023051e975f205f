"""The step experiment on the machine's clock through the emulator, against virtual time.

RTT 10, 20 and 50 ms, gains at which the loop overshoots, the ticks of both sides drawn uniformly within a period in every
run, the same draws in both worlds. The targets are for the means over all runs; how many of them were disturbed is told, and
what the others give.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from measure import ROOT, Result, Row

if TYPE_CHECKING:
    from tcpsbed.lab.control.experiment import Experiment

TITLE = "Step experiment: real time through the emulator against virtual time"
RISE_MS, OVERSHOOT = 1.5, 3.0
"""How far the means of the two worlds may be apart."""
SETTINGS = {10: 0.146, 20: 0.0758, 50: 0.0312}
"""RTT in ms, and Ki per ms: gains at which the loop overshoots, so that its overshoot can be compared."""


def experiment(rtt_ms: int, world: str, runs: int) -> Experiment:
    """The runs of one round trip in one world."""
    from tcpsbed import scenarios
    from tcpsbed.lab.control import experiment

    sets = [
        f'links.line.delay="{rtt_ms / 2} ms"',
        f"hooks.pi.params.ki_per_ms={SETTINGS[rtt_ms]}",
        f'duration="{600 + 12 * rtt_ms} ms"',
    ]
    scenario = scenarios.load(ROOT / "scenarios" / "step.toml", sets)
    [found] = experiment.run(scenario, runs=runs, world=world, phases=True)
    return found


def means(responses: list[Any]) -> tuple[float, float]:
    """Mean rise time in ms and mean overshoot in percent."""
    return fmean(r.rise_ms for r in responses), fmean(r.overshoot for r in responses)


def compared(rtt_ms: int, runs: int) -> tuple[list[Row], dict[str, Any]]:
    """One round trip in both worlds."""
    virtual, real = (experiment(rtt_ms, world, runs) for world in ("virtual", "real"))
    calm = real.undisturbed
    disturbed = f"{runs - len(calm)} of {runs} runs disturbed"
    rows: list[Row] = []
    raw: dict[str, Any] = {"disturbed": runs - len(calm), "runs": runs}
    for number, (what, unit, bar) in enumerate((("rise time", "ms", RISE_MS), ("overshoot", "%", OVERSHOOT))):
        simulated, measured = means(virtual.responses)[number], means(real.responses)[number]
        quiet = f"{means(calm)[number]:.2f} {unit} without them" if calm else "none without"
        apart = abs(measured - simulated)
        rows.append(
            Row(
                f"{what}, RTT {rtt_ms} ms ({disturbed})",
                f"{measured:.2f} {unit} ({quiet})",
                f"virtual {simulated:.2f} {unit}",
                f"{apart:.2f} {unit} apart",
                f"{bar} {unit}",
                apart <= bar,
            )
        )
        raw[what] = {
            "virtual": simulated,
            "real": measured,
            "real_undisturbed": means(calm)[number] if calm else None,
        }
    return rows, raw


def measure(quick: bool) -> Result:
    """All round trips."""
    rows, raw = [], {}
    for rtt_ms in SETTINGS:
        more, raw[str(rtt_ms)] = compared(rtt_ms, 5 if quick else 50)
        rows += more
    return Result("step_real", TITLE, rows, raw)
