"""The same session in virtual time and through the emulator: medians of delays, and how long k was what.

Where there is slack, delays are those of the links, and each flow's median, from end to end and at every place on its way,
must be within 0.2 ms. Where a bottleneck makes `dpm-g` merge, sources on real clocks drift against each other, in virtual
time they keep the phases that the scenario says: so virtual time runs with several draws of these phases. The shares of
time that k had each value must be within 0.1 of the mean of the draws (largest difference of the cumulative shares).
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measure import HERE, Result, Row, summary_of, tcpsbed

TITLE = "The same session in virtual time and on the machine's clock"
SCENARIOS = HERE / "scenarios"
MEDIAN_MS = 0.2
DISTANCE = 0.1
LARGEST_K = 7
CLOCKS = ("kinematic", "haptic")


def measure(quick: bool) -> Result:
    """Both sessions in both worlds."""
    slack_s, merging_s, draws = (4, 18, 4) if quick else (10, 18, 16)
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        slack = {
            world: run("slack", world, here / f"slack-{world}", slack_s) for world in ("virtual", "real")
        }
        clock = run("merging", "real", here / "merging-real", merging_s)
        drawn = [
            run("merging", "virtual", here / f"draw{i}", merging_s, phases(i) if i else {})
            for i in range(draws)
        ]
    rows = [*medians(slack["virtual"], slack["real"]), *merged(clock, drawn)]
    for name, told in (("slack", slack["real"]), ("merging", clock)):
        rows.append(
            Row(f"{name}: what disturbed the run", "; ".join(told["disturbed"]) or "nothing", "", "", "")
        )
    return Result("same_session", TITLE, rows, {"slack": slack, "real": clock, "draws": drawn})


def phases(draw: int) -> dict[str, str]:
    """Starts that are parts of a millisecond later, the same for the same draw."""
    source = random.Random(draw)
    starts = {"flows.kinematic": 0.0, "flows.haptic": 0.0, "traffic.cbr": 2000.0}
    return {f"{name}.start": f'"{at_ms + source.random():.3f} ms"' for name, at_ms in starts.items()}


def run(
    scenario: str, world: str, folder: Path, seconds: int, more: dict[str, str] | None = None
) -> dict[str, Any]:
    """Medians in ms by flow and place, samples lost, and by clocking flow the share of time that k had each value."""
    keys = {"duration": f'"{seconds} s"', "measure.pcapng": '"off"', **(more or {})}
    file = SCENARIOS / f"{scenario}.toml"
    tcpsbed("run", file, "--world", world, "--out", str(folder), "--no-report", keys=keys)
    told = summary_of(folder)
    p50 = {name: flow["delay_ms"]["p50"] for name, flow in told["flows"].items()}
    for name, parts in told["path"].items():
        p50 |= {f"{name}, {part['name']}": part["latency_ms"]["p50"] for part in parts}
    return {
        "p50_ms": p50,
        "lost": sum(flow["lost"] for flow in told["flows"].values()),
        "k": held(folder, seconds) if scenario == "merging" else {},
        "disturbed": told.get("disturbances", []),
    }


def held(folder: Path, seconds: float) -> dict[str, list[float]]:
    """Share of the run in which packets held k fragments, by k from 0, of each clocking flow."""
    from tcpsbed.analysis.records import KINDS, open_records, plan_of

    names = [flow["name"] for flow in plan_of(folder)["flows"]]
    rows = open_records(folder / "records.bin")
    rows = rows[rows["kind"] == 1 + KINDS.index("merging")]
    shares = {}
    for name in CLOCKS:
        own = rows[rows["flow"] == names.index(name)]
        spans = np.diff(np.append(own["time"] / 1e9, seconds))
        shares[name] = np.bincount(own["value"], spans / seconds, minlength=LARGEST_K + 1).tolist()
    return shares


def medians(virtual: dict[str, Any], clock: dict[str, Any]) -> list[Row]:
    """A row for each flow and each place on its way."""
    rows = []
    for name, simulated in virtual["p50_ms"].items():
        measured = clock["p50_ms"].get(name, float("nan"))
        apart = abs(measured - simulated)
        against, bar = f"virtual: {simulated:.3f} ms", f"{MEDIAN_MS} ms"
        text = f"{apart:.3f} ms apart"
        rows.append(
            Row(f"slack, {name}: median", f"{measured:.3f} ms", against, text, bar, apart <= MEDIAN_MS)
        )
    lost = clock["lost"] + virtual["lost"]
    rows.append(Row("slack: samples lost", str(lost), "", "", "0", lost == 0))
    return rows


def merged(clock: dict[str, Any], drawn: list[dict[str, Any]]) -> list[Row]:
    """A row for each clocking flow: how far the shares of k are from the mean of the draws."""
    rows = []
    for name in CLOCKS:
        draws = np.array([run["k"][name] for run in drawn])
        mean = draws.mean(axis=0)
        own = apart(np.array(clock["k"][name]), mean)
        far = max(apart(draw, mean) for draw in draws)
        shares, simulated = (", ".join(f"{s:.2f}" for s in k[1:5]) for k in (clock["k"][name], mean))
        against = f"virtual: {simulated}; a draw up to {far:.3f} off"
        what = f"merging, {name}: shares of k = 1 to 4"
        rows.append(Row(what, shares, against, f"{own:.3f} apart", f"{DISTANCE}", own <= DISTANCE))
    return rows


def apart(shares: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Largest difference of the cumulative shares (Kolmogorov)."""
    return float(np.abs(np.cumsum(shares) - np.cumsum(others)).max())
