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
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from tcpsbed import Run, scenarios
from tcpsbed.analysis.records import KINDS
from tcpsbed.runs import session
from tcpsbed.scenarios.compile.builtins import known

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
TREND = ("dpm", "dpm-multistep", "dpm-holdup", "nafcah", "napas")
"""Transports that read the trend of delays at its ends."""
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

HEAD = """# Which transport is best in which network?

For the choice of a transport. All transports but three run in the same scenarios. The tables rank them by the
signal-to-noise ratio ([SNR](glossary.md#snr)) of the force that the operator feels.

```sh
tcpsbed run scenarios/ranking-busy.toml --set 'channels.session.transport="dpm-q"'   # one row, one seed
python tools/rank_transports.py                                                      # measures this page again
```

One [session](glossary.md#session) has commands, force (1 kHz), sound (50 frames/s) and pictures (25 frames/s) in one
[channel](glossary.md#channel). It runs for {seconds} s of [virtual time](glossary.md#virtual-time) with {seeds} seeds.
Each seed has its own losses and jitter, another part of the recorded force, and another start of cross traffic.
[Transports](transports.md) explains the names of transports. The scenarios are `scenarios/ranking-*.toml`.

Contents: [calm](#calm-5-mbits-no-cross-traffic) ·
[busy](#busy-15-mbits-with-600-kbits-of-noisy-cross-traffic-in-packets-of-540-b) ·
[congested](#congested-15-mbits-with-800-kbits-of-cross-traffic) ·
[lossy](#lossy-5--of-packets-lost-in-bursts-of-two-on-average) ·
[jitter](#jitter-up-to-10-ms-of-additional-delay-per-packet-without-reordering) ·
[two paths](#two-paths-each-link-loses-5--of-packets-in-bursts-of-two-on-average)

## How to read the tables

Numbers are means over the seeds. The number behind ± is half of the 95 % interval of the mean (Student's t). It is left out
if it rounds to 0.
**If the intervals of two rows overlap, the table does not distinguish these transports.**

| column | meaning |
|---|---|
| SNR | SNR of the force that a zero-order hold displays. The reference is the same force without losses, \
with every sample delayed by the smallest delay of this run. `exact` means that only rounding to 4-byte floats is left |
| delay | [one-way delay](glossary.md#one-way-delay) of the force: mean / 99th percentile / largest of all seeds |
| late | share of force samples with more than 30 ms of delay |
| lost | share of force samples that never arrived. Samples that a sampler or transport \
[suppressed](glossary.md#suppressed) do not count |
| sound, picture | 99th percentile of the delay of a frame / share of frames lost. A dash means that no frame \
arrived |
| rate | bit rate of the session on the return path, with all headers |

In a name such as `fixed-k, k = 4`, the text behind the comma is a setting. All other settings have their defaults. So
`dpm-g` and `dpm-q` always assume a bottleneck of 1.5 Mbit/s, also in the calm scenario, whose bottleneck has 5 Mbit/s.

| text behind the comma | meaning |
|---|---|
| `weber` | a Weber [deadband](glossary.md#deadband) in front of the transport suppresses force samples |
| `k = 4` | the transport merges four samples into one packet ([k](glossary.md#k)) |
| `10 ms`, `100 ms` | with `scream` and `gcc`: target of the queueing delay. \
`gcc` without such a text has only its adaptive threshold |
| `8 ms`, `15 ms`, `20 ms` | `merge-span`: span of samples in a packet. `repeat`: time between copies. \
`smoothed-sctp`: playout delay |
| `1.1 Mbit/s`, `1.4 Mbit/s` | the rate that the transport is told: `capacity` of `visual-haptic`, `rate` of `alphan` |
| `one way` | all packets use the same link. `multipath` then sends both copies of a packet over this link |
| `duplicate`, `split` | with `multipath` over two links: each packet over both links, or each packet over \
one of them |

* {trend} use the published rule with `trend = "ends"`, one of its
  [readings](telehaptic.md#readings-of-the-published-rule).
* The transports {after} are our versions **after** papers that leave details open ([transports](transports.md)). \
They are not the programs of the authors.
* {unranked} are not in the tables.
  The first would have to know the future, the second needs a controller of the user, the third does not run in virtual
  time.
* With `weber`, `no-merge` and `napas` lose most pictures, even on the calm network. They carry sound and pictures only in
  packets with force samples, and the sampler sends few of those. The ranking is by force alone.
"""
NOTES = {
    "busy": """Half of the cross traffic has a constant bit rate. The other half is noisy: the rate is drawn anew for each
packet.

""",
}
"""What the page says above some tables."""
TITLES = {
    "calm": "Calm: 5 Mbit/s, no cross traffic",
    "busy": "Busy: 1.5 Mbit/s with 600 kbit/s of noisy cross traffic in packets of 540 B",
    "congested": "Congested: 1.5 Mbit/s with 800 kbit/s of cross traffic",
    "lossy": "Lossy: 5 % of packets lost, in bursts of two on average",
    "jitter": "Jitter: up to 10 ms of additional delay per packet, without reordering",
}


STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % points of Student's t for 1, 2, ... degrees of freedom."""


TWO_WAYS = """## Two paths: each link loses 5 % of packets, in bursts of two on average

`scenarios/two-ways.toml` has the same session over two links. The second link carries only packets with the code point
([DSCP](glossary.md#dscp)) 3. The column "rate" counts the first link only.
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
    loaded = scenarios.load(ROOT / "scenarios" / f"{scenario}.toml", settings)
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


def head(seconds: float, seeds: int) -> str:
    """The page above its first table."""
    named = {"trend": TREND, "after": AFTER, "unranked": UNRANKED}
    lists = {key: ", ".join(f"`{name}`" for name in names) for key, names in named.items()}
    text = HEAD.format(seconds=f"{seconds:g}", seeds=seeds, **lists)
    lines = (line if line.startswith("|") else wrapped(line) for line in text.split("\n"))
    return "\n".join(lines)


def wrapped(line: str) -> str:
    """A line of the page, broken at 120 characters where names made it longer."""
    indent = "  " if line.startswith(("* ", "  ")) else ""
    return (
        textwrap.fill(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        if len(line) > 125
        else line
    )


def main() -> None:
    """Runs all and writes the page, or prints the tables of some."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, 11))
    parser.add_argument("--only", nargs="*", choices=sorted(candidates()), default=None)
    options = parser.parse_args()
    chosen = options.only or list(candidates())
    text = head(options.seconds, options.seeds)
    jobs = [(name, seed) for name in chosen for seed in range(1, options.seeds + 1)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for scenario in SCENARIOS:
            rows = list(pool.map(lambda job, s=scenario: one(s, job[0], options.seconds, job[1]), jobs))
            text += (
                f"\n## {TITLES[scenario]}\n\n{NOTES.get(scenario, '')}{table(grouped(rows, options.seeds))}"
            )
        ways = [(way, seed) for way in WAYS for seed in range(1, options.seeds + 1)]
        rows = list(pool.map(lambda job: two_ways(job[0], options.seconds, job[1]), ways))
        text += f"\n{TWO_WAYS}\n{table(grouped(rows, options.seeds))}"
    if options.only:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
