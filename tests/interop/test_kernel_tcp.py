"""The `tcp` transport against the kernel's TCP over the same line: goodput at three losses, difference printed.

```
virtual    our TCP, simulated line          kernel   two processes in network namespaces, the emulator between them
```
[DECISIONS 16]
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_run import START_S

import tcpsbed

LINE = """
name = "line"
duration = "{seconds} s"
[components]
ms-com = "left"
ss-com = "right"
[links.l1]
from = "left"
to = "right"
rate = "10 Mbit/s"
delay = "15 ms"
queue = "100 kB"
[links.l1.forward]
loss = {loss}
[flows.kinematic]
{flow}
"""
OURS = """sample = "1400 B"
rate = "1 kHz"
codec = "raw"
[flows.kinematic.transport]
kind = "tcp"
congestion = "{congestion}"
mtu = "1500 B"
send_buffer = "512 kB"
receive_buffer = "512 kB"
queue = "1 MB"
"""
IDLE = 'sample = "24 B"\nrate = "1 Hz"\n'
LOSSES = (0.0, 0.001, 0.01)
SECONDS = 8
CONTROLS = ("reno", "cubic")
LONGEST_S = 120
"""A line stands until all transfers over it are through."""
RECEIVER = """
import socket, sys, time
with socket.create_server(("10.77.0.2", int(sys.argv[1]))) as server:
    print("ready", flush=True)
    peer, _ = server.accept()
    begun, got = None, 0
    while chunk := peer.recv(1 << 16):
        begun = begun or time.monotonic()
        got += len(chunk)
    print(8 * got / (time.monotonic() - begun), flush=True)
"""
SENDER = """
import socket, sys, time
with socket.socket() as peer:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 << 10)
    peer.connect(("10.77.0.2", int(sys.argv[2])))
    end = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < end:
        peer.sendall(bytes(1 << 14))
"""


def virtual_bps(folder: Path, congestion: str, loss: float) -> float:
    """Goodput of our TCP in virtual time."""
    (folder / "ours.toml").write_text(
        LINE.format(seconds=SECONDS, loss=loss, flow=OURS.format(congestion=congestion))
    )
    found = tcpsbed.run(folder / "ours.toml", out=folder / congestion).summary
    return float(found["flows"]["kinematic"]["rate_bps"])


def kernel_bps(folder: Path, loss: float) -> dict[str, float]:
    """Goodput of the kernel's TCP through the emulator, one congestion control after the other."""
    (folder / "line.toml").write_text(LINE.format(seconds=LONGEST_S, loss=loss, flow=IDLE))
    command = [sys.executable, "-m", "tcpsbed", "run", "line.toml", "--world", "real", "--no-report"]
    command += ["--set", 'real.network="namespaces"', "--out", "line"]
    line = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        left, right = nodes(line.pid)
        return {
            control: transfer_bps(left, right, control, str(5001 + i)) for i, control in enumerate(CONTROLS)
        }
    finally:
        line.send_signal(signal.SIGINT)
        line.wait(timeout=60)


def transfer_bps(left: int, right: int, control: str, port: str) -> float:
    """Goodput from the network namespace of one process to that of another."""
    receiver = inside(right, RECEIVER, port)
    assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
    sender = inside(left, SENDER, control, port, str(SECONDS))
    output, _ = receiver.communicate(timeout=SECONDS + 30)
    assert sender.wait(timeout=10) == 0
    return float(output)


def inside(pid: int, program: str, *arguments: str) -> subprocess.Popen[str]:
    """Runs a Python program in the network namespace of a process."""
    command = ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def nodes(parent: int) -> list[int]:
    """The processes of the two nodes, in the order of their addresses, once their devices are up."""
    here = Path("/proc/self/ns/net").readlink()
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        found = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                    pid = int(stat.parent.name)
                    table = (stat.parent / "net/fib_trie").read_text()
                    if (stat.parent / "ns/net").readlink() != here:
                        found |= {n: pid for n in (1, 2) if f"-- 10.77.0.{n}\n" in table}
            except (OSError, ValueError):
                continue
        if len(found) == 2:
            time.sleep(0.5)
            return [found[1], found[2]]
        time.sleep(0.1)
    raise AssertionError("the nodes did not come up")


@pytest.mark.slow
@pytest.mark.needs("root", "tun", "nsenter")
def test_goodput_beside_that_of_the_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Same order, no more: the kernel has selective acknowledgement and time-outs under a second."""
    folders = {loss: tmp_path / f"{loss}" for loss in LOSSES}
    for folder in folders.values():
        folder.mkdir()
    # One line after the other: two at once would measure how they share the cores.
    found = {loss: kernel_bps(folder, loss) for loss, folder in folders.items()}
    lines = []
    for loss, kernels in found.items():
        for control in CONTROLS:
            ours, kernel = virtual_bps(folders[loss], control, loss), kernels[control]
            lines.append(
                f"{control:7} {loss:6.1%} {ours / 1e6:8.2f} {kernel / 1e6:8.2f} {ours / kernel - 1:+8.0%}"
            )
            assert kernel > (8e6 if loss == 0 else 1e6)
            assert 0.2 < ours / kernel < 2.0
    with capsys.disabled():
        print(f"\n10 Mbit/s, 15 ms each way, {SECONDS} s: goodput in Mbit/s")
        print("control   loss     ours   kernel  difference")
        print("\n".join(sorted(lines)))
