"""Every transport on the same set of scenarios; writes the tables of docs/ranking.md.

    .venv/bin/python tools/rank_transports.py [--seconds 20] [--seeds 5] [--only NAME ...]

The scenarios are `scenarios/ranking-*.toml`. Each seed has losses and jitter of its own, another stretch of the recorded
force, and other traffic that begins at another moment. Delays are those of the haptic flow, one way; late is above 30 ms
[Gokhale 2017: QoS limits]; SNR is that of what a zero-order hold displays [Gokhale 2017: SNR]; the rate is that of the way
back with all headers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from tcpsbed import config, session
from tcpsbed.analysis import Run
from tcpsbed.analysis.records import KINDS
from tcpsbed.config.compile.builtins import known

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "ranking.md"
SCENARIOS = ("calm", "busy", "congested", "lossy", "jitter")
LATE_NS = 30_000_000
EXACT_DB = 120.0
"""Above it only the rounding to 4-byte floats is left."""
WEBER = "hooks.adaptive={ kind = 'code', run = 'weber', at = 'tactile-teleoperator', flow = 'haptic' }"
CANDIDATES: dict[str, tuple[str, ...]] = {
    "udp": ("'udp'",),
    "udp, weber": ("'udp'", WEBER),
    "no-merge": ("'no-merge'",),
    "no-merge, weber": ("'no-merge'", WEBER),
    "fixed-k, k = 4": ("{ kind = 'fixed-k', k = 4 }",),
    "dpm": ("'dpm'",),
    "dpm-multistep": ("'dpm-multistep'",),
    "dpm-holdup": ("'dpm-holdup'",),
    "dpm-g": ("{ kind = 'dpm-g', bottleneck = '1.5 Mbit/s' }",),
    "dpm-q": ("{ kind = 'dpm-q', bottleneck = '1.5 Mbit/s' }",),
    "rtcp-report": ("'rtcp-report'",),
    "nafcah": ("'nafcah'",),
    "napas, weber": ("'napas'", WEBER),
    "etp": ("'etp'",),
    "pahcp": ("'pahcp'",),
    "admux": ("'admux'",),
    "scream, 100 ms": ("'scream'",),
    "scream, 10 ms": ("{ kind = 'scream', target = '10 ms' }",),
    "gcc": ("'gcc'",),
    "gcc, 10 ms": ("{ kind = 'gcc', target = '10 ms' }",),
    "hoip": ("'hoip'",),
    "loss-triggered": ("'loss-triggered'",),
    "merge-span, 8 ms": ("'merge-span'",),
    "visual-haptic, 1.1 Mbit/s": ("{ kind = 'visual-haptic', capacity = '1.1 Mbit/s' }",),
    "alphan, 1.4 Mbit/s": ("{ kind = 'alphan', rate = '1.4 Mbit/s' }",),
    "nack": ("'nack'",),
    "coarse-copy": ("'coarse-copy'",),
    "smoothed-sctp, 20 ms": ("'smoothed-sctp'",),
    "irtp": ("'irtp'",),
    "multipath, one way": ("'multipath'",),
    "parity": ("'parity'",),
    "repeat, 15 ms": ("'repeat'",),
    "rtp": ("'rtp'",),
    "tcp": ("'tcp'",),
    "quic": ("'quic'",),
}
"""By name in the table: the transport of the channel, and further overrides. Others run with their defaults."""
WAYS: dict[str, str] = {
    "udp, one way": "'udp'",
    "multipath, duplicate": "'multipath'",
    "multipath, split": "{ kind = 'multipath', mode = 'split' }",
}
"""What `scenarios/two-ways.toml` compares: one way, every datagram both ways, each datagram one of them."""
UNRANKED = ("timetable-k", "telehaptic", "kernel-tcp")
"""Transports that cannot run without parameters or a controller of the user's, or in virtual time."""
AFTER = (
    "hoip",
    "alphan",
    "smoothed-sctp",
    "irtp",
    "visual-haptic",
    "merge-span",
    "loss-triggered",
    "nack",
    "coarse-copy",
    "nafcah",
    "etp",
    "napas",
    "admux",
    "pahcp",
    "multipath",
)
"""Transports that are ours after papers which leave their details open."""

