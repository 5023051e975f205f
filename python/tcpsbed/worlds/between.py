"""What needs nothing but this program: no network at all, and the built-in emulator."""

from __future__ import annotations

from typing import ClassVar

from tcpsbed.worlds.contract import Network
from tcpsbed.worlds.process import Talk


class Direct(Network):
    """Nodes reach each other by whatever is there."""

    name: ClassVar[str] = "none"
    what: ClassVar[str] = "nothing of ours: loopback, or the network that is there"

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Nodes in namespaces of their own have no way to each other."""
        if hosting in ("process", "hosts"):
            return None
        return f"nodes of {hosting} are alone in their namespaces; take {hosting}+emulator"

    def impair(self) -> Talk | None:
        """Builds nothing."""
        return None


class Emulator(Network):
    """The links of the scenario in a process of ours, between UDP gates or the devices of nodes in namespaces."""

    name: ClassVar[str] = "emulator"
    what: ClassVar[str] = "the links of the scenario, emulated in user space"

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Mininet's hosts are joined by its own switches."""
        return "Mininet hosts have switches between them; take mininet" if hosting == "mininet" else None

    def impair(self) -> Talk | None:
        """Starts the emulator's process."""
        self.process = self.hosting.beside("emulator")
        return self.process

    def teardown(self) -> None:
        """Ends the process."""
        if hasattr(self, "process"):
            self.process.end()
