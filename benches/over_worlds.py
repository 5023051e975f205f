"""The same scenario in every world that this machine has: mean delays and bytes lost side by side.

The dumbbell with plain UDP and with `dpm-g`: built-in virtual time, ns-3's virtual time, the emulator, ns-3 in real time,
and Mininet where it can.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from measure import ROOT, CannotMeasureError, Result, Row, summary_of, tcpsbed

TITLE = "The same scenario in every world"
SCENARIOS = ("dumbbell-udp", "dumbbell-dpm")
WORLDS = ("virtual", "ns3-virtual", "real", "ns3")
MININET = "mininet"
"""Where the kernel delays, or a run says why not."""
MOST_MS, SHARE = 0.3, 0.02
LOSS = 0.01


def measure(quick: bool) -> Result:
    """Every scenario in every world, once; virtual time is what the others are compared with."""
    from tcpsbed.worlds import ns3_program

    if lack := ns3_program.missing():
        raise CannotMeasureError(f"needs {lack}")
    seconds = 5 if quick else 30
    rows, raw = [], {}
    with tempfile.TemporaryDirectory() as place:
        for scenario in SCENARIOS:
            found = {world: run(scenario, world, seconds, Path(place)) for world in WORLDS}
            refused: list[Row] = []
            try:
                found[MININET] = run(scenario, MININET, seconds, Path(place))
            except CannotMeasureError as reason:
                refused = [Row(f"{scenario}: {MININET}", "not measured", str(reason), "", "")]
            raw[scenario] = found
            rows += [*compared(scenario, found), *refused]
    return Result("over_worlds", TITLE, rows, raw)


def run(scenario: str, world: str, seconds: int, place: Path) -> dict[str, Any]:
    """Delay and loss of each flow in ms and as a share, and the share of all bytes that was lost."""
    folder = place / f"{scenario}-{world}"
    keys = {"duration": f'"{seconds} s"', "measure.pcapng": '"off"'}
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


def compared(scenario: str, found: dict[str, Any]) -> list[Row]:
    """A row for each flow and world, and one for the bytes lost."""
    rows = []
    base = found["virtual"]
    for world in list(found)[1:]:
        for name, flow in found[world]["flows"].items():
            mine = base["flows"][name]["mean_ms"]
            apart = abs(flow["mean_ms"] - mine)
            rows.append(
                Row(
                    f"{scenario}, {name}: mean delay",
                    f"virtual: {mine:.3f} ms",
                    f"{world}: {flow['mean_ms']:.3f} ms",
                    f"{apart:.3f} ms apart",
                    "2 % or 0.3 ms",
                    apart <= max(MOST_MS, SHARE * mine),
                )
            )
        lost = found[world]["lost"]
        rows.append(
            Row(
                f"{scenario}: bytes lost at the bottleneck",
                f"virtual: {base['lost']:.2%}",
                f"{world}: {lost:.2%}",
                f"{abs(lost - base['lost']):.2%} apart",
                "1 point",
                abs(lost - base["lost"]) <= LOSS,
            )
        )
    return rows
