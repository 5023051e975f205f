"""Mininet hosts and switches: built and gone in seconds, impaired as set, nothing left behind by a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from texts import loaded
from watch import devices, home, until

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.errors import WorldError
from tcpsbed.worlds import mininet, mininet_plan, registry

pytestmark = [pytest.mark.needs("root", "tun", "mininet"), pytest.mark.interop]

USNET = """
name = "usnet"
duration = "3 s"
[components]
ms-com = "master"
ss-com = "slave"
[nodes]
master = { at = "S0" }
slave = { at = "S8" }
[flows.kinematic]
sample = "24 B"
rate = "200 Hz"
[topology]
graph = "usnet24"
link = { rate = "10 Mbit/s", queue = "100 packets" }
"""
BRIDGES = {"switching": "bridge", "folder": ""}
TRAFFIC = '[traffic.background]\non = "S0->S8"\nrate = "500 kbit/s"\npacket = "500 B"\n'


def boxes():
    """Processes of Mininet and of its switches on this machine."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if b"mininet:h" in words or b"mininet_box" in words or b"/ovs/db.sock" in words:
            found.append(int(place.parent.name))
    return found


def network(pid):
    """The network namespace of a process; None if it is gone."""
    try:
        return home(pid)
    except OSError:
        return None


def inside(homes):
    """Processes in these network namespaces."""
    return [pid for pid in (place.name for place in Path("/proc").glob("[0-9]*")) if network(pid) in homes]


def plan(folder, text=USNET, *changes):
    return scenarios.compile_plan(loaded(text, changes), folder)


def test_usnet_stands_and_is_gone_within_seconds(tmp_path):
    before, took = devices(), []
    layout = mininet_plan.layout(plan(tmp_path, USNET + TRAFFIC.replace("S0->S8", "all-to-all")))
    assert (layout["switches"], len(layout["hosts"]), len(layout["links"])) == (26, 26, 45)
    for _ in range(3):
        begun = time.monotonic()
        box = mininet.Box(layout | BRIDGES)
        built = time.monotonic()
        assert box.wrong == []
        box.end()
        took.append((built - begun, time.monotonic() - built))
    assert min(up for up, _ in took) < 5, took
    assert min(down for _, down in took) < 5, took
    assert devices() == before


@pytest.mark.slow
def test_samples_cross_the_switches_beside_background_traffic(tmp_path):
    before = devices()
    told = tcpsbed.run(USNET + TRAFFIC, world="mininet", out=tmp_path / "run").summary
    assert told["errors"] == []
    flow = told["flows"]["kinematic"]
    assert flow["delivered"] > 500 and flow["lost"] == 0
    assert 0 < flow["delay_ms"]["p50"] < 5
    (traffic,) = told["traffic"]
    # 500 B at 500 kbit/s for 3 s: one every 8 ms.
    assert traffic["packets"] == 375
    assert traffic["delivered_packets"] == 375
    assert devices() == before and boxes() == []


@pytest.mark.slow
def test_a_link_that_is_too_slow_queues_and_drops(tmp_path):
    slow = ['links.S0-S5.rate="400 kbit/s"', 'links.S0-S5.queue="10 packets"', 'duration="4 s"']
    told = tcpsbed.run(USNET + TRAFFIC, world="mininet", out=tmp_path / "run", set=slow).summary
    # 500 kbit/s of background alone fill the link: ten packets of 500 B wait up to 100 ms.
    flow, (traffic,) = told["flows"]["kinematic"], told["traffic"]
    assert flow["loss"] > 0.1 and traffic["dropped_packets"] > 50
    assert 20 < flow["delay_ms"]["p50"] < 120


@pytest.mark.beside
@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing(tmp_path):
    before = devices()
    file = tmp_path / "usnet.toml"
    file.write_text(USNET + TRAFFIC)
    command = [sys.executable, "-m", "tcpsbed", "run", str(file), "--world", "mininet", "--duration", "60 s"]
    # A relayed link beside those of the kernel.
    command += ["--set", "links.S0-S5.outages=[['50 s', '51 s']]"]
    run = subprocess.Popen([*command, "--out", str(tmp_path / "run")], stderr=subprocess.DEVNULL)
    until(lambda: list(tmp_path.glob("run.unfinished-*/*.rows")))
    assert len(boxes()) > 4
    homes = {network(pid) for pid in boxes()} - {network("self")}
    assert len(homes) >= 5, "of nodes, of hosts of traffic, and of all switches, where the relay is"
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    until(lambda: not boxes() and not inside(homes))
    assert devices() == before
    assert tcpsbed.run(USNET, world="mininet", out=tmp_path / "again").summary["errors"] == []


