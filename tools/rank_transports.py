"""Every transport on the same set of scenarios; writes the tables of docs/ranking.md.

    .venv/bin/python tools/rank_transports.py [--seconds 20] [--only NAME ...]

The scenarios are `scenarios/ranking-*.toml`. Delays are those of the haptic flow, one way; late is above 30 ms
[PROTOCOLS 1.8]; SNR is that of what a zero-order hold displays [PROTOCOLS 1.7]; the rate is that of the way back with
all headers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tcpsbed import config, session
from tcpsbed.analysis import Run
from tcpsbed.analysis.records import KINDS
from tcpsbed.config.compile.builtins import known

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "ranking.md"
SCENARIOS = ("calm", "congested", "lossy", "jitter")
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
    "rtcp-report": ("'rtcp-report'",),
    "hoip": ("'hoip'",),
    "loss-triggered": ("'loss-triggered'",),
    "merge-span, 8 ms": ("'merge-span'",),
    "visual-haptic, 1.1 Mbit/s": ("{ kind = 'visual-haptic', capacity = '1.1 Mbit/s' }",),
    "alphan, 1.4 Mbit/s": ("{ kind = 'alphan', rate = '1.4 Mbit/s' }",),
    "nack": ("'nack'",),
    "coarse-copy": ("'coarse-copy'",),
    "smoothed-sctp, 20 ms": ("'smoothed-sctp'",),
    "irtp": ("'irtp'",),
    "tcp": ("'tcp'",),
    "quic": ("'quic'",),
}
"""By name in the table: the transport of the channel, and further overrides. Others run with their defaults."""
UNRANKED = ("timetable-k",)
"""Transports that cannot run without parameters."""

HEAD = """# Transports on the same scenarios

Written by `python tools/rank_transports.py`. One session with commands, force (1 kHz), sound (50 frames/s) and pictures (25
frames/s) in one channel, {seconds} s of virtual time, seed 1, best SNR of the force first.
[transports.md](transports.md) says what the names mean; the scenarios are `scenarios/ranking-*.toml`.

* **delay**: one way, of the force: mean, 99th percentile, maximum. **late**: share of samples above 30 ms.
* **lost**: share of force samples that never came; samples that a sampler or transport kept back do not count.
* **SNR**: of the force that a zero-order hold displays once a period, against a network without losses and
  with the smallest delay seen.
* **sound**, **picture**: 99th percentile of the delay of a frame, and the share lost. **rate**: way back, all headers.
"""
TITLES = {
    "calm": "Calm: 5 Mbit/s, nothing else on the link",
    "congested": "Congested: 1.5 Mbit/s with 800 kbit/s of other traffic",
    "lossy": "Lossy: 5 % of packets lost in bursts of two",
    "jitter": "Jitter: up to 10 ms more for each packet, in order",
}


@dataclass(frozen=True)
class Row:
    """What a transport did in a scenario."""

    name: str
    delay_ms: tuple[float, float, float] | None
    late: float
    lost: float
    snr_db: float | None
    frames: dict[str, tuple[float | None, float]]
    rate_kbps: float

    def cells(self) -> list[str]:
        """As texts."""
        delay = " / ".join(f"{d:.1f}" for d in self.delay_ms) if self.delay_ms else "–"
        ratio = "exact" if self.snr_db is None or self.snr_db > EXACT_DB else f"{self.snr_db:.1f}"
        frames = [f"{'–' if d is None else f'{d:.0f}'} / {lost:.1%}" for d, lost in self.frames.values()]
        return [
            self.name,
            ratio,
            delay,
            f"{self.late:.1%}",
            f"{self.lost:.1%}",
            *frames,
            f"{self.rate_kbps:.0f}",
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


def one(scenario: str, name: str, seconds: float) -> Row:
    """Runs a transport on a scenario."""
    transport, *more = candidates()[name]
    settings = [f'duration="{seconds} s"', f"channels.session.transport={transport}", *more]
    loaded = config.load(ROOT / "scenarios" / f"ranking-{scenario}.toml", settings)
    folder = Path(tempfile.mkdtemp(prefix="tcpsbed-ranking-"))
    try:
        session.execute(loaded, world="virtual", out=folder, samples=False)
        return measure(Run(folder), name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def table(rows: list[Row]) -> str:
    """A table, the best ratio of signal to noise first."""
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
    order = sorted(rows, key=lambda r: -(1e9 if r.snr_db is None else r.snr_db))
    lines = [columns, ["---"] * len(columns), *(row.cells() for row in order)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Runs all and writes the page, or prints the tables of some."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs="*", choices=sorted(candidates()), default=None)
    options = parser.parse_args()
    chosen = options.only or list(candidates())
    text = HEAD.format(seconds=f"{options.seconds:g}")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for scenario in SCENARIOS:
            rows = list(pool.map(lambda name, s=scenario: one(s, name, options.seconds), chosen))
            text += f"\n## {TITLES[scenario]}\n\n{table(rows)}"
    if options.only:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
