"""A rate controller of your own: merges while the reported delay exceeds the smallest one. Scenario: own_controller.toml."""

import tcpsbed


class Patient(tcpsbed.RateController):
    params = {
        "k_max": tcpsbed.Param("count", 1, 7, "4", "most samples in a packet"),
        "queue_ns": tcpsbed.Param("ns", 0, 1e9, "3 ms", "queue above which one more sample is merged"),
        "calm_ns": tcpsbed.Param(
            "ns", 1e6, 1e10, "200 ms", "time below it after which one sample less is merged"
        ),
    }
    least_ns = None  # the smallest delay so far
    since_ns = 0  # when k changed last

    def on_feedback(self, now_ns, delay_ns, k, told):
        merging_ns = (told.fragments - 1) * self.channel.flows[
            0
        ].period_ns  # how long its first sample waited for the others
        way_ns = delay_ns - merging_ns
        self.least_ns = way_ns if self.least_ns is None else min(self.least_ns, way_ns)
        waited_ns = now_ns - self.since_ns
        if way_ns - self.least_ns > self.queue_ns:
            new = min(k + 1, self.k_max) if waited_ns > 10_000_000 else k
        else:
            new = max(k - 1, 1) if waited_ns > self.calm_ns else k
        if new != k:
            self.since_ns = now_ns
        return new
