"""A telerobot at work in real time: task, ticks and commands beside stereo pictures and sound, coded and raw.

Beside it stands what Al-Mouhamed et al. reached over the network of a campus. [Al-Mouhamed]
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from measure import ROOT, CannotMeasureError, Result, Row, summary_of, tcpsbed
from tcpsbed.analysis import signals

TITLE = "A telerobot: force, stereo pictures and sound"
CASES = {
    "telerobot": "JPEG on loopback",
    "telerobot-raw": "raw over 100 Mbit/s",
}
CARRY_S = 11.0
"""From one grip to the next in scenarios/telerobot.csv."""
TRAY_M, START_M = (0.155, -0.155), (0.22, 0.0)
NEAR_M, LIFTED_M, RESTS_M = 0.03, 0.05, 0.03
CAMPUS_FPS, CAMPUS_MS, CAMPUS_FORCE_HZ = 17.0, 83.0, 120.0
"""Published: stereo frames a second, copied and sent in, and forces a second while one is sent."""


def run(name: str, seconds: float) -> dict[str, Any]:
    """The summary of a run, with what became of the object and the load of the machine before and after."""
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        keys = {"duration": f'"{seconds:g} s"', "measure.pcapng": '"off"'}
        file = ROOT / "scenarios" / f"{name}.toml"
        tcpsbed(
            "run", file, "--world", "real", "--out", str(folder), "--no-report", "--no-samples", keys=keys
        )
        found = signals.read(folder, "touch/tactile-teleoperator.sense")
        told = summary_of(folder)
    told["carried"] = carried(found.t_s, found.values[:, 9:12], seconds)
    told["load"] = (before, os.getloadavg()[0])
    return told


def carried(t_s: np.ndarray, place_m: np.ndarray, seconds: float) -> tuple[int, int, float]:
    """How often the object was set down where it belongs, how often it should be, and how far off it ends, in m."""
    due, done, off = int((seconds - 1.0) // CARRY_S), 0, np.nan
    for k in range(due):
        from_s, to_s = 1.0 + k * CARRY_S, 1.0 + (k + 1) * CARRY_S
        part = place_m[(t_s >= from_s) & (t_s < to_s)]
        goal = TRAY_M if k % 2 == 0 else START_M
        off = float(np.hypot(*(part[-1, :2] - goal)))
        done += bool(part[:, 2].max() > LIFTED_M and part[-1, 2] < RESTS_M and off < NEAR_M)
    return done, due, off


def touch(told: dict[str, Any]) -> list[dict[str, Any]]:
    """What the loops of motion and force say of themselves."""
    return [node for node in told["nodes"] if node.get("sessions") == ["touch"]]


def rows_of(what: str, told: dict[str, Any]) -> list[Row]:
    """The rows of a case."""
    before, after = told["load"]
    load = Row(f"{what}: load of the machine before and after", f"{before:.2f}, {after:.2f}", "", "", "")
    return [*motion_rows(what, told), *sense_rows(what, told), load]


def motion_rows(what: str, told: dict[str, Any]) -> list[Row]:
    """What became of the task, of commands, and of the loops."""
    done, due, off_m = told["carried"]
    motion, robot = told["flows"]["touch/kinematic"], told["robots"][0]
    late_us = max(node["late_ns"]["p99"] for node in touch(told)) / 1e3
    left_out = sum(node["missed_ticks"] for node in touch(told))
    missed = motion["lost"] + motion["superseded"]
    return [
        Row(
            f"{what}: object carried",
            f"{done} of {due} times, ends {1e3 * off_m:.0f} mm off",
            "",
            "",
            "all",
            done == due,
        ),
        Row(
            f"{what}: commands",
            f"{motion['sent']} sent, {missed} missed",
            f"{left_out} ticks skipped",
            "",
            "none missed",
            missed == 0,
        ),
        Row(f"{what}: haptic loop late p99", f"{late_us:.0f} µs", "", "", "1 ms", late_us < 1000.0),
        Row(
            f"{what}: physics late p99",
            f"{robot['late_ns']['p99'] / 1e3:.0f} µs",
            f"{robot['missed_ticks']} of {robot['ticks']} ticks skipped",
            "",
            "",
        ),
    ]


def sense_rows(what: str, told: dict[str, Any]) -> list[Row]:
    """What came back of pictures, force and sound."""
    force, sound = told["flows"]["touch/haptic"], told["media"]["sight/audio"]
    eyes, glass = told["media"]["sight/video"], told["media"]["sight/video"]["glass_to_glass_ms"]
    delay, force_hz = force["delay_ms"], 1e3 / force["interarrival_ms"]["mean"]
    return [
        Row(
            f"{what}: stereo frames a second",
            f"{eyes['shown_per_s']:.1f}",
            f"campus: {CAMPUS_FPS:.0f}",
            f"{eyes['shown_per_s'] / CAMPUS_FPS:.2f}",
            "17",
            round(eyes["shown_per_s"], 1) >= CAMPUS_FPS,
        ),
        Row(
            f"{what}: a stereo picture, drawn, sent and shown",
            f"p50 {glass['p50']:.1f}, p99 {glass['p99']:.1f} ms",
            f"campus, copied and sent: {CAMPUS_MS:.0f} ms",
            f"{glass['p50'] / CAMPUS_MS:.2f}",
            "",
        ),
        Row(
            f"{what}: force",
            f"{force_hz:.0f} Hz, p50 {delay['p50']:.2f}, p99 {delay['p99']:.2f} ms, {force['lost']} lost",
            f"campus: {CAMPUS_FORCE_HZ:.0f} Hz while a picture is sent",
            f"{force_hz / CAMPUS_FORCE_HZ:.1f}",
            "",
        ),
        Row(f"{what}: sound from mouth to ear", f"p50 {sound['mouth_to_ear_ms']['p50']:.1f} ms", "", "", ""),
    ]


def measure(quick: bool) -> Result:
    """Each case once: 60 s, or one carry."""
    lacks = [name for name in ("mujoco", "simplejpeg") if importlib.util.find_spec(name) is None]
    if lacks:
        raise CannotMeasureError(f"needs {', '.join(lacks)}: pip install 'tcpsbed[robot,media]'")
    rows, raw = [], {}
    for name, what in CASES.items():
        told = run(name, 13.0 if quick else 60.0)
        rows += rows_of(what, told)
        kept = ("carried", "load", "flows", "media", "nodes", "robots", "stages", "emulator", "disturbances")
        raw[name] = {key: told[key] for key in kept}
    return Result("telerobot", TITLE, rows, raw)
