"""The transport `kernel-tcp`: whole samples in order over the kernel's TCP through the emulated network; stalls, losses,
strangers and worlds without it are told.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from again import in_time
from real_run import chain, rows, started, summary

import tcpsbed
from tcpsbed.analysis.records import KINDS

NAMESPACES = pytest.mark.needs("root", "tun")
DELIVERED, CONNECTION = 1 + KINDS.index("delivered"), 1 + KINDS.index("connection")
LOST, STANDS, STALLED = 0, 1, 2
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
LINE = """
name = "line"
duration = "{seconds} s"
warmup = "0.5 s"
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
sample = "64 B"
[flows.haptic]
sample = "64 B"
[channels.both]
flows = ["kinematic", "haptic"]
transport = {transport}
[links.l1]
from = "left"
to = "right"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 kB"
"""
ECHO = '[measure]\necho = { points = "all", period = "20 ms" }\n'
DOWN = '[[events]]\nat = "1.5 s"\nlink = "l1"\nup = false\n[[events]]\nat = "{until} s"\nlink = "l1"\nup = true\n'


def run(
    folder: Path,
    more: str = "",
    transport: str = '"kernel-tcp"',
    world: str = "namespaces",
    seconds: int = 4,
) -> dict[str, Any]:
    """A run on the machine's clock: its summary; rows are in `out`."""
    (folder / "scenario.toml").write_text(LINE.format(transport=transport, seconds=seconds) + more)
    return tcpsbed.run(folder / "scenario.toml", world=world, out=folder / "out").summary


def order(folder: Path, flow: int) -> np.ndarray:
    """Numbers of the samples of a flow as they were delivered."""
    found = rows(folder / "out")
    return found[(found["kind"] == DELIVERED) & (found["flow"] == flow)]["index"].astype(int)


def phases(folder: Path) -> list[int]:
    """What became of the connection, at both sides."""
    found = rows(folder / "out")
    return [int(detail) for detail in found[found["kind"] == CONNECTION]["detail"]]


def total(told: dict[str, Any], key: str) -> int:
    return sum(end[key] for end in told["endpoints"])


def in_order(folder: Path, told: dict[str, Any]) -> None:
    """What holds however loaded the machine is."""
    for number in range(2):
        assert (np.diff(order(folder, number)) > 0).all(), "in order, and each once"
    assert not any(total(told, key) for key in ("malformed", "incomplete", "strangers"))


def all_arrived(told: dict[str, Any]) -> None:
    """What holds where nodes get their turn: a queue that is not emptied for a while refuses samples."""
    with in_time(told["disturbances"]):
        for name in ("kinematic", "haptic"):
            counted = told["flows"][name]
            assert counted["lost"] == 0 and counted["sent"] > 2000
        assert total(told, "refused") == 0


@NAMESPACES
def test_everything_arrives_in_order_and_what_is_lost_shows_as_delay(tmp_path: Path) -> None:
    found = []
    for loss in ("0 %", "3 %"):
        folder = tmp_path / loss[0]
        folder.mkdir()
        told = run(folder, f'loss = "{loss}"\n{ECHO}')
        in_order(folder, told)
        assert phases(folder).count(STANDS) == 2
        points = told["echo"]["kinematic"]["points"]
        assert points and all(point["n"] > 0 for point in points), "echo commands ride in the stream"
        all_arrived(told)
        found.append(told)
    clean, lossy = found
    assert total(lossy, "retransmits") > total(clean, "retransmits") + 20
    for name in ("kinematic", "haptic"):
        assert clean["flows"][name]["delay_ms"]["p50"] == pytest.approx(10.2, abs=1.0)
        # A lost segment comes a round trip later at best, and what is behind it waits.
        assert lossy["flows"][name]["delay_ms"]["p95"] > 25.0
    carried = {line["name"]: line for line in lossy["network"]}["l1.forward"]
    assert carried["drops"]["loss"] > 10, "segments cross the emulated link and are lost there"


NS3 = pytest.mark.needs("ns3")


