"""Worlds whose clock is simulated: what is not among them runs on the machine's clock."""

from __future__ import annotations

VIRTUAL, NS3_VIRTUAL = "virtual", "ns3-virtual"
SIMULATED = (VIRTUAL, NS3_VIRTUAL)
"""Names of these worlds; neither is a pair of hosting and network."""
