"""Hudson et al. 2001: a remote scanning-probe microscope over a loaded network.

```text
repetition of messages ─► loss, bandwidth        queue monitoring ─► drops, gaps, latency        felt surfaces
users of the web ─► UDP, repetition and TCP beside them
```
The scenarios are `scenarios/remote-microscope.toml`, whose bursts of loss are those of the measurement (an input), and
`scenarios/remote-microscope-web.toml`, where cross traffic makes the losses and the lateness.
(Hudson et al. 2001, tables 1 and 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.lab.reproduce import relief, surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

LOADED = (
    "flows.scan.rate='28.9 Hz'",
    "flows.scan.transport.copies=0",
    "links.shared.loss='9.7 %'",
    "links.shared.jitter={ kind = 'exponential', mean = '12 ms' }",
)
"""The second table: 98 % load, 28.9 messages a second."""
SEEDS = (1, 2, 3, 4, 5)
"""Of runs whose losses are so few that a single one does not tell."""
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


# Hudson et al. 2001, table 1
def repetition(study: Study) -> None:
    """Loss, bandwidth and latency of FEC(n, 15 ms) for n = 0, 1 and 3."""
    seconds = 20_000 if study.full else 6_000

    def run(copies: int) -> tuple[float, float, float, float]:
        settings = [f"duration='{seconds} s'", f"flows.scan.transport.copies={copies}"]
        return study.run("remote-microscope", settings, read)

    def read(run: Run) -> tuple[float, float, float, float]:
        flow = run.flows["scan"]
        delay, jitter = flow["delay_ms"]["mean"], flow["jitter_ms"]["step"]["mean"]
        return 100.0 * flow["loss"], _rate_bps(run), delay, jitter

    seen = study.each((0, 1, 3), run)
    for copies, key in ((0, "udp"), (1, "fec-1"), (3, "fec-3")):
        loss, rate, delay, jitter = seen[copies]
        study.compare(f"loss-{key}", loss)
        study.compare(f"rate-{key}", rate)
        study.compare(f"latency-{key}", delay)
        study.compare(f"jitter-{key}", jitter)
    study.compare("latency-fec", seen[3][2] - seen[0][2])


def _rate_bps(run: Run) -> float:
    """What the messages take on the line that is theirs alone, with all headers."""
    link = next(x for x in run.summary["network"] if x["name"] == "lan.backward")
    return float(link["bytes"]) * 8.0 / float(run.summary["ran_s"])


# Hudson et al. 2001, table 1
def beside_web(study: Study) -> None:
    """The first table beside users of the web: their TCP makes losses and delays, and no model does."""
    seconds = 300 if study.full else 80
    tcp = "{ kind = 'tcp', congestion = 'reno' }"
    copies = "{ kind = 'repeat', copies = 1, spacing = '15 ms' }"
    cases = {"udp": ("'udp'", 90), "fec": (copies, 90), "tcp": (tcp, 90), "udp-98": ("'udp'", 98)}
    seeds = SEEDS if study.full else SEEDS[:1]

    def run(case: tuple[str, int]) -> dict[str, Any]:
        transport, percent = cases[case[0]]
        settings = [
            f"seed={case[1]}",
            f"duration='{seconds} s'",
            f"flows.scan.transport={transport}",
            f"traffic.web.utilisation='{percent} %'",
        ]
        return study.run(
            "remote-microscope-web", settings, lambda run: dict(run.flows["scan"]) | {"bps": _rate_bps(run)}
        )

    few = {"udp", "fec"}
    found = study.each([(n, s) for n in cases for s in seeds if n in few or s == seeds[0]], run)
    seen = {name: found[name, seeds[0]] for name in cases}
    lost = {name: [found[name, seed]["loss"] for seed in seeds] for name in few}
    udp, tcp_flow = seen["udp"], seen["tcp"]
    steps = {name: flow["jitter_ms"]["step"]["mean"] for name, flow in seen.items()}
    study.compare("web-added-tcp", tcp_flow["delay_ms"]["mean"] - udp["delay_ms"]["mean"])
    study.compare("web-rate-tcp", tcp_flow["bps"])
    study.compare("web-jitter-tcp", steps["tcp"])
    study.compare("web-jitter-udp", steps["udp"])
    study.compare("web-latency", tcp_flow["delay_ms"]["mean"] / udp["delay_ms"]["mean"])
    study.compare("web-jitter", steps["tcp"] / steps["udp"])
    study.compare("web-tcp-loss", 100.0 * tcp_flow["loss"])
    study.compare("web-loss", 100.0 * udp["loss"])
    ratios = ", ".join(f"{fec / none:.3f}" for fec, none in zip(lost["fec"], lost["udp"], strict=True))
    study.compare("web-fec", sum(lost["fec"]) / sum(lost["udp"]), f"by seeds: {ratios}")
    study.compare("web-loss-98", 100.0 * seen["udp-98"]["loss"])

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        places = np.arange(len(seen))
        for axes, label, values in (
            (left, "mean latency (ms)", [flow["delay_ms"]["mean"] for flow in seen.values()]),
            (middle, "mean change of latency (ms)", list(steps.values())),
            (right, "lost (%)", [100.0 * flow["loss"] for flow in seen.values()]),
        ):
            axes.bar(places, values, 0.6)
            axes.set(xticks=places, xticklabels=["UDP", "FEC(1)", "TCP", "UDP, 98 %"], ylabel=label)

    study.figure("web", "Beside users of the web at 90 %", draw)


# Hudson et al. 2001, table 2
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
    for key, name in zip(("none", "qm30", "qm150", "qm3600"), POLICIES, strict=True):
        _, dropped, gaps, latency_ms = seen[name]
        study.compare(f"gap-{key}", gaps)
        study.compare(f"drop-{key}", dropped)
        if key != "none":
            study.compare(f"latency-{key}", latency_ms - seen["none"][3])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = np.arange(len(seen))
        for i, (what, column) in enumerate((("lost", 0), ("dropped", 1), ("gaps", 2))):
            axes.bar(places + 0.25 * (i - 1), [row[column] for row in seen.values()], 0.25, label=what)
        axes.set(xticks=places, xticklabels=list(seen), ylabel="% of samples")
        axes.legend()

    study.figure("table2", "Queue monitoring: losses, drops and gaps", draw)


# Hudson et al. 2001
def surfaces(study: Study) -> None:
    """RMS error of the felt surface under delay and under jitter, and pictures of it.

    Errors are those at the place where the hand is. A second row gives either model the shift that suits it best, so that
    shapes are compared and not places.
    """
    delays = (0.0, 0.03, 0.1, 0.2)
    jitters = (0.0, 0.01, 0.03, 0.1)
    by_delay = {w: [surface.rms(*surface.play(d, 0.0, warped=w)[2:]) for d in delays] for w in (False, True)}
    by_jitter = {
        w: [surface.rms(*surface.play(0.05, j, warped=w)[2:]) for j in jitters] for w in (False, True)
    }
    study.compare("warp-delay", by_delay[True][2] / by_delay[False][2])
    jittery = [surface.shape_rms(*surface.play(0.05, j, warped=True)[2:]) for j in jitters]
    shape = {w: surface.shape_rms(*surface.play(delays[2], 0.0, warped=w)[2:]) for w in (False, True)}
    study.compare("warp-delay-shape", shape[True] / shape[False])
    study.compare("warp-jitter", jittery[2] / jittery[0])

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


# Hudson et al. 2001
def measured_surface(study: Study) -> None:
    """A surface from a microscope, felt line by line."""
    map_ = relief.Relief.measured()
    found, true = relief.shapes(map_)
    plane, warped, *_ = (error for _, error in found.values())
    study.compare("relief-delay", warped / plane)
    shape = {w: surface.shape_rms(*map_.felt(0.1, 0.0, warped=w)) for w in (False, True)}
    study.compare("relief-delay-shape", shape[True] / shape[False])
    late = surface.shape_rms(*map_.felt(0.1, 0.03, warped=True))
    study.compare("relief-jitter", late / shape[True])
    study.figure(
        "relief", "A measured surface as it is felt", lambda figure: relief.draw(figure, found, true)
    )
