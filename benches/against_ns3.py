"""Virtual time against ns-3: the dumbbell of scenarios/dumbbell-udp.toml, the same packets in both.

The two programs take turns. ns-3 runs without tracing and counts delays at the sinks; tcpsbed writes and
hashes one row for every sample sent, delivered or dropped.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from measure import ROOT, Result, Row, compile_ns3, median, run_program, spread, summary_of, tcpsbed

TITLE = "Virtual time against ns-3"
SCENARIO = ROOT / "scenarios" / "dumbbell-udp.toml"
NS3_FLOWS = {"kinematic": "forward", "haptic": "backward"}
BARE = ["--no-report"]


def closed_form(seconds: float, flows: dict[str, Any]) -> list[Row]:
    """What no simulator may miss: the slow direction is full from 0.5 s on, the fast one loses nothing."""
    backward = [f for name, f in flows.items() if "backward" in name]
    delivered_bit = sum(f["received"] * f["wire_bytes"] * 8 for f in backward)
    offered_bit = (137 + 50) * 8e3 * 0.5
    expected_bit = offered_bit + 1.5e6 * (seconds - 0.5) + 15000 * 8
    longest_ms = 15 + 8 * (15000 + 137) / 1500
    least_ms = 15 + 8 * 86 / 1500
    forward = flows["forward"]
    share = delivered_bit / expected_bit
    mean = forward["delay_ms"]["mean"]
    peak = flows["backward"]["delay_ms"]["max"]
    lossless = forward["sent"] == forward["received"]
    return [
        Row(
            "ns-3: delivered backward",
            f"{delivered_bit / 1e6:.2f} Mbit",
            f"{expected_bit / 1e6:.2f} Mbit, closed form",
            f"{share:.4f}",
            "0.999-1.001",
            0.999 <= share <= 1.001,
        ),
        Row(
            "ns-3: longest delay backward",
            f"{peak:.2f} ms",
            f"{longest_ms:.2f} ms, full buffer",
            f"{peak / longest_ms:.3f}",
            "0.98-1",
            0.98 <= peak / longest_ms <= 1,
        ),
        Row(
            "ns-3: mean delay forward",
            f"{mean:.3f} ms",
            f"{least_ms:.3f} ms, empty network",
            f"{mean / least_ms:.4f}",
            "1-1.035, no loss",
            lossless and 1 <= mean / least_ms <= 1.035,
        ),
    ]


def agreement(ours: dict[str, Any], flows: dict[str, Any]) -> list[Row]:
    """Whether both simulated the same thing: packets sent, packets dropped, mean and longest delay."""
    rows = []
    for name, other in NS3_FLOWS.items():
        mine, theirs = ours["flows"][name], flows[other]
        drops, lost = sum(mine["drops"].values()), theirs["sent"] - theirs["received"]
        delays = [(mine["delay_ms"][key], theirs["delay_ms"][key]) for key in ("mean", "max")]
        apart = max(abs(a / b - 1) for a, b in delays)
        same = mine["sent"] == theirs["sent"] and drops == lost and apart <= 0.001
        rows.append(
            Row(
                f"{name}: sent, dropped, mean and longest delay",
                f"{mine['sent']}, {drops}, {delays[0][0]:.4f} and {delays[1][0]:.4f} ms",
                f"ns-3: {theirs['sent']}, {lost}, {delays[0][1]:.4f} and {delays[1][1]:.4f} ms",
                f"delays {apart:.4%} apart",
                "same packets, 0.1 %",
                same,
            )
        )
    return rows


def measure(quick: bool) -> Result:
    """Rounds of ns-3, tcpsbed without a report, tcpsbed with one."""
    seconds, rounds = (50, 1) if quick else (500, 5)
    program = compile_ns3("dumbbell")
    keys = {"duration": f'"{seconds} s"', "warmup": '"0 s"'}
    ns3, bare, whole = [], [], []
    with tempfile.TemporaryDirectory() as place:
        for i in range(rounds):
            other = run_program([program, f"--seconds={seconds}"])
            ns3.append({**other.json(), "wall_s": other.wall_s})
            folder = Path(place) / f"bare{i}"
            tcpsbed("run", SCENARIO, "--out", str(folder), *BARE, keys=keys)
            bare.append(summary_of(folder))
            folder = Path(place) / f"whole{i}"
            whole.append(tcpsbed("run", SCENARIO, "--out", str(folder), keys=keys).wall_s)
    simulate_s = [run["wall"]["simulate_s"] for run in bare]
    ns3_s = [run["simulate_s"] for run in ns3]
    ns3_wall_s = [run["wall_s"] for run in ns3]
    faster = median(ns3_s) / median(simulate_s)
    faster_whole = median(ns3_wall_s) / median(whole)
    flows = {flow["name"]: flow for flow in ns3[0]["flows"]}
    rows = [
        Row(
            f"first to last event, {seconds} s simulated",
            f"{spread(simulate_s, 3)} s",
            f"ns-3: {spread(ns3_s)} s",
            f"{faster:.1f} times faster",
            "40",
            faster >= 40,
        ),
        Row(
            "the whole command with its report",
            f"{spread(whole)} s",
            f"ns-3: {spread(ns3_wall_s)} s",
            f"{faster_whole:.1f} times faster",
            "15",
            faster_whole >= 15,
        ),
        Row(
            "events", f"{bare[0]['records']['rows']} rows written", f"ns-3: {ns3[0]['events']} events", "", ""
        ),
        *agreement(bare[0], flows),
        *closed_form(seconds, flows),
    ]
    raw = {
        "ns3": ns3,
        "simulate_s": simulate_s,
        "whole_s": whole,
        "flows": bare[0]["flows"],
        "rounds": rounds,
    }
    return Result("against_ns3", TITLE, rows, raw)
