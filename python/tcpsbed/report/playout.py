"""What was shown, and when: the table of flows that play out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.report.markup import Column, words
from tcpsbed.report.numbers import count, ms, statistic

REMARK = (
    "Age: from the making of a sample to the moment at which it was shown. Late: came after its moment. Left out: dropped "
    "to keep a queue short, or for a newer one. Nothing new: ticks at which the last sample stayed."
)


def table(summary: Mapping[str, Any]) -> tuple[list[Column], list[list[str]]]:
    """Columns, and a row for each flow with playout."""
    columns = [words("playout"), Column("shown"), Column("late"), Column("left out"), Column("nothing new")]
    columns += [Column(f"age {name}", "ms") for name in ("mean", "p99", "max")]
    columns += [Column("interval p99", "ms")]
    return columns, [
        [
            name,
            *(count(shown.get(key)) for key in ("played", "late", "skipped", "starved")),
            *(ms(statistic(shown.get("age_ms"), key)) for key in ("mean", "p99", "max")),
            ms(statistic(shown.get("interval_ms"), "p99")),
        ]
        for name, flow in summary.get("flows", {}).items()
        if (shown := flow.get("playout"))
    ]
