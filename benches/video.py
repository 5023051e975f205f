"""Pictures in real time on loopback: glass to glass beside the work of the codec, and what they do to motion and force.

    .venv/bin/python benches/video.py [--seconds 10]

Rows: codec, mean size, work of encoder and decoder alone (p50 of the processor time), from capture to decoded (p50), and
what is above the work; then the delay of 1 kHz motion without and with pictures. [Polachan 2022, figure 18]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import tcpsbed
from tcpsbed.analysis.records import KINDS, open_records, plan_of

SCENARIO = """
name = "video"
duration = "{seconds} s"
warmup = "1 s"
[components]
tactile-operator = "home"
ms-embsys = "home"
ms-com = "home"
ss-com = "field"
ss-embsys = "field"
tactile-teleoperator = {{ node = "field", robot = "arm" }}
[flows.kinematic]
[flows.haptic]
{video}
"""
VIDEO = """
[flows.video]
rate = "{rate} Hz"
transport = {{ kind = "udp", mtu = "{mtu} B" }}
[flows.video.picture]
codec = "{codec}"
{more}
"""
SMALL = "width = 360\nheight = 288\nstereo = true"


def stage_ms(summary: dict[str, Any], kind: str) -> float:
    found = next(s for s in summary["stages"] if s["kind"] == kind and s["flow"] == "video")
    return float(found["cpu_ns"]["p50"]) / 1e6


def decoded_ms(folder: Path) -> np.ndarray:
    """From the tick of a capture to the exit of the component that decodes, in milliseconds."""
    plan, rows = plan_of(folder), open_records(folder / "records.bin")
    flow = [f["name"] for f in plan["flows"]].index("video")
    at = [c["name"] for c in plan["components"]].index("ms-embsys")
    left = rows[
        (rows["kind"] == 1 + KINDS.index("exit")) & (rows["flow"] == flow) & (rows["point"] == 2 * at + 1)
    ]
    ages: np.ndarray = left["value"][left["time"] > 1e9] / 1e6
    return ages


def run(video: str, seconds: int) -> tuple[dict[str, Any], np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        found = tcpsbed.run(SCENARIO.format(seconds=seconds, video=video), world="real", out=folder)
        ages = decoded_ms(Path(folder)) if video else np.empty(0)
        return found.summary, ages


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=10)
    seconds = parser.parse_args().seconds
    cases = {
        "none": "",
        "jpeg 640x480": VIDEO.format(rate=30, codec="jpeg", more="", mtu=1200),
        "h264 640x480": VIDEO.format(rate=30, codec="h264", more="", mtu=1200),
        "raw stereo 2x360x288, 1200 B": VIDEO.format(rate=17, codec="raw", more=SMALL, mtu=1200),
        "raw stereo 2x360x288, 32 kB": VIDEO.format(rate=17, codec="raw", more=SMALL, mtu=32_000),
    }
    columns = [
        "pictures",
        "B",
        "fps",
        "to decoded p50",
        "capture",
        "encode",
        "decode",
        "above the work",
        "glass p50",
    ]
    columns += ["motion p50", "p99", "force p50", "p99", "tick late p99"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for name, video in cases.items():
        found, ages = run(video, seconds)
        cells = [""] * 8
        if video:
            media = found["media"]["video"]
            work = [stage_ms(found, kind) for kind in ("capture", "code", "decode")]
            p50 = float(np.median(ages))
            cells = [f"{media['coded_bytes']:.0f}", f"{media['shown_per_s']:.1f}", f"{p50:.2f}"]
            cells += [f"{ms:.2f}" for ms in work] + [f"{p50 - sum(work[1:]):.2f}"]
            cells += [f"{media['glass_to_glass_ms']['p50']:.2f}"]
        for flow in ("kinematic", "haptic"):
            delay = found["flows"][flow]["delay_ms"]
            cells += [f"{delay['p50']:.3f}", f"{delay['p99']:.3f}"]
        cells += [f"{max(n['late_ns']['p99'] for n in found['nodes']) / 1e6:.3f}"]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
