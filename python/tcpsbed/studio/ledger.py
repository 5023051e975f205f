"""The fate of every sample of a run that goes on, judged as the analysis of a finished run judges it.

A flow has one leg, or one more behind each stage with a period of its own (a supervisor, an edge predictor): such a
stage takes samples of one numbering and gives samples of another. What it gives without a new sample is a repetition: it
has an age, but it is no delivery and has no delay. The rules are those of `tcps-analysis` (`leg.rs`, `window.rs`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpsbed.analysis.records import HELD, KINDS
from tcpsbed.scenarios import units

Numbers = np.ndarray[Any, Any]
SENT, DELIVERED, ENTER, EXIT, SUPERSEDED, SUPPRESSED, RENUMBERED, HOP = (
    1 + KINDS.index(kind)
    for kind in ("sent", "delivered", "enter", "exit", "superseded", "suppressed", "renumbered", "hop")
)
IS_SENT, IS_DELIVERED, IS_GIVEN_UP, IS_COUNTED, IS_REPEATED, IS_USED, IS_MADE, IS_UNDATED = (
    1 << bit for bit in range(8)
)
"""What is known of a sample; the same marks as in `window.rs`."""
SPAN_NS, FEWEST, MOST = 32_000_000_000, 1024, 1 << 17
"""Time and samples that a window covers."""
PIECE = 4
"""Rows are taken a fourth of a window at a time, so that none of them pushes another out before it has come."""
CLOCKS_NS = 100_000_000
"""How far the clocks of nodes may differ beside what the plan says."""
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

    @staticmethod
    def none(rows: Numbers) -> Arrivals:
        """Nothing came."""
        return Arrivals(rows[:0], rows[:0], rows[:0], np.zeros(0, bool), rows[:0])

    @staticmethod
    def joined(found: list[Arrivals]) -> Arrivals:
        """All of these, in this order."""
        names = ("first", "renewing", "paid", "counted", "charged")
        return Arrivals(*(np.concatenate([getattr(one, name) for one in found]) for name in names))


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
        self.flows = [_Flow(plan, flow, self.moments) for flow in plan["flows"]]
        self._kinds = np.zeros(256, bool)
        self._kinds[[SENT, DELIVERED, ENTER, EXIT, SUPERSEDED, SUPPRESSED, RENUMBERED]] = True
        resampled = np.array([len(flow.legs) > 1 for flow in self.flows] + [False])
        self._resampled = resampled
        self.last_ns = 0
        """The time of the newest row; that of a hop is when its packet came to a link."""

    def add(self, rows: Numbers) -> Arrivals:
        """Takes new rows, in any order within some tens of milliseconds."""
        dated = rows["time"][rows["kind"] != HOP]
        self.last_ns = max(self.last_ns, int(dated.max())) if len(dated) else self.last_ns
        ours = rows[self._kinds[rows["kind"]] & (rows["flow"] < len(self.flows))]
        passes = (ours["kind"] == ENTER) | (ours["kind"] == EXIT)
        ours = ours[~passes | self._resampled[ours["flow"]]]
        if not len(ours):
            return Arrivals.none(rows)
        ours = ours[np.argsort(ours["flow"], kind="stable")]
        numbers, begins = np.unique(ours["flow"], return_index=True)
        found = [
            self.flows[number].add(part)
            for number, part in zip(numbers.tolist(), np.split(ours, begins[1:]), strict=True)
        ]
        return Arrivals.joined(found)

    def totals(self, now_ns: int) -> list[Totals]:
        """By flow, as they would be if the run ended now."""
        until_ns = min(now_ns, self.last_ns) - self.moments.grace_ns
        return [flow.totals(until_ns) for flow in self.flows]

    def losses(self, from_ns: int, to_ns: int) -> list[float | None]:
        """Share of each flow's samples of this span that have not arrived; `None` where none was sent."""
        return [flow.loss(from_ns, to_ns) for flow in self.flows]

    def forget(self) -> None:
        """Rows are missing: of samples that are in flight nobody knows what became of them."""
        for flow in self.flows:
            for leg in flow.legs:
                leg.marks[leg.missing()] = 0


