"""The latency method finds a block of known length in srv: exactly in virtual time, closely on sockets.

[Polachan 2022: settings, table II and figure 13 of Polachan 2022]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from again import in_time
from real_run import chain, summary, whole

import tcpsbed

BLOCKS_MS = (1, 3, 5, 10, 15)
LOADS = ("0 bit/s", "500 kbit/s", "750 kbit/s")
FACTOR = 3
"""Real figures may depart this many times further than the benchmark's target of 1 % or 20 us: tests share two cores
with other processes, and 50 to 75 echoes of a point are far fewer than the benchmark's."""


def component(found: dict[str, Any]) -> dict[str, Any]:
    """What the echo points say of srv."""
    parts = found["echo"]["kinematic"]["components"]
    return next(part["latency_ms"] for part in parts if part["name"] == "srv")


def simulated(file: Path, out: Path, *overrides: str) -> dict[str, Any]:
    """The summary of a scenario in virtual time."""
    tcpsbed.run(file, world="virtual", out=out, set=overrides)
    return summary(out)


@pytest.mark.beside
@pytest.mark.parametrize("load", LOADS)
def test_virtual_figures_are_exact(root: Path, tmp_path: Path, load: str) -> None:
    file = root / "benches" / "scenarios" / "latency.toml"
    for block_ms in BLOCKS_MS:
        overrides = [f'components.srv.cost="{block_ms} ms"', f'traffic.pairs.rate="{load}"', 'duration="4 s"']
        found = simulated(file, tmp_path / f"{block_ms}", *overrides)
        assert component(found)["mean"] == pytest.approx(block_ms, abs=0.001)
        where = {part["name"]: part for part in found["path"]["kinematic"]}
        assert where["srv"]["latency_ms"]["mean"] == pytest.approx(block_ms, abs=0.001)


@pytest.mark.beside
@pytest.mark.parametrize("load", LOADS)
def test_traffic_that_delays_samples_does_not_touch_the_component(
    shipped_scenarios: Path, tmp_path: Path, load: str
) -> None:
    # On links of 10 Mbit/s samples meet the traffic. The points of one sample differ by the block and nothing else.
    for block_ms in BLOCKS_MS:
        overrides = [
            f'hooks.block.cost="{block_ms} ms"',
            f'traffic.background.rate="{load}"',
            'duration="3 s"',
        ]
        found = simulated(shipped_scenarios / "usnet9-latency.toml", tmp_path / f"{block_ms}", *overrides)
        parts = {part["name"]: part["latency_ms"] for part in found["path"]["kinematic"]}
        assert parts["srv"]["mean"] == pytest.approx(block_ms, abs=0.001)
        links = [part["latency_ms"]["sd"] for part in found["path"]["kinematic"] if part["what"] == "link"]
        assert (max(links) > 0) or load != "750 kbit/s", "the traffic delays samples"


@pytest.mark.parametrize("block_ms", [1, 5])
def test_real_figures_are_close_to_the_blocks_own_mean(
    tmp_path: Path, block_ms: int, capsys: pytest.CaptureFixture[str]
) -> None:
    block = f"""
[hooks.block]
kind = "work"
at = "srv"
flow = "kinematic"
cost = "{block_ms} ms"
[measure]
echo = {{ points = ["srv.entry", "srv.exit"], period = "20 ms" }}
"""
    text = chain("3 s", more=block).replace("[flows.kinematic]", '[flows.kinematic]\nrate = "50 Hz"')
    text = text.replace("[flows.haptic]\n", '[flows.haptic]\nrate = "50 Hz"\n')
    found, _ = whole(tmp_path, text)
    echo = found["echo"]["kinematic"]
    # Medians: one moment at which the machine did something else moves the mean of a few dozen echoes.
    own_ms = next(s["cpu_ns"]["p50"] for s in found["stages"] if s["kind"] == "work") / 1e6
    off_ms = component(found)["p50"] - own_ms
    target_ms = max(0.01 * own_ms, 0.02)
    with capsys.disabled():
        off_us, target_us = off_ms * 1e3, target_ms * 1e3
        print(
            f"\nblock of {block_ms} ms: {own_ms:.4f} ms itself, found {off_us:+.1f} us (target {target_us:.0f} us)"
        )
    assert own_ms == pytest.approx(block_ms, rel=0.05)
    assert abs(off_ms) < FACTOR * target_ms
    with in_time(found["disturbances"]):
        assert echo["commands"] == pytest.approx(100, abs=5)
        assert sum(point["lost"] for point in echo["points"]) == 0
