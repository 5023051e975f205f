"""A background source of your own. Scenario: own_traffic.toml."""

import random

import tcpsbed


class Bursts(tcpsbed.Source):
    """Bursts of packets at random moments."""

    params = {
        "pause_ns": tcpsbed.Param("ns", 1e3, 1e12, "20 ms", "mean time between bursts"),
        "packets": tcpsbed.Param("count", 1, 1000, "10", "packets in a burst"),
        "packet_bytes": tcpsbed.Param("bytes", 1, 65535, "1200 B", "size of each on the wire"),
    }

    def __init__(self, name, seed, **params):
        super().__init__(name, seed, **params)
        self.random, self.at_ns, self.left = random.Random(f"{seed} {name}"), 0, 0

    def next(self):
        if self.left == 0:
            self.at_ns += round(self.random.expovariate(1 / self.pause_ns))
            self.left = self.packets
        self.left -= 1
        return self.at_ns, self.packet_bytes
