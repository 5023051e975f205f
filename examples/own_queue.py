"""A queue discipline and a background source of your own. Scenario: own_queue.toml. The same queue in C: own_queue.c."""

import random
from collections import deque

import tcpsbed


class Shortest(tcpsbed.QueueDiscipline):
    """Short packets go first; what has waited too long is dropped."""

    params = {
        "patience_ns": tcpsbed.Param("ns", 1, 1e12, "50 ms", "time after which a long packet is dropped")
    }

    def __init__(self, name, seed, **params):
        super().__init__(name, seed, **params)
        self.short, self.long = deque(), deque()

    def enqueue(self, now_ns, packet, dropped):
        (self.short if packet.bytes < 200 else self.long).append((now_ns, packet.number))

    def dequeue(self, now_ns, dropped):
        while self.long and now_ns - self.long[0][0] > self.patience_ns:
            dropped.append(self.long.popleft()[1])
        for waiting in (self.short, self.long):
            if waiting:
                return waiting.popleft()[1]
        return None


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
