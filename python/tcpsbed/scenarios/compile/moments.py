"""Checks that every start is before its end, and before the end of the run."""

from __future__ import annotations

from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key


def check(scenario: Scenario) -> None:
    """Raises the error of the first span that is empty or begins after the end.

    A run that was made shorter on the command line may leave things out; only their order is looked at then.
    """
    if scenario.warmup_ns >= scenario.duration_ns:
        found = f"found {_shown(scenario.warmup_ns)}, but the run ends at {_shown(scenario.duration_ns)}"
        raise scenario.error(("warmup",), found, "a span shorter than the duration")
    for section, entries in (("flows", scenario.flows), ("traffic", scenario.traffic)):
        for name, entry in entries.items():
            _span(scenario, (section, name), entry.start_ns, entry.stop_ns)
    for number, echo in enumerate(scenario.measure.echo):
        _span(scenario, ("measure", "echo", number), echo.start_ns, None)
    for number, event in enumerate(scenario.events):
        _before_the_end(scenario, ("events", number, "at"), event.at_ns)


def _span(scenario: Scenario, key: Key, start_ns: int, stop_ns: int | None) -> None:
    if stop_ns is not None and stop_ns <= start_ns:
        found = f"found {_shown(stop_ns)}, which is not after the start at {_shown(start_ns)}"
        raise scenario.error((*key, "stop"), found, f"a time after {_shown(start_ns)}, or an earlier start")
    _before_the_end(scenario, (*key, "start"), start_ns)


def _before_the_end(scenario: Scenario, key: Key, at_ns: int) -> None:
    if at_ns >= scenario.duration_ns and not scenario.shortened:
        found = f"found {_shown(at_ns)}, but the run ends at {_shown(scenario.duration_ns)}"
        raise scenario.error(
            key, found, f"a time before {_shown(scenario.duration_ns)}, or a longer duration"
        )


def _shown(span_ns: int) -> str:
    return f"{span_ns / 1e9:g} s"
