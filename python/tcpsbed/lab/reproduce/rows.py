"""A row of a study: the expected value of an item, our result, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcpsbed.lab.reproduce.expected import Expected

NOTHING = "no number came out: the runs measured nothing that it is made of"
"""Why a row has no value of ours if there were no numbers to take a mean or a median of."""

UNEXPLAINED = "missed, unexplained"
"""The verdict of a row that is outside its tolerance by an amount for which no reason is known."""

VERDICTS = {
    "reproduced": "outcomes within the tolerance of a published value",
    "refuted": (
        "outside its tolerance, and impossible as stated: contradicted by the paper itself, by arithmetic, or by a "
        "measurement that depends on no choice of ours"
    ),
    "not reproduced": (
        "outside the tolerance of a published value: our model, machine or data differ, or the paper says too little"
    ),
    "disagrees": "outside the tolerance of a derived value, theory, an aim or an own reference, with a reason",
    UNEXPLAINED: "outside its tolerance, without a reason for such a value",
    "no evidence (fitted)": "a parameter was chosen on the value",
    "no evidence (input)": "set in the scenario and read back",
    "agrees": "outcomes within the tolerance of a derived value, theory, an aim or an own reference",
    "no evidence (theory)": "calculated, no testbed ran",
    "no evidence (unknown)": "the paper does not say enough",
    "nothing published": "ours alone",
    "not reproducible here": "a requirement was missing, or skipped",
    "not tried with hardware": "needs hardware that was never available",
}
"""What can be said of a row, best first. Only an outcome beside a published value counts as reproduced."""


@dataclass(frozen=True)
class Row:
    """One line of the table: the expected value of an item, our result, and whether it is within the tolerance."""

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
        """Whether our value is within the tolerance; `None` without a published value, or with a good reason for no
        value.
        """
        if self.ours is None:
            return False if self.lack == NOTHING else None
        return self.expected.holds(self.ours)

    @property
    def told(self) -> str:
        """The run's note on our value with the other numbers; first the name of ours if it is one of them."""
        numbers = ", ".join(f"{name}: {value:.5g}" for name, value in self.beside.items())
        if chosen := next((name for name, value in self.beside.items() if value == self.ours), ""):
            numbers = f"{chosen} (of all: {numbers})"
        return "; ".join(filter(None, (numbers, self.note)))

    @property
    def reason(self) -> str:
        """The reason for a missed or missing value; otherwise the run's note, or the reason for the tolerance."""
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
            return f"no evidence ({e.basis})"
        if self.equals and not e.because:
            return "no evidence (input)"
        return "reproduced" if e.reference == "published" else "agrees"

    def _missed(self) -> str:
        """The verdict of a row that is not within."""
        e = self.expected
        if self.ours is None or not e.explains(self.ours):
            return UNEXPLAINED
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
