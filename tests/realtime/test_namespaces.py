"""Nodes in network namespaces of their own: the same results as through gates, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from again import in_time
from real_run import START_S, rings_of
from watch import devices, home

import tcpsbed
from tcpsbed import scenarios

RECORD_BYTES = 32
ROWS = 1500
"""Rows of each node that are waited for before one is killed."""
STAMPS = {"gates": "kernel", "namespaces": "after the read"}
COMMAND = [sys.executable, "-m", "tcpsbed", "run", "--world", "real", "--set", 'real.network="namespaces"']
MODES = ("gates", "namespaces")
NAMESPACES = pytest.mark.needs("root", "tun")
KINDS = [pytest.param("gates"), pytest.param("namespaces", marks=NAMESPACES)]
VERSIONS = [pytest.param("gates", 4), pytest.param("namespaces", 4, marks=NAMESPACES)]
VERSIONS += [pytest.param("namespaces", 6, marks=[NAMESPACES, pytest.mark.needs("ipv6")])]

QUEUE = """
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
sample = "24 B"
rate = "500 Hz"
dscp = "EF"
[flows.other]
direction = "forward"
sample = "24 B"
rate = "500 Hz"
[links.l1]
from = "left"
to = "right"
rate = "1 Mbit/s"
delay = "1 ms"
queue = { limit = "20000 B", discipline = "priority", classes = [["EF"], []] }
[traffic.cbr]
on = "l1"
rate = "900 kbit/s"
"""
DIRECT = '[components]\nms-com = "left"\nss-com = "right"\n[flows.kinematic]\n[flows.haptic]\n'


def scenario_file(folder: Path, text: str) -> Path:
    path = folder / "scenario.toml"
    path.write_text(f'name = "short"\nduration = "2 s"\nwarmup = "0.5 s"\n{text}')
    return path


def mode(kind: str) -> str:
    return f'real.network="{kind}"'


def ip(version: int) -> str:
    return f"real.ipv6={str(version == 6).lower()}"


def users_of(namespaces: set[str]) -> list[int]:
    """Processes that are in one of the namespaces, or hold a TUN device."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            files = {str(file.readlink()) for file in (process / "fd").iterdir()}
            if home(process.name) in namespaces or "/dev/net/tun" in files:
                found.append(int(process.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.mark.slow
@NAMESPACES
def test_quickstart_is_the_same_in_every_mode(shipped_scenarios, tmp_path):
    quickstart = shipped_scenarios / "quickstart.toml"
    short = ['duration="3 s"', 'measure.pcapng="off"']
    before = devices()
    virtual = tcpsbed.run(quickstart, out=tmp_path / "virtual", set=short).summary
    for kind in MODES:
        real = tcpsbed.run(quickstart, world="real", out=tmp_path / kind, set=[*short, mode(kind)]).summary
        assert real["errors"] == []
        assert {row["path"] for row in real["emulator"]} >= {"operator -> edge", "edge -> robot"}
        for name, flow in virtual["flows"].items():
            found = real["flows"][name]
            with in_time(real["disturbances"]):
                assert found["sent"] == pytest.approx(flow["sent"], rel=0.1, abs=2), name
                assert found["loss"] == pytest.approx(flow["loss"], abs=0.03), name
                # Half of the audio frames wait behind a picture, so that a median lies between two clusters.
                assert found["delay_ms"]["mean"] == pytest.approx(flow["delay_ms"]["mean"], abs=1), name
    assert devices() == before


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_expedited_flow_passes_the_other_in_a_priority_queue(kind, version, tmp_path):
    file = scenario_file(tmp_path, QUEUE)
    changes = [mode(kind), ip(version)]
    flows = tcpsbed.run(file, world="real", out=tmp_path / "run", set=changes).summary["flows"]
    # The link is overloaded: with code point EF a packet waits for one other, without it for most of 20000 B.
    assert flows["kinematic"]["delay_ms"]["p50"] < 4
    assert flows["other"]["delay_ms"]["p50"] > 50
    assert flows["kinematic"]["lost"] == 0 < flows["other"]["lost"]


@NAMESPACES
@pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.needs("ipv6"))])
def test_sizes_on_the_wire_are_those_of_the_packets(version, tmp_path):
    file = scenario_file(tmp_path, DIRECT + '[links.l1]\nfrom = "left"\nto = "right"\nrate = "10 Mbit/s"\n')
    changes = [mode("namespaces"), ip(version)]
    told = tcpsbed.run(file, world="real", out=tmp_path / "run", set=changes).summary
    link = next(row for row in told["network"] if row["name"] == "l1.forward")
    # [model: wire size] 24 B of sample, 24 B of transport, 8 B of UDP, 20 or 40 B of IP, 26 B of link.
    assert link["bytes"] == link["packets"] * (24 + 24 + 8 + {4: 20, 6: 40}[version] + 26)
    assert told["flows"]["kinematic"]["lost"] == 0


