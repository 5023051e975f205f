"""Rows with names: one table of kinds, reasons and places, that of the native module."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tcpsbed import _tcps
from tcpsbed.analysis.records import FIELDS, KINDS, Names

PLAN = {
    "components": [{"name": "operator"}, {"name": "board"}],
    "nodes": [{"name": "n"}],
    "flows": [{"name": "haptic"}],
    "network": {"links": [{"name": "l0"}, {"name": "l1"}]},
    "channels": [{"name": "session"}, {"name": "other"}],
}
WRITTEN = {
    1: "sent", 2: "delivered", 3: "dropped", 4: "enter", 5: "exit", 6: "echo", 7: "echo_forward", 8: "echo_return",
    9: "stage", 10: "queue", 11: "event", 12: "sync", 13: "verified", 14: "gap", 15: "superseded", 16: "transmit",
    17: "receive", 18: "late", 19: "duplicate", 20: "merging", 21: "signal", 22: "renumbered", 23: "echo_superseded",
    24: "suppressed", 33: "played", 34: "overdue", 35: "skipped", 36: "starved", 38: "state", 40: "connection",
    43: "told", 44: "allowed", 45: "died",
}  # fmt: skip
WRITTEN_REASONS = {
    1: "full", 2: "managed", 3: "loss", 4: "outage", 5: "no route", 6: "dead", 7: "malformed", 8: "hook",
    9: "overload", 10: "corrupt", 11: "line", 12: "unverified", 13: "replayed", 14: "unkeyed",
    15: "connection",
}  # fmt: skip
WRITTEN_STEPS = {
    0: "decode", 1: "kinematics", 2: "inverse_kinematics", 3: "predict", 4: "sense", 5: "feedback", 6: "code",
    7: "work", 8: "capture", 9: "show",
}  # fmt: skip
"""Numbers and names in files that were written: neither is ever given again."""


def place(kind: str, point: int, detail: int = 0) -> str:
    rows = np.zeros(1, dtype=np.dtype(FIELDS))
    rows["kind"], rows["point"], rows["detail"] = 1 + KINDS.index(kind), point, detail
    names = Names.of(PLAN)
    return names.places[names.place_codes(rows)[0]]


def numbered(which: int) -> dict[int, str]:
    return {number: name for number, name, _ in _tcps.record_names()[which]}


def test_numbers_and_names_in_files_stay() -> None:
    assert numbered(0).items() >= WRITTEN.items()
    assert numbered(1).items() >= WRITTEN_REASONS.items()
    assert numbered(2).items() >= WRITTEN_STEPS.items()


def test_the_documentation_names_every_kind_and_reason(root: Path) -> None:
    text = (root / "docs" / "summary.md").read_text(encoding="utf-8")
    table = text.partition("| kind | event |")[2].partition("\n\n")[0].partition("\n")[2]
    kinds = [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split(" | ")[0])]
    assert sorted(kinds) == sorted(numbered(0).values())
    reasons = re.search(r"reason \((1 [^)]*)\)", table)
    assert reasons and reasons[1] == ", ".join(f"{number} {name}" for number, name in numbered(1).items())
    explained = re.sub(r"\([^)]*\)", "", text.partition("Reasons: ")[2].partition("\n")[0])
    assert re.findall(r"`([\w ]+)`", explained) == [*numbered(1).values(), "behind forged"], (
        "the last is no row's"
    )


def test_ns3_numbers_reasons_alike(root: Path) -> None:
    text = (root / "ns3" / "src" / "outbox.h").read_text(encoding="utf-8")
    found = {int(number): name for name, number in re.findall(r"k(\w+) = (\d+),", text)}
    assert found == {n: numbered(1)[n].title().replace(" ", "") for n in found} and len(found) == 3


@pytest.mark.parametrize(("reason", "where"), [(r, w) for _, r, w in _tcps.record_names()[1]])
def test_a_drop_is_named_where_it_happened(reason: str, where: str) -> None:
    """A serial line or a board loses as a component does: its number is no link's."""
    number = next(n for n, name, _ in _tcps.record_names()[1] if name == reason)
    assert place("dropped", 1, number) == {"components": "board", "links": "l1", "channels": "other"}[where]
    assert (where == "components") == (reason in {"dead", "malformed", "hook", "overload", "line"})


def test_each_kind_of_row_has_its_place() -> None:
    found = [place(kind, 1) for kind in ("sent", "queue", "stage", "sync", "transmit", "event")]
    assert found == ["operator.exit", "l1", "board", "", "other", ""]
    assert [place(kind, 0) for kind in ("sync", "transmit")] == ["n", "session"]
