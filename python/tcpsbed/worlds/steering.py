"""Events during a run, in addition to those of its scenario."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError

Progress = Callable[[float], bool]
"""Called with the share of a run that is done, 0 to 1; a false answer stops it."""
Live = Callable[[bytes, float, str], None]
"""Called with new rows, the run time in seconds and, in virtual time, where the time of samples went so far (JSON)."""
_AT_NODES = ("flow", "component", "clock")
"""Kinds of events that nodes take; what lies between the nodes takes the others."""


class Steering:
    """Requests to a running run, from another thread or from a callback.

    Parameters
    ----------
    scenario
        What runs.
    pace
        In virtual time: simulated seconds a second at most; `None`: as fast as the machine can.

    Examples
    --------
    >>> from tcpsbed.runs import session
    >>> steering = Steering(scenario)  # doctest: +SKIP
    >>> session.execute(scenario, world="real", out=None, steering=steering)  # doctest: +SKIP
    >>> steering.event(link="l1", delay="50 ms")  # in another thread, meanwhile # doctest: +SKIP
    """

    def __init__(self, scenario: scenarios.Scenario, *, pace: float | None = None) -> None:
        self.scenario, self.pace = scenario, pace
        self.asked: deque[dict[str, Any]] = deque()
        """Events as a plan has them, which the run has yet to take; their moment is then when it took them."""
        self.by = scenarios.asked_by(scenario)
        """Who asked for events, by their names."""
        self._asked = threading.Event()
        self.refusal = ""
        """Why what lies between the nodes takes no events; empty where it does. The run says it when it begins."""

    def event(self, **event: Any) -> list[dict[str, Any]]:
        """Triggers an event: at once, or `at` a time of the run.

        Parameters
        ----------
        event
            The keys of a table `[[events]]` of a scenario.

        Returns
        -------
        list of dict
            The event as a plan has it: one for each thing that it concerns.

        Raises
        ------
        ConfigError
            If the scenario could not have this event, or not any more.
        """
        found = scenarios.compile_events(self.scenario.with_event(event))
        if not found:
            allowed = f"a time before the run's end, {self.scenario.duration_ns / 1e9:g} s"
            raise ConfigError("found a time after the run", key="at", allowed=allowed)
        if self.refusal and any(one["action"]["kind"] not in _AT_NODES for one in found):
            raise ConfigError(self.refusal, key="event", allowed="an event of a flow, a component or a clock")
        if by := event.get("by"):
            self.by |= {one["name"]: by for one in found}
        self.asked.extend(found)
        self._asked.set()
        return found

    def wait(self, seconds: float) -> None:
        """Waits this long, or until something is asked for."""
        self._asked.wait(seconds)
        self._asked.clear()

    def take(self, now_ns: int) -> list[dict[str, Any]]:
        """Hands over what was asked for; what is late takes place now."""
        taken = []
        while self.asked:
            self.asked[0]["at_ns"] = max(self.asked[0]["at_ns"], now_ns)
            taken.append(self.asked.popleft())
        return taken