@pytest.mark.beside
def test_an_impairment_that_is_not_there_is_seen(tmp_path):
    layout = mininet_plan.layout(plan(tmp_path))
    wanted = next(pair["forward"] for pair in layout["links"] if pair["forward"]["rate_bps"])
    script = (
        "import importlib.util, json, sys; spec = importlib.util.spec_from_file_location('box', sys.argv[1]);"
        "box = importlib.util.module_from_spec(spec); spec.loader.exec_module(box); link = json.loads(sys.argv[2]);"
        "box.run('ip', 'link', 'add', 'ta', 'type', 'veth', 'peer', 'name', 'tb');"
        "box.run('tc', '-batch', '-', lines=box.shaped('ta', link)); right = box.verified([('ta', link)]);"
        "wrong = box.verified([('ta', link | {'rate_bps': 2e7, 'queue': {'limit_packets': 10}})]);"
        "box.run('tc', 'qdisc', 'del', 'dev', 'ta', 'root'); print(json.dumps([right, wrong, box.verified([('ta', link)])]))"
    )
    here = str(Path(mininet.__file__).with_name("mininet_box.py"))
    done = subprocess.run(
        ["unshare", "--net", mininet.SYSTEM_PYTHON, "-I", "-c", script, here, json.dumps(wanted)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    right, other, gone = json.loads(done.stdout)
    assert right == []
    assert [said.split(": ")[1] for said in other] == ["its rate is not set", "its queue is not set"]
    assert gone == ["1 links have a rate, and the kernel has 0 classes"]


@pytest.mark.beside
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("links.S0-S1.radio={ kind = 'nr' }", ["S0-S1", "radio", "namespaces"]),
        ("traffic.bulk={ on = 'S0->S8' }", ["TCP"]),
        (
            "traffic.t={ on = 'S0->S8', rate = '1 Mbit/s', packet = '50 B' }",
            ["traffic.t.S0-S8.packet", "50 B", "56 B"],
        ),
        ("traffic.t={ on = 'S0->S8', rate = '1 Mbit/s', packet = '500 B' }", None),
        ("events=[{ at = '1 s', link = 'S0-S1', rate = '2 Mbit/s' }]", None),
    ],
)
def test_what_neither_switches_nor_relay_can_do_is_refused(tmp_path, change, words):
    compiled = plan(tmp_path, USNET, change)
    if words is None:
        mininet_plan.refuse(compiled)
        return
    with pytest.raises(WorldError) as refused:
        mininet_plan.refuse(compiled)
    assert all(word in str(refused.value) for word in [*words, "allowed:"])


@pytest.mark.beside
@pytest.mark.parametrize(
    ("change", "netem", "without"),
    [
        ("seed=1", 0, 0),
        ("links.S0-S1.delay='1 ms'", 0, 2),
        ("links.S0-S1.loss='1 %'", 0, 2),
        ("links.S0-S1.loss={ kind = 'gilbert-elliott', p = '10 %', r = '50 %' }", 2, 2),
        ("links.S0-S1.jitter={ kind = 'uniform', low = '0 ms', high = '1 ms' }", 2, 2),
        ("links.S0-S1.queue={ limit = '20 packets', discipline = 'codel' }", 2, 2),
        ("events=[{ at = '1 s', link = 'S0-S1', rate = '2 Mbit/s' }]", 2, 2),
        ("topology.link.delay='1 ms'", 0, 86),
    ],
)
def test_links_that_the_kernel_cannot_do_are_the_relays(tmp_path, monkeypatch, change, netem, without):
    compiled = plan(tmp_path, USNET, change)
    for has, expected in ((True, netem), (False, without)):
        monkeypatch.setattr(mininet_plan, "has_netem", lambda has=has: has)
        wires = mininet_plan.wires(compiled)
        assert len(wires) == len(mininet_plan.relayed(compiled)) == expected
        assert all(wires[number][0] != wires[number][1] for number in wires)
        relayed = [pair for pair in mininet_plan.layout(compiled)["links"] if pair["relayed"]]
        assert 2 * len(relayed) == expected


LINE = """
name = "line"
duration = "6 s"
seed = 3
[components]
ms-com = "a"
ss-com = "b"
[flows.kinematic]
sample = "24 B"
rate = "200 Hz"
[links.l1]
from = "a"
to = "b"
rate = "10 Mbit/s"
"""


