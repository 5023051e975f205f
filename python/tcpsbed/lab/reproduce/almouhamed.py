"""Al-Mouhamed et al.: force and raw stereo pictures from a robot over the networks of a campus.

```text
threads on one processor ─► time of a copy        copy, then send │ copy while sending ─► time between frames
routes A, B, C with hubs, other traffic           force while a picture is copied │ while it is sent
```
The scenarios are `almouhamed.toml` (route A), `almouhamed-b.toml` and `almouhamed-c.toml`.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpsbed.analysis.records import KINDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

Floats = NDArray[np.float64]

NO_FORCE = ("flows.haptic.stop='1 ms'",)
NO_VIDEO = ("flows.video.stop='1 ms'",)
NO_COMMANDS = ("flows.kinematic.stop='1 ms'",)
ONE_BUFFER = ("flows.video.buffers=1",)
COPIES_ONLY = (
    "flows.video.sample='96 B'",
    "hooks.hand-over.cost.mean='0 ms'",
    "hooks.hand-over.cost.sd='0 ms'",
)
"""Nothing of a frame but the copying: what is sent is small."""
AS_FAST_AS_IT_CAN = ("flows.haptic.rate='10 kHz'",)
LINK_BPS = 100e6
WARM_UP_NS = 1_000_000_000
ARM_MS = 100.0
"""Of the robot's own controller, 10 Hz: the paper's own figure."""
BUSY = ('traffic.others.rate="25 Mbit/s"',)
BURSTS = ('traffic.bursts.rate="30 Mbit/s"',)
"""Of route C: 0 to 60 Mbit/s of cross traffic, another rate every half second."""


@dataclass(frozen=True)
class Seen:
    """What a run showed. Times in milliseconds."""

    summary: dict[str, Any]
    frames: Floats
    """Between arrivals of frames."""
    forces: Floats
    """Between arrivals of forces."""
    while_copied: Floats
    """Those of them that ended while a frame was copied."""
    while_sent: Floats
    """Those that ended while none was: where there is one buffer, while a frame was sent."""
    copies: Floats
    """Of a frame in the component that copies."""
    ages: Floats
    """Of frames at their arrival, since their copying began."""
    commands: Floats
    """Of commands, from the client to the arm."""
    made: int
    """Frames, those of the warm-up included."""

    def nearer(self, law: str) -> float:
        """How much further the times between frames are from the other law than from this one, with a minus."""
        fits = self.summary["flows"]["video"]["interarrival_fits"]
        other = "gumbel" if law == "gaussian" else "gaussian"
        return float(fits[law]["distance"] - fits[other]["distance"])

    def wire_ms(self) -> float:
        """Time that a frame takes on the first link."""
        return self._own_bytes() * 8e3 / LINK_BPS / self.made

    def utilisation(self) -> float:
        """Share of the first link that our own streams take, in percent."""
        return 100.0 * self._own_bytes() * 8.0 / LINK_BPS / float(self.summary["duration_s"])

    def _own_bytes(self) -> float:
        link = next(link for link in self.summary["network"] if link["name"] == "robot-sw1.forward")
        others = sum(t["bytes"] for t in self.summary["traffic"])
        return float(link["bytes"] - others)


def reproduce(study: Study) -> None:
    """Runs all experiments of the paper."""
    duration = f'duration="{600 if study.full else 30} s"'
    reader = "hooks.read.cost={ kind = 'normal', mean = '3 ms', sd = '0 ms' }"
    cases: dict[str, tuple[str, tuple[str, ...]]] = {
        "copy alone": ("almouhamed", (*COPIES_ONLY, *ONE_BUFFER, *NO_FORCE)),
        "copy, a reading thread": ("almouhamed", (*COPIES_ONLY, *ONE_BUFFER, *AS_FAST_AS_IT_CAN, reader)),
        "copy, a thread that reads and sends": (
            "almouhamed",
            (*COPIES_ONLY, *ONE_BUFFER, *AS_FAST_AS_IT_CAN),
        ),
        "force alone": ("almouhamed", (*NO_VIDEO, *NO_COMMANDS)),
        "one buffer, force, no commands": ("almouhamed", (*ONE_BUFFER, *NO_COMMANDS)),
        "force, pictures": ("almouhamed", NO_COMMANDS),
        "force, pictures, commands": ("almouhamed", ()),
        "one buffer": ("almouhamed", (*ONE_BUFFER, *NO_FORCE)),
        "one buffer, force": ("almouhamed", ONE_BUFFER),
        "two buffers": ("almouhamed", NO_FORCE),
        "two buffers, real pictures": ("almouhamed-frames", NO_FORCE),
        "route A, busy": ("almouhamed", BUSY),
        "route B": ("almouhamed-b", ()),
        "route B, busy": ("almouhamed-b", BUSY),
        "route C": ("almouhamed-c", ()),
        "route C, bursts": ("almouhamed-c", BURSTS),
    }
    seen = study.each(cases, lambda name: _run(study, *cases[name], duration))
    _copies(study, seen)
    _forces(study, seen)
    _frames(study, seen)
    _routes(study, seen)
    _crossover(study)


def _run(study: Study, scenario: str, settings: tuple[str, ...], duration: str) -> Seen:
    return study.run(scenario, [duration, 'measure.pcapng="off"', *settings], read)


def read(run: Run) -> Seen:
    """What a finished run shows."""
    rows = np.asarray(run.records)
    plan = json.loads((run.folder / "plan.json").read_text(encoding="utf-8"))
    flows = [flow["name"] for flow in plan["flows"]]
    copier = 2 * [component["name"] for component in plan["components"]].index("ss-embsys")
    made = np.count_nonzero(
        (rows["kind"] == 1 + KINDS.index("sent")) & (rows["flow"] == flows.index("video"))
    )
    rows = rows[rows["time"] >= WARM_UP_NS]

    def of(kind: str, flow: str) -> NDArray[np.void]:
        chosen = (rows["kind"] == 1 + KINDS.index(kind)) & (rows["flow"] == flows.index(flow))
        found: NDArray[np.void] = rows[chosen]
        return found

    def values(rows: NDArray[np.void]) -> Floats:
        return np.asarray(rows["value"] / 1e6, dtype=np.float64)

    out = of("exit", "video")
    copies = out[out["point"] == copier + 1]
    arrivals = of("delivered", "haptic")["time"]
    forces = np.diff(arrivals) / 1e6
    copied = during(arrivals[1:], copies["time"] - copies["value"], copies["time"])
    return Seen(
        run.summary,
        np.diff(of("delivered", "video")["time"]) / 1e6,
        forces,
        forces[copied],
        forces[~copied],
        values(copies),
        values(of("delivered", "video")),
        values(of("delivered", "kinematic")),
        int(made),
    )


def during(at: NDArray[np.int64], begun: NDArray[np.int64], ended: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which times are within one of several consecutive spans."""
    place = np.searchsorted(ended, at)
    inside = place < len(ended)
    inside[inside] &= at[inside] >= begun[place[inside]]
    return inside


