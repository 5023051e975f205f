"""Round trips between the clocks of two nodes: corrected by what the nodes know of their clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcpsbed

STAR = """
name = "star"
duration = "20 s"
[components]
tactile-operator = "ms"
srv = "edge"
tactile-teleoperator = "ss"
test-pc = "pc"
[nodes.ms]
clock = {{ offset = "{ms}", drift = "{drift}" }}
[nodes.pc]
clock = {{ offset = "{pc}" }}
[flows.kinematic]
rate = "200 Hz"
[topology]
routers = ["hub"]
{links}
[measure]
echo = {{ points = ["srv.entry", "srv.exit"], period = "20 ms" }}
{sync}
"""
LINKS = "\n".join(
    f'[links.{node}]\nfrom = "{node}"\nto = "hub"\ndelay = "{delay} ms"'
    for node, delay in {"ms": 2, "edge": 3, "ss": 1, "pc": 4}.items()
)
SYNC = 'sync = "125 ms"'
TRUE_MS = 2 + 3 + 3 + 4
"""From ms to edge, and from there to pc."""


def echo(
    folder: Path, *, ms: str = "0 ms", pc: str = "0 ms", drift: str = "0 ppm", sync: str = ""
) -> dict[str, Any]:
    """What the echoes of such a run tell, and its disturbances."""
    text = STAR.format(ms=ms, pc=pc, drift=drift, sync=sync, links=LINKS)
    (folder / "star.toml").write_text(text)
    found = tcpsbed.run(folder / "star.toml", out=folder / "run").summary
    return found["echo"]["kinematic"] | {"told": found["disturbances"]}


def round_trips(found: dict[str, Any]) -> list[float]:
    """Medians of all points."""
    return [point["round_trip_ms"]["p50"] for point in found["points"]]


@pytest.mark.parametrize(
    ("ms", "pc", "drift"),
    [("5 ms", "0 ms", "0 ppm"), ("-3 ms", "40 ms", "0 ppm"), ("7 ms", "-2 ms", "60 ppm")],
)
def test_offsets_of_the_clocks_leave_the_round_trip(tmp_path: Path, ms: str, pc: str, drift: str) -> None:
    found = echo(tmp_path, ms=ms, pc=pc, drift=drift, sync=SYNC)
    clocks = found["clocks"]
    assert (clocks["from"], clocks["to"], clocks["corrected"]) == ("ms", "pc", True)
    # 3 digits of the percentiles; 60 ppm in the 125 ms between two exchanges.
    assert round_trips(found) == pytest.approx([TRUE_MS] * 2, abs=0.03)
    # The reference is the node of the test-pc: the other clock's bound is half the way there and back.
    assert clocks["bound_ms"] == pytest.approx(2 + 4, abs=0.01)
    assert clocks["unknown"] <= 2 and found["told"] == []


def test_without_synchronisation_the_difference_stays_and_is_told(tmp_path: Path) -> None:
    found = echo(tmp_path, ms="5 ms")
    assert round_trips(found) == pytest.approx([TRUE_MS - 5] * 2, abs=0.03)
    assert found["clocks"] == {
        "from": "ms", "to": "pc", "corrected": False, "unknown": 0, "correction_ms": None, "bound_ms": None
    }  # fmt: skip
    assert [text for text in found["told"] if "which are not synchronised: set measure.sync" in text]


def test_true_clocks_need_no_synchronisation(tmp_path: Path) -> None:
    found = echo(tmp_path)
    assert round_trips(found) == pytest.approx([TRUE_MS] * 2, abs=0.03)
    assert found["told"] == []
