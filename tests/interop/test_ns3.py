"""The same scenario through ns-3: virtual time as an independent check of ours, real time behind the emulator's gates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from real_run import BOXED

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.runs import session
from tcpsbed.worlds import ns3_program

pytestmark = [pytest.mark.needs("ns3"), pytest.mark.interop, pytest.mark.slow]

SHORT = ['duration="20 s"', 'measure.pcapng="off"']


def both(scenario, folder, *changes):
    return [
        tcpsbed.run(scenario, world=world, out=folder / world, set=[*SHORT, *changes]).summary
        for world in ("virtual", "ns3-virtual")
    ]


@pytest.mark.beside
def test_plain_udp_over_the_dumbbell_is_the_same_to_the_packet(shipped_scenarios, tmp_path):
    ours, theirs = both(shipped_scenarios / "dumbbell-udp.toml", tmp_path)
    for name, flow in ours["flows"].items():
        found = theirs["flows"][name]
        assert (found["sent"], found["delivered"], found["drops"]) == (
            flow["sent"],
            flow["delivered"],
            flow["drops"],
        )
        for key in ("mean", "p50", "p99", "max"):
            assert found["delay_ms"][key] == pytest.approx(flow["delay_ms"][key], rel=1e-3), (name, key)
    assert theirs["flows"]["haptic"]["lost"] > 0, "the buffer overflows, so that drops are compared as well"
    for mine, other in zip(ours["network"], theirs["network"], strict=True):
        assert other["packets"] == pytest.approx(mine["packets"], abs=2), mine["name"]


@pytest.mark.beside
def test_dpm_over_the_dumbbell_adapts_alike(shipped_scenarios, tmp_path):
    ours, theirs = both(shipped_scenarios / "dumbbell-dpm.toml", tmp_path, 'traffic.vbr.vary="constant"')
    for name, flow in ours["flows"].items():
        mine, other = flow["delay_ms"]["mean"], theirs["flows"][name]["delay_ms"]["mean"]
        assert abs(other - mine) < max(0.3, 0.02 * mine), name
        assert abs(theirs["flows"][name]["loss"] - flow["loss"]) < 0.01


@pytest.mark.beside
def test_the_same_seed_gives_the_same_bytes(shipped_scenarios, tmp_path):
    keys = [*SHORT, 'duration="3 s"', 'traffic.vbr.vary="per-packet"']
    runs = [
        tcpsbed.run(
            shipped_scenarios / "dumbbell-udp.toml",
            world="ns3-virtual",
            out=tmp_path / f"{i}",
            set=keys,
            seed=seed,
        )
        for i, seed in enumerate((1, 1, 2))
    ]
    first, again, other = (run.summary["records_sha256"] for run in runs)
    assert first == again != other


MIXED = """
duration = "5 s"
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
sample = "24 B"
rate = "200 Hz"
[topology]
routers = ["r"]
[links.a]
from = "left"
to = "r"
delay = "2 ms"
loss = "5 %"
[links.bus]
from = "r"
to = "right"
duplex = "half"
rate = "10 Mbit/s"
delay = "10 us"
[traffic.poisson]
on = "a.forward"
rate = "200 kbit/s"
[traffic.vbr]
on = "left->right"
rate = "200 kbit/s"
[measure]
queues = "10 ms"
"""


@pytest.mark.beside
def test_loss_csma_and_traffic_inside_ns3(tmp_path):
    told = tcpsbed.run(MIXED, world="ns3-virtual", out=tmp_path / "run").summary
    flow = told["flows"]["kinematic"]
    assert 0.02 < flow["loss"] < 0.09
    assert set(flow["drops"]) == {"a.forward loss"}
    # 78 B of packet, 102 B of CSMA frame at 10 Mbit/s, and no queue to speak of.
    assert 2.01 < flow["delay_ms"]["p50"] < 2.3
    for traffic in told["traffic"]:
        assert traffic["packets"] > 100
        assert traffic["delivered_packets"] + traffic["dropped_packets"] <= traffic["packets"]
    series = tcpsbed.Run(tmp_path / "run").series
    assert "a.forward" in series["queues"] or "bus.forward" in series["queues"]


@pytest.mark.beside
def test_lte_goes_up_slowly_and_down_fast(shipped_scenarios, tmp_path):
    told = tcpsbed.run(
        shipped_scenarios / "lte-pingpong.toml", world="ns3-virtual", out=tmp_path / "run", set=SHORT
    ).summary
    (point,) = told["echo"]["kinematic"]["points"]
    # [Abdullah 2023] published: 17.85 ms round trip, 13.22 up and 4.59 down with the hops around the air.
    assert point["lost"] == 0
    assert point["round_trip_ms"]["mean"] == pytest.approx(16.95, abs=0.7)
    assert told["flows"]["kinematic"]["delay_ms"]["mean"] == pytest.approx(12.96, abs=0.3)
    assert point["return_ms"]["mean"] == pytest.approx(3.99, abs=0.3)


@pytest.mark.beside
def test_lte_goes_up_faster_when_packets_come_more_often(shipped_scenarios, tmp_path):
    def up_ms(rate):
        keys = ['duration="5 s"', f'flows.kinematic.rate="{rate}"']
        told = tcpsbed.run(
            shipped_scenarios / "lte-pingpong.toml", world="ns3-virtual", out=tmp_path / rate, set=keys
        )
        return told.summary["flows"]["kinematic"]["delay_ms"]["mean"]

    # Grants for one packet carry the next: no request is needed any more.
    assert up_ms("100.3 Hz") > 12 > 7 > up_ms("150.3 Hz")


@pytest.mark.beside
def test_wifi_carries_samples(tmp_path):
    wifi = MIXED.replace('delay = "2 ms"\nloss = "5 %"', 'radio = { kind = "wifi" }')
    told = tcpsbed.run(wifi, world="ns3-virtual", out=tmp_path / "run").summary
    flow = told["flows"]["kinematic"]
    assert flow["loss"] < 0.02
    assert 0.1 < flow["delay_ms"]["p50"] < 3


@pytest.mark.realtime
def test_real_time_through_ns3_agrees_with_virtual_time(shipped_scenarios, tmp_path):
    keys = ['duration="4 s"', 'measure.pcapng="off"']
    ours = tcpsbed.run(shipped_scenarios / "dumbbell-udp.toml", out=tmp_path / "virtual", set=keys).summary
    told = tcpsbed.run(
        shipped_scenarios / "dumbbell-udp.toml", world="ns3", out=tmp_path / "real", set=keys
    ).summary
    mine, found = (run["flows"]["kinematic"]["delay_ms"]["p50"] for run in (ours, told))
    assert told["errors"] == []
    assert any(node["name"] == "ns-3" for node in told["nodes"])
    assert abs(found - mine) < 0.5


@pytest.mark.realtime
@pytest.mark.needs("root", "tun")
@pytest.mark.parametrize("world", ["namespaces+ns3", "containers+ns3"])
def test_devices_of_nodes_in_namespaces_are_joined_by_ns3(tmp_path, world, monkeypatch):
    # Containers without an engine are namespaces; those of an engine are tested where there is an image.
    monkeypatch.setattr("tcpsbed.worlds.containers.engine", lambda: None)
    told = tcpsbed.run(BOXED, world=world, out=tmp_path / "run").summary
    assert {row["stamps"] for row in told["emulator"]} == {"after the read"}, "by device, not by gate"
    assert any(node["name"] == "ns-3" for node in told["nodes"])
    flow = told["flows"]["kinematic"]
    assert told["errors"] == [] and flow["lost"] == 0
    assert flow["delivered"] > 500 and 10 < flow["delay_ms"]["p50"] < 12


THROUGH_A_ROUTER = BOXED.replace(
    'to = "right"\ndelay = "10 ms"',
    """to = "r"
