"""Hudson et al. 2001: a remote scanning-probe microscope over a loaded network.

```text
repetition of messages ─► loss, bandwidth        queue monitoring ─► drops, gaps, latency        felt surfaces
users of the web ─► UDP, repetition and TCP beside them
```
The scenarios are `scenarios/remote-microscope.toml`, whose bursts of loss are tuned to the measurement, and
`scenarios/remote-microscope-web.toml`, where the traffic of others makes what is lost and late.
[PROTOCOLS 4.6]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.reproduce import relief, surface
from tcpsbed.reproduce.recordings import absent

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
    beside_web(study)
    monitoring(study)
    surfaces(study)
    measured_surface(study)


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
def beside_web(study: Study) -> None:
    """The first table beside users of the web: their TCP makes losses and delays, and no model does."""
    seconds = 300 if study.full else 80
    tcp = "{ kind = 'tcp', congestion = 'reno' }"
    copies = "{ kind = 'repeat', copies = 1, spacing = '15 ms' }"
    cases = {"udp": ("'udp'", 90), "fec": (copies, 90), "tcp": (tcp, 90), "udp-98": ("'udp'", 98)}

    def run(name: str) -> dict[str, Any]:
        transport, percent = cases[name]
        settings = [
            f"duration='{seconds} s'",
            f"flows.scan.transport={transport}",
            f"traffic.web.utilisation='{percent} %'",
        ]
        return study.run("remote-microscope-web", settings, lambda run: dict(run.flows["scan"]))

    seen = study.each(cases, run)
    udp, tcp_flow = seen["udp"], seen["tcp"]
    steps = {name: flow["jitter_ms"]["step"]["mean"] for name, flow in seen.items()}
    study.compare("tcp", tcp_flow["delay_ms"]["mean"])
    study.compare("web-latency", tcp_flow["delay_ms"]["mean"] / udp["delay_ms"]["mean"])
    study.compare("web-jitter", steps["tcp"] / steps["udp"])
    study.compare("web-tcp-loss", 100.0 * tcp_flow["loss"])
    study.compare("web-loss", 100.0 * udp["loss"])
    study.compare("web-fec", seen["fec"]["loss"] / udp["loss"])
    study.compare("web-loss-98", seen["udp-98"]["loss"] / udp["loss"])

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        places = np.arange(len(seen))
        for axes, label, values in (
            (left, "mean latency (ms)", [flow["delay_ms"]["mean"] for flow in seen.values()]),
            (middle, "mean step of latency (ms)", list(steps.values())),
            (right, "lost (%)", [100.0 * flow["loss"] for flow in seen.values()]),
        ):
            axes.bar(places, values, 0.6)
            axes.set(xticks=places, xticklabels=["UDP", "FEC(1)", "TCP", "UDP, 98 %"], ylabel=label)

    study.figure("web", "Beside users of the web at 90 %", draw)


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


# [PROTOCOLS 4.5]
def measured_surface(study: Study) -> None:
    """A surface from a microscope, felt line by line, where it is there."""
    if not relief.MAP.exists():
        for key in ("relief-delay", "relief-jitter"):
            study.cannot(key, absent("a measured surface"))
        return
    map_ = relief.Relief.measured()
    found, true = relief.shapes(map_)
    plane, warped, jittered, _ = (error for _, error in found.values())
    study.compare("relief-delay", warped / plane)
    study.compare("relief-jitter", jittered / warped)
    study.figure(
        "relief", "A measured surface as it is felt", lambda figure: relief.draw(figure, found, true)
    )
