"""What a telehaptic endpoint costs in virtual time: a packet through a pair, and a decision of each rate controller."""

from __future__ import annotations

import re

from measure import CannotMeasureError, Result, Row, run_program

TITLE = "Telehaptic endpoints, one core, virtual time"
PAIR = re.compile(r"pair: ([\d.]+) ns a packet \(median of \d+, least ([\d.]+)\)")
DECISION = re.compile(r"telehaptic ([\w-]+): a decision takes ([-\d.]+) ns")
OTHER = re.compile(
    r"telehaptic ([\w-]+): (an answer to a probe takes ([\d.]+) ns|([\d.]+) ns a packet that is told of)"
)
PACKETS_A_SECOND, DECISION_NS = 1e6, 100.0


def measure(quick: bool) -> Result:
    """Runs the benchmark of the crate: medians of 401 rounds shorter than a time slice, some seconds, quick or not."""
    command = ["cargo", "bench", "--quiet", "-p", "tcps-transport", "--bench", "telehaptic"]
    told = run_program(command).out
    pair = PAIR.search(told)
    if pair is None:
        raise CannotMeasureError(f"cargo bench said nothing of a pair: {told[-200:]}")
    median, least = float(pair[1]), float(pair[2])
    rate = 1e9 / median
    rows = [
        Row(
            "a packet through sender and receiver",
            f"{median:.0f} ns (least {least:.0f})",
            "",
            f"{rate / 1e6:.1f} million a second",
            "1 million a second",
            rate >= PACKETS_A_SECOND,
        )
    ]
    decisions = {found[1]: float(found[2]) for found in DECISION.finditer(told)}
    for name, ns in decisions.items():
        rows.append(
            Row(f"decision, {name}", f"{ns:.1f} ns", "", "", f"{DECISION_NS:.0f} ns", ns < DECISION_NS)
        )
    for found in OTHER.finditer(told):
        what = "answer to a probe: read and decide" if found[3] else "feedback on a packet: read and decide"
        rows.append(Row(f"{what}, {found[1]}", f"{float(found[3] or found[4]):.1f} ns", "", "", ""))
    return Result("endpoint", TITLE, rows, {"pair_ns": median, "least_ns": least, "decisions_ns": decisions})
