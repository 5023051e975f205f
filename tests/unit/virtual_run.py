"""A scenario text run in virtual time: its summary, its rows, and the values that reached a component."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tcpsbed
from tcpsbed.analysis.records import KINDS, open_records

CAPTURE = '''
import numpy as np


class Capture:
    """Passes samples on and writes their values to a file."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def __call__(self, t_ns, index, x, other, y):
        self.file.write(np.array([len(x), *x]).tobytes())
        self.file.flush()
        y[: len(x)] = x
        return len(x)
'''


@dataclass
class Simulated:
    """What a run left."""

    out: Path
    summary: dict[str, Any]
    plan: dict[str, Any]

    def rows(self, *kinds: str) -> np.ndarray:
        """Rows of some kinds."""
        found = np.asarray(open_records(self.out / "records.bin"))
        return found[np.isin(found["kind"], [1 + KINDS.index(kind) for kind in kinds])]

    def flow(self, name: str) -> int:
        """The number of a flow."""
        return [flow["name"] for flow in self.plan["flows"]].index(name)

    def delays_ms(self, name: str) -> np.ndarray:
        """One-way delay of every delivered sample of a flow, by index."""
        found = self.rows("delivered")
        return found[found["flow"] == self.flow(name)]["value"] / 1e6

    def parts_ms(self, name: str) -> dict[str, float]:
        """Mean time at every place on a flow's way that took any."""
        parts = {part["name"]: part["latency_ms"]["mean"] for part in self.summary["path"][name]}
        return {place: mean for place, mean in parts.items() if mean > 0}


def simulated(folder: Path, text: str, *overrides: str, out: str = "out") -> Simulated:
    """Runs a scenario text whose relative paths start from the folder."""
    file = folder / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    run = tcpsbed.run(file, world="virtual", out=folder / out, set=overrides)
    return Simulated(folder / out, run.summary, json.loads((folder / out / "plan.json").read_text()))


def captured(path: Path) -> list[tuple[float, ...]]:
    """The values of every sample that a Capture saw."""
    flat, samples, at = np.frombuffer(path.read_bytes()), [], 0
    while at < len(flat):
        n = int(flat[at])
        samples.append(tuple(flat[at + 1 : at + 1 + n]))
        at += 1 + n
    return samples