class _Flow:
    def __init__(self, plan: dict[str, Any], flow: dict[str, Any], moments: Moments) -> None:
        self.moments = moments
        visits = [stop for stop in flow["path"] if stop["component"] < HELD // 2]
        parts = _parts(visits) if len(visits) > 1 else []
        periods = [flow["period_ns"], *(period for stop in visits[:-1] if (period := _period(stop)))]
        apart_ns = CLOCKS_NS + _clocks_apart_ns(plan, visits)
        sizes = [_size(period, moments.grace_ns, plan["duration_ns"]) for period in periods]
        self.legs = [
            _Leg(part, size, moments.warmup_ns, apart_ns) for part, size in zip(parts, sizes, strict=False)
        ]
        spans_ns = (leg.size * period or SPAN_NS for leg, period in zip(self.legs, periods, strict=False))
        self.piece_ns = max(min([SPAN_NS, *spans_ns]) // PIECE, 1)
        """Time of rows that are taken at once."""
        self.delivered, self.dated, self.delay_ns = 0, 0, 0.0

    def add(self, rows: Numbers) -> Arrivals:
        """However many rows come at once, and in whatever order within a piece."""
        if not self.legs:
            return Arrivals.none(rows)
        piece = np.maximum.accumulate(rows["time"] // self.piece_ns)
        return Arrivals.joined(
            [self._add(part) for part in np.split(rows, np.flatnonzero(np.diff(piece)) + 1)]
        )

    def _add(self, rows: Numbers) -> Arrivals:
        kind = rows["kind"]
        given_up = rows[(kind == SUPERSEDED) | (kind == SUPPRESSED)]
        passed = rows[(kind == ENTER) | (kind == EXIT)]
        renumbered = rows[kind == RENUMBERED]
        last = len(self.legs) - 1
        for number, leg in enumerate(self.legs):
            if number:
                self._renumber(self.legs[number - 1], leg, renumbered[renumbered["point"] == leg.owner])
                leg.start(passed[passed["point"] == leg.points[0]])
            else:
                sent = rows[kind == SENT]
                leg.start(sent)
                if last and leg.points[0] == leg.points[-1]:
                    leg.arrive(sent, np.zeros(len(sent), np.int64))
            if len(given_up):
                leg.give_up(given_up[self._leg_of(given_up["point"].astype(np.int64) * 2) == number])
            if number < last and leg.points[0] != leg.points[-1]:
                ends = passed[passed["point"] == leg.points[-1]]
                leg.arrive(ends, ends["value"])
        came = rows[kind == DELIVERED]
        first, repeated, undated, counted = self.legs[-1].arrive(came, came["value"])
        self.delivered += int(counted[first | undated].sum())
        self.dated += int(counted[first].sum())
        self.delay_ns += float(came["value"][first & counted].sum())
        charged = ((first | undated) & counted) | (repeated & (came["time"] >= self.moments.warmup_ns))
        return Arrivals(
            came[first],
            came[first | repeated],
            came[first | repeated | undated],
            counted[first],
            came[charged],
        )

    def _leg_of(self, points: Numbers) -> Numbers:
        """Number of the leg that an entry is on; the first where it is on none."""
        found = np.zeros(len(points), int)
        for number, leg in enumerate(self.legs):
            found[np.isin(points, leg.points)] = number
        return found

    def _renumber(self, before: _Leg, leg: _Leg, rows: Numbers) -> None:
        """A periodic stage gave samples of its own numbers."""
        if not len(rows):
            return
        new = rows["detail"] != 0
        known, marks, sent_ns = before.use(rows["value"].astype(np.uint32), rows["time"], new)
        repeats = ~new | (known & (marks & IS_REPEATED != 0))
        leg.repeat(rows[repeats])
        made = ~repeats
        leg.make(rows[made], known[made], marks[made], sent_ns[made])

    def totals(self, until_ns: int) -> Totals:
        if not self.legs:
            return Totals()
        judged = [leg.counts_until(until_ns) for leg in self.legs]
        shares = [lost / all_ if all_ else 0.0 for all_, lost in judged]
        loss = shares[0] if len(shares) == 1 else 1 - float(np.prod([1 - share for share in shares]))
        return Totals(
            self.legs[0].sent,
            self.delivered,
            sum(lost for _, lost in judged),
            loss,
            self.delay_ns / self.dated / 1e6 if self.dated else None,
        )

    def loss(self, from_ns: int, to_ns: int) -> float | None:
        kept, sent = 1.0, False
        for leg in self.legs:
            all_, lost = leg.counts_between(from_ns, to_ns)
            sent |= all_ > 0
            kept *= 1 - lost / max(all_, 1)
        return 1 - kept if sent else None


class _Leg:
    """A ring of the last samples of a leg."""

    def __init__(self, points: list[int], size: int, warmup_ns: int, clocks_ns: int) -> None:
        self.points, self.size, self.warmup_ns, self.clocks_ns = points, size, warmup_ns, clocks_ns
        self.owner = points[0] // 2
        self.head, self.done = 0, IS_DELIVERED
        self.marks, self.sent_ns = np.zeros(size, np.uint8), np.zeros(size, np.int64)
        self.sent = self.judged = self.lost = 0

    def missing(self) -> Numbers:
        """By slot: sent with something new, and neither given up nor arrived (or used, where its leg ends)."""
        missing: Numbers = (self.marks & (IS_SENT | IS_GIVEN_UP | IS_REPEATED | self.done)) == IS_SENT
        return missing

    def _grow(self, top: int) -> None:
        if top < self.head:
            return
        at = np.arange(max(self.head, top - self.size + 1), top + 1) & (self.size - 1)
        marks = self.marks[at]
        judged = (marks & (IS_SENT | IS_COUNTED)) == IS_SENT | IS_COUNTED
        self.judged += int(judged.sum())
        self.lost += int((judged & self.missing()[at]).sum())
        self.marks[at] = 0
        self.head = top + 1

    def _reached(self, index: Numbers) -> Numbers:
        reached: Numbers = index < self.head + self.size // 2
        return reached

    def _slots(self, index: Numbers, time_ns: Numbers) -> tuple[Numbers, Numbers]:
        """Which of the samples are in the window, and their slots."""
        self._grow(int(index.max()))
        within = index >= self.head - self.size
        at = index[within] & (self.size - 1)
        new = (self.marks[at] == 0) & (time_ns[within] >= self.warmup_ns)
        self.marks[at[new]] = IS_COUNTED
        return within, at

    def start(self, rows: Numbers) -> None:
        if not len(rows):
            return
        _, once = np.unique(rows["index"], return_index=True)
        rows = rows[once]
        within, at = self._slots(rows["index"].astype(np.int64), rows["time"])
        time_ns, marks = rows["time"][within], self.marks[at]
        made = marks & IS_MADE != 0
        starts = (marks & IS_SENT == 0) | made
        fresh = starts & ~made
        self.sent_ns[at[fresh]] = time_ns[fresh]
        self.marks[at[starts]] = (marks[starts] | IS_SENT) & ~np.uint8(IS_MADE)
        self.sent += int((marks[starts] & IS_COUNTED != 0).sum())

    def arrive(self, rows: Numbers, age_ns: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """By row: the first of its number with a delay, a repetition, one that cannot be so old; whether it counts."""
        first, repeated, undated, counted = (np.zeros(len(rows), bool) for _ in range(4))
        index = rows["index"].astype(np.int64)
        chosen = np.flatnonzero(self._reached(index))
        if not len(chosen):
            return first, repeated, undated, counted
        _, once = np.unique(index[chosen], return_index=True)
        chosen = chosen[once]
        within, at = self._slots(index[chosen], rows["time"][chosen])
        chosen, marks = chosen[within], self.marks[at]
        new = marks & IS_DELIVERED == 0
        chosen, at, marks, age = chosen[new], at[new], marks[new], age_ns[chosen[new]]
        dated = (age >= -self.clocks_ns) & (age <= rows["time"][chosen] + self.clocks_ns)
        again = marks & IS_REPEATED != 0
        self.marks[at] = marks | IS_DELIVERED | np.where(dated, 0, IS_UNDATED).astype(np.uint8)
        first[chosen], repeated[chosen], undated[chosen] = dated & ~again, dated & again, ~dated
        counted[chosen] = marks & IS_COUNTED != 0
        return first, repeated, undated, counted

    def give_up(self, rows: Numbers) -> None:
        """Samples were replaced or kept back on purpose."""
        index = rows["index"].astype(np.int64)
        reached = self._reached(index)
        if reached.any():
            _, at = self._slots(index[reached], rows["time"][reached])
            self.marks[at] |= IS_GIVEN_UP

    def use(self, index: Numbers, time_ns: Numbers, new: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The stage behind this leg made samples of these: whether each is known, its marks and when it was sent."""
        known, marks = np.zeros(len(index), bool), np.zeros(len(index), np.uint8)
        sent_ns = np.zeros(len(index), np.int64)
        if new.any():
            self.done = IS_USED
        number = index.astype(np.int64)
        chosen = np.flatnonzero(new & self._reached(number))
        if len(chosen):
            within, at = self._slots(number[chosen], time_ns[chosen])
            chosen = chosen[within]
            self.marks[at] |= IS_USED
            known[chosen], marks[chosen], sent_ns[chosen] = True, self.marks[at], self.sent_ns[at]
        return known, marks, sent_ns

    def make(self, rows: Numbers, known: Numbers, marks: Numbers, sent_ns: Numbers) -> None:
        """Samples are made of these and count as they do."""
        if not len(rows):
            return
        within, at = self._slots(rows["index"].astype(np.int64), rows["time"])
        known, marks, sent_ns = known[within], marks[within], sent_ns[within]
        is_sent = known & (marks & IS_SENT != 0)
        self.sent_ns[at] = np.where(is_sent, sent_ns, rows["time"][within])
        counts = np.where(known, marks, self.marks[at]) & np.uint8(IS_COUNTED)
        self.marks[at] = counts | np.uint8(IS_SENT | IS_MADE)

    def repeat(self, rows: Numbers) -> None:
        """Samples are made of nothing new."""
        if len(rows):
            _, at = self._slots(rows["index"].astype(np.int64), rows["time"])
            self.marks[at] = IS_REPEATED

    def counts_until(self, until_ns: int) -> tuple[int, int]:
        """Samples that count, sent until then, and how many of them are lost."""
        here = (self.marks & (IS_SENT | IS_COUNTED) == IS_SENT | IS_COUNTED) & (self.sent_ns <= until_ns)
        return self.judged + int(here.sum()), self.lost + int((here & self.missing()).sum())

    def counts_between(self, from_ns: int, to_ns: int) -> tuple[int, int]:
        """Samples with something new that were sent in a span, and how many of them have not come."""
        here = (self.marks & (IS_SENT | IS_REPEATED) == IS_SENT) & (self.sent_ns >= from_ns)
        here &= self.sent_ns < to_ns
        return int(here.sum()), int((here & self.missing()).sum())


def _parts(visits: list[dict[str, Any]]) -> list[list[int]]:
    """Points of each leg: up to the entry of a component with a periodic stage, and on from its exit."""
    parts: list[list[int]] = []
    part: list[int] = []
    for number, stop in enumerate(visits):
        if number or stop["steps"]:
            part.append(2 * stop["component"])
        if number + 1 < len(visits):
            if _period(stop):
                parts.append(part)
                part = []
            part.append(2 * stop["component"] + 1)
    return [*parts, part]


def _period(stop: dict[str, Any]) -> int:
    """Period of the last stage of a visit that has one; 0 where none has."""
    return next((int(step["period_ns"]) for step in reversed(stop["steps"]) if step.get("period_ns")), 0)


def _size(period_ns: int, grace_ns: int, run_ns: int) -> int:
    span_ns = max(min(max(SPAN_NS, 2 * grace_ns), 2 * run_ns), 0)
    size = min(max(span_ns // max(period_ns, 1), FEWEST), MOST)
    return int(1 << (size - 1).bit_length())


def _clocks_apart_ns(plan: dict[str, Any], visits: list[dict[str, Any]]) -> int:
    """How far the clocks along a path may differ by what the plan says."""
    farthest = 0
    for stop in visits:
        node = plan["components"][stop["component"]]["node"]
        clock = plan["nodes"][node].get("clock") or {}
        offset_ns = at_ns = int(clock.get("offset_ns", 0))
        for event in plan["events"]:
            if event["action"]["kind"] == "clock" and event["action"]["node"] == node:
                at_ns += int(event["action"]["step_ns"])
                offset_ns = max(abs(offset_ns), abs(at_ns))
        drift_ns = abs(int(plan["duration_ns"] * clock.get("drift_ppb", 0) / 1e9))
        farthest = max(farthest, abs(offset_ns) + drift_ns)
    return 2 * farthest
