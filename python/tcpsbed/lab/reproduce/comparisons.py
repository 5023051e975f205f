"""Rules that Gokhale 2017 compares with: adaptive sampling, visual-haptic multiplexing, and NAFCAH.

```text
force of a contact ─► Weber sampling │ DPM │ hold-up ─► SNR of what is felt        forward, R_cbr 780 ─► NAFCAH │ DPM
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpsbed.lab.reproduce import curves, dumbbell
from tcpsbed.lab.reproduce.dumbbell import Case, Seen
from tcpsbed.lab.reproduce.recordings import DATA, absent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed.lab.reproduce.study import Study

FORCE, FORCE_S = DATA / "haptic" / "kinesthetic_1khz" / "sDB.txt", 25.0
"""A recorded contact, three values of force at 1 kHz, and its length."""
WEBER = "hooks.adaptive={ kind = 'code', run = 'weber', at = 'tactile-teleoperator', flow = 'haptic' }"
"""Adaptive sampling at 12 %. (Hinterseer et al. 2008; Gokhale 2017)"""
SAMPLERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "Weber sampling, 12 %": ("udp", "overhead = '62 B'", (WEBER,)),
    "DPM": ("dpm", "", ()),
    "DPM with hold-up": ("dpm-holdup", "", ()),
    "no merging": ("no-merge", "", ()),
}
"""Transport, its parameters and further overrides. What passes the sampler travels at once, in a packet of its own."""
CAPACITY_KBPS = 700
"""What 400 + 400 kbit/s of cross traffic leave of the bottleneck: the capacity that multiplexing is given."""


def compare(study: Study) -> None:
    """Runs all three; what is felt and multiplexed is judged with the recorded force only."""
    if FORCE.exists():
        force = (f"flows.haptic.source={{ recording = '{FORCE}', columns = ['force'] }}", "measure.snr=true")
        felt(study, force)
        multiplexing(study, force)
    else:
        for key, entry in study.expected.items():
            if "recordings" in entry.needs:
                study.cannot(key, absent("contact"))
    forward(study)


# Gokhale 2017; Hinterseer et al. 2008
def felt(study: Study, force: tuple[str, ...]) -> None:
    """SNR of the force that a zero-order hold shows, over the rate of cross traffic."""
    rates = (0.0, 100.0, 200.0, 300.0, 400.0) if study.full else (400.0,)
    duration = 4 * FORCE_S if study.full else FORCE_S
    cases = {
        (name, rate): Case(kind, rate, duration, given, (*force, *more))
        for name, (kind, given, more) in SAMPLERS.items()
        for rate in rates
    }
    seen = study.each(cases.values(), lambda case: dumbbell.run(study, case))
    snr_db = {key: float(seen[case].summary["flows"]["haptic"]["snr_db"]) for key, case in cases.items()}
    weber, plain, held = (snr_db[name, 400.0] for name in list(SAMPLERS)[:3])
    for key, level in (("weber", weber), ("dpm", plain), ("holdup", held)):
        study.compare(f"snr-{key}-level", level, f"with {FORCE.name}")
    study.compare("snr-weber", plain - weber)
    study.compare("snr-holdup", held - plain)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name in SAMPLERS:
            axes.plot(rates, [snr_db[name, rate] for rate in rates], "o-", label=name)
        axes.set(xlabel="constant cross traffic (kbit/s)", ylabel="SNR of the force that is felt (dB)")
        axes.legend()

    study.figure("snr", "SNR of force: adaptive sampling, DPM and hold-up", draw)


# Cizmeci et al. 2014; Gokhale 2017, figure 18
def multiplexing(study: Study, force: tuple[str, ...]) -> None:
    """Visual-haptic multiplexing with a known capacity, beside the published rule, which knows none."""
    given = f"capacity = '{CAPACITY_KBPS} kbit/s'"
    cases = {
        "visual-haptic multiplexing": Case("visual-haptic", 400.0, 20.0, given, (*force, WEBER)),
        "published DPM": Case("dpm", 400.0, 20.0, "", force),
    }
    found = study.each(cases.values(), lambda case: dumbbell.run(study, case))
    seen = {name: found[case] for name, case in cases.items()}
    multiplexed = seen["visual-haptic multiplexing"]
    study.compare("visual-haptic", way_back_kbps(multiplexed))
    study.compare("visual-haptic-loss", multiplexed.loss("haptic"))
    study.figure(
        "visual-haptic",
        "Haptic delay of visual-haptic multiplexing and of the published rule, 400 kbit/s",
        curves.over_time(seen, 8.0),
    )


def way_back_kbps(seen: Seen) -> float:
    """Mean rate of a session at the entry of the return path's bottleneck, with all headers."""
    link = next(link for link in seen.summary["network"] if link["name"] == "l1.backward")
    others = sum(t["bytes"] for t in seen.summary["traffic"] if t["name"].endswith("backward"))
    return float(link["bytes"] + link["dropped_bytes"] - others) * 8e-3 / float(seen.summary["ran_s"])


# Kokkonis et al. 2015; Gokhale 2017, section 6
def forward(study: Study) -> None:
    """NAFCAH, DPM and k = 4 on the outbound path, beside 780 kbit/s."""
    duration = 100.0 if study.full else 12.0
    there = ("traffic.cbr.on='l1.forward'",)
    cases = {name: Case(name, 780.0, duration, "", there) for name in ("nafcah", "dpm", "dpm-g")}
    cases["fixed-k"] = Case("fixed-k", 780.0, duration, "", (*there, "traffic.vbr.vary='constant'"))
    found = study.each(cases.values(), lambda case: dumbbell.run(study, case))
    seen = {name: found[case] for name, case in cases.items()}
    study.compare("nafcah", seen["nafcah"].peak("kinematic"))
    study.compare("nafcah-dpm", seen["dpm"].peak("kinematic"))
    study.compare("nafcah-guarded", seen["dpm-g"].peak("kinematic"))
    study.compare("nafcah-fixed", seen["fixed-k"].peak("kinematic"))
    study.figure(
        "nafcah",
        "Delay of the outbound path, 780 kbit/s: NAFCAH, published DPM, guarded DPM, k = 4",
        curves.over_time(seen, 8.0, "kinematic"),
    )
