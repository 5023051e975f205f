"""Our own controller `dpm-q` beside the published rule in its readings, its guarded form, fixed merging and an oracle.

```text
background packets x VBR model x R_cbr ─► step at 0.5 s, end at 6.5 s ─► peak, delay after 1 s, time to k = 1, rate, loss
                                          end at 3 s, again at 4 s     ─► the same of the second step
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.lab.reproduce import dumbbell
from tcpsbed.lab.reproduce.curves import Draw
from tcpsbed.lab.reproduce.dumbbell import Case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from tcpsbed.lab.reproduce.study import Study

LIMIT_MS, ONSET_S, END_S, RUN_S = 30.0, 0.5, 6.5, 8.0
SIZES = (50, 137, 540, 1054)
MODELS = ("constant", "per-packet")
ORACLE = ("timetable-k", "at_ms = [0, 531], k = [1, 4]")
"""Switches one feedback delay, 2 tau + 1 ms, after the onset. (Gokhale 2017, eq. 7 to 9)"""
PAUSE_S = (3.0, 4.0)
"""When a step that comes twice ends first, and comes again."""
ORACLE_TWICE = ("timetable-k", "at_ms = [0, 531, 3000, 4031], k = [1, 4, 1, 4]")
FIXED, OWN, GUARDED = ("fixed-k", "k = 4"), ("dpm-q", ""), ("dpm-g", "")
Place = tuple[float, int, str]
"""R_cbr, bytes of a packet, how the rate varies."""
READINGS = {
    "as read": ("dpm", ""),
    "strict trend": ("dpm", "trend = 'strict'"),
    "least-squares trend": ("dpm", "trend = 'slope'"),
    "no trend test": ("dpm", "trend = 'ignored'"),
    "no settling": ("dpm", "settle = 'never'"),
    "round trip settling": ("dpm", "settle = 'round-trip'"),
    "7 differences": ("dpm", "differences = 7"),
    "repeats count": ("dpm", "repeats = true"),
    "guarded": GUARDED,
    "fixed k = 4": FIXED,
    "dpm-q": OWN,
}


@dataclass(frozen=True)
class Setting:
    """A controller against one kind of background."""

    kind: str
    parameters: str
    cbr_kbps: float
    bytes: int
    model: str
    clocks_ppm: float = 0.0
    """How fast the operator's clock drifts; unless it is 0, it is 250 ms ahead at the start."""
    seed: int = 1
    twice: bool = False

    def case(self) -> Case:
        """The run."""
        packets = [f'traffic.{name}.packet="{self.bytes} B"' for name in ("cbr", "vbr")]
        drift = f'nodes.op.clock.drift="{self.clocks_ppm} ppm"'
        apart = ['nodes.op.clock.offset="250 ms"', drift] if self.clocks_ppm else []
        settings = (
            *packets,
            f'traffic.vbr.vary="{self.model}"',
            f'traffic.cbr.stop="{END_S} s"',
            f"seed={self.seed}",
            *apart,
            *_pause(self.twice),
        )
        return Case(self.kind, self.cbr_kbps, RUN_S, self.parameters, settings)


@dataclass(frozen=True)
class Score:
    """What is asked of a controller: delays in ms, times in s, rate in kbit/s, loss in percent."""

    peak: float
    later: float
    back: float
    rate: float
    loss: float
    changes: int


def score(study: Study, setting: Setting) -> Score:
    """Runs a setting, and judges its last step. Delays are true ones: of clocks that differ, the offset is known."""
    seen = dumbbell.run(study, setting.case())
    time, delay = seen.delay["haptic"]
    if setting.clocks_ppm:
        delay = delay - 250.0 - 1e-3 * setting.clocks_ppm * time
    ks_at, ks = seen.merging["haptic"]
    ended = float(seen.k_at("haptic", np.array([END_S]))[0])
    ones = ks_at[(ks_at > END_S) & (ks == 1)]
    back = 0.0 if ended == 1 else float(ones[0]) - END_S if len(ones) else np.inf
    onset_s = PAUSE_S[1] if setting.twice else ONSET_S
    return Score(
        peak=float(delay[(time >= onset_s) & (time < onset_s + 1)].max()),
        later=float(delay[(time >= onset_s + 1) & (time < END_S)].max()),
        back=back,
        rate=seen.rate("haptic", onset_s, END_S),
        loss=seen.loss("haptic"),
        changes=len(ks),
    )