delay = "10 ms"
loss = "10 %"
[links.l2]
from = "r"
to = "right"
rate = "1 Mbit/s"
queue = "20 packets"
[topology]
routers = ["r"]
[traffic.cbr]
on = "l2.forward"
rate = "400 kbit/s"
packet = "500 B"
[measure]
queues = "100 ms"
""",
)


@pytest.mark.realtime
@pytest.mark.needs("root", "tun")
@pytest.mark.parametrize("network", ["ns3-tap", "ns3-tapbridge"])
def test_ns3_holds_the_devices_of_nodes_itself(tmp_path, network):
    """Links, loss, queues and background traffic are ns-3's; whole IP packets enter and leave it."""
    told = tcpsbed.run(THROUGH_A_ROUTER, world=f"namespaces+{network}", out=tmp_path / "run").summary
    assert told["emulator"] == [], "no packet passes the emulator"
    assert any(node["name"] == "ns-3" for node in told["nodes"])
    flow = told["flows"]["kinematic"]
    assert told["errors"] == []
    assert 0.05 < flow["loss"] < 0.16
    # 78 B at 1 Mbit/s are 0.6 ms, and a packet of cross traffic may be in flight.
    assert 10.5 < flow["delay_ms"]["p50"] < 13
    lossy, slow = (
        next(row for row in told["network"] if row["name"] == f"{n}.forward") for n in ("l1", "l2")
    )
    # Of the last second what is missing may still be in flight, for all that the flow's record says.
    assert lossy["drops"]["loss"] == flow["sent"] - flow["delivered"]
    # What is on the wire is as long as through gates: 24 B, 54 B of headers and link.
    assert lossy["bytes"] / lossy["packets"] == pytest.approx(24 + 24 + 54, abs=1)
    assert slow["bytes"] > 300 * 500, "the traffic is there as well"