def _copies(study: Study, seen: dict[str, Seen]) -> None:
    names = {
        "copy alone": "copy-alone",
        "copy, a reading thread": "copy-reading",
        "copy, a thread that reads and sends": "copy-sending",
    }
    for name, key in names.items():
        study.compare(key, seen[name].copies.mean())
    reading = seen["copy, a reading thread"].copies
    study.compare("copy-reading-low", np.percentile(reading, 5))
    study.compare("copy-reading-high", np.percentile(reading, 95))
    shown = {name: seen[name].copies for name in names}
    study.figure(
        "copies",
        "Time of a copy of a stereo frame, threads on one processor",
        histograms(shown, "copy (ms)"),
    )


def _forces(study: Study, seen: dict[str, Seen]) -> None:
    alone, beside, all_three = (
        seen[name] for name in ("force alone", "one buffer, force, no commands", "force, pictures, commands")
    )
    study.compare("force-alone", np.percentile(alone.forces, 90))
    study.compare("force-video", np.percentile(beside.while_copied, 90))
    study.compare("force-video-rate", 1e3 / beside.while_copied.mean())
    study.compare("force-sent", beside.while_sent.mean())
    study.compare("force-sent-worst", beside.while_sent.max())
    study.compare("force-commands", all_three.forces.mean())
    study.compare("force-commands-gain", seen["force, pictures"].forces.mean() / all_three.forces.mean())
    study.compare("force-commands-worst", all_three.forces.max())
    shown = {
        "alone": alone.forces,
        "while a picture is copied": beside.while_copied,
        "while it is sent": beside.while_sent,
        "pictures and commands": all_three.forces,
    }
    study.figure("forces", "Time between forces at the client", histograms(shown, "time between forces (ms)"))


