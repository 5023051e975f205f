"""A plant of your own for the step experiment. Scenario: own_plant.toml."""

import math

import tcpsbed


class Shaft(tcpsbed.Plant):
    """A drive that turns a load through a springy shaft: the angle of the load answers."""

    params = {
        "drive_ns": tcpsbed.Param("ns", 1e3, 1e9, "5 ms", "time constant of the drive"),
        "spring_hz": tcpsbed.Param("hz", 0.1, 1e3, "15 Hz", "frequency of the load on the shaft"),
        "damping": tcpsbed.Param("number", 0, 2, "0.4", "damping ratio of the load"),
    }

    def matrices(self):  # x' = A x + B u, y = 1 + C x, u = k - 1, times in s
        rate, w = 1e9 / self.drive_ns, 2 * math.pi * self.spring_hz
        a = [[-rate, 0, 0], [0, 0, w], [w, -w, -2 * self.damping * w]]
        return a, [rate, 0, 0], [0, 1, 0]