def told_of_devices(folder: Path, what: str) -> dict:
    """What ns-3 says of two devices that are handed to it without nodes behind them (tap_peer.py)."""
    peer = [
        sys.executable,
        str(Path(__file__).parent / "tap_peer.py"),
        str(ns3_program.built()),
        str(folder),
        what,
    ]
    done = subprocess.run(["unshare", "--net", *peer], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)) | {"stderr": done.stderr}


@pytest.mark.needs("root", "tun", "unshare")
def test_packets_that_nobody_can_have_are_counted(tmp_path):
    """What a device would not take, and what is for no node: FdNetDevice and the routers of ns-3 tell."""
    told = told_of_devices(tmp_path, "packets")
    done = told["said"]["done"]
    assert (done["unsent"], done["strangers"]) == (1, 1), done
    assert done["links"][0]["packets"] == 1, "it went as far as the far end of its link"
    assert not told["listens"], "nobody else is let in"


@pytest.mark.needs("root", "tun", "unshare")
def test_who_asks_to_hand_a_device_over_and_does_not_is_not_waited_for(tmp_path):
    told = told_of_devices(tmp_path, "silent")
    assert told["said"]["failed"] == "the device of node 0 did not come before the start"
    assert told["stderr"].count("handed nothing over") == 1 and not told["listens"]


@pytest.mark.needs("root", "tun", "unshare")
def test_strangers_are_sent_away_and_late_devices_are_taken(tmp_path):
    """One says nothing, one other words, one hands over what is no device, and one a device of a node that has its own."""
    told = told_of_devices(tmp_path, "strangers")
    done = told["said"]["done"]
    assert (done["unsent"], done["strangers"]) == (1, 1), done
    assert told["stderr"].count("is not the device of a node that has none") == 3, told["stderr"]
    assert not told["listens"]


@pytest.mark.realtime
@pytest.mark.needs("root", "tun")
def test_lte_of_ns3_carries_packets_of_devices(shipped_scenarios, tmp_path):
    keys = ['duration="3 s"', 'measure.pcapng="off"']
    told = tcpsbed.run(
        shipped_scenarios / "lte-pingpong.toml", world="namespaces+ns3-tap", out=tmp_path / "run", set=keys
    ).summary
    (point,) = told["echo"]["kinematic"]["points"]
    assert told["errors"] == [] and point["lost"] == 0
    assert 12 < told["flows"]["kinematic"]["delay_ms"]["p50"] < 15
    assert 3 < point["return_ms"]["p50"] < 6


@pytest.mark.beside
@pytest.mark.realtime
def test_a_machine_that_cannot_keep_up_is_told_so(shipped_scenarios, tmp_path, monkeypatch):
    from tcpsbed.worlds import ns3

    monkeypatch.setattr(ns3, "MOST_LAG_NS", 1_000)
    scenario = scenarios.load(shipped_scenarios / "dumbbell-udp.toml", ['duration="20 s"'])
    session.execute(scenario, world="ns3", out=tmp_path / "run")
    told = tcpsbed.Run(tmp_path / "run").summary
    assert any("behind the clock" in error for error in told["errors"]), told["errors"]
    sent = np.count_nonzero(tcpsbed.Run(tmp_path / "run").records["kind"] == 1)
    assert sent < 20_000, "it did not go on to its end"


@pytest.mark.beside
@pytest.mark.realtime
def test_more_traffic_than_any_machine_simulates_in_real_time_ends_the_command(shipped_scenarios, tmp_path):
    keys = ['duration="20 s"', 'traffic.cbr.rate="5 Gbit/s"', 'measure.pcapng="off"']
    sets = [word for key in keys for word in ("--set", key)]
    file, out = shipped_scenarios / "dumbbell-udp.toml", tmp_path / "run"
    command = [sys.executable, "-m", "tcpsbed", "run", str(file), "--world", "ns3", "--out", str(out), *sets]
    done = subprocess.run([*command, "--no-report"], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "in real time" in done.stderr, done.stderr
    assert "behind the clock" in done.stderr or "node emulator: did not run for" in done.stderr, done.stderr
    assert np.count_nonzero(tcpsbed.Run(out).records["kind"] == 1) < 20_000, "it did not go on to its end"