HEAD = """# Transports on the same scenarios

Written by `python tools/rank_transports.py`. One session with commands, force (1 kHz), sound (50 frames/s) and pictures (25
frames/s) in one channel, {seconds} s of virtual time, {seeds} seeds, best SNR of the force first. Each seed has losses and
jitter of its own, another stretch of the recorded force, and other traffic that begins at another moment.
[transports.md](transports.md) says what the names mean; the scenarios are `scenarios/ranking-*.toml`.
Rows of `dpm`, `dpm-multistep`, `dpm-holdup`, `nafcah`, `napas` read the published rule with `trend = "ends"`: they speak of
that [reading](telehaptic.md#readings-of-the-published-rule).

Rows of {after} are of our versions **after** papers that leave their details open ([transports.md](transports.md)), not of
their authors' programs. {unranked} are not here: an oracle needs to be told when, a
controller of the user's is not ours, and the kernel's TCP has no virtual time.

Numbers are means over the seeds, ± half the 95 % interval of the mean (Student's t) where that is not 0 to the digits
shown. **Rows whose intervals overlap are not told apart by this table.**

* **delay**: one way, of the force: mean, 99th percentile, and the longest of any seed. **late**: share above 30 ms.
* **lost**: share of force samples that never came; samples that a sampler or transport kept back do not count.
* **SNR**: of the force that a zero-order hold displays once a period, against a network without losses and
  with the smallest delay seen.
* **sound**, **picture**: 99th percentile of the delay of a frame, and the share lost. **rate**: way back, all headers.
"""
TITLES = {
    "calm": "Calm: 5 Mbit/s, nothing else on the link",
    "busy": "Busy: 1.5 Mbit/s with 600 kbit/s of noisy traffic in packets of 540 B",
    "congested": "Congested: 1.5 Mbit/s with 800 kbit/s of other traffic",
    "lossy": "Lossy: 5 % of packets lost in bursts of two",
    "jitter": "Jitter: up to 10 ms more for each packet, in order",
}


STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % points of Student's t for 1, 2, ... degrees of freedom."""


TWO_WAYS = """## Two ways: each link loses 5 % of packets in bursts of two

`scenarios/two-ways.toml`: the session of the others over two links, of which the second is for packets with code point 3.
The rate is that of the first link.
"""


@dataclass(frozen=True)
class Row:
    """What a transport did in a scenario, with one seed."""

    name: str
    delay_ms: tuple[float, float, float] | None
    late: float
    lost: float
    snr_db: float | None
    frames: dict[str, tuple[float | None, float]]
    rate_kbps: float


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with half of its 95 % interval; `nan` where a seed has no value."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: list[float]) -> Mean:
        """The mean of some values."""
        if len(values) < 2:
            return cls(values[0], 0.0)
        last = STUDENT[min(len(values) - 1, len(STUDENT)) - 1]
        return cls(fmean(values), last * stdev(values) / len(values) ** 0.5)

    def text(self, digits: int, scale: float = 1.0, unit: str = "") -> str:
        """With so many digits behind the point."""
        if self.mean != self.mean:
            return "–"
        half = f"{scale * self.half:.{digits}f}"
        spread = f" ± {half}" if float(half) > 0.0 else ""
        return f"{scale * self.mean:.{digits}f}{spread}{unit}"


def ratio_db(row: Row) -> float:
    """The ratio of signal to noise: that of a signal without noise where there is none, no signal where nothing came."""
    if row.snr_db is None:
        return EXACT_DB
    return 0.0 if row.snr_db != row.snr_db else min(row.snr_db, EXACT_DB)


def cells(rows: list[Row]) -> list[str]:
    """What a transport did with several seeds, as texts."""
    ratio = Mean.of([ratio_db(row) for row in rows])
    delays = [row.delay_ms for row in rows if row.delay_ms is not None]
    mean, p99 = (Mean.of([d[i] for d in delays]) if delays else Mean(float("nan"), 0.0) for i in (0, 1))
    longest = f"{max(d[2] for d in delays):.1f}" if delays else "–"
    frames = []
    for flow in ("audio", "video"):
        times = [row.frames[flow][0] for row in rows]
        known_ms = [time for time in times if time is not None]
        time = Mean.of(known_ms).text(0) if known_ms else "–"
        frames.append(f"{time} / {Mean.of([row.frames[flow][1] for row in rows]).text(1, 100.0, ' %')}")
    return [
        rows[0].name,
        "exact" if ratio.mean >= EXACT_DB else ratio.text(1),
        f"{mean.text(1)} / {p99.text(1)} / {longest}",
        Mean.of([row.late for row in rows]).text(1, 100.0, " %"),
        Mean.of([row.lost for row in rows]).text(1, 100.0, " %"),
        *frames,
        Mean.of([row.rate_kbps for row in rows]).text(0),
    ]


def candidates() -> dict[str, tuple[str, ...]]:
    """All of the above, and every built-in transport that is not among them."""
    covered = {name.split(",")[0] for name in CANDIDATES} | set(UNRANKED)
    return CANDIDATES | {
        name: (f"'{name}'",) for name in known().get("transports", ()) if name not in covered
    }


