"""Abdullah and Monnet 2023: multimodal samples in RTP over an LTE-like access, one at a time and streamed.

The run is that of `scenarios/lte-access.toml`, and over the LTE of ns-3, where it is there, that of
`scenarios/lte-ns3.toml`; figures 5 to 10 are delays over time and their histograms, up, down and
both. [PROTOCOLS 5]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.analysis import Run
    from tcpsbed.reproduce.study import Study

TRANSMIT, RECEIVE, DELIVERED = 16, 17, 2
LEADER = 0
DATA_BYTES = 16 + 12 + 8 + 20 + 26
"""A sample, RTP, UDP, IPv4 and the link's header."""


@dataclass(frozen=True)
class Delays:
    """Delays of each packet in ms, in the order of numbers, and when it left in s."""

    sent_s: NDArray[np.float64]
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    trip: NDArray[np.float64]
    in_order: bool


def reproduce(study: Study) -> None:
    """Both modes, and the figures."""
    count = 4000 if study.full else 1000
    settings = [f"flows.kinematic.stop='{count / 8} ms'"]
    d = study.run("lte-access", settings, stop_and_wait)
    for name, values in (("up", d.up), ("down", d.down), ("trip", d.trip)):
        study.compare(f"{name}-mean", values.mean())
        study.compare(f"{name}-min", values.min())
        study.compare(f"{name}-max", values.max())
    study.compare("duration", (d.sent_s[-1] - d.sent_s[0]) * 4000 / (len(d.sent_s) - 1))
    study.compare("loss", float(count - len(d.up)) + (0.0 if d.in_order else 1.0))
    stream = study.run(
        "lte-access", [*settings, "flows.kinematic.transport.mode=stream", "duration='3 s'"], streamed
    )
    study.compare(
        "stream-mean",
        stream.mean(),
        "the order of packets is kept, so that each waits for the slowest before it",
    )
    over_ns3(study, count)
    for number, (name, title, values) in enumerate(
        (
            ("up", "leader to follower", d.up),
            ("down", "follower to leader", d.down),
            ("trip", "round trip", d.trip),
        )
    ):
        figures(study, 5 + 2 * number, name, title, d.sent_s, values)
    figures(study, 11, "stream", "leader to follower, streamed", np.arange(len(stream)) / 8000.0, stream)


def over_ns3(study: Study, count: int) -> None:
    """The same samples over the LTE of ns-3 in its own virtual time: what the air takes, without hosts around it."""
    from tcpsbed.worlds import ns3_program

    keys = ("ns3-up", "ns3-down", "ns3-loss", "ns3-stream")
    if lack := ns3_program.missing():
        for key in keys:
            study.cannot(key, f"needs {lack}")
        return
    settings = [f"flows.kinematic.stop='{count / 8} ms'"]
    d = study.run("lte-ns3", settings, stop_and_wait, world="ns3-virtual")
    study.compare("ns3-up", d.up.mean())
    study.compare("ns3-down", d.down.mean())
    study.compare("ns3-loss", float(count - len(d.up)) + (0.0 if d.in_order else 1.0))
    stream = ["flows.kinematic.transport.mode=stream", "duration='3 s'"]
    delays = study.run("lte-ns3", [*settings, *stream], streamed, world="ns3-virtual")
    study.compare("ns3-stream", delays.mean())


def stop_and_wait(run: Run) -> Delays:
    """Reads the rows of packets: data leaves the leader, comes to the follower; its echo comes back."""
    rows = run.records
    rows = rows[rows["flow"] == 0]
    node, kind = rows["node"], rows["kind"]
    left = rows[(kind == TRANSMIT) & (node == LEADER) & (rows["size"] == DATA_BYTES)]
    came = rows[kind == DELIVERED]
    back = rows[(kind == RECEIVE) & (node == LEADER)]
    at = {int(r["index"]): int(r["time"]) for r in came}
    trip = {int(r["index"]): int(r["value"]) for r in back}
    numbers = [int(i) for i in left["index"] if int(i) in at and int(i) in trip]
    sent = {int(r["index"]): int(r["time"]) for r in left}
    up = np.array([at[i] - sent[i] for i in numbers]) / 1e6
    both = np.array([trip[i] for i in numbers]) / 1e6
    sent_s = np.array([sent[i] for i in numbers]) / 1e9
    in_order = bool(np.all(np.diff(came["index"].astype(np.int64)) > 0))
    return Delays(sent_s, up, both - up, both, in_order)


def streamed(run: Run) -> NDArray[np.float64]:
    """One-way delays of all samples in ms, in the order of arrival."""
    rows = run.records
    rows = rows[rows["kind"] == DELIVERED]
    return np.asarray(rows["value"], dtype=np.float64) / 1e6


def figures(
    study: Study,
    number: int,
    name: str,
    title: str,
    at_s: NDArray[np.float64],
    delay_ms: NDArray[np.float64],
) -> None:
    """Delays over time, and their histogram."""

    def series(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(at_s, delay_ms, linewidth=0.5)
        axes.set(xlabel="time (s)", ylabel="delay (ms)")

    def histogram(figure: Figure) -> None:
        axes = figure.subplots()
        axes.hist(delay_ms, bins=60)
        axes.set(xlabel="delay (ms)", ylabel="packets")

    study.figure(
        f"figure{number}-{name}", f"Figure {number}: {title}, over time" if number < 11 else title, series
    )
    label = f"Figure {number + 1}: {title}, histogram" if number < 11 else f"{title}, histogram"
    study.figure(f"figure{number + 1}-{name}-histogram", label, histogram)
