"""What the time of samples goes to on sockets, as far as nodes and emulator know."""

from __future__ import annotations

from pathlib import Path

import pytest
import real_run

import tcpsbed

pytestmark = pytest.mark.beside

MERGED = """
[channels.haptic]
flows = ["haptic"]
transport = { kind = "merge-span", span = "8 ms" }
"""


@pytest.mark.parametrize("network", ["", real_run.NETWORK])
def test_what_nodes_and_the_emulator_know_is_split(tmp_path: Path, network: str) -> None:
    (tmp_path / "chain.toml").write_text(real_run.chain("2 s", more=network))
    run = tcpsbed.run(tmp_path / "chain.toml", out=tmp_path / "out", world="real")
    found = run.summary["split"]
    assert set(found) == {"kinematic", "haptic"}
    for flow, split in found.items():
        parts = {part["part"]: part["mean_ms"] for part in split["parts"]}
        assert sum(parts.values()) == pytest.approx(split["total_ms"])
        assert split["total_ms"] >= run.summary["flows"][flow]["delay_ms"]["mean"]
        assert parts["system"] > 0
        assert len(split["components"]) == 5
        said = [one["part"] for one in split["unsplit"]]
        assert "held" in said and ("emulation error" in said) is bool(network)
        if network:
            assert parts["propagation"] >= 5.0
            assert any(hop["link"].startswith("access.") for hop in split["hops"])
            assert parts["unsplit"] < split["total_ms"] - 5.0
        else:
            assert "propagation" not in parts and not split["hops"]


def test_what_waits_to_be_merged_is_split_on_sockets_too(tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(real_run.chain("2 s", more=MERGED))
    run = tcpsbed.run(tmp_path / "chain.toml", out=tmp_path / "out", world="real")
    waited = {
        flow: sum(part["mean_ms"] for part in split["parts"] if part["part"] == "merging")
        for flow, split in run.summary["split"].items()
    }
    assert waited["haptic"] > 2 > 1 > waited["kinematic"]


def test_flows_that_share_packets_share_what_is_known_of_them(tmp_path: Path) -> None:
    scenario = Path(__file__).parents[2] / "scenarios" / "dumbbell-dpm.toml"
    settings = ["duration='3 s'", "warmup='0.5 s'"]
    run = tcpsbed.run(scenario, out=tmp_path / "out", world="real", set=settings)
    for flow, split in run.summary["split"].items():
        parts = {part["part"]: part["mean_ms"] for part in split["parts"]}
        # Three links of 5 ms each, two of them without a rate.
        assert parts["propagation"] == pytest.approx(15.0, abs=0.1), flow
        assert parts["queueing"] > 0 and parts["serialisation"] > 0, flow
        assert flow == "kinematic" or parts["merging"] > 0, flow
        assert abs(parts["unsplit"]) < 0.1 * split["total_ms"], flow
    # A picture leaves in pieces, one with each haptic sample. Motion has its direction to itself: it is merged only
    # where the network stalls, in 7 of 8 runs on a busy machine.
    assert parts_of(run, "video")["merging"] > 20 > parts_of(run, "kinematic").get("merging", 0.0)


def parts_of(run: tcpsbed.Run, flow: str) -> dict[str, float]:
    """Mean of each part of a flow."""
    return {part["part"]: part["mean_ms"] for part in run.summary["split"][flow]["parts"]}
