"""How fast three real nodes go without losing a row or a datagram: two flows of 64 bytes; and which ticks they leave out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from measure import HERE, Result, Row, summary_of, tcpsbed

TITLE = "Rate of real nodes"
CASES = {
    "4 kHz each, Python hooks on one side": (HERE / "scenarios" / "rate-python.toml", 4),
    "8 kHz each, native": (HERE / "scenarios" / "rate-native.toml", 8),
}


def judged(what: str, read: dict[str, Any], seconds: float) -> Row:
    """One run as a row: what was lost where."""
    overflows = sum(node["ring_overflows"] for node in read["nodes"])
    drops = sum(node["socket_drops"] for node in read["nodes"])
    missed = sum(node["missed_ticks"] for node in read["nodes"])
    sent = sum(flow["sent"] for flow in read["flows"].values())
    lost = sum(flow["lost"] for flow in read["flows"].values())
    share = missed / max(sent + missed, 1)
    told = f"{overflows} rows, {drops} datagrams dropped; {lost} of {sent} lost; {share:.3%} of the ticks skipped"
    return Row(f"{what}, {seconds:g} s", told, "", "", "0 rows, 0 datagrams", overflows + drops == 0)


def measure(quick: bool) -> Result:
    """Both cases."""
    seconds = 5 if quick else 60
    rows, raw = [], {}
    for what, (scenario, khz) in CASES.items():
        with tempfile.TemporaryDirectory() as place:
            keys = {f"flows.{flow}.rate": f'"{khz} kHz"' for flow in ("kinematic", "haptic")}
            keys |= {"duration": f'"{seconds} s"', "measure.pcapng": '"off"'}
            tcpsbed("run", scenario, "--world", "real", "--out", place, "--no-report", keys=keys)
            read = summary_of(Path(place))
        rows.append(judged(what, read, seconds))
        raw[what] = {key: read[key] for key in ("flows", "nodes", "stages", "disturbances")}
    return Result("rate", TITLE, rows, raw)
