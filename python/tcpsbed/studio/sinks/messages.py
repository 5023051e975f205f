"""A run as messages of Foxglove's well-known schemas, for its app (`foxglove`) and for MCAP files (`mcap`).

```text
/flows/NAME     delay, rate, loss, parts of the delay        4 a second     JSON
/queues/LINK    packets, bytes, delay                        newest, 20 a second
/values/POINT   values at a point of `measure.signals`       up to 100 a second
/poses/POINT    PoseInFrame, /tf FrameTransform, /scene SceneUpdate with the force: where the values are a place
/picture        CompressedImage: what the operator is shown  at most 10 a second
/log            Log: events, stalls of nodes
```
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from tcpsbed import shipped
from tcpsbed.analysis.records import KINDS
from tcpsbed.door import Sink
from tcpsbed.media.packages import need
from tcpsbed.studio.sinks import values

LAYOUT = shipped.DATA / "foxglove.json"
WORLD = "world"
"""The frame of the robot's foot, in which places are told."""
QUEUE, GAP = (1 + KINDS.index(kind) for kind in ("queue", "gap"))
N_LONG = 0.02
"""Length of the arrow for 1 N, m."""
RADIUS_M = 0.008


def _object(**properties: str) -> dict[str, Any]:
    """The JSON Schema of an object with these properties and their types."""
    return {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}


FLOW = {"title": "tcpsbed.Flow"} | _object(
    mean_ms="number", p50_ms="number", p99_ms="number", max_ms="number", rate_hz="number", loss="number"
)
FLOW["properties"] |= {
    key: {"type": "array", "items": _object(name="string", ms="number")} for key in ("parts", "causes")
}
QUEUED = {"title": "tcpsbed.Queue"} | _object(packets="integer", bytes="integer", delay_ms="number")
VALUES = {"title": "tcpsbed.Values"} | _object()
VALUES["properties"]["values"] = {"type": "array", "items": {"type": "number"}}


