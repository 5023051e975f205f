"""One presentation: a run on real sockets with the console, and its measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpsbed import scenarios
from tcpsbed.analysis import operator
from tcpsbed.errors import WorldError
from tcpsbed.lab.study.conductor import Measured, Present
from tcpsbed.lab.study.plan import Study
from tcpsbed.runs import session


def presenter(study: Study) -> Present:
    """What runs the conditions of a study; the console's folder is in the environment."""

    def present(name: str | None, length_ns: int, folder: Path) -> Measured:
        asked = study.overrides(name, length_ns)
        scenario = scenarios.load(
            study.file, [*asked, *operator.recording(scenarios.load(study.file, asked))]
        )
        outcome = session.execute(scenario, world="real", out=folder, samples=False)
        if outcome.stopped:
            raise KeyboardInterrupt("stopped; all ratings so far are kept, and the same command continues")
        return measured(session.summary_of(folder))

    return present


def measured(summary: dict[str, Any]) -> Measured:
    """The measurements that are stored with ratings, from a run's summary.

    Raises
    ------
    WorldError
        If something failed in the run: nobody is to rate it.
    """
    if summary["errors"]:
        raise WorldError(
            summary["errors"][0],
            allowed="a run without errors; correct the cause, and the same command continues with the same subject",
        )
    delays = {name: flow["delay_ms"] for name, flow in summary["flows"].items()}
    glass = [shown["glass_to_glass_ms"] for shown in summary["media"].values() if shown["kind"] == "picture"]
    medians = [spread["p50"] for spread in glass if spread and spread["p50"] is not None]
    return Measured(
        {name: spread["mean"] for name, spread in delays.items() if spread and spread["mean"] is not None},
        max(medians, default=None),
        len(summary["disturbances"]),
    )