@NAMESPACES
def test_without_links_nodes_reach_each_other_at_once(tmp_path):
    file = scenario_file(tmp_path, DIRECT)
    flows = tcpsbed.run(file, world="real", out=tmp_path / "run", set=[mode("namespaces")]).summary["flows"]
    for flow in flows.values():
        assert flow["lost"] == 0 and flow["delivered"] > 100
        assert flow["delay_ms"]["p50"] < 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_datagram_is_dropped(kind, tmp_path):
    file = scenario_file(tmp_path, DIRECT + '[links.l1]\nfrom = "left"\nto = "right"\ncorrupt = "50 %"\n')
    told = tcpsbed.run(file, world="real", out=tmp_path / "run", set=[mode(kind)]).summary
    assert {row["stamps"] for row in told["emulator"]} == {STAMPS[kind]}
    flow = told["flows"]["kinematic"]
    assert 0.4 * flow["sent"] < flow["drops"]["l1.forward corrupt"] < 0.6 * flow["sent"]
    assert 0.4 * flow["sent"] < flow["delivered"] < 0.6 * flow["sent"]
    assert sum(end["malformed"] for end in told["endpoints"]) == 0


@pytest.mark.beside
@NAMESPACES
@pytest.mark.parametrize(("victim", "name"), [(1, "right"), (2, "emulator")])
def test_a_killed_process_leaves_its_records_and_nothing_else(victim, name, tmp_path):
    file = scenario_file(tmp_path, DIRECT + '[links.l1]\nfrom = "left"\nto = "right"\ndelay = "1 ms"\n')
    before = devices()
    command = [*COMMAND, str(file), "--out", str(tmp_path / "run"), "--set", 'duration="60 s"']
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    processes, homes = started(run, 3)
    here = home("self")
    assert homes[2] == here, "the emulator stays where it is"
    assert len({here, homes[0], homes[1]}) == 3, "each node has a namespace of its own"
    end = time.monotonic() + START_S
    while min(published(process) for process in processes[:2]) < 2 * ROWS and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(processes[victim], signal.SIGKILL)
    run.communicate(timeout=120)
    assert users_of({homes[0], homes[1]}) == []
    assert devices() == before
    opened = tcpsbed.Run(tmp_path / "run")
    assert any(f"{name} died" in text for text in opened.summary["errors"])
    assert opened.summary["flows"]["kinematic"]["delivered"] > 100
    assert (tmp_path / "run" / "records.bin").stat().st_size > 2 * ROWS * RECORD_BYTES


def published(process: int) -> int:
    """Rows that a node has published so far; none before it has a ring."""
    try:
        return sum(int.from_bytes(ring.read_bytes()[:8], "little") for ring in rings_of(process))
    except OSError:
        return 0


def started(run: subprocess.Popen[str], count: int) -> tuple[list[int], list[str]]:
    """The processes of a run in the order of their start, and their namespaces, once its nodes have moved."""
    here, end = home("self"), time.monotonic() + START_S
    while time.monotonic() < end and run.poll() is None:
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        homes = [home(child) for child in children]
        if len(homes) == count and sum(home != here for home in homes) == count - 1:
            return [int(child) for child in children], homes
        time.sleep(0.05)
    raise AssertionError(run.communicate(timeout=5)[0])


@pytest.mark.beside
@pytest.mark.needs("root", "setpriv")
def test_without_privileges_the_message_says_what_is_missing(tmp_path):
    file = scenario_file(tmp_path, DIRECT)
    drop = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--no-new-privs", "--"]
    done = subprocess.run(
        [*drop, *COMMAND, str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 2
    assert "CAP_SYS_ADMIN" in done.stderr and 'real.network = "gates"' in done.stderr


@pytest.mark.beside
def test_an_unknown_network_is_refused(tmp_path):
    file = scenario_file(tmp_path, DIRECT)
    with pytest.raises(tcpsbed.ConfigError, match="namespaces"):
        scenarios.load(file, ['real.network="bridges"'])
