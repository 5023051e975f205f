"""A kind of component of your own: a gateway that smooths what passes it. Scenario: own_component.toml."""

import numpy as np

import tcpsbed


class Smoother(tcpsbed.Component):
    """Takes the tremor out of a hand: each value follows the one that comes with a lag."""

    # behind the server, in both directions; {"forward": "srv"} would leave the forces as they are
    after = "srv"
    params = {
        "lag_ns": tcpsbed.Param("ns", 0, 1e10, "20 ms", "time constant of the low pass"),
    }
    last = np.zeros(0)
    last_ns = 0

    def __call__(self, t_ns, index, x, other, y):
        if len(self.last) != len(x):
            self.last = x.copy()  # x is a view that is valid during this call only
        share = (t_ns - self.last_ns) / (self.lag_ns + t_ns - self.last_ns) if t_ns > self.last_ns else 0.0
        self.last += share * (x - self.last)
        self.last_ns = t_ns
        y[: len(x)] = self.last
        return len(x)
