"""A network of your own: the built-in emulator on a core of its own. Scenario: own_network.toml."""

import os

from tcpsbed.worlds.between import Emulator


class Alone(Emulator):
    """The links of the scenario, emulated on the last core."""

    name = "alone"
    what = "the emulator on one core"

    def impair(self):
        # of your own: build the network, and return None if no process speaks for it
        emulator = super().impair()
        os.sched_setaffinity(emulator.child.pid, {max(os.sched_getaffinity(0))})
        return emulator

    def verify(self):
        cores = os.sched_getaffinity(self.process.child.pid)
        return [] if len(cores) == 1 else [f"the emulator may run on {len(cores)} cores"]