def reproduce(study: Study) -> None:
    """Runs all settings."""
    rates = (0.0, 4.0, 100.0, 260.0, 350.0, 400.0, 406.0) if study.full else (0.0, 4.0, 260.0, 400.0)
    grid = [(r, b, m) for r in rates for b in SIZES for m in MODELS]
    kinds = (OWN, FIXED, ORACLE, GUARDED)
    settings = [_setting(kind, place) for kind in kinds for place in grid]
    found = study.each(settings, lambda setting: score(study, setting))
    by = {kind: {place: found[_setting(kind, place)] for place in grid} for kind in kinds}
    judge(study, by, "", [b for b in SIZES if b < 1054])
    judge(study, by, "-1054", [1054])
    study.compare("loss", max(s.loss for s in by[OWN].values()))
    noisy = [s.rate for p, s in by[OWN].items() if p[0] <= 4 and p[2] != "constant"]
    study.compare("low-rates-noisy", min(noisy))
    clocks(study)
    twice(study)
    held_out(study)
    study.figure("trade", "Peak, time to k = 1 and false alarms", _trade(by))
    readings(study)


Scores = dict[tuple[str, str], dict[Place, Score]]
"""By transport and parameters, then by background."""


def _setting(kind: tuple[str, str], place: Place) -> Setting:
    name, parameters = kind
    cbr_kbps, size, model = place
    return Setting(name, parameters, cbr_kbps, size, model)


def _pause(twice: bool) -> list[str]:
    running = [
        f'{{ at = "{at} s", traffic = "cbr", running = {on} }}'
        for at, on in zip(PAUSE_S, ("false", "true"), strict=True)
    ]
    return [f"events=[{', '.join(running)}]"] if twice else []


def judge(study: Study, by: Scores, suffix: str, sizes: Iterable[int]) -> None:
    """Rows for some sizes of packets."""
    own = {place: s for place, s in by[OWN].items() if place[1] in sizes}
    late = [p for p, s in own.items() if by[FIXED][p].later <= LIMIT_MS < s.later]
    study.compare(f"late{suffix}", len(late))
    study.compare(f"oracle{suffix}", max(s.peak - max(by[ORACLE][p].peak, LIMIT_MS) for p, s in own.items()))
    study.compare(f"return{suffix}", max(s.back for p, s in own.items() if p[0] > 4))
    quiet = [s.rate for p, s in own.items() if p[0] <= 4 and p[2] == "constant"]
    study.compare(f"low-rates{suffix}", min(quiet))


def clocks(study: Study) -> None:
    """The same step with clocks that differ."""
    pair = [Setting(*OWN, 400.0, 50, "constant", clocks_ppm=ppm) for ppm in (0.0, 50.0)]
    together, apart = study.each(pair, lambda setting: score(study, setting)).values()
    study.compare("clocks", max(abs(together.peak - apart.peak), abs(together.later - apart.later)))
    study.compare("clocks-return", 1e3 * abs(together.back - apart.back))
    rates, sizes = ((260.0, 350.0, 400.0), (50, 137, 300, 540)) if study.full else ((400.0,), (50, 300))
    others = [Setting(*OWN, rate, size, "constant", clocks_ppm=50.0) for rate in rates for size in sizes]
    study.compare(
        "clocks-back", max(s.back for s in study.each(others, lambda setting: score(study, setting)).values())
    )
    crystals = [Setting(*OWN, 0.0, 50, "constant", clocks_ppm=ppm) for ppm in (-100.0, 100.0)]
    study.compare(
        "clocks-rate",
        min(s.rate for s in study.each(crystals, lambda setting: score(study, setting)).values()),
    )


def twice(study: Study) -> None:
    """A step that ends, and comes again a second later."""
    rates, sizes = ((260.0, 350.0, 400.0), (50, 137, 540)) if study.full else ((400.0,), (50, 540))
    places = [(rate, size, model) for rate in rates for size in sizes for model in MODELS]
    kinds = (OWN, FIXED, ORACLE_TWICE)
    settings = {
        (kind, place): Setting(*kind, place[0], place[1], place[2], twice=True)
        for kind in kinds
        for place in places
    }
    found = study.each(settings.values(), lambda setting: score(study, setting))
    own, fixed, oracle = ({place: found[settings[kind, place]] for place in places} for kind in kinds)
    study.compare("late-again", sum(fixed[p].later <= LIMIT_MS < own[p].later for p in places))
    study.compare("oracle-again", max(own[p].peak - max(oracle[p].peak, LIMIT_MS) for p in places))
    study.compare("return-again", max(own[p].back for p in places))


