"""Builds a network of Mininet hosts and switches; run by the system's Python, inside namespaces of its own.

It reads one line of JSON, builds, answers ``{"op": "ready", …}`` or ``{"op": "failed", …}``, and takes everything down
when its input ends. It is started by ``unshare --net --pid --mount --uts --kill-child``: whatever becomes of it, the
kernel takes every process, interface and namespace that it made with it. It calls neither ``mn -c`` nor what Mininet
does to limits of the whole machine.

```
 host h0 ── switch s0 ══ link ══ switch s2 ══ … ══ switch s1 ── host h1      a switch for each vertex
```
Switches are Linux bridges that learn and flood nothing: where a frame goes is written down for every address, so that
loops of the graph are harmless.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

MTU_ROOM = 1518
"""A burst of one frame: HTB's own default is 15 KB."""
HEADER_BYTES = 12
"""What the kernel does not count of a frame's 26 bytes of link: it sees 14."""
NO_LINK = 65535


def run(command: str) -> str:
    """What a shell command says; raises `RuntimeError` if it fails."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command.split(';')[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def shaped(interface: str, link: dict[str, Any]) -> None:
    """Gives an interface the rate and the queue of a link; what delays and loses is behind it."""
    handle, parent = "1:", "root"
    if link.get("rate_bps"):
        rate = int(link["rate_bps"])
        burst = max(MTU_ROOM, rate // 8000)
        run(f"tc qdisc add dev {interface} root handle 1: htb default 1")
        run(
            f"tc class add dev {interface} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit"
            f" burst {burst} cburst {burst} overhead {HEADER_BYTES}"
        )
        handle, parent = "2:", "parent 1:1"
    delay_us, loss = link.get("delay_ns", 0) / 1000, link.get("loss", 0)
    if delay_us or loss:
        words = f"delay {delay_us}us" if delay_us else ""
        words += f" loss {100 * loss}%" if loss else ""
        limit = link["queue"].get("limit_packets") or 100_000
        run(f"tc qdisc add dev {interface} {parent} handle {handle} netem {words} limit {limit}")
    elif link["queue"].get("limit_packets"):
        limit = link["queue"]["limit_packets"]
        run(f"tc qdisc add dev {interface} {parent} handle {handle} pfifo limit {limit}")
    elif link["queue"].get("limit_bytes"):
        limit = link["queue"]["limit_bytes"]
        run(f"tc qdisc add dev {interface} {parent} handle {handle} bfifo limit {limit}")


def unlike(interface: str, link: dict[str, Any]) -> list[str]:
    """What the kernel has of a link's rate, queue, delay and loss that is not as it was set."""
    shown = run(f"tc -s qdisc show dev {interface}; tc class show dev {interface}")
    wanted = []
    if link.get("rate_bps"):
        found = re.search(r"htb .*?rate (\d+(?:\.\d+)?)([KMG]?)bit", shown)
        scale = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}
        rate = float(found[1]) * scale[found[2]] if found else 0.0
        # tc shows few digits.
        wanted.append(("rate", abs(rate - link["rate_bps"]) <= 0.01 * link["rate_bps"]))
    impaired = link.get("delay_ns") or link.get("loss")
    if impaired:
        wanted.append(("delay and loss", "netem" in shown))
    limits = link["queue"]
    if limits.get("limit_packets"):
        wanted.append(("queue", f"limit {limits['limit_packets']}" in shown))
    elif limits.get("limit_bytes") and not impaired:
        wanted.append(("queue", "bfifo" in shown))
    return [f"{link['name']}: its {what} is not set at {interface}" for what, right in wanted if not right]


def bridge(name: str, interfaces: list[str]) -> None:
    """A switch that learns and floods nothing."""
    run(f"ip link add {name} type bridge stp_state 0 forward_delay 0 ageing_time 0 mcast_snooping 0")
    for interface in interfaces:
        run(f"ip link set {interface} master {name}")
        run(
            f"ip link set dev {interface} type bridge_slave learning off flood off mcast_flood off bcast_flood off"
        )
        run(f"ip link set {interface} up")
    run(f"ip link set {name} up")


