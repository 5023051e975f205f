"""A queue discipline of your own. Scenario: own_queue.toml. The same in C: own_queue.c."""

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
