"""`rerun`: numbers, values and events for the viewer of Rerun, in a file or live."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from tcpsbed.analysis.records import KINDS
from tcpsbed.door import Sink
from tcpsbed.media.packages import need
from tcpsbed.studio.sinks import File, values

QUEUE, GAP = (1 + KINDS.index(kind) for kind in ("queue", "gap"))
TIMELINE = "run"
"""Name of the time line: seconds of the run."""
FLUSH_S = 0.5
"""Time between two chunks; short ones make large files."""
DELAYS = ("mean", "p50", "p99", "max")


class Rerun(Sink):
    """Live data for Rerun. Target: a file such as `run.rrd`, or `rerun+http://127.0.0.1:9876/proxy` of a viewer."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.rr: Any = need("rerun", "the sink rerun", "rerun")
        together = self.rr.ChunkBatcherConfig(flush_tick=timedelta(seconds=FLUSH_S))
        self.recording = self.rr.RecordingStream("tcpsbed", batcher_config=together)
        self.file: File | None = None
        if "://" in target:
            self.recording.connect_grpc(target)
        else:
            self.file = File("rerun", target)
            self.recording.save(self.file.part)
        self.where = target

    def begin(self, plan: dict[str, Any]) -> None:
        """Names what rows only number."""
        self.nodes = [node["name"] for node in plan["nodes"]]
        self.links = [link["name"] for link in plan["network"]["links"]]
        self.points = values.points(plan)
        self.series: dict[str, list[str]] = {}
        """Names of the parts of each flow's delay."""
        for flow in plan["flows"]:
            self._name(["flows", flow["name"], "delay_ms"], [*DELAYS])

    def rows(self, rows: np.ndarray[Any, Any], now_s: float) -> None:
        """Queues, values, places of hand and tool, stalls."""
        queues = rows[(rows["kind"] == QUEUE) & (rows["point"] < len(self.links))]
        for row in {int(row["point"]): row for row in queues}.values():
            self._at(float(row["time"]) / 1e9)
            name = self.links[row["point"]]
            self._number(float(row["size"]), "queues", name, "bytes")
            self._number(float(row["value"]) / 1e6, "queues", name, "delay_ms")
        for point in self.points:
            for t_ns, found in values.of_point(rows, point):
                self._at(t_ns / 1e9)
                self.recording.log(["values", point.name], self.rr.Scalars(found))
                if point.at is not None and len(found) >= point.at + 3:
                    at = found[point.at : point.at + 3]
                    self.recording.log(["world", point.name], self.rr.Points3D([at], radii=0.008))
        for row in rows[rows["kind"] == GAP]:
            node = self.nodes[row["node"]] if row["node"] < len(self.nodes) else "emulator"
            told = f"{node} stalled for {float(row['value']) / 1e6:.1f} ms"
            self._say(float(row["time"]) / 1e9, told, "WARN")

    def take(self, now: dict[str, Any]) -> None:
        """Numbers of each flow, and the parts of its delay."""
        self._at(now["t_s"])
        for flow in now["flows"]:
            path = ["flows", flow["name"]]
            if "mean_ms" in flow:
                told = [flow[f"{key}_ms"] for key in DELAYS]
                self.recording.log([*path, "delay_ms"], self.rr.Scalars(told))
            self._number(flow["rate_hz"], *path, "rate_hz")
            if flow["loss"] is not None:
                self._number(flow["loss"], *path, "loss")
            names = [part["name"] for part in flow["parts"]]
            if names != self.series.get(flow["name"]):
                self._name([*path, "parts_ms"], names)
                self.series[flow["name"]] = names
            self.recording.log([*path, "parts_ms"], self.rr.Scalars([part["ms"] for part in flow["parts"]]))

    def picture(self, t_s: float, jpeg: bytes) -> None:
        """What the operator is shown."""
        self._at(t_s)
        self.recording.log("picture", self.rr.EncodedImage(contents=jpeg, media_type="image/jpeg"))

    def event(self, t_s: float, name: str) -> None:
        """A line of the log."""
        self._say(t_s, name, "INFO")

    def end(self) -> None:
        """The file takes its place, whole."""
        self.recording.flush()
        self.recording.disconnect()
        if self.file is not None:
            self.file.close()

    def _at(self, t_s: float) -> None:
        self.recording.set_time(TIMELINE, duration=t_s)

    def _name(self, path: list[str], names: list[str]) -> None:
        """Names the series of an entity with several numbers."""
        self.recording.log(path, self.rr.SeriesLines(names=names), static=True)

    def _number(self, value: float, *path: str) -> None:
        self.recording.log([*path], self.rr.Scalars(value))

    def _say(self, t_s: float, text: str, level: str) -> None:
        self._at(t_s)
        self.recording.log("log", self.rr.TextLog(text, level=level))