def build(wanted: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The network, and what is told of it."""
    from mininet.link import Link
    from mininet.net import Mininet
    from mininet.node import Node

    class StaticBridge(Node):  # type: ignore[misc, unused-ignore]
        """A vertex of the graph."""

        def __init__(self, name: str, **params: Any) -> None:
            super().__init__(name, inNamespace=False, **params)

    # Mininet would set limits of the whole machine here.
    Mininet.inited = True
    run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
    net = Mininet(topo=None, controller=None, build=False)
    hosts = [
        net.addHost(f"h{i}", ip=f"{host['address']}/16", mac=host["mac"])
        for i, host in enumerate(wanted["hosts"])
    ]
    switches = [StaticBridge(f"s{i}") for i in range(wanted["switches"])]
    ports: dict[Any, str] = {}
    for i, host in enumerate(wanted["hosts"]):
        link = Link(hosts[i], switches[host["switch"]], intfName1=f"h{i}-eth0", intfName2=f"s{host['switch']}-h{i}")
        ports[("host", i)] = link.intf2.name
    for i, pair in enumerate(wanted["links"]):
        a, b = pair["from"], pair["to"]
        link = Link(switches[a], switches[b], intfName1=f"l{i}a", intfName2=f"l{i}b")
        for direction, interface in (("forward", link.intf1.name), ("backward", link.intf2.name)):
            ports[("link", pair[direction]["number"])] = interface
    net.build()
    for s in range(wanted["switches"]):
        mine = [name for (kind, i), name in ports.items() if _at(kind, i, s, wanted)]
        bridge(f"s{s}", mine)
    _forward(wanted, ports)
    wrong = _impair(wanted, ports)
    for host in hosts:
        for other in wanted["hosts"]:
            if other["address"] != host.IP():
                host.cmd(f"arp -s {other['address']} {other['mac']} || ip neigh replace {other['address']}"
                         f" lladdr {other['mac']} dev {host.name}-eth0")
    return net, {"op": "ready", "pids": [host.pid for host in hosts], "wrong": wrong}


def _at(kind: str, number: int, switch: int, wanted: dict[str, Any]) -> bool:
    """Whether a port is at a switch."""
    if kind == "host":
        return bool(wanted["hosts"][number]["switch"] == switch)
    return bool(wanted["ends"][number] == switch)


def _forward(wanted: dict[str, Any], ports: dict[Any, str]) -> None:
    """Writes down at every switch where frames for every host go."""
    lines = []
    for i, host in enumerate(wanted["hosts"]):
        for switch in range(wanted["switches"]):
            link = wanted["routes"][switch][host["switch"]]
            if switch == host["switch"]:
                port = ports[("host", i)]
            elif link == NO_LINK:
                continue
            else:
                port = ports[("link", link)]
            lines.append(f"fdb replace {host['mac']} dev {port} master static")
    done = subprocess.run(["bridge", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"bridge: {done.stderr.strip()}")


def _impair(wanted: dict[str, Any], ports: dict[Any, str]) -> list[str]:
    """Sets rates, queues, delays and losses; what is not as it was set afterwards."""
    wrong = []
    for pair in wanted["links"]:
        for direction in ("forward", "backward"):
            link = pair[direction]
            interface = ports[("link", link["number"])]
            shaped(interface, link)
            wrong += unlike(interface, link)
    return wrong


def main() -> None:
    """Builds what the first line asks for, and stays until input ends."""
    net = None
    try:
        net, answer = build(json.loads(sys.stdin.readline()))
    except Exception as error:
        answer = {"op": "failed", "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
    sys.stdin.read()
    if net is not None:
        net.stop()


if __name__ == "__main__":
    main()