@NAMESPACES
@pytest.mark.parametrize(
    "world",
    [
        "containers",
        pytest.param("namespaces+ns3", marks=NS3),
        pytest.param("containers+ns3-tap", marks=NS3),
        pytest.param("namespaces+ns3-tapbridge", marks=NS3),
    ],
)
def test_containers_and_each_kind_of_ns3_between_devices_take_it(
    tmp_path: Path, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Containers without an engine are namespaces; those of an engine are tested where there is an image.
    monkeypatch.setattr("tcpsbed.worlds.containers.engine", lambda: None)
    told = run(tmp_path, world=world, seconds=3)
    in_order(tmp_path, told)
    assert phases(tmp_path).count(STANDS) == 2
    all_arrived(told)
    assert 10.0 < told["flows"]["kinematic"]["delay_ms"]["p50"] < 13.0


def listening(pid: int) -> list[int]:
    """TCP ports of a process that listen on the IPv4 loopback address."""
    owned = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        address, port = words[1].split(":")
        if f"socket:[{words[9]}]" in owned and (address, words[3]) == ("0100007F", "0A"):
            found.append(int(port, 16))
    return found


@NAMESPACES
@pytest.mark.parametrize("control", ["reno", "cubic", "bbr"])
def test_congestion_controls_of_the_kernel(tmp_path: Path, control: str) -> None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    except OSError:
        pytest.skip(f"this kernel has no {control} ({AVAILABLE.read_text().strip()})")
    chosen = f'{{ kind = "kernel-tcp", congestion = "{control}", no_delay = false, send_buffer = "32 kB" }}'
    told = run(tmp_path, transport=chosen, seconds=3)
    in_order(tmp_path, told)
    all_arrived(told)


@NAMESPACES
def test_a_line_that_is_down_for_a_while_stalls_the_connection_and_loses_nothing(tmp_path: Path) -> None:
    told = run(tmp_path, DOWN.format(until=2.3))
    in_order(tmp_path, told)
    assert total(told, "connections_lost") == 0
    assert total(told, "stalls") > 0 and STALLED in phases(tmp_path)
    assert max(end["longest_stall_ns"] for end in told["endpoints"]) > 0.4e9
    assert told["flows"]["kinematic"]["delay_ms"]["max"] > 500.0
    all_arrived(told)


@NAMESPACES
def test_a_connection_that_is_given_up_is_told_and_made_again(tmp_path: Path) -> None:
    # [RFC 5482 §3] the connection is closed when nothing has been acknowledged for that long
    impatient = '{ kind = "kernel-tcp", give_up = "300 ms", queue = "20 kB" }'
    told = run(tmp_path, DOWN.format(until=2.5), impatient)
    assert total(told, "connections_lost") > 0 and LOST in phases(tmp_path)
    assert phases(tmp_path).count(STANDS) > 2
    assert any("lost 1 connection" in text for text in told["disturbances"])
    assert total(told, "refused") > 0, "the queue in front of it is bounded"
    numbers = order(tmp_path, 0)
    assert (np.diff(numbers) > 0).all() and numbers.max() > 3300, "it goes on with whole samples"


def test_strangers_are_not_let_in(tmp_path: Path) -> None:
    """Without links nodes talk to each other on loopback, where anybody can ask for a connection."""
    more = "".join(f'[flows.{name}.transport]\nkind = "kernel-tcp"\n' for name in ("kinematic", "haptic"))
    rng = random.Random(7)
    with started(tmp_path, chain("4 s", more=more), 3) as under_way:
        victims = [port for pid in under_way.nodes.values() for port in listening(pid)]
        assert len(victims) == 4, "two channels on each of two ways"
        for port in victims * 5:
            with (
                contextlib.suppress(ConnectionError),
                socket.create_connection(("127.0.0.1", port)) as stranger,
            ):
                stranger.sendall(rng.randbytes(400))
        in_time = under_way.command.poll() is None and under_way.run_time_s("node0") < 3.5
        status, screen, errors = under_way.finish()
    assert status == 0, errors + screen
    assert in_time, "they came before the run was over"
    told = summary(under_way.out)
    assert total(told, "strangers") == 20 and total(told, "malformed") == 0
    assert total(told, "connections_lost") == 0
    for flow in told["flows"].values():
        assert flow["lost"] == 0 and flow["sent"] > 1000
    assert sum("from strangers" in text for text in told["disturbances"]) == 4


@pytest.mark.beside
def test_worlds_without_an_ip_network_refuse_it_before_the_run(tmp_path: Path) -> None:
    for world, reason in (("virtual", "simulated nodes have no kernel"), ("real", "datagrams of UDP only")):
        with pytest.raises(tcpsbed.ConfigError, match=reason) as refused:
            run(tmp_path, world=world)
        words = str(refused.value)
        assert "channels.both@left-right" in words and "--world namespaces" in words and '"tcp"' in words


@pytest.mark.beside
def test_parameters_are_checked_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(tcpsbed.ConfigError, match="congestion"):
        run(tmp_path, transport='{ kind = "kernel-tcp", congestion = "no such" }')
    with pytest.raises(tcpsbed.ConfigError, match="mtu"):
        run(tmp_path, transport='{ kind = "kernel-tcp", mtu = "1200 B" }')


@pytest.mark.beside
@NAMESPACES
def test_a_congestion_control_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(tcpsbed.ConfigError, match="modprobe tcp_nosuch"):
        run(tmp_path, transport='{ kind = "kernel-tcp", congestion = "nosuch" }')
