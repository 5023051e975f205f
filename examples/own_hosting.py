"""A hosting of your own: each node has a core of its own. Scenario: own_hosting.toml."""

import os

from tcpsbed.worlds.local import Processes


class Pinned(Processes):
    """A process per node on loopback. Every node stays on one core."""

    name = "pinned"
    what = "one process per node, each on one core"

    def launch(self):
        nodes = super().launch()  # of your own: one tcpsbed.worlds.process.Process per node of self.job.plan
        cores = sorted(os.sched_getaffinity(0))
        for number, node in enumerate(nodes):
            os.sched_setaffinity(node.child.pid, {cores[number % len(cores)]})
        return nodes