def held_out(study: Study) -> None:
    """The same aims in cases that were not used to choose the constants."""
    sizes = (100, 200, 450, 900) if study.full else (200, 900)
    rates = (220.0, 310.0, 385.0) if study.full else (385.0,)
    seeds = (4, 5) if study.full else (4,)
    places = [(r, b, m, s) for r in rates for b in sizes for m in ("piecewise", "size") for s in seeds]
    kinds = (OWN, FIXED, ORACLE)
    settings = {
        (kind, place): Setting(*kind, place[0], place[1], place[2], seed=place[3])
        for kind in kinds
        for place in places
    }
    found = study.each(settings.values(), lambda setting: score(study, setting))

    def of(kind: tuple[str, str], place: tuple[float, int, str, int]) -> Score:
        return found[settings[kind, place]]

    late = [p for p in places if of(FIXED, p).later <= LIMIT_MS < of(OWN, p).later]
    study.compare("late-held", len(late))
    excess = [of(OWN, p).peak - max(of(ORACLE, p).peak, LIMIT_MS) for p in places]
    study.compare("oracle-held", max(excess))
    study.compare("return-held", max(of(OWN, p).back for p in places))
    study.compare("loss-held", max(of(OWN, p).loss for p in places))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for name, mark in (("piecewise", "o"), ("size", "s")):
            chosen = [(p, e) for p, e in zip(places, excess, strict=True) if p[2] == name]
            left.plot([p[1] for p, _ in chosen], [e for _, e in chosen], mark, label=name, alpha=0.6)
            right.plot(
                [p[1] for p, _ in chosen],
                [min(of(OWN, p).back, 1.5) for p, _ in chosen],
                mark,
                label=name,
                alpha=0.6,
            )
        left.axhline(2.0, color="gray", linestyle=":")
        left.set(xlabel="packets of the background (B)", ylabel="peak above oracle or 30 ms (ms)")
        right.axhline(0.5, color="gray", linestyle=":")
        right.set(xlabel="packets of the background (B)", ylabel="time to k = 1 (s)")
        left.legend()

    study.figure("held-out", "dpm-q where it was not tuned", draw)


def readings(study: Study) -> None:
    """Largest delay over the size of background packets, for the published rule in each reading and for others."""
    sizes = (10, 25, 50, 75, 100, 137, 200, 300, 540, 800, 1054) if study.full else (50, 137, 540)
    settings = {(n, b): Setting(*k, 400.0, b, "constant") for n, k in READINGS.items() for b in sizes}
    found = study.each(settings.values(), lambda setting: score(study, setting))
    curves = {
        n: [max(found[settings[n, b]].peak, found[settings[n, b]].later) for b in sizes] for n in READINGS
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for i, (name, peaks) in enumerate(curves.items()):
            axes.plot(sizes, peaks, "o-" if i > 7 else ".--", label=name, linewidth=2 if i > 7 else 1)
        axes.axhline(LIMIT_MS, color="gray", linestyle=":")
        axes.set(xscale="log", xlabel="packets of the background (B)", ylabel="largest haptic delay (ms)")
        axes.legend(fontsize=7)

    study.figure("readings", "DPM in each reading against the packets of the background, 400 kbit/s", draw)


def _trade(by: Scores) -> Draw:
    names = {OWN: "dpm-q", GUARDED: "dpm-g", FIXED: "fixed k = 4", ORACLE: "oracle"}

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        for kind in (OWN, GUARDED):
            busy = [(p, s) for p, s in by[kind].items() if p[0] >= 100]
            over = [s.peak - by[ORACLE][p].peak for p, s in busy]
            left.plot(over, [min(s.back, 1.5) for _, s in busy], "o", label=names[kind], alpha=0.6)
            quiet = [(p, s) for p, s in by[kind].items() if p[0] <= 4]
            sizes = [p[1] for p, _ in quiet]
            middle.plot(sizes, [s.changes / RUN_S for _, s in quiet], "o", label=names[kind], alpha=0.6)
            right.plot(sizes, [s.rate for _, s in quiet], "o", label=names[kind], alpha=0.6)
        left.set(xlabel="peak above that of the oracle (ms)", ylabel="time to k = 1 (s)")
        for axes, what in ((middle, "changes of k a second (1/s)"), (right, "rate (kbit/s)")):
            axes.set(
                xlabel="packets of the background (B)",
                ylabel=what,
                title="R_cbr 0 and 4 kbit/s",
                xscale="log",
            )
        left.legend()

    return draw
