"""Hudson et al. 2001: a remote scanning-probe microscope over a loaded network.

```text
repetition of messages ─► loss, bandwidth        queue monitoring ─► drops, gaps, latency        felt surfaces
```
The scenario is `scenarios/remote-microscope.toml`, whose bursts of loss are tuned to the measurement.
[PROTOCOLS 4.6]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.reproduce import surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed.analysis import Run
    from tcpsbed.reproduce.study import Study

LOADED = (
    "flows.scan.rate='28.9 Hz'",
    "flows.scan.transport.copies=0",
    "links.shared.loss='9.7 %'",
    "links.shared.jitter={ kind = 'exponential', mean = '12 ms' }",
)
"""The second table: 98 % load, 28.9 messages a second."""
POLICIES: dict[str, dict[str, object]] = {
    "none": {"kind": "overwrite"},
    "QM(30, 2)": {"kind": "queue", "threshold": 30, "length": 2},
    "QM(150, 2)": {"kind": "queue", "threshold": 150, "length": 2},
    "QM(3600, 2)": {"kind": "queue", "threshold": 3600, "length": 2},
}


def reproduce(study: Study) -> None:
    """Runs all that can be run."""
    repetition(study)
    study.cannot("tcp", "the web-like competing traffic of the measurement is not public")
    monitoring(study)
    surfaces(study)


# [PROTOCOLS 4.6]
def repetition(study: Study) -> None:
    """Loss, bandwidth and latency of FEC(n, 15 ms) for n = 0, 1 and 3."""
    seconds = 20_000 if study.full else 6_000

    def run(copies: int) -> tuple[float, float, float]:
        settings = [f"duration='{seconds} s'", f"flows.scan.transport.copies={copies}"]
        return study.run("remote-microscope", settings, read)

    def read(run: Run) -> tuple[float, float, float]:
        flow = run.flows["scan"]
        link = next(x for x in run.summary["network"] if x["name"].startswith("lan") and x["packets"] > 0)
        return 100.0 * flow["loss"], link["bytes"] * 8.0 / seconds, flow["delay_ms"]["mean"]

    seen = study.each((0, 1, 3), run)
    for copies, key in ((0, "udp"), (1, "fec-1"), (3, "fec-3")):
        study.compare(f"loss-{key}", seen[copies][0])
        study.compare(f"rate-{key}", seen[copies][1])
    study.compare("latency-fec", seen[3][2] - seen[0][2])


# [PROTOCOLS 4.6]
def monitoring(study: Study) -> None:
    """Drops, gaps and latency without and with queue monitoring, on the same arrivals."""
    from tcpsbed.analysis.playout import playout

    seconds = 3600 if study.full else 1200

    def read(run: Run) -> dict[str, tuple[float, float, float, float]]:
        sent = run.flows["scan"]["sent"]
        lost = 100.0 * run.flows["scan"]["loss"]
        table = {}
        for name, policy in POLICIES.items():
            p = playout(run, "scan", policy)
            dropped, gaps = (100.0 * (p.dropped + p.late) / sent, 100.0 * p.gaps / sent)
            table[name] = (lost, dropped, gaps, 1e3 * float(p.delay_s.mean()))
        return table

    seen = study.run("remote-microscope", [f"duration='{seconds} s'", *LOADED], read)
    excess = {name: gaps - lost - dropped for name, (lost, dropped, gaps, _) in seen.items()}
    study.compare("gap-none", excess["none"])
    study.compare("gap-qm150", excess["QM(150, 2)"])
    drops = {name: row[1] for name, row in seen.items()}
    study.compare("drop-none", drops["none"])
    order = list(POLICIES)
    for key, more, less in zip(("30", "150", "3600"), order, order[1:], strict=False):
        ratio = drops[more] / drops[less] if drops[less] > 0 else float("inf")
        study.compare(f"drop-ratio-{key}", min(ratio, 1e6))
    latency = {name: row[3] for name, row in seen.items()}
    study.compare("latency-qm30", latency["QM(30, 2)"] - latency["none"])
    study.compare("latency-qm3600", latency["QM(3600, 2)"] - latency["none"])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = np.arange(len(seen))
        for i, (what, column) in enumerate((("lost", 0), ("dropped", 1), ("gaps", 2))):
            axes.bar(places + 0.25 * (i - 1), [row[column] for row in seen.values()], 0.25, label=what)
        axes.set(xticks=places, xticklabels=list(seen), ylabel="% of samples")
        axes.legend()

    study.figure("table2", "Queue monitoring: losses, drops and gaps", draw)


# [PROTOCOLS 4.5]
def surfaces(study: Study) -> None:
    """RMS error of the felt surface under delay and under jitter, and pictures of it."""
    delays = (0.0, 0.03, 0.1, 0.2)
    jitters = (0.0, 0.01, 0.03, 0.1)
    by_delay = {w: [surface.rms(*surface.play(d, 0.0, warped=w)[2:]) for d in delays] for w in (False, True)}
    by_jitter = {
        w: [surface.rms(*surface.play(0.05, j, warped=w)[2:]) for j in jitters] for w in (False, True)
    }
    study.compare("warp-delay", by_delay[True][2] / by_delay[False][2])
    study.compare("warp-jitter", by_jitter[True][2] / by_jitter[True][0])

    def errors(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for warped, name in ((False, "plane"), (True, "warped plane")):
            left.plot([1e3 * d for d in delays], by_delay[warped], "o-", label=name)
            right.plot([1e3 * j for j in jitters], by_jitter[warped], "o-", label=name)
        left.set(xlabel="delay (ms)", ylabel="RMS error (nm)")
        right.set(xlabel="mean jitter (ms), delay 50 ms")
        left.legend()

    def shapes(figure: Figure) -> None:
        axes = figure.subplots()
        _, hand, _, true = surface.play(0.0, 0.0, warped=False)
        part = slice(2000, 5000)
        axes.plot(hand[part], true[part], color="black", label="surface")
        for warped, jitter, name in (
            (False, 0.0, "plane, 100 ms"),
            (True, 0.0, "warped plane, 100 ms"),
            (True, 0.03, "warped plane, 100 ms and jitter"),
        ):
            axes.plot(hand[part], surface.play(0.1, jitter, warped=warped)[2][part], label=name, linewidth=1)
        x, height = surface.profile()
        centres = np.arange(500.0, 1100.0, 60.0)
        pieces = [surface.patch(x, height, c, 30.0, np.linspace(c - 30, c + 30, 30)) for c in centres]
        places = [np.linspace(c - 30, c + 30, 30) for c in centres]
        axes.plot(np.concatenate(places), np.concatenate(pieces), ":", label="feel patches")
        axes.set(xlabel="place (nm)", ylabel="height (nm)")
        axes.legend()

    study.figure("errors", "Error of the felt surface under delay and under jitter", errors)
    study.figure("surface", "The surface as it is felt", shapes)
