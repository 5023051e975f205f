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

import tcpsbed
from tcpsbed import config
from tcpsbed.errors import WorldError
from tcpsbed.session import _loaded_text
from tcpsbed.worlds import mininet

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
TRAFFIC = '[traffic.background]\non = "S0->S8"\nrate = "500 kbit/s"\npacket = "500 B"\n'


def devices():
    names = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return sorted(names + [place.name for place in Path("/run/netns").glob("*")])


def boxes():
    """Processes of Mininet on this machine."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if b"mininet:h" in words or b"mininet_box" in words:
            found.append(int(place.parent.name))
    return found


def plan(folder, text=USNET, *changes):
    return config.compile_plan(_loaded_text(text, changes), folder)


def test_usnet_stands_and_is_gone_within_seconds(tmp_path):
    before, took = devices(), []
    layout = mininet.layout(plan(tmp_path, USNET + TRAFFIC.replace("S0->S8", "all-to-all")))
    assert (layout["switches"], len(layout["hosts"]), len(layout["links"])) == (26, 26, 45)
    for _ in range(3):
        begun = time.monotonic()
        box = mininet.Box(layout)
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


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing(tmp_path):
    before = devices()
    file = tmp_path / "usnet.toml"
    file.write_text(USNET + TRAFFIC)
    command = [sys.executable, "-m", "tcpsbed", "run", str(file), "--world", "mininet", "--duration", "60 s"]
    run = subprocess.Popen([*command, "--out", str(tmp_path / "run")], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not list((tmp_path / "run").glob("*.rows")) and time.monotonic() < end:
        time.sleep(0.1)
    assert len(boxes()) > 4
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    end = time.monotonic() + 20
    while boxes() and time.monotonic() < end:
        time.sleep(0.1)
    assert boxes() == [] and devices() == before
    assert tcpsbed.run(USNET, world="mininet", out=tmp_path / "again").summary["errors"] == []


def test_an_impairment_that_is_not_there_is_seen(tmp_path):
    layout = mininet.layout(plan(tmp_path))
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "links.S0-S1.jitter={ kind = 'uniform', low = '0 ms', high = '1 ms' }",
            ["S0-S1", "jitter", "emulator"],
        ),
        ("traffic.bulk={ on = 'S0->S8' }", ["TCP"]),
        ("events=[{ at = '1 s', link = 'S0-S1', rate = '2 Mbit/s' }]", ["change of the network"]),
    ],
)
def test_what_switches_cannot_do_is_refused(tmp_path, change, words):
    with pytest.raises(WorldError) as refused:
        mininet.refuse(plan(tmp_path, USNET, change))
    assert all(word in str(refused.value) for word in [*words, "allowed:"])


def test_a_delay_needs_netem(tmp_path, monkeypatch):
    delayed = plan(tmp_path, USNET, "topology.link.delay='1 ms'")
    monkeypatch.setattr(mininet, "has_netem", lambda: True)
    mininet.refuse(delayed)
    monkeypatch.setattr(mininet, "has_netem", lambda: False)
    with pytest.raises(WorldError, match="no netem"):
        mininet.refuse(delayed)