@pytest.mark.slow
def test_delay_jitter_and_bursts_hold_in_mininet(tmp_path):
    """The links of the scenario, by our relay between the switches: as the same seed has them in virtual time."""
    before = devices()
    changes = [
        "links.l1.delay='20 ms'",
        "links.l1.jitter={ kind = 'uniform', low = '0 ms', high = '4 ms' }",
        "links.l1.loss={ kind = 'gilbert-elliott', p = '2 %', r = '20 %' }",
    ]
    found = {
        world: tcpsbed.run(LINE, world=world, out=tmp_path / world, set=changes).summary
        for world in ("virtual", "mininet")
    }
    assert found["mininet"]["errors"] == []
    there, here = (found[world]["flows"]["kinematic"] for world in ("virtual", "mininet"))
    assert 0.02 < here["loss"] < 0.3 and abs(here["loss"] - there["loss"]) < 0.05
    assert abs(here["delay_ms"]["p50"] - there["delay_ms"]["p50"]) < 2
    dropped = here["drops"]["l1.forward loss"]
    assert here["lost"] <= dropped <= here["lost"] + here["in_flight"], "the flow's own, by link and reason"
    (row,) = [row for row in found["mininet"]["emulator"] if row["path"] == "a -> b"]
    assert row["set_loss"] == row["delivered_loss"] and 20 < row["set_delay_ms"] < 24
    assert {link["name"] for link in found["mininet"]["network"]} == {"l1.forward", "l1.backward"}
    assert devices() == before and boxes() == []


@pytest.mark.slow
def test_a_relayed_link_stands_beside_links_of_the_kernel_and_changes_by_an_event(tmp_path):
    changes = ["duration='4 s'", "events=[{ at = '2 s', link = 'S0-S5', delay = '30 ms' }]"]
    told = tcpsbed.run(USNET + TRAFFIC, world="mininet", out=tmp_path / "run", set=changes).summary
    assert told["errors"] == []
    flow, (traffic,) = told["flows"]["kinematic"], told["traffic"]
    assert flow["lost"] == 0 and traffic["delivered_packets"] == traffic["packets"] == 500
    assert [link["name"] for link in told["network"]] == ["S0-S5.forward", "S0-S5.backward"]
    series = json.loads((tmp_path / "run" / "series.json").read_text())
    delays = zip(series["t_s"], series["flows"]["kinematic"]["delay_mean_ms"], strict=True)
    found = [(t, delay) for t, delay in delays if delay is not None]
    early = sorted(delay for t, delay in found if t < 1.8)
    late = sorted(delay for t, delay in found if t > 2.2)
    assert early[len(early) // 2] < 10 and 30 <= late[len(late) // 2] < 45


@pytest.mark.slow
def test_open_vswitch_in_user_space_carries_the_same(tmp_path):
    if lack := registry.named("mininet+ovs-user").missing():
        pytest.skip(f"needs {lack}")
    before = devices()
    told = tcpsbed.run(USNET + TRAFFIC, world="mininet+ovs-user", out=tmp_path / "run").summary
    assert told["errors"] == []
    flow, (traffic,) = told["flows"]["kinematic"], told["traffic"]
    assert flow["delivered"] > 500 and flow["lost"] == 0
    assert traffic["delivered_packets"] == traffic["packets"] == 375
    assert devices() == before and boxes() == []


@pytest.mark.beside
def test_open_vswitch_says_what_it_lacks(monkeypatch):
    monkeypatch.setattr(mininet, "lacking", lambda: None)
    monkeypatch.setattr(mininet, "has_data_path", lambda: False)
    assert "modprobe openvswitch" in (mininet.OpenVSwitch.missing() or "")
    assert "mininet+ovs-user" in (mininet.OpenVSwitch.missing() or "")
    assert mininet.UserSpace.missing() is None
    with pytest.raises(WorldError, match="allowed: mininet"):
        registry.check("namespaces+ovs-user")


@pytest.mark.slow
def test_latencies_are_measured_in_mininet(tmp_path):
    (tmp_path / "usnet.toml").write_text(USNET)
    command = [sys.executable, "-m", "tcpsbed", "latency", "usnet.toml", "--world", "mininet", "--json"]
    command += ["--confidence", "50%", "--out", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    points = {point["point"]: point for point in json.loads(done.stdout)["kinematic"]["points"]}
    assert points["ss-com.exit"]["n"] >= 30
    assert (
        points["ms-com.exit"]["round_trip_ms"]["mean"] < points["ss-com.entry"]["round_trip_ms"]["mean"] < 20
    )
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["world"] == "mininet"
