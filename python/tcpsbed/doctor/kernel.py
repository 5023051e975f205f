"""Features of the kernel, each tried in a temporary network namespace."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import socket
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tcpsbed.doctor.finding import Finding, attempt, ran

MODULES = "apt install linux-modules-extra-$(uname -r), or a kernel of the distribution"
TOOLS = "apt install iproute2 util-linux"
DISCIPLINES = {
    "netem": "netem delay 1ms",
    "prio": "prio",
    "htb": "htb",
    "tbf": "tbf rate 1mbit burst 2kb latency 10ms",
    "codel": "codel",
    "fq_codel": "fq_codel",
    "red": "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.1",
    "etf": "etf clockid CLOCK_TAI",
    "taprio": "taprio num_tc 1 map 0 queues 1@0 base-time 0 sched-entry S 1 1000000 clockid CLOCK_TAI",
}
"""Queue disciplines and how each is set up for a try."""
PARENT = "ip link add p0 type veth peer name q0"
"""A device that others stand on."""
DEVICES = {
    "veth": "ip link add a0 type veth peer name b0",
    "bridge": "ip link add a0 type bridge",
    "macvlan": f"{PARENT} && ip link add a0 link p0 type macvlan",
    "vlan 802.1Q": f"{PARENT} && ip link add a0 link p0 type vlan id 7",
    "ifb": "ip link add a0 type ifb",
    "tun": "ip tuntap add a0 mode tun",
    "vxlan": f"{PARENT} && ip link add a0 type vxlan id 7 dstport 4789 dev p0",
}
"""Network devices and how each is added for a try."""
_NR_IO_URING_SETUP, _NR_BPF = 425, {"x86_64": 321, "aarch64": 280}
_AF_XDP = 44


def examine() -> Iterator[Finding]:
    """Everything about the kernel."""
    yield from namespaces()
    alone = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    remedy = MODULES if shutil.which("tc", path=_path()) else TOOLS
    for name, words in DISCIPLINES.items():
        script = f"ip link add a0 type veth peer name b0 && tc qdisc add dev a0 root {words}"
        yield attempt(f"queue discipline {name}", partial(_sh, alone, script), remedy)
    for name, script in DEVICES.items():
        yield attempt(f"device {name}", partial(_sh, alone, script), MODULES)
    yield attempt("io_uring", _io_uring, "sysctl -w kernel.io_uring_disabled=0")
    yield attempt("BPF", _bpf, "run as root, or sysctl -w kernel.unprivileged_bpf_disabled=0")
    yield attempt("AF_XDP", _xdp, "run as root")
    yield attempt(
        "Open vSwitch data path", _open_vswitch, "apt install openvswitch-switch && modprobe openvswitch"
    )


def namespaces() -> Iterator[Finding]:
    """Network namespaces, with root and without."""
    if os.geteuid() == 0:
        yield attempt("network namespaces as root", lambda: ran(["unshare", "-n", "true"]), TOOLS)
    else:
        yield Finding("network namespaces as root", False, "not root", "sudo tcpsbed doctor")
    allowed = "sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    yield attempt("network namespaces without root", lambda: ran(["unshare", "-Urn", "true"]), allowed)


def _sh(alone: list[str], script: str) -> str:
    return ran([*alone, "sh", "-c", script], env=os.environ | {"PATH": _path()})


def _path() -> str:
    """Where programs are looked for; without root the system's own are often not on `PATH`."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def _call(number: int, *arguments: object) -> int:
    """A system call; a file descriptor that it returns is closed again."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(libc.syscall(number, *arguments))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    os.close(found)
    return found


def _io_uring() -> str:
    _call(_NR_IO_URING_SETUP, 4, ctypes.create_string_buffer(120))
    return "a ring of 4 entries"


def _bpf() -> str:
    machine = os.uname().machine
    if machine not in _NR_BPF:
        raise OSError(errno.ENOSYS, f"not tried on {machine}")
    # BPF_MAP_CREATE: an array of one u32.
    attributes = ctypes.create_string_buffer(struct.pack("IIIII", 2, 4, 4, 1, 0), 72)
    _call(_NR_BPF[machine], 0, attributes, 72)
    return "a map of one value"


def _xdp() -> str:
    socket.socket(_AF_XDP, socket.SOCK_RAW, 0).close()
    return "a socket"


def _open_vswitch() -> str:
    """Data paths are controlled with a family of messages that the kernel then knows."""
    family("ovs_datapath")
    return "in the kernel"


def family(name: str) -> int:
    """The number of a family of generic netlink messages; asking for it may load its module.

    Raises
    ------
    OSError
        If the kernel has none of this name.
    """
    text = name.encode() + b"\0"
    attribute = struct.pack("HH", 4 + len(text), 2) + text  # CTRL_ATTR_FAMILY_NAME
    attribute += bytes(-len(attribute) % 4)
    body = struct.pack("BBH", 3, 1, 0) + attribute  # CTRL_CMD_GETFAMILY
    message = struct.pack("IHHII", 16 + len(body), 16, 5, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as asking:
        asking.settimeout(1.0)
        asking.sendto(message, (0, 0))
        answer = asking.recv(4096)
    kind, code = struct.unpack_from("H", answer, 4)[0], struct.unpack_from("i", answer, 16)[0]
    if kind == 2 and code:
        raise OSError(-code, f"the kernel has no {name}")
    at = 20
    while at + 8 <= len(answer):
        length, attribute_kind = struct.unpack_from("HH", answer, at)
        if attribute_kind == 1:  # CTRL_ATTR_FAMILY_ID
            return int(struct.unpack_from("H", answer, at + 4)[0])
        at += max(length + (-length % 4), 4)
    raise OSError(errno.EPROTO, f"the kernel's answer names no {name}")


def release() -> str:
    """The kernel's name and release."""
    return Path("/proc/version").read_text(encoding="utf-8").split(" (")[0].strip()
