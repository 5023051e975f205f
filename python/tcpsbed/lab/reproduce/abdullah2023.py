"""Abdullah and Monnet 2023: multimodal samples in RTP over an LTE-like access, one at a time and streamed.

The run is that of `scenarios/lte-access.toml`, whose delays are those that the work prints: its rows are inputs. Where ns-3
is there, the same runs over its LTE (`lte`) are the outcome. Figure 4 is what packets carry; figures 5 to 10 are delays over
time and their histograms, up, down and both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.datasets.formats.vibtac12 import is_data_set
from tcpsbed.lab.reproduce.lte import over_ns3
from tcpsbed.lab.reproduce.packets import on_the_wire, stop_and_wait, streamed
from tcpsbed.lab.reproduce.recordings import DATA, absent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.lab.reproduce.study import Study

TEXTURES, TEXTURE = DATA / "haptic" / "vibtac12", 8


def reproduce(study: Study) -> None:
    """Both modes, and the figures."""
    count = 4000 if study.full else 1000
    settings = [f"flows.kinematic.stop='{count / 8} ms'"]
    multimodal(study)
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


# Abdullah, Monnet 2023
def multimodal(study: Study) -> None:
    """Figure 4: what packets carry, motion in one of 40 and zeros in the others."""
    if not is_data_set(TEXTURES):
        study.cannot("figure4-zeros", absent("vibtac12"))
        return
    columns = "['x', 'y', 'z', 'sound']"
    # Its first samples are zeros themselves: the sensor was not moving yet.
    source = f"{{ recording = '{TEXTURES}', texture = {TEXTURE}, columns = {columns}, start = '1 s' }}"
    span = ["flows.kinematic.stop='50 ms'", "duration='10 s'", "measure.pcapng=true"]
    sent = study.run("lte-access", [f"flows.kinematic.source={source}", *span], on_the_wire)
    study.compare("figure4-zeros", 100.0 * float(np.mean(np.all(sent[:, :3] == 0.0, axis=1))))

    def draw(figure: Figure) -> None:
        at_ms = np.arange(len(sent)) / 8.0
        above, below = figure.subplots(2, 1, sharex=True)
        for column, name in enumerate("xyz"):
            above.plot(at_ms, sent[:, column], linewidth=0.8, label=name)
        below.plot(at_ms, sent[:, 3], linewidth=0.8)
        above.set(ylabel="motion (of the sensor)")
        above.legend()
        below.set(xlabel="time of the sample (ms)", ylabel="sound")

    study.figure("figure4", f"Figure 4: multimodal samples on the wire, texture {TEXTURE} of VibTac-12", draw)


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
