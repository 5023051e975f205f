"""A metric of your own: how long the slowest samples took. Scenario: own_metric.toml."""

import numpy as np

import tcpsbed
from tcpsbed.analysis.records import KINDS

DELIVERED = 1 + KINDS.index("delivered")


class Slowest(tcpsbed.Metric):
    """Mean delay of the slowest hundredth of the delivered samples."""

    unit = "ms"

    def of(self, run):
        # a row an event; run.samples has the same with names, run.summary what is known already
        rows = run.records
        rows = rows[rows["kind"] == DELIVERED]
        of_flow = {name: np.sort(rows["value"][rows["flow"] == n]) for n, name in enumerate(run.flows)}
        return {name: np.mean(ns[len(ns) * 99 // 100 :]) / 1e6 for name, ns in of_flow.items() if len(ns)}
