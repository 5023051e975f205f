"""Memory of a virtual run: it must not grow with simulated time, because rows stream to the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import ROOT, Result, Row, tcpsbed

TITLE = "Memory of a virtual run"
SCENARIO = ROOT / "scenarios" / "dumbbell-udp.toml"


def measure(quick: bool) -> Result:
    """Peak resident set of the whole command, with its report, for a run and for a longer one, both without captures."""
    short_s, long_s = 50, 500 if quick else 5000
    peak = {}
    with tempfile.TemporaryDirectory() as place:
        for seconds in (short_s, long_s):
            keys = {"duration": f'"{seconds} s"', "measure.pcapng": '"off"'}
            ended = tcpsbed(
                "run", SCENARIO, "--out", str(Path(place) / str(seconds)), keys=keys, limit_s=1800
            )
            peak[seconds] = ended.peak_mb
    ratio = peak[long_s] / peak[short_s]
    rows = [
        Row(
            f"peak at {long_s} s simulated",
            f"{peak[long_s]:.0f} MB",
            f"{peak[short_s]:.0f} MB at {short_s} s",
            f"{ratio:.2f}",
            "0.8-1.2, under 300 MB",
            0.8 <= ratio <= 1.2 and max(peak.values()) < 300,
        ),
    ]
    return Result("memory", TITLE, rows, {"peak_mb": {str(k): v for k, v in peak.items()}})