def measure(run: Run, name: str) -> Row:
    """The numbers of a finished run."""
    flows = run.summary["flows"]
    haptic = flows["haptic"]
    rows = np.asarray(run.records)
    number = list(flows).index("haptic")
    delivered = rows[(rows["kind"] == 1 + KINDS.index("delivered")) & (rows["flow"] == number)]
    delay = haptic["delay_ms"]
    back = next(link for link in run.summary["network"] if link["name"] == "l1.backward")
    others = sum(t["bytes"] for t in run.summary["traffic"] if t["name"].endswith("backward"))
    return Row(
        name,
        (delay["mean"], delay["p99"], delay["max"]) if delay else None,
        float((delivered["value"] > LATE_NS).mean()) if len(delivered) else 0.0,
        haptic["loss"],
        haptic["snr_db"] if haptic["delivered"] else float("nan"),
        {f: ((flows[f]["delay_ms"] or {}).get("p99"), flows[f]["loss"]) for f in ("audio", "video")},
        (back["bytes"] + back["dropped_bytes"] - others) * 8e-3 / run.summary["ran_s"],
    )


def variation(scenario: str, seed: int) -> list[str]:
    """The overrides of a seed: losses and jitter, the stretch of the recording, the start of other traffic."""
    settings = [f"seed={seed}", f'flows.haptic.source.start="{3.0 + 0.7 * (seed - 1):.1f} s"']
    if scenario in ("busy", "congested"):
        settings.append(f'traffic.cbr.start="{2.0 + 0.00037 * (seed - 1):.5f} s"')
    return settings


def one(scenario: str, name: str, seconds: float, seed: int = 1) -> Row:
    """Runs a transport on a scenario."""
    transport, *more = candidates()[name]
    settings = [f"channels.session.transport={transport}", *more, *variation(scenario, seed)]
    return execute(f"ranking-{scenario}", name, seconds, settings)


def two_ways(name: str, seconds: float, seed: int = 1) -> Row:
    """Runs one of `WAYS` over two links, each of which loses packets. The rate is that of the first one."""
    return execute("two-ways", name, seconds, [f"channels.session.transport={WAYS[name]}", f"seed={seed}"])


def execute(scenario: str, name: str, seconds: float, settings: list[str]) -> Row:
    """Runs a scenario with some overrides."""
    settings = [f'duration="{seconds} s"', *settings]
    loaded = config.load(ROOT / "scenarios" / f"{scenario}.toml", settings)
    folder = Path(tempfile.mkdtemp(prefix="tcpsbed-ranking-"))
    try:
        session.execute(loaded, world="virtual", out=folder, samples=False)
        return measure(Run(folder), name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def table(groups: list[list[Row]]) -> str:
    """A table of rows with several seeds each, the best mean ratio of signal to noise first."""
    columns = [
        "transport",
        "SNR (dB)",
        "delay (ms)",
        "late",
        "lost",
        "sound (ms)",
        "picture (ms)",
        "rate (kbit/s)",
    ]
    order = sorted(groups, key=lambda rows: -fmean(ratio_db(row) for row in rows))
    lines = [columns, ["---"] * len(columns), *(cells(rows) for rows in order)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def grouped(rows: list[Row], seeds: int) -> list[list[Row]]:
    """The rows of each transport."""
    return [rows[i : i + seeds] for i in range(0, len(rows), seeds)]


def main() -> None:
    """Runs all and writes the page, or prints the tables of some."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, 11))
    parser.add_argument("--only", nargs="*", choices=sorted(candidates()), default=None)
    options = parser.parse_args()
    chosen = options.only or list(candidates())
    after, unranked = (", ".join(f"`{name}`" for name in names) for names in (AFTER, UNRANKED))
    text = HEAD.format(seconds=f"{options.seconds:g}", seeds=options.seeds, after=after, unranked=unranked)
    jobs = [(name, seed) for name in chosen for seed in range(1, options.seeds + 1)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for scenario in SCENARIOS:
            rows = list(pool.map(lambda job, s=scenario: one(s, job[0], options.seconds, job[1]), jobs))
            text += f"\n## {TITLES[scenario]}\n\n{table(grouped(rows, options.seeds))}"
        ways = [(way, seed) for way in WAYS for seed in range(1, options.seeds + 1)]
        rows = list(pool.map(lambda job: two_ways(job[0], options.seconds, job[1]), ways))
        text += f"\n{TWO_WAYS}\n{table(grouped(rows, options.seeds))}"
    if options.only:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
