"""A sink of your own: the 99th percentile of each flow in a csv file. Scenario: own_sink.toml."""

from pathlib import Path

import tcpsbed


class Percentiles(tcpsbed.Sink):
    """A line per flow, about 4 times a second."""

    def __init__(self, target):  # what is behind = on the command line
        super().__init__(target)
        self.lines = ["t_s,flow,p99_ms"]

    def take(self, now):  # other methods: tcpsbed docs sinks
        self.lines += [f"{now['t_s']},{flow['name']},{flow.get('p99_ms', '')}" for flow in now["flows"]]

    def end(self):
        Path(self.target or "p99.csv").write_text("\n".join(self.lines) + "\n")
