"""A run folder whose rows are made by hand, so that every number in its summary is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpsbed.analysis import build, stalls
from tcpsbed.analysis.facts import scenario_info
from tcpsbed.analysis.records import FIELDS, KINDS

MS = 1_000_000
NONE = 0xFFFF
SAMPLES = 4000
LINK_MS, SRV_MS, LAST_MS = 2.0, 0.5, 3.0
"""Time on the first link, in srv, on the second link."""
HAND_OUT, SRV_IN, SRV_OUT, ROBOT_IN = 1, 2, 3, 4
POINTS = (SRV_IN, SRV_OUT, ROBOT_IN)


def plan() -> dict[str, Any]:
    """Components hand, srv, robot at 1 kHz for 5 s, with echoes to three points."""
    names = ("hand", "srv", "robot")
    work = {"kind": "kinematics", "run": {"kind": "builtin", "name": "wrist"}}
    return {
        "name": "handmade", "seed": 7, "duration_ns": 5000 * MS, "sessions": ["main"], "real": {"network": "gates"},
        "nodes": [{"name": f"n{i}"} for i in range(3)],
        "components": [{"name": name, "kind": name, "session": 0, "node": i} for i, name in enumerate(names)],
        "flows": [{
            "name": "kinematic", "session": 0, "direction": "forward", "period_ns": MS, "codec": "f32",
            "source": {"kind": "generated", "bytes": 24}, "sink": {"kind": "count"},
            "path": [{"component": 0, "channel": 0}, {"component": 1, "channel": 1, "steps": [work]}, {"component": 2}],
        }],
        "channels": [{"name": f"c{i}", "session": 0, "a": i, "b": i + 1, "transport": "udp"} for i in range(2)],
        "network": {
            "vertices": ["n0", "n1", "n2"],
            "links": [{"name": "l1.forward", "from": 0, "to": 1}, {"name": "l2.forward", "from": 1, "to": 2}],
        },
        "probes": [{"flow": 0, "points": list(POINTS), "period_ns": 10 * MS, "reply_to": 0}],
    }  # fmt: skip


def rows(kind: str, times_ms: Any, *, value_ms: Any = 0.0, **fields: Any) -> NDArray[np.void]:
    """Rows of one kind at these times."""
    times = np.atleast_1d(np.asarray(times_ms, dtype=float))
    made = np.zeros(len(times), dtype=np.dtype(FIELDS))
    made["time"] = np.round(times * MS)
    made["value"] = np.round(np.asarray(value_ms) * MS)
    made["kind"] = 1 + KINDS.index(kind)
    for name in ("flow", "point", "node"):
        made[name] = fields.pop(name, NONE)
    for name, value in fields.items():
        made[name] = value
    return made


def recorded() -> NDArray[np.void]:
    """4000 samples, every 100th lost on the second link; a queue; a clock 40 us ahead; one gap; echoes for 2 s."""
    index = np.arange(SAMPLES)
    sent = index.astype(float)
    kept = index % 100 != 50
    ages = {"enter": (SRV_IN, LINK_MS), "exit": (SRV_OUT, LINK_MS + SRV_MS)}
    whole = LINK_MS + SRV_MS + LAST_MS
    parts = [rows("sent", sent, value_ms=sent, index=index, size=24, flow=0, point=HAND_OUT, node=0)]
    parts += [
        rows(kind, sent + age, value_ms=age, index=index, size=24, flow=0, point=point, node=1)
        for kind, (point, age) in ages.items()
    ]
    parts.append(
        rows(
            "delivered",
            sent[kept] + whole,
            value_ms=whole,
            index=index[kept],
            size=24,
            flow=0,
            point=ROBOT_IN,
            node=2,
        )
    )
    parts.append(rows("dropped", sent[~kept] + 4, value_ms=4, index=index[~kept], flow=0, point=1, detail=1))
    parts.append(rows("queue", np.arange(0, 5000, 10), value_ms=0.8, index=2, size=150, point=1))
    parts.append(rows("sync", np.arange(0, 5000, 125), value_ms=0.04, size=20_000, node=0, point=2))
    parts.append(rows("gap", 2500, value_ms=3.2, node=1))
    parts += _echoes()
    made = np.concatenate(parts)
    return made[np.argsort(made["time"], kind="stable")]


def _echoes() -> list[NDArray[np.void]]:
    sequence = np.arange(200)
    turn = sequence % 3
    out = np.choose(turn, [LINK_MS, LINK_MS + SRV_MS, LINK_MS + SRV_MS + LAST_MS])
    back = np.choose(turn, [LINK_MS, LINK_MS, LINK_MS + LAST_MS])
    point = np.choose(turn, POINTS)
    common = {"index": sequence, "flow": 0, "point": point, "node": 0}
    return [rows("echo", sequence * 10.0 + out + back, value_ms=out + back, **common)]


def result() -> dict[str, Any]:
    """What such a run would tell about itself."""
    spread = {"mean": 1300.0, "p50": 1250, "p99": 2100, "p999": 2500, "max": 9000}
    link = {
        "name": "l2.forward", "packets": 3960, "bytes": 340_560, "dropped_packets": 40, "dropped_bytes": 3440,
        "drops": {"full": 40},
        "max_queue_bytes": 172, "max_queue_packets": 2, "busy_s": 1.25, "duplicated": 0, "corrupted": 0,
    }  # fmt: skip
    stage = {
        "component": "srv",
        "flow": "kinematic",
        "kind": "kinematics",
        "name": "wrist",
        "calls": 4000,
        "failures": 0,
        "overruns": 0,
    }
    counted = ("malformed", "duplicates", "incomplete", "refused", "retransmits")
    endpoint = {"channel": "c0", "side": "n0"} | dict.fromkeys(counted, 0)
    endpoint |= dict.fromkeys(("rtt_ns", "jitter_ns", "peer_loss"))
    return {
        "simulate_s": 0.01, "total_s": 0.5, "events": 1, "records": 1, "records_sha256": "ab" * 32, "interrupted": False,
        "links": [link],
        "traffic": [{"name": "cbr", "packets": 5, "bytes": 500, "delivered_packets": 5, "dropped_packets": 0}],
        "endpoints": [endpoint],
        "stages": [stage | {"cpu_ns": spread, "quantiles_ns": [1] * 101}],
        "nodes": [{"name": "n0", "cores": 1, "busy_s": 0.1, "missed_ticks": 0, "asides_refused": 0}],
        "emulator": [], "clocks": [], "errors": [],
    }  # fmt: skip


def write(folder: Path, *, world: str = "virtual", told: dict[str, Any] | None = None) -> Path:
    """The run folder, analysed."""
    from tcpsbed import _tcps

    (folder / "plan.json").write_text(json.dumps(plan()))
    (folder / "records.bin").write_bytes(recorded().tobytes())
    found = json.loads(_tcps.analyse(str(folder / "records.bin"), json.dumps(plan()), 0))
    info = scenario_info(plan(), world=world) | {"stalls": stalls.stalls(folder, plan(), 0, found)}
    build(folder, info, told or result(), found)
    return folder
