"""A predictor as a plain Python class: the last sample holds. Scenario: `"./zoh.py:Zoh"`."""

import numpy as np


class Zoh:
    def __init__(self, **params):
        self.last = np.zeros(0)

    def __call__(self, t_ns, index, x, other, y):
        if x is not None:
            self.last = x.copy()  # x is a view that is valid during this call only
        y[: len(self.last)] = self.last
        return len(self.last)  # 0 before the first sample: nothing is emitted
