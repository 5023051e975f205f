"""A metric of your own: how many samples came too late to be of use. Scenario: own_metric.toml."""

import numpy as np

import tcpsbed
from tcpsbed.analysis.records import KINDS

DELIVERED = 1 + KINDS.index("delivered")
LATE_NS = 20_000_000


class Late(tcpsbed.Metric):
    """Share of the delivered samples that were older than 20 ms."""

    unit = "share"

    def of(self, run):
        # a row an event; run.samples has the same with names, run.summary what is known already
        rows = run.records
        rows = rows[rows["kind"] == DELIVERED]
        of_flow = {name: rows["value"][rows["flow"] == n] for n, name in enumerate(run.flows)}
        return {name: np.mean(delays_ns > LATE_NS) for name, delays_ns in of_flow.items() if len(delays_ns)}
