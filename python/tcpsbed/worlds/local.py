"""Nodes on this computer: in processes of their own, or in network namespaces as well."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from tcpsbed.worlds import background
from tcpsbed.worlds.contract import Hosting
from tcpsbed.worlds.process import ControlChannel, Process


class Processes(Hosting):
    """A process a node, all of them on loopback."""

    name: ClassVar[str] = "process"
    what: ClassVar[str] = "one process per node, sockets on loopback"

    def launch(self) -> list[ControlChannel]:
        """Starts the nodes."""
        self.started: list[ControlChannel] = []
        for id, node in enumerate(self.job.plan["nodes"]):
            self.started.append(Process(node["name"], self.job.ring(id)))
        return self.started

    def teardown(self) -> None:
        """Ends the nodes."""
        for process in getattr(self, "started", ()):
            process.end()


class Namespaces(Processes):
    """One process per node, each in a network namespace whose only exit is a device of the emulator."""

    name: ClassVar[str] = "namespaces"
    what: ClassVar[str] = "one process and one network namespace per node"
    datagrams: ClassVar[bool] = True

    @classmethod
    def missing(cls) -> str | None:
        """Root and TUN devices."""
        if os.geteuid() != 0:
            return "root (CAP_SYS_ADMIN, CAP_NET_ADMIN): sudo tcpsbed …"
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            return "/dev/net/tun: modprobe tun"
        return None

    def refuse(self) -> None:
        """Background traffic that cannot be datagrams."""
        background.refuse(self.job.plan)

    def isolate(self) -> None:
        """Settles in the plan that nodes are alone, and background traffic has ends of its own where that is asked for."""
        self.job.plan["real"]["network"] = "namespaces"
        background.stand_apart(self.job.plan)

    def launch(self) -> list[ControlChannel]:
        """Starts the nodes; each goes into its namespace when it gets its plan."""
        self.isolate()
        return super().launch()

    def taps(self) -> Path | None:
        """Where the emulator waits for the nodes' devices."""
        return self.job.memory / "taps"
