"""An emergency agent: while commands are missing it lifts the follower off what it touches, then stays.

Scenario: `agent = "./agent.py:LiftOff"` among the params of a `supervisor`. `x` is where the follower is, `other` what comes
back from the robot, `y` where it is to go; the supervisor keeps speed and reach.
"""


class LiftOff:
    def __init__(self, force=0, most_n=0.5, step_m=0.001):
        self.force, self.most_n, self.step_m = force, most_n, step_m

    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = x
        touches = len(other) > self.force and other[self.force] > self.most_n
        if touches:
            y[0] = x[0] - self.step_m  # away from a wall on the right
        return len(x)
