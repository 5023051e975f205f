"""A plausible run folder, written without running anything: a dumbbell with four flows, one outage, one disturbance."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

BINS = 500
PATH = (
    "operator",
    "ms-embsys",
    "ms-com",
    "access",
    "bottleneck",
    "srv",
    "egress",
    "ss-com",
    "ss-embsys",
    "robot",
)
GRID = [1 - math.exp(-k / 9) if k < 100 else 1.0 for k in range(101)]
LINKS = {"access", "bottleneck", "egress"}
FLOWS = {
    "kinematic": ("forward", 1000, 64),
    "haptic": ("backward", 1000, 64),
    "audio": ("backward", 50, 160),
    "video": ("backward", 25, 2400),
}


def spread(mean: float, wide: float = 0.35) -> dict[str, float]:
    """Statistics of a plausible distribution around a mean."""
    factors = {
        "min": 1 - wide,
        "mean": 1.0,
        "p50": 0.97,
        "p95": 1 + wide,
        "p99": 1 + 1.8 * wide,
        "p999": 1 + 2.6 * wide,
        "max": 1 + 3.1 * wide,
    }
    return {key: mean * factor for key, factor in factors.items()}


def path_of(number: int) -> list[dict[str, Any]]:
    """A flow's way, most of it on the network."""
    lengths = [0.02, 0.11, 0.35, 5.06 + number, 11.4 + 4 * number, 1.3, 5.05 + number, 0.3, 0.09, 0.0]
    total = sum(lengths)
    return [
        {
            "what": "link" if name in LINKS else "component",
            "name": name,
            "latency_ms": spread(length),
            "where_from": "samples",
            "share": length / total,
        }
        for name, length in zip(PATH, lengths, strict=True)
    ]


def largest_of(number: int) -> dict[str, Any]:
    """The largest part of a flow's delay."""
    total = sum(part["latency_ms"]["mean"] for part in path_of(number))
    mean = 8.0 + 4 * number
    where = {"cause": "queueing", "place": "bottleneck.forward", "key": "links.bottleneck.rate"}
    return where | {"value": "1.5 Mbit/s", "mean_ms": mean, "total_ms": total, "share": mean / total}


def flow_summary(
    number: int, direction: str, rate: int, size: int, seconds: float, shift: float
) -> dict[str, Any]:
    """Counts, delays and jitter of one flow."""
    sent = int(rate * seconds)
    lost = sent // (400 + 70 * number)
    mean = sum(part["latency_ms"]["mean"] for part in path_of(number)) + shift
    return {
        "session": "main",
        "direction": direction,
        "sent": sent,
        "delivered": sent - lost,
        "repeated": 0,
        "lost": lost,
        "loss": lost / sent,
        "duplicated": 0,
        "reordered": 0,
        "drops": {"bottleneck.forward full": lost},
        "delay_ms": spread(mean),
        "jitter_ms": {
            "step": {"mean": 0.21, "max": 8.4},
            "displayed": {"mean": 0.3, "max": 9.9},
            "rfc3550": 0.19,
            "pdv": spread(5.0),
        },
        "interarrival_ms": spread(1000 / rate),
        "age_ms": spread(mean + 500 / rate),
        "superseded": 0,
        "suppressed": 0,
        "interarrival_fits": {
            "gaussian": {"location": 1000 / rate, "scale": 0.11, "distance": 0.08},
            "gumbel": {"location": 990 / rate, "scale": 0.09, "distance": 0.05},
        },
        "rate_bps": rate * size * 8.0,
        "verified": {"good": sent - lost, "bad": 0} if rate < 100 else {},
    }


def echo_summary() -> dict[str, Any]:
    """Echo points along the kinematic path and their differences."""
    points, mean = [], 0.4
    for name, step in (
        ("ms-com.entry", 0.1),
        ("ms-com.exit", 0.35),
        ("srv.entry", 16.4),
        ("srv.exit", 1.3),
        ("ss-com.entry", 5.1),
        ("ss-com.exit", 0.3),
    ):
        mean += step * 1.6
        trip = {**spread(mean), "ci95": mean * 0.02, "ci95_batch": mean * 0.035}
        points.append(
            {
                "point": name,
                "n": 1000,
                "lost": 2,
                "round_trip_ms": trip,
                "forward_ms": spread(mean * 0.6),
                "return_ms": spread(mean * 0.4),
            }
        )
    components = [
        {
            "what": "component",
            "name": name,
            "from": f"{name}.entry",
            "to": f"{name}.exit",
            "latency_ms": spread(value),
            "ci95": value * 0.04,
        }
        for name, value in (("ms-com", 0.35), ("srv", 1.3), ("ss-com", 0.3))
    ]
    links = [
        {
            "what": "link",
            "name": f"{a} to {b}",
            "from": f"{a}.exit",
            "to": f"{b}.entry",
            "latency_ms": spread(value),
            "ci95": 0.04 * value,
            "halved": b == "ss-com",
        }
        for a, b, value in (("ms-com", "srv", 16.4), ("srv", "ss-com", 5.1))
    ]
    return {
        "kinematic": {
            "commands": 6000,
            "points": points,
            "components": components,
            "links": links,
            "spans": [],
            "actuation_ms": spread(4.2),
        }
    }


