"""Gokhale, Nair, Chaudhuri 2017: dynamic packetization against constant and variable bit rate traffic.

```text
packet sizes ─► rates, overheads             dumbbell ─► readings of the rule (`readings.py`)
                                                      ─► peaks and jitters, boundaries, five phases, bounds
                                                      ─► comparisons with other works (`comparisons.py`)
```
The experiments run in the profile of `scenarios/dumbbell-dpm.toml`. (Gokhale 2017, section 6)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.lab.reproduce import bounds, comparisons, curves, dumbbell, readings
from tcpsbed.lab.reproduce.dumbbell import Case, Seen
from tcpsbed.lab.reproduce.study import WHOLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed.lab.reproduce.study import Study

GUARDED, PUBLISHED = "dpm-g", "dpm"
STREAMS = {"C1, 260": (0.5, 6.5, 260.0), "C2, 90": (2.5, 6.5, 90.0), "C3, 50": (4.5, 6.5, 50.0)}
"""The constant cross streams of the five phases: from and until when (s), and their rate (kbit/s)."""
LIMIT_MS = 30.0
"""Haptic delay that quality of service allows. (Gokhale 2017)"""
FLUID = "10 B"
"""Size of cross packets so small that the cross traffic is nearly a fluid; the bounds are derived for a fluid."""
STILL = ("traffic.vbr.vary='constant'",)
"""Cross traffic whose variable part does not vary: that of the bounds and of the reference simulation."""
MEDIA = ("haptic", "audio", "video")


def reproduce(study: Study) -> None:
    """Runs all experiments of the paper that can be run."""
    rates(study)
    readings.compare(study)
    peaks(study)
    fluid(study)
    losses(study)
    jitters_held(study)
    reports(study)
    phases(study)
    steady(study)
    low_rates(study)
    comparisons.compare(study)
    pottery(study)


def rates(study: Study) -> None:
    """Rate for every k, and what part of it is headers."""

    def run(k: int) -> Seen:
        return dumbbell.run(study, Case("fixed-k", 0.0, 2.0, f"k = {k}"))

    seen = study.each(range(1, 8 if study.full else 5), run)
    means = {
        k: {flow: s.sent[flow][1][20:-20].mean() * 8.0 / k for flow in ("haptic", "kinematic")}
        for k, s in seen.items()
    }
    for k in range(1, 5):
        study.compare(f"rate-backward-k{k}", means[k]["haptic"])
        study.compare(f"rate-forward-k{k}", means[k]["kinematic"])
    study.compare("overhead-backward", 100.0 * (1.0 - 560.0 / means[1]["haptic"]))
    study.compare("overhead-forward", 100.0 * (1.0 - 192.0 / means[1]["kinematic"]))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for flow, name in (
            ("haptic", "return path: force, sound, picture"),
            ("kinematic", "way there: motion"),
        ):
            axes.plot(list(means), [m[flow] for m in means.values()], "o-", label=name)
        axes.set(xlabel="fragments merged in a packet, k", ylabel="rate on the wire (kbit/s)", ylim=(0, None))
        axes.legend()

    study.figure("rate-over-k", "Rate of the telehaptic streams for every k", draw)


def peaks(study: Study) -> None:
    """Table I: largest delays and jitters of the published rule at 400 kbit/s, medians over seeds of the background."""
    duration, seeds = (500.0, range(1, 6)) if study.full else (20.0, range(1, 4))
    cases = {
        (name, seed): Case(name, 400.0, duration, settings=(f"seed={seed}",))
        for name in (PUBLISHED, GUARDED, "dpm-multistep")
        for seed in seeds
    }
    others = {name: Case(name, 400.0, 20.0) for name in ("no-merge", "fixed-k")}
    seen = study.each((*cases.values(), *others.values()), lambda case: dumbbell.run(study, case))
    published = [seen[cases[PUBLISHED, seed]] for seed in seeds]
    for flow in MEDIA:
        for key, of in (
            ("peak", [s.peak(flow) for s in published]),
            ("jitter", [s.jitter(flow)[1] for s in published]),
        ):
            by_seed = {f"seed {seed}": ms for seed, ms in zip(seeds, of, strict=True)}
            study.compare(f"{key}-{flow}", float(np.median(of)), beside=by_seed)
    study.compare("peak-guarded", max(seen[cases[GUARDED, seed]].peak("haptic") for seed in seeds))
    several = [seen[cases["dpm-multistep", seed]].peak("haptic") for seed in seeds]
    more = [ms - one.peak("haptic") for ms, one in zip(several, published, strict=True)]
    beside = {"least with multistep increase (ms)": min(several), "largest (ms)": max(several)}
    study.compare("multistep", min(more), beside=beside)
    for key, flow, bound in (("eq8", "audio", bounds.audio_ms), ("eq9", "video", bounds.video_ms)):
        study.compare(key, max(s.peak(flow) - bound(s.peak("haptic")) for s in published))
    first = published[0]
    shown = {name: seen[cases[name, 1]] for name in (PUBLISHED, GUARDED, "dpm-multistep")}
    shown |= {name: seen[case] for name, case in others.items()}
    study.figure("delay-400", "Haptic delay, step of 400 kbit/s at 0.5 s", curves.over_time(shown, 5.0))
    study.figure(
        "k-400",
        "Fragments in a packet and rate of the source, published rule, 400 kbit/s",
        curves.k_and_rate(first, 6.0),
    )
    study.figure("media-400", "Delay of sound and picture, 400 kbit/s", curves.media(first, 5.0))


def fluid(study: Study) -> None:
    """The same beside a background that does not vary, which was chosen because it gives the published peak."""
    seen = dumbbell.run(study, Case(PUBLISHED, 400.0, 500.0 if study.full else 20.0, settings=STILL))
    for flow in MEDIA:
        study.compare(f"peak-{flow}-fluid", seen.peak(flow))
        study.compare(f"jitter-{flow}-fluid", seen.jitter(flow)[1])
    study.compare("peak-haptic-profile", seen.peak("haptic"))


def losses(study: Study) -> None:
    """Where loss begins, with and without merging; delay and throughput over the rate of cross traffic."""
    duration = 500.0 if study.full else 100.0
    grid = [0, 100, 200, 260, 300, 350, 400, 410]
    near = [401, 402, 403, 404, 405, 406, 407, 408, 409]
    cases = [Case(name, r, duration) for name in (PUBLISHED, GUARDED) for r in grid]
    plain_rates = (*range(13), 100, 200, 300, 400)
    cases += [Case("no-merge", r, duration) for r in plain_rates]
    if study.full:
        cases += [Case(name, r, duration) for name in (PUBLISHED, GUARDED) for r in near]
    seen = study.each(dict.fromkeys(cases), lambda case: dumbbell.run(study, case))
    guarded = {c.cbr_kbps: s for c, s in seen.items() if c.transport == GUARDED}
    plain = {c.cbr_kbps: s for c, s in seen.items() if c.transport == "no-merge"}
    published = {c.cbr_kbps: s for c, s in seen.items() if c.transport == PUBLISHED}
    for suffix, of in (("", published), ("-guarded", guarded)):
        study.compare(f"loss-400{suffix}", max(s.loss("haptic") for r, s in of.items() if r <= 400))
    study.compare("loss-410", published[410].loss("haptic"))
    study.compare("no-merge-400", plain[400].offered_loss())
    for key, of in (("no-merge", plain), ("dpm", published), ("dpm-guarded", guarded)):
        if study.full:
            study.compare(f"threshold-{key}", _boundary(of))
        else:
            study.cannot(f"threshold-{key}", WHOLE)
    shown = {"published DPM": published, "guarded DPM": guarded, "no merging": plain}
    study.figure("over-cbr", "Over the rate of constant cross traffic", curves.over_cbr(shown))
    study.figure(
        "media-over-cbr", "Sound and picture over the rate of cross traffic", curves.media_over_cbr(shown)
    )


def _boundary(seen: dict[float, Seen]) -> float:
    """The largest rate below which nothing is lost."""
    lossy = [r for r, s in seen.items() if s.offered_loss() > 0.0]
    return max(r for r in seen if r < min(lossy, default=np.inf))


def jitters_held(study: Study) -> None:
    """What holding k after congestion saves of jitter and of changes."""
    duration = 500.0 if study.full else 60.0
    cases = {
        (name, rate, size): Case(name, rate, duration, settings=_packets(f"{size} B"))
        for name in (PUBLISHED, "dpm-holdup")
        for rate, size in ((260.0, 50), (400.0, 50), (400.0, 137))
    }
    seen = study.each(cases.values(), lambda case: dumbbell.run(study, case))

    def saved(rate: float, of: str, size: int = 50) -> float:
        plain, held = (seen[cases[name, rate, size]] for name in (PUBLISHED, "dpm-holdup"))
        count = {name: len(s.merging["haptic"][0]) for name, s in (("plain", plain), ("held", held))}
        if of == "changes":
            return 100.0 * (1.0 - count["held"] / count["plain"])
        return 100.0 * (1.0 - held.jitter("haptic")[0] / plain.jitter("haptic")[0])

    for key, name in (("jitter-mean", PUBLISHED), ("jitter-mean-holdup", "dpm-holdup")):
        study.compare(key, 1e3 * seen[cases[name, 400.0, 50]].jitter("haptic")[0])
    study.compare("holdup", saved(400.0, "jitter"))
    study.compare("holdup-260", saved(260.0, "jitter"))
    study.compare("holdup-changes", saved(400.0, "changes"))
    study.compare("holdup-260-changes", saved(260.0, "changes"))
    study.compare("holdup-137", saved(400.0, "jitter", 137))
    shown = {name: seen[cases[name, 400.0, 50]] for name in (PUBLISHED, "dpm-holdup")}
    study.figure("holdup", "k with and without hold-up, 400 kbit/s", curves.ks(shown, 8.0))


def reports(study: Study) -> None:
    """Control by a report every half second."""
    cases = {n: Case(n, 400.0, 6.0) for n in ("rtcp-report", PUBLISHED)}
    seen = study.each(cases.values(), lambda case: dumbbell.run(study, case))
    reported = seen[cases["rtcp-report"]]
    time, k = reported.merging["haptic"]
    study.compare("rtcp-reaction", float(time[k > 1].min(initial=np.inf)))
    peak, plain = reported.peak("haptic"), seen[cases[PUBLISHED]].peak("haptic")
    beside = {"with reports (ms)": peak, "by the published rule (ms)": plain}
    study.compare("rtcp-peak", peak - plain, beside=beside)
    shown = {n: seen[c] for n, c in cases.items()}
    study.figure("reports", "Feedback every half second and in every header", curves.over_time(shown, 3.0))


def phases(study: Study) -> None:
    """Five phases of cross traffic: the published rule against its limit, the guarded one against the reference model."""
    cases = {
        name: Case(name, scenario="dumbbell-phases", duration_s=9.0, settings=settings)
        for name, settings in ((PUBLISHED, ()), (GUARDED, STILL))
    }
    found = study.each(cases.values(), lambda case: dumbbell.run(study, case))
    published, guarded = found[cases[PUBLISHED]], found[cases[GUARDED]]
    spans = ((0.1, 0.5), (0.5, 2.5), (2.5, 4.5), (4.5, 6.5), (7.0, 9.0))
    for i, (name, span) in enumerate(zip(("quiet", "260", "350", "400", "after"), spans, strict=True)):
        study.compare(f"phase-{i + 1}-{name}", guarded.rate("haptic", *span))
    time, k = guarded.merging["haptic"]
    study.compare("phase-return", float(time[k == 1].max(initial=0.0)) - 6.5)
    study.compare("phase-peak", published.peak("haptic"))
    study.compare("phase-peak-guarded", guarded.peak("haptic"))
    for key, name, seen in (
        ("", "published DPM", published),
        ("-guarded", "guarded DPM, VBR still", guarded),
    ):
        title = f"Five phases of cross traffic on the return path: {name}"
        study.figure(f"phases{key}", title, curves.k_and_rate(seen, 9.0, STREAMS))


def steady(study: Study) -> None:
    """Largest delay once cross traffic has been there for long, beside the bounds. (Gokhale 2017, eq. 7 to 9)"""
    totals = (460, 560, 660, 672, 700, 750, 761, 770, 800)
    duration = 100.0 if study.full else 20.0
    cases = {
        (name, packet, total): Case(name, total - 400.0, duration, settings=(*_packets(packet), *STILL))
        for name, packet in ((GUARDED, "50 B"), (GUARDED, FLUID), (PUBLISHED, FLUID))
        for total in totals
    }
    seen = study.each(cases.values(), lambda case: dumbbell.run(study, case))
    peak = {key: seen[case].peak("haptic", 5.0) for key, case in cases.items()}
    for key, packet in (("bound", "50 B"), ("bound-fluid", FLUID)):
        off = {t: abs(peak[GUARDED, packet, t] - bounds.corrected_ms(float(t))) for t in totals}
        study.worst(key, {f"{total} kbit/s": ms for total, ms in off.items()})
    beyond = {f"{t} kbit/s": peak[PUBLISHED, FLUID, t] - bounds.printed_ms(float(t)) for t in totals}
    study.worst("eq7", beyond)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        fine = np.arange(405, 806)
        axes.plot(fine, [bounds.printed_ms(float(t)) for t in fine], label="equation 7 as printed")
        axes.plot(fine, [bounds.corrected_ms(float(t)) for t in fine], label="corrected")
        for (name, packet), mark in (
            ((GUARDED, "50 B"), "ko"),
            ((GUARDED, FLUID), "k+"),
            ((PUBLISHED, FLUID), "rx"),
        ):
            values = [peak[name, packet, t] for t in totals]
            axes.plot(totals, values, mark, label=f"{name}, cross packets of {packet}")
        axes.set(xlabel="cross traffic (kbit/s)", ylabel="largest haptic delay in steady state (ms)")
        axes.legend()

    study.figure("bounds", "Bounds of the haptic delay, background that does not vary", draw)


def _packets(size: str) -> tuple[str, ...]:
    """Cross traffic in packets of this size."""
    return tuple(f'traffic.{name}.packet="{size}"' for name in ("cbr", "vbr"))


def low_rates(study: Study) -> None:
    """Mean rate of DPM where no merging would do as well."""
    cases = {(v, r): Case(PUBLISHED, float(r), 20.0, settings=v) for v in ((), STILL) for r in range(1, 5)}
    seen = study.each(cases.values(), lambda case: dumbbell.run(study, case))
    mean = {key: seen[case].rate("haptic", 0.5, 20.0) for key, case in cases.items()}
    varied, still = (min(mean[v, r] for r in range(1, 5)) for v in ((), STILL))
    beside = {"beside a background that does not vary (kbit/s)": still}
    study.compare("low-rates", varied, beside=beside)


# Gokhale 2017
def pottery(study: Study) -> None:
    """The setting of the comparison with people: pictures of 9 Mbit/s and force over 10.2 Mbit/s, by turns of transport."""
    duration = f'duration="{60 if study.full else 8} s"'

    def run(kind: str) -> dict[str, Any]:
        settings = [duration, f"channels.telehaptic.transport.kind='{kind}'"]
        return study.run("pottery", settings, lambda run: dict(run.summary["flows"]))

    found = study.each(("no-merge", PUBLISHED), run)
    for kind, flows in found.items():
        study.compare(f"pottery-{kind}", flows["haptic"]["delay_ms"]["mean"])
        study.compare(f"pottery-{kind}-pictures", 100.0 * flows["video"]["loss"])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        names = ("mean", "p99", "max")
        for i, (kind, flows) in enumerate(found.items()):
            delay = flows["haptic"]["delay_ms"]
            pictures = f"{kind}: {100.0 * flows['video']['loss']:.0f} % of the pictures lost"
            axes.bar(np.arange(3) + 0.4 * i - 0.2, [delay[name] for name in names], 0.4, label=pictures)
        axes.axhline(LIMIT_MS, linestyle=":", color="gray")
        axes.set(xticks=range(3), xticklabels=names, ylabel="delay of force (ms)", ylim=(0, 55))
        axes.legend()

    study.figure("pottery", "Pottery: what the people of the comparison felt and saw", draw)
