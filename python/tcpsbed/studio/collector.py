"""Data of a running run for its page: curves in bins since the start, and the last seconds in full.

The last seconds are analysed by the same code as a finished run, `_tcps.analyse`, over their rows alone.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np

from tcpsbed import _tcps
from tcpsbed.analysis import outages
from tcpsbed.analysis.records import FIELDS, KINDS
from tcpsbed.studio.ledger import Arrivals, Ledger, Moments, Numbers
from tcpsbed.studio.motion import Motion
from tcpsbed.views.sentence import dropped

SENT, DROPPED, QUEUE, EVENT, GAP, MERGING, STATE = (
    1 + KINDS.index(kind) for kind in ("sent", "dropped", "queue", "event", "gap", "merging", "state")
)
REASONS = {number: (name, place) for number, name, place in _tcps.record_names()[1]}
"""Reasons for a drop by their number, with what their place numbers."""
LINK_REASONS = [number for number, _, place in _tcps.record_names()[1] if place == "links"]
"""Reasons for a drop whose place is a link."""
ROW = np.dtype(FIELDS)
STATES = ("normal", "degraded", "hold", "safe stop", "recovering")
"""States of a supervisor by their number in a row."""
BIN_S = 0.1
"""Width of a bin at first; it doubles when there are too many of them."""
MOST_BINS = 3000
WINDOW_S = 2.0
"""Span of the numbers that are about now."""
LATE_S = 1.0
"""A sample that has not come after this is lost, until it comes."""
LOSS_S = 10.0
"""Span over which losses are counted."""
LONGEST_S = 3.0
"""Delay up to which the last seconds reach back far enough to hold all rows of a sample."""
SUMS, LEAST, MOST, OLDEST, MERGED = (
    ("sent", "delivered", "dropped", "delay", "bytes"),
    "least",
    "most",
    "oldest",
    "k",
)
MOST_EVENTS, MOST_CHANGES, LATEST_EVENTS = 10_000, 1_000, 100
"""Events and changes of supervisors that a page is told of in all, and both again with the numbers of the last seconds."""
MOST_SPANS = 400
"""Spans of stalls, and of rows that were not sent; beyond, near ones are joined."""
SPAN_S = 0.001
"""Distance of spans that are one at first; it doubles when there are too many of them."""


class Collector:
    """Numbers of a run, from its rows as they come.

    Parameters
    ----------
    plan : dict
        The compiled scenario.
    moments : Moments, optional
        From when on samples count; absent: from the start.
    """

    def __init__(self, plan: dict[str, Any], moments: Moments | None = None) -> None:
        self.plan, self.text = plan, json.dumps(plan)
        self.ledger, self.motion = Ledger(plan, moments), Motion(plan)
        self.flows, self.links = len(plan["flows"]), len(plan["network"]["links"])
        self.width_s, self.bins = BIN_S, 0
        self.generation = 0
        """How often bins were joined; who has older ones takes all anew."""
        self.steps = 0
        """How often rows have come."""
        self.touched = np.zeros(MOST_BINS, np.int64)
        """The last of these steps that changed each bin."""
        self.curves = {name: np.zeros((MOST_BINS, self.flows)) for name in SUMS}
        self.curves[LEAST] = np.full((MOST_BINS, self.flows), np.inf)
        for name in (MOST, OLDEST, MERGED):
            self.curves[name] = np.full((MOST_BINS, self.flows), -np.inf)
        self.moved = np.full((MOST_BINS, len(self.motion.lines)), np.nan)
        self.newest_ns = np.full(self.flows, -1, np.int64)
        """When the newest sample was made that each sink has; -1 before the first."""
        self.aged_ns = np.zeros(self.flows, np.int64)
        """When it came, or a repetition of it: up to here the ages are known, whatever rows are still to come."""
        self.least_bytes: dict[int, int] = {}
        """The smallest sample of each flow that came."""
        self.merged = np.full(self.flows, -np.inf)
        """Samples that each sender merges into a packet now."""
        self.queued = np.full((MOST_BINS, self.links), np.nan)
        self.recent: deque[tuple[float, np.ndarray[Any, Any]]] = deque()
        self.came: deque[tuple[float, np.ndarray[Any, Any]]] = deque()
        """Samples of each flow that came in the last seconds, the sums of their delays, ms, and the longest of all, s."""
        self.drops: deque[tuple[float, np.ndarray[Any, Any]]] = deque()
        """Packets that each link dropped in the last seconds."""
        self.lost: deque[tuple[float, Counter[tuple[int, str]]]] = deque()
        """Packets that were dropped in the span over which losses are counted, by flow, and place with reason."""
        self.splits: deque[tuple[float, dict[str, Any]]] = deque([(0.0, {})])
        """Where the time of samples went until some moments of the last seconds, by flow."""
        self.events: list[dict[str, Any]] = []
        """Those that took place by their `number`, the states that supervisors entered, and what closed a link by `name`."""
        self.closing = outages.Passing(plan["network"]["links"])
        self.happened, self.changes = 0, 0
        """How many of them took place by their number, and how many are states."""
        self.gaps: list[tuple[float, str, float]] = []
        """The last stalls: when each ended, s, of which loop, and how long it was, ms."""
        self.disturbed: list[tuple[float, float]] = []
        """Spans of the run in which a loop stalled, s."""
        self.apart_s = SPAN_S
        self.unseen: list[tuple[float, float]] = []
        """Spans of which rows were not sent, s."""
        self.stalls: dict[str, list[float]] = {}
        """By loop: how many stalls, and the longest, ms."""
        self.states: dict[str, str] = {}
        """In which state a supervisor is, by its component."""
        self.ticks = Ticks([flow["period_ns"] for flow in plan["flows"]])
        self.now_s, self.rows, self.left_out = 0.0, 0, 0

    def add(self, content: bytes, now_s: float, left_out: int) -> None:
        """Takes new rows, seen at this moment of the run; `left_out` so far were not sent."""
        if left_out > self.left_out:
            self.unseen = _few([*self.unseen, (self.now_s, max(now_s, 0.0))], WINDOW_S)[0]
            self.ticks.forget()
            self.ledger.forget()
            self.splits.clear()  # what went before the gap is no part of the last seconds
            self.newest_ns[:] = -1  # an age over rows that are missing would be too high
        self.now_s, self.left_out, self.steps = max(now_s, 0.0), left_out, self.steps + 1
        self.events += self.closing.due(self.now_s)
        rows = np.frombuffer(content, ROW)
        self.rows += len(rows)
        while self.now_s / self.width_s >= MOST_BINS - 1:
            self._join()
        self.bins = max(self.bins, int(self.now_s / self.width_s))
        arrivals = self.ledger.add(rows)
        for flow in np.unique(arrivals.first["flow"]).tolist():
            size = int(arrivals.first["size"][arrivals.first["flow"] == flow].min())
            self.least_bytes[flow] = min(size, self.least_bytes.get(flow, size))
        delays_s = arrivals.first["value"] / 1e9
        of_flow = (arrivals.first["flow"], np.ones_like(delays_s)), (arrivals.first["flow"], delays_s * 1e3)
        sums = [np.bincount(flow, each, self.flows) for flow, each in of_flow]
        came = np.concatenate([*sums, [delays_s.max(initial=0.0)]])
        dropped = rows["point"][(rows["kind"] == DROPPED) & np.isin(rows["detail"], LINK_REASONS)]
        drops = np.bincount(dropped[dropped < self.links], minlength=self.links)
        self.came.append((self.now_s, came))
        queues: tuple[tuple[deque[Any], Any, float], ...] = (
            (self.recent, rows, self.now_s - self._since_s() + 2 * self._reach_s()),
            (self.came, None, WINDOW_S + LONGEST_S),
            (self.drops, drops, LOSS_S),
            (self.lost, self._drops(rows), LOSS_S + LATE_S),
        )
        for queue, new, kept_s in queues:
            if new is not None:
                queue.append((self.now_s, new))
            while queue[0][0] < self.now_s - kept_s:
                queue.popleft()
        self.touched[np.unique(self._bins(rows))] = self.steps
        self._count(rows, self._bins(rows), arrivals)
        self._age(arrivals.renewing)
        self._look(rows, self._bins(rows))
        self.ticks.add(rows[(rows["kind"] == SENT) & (rows["flow"] < self.flows)])

    def _bins(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return self._of_times(rows["time"])

    def _of_times(self, times_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        bins: np.ndarray[Any, Any] = np.clip((times_ns / 1e9 / self.width_s).astype(int), 0, MOST_BINS - 1)
        return bins

    def _reach_s(self) -> float:
        """How long before the last seconds a sample of theirs can have been made."""
        return min(max((float(came[-1]) for _, came in self.came), default=0.0) + 0.1, LONGEST_S)

    def split(self, told: list[dict[str, Any]], now_s: float) -> None:
        """Takes where the time of samples went until now."""
        self.splits.append((now_s, {flow["flow"]: flow for flow in told}))
        while len(self.splits) > 1 and self.splits[1][0] <= now_s - WINDOW_S:
            self.splits.popleft()

    def _since_s(self) -> float:
        """When the last seconds begin: where the time of samples went is told a block at a time."""
        return self.splits[0][0] if len(self.splits) > 1 else max(self.now_s - WINDOW_S, 0.0)

    def _causes(self, name: str) -> list[dict[str, Any]]:
        """Means by cause over the samples of a flow that came in the last seconds, ms."""
        if len(self.splits) < 2:
            return []
        before, now = (
            at.get(name, {"samples": 0, "parts_ns": {}}) for at in (self.splits[0][1], self.splits[-1][1])
        )
        samples = now["samples"] - before["samples"]
        spent = {
            part: span["sum"] - before["parts_ns"].get(part, {"sum": 0})["sum"]
            for part, span in now["parts_ns"].items()
        }
        return [{"name": part, "ms": ns / samples / 1e6} for part, ns in spent.items() if samples and ns]

    def _count(self, rows: np.ndarray[Any, Any], bins: np.ndarray[Any, Any], arrivals: Arrivals) -> None:
        ours = rows["flow"] < self.flows
        for name, kind in (("sent", SENT), ("dropped", DROPPED)):
            of = ours & (rows["kind"] == kind)
            np.add.at(self.curves[name], (bins[of], rows["flow"][of]), 1)
        came, paid = arrivals.first, arrivals.paid
        at, delays = (self._bins(came), came["flow"]), came["value"] / 1e6
        np.add.at(self.curves["delivered"], at, 1)
        np.add.at(self.curves["delay"], at, delays)
        np.add.at(self.curves["bytes"], (self._bins(paid), paid["flow"]), paid["size"])
        np.minimum.at(self.curves[LEAST], at, delays)
        np.maximum.at(self.curves[MOST], at, delays)
        for row in rows[ours & (rows["kind"] == MERGING)]:
            self.merged[row["flow"]] = row["value"]
        here = int(np.clip(self.now_s / self.width_s, 0, MOST_BINS - 1))
        self.curves[MERGED][here] = np.maximum(self.curves[MERGED][here], self.merged)

    def _age(self, rows: np.ndarray[Any, Any]) -> None:
        """How old what each sink has was at most, ms: just before a sample came, and at the end of each bin until then.

        A loop that stalls writes its rows late, but with the times of the arrivals: so nothing is counted up to now.
        """
        rows = rows[np.argsort(rows["time"], kind="stable")]
        for flow in np.unique(rows["flow"]).tolist():
            of = rows[rows["flow"] == flow]
            made_ns = np.maximum.accumulate([self.newest_ns[flow], *(of["time"] - of["value"])])
            times_ns = np.maximum.accumulate([self.aged_ns[flow], *of["time"]])
            bins = self._of_times(times_ns)
            known = made_ns[:-1] >= 0
            ages = (times_ns[1:] - made_ns[:-1])[known] / 1e6
            np.maximum.at(self.curves[OLDEST], (bins[1:][known], flow), ages)
            for n in np.flatnonzero(known & (bins[1:] > bins[:-1])).tolist():
                self._grow(self.curves[OLDEST], flow, int(made_ns[n]), int(times_ns[n]), int(times_ns[n + 1]))
            self.newest_ns[flow], self.aged_ns[flow] = made_ns[-1], times_ns[-1]

    def _grow(self, ages: Numbers, flow: int, made_ns: int, from_ns: int, until_ns: int) -> None:
        """The age of a sample between two moments, into bins."""
        first, last = self._of_times(np.array([from_ns, until_ns]))
        ends_ns = np.minimum((np.arange(first, last + 1) + 1) * (self.width_s * 1e9), until_ns)
        ages[first : last + 1, flow] = np.maximum(ages[first : last + 1, flow], (ends_ns - made_ns) / 1e6)

    def _oldest(self) -> Numbers:
        """The greatest age in each bin, ms: since the last arrival as it is unless a later one is still to be told."""
        found = self.curves[OLDEST].copy()
        last_ns = min(self.ledger.last_ns, self.plan["duration_ns"])
        for flow in np.flatnonzero((self.newest_ns >= 0) & (self.aged_ns < last_ns)).tolist():
            self._grow(found, flow, int(self.newest_ns[flow]), int(self.aged_ns[flow]), last_ns)
        return found

    def _look(self, rows: np.ndarray[Any, Any], bins: np.ndarray[Any, Any]) -> None:
        queues = (rows["kind"] == QUEUE) & (rows["point"] < self.links)
        at = (bins[queues], rows["point"][queues])
        np.fmax.at(self.queued, at, rows["size"][queues])
        for line, times_ns, found in self.motion.read(rows):
            np.fmax.at(self.moved[:, line], self._of_times(times_ns), found)
        for row in rows[rows["kind"] == EVENT][: MOST_EVENTS - self.happened]:
            self.happened += 1
            self.events.append({"t_s": float(row["time"]) / 1e9, "number": int(row["index"])})
        for row in rows[(rows["kind"] == STATE) & (rows["detail"] < len(STATES))]:
            self._change(float(row["time"]) / 1e9, row)
        gaps = rows[rows["kind"] == GAP]
        for row in gaps:
            stalled, t_s, long_ms = self._node(row["node"]), row["time"] / 1e9, round(row["value"] / 1e6, 3)
            self.gaps = [*self.gaps, (t_s, stalled, long_ms)][-20:]
            self.disturbed.append((round(t_s - long_ms / 1e3, 4), round(t_s, 4)))
            count, longest = self.stalls.get(stalled, (0, 0.0))
            self.stalls[stalled] = [count + 1, max(longest, long_ms)]
        if len(gaps):
            self.disturbed, self.apart_s = _few(self.disturbed, self.apart_s)

    def _change(self, t_s: float, row: np.void) -> None:
        """A supervisor is in another state."""
        component, state = self.plan["components"][row["point"]]["name"], STATES[row["detail"]]
        self.states[component] = state
        if self.changes < MOST_CHANGES:
            self.changes += 1
            age_ms = float(row["value"]) / 1e6
            self.events.append({"t_s": t_s, "component": component, "state": state, "age_ms": age_ms})

    def _node(self, number: int) -> str:
        """Who has this number in a row: the emulator comes after the nodes."""
        nodes = self.plan["nodes"]
        return str(nodes[number]["name"]) if number < len(nodes) else "emulator"

    def _join(self) -> None:
        """Makes one bin of two."""
        half = MOST_BINS // 2
        for name, curve in self.curves.items():
            pairs = curve.reshape(half, 2, self.flows)
            empty = np.inf if name == LEAST else 0.0 if name in SUMS else -np.inf
            join = np.min if name == LEAST else np.sum if name in SUMS else np.max
            curve[:half], curve[half:] = join(pairs, axis=1), empty
        for found in (self.queued, self.moved):
            pairs = found.reshape(half, 2, found.shape[1])
            found[:half], found[half:] = np.fmax(pairs[:, 0], pairs[:, 1]), np.nan
        self.touched[:] = 0
        self.width_s, self.bins, self.generation = 2 * self.width_s, self.bins // 2, self.generation + 1

    def changed_since(self, step: int) -> int:
        """The first bin that rows have changed after this step: those of a simulated run come late, a block at a time."""
        changed = np.flatnonzero(self.touched[: self.bins] > step)
        return int(changed[0]) if len(changed) else self.bins

    def curves_from(self, first: int) -> dict[str, Any]:
        """Bins from this one on that are over; by flow and, for queues, by link. Empty ones have no numbers."""
        here = slice(first, self.bins)
        delivered = self.curves["delivered"][here]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.curves["delay"][here] / delivered
        return {
            "k": "bins",
            "first": first,
            "generation": self.generation,
            "width_s": self.width_s,
            "mean_ms": _numbers(mean),
            "least_ms": _numbers(self.curves[LEAST][here]),
            "most_ms": _numbers(self.curves[MOST][here]),
            "rate_bps": _numbers(self.curves["bytes"][here] * 8 / self.width_s),
            "sent": _numbers(self.curves["sent"][here]),
            "delivered": _numbers(delivered),
            "dropped": _numbers(self.curves["dropped"][here]),
            "oldest_ms": _numbers(self._oldest()[here]),
            "merged": _numbers(self.curves[MERGED][here]),
            "queued_bytes": _numbers(self.queued[here]),
            "moved": _numbers(self.moved[here]),
        }

    def lately(self) -> dict[str, Any]:
        """The last seconds: delay of each flow and where it went, loss, rate; and each flow since the warm-up."""
        parts = [rows for _, rows in self.recent]
        window = np.concatenate(parts) if parts else np.empty(0, ROW)
        window = window[np.argsort(window["time"], kind="stable")]
        # Samples count that were made in the last seconds, and as long before as the slowest of them took.
        from_ns = max(round((self._since_s() - self._reach_s()) * 1e9), 0)
        found = _analysed(window.tobytes(), self.text, from_ns)
        span_s = max(self.now_s - self._since_s(), 1e-3)
        came = [count for at_s, count in self.came if at_s > self._since_s()]
        counts, sums = np.sum(came, axis=0)[:-1].reshape(2, -1) if came else np.zeros((2, self.flows))
        losses, totals = self._losses(), self.ledger.totals(round(self.now_s * 1e9))
        flows = [
            _flow(flow)
            | {
                "rate_hz": float(counts[number] / span_s),
                "arrived_ms": float(sums[number] / counts[number]) if counts[number] else 0.0,
                "least_bytes": self.least_bytes.get(number),
                "loss": losses[number],
                "causes": self._causes(flow["name"]),
                **self._where(number),
                "total": totals[number].told(),
            }
            for number, flow in enumerate(found["flows"])
        ]
        return {
            "k": "now",
            "t_s": round(self.now_s, 3),
            "span_s": round(span_s, 3),
            "partial": bool(self.unseen) and self.unseen[-1][1] > self._since_s(),
            "flows": flows,
            "rows": self.rows,
            "left_out": self.left_out,
            "events": self.events[-LATEST_EVENTS:],
            "gaps": self.gaps,
            "clocks": found["clocks"],
            "states": self.states,
            **self.health(),
        }

    def health(self) -> dict[str, Any]:
        """What says whether the numbers can be trusted: stalls, late sources, drops by link."""
        return {
            "disturbed": self.disturbed,
            "stalls": self.stalls,
            "ticks": self.ticks.told([flow["name"] for flow in self.plan["flows"]]),
            "drops": np.sum([counts for _, counts in self.drops], axis=0).tolist() if self.drops else [],
            "unseen": [*self._warmup(), *self.unseen],
        }

    def _warmup(self) -> list[tuple[float, float]]:
        """The span that no table counts, if there is one."""
        warmup_s = self.ledger.moments.warmup_ns / 1e9
        return [(0.0, warmup_s)] if warmup_s else []

    def _where(self, flow: int) -> dict[str, Any]:
        """By whom what a flow lost lately was dropped, in words, and whether this machine is too slow for it."""
        drops: Counter[str] = Counter()
        for _, counts in self.lost:
            drops.update({drop: count for (of, drop), count in counts.items() if of == flow})
        stages = {
            self.plan["components"][step["component"]]["name"]: [one["kind"] for one in step.get("steps", ())]
            for step in self.plan["flows"][flow]["path"]
        }
        said, slow = dropped(drops, lambda place: stages.get(place, []), machine=bool(self.stalls))
        return {"dropped": f": {said}" if said else "", "slow": slow}

    def _drops(self, rows: np.ndarray[Any, Any]) -> Counter[tuple[int, str]]:
        """Dropped packets by flow, and place with reason."""
        gone = rows[(rows["kind"] == DROPPED) & (rows["flow"] < self.flows)][["flow", "point", "detail"]]
        found: Counter[tuple[int, str]] = Counter()
        for row, count in zip(*np.unique(gone, return_counts=True), strict=True):
            found[self._drop(row)] += int(count)
        return found

    def _drop(self, row: np.void) -> tuple[int, str]:
        """The flow of a dropped packet, and its place with the reason."""
        reason, where = REASONS.get(int(row["detail"]), ("unknown", ""))
        places = self.plan["network"]["links"] if where == "links" else self.plan.get(where) or ()
        place = places[row["point"]]["name"] if row["point"] < len(places) else "sender"
        return int(row["flow"]), f"{place} {reason}"

    def _losses(self) -> list[float | None]:
        """Share of each flow's samples of the last seconds that have not come in time; None where none was due.

        Where rows of these seconds were not shown, nobody knows.
        """
        if self.unseen and self.unseen[-1][1] > self.now_s - LOSS_S - LATE_S:
            return [None] * self.flows
        until_s = self.now_s - LATE_S
        return self.ledger.losses(round((until_s - LOSS_S) * 1e9), round(until_s * 1e9))


class Ticks:
    """How late sources make their samples, and how many they leave out: samples are numbered by ticks.

    Parameters
    ----------
    periods_ns : list of int
        By flow; 0 where samples come at no fixed rate.
    """

    def __init__(self, periods_ns: list[int]) -> None:
        self.periods_ns = periods_ns
        self.first_ns: dict[int, int] = {}
        """When tick 0 was or would have been, by the punctual samples so far."""
        self.last: dict[int, int] = {}
        self.skipped: dict[int, int] = {}
        self.late_ns: dict[int, deque[int]] = {}

    def add(self, rows: np.ndarray[Any, Any]) -> None:
        """Takes new rows of samples that were made."""
        for flow in np.unique(rows["flow"]).tolist():
            if not (period_ns := self.periods_ns[flow]):
                continue
            of = rows[rows["flow"] == flow]
            index = np.sort(of["index"].astype(np.int64))
            zero = of["time"] - of["index"].astype(np.int64) * period_ns
            self.first_ns[flow] = min(self.first_ns.get(flow, int(zero.min())), int(zero.min()))
            late = self.late_ns.setdefault(flow, deque(maxlen=max(int(WINDOW_S * 1e9 / period_ns), 20)))
            late.extend((zero - self.first_ns[flow]).tolist())
            jumps = np.diff(index, prepend=self.last.get(flow, index[0] - 1)) - 1
            # A longer silence is a flow that was stopped, or a stall, which has a row of its own.
            short = jumps[(jumps > 0) & (jumps * period_ns < LATE_S * 1e9)]
            self.skipped[flow] = self.skipped.get(flow, 0) + int(short.sum())
            self.last[flow] = max(int(index[-1]), self.last.get(flow, 0))

    def forget(self) -> None:
        """Rows are missing: the next samples follow on nothing."""
        self.last.clear()

    def told(self, names: list[str]) -> list[dict[str, Any]]:
        """Of each flow: lateness in the last seconds (p99, ms), and ticks that were skipped so far."""
        return [
            {
                "flow": names[flow],
                "late_p99_ms": round(float(np.percentile(late, 99)) / 1e6, 3),
                "skipped": self.skipped[flow],
            }
            for flow, late in sorted(self.late_ns.items())
        ]


def _few(spans: list[tuple[float, float]], apart_s: float) -> tuple[list[tuple[float, float]], float]:
    """At most `MOST_SPANS` spans, and how near those are that are one: twice as much until there are so few."""
    found = _joined(spans, apart_s)
    while len(found) > MOST_SPANS:
        apart_s *= 2
        found = _joined(found, apart_s)
    return found, apart_s


def _joined(spans: list[tuple[float, float]], apart_s: float) -> list[tuple[float, float]]:
    """Spans in order, those that overlap or are this near as one."""
    found: list[tuple[float, float]] = []
    for from_s, to_s in sorted(spans):
        if found and from_s - found[-1][1] <= apart_s:
            found[-1] = (found[-1][0], max(found[-1][1], to_s))
        else:
            found.append((from_s, to_s))
    return found


def _flow(found: dict[str, Any]) -> dict[str, Any]:
    delay = found["delay_ns"] or {}
    segments = found["path"]["segments"] if found["path"] else []
    return {
        "name": found["name"],
        "n": delay.get("n", 0),
        **{
            f"{key}_ms": delay[key] / 1e6
            for key in ("mean", "p50", "p99", "max")
            if delay.get(key) is not None
        },
        "parts": [
            {"what": part["what"], "name": part["name"], "ms": part["mean_ns"] / 1e6}
            | ({"least_ms": part["latency_ns"]["min"] / 1e6} if part["latency_ns"] else {})
            for part in segments
            if part["mean_ns"] is not None
        ],
    }


def _analysed(rows: bytes, plan: str, from_ns: int) -> dict[str, Any]:
    with tempfile.TemporaryFile(
        dir=_memory()
    ) as file:  # without a name: a process that is killed leaves nothing
        file.write(rows)
        file.flush()
        found: dict[str, Any] = json.loads(_tcps.analyse(f"/dev/fd/{file.fileno()}", plan, from_ns, 0))
    return found


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) and Path("/dev/shm").is_dir() else None


def _numbers(curve: np.ndarray[Any, Any]) -> list[list[float | None]]:
    """Rows by flow, rounded as far as a picture shows; None where there is no number."""
    return [[round(float(v), 4) if np.isfinite(v) else None for v in column] for column in curve.T]
