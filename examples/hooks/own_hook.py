"""A hook of your own: the hand feels the robot's force scaled, and never too much of it. Scenario: own_hook.toml."""

import numpy as np

import tcpsbed


class Scaled:
    """Each value times `gain`, within `most`."""

    params = {
        "gain": tcpsbed.Param("number", 0, 100, "1", "what a force is multiplied by"),
        "most": tcpsbed.Param("number", 0, None, "5", "the largest force that is given out, in N"),
    }

    def __init__(self, gain, most):
        self.gain, self.most = gain, most

    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = np.clip(self.gain * x, -self.most, self.most)
        return len(x)  # how many values these are; with 0 the sample ends here
