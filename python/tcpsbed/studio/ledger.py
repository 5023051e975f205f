"""The fate of every sample of a run that goes on, judged as the analysis of a finished run judges it.

What a periodic stage (a supervisor, an edge predictor) gives without a new sample is a repetition: it has an age, but it
is no delivery and has no delay.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpsbed import _tcps
from tcpsbed.scenarios import units

Numbers = np.ndarray[Any, Any]
FIRST, RENEWING, PAID, COUNTED = (1 << bit for bit in range(4))
"""What the native module says of a row that is an arrival."""
GRACE_NS = 1_000_000_000


@dataclass(frozen=True)
class Moments:
    """From when on samples count, and how long before the end they need not have arrived, ns."""

    warmup_ns: int = 0
    grace_ns: int = GRACE_NS

    @staticmethod
    def of(scenario: str) -> Moments:
        """Those of a scenario's text, as a run's folder has it."""
        found = tomllib.loads(scenario)
        grace = found.get("measure", {}).get("grace")
        return Moments(
            units.duration_ns(found["warmup"]) if "warmup" in found else 0,
            units.duration_ns(grace) if grace is not None else GRACE_NS,
        )


@dataclass
class Totals:
    """What became of a flow's samples since the warm-up."""

    sent: int = 0
    delivered: int = 0
    lost: int = 0
    loss: float | None = None
    mean_ms: float | None = None

    def told(self) -> dict[str, Any]:
        """For a page."""
        return vars(self)


@dataclass(frozen=True)
class Arrivals:
    """Rows of samples that reached the sink: `first` of their number with a delay, `renewing` all that bring data."""

    first: Numbers
    renewing: Numbers
    paid: Numbers
    """Those whose bytes count."""
    counted: Numbers
    """Of the first: whether they were sent after the warm-up."""
    charged: Numbers
    """Those whose bytes count since the warm-up."""


class Ledger:
    """Follows the samples of all flows.

    Parameters
    ----------
    plan : dict
        The compiled scenario.
    moments : Moments
        When samples count.
    """

    def __init__(self, plan: dict[str, Any], moments: Moments | None = None) -> None:
        self.moments = moments or Moments()
        self._native = _tcps.Ledger(json.dumps(plan), self.moments.warmup_ns, self.moments.grace_ns)

    @property
    def last_ns(self) -> int:
        """The time of the newest row; that of a hop is when its packet came to a link."""
        return self._native.last_ns

    def add(self, rows: Numbers) -> Arrivals:
        """Takes new rows, in any order."""
        sorts = np.frombuffer(self._native.add(rows.tobytes()), np.uint8)
        first, renewing, paid, counted = (sorts & bit != 0 for bit in (FIRST, RENEWING, PAID, COUNTED))
        return Arrivals(rows[first], rows[renewing], rows[paid], counted[first], rows[paid & counted])

    def totals(self, now_ns: int) -> list[Totals]:
        """By flow, as they would be if the run ended now."""
        return [
            Totals(sent, delivered, lost, loss, None if delay_ns is None else delay_ns / 1e6)
            for sent, delivered, lost, loss, delay_ns in self._native.totals(now_ns)
        ]

    def counts(self) -> list[tuple[int, int]]:
        """By flow: samples sent and delivered since the warm-up."""
        return self._native.counts()

    def losses(self, from_ns: int, to_ns: int) -> list[float | None]:
        """Share of each flow's samples of this span that have not arrived; `None` where none was sent."""
        return self._native.losses(from_ns, to_ns)

    def forget(self) -> None:
        """Rows are missing: of samples that are in flight nobody knows what became of them."""
        self._native.forget()
