"""A device of your own, which is a hook at the operator's end. Scenario: own_device.toml."""

import os
from contextlib import suppress

import numpy as np

import tcpsbed


class Pointer:
    """A hand at x, y, z (m): each report of the device is three signed bytes, the counts moved."""

    params = {
        "path": tcpsbed.Param(
            "text", default="/dev/zero", doc="the device; /dev/zero stands for one at rest"
        ),
        "count_m": tcpsbed.Param("number", 0, None, "0.0001", "what a count moves the hand, in m"),
    }

    def __init__(self, path, count_m):
        self.count_m, self.hand = count_m, np.zeros(3)
        self.device = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a call must not wait for the device

    def __call__(self, t_ns, index, x, other, y):
        with suppress(BlockingIOError):  # no report since the last call
            self.hand += self.count_m * np.frombuffer(os.read(self.device, 3), np.int8)
        y[:3] = self.hand
        return 3
