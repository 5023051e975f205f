"""Real-time privileges, receive stamps and how late a loop wakes up."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcpsbed.doctor.finding import Finding, attempt

SECONDS = 3.0
"""Length of the measurement."""
GOOD_P99_US = 500.0
"""99th percentile of lateness that a 1 kHz loop tolerates: half its period."""
LIMITS = (
    'printf "%s - rtprio 90\\n%s - memlock unlimited\\n" $USER $USER '
    "| sudo tee /etc/security/limits.d/tcpsbed.conf, and log in again"
)
_SO_TIMESTAMPNS = 35


def privileges() -> Iterator[Finding]:
    """SCHED_FIFO, locked memory, processors that stay awake, receive stamps."""
    yield attempt("SCHED_FIFO", _fifo, LIMITS)
    yield attempt("locked memory", _locked, LIMITS)
    yield attempt(
        "processors kept awake", _awake, "run as root, or let your group write /dev/cpu_dma_latency"
    )
    yield attempt("receive stamps of the kernel", _stamped)


def measured() -> tuple[list[Finding], dict[str, Any]]:
    """Three seconds of waking up: what was found, and the figures."""
    from tcpsbed import _tcps

    found: dict[str, Any] = json.loads(_tcps.measure_timing(SECONDS))
    rows = [_woke(row) for row in found["wake_ups"]]
    if stamps := found["stamps"]:
        there, inside = stamps["send_to_stamp_ns"], stamps["stamp_to_loop_ns"]
        said = f"send to stamp {_spread(there)}, stamp to loop {_spread(inside)}"
        rows.append(Finding("loopback", True, said))
    return rows, found


def _woke(row: dict[str, Any]) -> Finding:
    late = row["late_ns"]
    said = f"late {_spread(late)}, longest {late['max'] / 1e6:.2f} ms, over 1 ms {row['gaps_over_1ms']} of {row['ticks']}"
    remedy = "fewer programs beside it; performance governor: cpupower frequency-set -g performance"
    return Finding(f"1 kHz, {row['waiting']}", late["p99"] / 1e3 <= GOOD_P99_US, said, remedy)


def _spread(spread: dict[str, Any]) -> str:
    return f"p50 {spread['p50'] / 1e3:.0f} µs, p99 {spread['p99'] / 1e3:.0f} µs"


def _fifo() -> str:
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.sched_setscheduler(0, policy, parameter)
    return "granted"


def _awake() -> str:
    """Opens the same file as the emulator; without a write the kernel changes nothing."""
    with Path("/dev/cpu_dma_latency").open("wb", buffering=0):
        return "granted"


def _locked() -> str:
    """Locks one page that is then let go: a lock of everything would stay."""
    libc = ctypes.CDLL(None, use_errno=True)
    page = ctypes.create_string_buffer(resource.getpagesize())
    if libc.mlock(page, len(page)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.munlock(page, len(page))
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    unlimited = soft == resource.RLIM_INFINITY or os.geteuid() == 0
    return "without limit" if unlimited else f"up to {soft // 1024} KiB"


def _stamped() -> str:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far,
    ):
        far.bind(("127.0.0.1", 0))
        far.settimeout(1.0)
        far.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        near.sendto(b"stamp", far.getsockname())
        _, control, _, _ = far.recvmsg(64, 64)
    if not control:
        raise OSError("a datagram came without a stamp")
    return "on UDP sockets"