class Told(Sink):
    """A sink of messages in a context of Foxglove's package, which a subclass leads somewhere."""

    name: str
    """As `--sink` has it."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        need("foxglove.messages", f"the sink {self.name}", "foxglove")
        from foxglove import Context

        self.context = Context()

    def begin(self, plan: dict[str, Any]) -> None:
        """Makes the channels."""
        self.messages = Messages(self.context, plan)

    def rows(self, rows: np.ndarray[Any, Any], now_s: float) -> None:
        """Queues, values, places and stalls."""
        self.messages.rows(rows, now_s)

    def take(self, now: dict[str, Any]) -> None:
        """Numbers of each flow."""
        self.messages.take(now)

    def picture(self, t_s: float, jpeg: bytes) -> None:
        """What the operator is shown."""
        self.messages.picture(t_s, jpeg)

    def event(self, t_s: float, name: str) -> None:
        """A line of the log."""
        self.messages.event(t_s, name)


class Messages:
    """Makes messages of a run's rows and numbers.

    Parameters
    ----------
    context : foxglove.Context
        Where they go.
    plan : dict
        The compiled scenario.
    """

    def __init__(self, context: Any, plan: dict[str, Any]) -> None:
        from foxglove import Channel, channels, messages

        self.made = messages
        self.context = context
        self.pictures: Any = None
        self.zero_ns: int | None = None
        """The machine's time at the run's beginning."""
        self.nodes = [node["name"] for node in plan["nodes"]]
        links = [link["name"] for link in plan["network"]["links"]]
        self.flows = {
            flow["name"]: Channel(f"/flows/{flow['name']}", schema=FLOW, context=context)
            for flow in plan["flows"]
        }
        self.queues = [Channel(f"/queues/{name}", schema=QUEUED, context=context) for name in links]
        self.points = values.points(plan)
        self.values = {
            point: Channel(f"/values/{point.name}", schema=VALUES, context=context) for point in self.points
        }
        places = [point for point in self.points if point.at is not None]
        self.poses = {
            point: channels.PoseInFrameChannel(f"/poses/{point.name}", context=context) for point in places
        }
        self.log = channels.LogChannel("/log", context=context)
        self.tf = channels.FrameTransformChannel("/tf", context=context) if places else None
        self.scene = channels.SceneUpdateChannel("/scene", context=context) if places else None

    def rows(self, rows: np.ndarray[Any, Any], now_s: float) -> None:
        """Queues, values, places and stalls."""
        if self.zero_ns is None:
            self.zero_ns = time.time_ns() - round(now_s * 1e9)
        queues = rows[(rows["kind"] == QUEUE) & (rows["point"] < len(self.queues))]
        for row in {int(row["point"]): row for row in queues}.values():
            told = {
                "packets": int(row["index"]),
                "bytes": int(row["size"]),
                "delay_ms": float(row["value"]) / 1e6,
            }
            self.queues[row["point"]].log(told, log_time=self._at(int(row["time"])))
        for point in self.points:
            for t_ns, found in values.of_point(rows, point):
                self.values[point].log({"values": found}, log_time=self._at(t_ns))
                if point.at is not None and len(found) >= point.at + 3:
                    self._place(point, found, t_ns)
        for row in rows[rows["kind"] == GAP]:
            node = self.nodes[row["node"]] if row["node"] < len(self.nodes) else "emulator"
            self._say(int(row["time"]), "Warning", node, f"stalled for {float(row['value']) / 1e6:.1f} ms")

    def take(self, now: dict[str, Any]) -> None:
        """Numbers of each flow."""
        at = self._at(round(now["t_s"] * 1e9))
        for flow in now["flows"]:
            told = {
                key: value for key, value in flow.items() if value is not None and key not in ("name", "n")
            }
            self.flows[flow["name"]].log(json.dumps(told).encode(), log_time=at)

    def picture(self, t_s: float, jpeg: bytes) -> None:
        """What the operator is shown."""
        t_ns = round(t_s * 1e9)
        if self.pictures is None:
            from foxglove.channels import CompressedImageChannel

            self.pictures = CompressedImageChannel("/picture", context=self.context)
        stamp = self._stamp(t_ns)
        shown = self.made.CompressedImage(timestamp=stamp, frame_id="operator", data=jpeg, format="jpeg")
        self.pictures.log(shown, log_time=self._at(t_ns))

    def event(self, t_s: float, name: str) -> None:
        """An event of the scenario, or a change by hand."""
        self._say(round(t_s * 1e9), "Info", "event", name)

    def _at(self, t_ns: int) -> int:
        return (self.zero_ns or 0) + max(t_ns, 0)

    def _stamp(self, t_ns: int) -> Any:
        seconds, ns = divmod(self._at(t_ns), 1_000_000_000)
        return self.made.Timestamp(seconds, ns)

    def _say(self, t_ns: int, level: str, name: str, text: str) -> None:
        entry = self.made.Log(
            timestamp=self._stamp(t_ns), level=getattr(self.made.LogLevel, level), name=name, message=text
        )
        self.log.log(entry, log_time=self._at(t_ns))

    def _place(self, point: values.Point, found: list[float], t_ns: int) -> None:
        """Where a hand or a tool is, and the force on it."""
        assert point.at is not None and self.tf is not None and self.scene is not None
        made, at, stamp = self.made, self._at(t_ns), self._stamp(t_ns)
        x, y, z = found[point.at : point.at + 3]
        straight = made.Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
        pose = made.Pose(position=made.Vector3(x=x, y=y, z=z), orientation=straight)
        self.poses[point].log(made.PoseInFrame(timestamp=stamp, frame_id=WORLD, pose=pose), log_time=at)
        self.tf.log(
            made.FrameTransform(
                timestamp=stamp,
                parent_frame_id=WORLD,
                child_frame_id=point.name,
                translation=made.Vector3(x=x, y=y, z=z),
                rotation=straight,
            ),
            log_time=at,
        )
        across = made.Vector3(x=2 * RADIUS_M, y=2 * RADIUS_M, z=2 * RADIUS_M)
        colour = made.Color(r=0.0, g=0.45, b=0.7, a=1.0 if point.force is not None else 0.5)
        lines = []
        if point.force is not None:
            force = found[point.force : point.force + 3]
            ends = [
                made.Point3(x=x, y=y, z=z),
                made.Point3(**{k: p + N_LONG * f for k, p, f in zip("xyz", (x, y, z), force, strict=True)}),
            ]
            lines = [
                made.LinePrimitive(
                    points=ends, thickness=RADIUS_M / 2, color=made.Color(r=0.84, g=0.37, b=0.0, a=1.0)
                )
            ]
        entity = made.SceneEntity(
            timestamp=stamp,
            frame_id=WORLD,
            id=point.name,
            spheres=[made.SpherePrimitive(pose=pose, size=across, color=colour)],
            lines=lines,
        )
        self.scene.log(made.SceneUpdate(entities=[entity]), log_time=at)