def _frames(study: Study, seen: dict[str, Seen]) -> None:
    one, two = seen["one buffer"], seen["two buffers"]
    study.compare("serial", one.frames.mean())
    study.compare("serial-gaussian", one.nearer("gaussian"))
    beside = seen["one buffer, force"].frames
    study.compare("serial-force", beside.mean())
    study.compare("serial-force-scatter", beside.std() / one.frames.std())
    study.compare("double", two.frames.mean())
    study.compare("double-low", np.percentile(two.frames, 5))
    study.compare("double-high", np.percentile(two.frames, 95))
    study.compare("double-least", two.frames.min())
    study.compare("double-gumbel", two.nearer("gumbel"))
    real = seen[
        "two buffers, real pictures"
    ]  # raw, so that their times are those of frames without a picture
    study.compare("double-real-whole", real.summary["media"]["video"]["ssim"])
    whole = seen["force, pictures, commands"]
    loop_ms = whole.commands.mean() + ARM_MS + whole.ages.mean()
    loop = f"from a command to the frame that shows its effect {loop_ms:.0f} ms, or {1e3 / loop_ms:.1f} Hz"
    study.compare("stereo-total", whole.ages.mean(), loop)
    study.compare("wire", two.wire_ms())
    study.compare("utilisation", two.utilisation())
    for name, title, law in (
        ("one buffer", "One buffer: copy, then send", "gaussian"),
        ("one buffer, force", "One buffer, with force", "gaussian"),
        ("two buffers", "Two buffers: copy while sending", "gumbel"),
    ):
        file = "frames-" + name.replace(",", "").replace(" ", "-")
        study.figure(file, f"{title}: time between stereo frames", _with_law(seen[name], law))


def _routes(study: Study, seen: dict[str, Seen]) -> None:
    calm, busy = seen["force, pictures, commands"], seen["route A, busy"]
    study.compare("route-a-busy-frames", np.percentile(busy.frames, 99))
    study.compare("route-a-busy-force", np.percentile(busy.forces, 99))
    study.compare("route-b", seen["route B"].frames.mean())
    study.compare("route-c-low", np.percentile(seen["route C"].frames, 5))
    study.compare("route-c-high", np.percentile(seen["route C"].frames, 95))
    study.compare("route-c-tail", np.percentile(seen["route C"].frames, 99))
    study.compare("route-c-bursts-low", np.percentile(seen["route C, bursts"].frames, 5))
    study.compare("route-c-bursts-high", np.percentile(seen["route C, bursts"].frames, 95))
    longer = [
        np.percentile(getattr(busy, what), 95) - np.percentile(getattr(calm, what), 95)
        for what in ("forces", "frames")
    ]
    study.compare("surge", longer[0] - longer[1])
    shown = {
        "A": calm,
        "A, busy": busy,
        "B": seen["route B"],
        "B, busy": seen["route B, busy"],
        "C": seen["route C"],
        "C, bursts": seen["route C, bursts"],
    }
    frames = {f"route {name}": s.frames for name, s in shown.items()}
    forces = {f"route {name}": s.forces for name, s in shown.items()}
    study.figure(
        "routes-frames",
        "Time between stereo frames by route",
        histograms(frames, "time between frames (ms)"),
    )
    study.figure(
        "routes-forces", "Time between forces by route", histograms(forces, "time between forces (ms)")
    )