def network_summary() -> dict[str, Any]:
    """Links, queues and traffic of the dumbbell."""
    links = (
        ("access", 0.71, 411, 0),
        ("bottleneck", 0.984, 14_935, 431),
        ("egress", 0.7, 137, 0),
    )
    return {
        "network": [
            {
                "name": f"{link}.{way}",
                "packets": 212_000,
                "bytes": 29_044_000,
                "dropped_packets": drops,
                "loss": drops / 212_000,
                "utilisation": use,
                "max_queue_bytes": queue,
                "max_queue_packets": queue // 137,
            }
            for link, use, queue, drops in links
            for way in ("forward", "backward")
        ],
        "traffic": [
            {
                "name": "cbr",
                "packets": 99_500,
                "bytes": 4_975_000,
                "delivered_packets": 99_210,
                "dropped_packets": 290,
            }
        ],
        "queues": [{"link": "bottleneck.forward", "bytes": {}, "packets": {}, "delay_ms": spread(21.0)}],
    }


def work_summary() -> dict[str, Any]:
    """Stages, components, endpoints and clocks."""
    counted = ("malformed", "refused", "retransmits", "recovered", "lost", "reports")
    unknown = ("rtt_ns", "jitter_ns", "peer_loss")
    endpoint = {"channel": "op-cloud", "side": "a", "duplicates": 4, "incomplete": 1}
    return {
        "stages": [
            {
                "component": "srv",
                "flow": "kinematic",
                "kind": "inverse_kinematics",
                "name": "arm6",
                "calls": 100_000,
                "failures": 0,
                "not_finite": 0,
                "overruns": 2,
                "cpu_ns": {"mean": 1340.0, "p50": 1290, "p99": 2100, "max": 18_400},
            }
        ],
        "components": [{"component": "srv", "busy_s": 0.134, "core_share": 0.00134}],
        "endpoints": [endpoint | dict.fromkeys(counted, 0) | dict.fromkeys(unknown)],
        "clocks": [
            {"node": "cloud", "offset_ms": 0.012, "bound_ms": 5.1, "drift_ppm": 12.5, "true_error_ms": 0.003}
        ],
    }


def world_summary(seconds: float, *, real: bool) -> dict[str, Any]:
    """Nodes, emulator and disturbances: those of sockets tell more of themselves."""
    nodes = [{"name": node, "busy_s": 0.06 * seconds, "cores": 1} for node in ("op", "cloud", "field")]
    if not real:
        return {"nodes": nodes, "emulator": [], "ignored": [], "disturbances": []}
    loop = {
        "ticks": 100_000,
        "late_ns": {"p50": 25_000, "p99": 63_000, "p999": 310_000, "max": 1_900_000},
        "missed_ticks": 3,
        "gaps_over_1ms": 2,
        "ring_overflows": 0,
        "socket_drops": 0,
        "waiting": "timer",
        "privileges": ["SCHED_FIFO"],
    }
    emulated = {
        "path": "op -> cloud",
        "set_delay_ms": 5.0,
        "set_p50_ms": 5.001,
        "set_p99_ms": 5.002,
        "delivered_delay_ms": spread(5.03, 0.05),
        "set_rate_bps": 688_000.0,
        "delivered_rate_bps": 687_990.0,
        "set_loss": 0.0,
        "delivered_loss": 0.0,
    }
    return {
        "nodes": [node | loop for node in nodes],
        "emulator": [emulated],
        "ignored": ["nodes.cloud.cores = 2: stages run on the cores that the machine gives"],
        "disturbances": ["node cloud stalled for 3.2 ms at 61.2 s"],
    }


