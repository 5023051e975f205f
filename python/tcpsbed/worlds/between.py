"""Networks that need only this program: none at all, and the built-in emulator."""

from __future__ import annotations

from typing import ClassVar

from tcpsbed.worlds.contract import Network
from tcpsbed.worlds.process import ControlChannel


class Direct(Network):
    """No network of its own: nodes reach each other directly."""

    name: ClassVar[str] = "none"
    what: ClassVar[str] = "no emulation: loopback, or the existing network"

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Nodes in separate namespaces cannot reach each other."""
        if hosting in ("process", "hosts"):
            return None
        return f"nodes of {hosting} have no network between them; allowed: {hosting}+emulator"

    def impair(self) -> ControlChannel | None:
        """Builds nothing."""
        return None


class Emulator(Network):
    """The links of the scenario in a process of ours, between UDP gates or the devices of nodes in namespaces."""

    name: ClassVar[str] = "emulator"
    what: ClassVar[str] = "the links of the scenario, emulated in user space"

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Mininet's hosts are joined by its own switches."""
        return (
            "hosts of Mininet have switches between them; allowed: mininet" if hosting == "mininet" else None
        )

    def refuse(self) -> None:
        """Refuses nodes with no place between them."""
        self.hosting.refuse_between()

    def impair(self) -> ControlChannel | None:
        """Starts the emulator's process."""
        self.process = self.hosting.beside("emulator")
        return self.process

    def teardown(self) -> None:
        """Ends the process."""
        if hasattr(self, "process"):
            self.process.end()
