"""Pictures in real time on loopback: capture to decoded beside the work of the codec, and what they do to motion.

The delay of 1 kHz motion and force stands beside each kind of picture, and without any. [Polachan 2022, figure 18]
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import tcpsbed
from measure import Result, Row
from tcpsbed.analysis.records import KINDS, open_records, plan_of

TITLE = "Pictures beside motion and force"

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
camera = "test"
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
    """A run in real time: its summary, and the ages of pictures when they were decoded."""
    with tempfile.TemporaryDirectory() as folder:
        found = tcpsbed.run(SCENARIO.format(seconds=seconds, video=video), world="real", out=folder)
        ages = decoded_ms(Path(folder)) if video else np.empty(0)
        return found.summary, ages


def pictures(name: str, summary: dict[str, Any], ages: np.ndarray) -> Row:
    """How long pictures took to be decoded, beside the processor time of encoder and decoder."""
    media = summary["media"]["video"]
    work = stage_ms(summary, "code") + stage_ms(summary, "decode")
    p50 = float(np.median(ages))
    told = f"p50 {p50:.1f} ms, glass to glass {media['glass_to_glass_ms']['p50']:.1f} ms"
    told += f", {media['shown_per_s']:.1f} a second of {media['coded_bytes']:.0f} B"
    judged = ("work + 5 ms", p50 <= work + 5) if "640x480" in name else ("", None)
    return Row(
        f"{name}: capture to decoded",
        told,
        f"work of the codec {work:.1f} ms",
        f"{p50 - work:.1f} ms above",
        *judged,
    )


def motion(name: str, summary: dict[str, Any]) -> Row:
    """The delay of motion and force beside pictures."""
    parts = [
        f"{flow} p50 {1e3 * delay['p50']:.0f}, p99 {1e3 * delay['p99']:.0f} µs"
        for flow in ("kinematic", "haptic")
        for delay in [summary["flows"][flow]["delay_ms"]]
    ]
    late = max(node["late_ns"]["p99"] for node in summary["nodes"]) / 1e3
    return Row(f"{name}: motion and force", "; ".join(parts), f"ticks late p99 {late:.0f} µs", "", "", None)


def measure(quick: bool) -> Result:
    """Each kind of picture in turn, and none."""
    cases = {"no pictures": "", "jpeg 640x480": VIDEO.format(rate=30, codec="jpeg", more="", mtu=1200)}
    if importlib.util.find_spec("av"):
        cases["h264 640x480"] = VIDEO.format(rate=30, codec="h264", more="", mtu=1200)
    for mtu in (1200, 32_000):
        cases[f"raw stereo 2x360x288, packets of {mtu} B"] = VIDEO.format(
            rate=17, codec="raw", more=SMALL, mtu=mtu
        )
    rows, raw = [], {}
    for name, video in cases.items():
        summary, ages = run(video, 5 if quick else 30)
        rows += [pictures(name, summary, ages)] if video else []
        rows.append(motion(name, summary))
        raw[name] = {key: summary.get(key) for key in ("media", "flows", "stages", "disturbances")}
    return Result("video", TITLE, rows, raw)
