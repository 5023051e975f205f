"""ns-3 that holds the nodes' devices itself, in place of the emulator's gates: whole IP packets enter and leave it.

```
 namespace of node a ══ TAP ══ FdNetDevice ── ns-3 ── FdNetDevice ══ TAP ══ namespace of node b      ns3-tap
                     ══ TAP ══ TapBridge ──── ns-3 ──── TapBridge ══ TAP ══                          ns3-tapbridge
```
ns-3 keeps time by its own real-time clock here. Nodes hand the descriptors of their devices over, so that nothing of it is
left on the machine and ns-3's own maker of devices, which wants to be root, is not needed.
"""

from __future__ import annotations

from typing import ClassVar

from tcpsbed import _tcps
from tcpsbed.errors import WorldError
from tcpsbed.worlds import background, fit
from tcpsbed.worlds.ns3 import LEAST_BYTES, Ns3, foreign_of
from tcpsbed.worlds.process import ControlChannel

HOSTINGS = ("namespaces", "containers")
"""Where every node has a device."""
LEAST_HERE_BYTES = LEAST_BYTES + _tcps.LINK_BYTES - 2
"""What a background packet takes at least, where links count what an Ethernet has below IP, as that of the nodes does."""


class Descriptor(Ns3):
    """ns-3 reads and writes the descriptors of the nodes' TAP devices."""

    name: ClassVar[str] = "ns3-tap"
    what: ClassVar[str] = (
        "the links of the scenario in ns-3, which holds the nodes' TAP devices (FdNetDevice)"
    )
    how: ClassVar[str] = "descriptor"

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Only nodes in namespaces have devices."""
        if hosting in HOSTINGS:
            return None
        return f"nodes of {hosting} have no devices of their own; allowed: namespaces+{cls.name}, or ns3"

    def refuse(self) -> None:
        """Keys that ns-3 cannot honour, background packets that would grow, and IPv6, which its routers here do not
        support.
        """
        super().refuse()
        if entries := background.of_the_network(self.job.plan):
            network = self.job.plan["network"] | {"traffic": entries}
            unfit = background.too_short(
                {"network": network},
                LEAST_HERE_BYTES,
                "a packet needs between devices",
                f"--world {self.hosting.name}+ns3",
            )
            fit.refuse(self.name, self.job.plan, unfit)
        if self.job.plan["real"].get("ipv6"):
            raise WorldError(
                f"found true, which {self.name} does not support",
                key="real.ipv6",
                allowed="false, or --world namespaces+ns3",
            )

    def impair(self) -> ControlChannel | None:
        """Starts ns-3 behind a process that speaks the emulator's part; nodes hand their devices to ns-3."""
        plan = self.job.plan
        plan["real"]["frames"] = True
        foreign = foreign_of(plan, background.of_the_network(plan), self.hosting.simulator())
        attach = {"how": self.how, "taps": str(self.hosting.taps()), "link_bytes": _tcps.LINK_BYTES}
        foreign["network"]["attach"] = attach
        self.process = self.hosting.beside("emulator")
        self.process.also["foreign"] = foreign
        return self.process


class Bridge(Descriptor):
    """TapBridge between the nodes' TAP devices and ns-3, as in ns-3's examples."""

    name: ClassVar[str] = "ns3-tapbridge"
    what: ClassVar[str] = "the links of the scenario in ns-3, joined to the nodes' TAP devices by TapBridge"
    how: ClassVar[str] = "bridge"
