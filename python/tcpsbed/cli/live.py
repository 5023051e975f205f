"""A running real session in the terminal: sent and received samples, redrawn a few times a second."""

from __future__ import annotations

import json
from collections import deque
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.records import FIELDS, KINDS

if TYPE_CHECKING:
    import numpy as np
    from rich.live import Live
    from rich.table import Table

SENT, DELIVERED, GAP = (1 + KINDS.index(kind) for kind in ("sent", "delivered", "gap"))

WINDOW_S = 1.0
"""Delays of this last span are shown."""
EVERY_S = 0.2
"""Time between two drawings."""


class Tally:
    """Running counts of every flow and gaps of every node, from rows as they come."""

    def __init__(self, flows: list[str], nodes: list[str]) -> None:
        self.flows, self.nodes = flows, nodes
        self.counts = {kind: [0] * len(flows) for kind in (SENT, DELIVERED)}
        self.gaps = [0] * len(nodes)
        self.recent: list[deque[tuple[float, np.ndarray]]] = [deque() for _ in flows]

    def add(self, rows: bytes, now_s: float) -> None:
        """Counts new rows, seen at this time of the run."""
        import numpy as np

        read = np.frombuffer(rows, np.dtype(FIELDS))
        for kind, counts in self.counts.items():
            found = np.bincount(read["flow"][read["kind"] == kind], minlength=len(counts))
            for flow in range(len(counts)):
                counts[flow] += int(found[flow])
        gaps = np.bincount(read["node"][read["kind"] == GAP], minlength=len(self.gaps))
        for node in range(len(self.gaps)):
            self.gaps[node] += int(gaps[node])
        self._delays(read[read["kind"] == DELIVERED], now_s)

    def _delays(self, delivered: np.ndarray, now_s: float) -> None:
        for flow, seen in enumerate(self.recent):
            values = delivered["value"][delivered["flow"] == flow] / 1e6
            if len(values):
                seen.append((now_s, values))
            while seen and seen[0][0] < now_s - WINDOW_S:
                seen.popleft()

    def delays_ms(self, flow: int) -> tuple[float, float, float] | None:
        """p50, p99 and maximum of the last second, in milliseconds; None if nothing arrived."""
        import numpy as np

        if not self.recent[flow]:
            return None
        values = np.concatenate([values for _, values in self.recent[flow]])
        p50, p99 = np.percentile(values, [50, 99])
        return float(p50), float(p99), float(values.max())


class LiveView:
    """A table in the terminal; call it with new rows and the run time in seconds.

    Parameters
    ----------
    folder : Path
        The run's folder; its `plan.json` names flows and nodes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.drawn_s = -EVERY_S

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The compiled scenario, there by the time that the first rows come."""
        plan: dict[str, Any] = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        return plan

    @cached_property
    def tally(self) -> Tally:
        """The counts so far."""
        return Tally(
            [flow["name"] for flow in self.plan["flows"]], [node["name"] for node in self.plan["nodes"]]
        )

    @cached_property
    def screen(self) -> Live:
        """The place in the terminal."""
        from rich.console import Console
        from rich.live import Live

        return Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def __enter__(self) -> LiveView:
        self.screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.screen.stop()

    def __call__(self, rows: bytes, now_s: float, _split: str) -> None:
        """Counts the rows and redraws the table if it is time to."""
        self.tally.add(rows, now_s)
        if now_s - self.drawn_s >= EVERY_S:
            self.drawn_s = now_s
            with suppress(OSError):  # a terminal that was closed ends no run
                self.screen.update(self.table(now_s), refresh=True)

    def table(self, now_s: float) -> Table:
        """The current table."""
        from rich.table import Table

        gaps = ", ".join(
            f"{node} {n}" for node, n in zip(self.tally.nodes, self.tally.gaps, strict=True) if n
        )
        caption = f"stalled over 1 ms: {gaps}" if gaps else "no node stalled over 1 ms"
        duration_s = self.plan["duration_ns"] / 1e9
        now_s = min(max(now_s, 0.0), duration_s)
        title = f"{self.plan['name']}  {now_s:.1f} s of {duration_s:g} s  (Ctrl-C ends it)"
        table = Table(title=title, caption=caption)
        table.add_column("flow")
        for heading in ("sent", "delivered", "in flight or lost", "p50 ms", "p99 ms", "max ms"):
            table.add_column(heading, justify="right")
        for flow, name in enumerate(self.tally.flows):
            sent, delivered = self.tally.counts[SENT][flow], self.tally.counts[DELIVERED][flow]
            delays = self.tally.delays_ms(flow)
            shown = [f"{value:.3f}" for value in delays] if delays else ["–"] * 3
            table.add_row(name, str(sent), str(delivered), str(sent - delivered), *shown)
        return table