def summary(
    *,
    name: str = "quickstart",
    world: str = "virtual",
    seed: int = 1,
    seconds: float = 100.0,
    shift: float = 0.0,
) -> dict[str, Any]:
    """A whole summary.json."""
    flows = {
        flow: flow_summary(i, *settings, seconds, shift) for i, (flow, settings) in enumerate(FLOWS.items())
    }
    return {
        "version": 1,
        "name": name,
        "world": world,
        "seed": seed,
        "duration_s": seconds,
        "warmup_s": 0.5,
        "versions": {"tcpsbed": "0.1.0", "python": "3.11.7"},
        "machine": {"system": "Linux 6.1 x86_64", "cores": 2},
        "promise": "same scenario and seed give the same records on any machine",
        "random": True,
        "wall": {"simulate_s": 0.31, "total_s": 0.9},
        "records": {"rows": 812_331, "level": "samples"},
        "across_seeds": {"seeds": [seed], "unchanged": False, "failed": [], "disturbed": [], "flows": {}},
        "records_sha256": f"9f9f{seed:060x}",
        "flows": flows,
        "path": {flow: path_of(i) for i, flow in enumerate(FLOWS)},
        "largest": {flow: largest_of(i) for i, flow in enumerate(FLOWS)},
        "points": {
            "kinematic": [
                {"point": f"{place}.entry", "n": 100_000, "age_ms": spread(3.0 * i + 0.2)}
                for i, place in enumerate(PATH[1:5], 1)
            ]
        },
        "echo": echo_summary(),
        "events": [
            {"t_s": 0.4 * seconds, "name": "bottleneck at 1 Mbit/s"},
            {"t_s": 0.7 * seconds, "name": "bottleneck back at 1.5 Mbit/s"},
        ],
        "assumed_free": ["operator: sense of kinematic", "ss-com: decode of kinematic"],
        "errors": [],
        **network_summary(),
        **work_summary(),
        **world_summary(seconds, real=world == "real"),
    }


def series(summed: dict[str, Any], seed: int = 1) -> dict[str, Any]:
    """A series.json that fits the summary."""
    draw, seconds = random.Random(seed), summed["duration_s"]
    times = [round((i + 0.5) * seconds / BINS, 6) for i in range(BINS)]
    load = [
        0.2 + (0.8 if 0.4 <= i / BINS <= 0.7 else 0.0) * (1 - math.exp(-(i / BINS - 0.4) * 40))
        for i in range(BINS)
    ]
    flows, cdf = {}, {}
    for name, flow in summed["flows"].items():
        base, drawn = flow["delay_ms"]["min"], flow["delay_ms"]["mean"] - flow["delay_ms"]["min"]
        mean = [base + drawn * (2 * level + 0.15 * draw.random()) for level in load]
        flows[name] = {
            "delay_mean_ms": mean,
            "delay_max_ms": [value * (1.1 + 0.3 * draw.random()) for value in mean],
            "rate_bps": [flow["rate_bps"] * (0.98 + 0.04 * draw.random()) for _ in mean],
            "lost": [draw.randrange(9) if level > 0.9 and draw.random() < 0.4 else 0 for level in load],
            "age_ms": [value + 0.6 for value in mean],
            "fragments": [None for _ in mean],
        }
        delays = [base + drawn * 0.35 * k / 10 for k in range(101)]
        cdf[name] = {
            "delay_ms": delays,
            "p": GRID,
            "interarrival_ms": [flow["interarrival_ms"]["mean"] * (0.7 + k / 150) for k in range(101)],
        }
    queue = [15_000 * level * draw.random() for level in load]
    disturbed = [{"from_s": 61.2, "to_s": 61.9, "why": "gap"}] if summed["disturbances"] else []
    return {
        "echo": {
            "kinematic": {
                "p": GRID,
                "round_trip_ms": {
                    point["point"]: [point["round_trip_ms"]["mean"] * (0.8 + k / 100) for k in range(101)]
                    for point in summed["echo"]["kinematic"]["points"]
                },
            }
        },
        "t_s": times,
        "flows": flows,
        "events": summed["events"],
        "cdf": cdf,
        "disturbed": disturbed,
        "queues": {
            "bottleneck.forward": {"bytes": queue, "packets": [v / 137 for v in queue]},
            "access.forward": {"bytes": [v / 30 for v in queue], "packets": []},
        },
    }


def write(folder: Path, **settings: Any) -> Path:
    """A run folder as the analysis leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    summed = summary(**settings)
    (folder / "summary.json").write_text(json.dumps(summed))
    (folder / "series.json").write_text(json.dumps(series(summed)))
    (folder / "scenario.toml").write_text(
        f'name = "{summed["name"]}"\nduration = "100 s"\nseed = {summed["seed"]}\n'
    )
    return folder
