"""A row of a study: what was expected of an item, what came out, and what can be said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcpsbed.reproduce.expected import Expected

NOTHING = "no number came out: the runs measured nothing that it is made of"
"""Why a row has no value of ours where a mean or a median had nothing to be of."""

VERDICTS = {
    "reproduced": "outcomes within a published value",
    "refuted": "not within, and cannot be as stated: by the work's own figures, or whatever we choose",
    "not reproduced": "not within a published value: our model, machine or data differ, or the work says too little",
    "disagrees": "not within a derived value, theory, an aim or a simulation of our own, with the reason",
    "false, unexplained": "not within, and no reason is known for such a value",
    "fitted": "a parameter was chosen on the value",
    "input": "read back from the scenario",
    "agrees": "outcomes within a derived value, theory, an aim or a simulation of our own",
    "theory": "calculated, no testbed ran",
    "unknown": "the work does not say enough",
    "nothing published": "ours alone",
    "not reproducible here": "something that it needs was missing, or left out",
    "not tried with hardware": "needs hardware that was never there",
}
"""What can be said of a row, best first. Only an outcome beside a published value counts as reproduced."""


@dataclass(frozen=True)
class Row:
    """One line of the table: what was expected of an item, what came out, and whether that is near enough."""

    key: str
    expected: Expected
    ours: float | None
    lack: str = ""
    """Why there is no value of ours."""
    note: str = ""
    """What the run says of ours."""
    beside: Mapping[str, float] = field(default_factory=dict)
    """Other numbers of the run, by name: those among which ours was chosen, or that belong to it."""
    equals: str = ""
    """The key of a scenario of its study whose value ours is, in the same unit; empty: none is known."""

    @property
    def item(self) -> str:
        """What is compared."""
        return self.expected.item

    @property
    def within(self) -> bool | None:
        """Whether ours is near enough; `None` where nothing is published, or there is none for a good reason."""
        if self.ours is None:
            return False if self.lack == NOTHING else None
        return self.expected.holds(self.ours)

    @property
    def told(self) -> str:
        """What the run says of ours, with the other numbers; first the name of ours if it is one of them."""
        numbers = ", ".join(f"{name}: {value:.5g}" for name, value in self.beside.items())
        if chosen := next((name for name, value in self.beside.items() if value == self.ours), ""):
            numbers = f"{chosen} (of all: {numbers})"
        return "; ".join(filter(None, (numbers, self.note)))

    @property
    def reason(self) -> str:
        """Why ours is not within, or there is none; of others what the run says, or why the tolerance is this one."""
        if self.ours is None:
            return self.lack
        missed = self.within is False
        return self.expected.missed(self.ours, self.told) if missed else self.told or self.expected.why

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        e = self.expected
        if e.hardware:
            return "not tried with hardware"
        if self.within is False:
            return self._missed()
        if self.within is None:
            return "not reproducible here" if self.ours is None else "nothing published"
        if e.basis != "outcome":
            return e.basis
        if self.equals and not e.because:
            return "input"
        return "reproduced" if e.reference == "published" else "agrees"

    def _missed(self) -> str:
        """The verdict of a row that is not within."""
        e = self.expected
        if self.ours is None or not e.explains(self.ours):
            return "false, unexplained"
        if e.refuted:
            return "refuted"
        return "not reproduced" if e.reference == "published" else "disagrees"

    def to_json(self) -> dict[str, object]:
        """The row as `tcpsbed reproduce --json` prints it."""
        e = self.expected
        return {
            "item": e.item,
            "key": self.key,
            "published": e.published,
            "compare": e.compare,
            "reference": e.reference,
            "basis": e.basis,
            "parameter": e.parameter,
            "set": e.given,
            "ours": self.ours,
            "tolerance": e.tolerance,
            "tolerance_is": e.source,
            "fails": e.fails,
            "within": self.within,
            "verdict": self.verdict,
            "needs": list(e.needs),
            "equals": self.equals,
            "beside": dict(self.beside),
            "note": self.note,
            "reason": self.reason,
        }
