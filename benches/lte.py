"""LTE round trip over ns-3 in real time: 50 commands a second, each answered; then the way up over packets a second.

The scenario is scenarios/lte-pingpong.toml: a node behind the mobile, one behind the gateway, processes on loopback, ns-3
between them on the machine's clock. The follower takes no time but that of its process.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measure import ROOT, CannotMeasureError, Result, Row, tcpsbed

TITLE = "LTE round trip over ns-3 in real time"
SCENARIO = ROOT / "scenarios" / "lte-pingpong.toml"
BARS = ("trip", "up", "down")
"""What is judged, by the rows `clock-…` of data/expected/abdullah2023.toml."""
PUBLISHED_MS = {"trip": 17.85, "up": 13.22, "down": 4.59, "turn": 0.04}
"""Abdullah and Monnet 2023, with the hops around the air."""
NAMES = {"trip": "round trip", "up": "up", "down": "down", "turn": "the follower's turnaround"}
RATES_HZ = (10.3, 50.3, 100.3, 150.3, 200.3, 500.3, 1000.3, 2000.3)


def measure(quick: bool) -> Result:
    """The target, then each rate in ns-3's own time and on the machine's clock."""
    from tcpsbed.worlds import ns3_program

    if lack := ns3_program.missing():
        raise CannotMeasureError(f"needs {lack}")
    seconds, rates_hz = (5, RATES_HZ[1:4:2]) if quick else (30, RATES_HZ)
    raw: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        raw["bar"] = run("ns3", 50.0, seconds, Path(place) / "bar")
        rows = [bar(key, raw["bar"]) for key in NAMES]
        for rate_hz in rates_hz:
            pair = {
                world: run(world, rate_hz, min(seconds, 10), Path(place) / f"{world}-{rate_hz}")
                for world in ("ns3-virtual", "ns3")
            }
            raw[f"{rate_hz}"] = pair
            rows.append(dependence(rate_hz, pair))
    return Result("lte", TITLE, rows, raw)


def run(world: str, rate_hz: float, seconds: float, folder: Path) -> dict[str, Any]:
    """Means in ms of both directions, the turnaround and all of it."""
    from tcpsbed import Run
    from tcpsbed.errors import WorldError
    from tcpsbed.lab.reproduce.lte import AT_ONCE, ping_pong

    keys = {"duration": f'"{seconds} s"', "flows.kinematic.rate": f'"{rate_hz} Hz"'}
    options = ["--world", world, "--out", str(folder), "--no-report", "--no-samples"]
    options += ["--set", AT_ONCE] if world == "ns3" else []
    tcpsbed("run", SCENARIO, *options, keys=keys)
    done = Run(folder)
    told = done.summary
    try:
        found = ping_pong(done)
    except WorldError as error:
        raise CannotMeasureError(f"{world}, {rate_hz:g} packets a second: {error}") from None
    late = [node["late_ns"]["p99"] / 1e6 for node in told["nodes"] if node["name"] == "ns-3"]
    return {
        **asdict(found),
        "n": told["echo"]["kinematic"]["points"][0]["n"],
        "ns3_late_p99_ms": late[0] if late else None,
        "disturbed": told.get("disturbances", []),
    }


def bar(key: str, found: dict[str, Any]) -> Row:
    """A part of the round trip at 50 packets a second against the published one."""
    from tcpsbed.lab.reproduce import expected

    what = f"{NAMES[key]}, mean of {found['n']} at 50 packets a second"
    published = f"published: {PUBLISHED_MS[key]:.2f} ms"
    if key not in BARS:
        return Row(what, f"{found[key]:.3f} ms", published, "", "")
    wanted = expected.load("abdullah2023")[f"clock-{key}"]
    limits = f"{wanted.published} ± {wanted.tolerance} ms"
    return Row(what, f"{found[key]:.2f} ms", published, "", limits, wanted.holds(found[key]))


def dependence(rate_hz: float, pair: dict[str, Any]) -> Row:
    """How long it takes at a rate; the clock beside ns-3's own time."""
    clock, virtual = pair["ns3"], pair["ns3-virtual"]
    what = f"{rate_hz:g} packets a second: up, down, round trip"
    measured, against = (
        f"{found['up']:.2f}, {found['down']:.2f}, {found['trip']:.2f} ms" for found in (clock, virtual)
    )
    return Row(what, measured, f"ns3-virtual: {against}", f"{clock['lost']} lost", "")
