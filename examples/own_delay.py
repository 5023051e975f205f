"""A delay model of your own. Scenario: own_delay.toml. One in C: own_delay.c."""

import random

import tcpsbed


class Steps(tcpsbed.DelayModel):
    """A path that changes now and then: each change adds another delay to all packets until the next one."""

    params = {
        "every_ns": tcpsbed.Param("ns", 1, 1e12, "500 ms", "from change to change"),
        "most_ns": tcpsbed.Param("ns", 0, 1e12, "5 ms", "largest delay that a change adds"),
    }

    def __init__(self, name, seed, **params):
        super().__init__(name, seed, **params)
        self.seed_of_link = f"{seed} {name}"  # the same delays in every run of a seed

    def delay(self, now_ns, packet):
        step = now_ns // self.every_ns
        return int(random.Random(f"{self.seed_of_link} {step}").random() * self.most_ns)
