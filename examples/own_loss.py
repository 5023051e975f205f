"""A loss model of your own. Scenario: own_loss.toml. One in C: own_loss.c."""

import random

import tcpsbed


class Fading(tcpsbed.LossModel):
    """A radio link that fades now and then: while it does, long packets suffer more."""

    params = {
        "every_ns": tcpsbed.Param("ns", 1, 1e12, "500 ms", "from fade to fade"),
        "fade_ns": tcpsbed.Param("ns", 1, 1e12, "50 ms", "how long one lasts"),
        "bit_errors": tcpsbed.Param("number", 0, 1, "1e-4", "share of bits that it damages"),
    }

    def __init__(self, name, seed, **params):
        super().__init__(name, seed, **params)
        self.random = random.Random(f"{seed} {name}")  # the same losses in every run of a seed

    def lose(self, now_ns, packet):
        if now_ns % self.every_ns >= self.fade_ns:
            return False
        return self.random.random() > (1 - self.bit_errors) ** (8 * packet.bytes)
