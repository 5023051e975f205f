"""Transport `multipath` on sockets through the emulator: each datagram goes over the link of its code point."""

from __future__ import annotations

from pathlib import Path

from tcpsbed import Run, scenarios
from tcpsbed.runs import session

SCENARIO = Path(__file__).resolve().parents[2] / "scenarios" / "two-ways.toml"


# [model: several paths] several paths
def test_both_links_carry_every_datagram_and_few_samples_are_lost_on_both(tmp_path: Path) -> None:
    loaded = scenarios.load(SCENARIO, ['duration="4 s"'])
    session.execute(loaded, world="real", out=tmp_path / "run", samples=False)
    summary = Run(tmp_path / "run").summary
    offered = {link["name"]: link["packets"] + link["dropped_packets"] for link in summary["network"]}
    for direction in ("forward", "backward"):
        first, second = (offered[f"{link}.{direction}"] for link in ("l1", "l2"))
        # A datagram and its copy leave one after the other; one of them may be in flight at the end.
        assert first > 2500 and abs(first - second) <= 2, offered
    # Each link loses 5 %: both lose one in 400; 2 % is far above what chance gives, and below one link alone.
    assert all(flow["loss"] < 0.02 for flow in summary["flows"].values() if flow["delivered"] > 1000)