def _crossover(study: Study) -> None:
    """Raw against coded pictures from glass to glass, over the rate of the link."""
    if importlib.util.find_spec("simplejpeg") is None:
        study.tell("almouhamed: no figure of raw against coded pictures without pip install 'tcpsbed[media]'")
        return
    rates_mbps = (20, 40, 100, 200, 400, 1000, 2500, 10_000)
    costs = coding_costs_ms()
    coded = [f'flows.video.picture.{stage}_cost="{cost:.4f} ms"' for stage, cost in costs.items()]
    kinds = {"raw": ['flows.video.picture.codec="raw"'], "JPEG": ['flows.video.picture.codec="jpeg"', *coded]}
    cases = [(kind, mbps) for kind in kinds for mbps in rates_mbps]

    def one(case: tuple[str, int]) -> float:
        kind, mbps = case
        # The line carries two raw frames a second in any case: their queue is not what is asked for.
        settings = [
            'duration="6 s"',
            'flows.video.rate="2 Hz"',
            f'links.line.rate="{mbps} Mbit/s"',
            *kinds[kind],
        ]
        glass = study.run(
            "stereo", settings, lambda run: run.summary["media"]["sight/video"]["glass_to_glass_ms"]
        )
        return float(glass["mean"])

    found = study.each(cases, one)
    curves = {kind: [found[kind, mbps] for mbps in rates_mbps] for kind in kinds}
    title = f"Raw or JPEG (coded in {costs['encode']:.1f} ms, decoded in {costs['decode']:.1f} ms on this machine)"
    study.figure("crossover", title, _curves(rates_mbps, curves))


def coding_costs_ms(rounds: int = 30) -> dict[str, float]:
    """Medians of what coding and decoding a stereo frame as JPEG take on this machine, in milliseconds."""
    from tcpsbed.datasets.builtin import FILM
    from tcpsbed.media.camera import open_camera
    from tcpsbed.media.codecs import Jpeg

    camera, codec = open_camera(FILM, 360, 288, True), Jpeg(720, 288, 17.0, 75)
    spans: dict[str, list[float]] = {"encode": [], "decode": []}
    for index in range(rounds):
        frame = camera.frame(0, index)
        begun = time.thread_time()
        data = np.frombuffer(codec.encode(frame), np.uint8)
        between = time.thread_time()
        codec.decode(data)
        spans["encode"].append(between - begun)
        spans["decode"].append(time.thread_time() - between)
    return {stage: float(np.median(taken)) * 1e3 for stage, taken in spans.items()}


def crossing(rates: Sequence[float], a: Sequence[float], b: Sequence[float]) -> float | None:
    """The rate at which two curves of delay cross, straight between their points on logarithmic axes."""
    x, d = np.log(rates), np.log(a) - np.log(b)
    for i in range(len(d) - 1):
        if d[i] * d[i + 1] < 0.0:
            return float(np.exp(x[i] - d[i] * (x[i + 1] - x[i]) / (d[i + 1] - d[i])))
    return None


def _curves(rates_mbps: Sequence[float], curves: dict[str, list[float]]) -> Any:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, delays in curves.items():
            axes.loglog(rates_mbps, delays, "o-", label=name)
        at = crossing(rates_mbps, curves["raw"], curves["JPEG"])
        if at is not None:
            axes.axvline(at, linestyle=":", label=f"they cross at {at:.0f} Mbit/s")
        axes.set(xlabel="rate of the link (Mbit/s)", ylabel="from glass to glass (ms)")
        axes.legend()

    return draw


def histograms(shown: dict[str, Floats], label: str) -> Any:
    """What draws samples by name as histograms over one axis."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low = min(float(values.min()) for values in shown.values())
        high = max(float(np.percentile(values, 99.9)) for values in shown.values())
        for name, values in shown.items():
            bins = np.linspace(low, high + 1e-9, 80)
            axes.hist(
                values,
                bins=bins.tolist(),
                density=True,
                histtype="step",
                label=f"{name}: mean {values.mean():.1f}",
            )
        axes.set(xlabel=label, ylabel="share of a millisecond")
        axes.legend()

    return draw


def _with_law(seen: Seen, law: str) -> Any:
    fit = seen.summary["flows"]["video"]["interarrival_fits"][law]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _, bins, _ = axes.hist(seen.frames, bins=60, density=True, alpha=0.5, label="frames")
        z = (np.asarray(bins) - fit["location"]) / fit["scale"]
        bell = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) if law == "gaussian" else np.exp(-z - np.exp(-z))
        axes.plot(bins, bell / fit["scale"], label=f"{law.capitalize()} law, distance {fit['distance']:.3f}")
        axes.set(xlabel="time between frames (ms)", ylabel="share of a millisecond")
        axes.legend()

    return draw
