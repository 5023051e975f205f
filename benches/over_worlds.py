"""The same scenario in every world that this machine has: mean delays and bytes lost side by side.

The dumbbell with plain UDP and with `dpm-g`: built-in virtual time, ns-3's virtual time, the emulator, ns-3 in real time,
and Mininet where it can. Sources on real clocks drift against each other, in virtual time they keep the phases that the
scenario says: so virtual time runs with several draws of these phases as well, and what a world on the machine's clock
gives must lie within their range.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import ROOT, CannotMeasureError, Result, Row, summary_of, tcpsbed

TITLE = "The same scenario in every world"
SLACK = {"channels.session.transport": '{ kind = "dpm-g", media_bytes = 64 }'}
"""Room for sound and picture beside force; of the 58 B that the scenario has, none is to spare for a tick left out."""
CROSS = {"traffic.cbr.packet": '"100 B"', "traffic.vbr.packet": '"100 B"'}
"""The 50 B of the scenario are less than a datagram takes on the Ethernet between Mininet's hosts."""
STILL = {"traffic.vbr.vary": '"constant"'}
"""Background that does not vary, so that worlds that draw for themselves meet the same."""
SCENARIOS: dict[str, dict[str, str]] = {"dumbbell-udp": CROSS, "dumbbell-dpm": CROSS | SLACK | STILL}
VIRTUAL, CLOCK = ("virtual", "ns3-virtual"), ("real", "ns3", "mininet")
STARTS = {"flows.kinematic": 0.0, "flows.haptic": 0.0, "traffic.cbr": 500.0, "traffic.vbr": 0.0}
"""What starts when, in ms, before a part of a millisecond is drawn for each."""
MOST_MS, SHARE = 0.3, 0.02
LOSS = 0.01


def measure(quick: bool) -> Result:
    """Every scenario in every world, once, and in virtual time with each draw of the phases."""
    from tcpsbed.worlds import ns3_program

    if lack := ns3_program.missing():
        raise CannotMeasureError(f"needs {lack}")
    seconds, draws = (5, 4) if quick else (30, 16)
    rows: list[Row] = []
    raw: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for scenario, keys in SCENARIOS.items():
            here = Path(place) / scenario
            found = {world: run(scenario, world, seconds, here / world, keys) for world in VIRTUAL}
            drawn = [
                run(scenario, "virtual", seconds, here / f"draw{i}", keys | phases(i)) for i in range(draws)
            ]
            rows += compared(scenario, "ns3-virtual", found["ns3-virtual"], [found["virtual"]])
            for world in CLOCK:
                try:
                    found[world] = run(scenario, world, seconds, here / world, keys)
                except CannotMeasureError as reason:
                    rows.append(Row(f"{scenario}: {world}", "not measured", str(reason), "", ""))
                    continue
                rows += compared(scenario, world, found[world], [found["virtual"], *drawn])
            raw[scenario] = found | {"draws": drawn}
    return Result("over_worlds", TITLE, rows, raw)


def phases(draw: int) -> dict[str, str]:
    """Starts that differ by parts of a millisecond, the same for the same draw."""
    source = random.Random(draw)
    return {f"{name}.start": f'"{at_ms + source.random():.3f} ms"' for name, at_ms in STARTS.items()}


def run(scenario: str, world: str, seconds: int, folder: Path, more: Mapping[str, str]) -> dict[str, Any]:
    """Delay and loss of each flow in ms and as a share, and the share of all bytes that was lost."""
    keys = {"duration": f'"{seconds} s"', "measure.pcapng": '"off"', **more}
    file = ROOT / "scenarios" / f"{scenario}.toml"
    tcpsbed("run", file, "--world", world, "--out", str(folder), "--no-report", "--no-samples", keys=keys)
    told = summary_of(folder)
    flows = {
        name: {"mean_ms": flow["delay_ms"]["mean"], "p50_ms": flow["delay_ms"]["p50"], "loss": flow["loss"]}
        for name, flow in told["flows"].items()
    }
    links = told["network"]
    lost = sum(link["dropped_bytes"] for link in links)
    carried = sum(link["bytes"] for link in links if link["name"].startswith("l1."))
    return {"flows": flows, "lost": lost / max(lost + carried, 1), "disturbed": told.get("disturbances", [])}


def compared(
    scenario: str, world: str, found: dict[str, Any], virtual: Sequence[dict[str, Any]]
) -> list[Row]:
    """A row for each flow, and one for the bytes lost, against the range of runs in virtual time."""
    rows = []
    for name, flow in found["flows"].items():
        low, high = span([run["flows"][name]["mean_ms"] for run in virtual])
        apart = beyond(flow["mean_ms"], low, high)
        rows.append(
            Row(
                f"{scenario}, {name}: mean delay, {world}",
                f"{flow['mean_ms']:.3f} ms",
                f"virtual: {words(low, high, '{:.3f}')} ms",
                f"{apart:.3f} ms beyond",
                "2 % or 0.3 ms",
                apart <= max(MOST_MS, SHARE * flow["mean_ms"]),
            )
        )
    low, high = span([run["lost"] for run in virtual])
    apart = beyond(found["lost"], low, high)
    rows.append(
        Row(
            f"{scenario}: bytes lost at the bottleneck, {world}",
            f"{found['lost']:.2%}",
            f"virtual: {words(low, high, '{:.2%}')}",
            f"{apart:.2%} beyond",
            "1 point",
            apart <= LOSS,
        )
    )
    return rows


def span(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest."""
    return min(values), max(values)


def beyond(value: float, low: float, high: float) -> float:
    """How far a value is outside a range; 0 within."""
    return max(low - value, value - high, 0.0)


def words(low: float, high: float, form: str) -> str:
    """A range, or the one value that it is."""
    return form.format(low) if low == high else f"{form.format(low)} to {form.format(high)}"
