"""One presentation: a run on real sockets with the console, and what was measured of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpsbed import config, session
from tcpsbed.analysis import operator
from tcpsbed.study.conductor import Measured, Present
from tcpsbed.study.plan import Study


def presenter(study: Study) -> Present:
    """What runs the conditions of a study; the console's folder is in the environment."""

    def present(name: str | None, length_ns: int, folder: Path) -> Measured:
        asked = study.overrides(name, length_ns)
        scenario = config.load(study.file, [*asked, *operator.recording(config.load(study.file, asked))])
        outcome = session.execute(scenario, world="real", out=folder, samples=False)
        if outcome.stopped:
            raise KeyboardInterrupt("stopped; all ratings so far are kept, and the same command goes on")
        return measured(session.summary_of(folder))

    return present


def measured(summary: dict[str, Any]) -> Measured:
    """What ratings are told with, out of a run's summary."""
    delays = {name: flow["delay_ms"] for name, flow in summary["flows"].items()}
    glass = [shown["glass_to_glass_ms"] for shown in summary["media"].values() if shown["kind"] == "picture"]
    medians = [spread["p50"] for spread in glass if spread and spread["p50"] is not None]
    return Measured(
        {name: spread["mean"] for name, spread in delays.items() if spread and spread["mean"] is not None},
        max(medians, default=None),
        len(summary["disturbances"]),
    )
