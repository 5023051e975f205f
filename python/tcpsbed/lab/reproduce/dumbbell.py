"""Runs of the dumbbell, reduced to the numbers that figures and tables need."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpsbed.analysis.records import KINDS

if TYPE_CHECKING:
    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One run of a dumbbell: a transport, its parameters, cross traffic."""

    transport: str
    cbr_kbps: float = 400.0
    duration_s: float = 20.0
    parameters: str = ""
    settings: tuple[str, ...] = ()
    scenario: str = "dumbbell-dpm"

    def overrides(self) -> list[str]:
        """The case as overrides of its scenario."""
        rate = [] if self.scenario == "dumbbell-phases" else [f'traffic.cbr.rate="{self.cbr_kbps} kbit/s"']
        kind = f"{{ kind = '{self.transport}'{', ' if self.parameters else ''}{self.parameters} }}"
        chosen = [f"channels.session.transport={kind}", f'duration="{self.duration_s} s"', *rate]
        return [*chosen, 'measure.records="packets"', 'measure.pcapng="off"', *self.settings]


@dataclass(frozen=True)
class Seen:
    """What a run of a dumbbell showed. Times in seconds, delays in milliseconds, rates in kbit/s."""

    summary: dict[str, Any]
    delay: dict[str, tuple[Floats, Floats]]
    """By flow: when each sample arrived, and its delay."""
    sent: dict[str, tuple[Floats, Floats]]
    """By haptic or kinematic flow: when each packet left, and its bytes on the wire."""
    merging: dict[str, tuple[Floats, Floats]]
    """By haptic or kinematic flow: when k changed, and what it became."""

    def delay_of(self, flow: str, since_s: float = 0.5) -> Floats:
        """Delays of the samples that arrived after a given time."""
        time, delay = self.delay[flow]
        return delay[time >= since_s]

    def peak(self, flow: str, since_s: float = 0.5) -> float:
        """The largest delay of a flow."""
        return float(self.delay_of(flow, since_s).max())

    def late(self, flow: str, limit_ms: float) -> float:
        """Share of samples later than a limit, in percent."""
        return 100.0 * float((self.delay_of(flow) > limit_ms).mean())

    def loss(self, flow: str) -> float:
        """Samples lost, in percent."""
        return 100.0 * float(self.summary["flows"][flow]["loss"])

    def offered_loss(self) -> float:
        """Share of all bytes offered to the return path's bottleneck that it dropped, in percent."""
        link = next(link for link in self.summary["network"] if link["name"] == "l1.backward")
        return 100.0 * float(link["dropped_bytes"] / (link["dropped_bytes"] + link["bytes"]))

    def rate(self, flow: str, since_s: float, until_s: float) -> float:
        """Mean rate on the wire over a span."""
        time, size = self.sent[flow]
        inside = (time >= since_s) & (time < until_s)
        return float(size[inside].sum()) * 8e-3 / (until_s - since_s)

    def rates(self, flow: str, bin_s: float) -> tuple[Floats, Floats]:
        """Rate on the wire in bins of time."""
        time, size = self.sent[flow]
        edges = np.arange(0.0, float(time[-1]) + bin_s, bin_s)
        return edges[:-1] + bin_s / 2, np.histogram(time, edges, weights=size)[0] * 8e-3 / bin_s

    def jitter(self, flow: str) -> tuple[float, float]:
        """Mean and largest step of delay from packet to packet: samples that arrive together are one packet."""
        time, delay = self.delay[flow]
        first = np.concatenate(([True], np.diff(time) > 0)) & (time >= 0.5)
        steps = np.abs(np.diff(delay[first]))
        return float(steps.mean()), float(steps.max())

    def k_at(self, flow: str, time_s: Floats) -> Floats:
        """Fragments per packet at given times."""
        time, k = self.merging[flow]
        return k[np.clip(np.searchsorted(time, time_s, side="right") - 1, 0, None)]


def run(study: Study, case: Case) -> Seen:
    """Runs a case."""
    return study.run(case.scenario, case.overrides(), read)


def read(run: Run) -> Seen:
    """What a finished run of a dumbbell shows."""
    rows = np.asarray(run.records)
    plan = json.loads((run.folder / "plan.json").read_text(encoding="utf-8"))
    names = [flow["name"] for flow in plan["flows"]]
    kind = {
        name: rows[rows["kind"] == 1 + KINDS.index(name)] for name in ("delivered", "transmit", "merging")
    }

    def of(name: str, rows_of: str, field: str, scale: float) -> tuple[Floats, Floats]:
        own = kind[rows_of][kind[rows_of]["flow"] == names.index(name)]
        return own["time"] / 1e9, own[field] * scale

    clocks = [name for name in names if name in ("haptic", "kinematic")]
    return Seen(
        summary=run.summary,
        delay={name: of(name, "delivered", "value", 1e-6) for name in names},
        sent={name: of(name, "transmit", "size", 1.0) for name in clocks},
        merging={name: of(name, "merging", "value", 1.0) for name in clocks},
    )
