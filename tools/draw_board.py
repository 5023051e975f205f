"""Draws the picture of the page on boards into docs/pictures: python tools/draw_board.py

Runs `tcpsbed latency scenarios/board.toml` on sockets, with the firmware as processes, and in virtual time. Needs the extra
`plot`, make and a C compiler.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "board.png"
WORLDS = {"real": "on sockets, firmware as processes", "virtual": "in virtual time, modelled"}
FLOW = "kinematic"


def echoed(world: str) -> dict[str, float]:
    """Mean latency in ms of each component and link on the way of the flow, by echo commands."""
    command = [sys.executable, "-m", "tcpsbed", "latency", str(ROOT / "scenarios" / "board.toml"), "--json"]
    done = subprocess.run(
        [*command, "--world", world, "--flow", FLOW], check=True, stdout=subprocess.PIPE, text=True
    )
    told: dict[str, Any] = json.loads(done.stdout)[FLOW]
    spans = sorted([*told["components"], *told["links"]], key=lambda span: _place(told, span["name"]))
    return {span["name"]: span["latency_ms"]["mean"] for span in spans}


def _place(told: dict[str, Any], name: str) -> float:
    """Where a component, or the link behind one, stands on the way."""
    points = [point["point"] for point in told["points"]]
    first, arrow, _ = name.partition(" -> ")
    return points.index(f"{first}.exit" if arrow else f"{first}.entry") if first else 0


def main() -> None:
    found = {world: echoed(world) for world in WORLDS}
    names = list(found["real"])
    figure, axes = pyplot.subplots(figsize=(8, 4))
    for row, (world, title) in enumerate(WORLDS.items()):
        heights = [place + 0.4 * (row - 0.5) for place in range(len(names))]
        bars = axes.barh(heights, [found[world].get(name, 0.0) for name in names], 0.38, label=title)
        axes.bar_label(bars, fmt="%.3f", padding=3, fontsize=7)
    axes.set_yticks(range(len(names)), [_called(name) for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="mean latency (ms)", xlim=(0, 1.15 * max(max(f.values()) for f in found.values())))
    axes.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=80)


def _called(name: str) -> str:
    first, arrow, second = name.partition(" -> ")
    if not arrow:
        return f"board {name}" if "embsys" in name else name
    ends = {first, second}
    return f"UART: {name}" if any(e.endswith("-embsys") for e in ends) else name


if __name__ == "__main__":
    main()
