"""Worlds by their clock: simulated, or the machine's."""

from __future__ import annotations

VIRTUAL, NS3_VIRTUAL = "virtual", "ns3-virtual"
SIMULATED = (VIRTUAL, NS3_VIRTUAL)
"""Worlds whose clock is simulated; neither is a pair of hosting and network."""
REAL = "real"
"""The world on the machine's clock whose hosting and network follow from the scenario."""
PROXY, NETNS = "proxy", "netns"
BETWEEN = (PROXY, NETNS)
"""Where the emulator was between a user's own programs, on the machine's clock: no scenario runs there."""
