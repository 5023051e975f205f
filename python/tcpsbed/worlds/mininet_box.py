"""Builds a network of Mininet hosts and switches; run by the system's Python, inside namespaces of its own.

It reads one line of JSON, builds, answers ``{"op": "ready", …}`` or ``{"op": "failed", …}``, and takes everything down
when its input ends. It is started by ``unshare --net --pid --mount --uts --kill-child``: whatever becomes of it, the
kernel takes every process, interface and namespace that it made with it. It calls neither ``mn -c`` nor what Mininet
does to limits of the whole machine.

```
 host h0 ── switch s0 ══ link ══ switch s2 ══ … ══ switch s1 ── host h1      a switch for each vertex
```
Switches are Linux bridges that learn and flood nothing, or switches of Open vSwitch without a controller: where a frame
goes is written down for every address, so that loops of the graph are harmless. A link that is relayed is a pair of TAP
devices, which somebody else takes hold of.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

MTU_ROOM = 1518
"""A burst of one frame: HTB's own default is 15 KB."""
NETEM_PACKETS = 100_000
"""Limit of a netem that has none of its own: its default of 1000 would drop."""
NO_LINK = 65535
OVS_TOOLS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")
OVS_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


def run(*command: str, lines: list[str] | None = None) -> str:
    """The output of a command for given input lines; raises `RuntimeError` if it fails."""
    text = None if lines is None else "\n".join(lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def shaped(interface: str, link: dict[str, Any]) -> list[str]:
    """Lines for `tc` that give an interface the rate and the queue of a link, and what delays and loses behind it."""
    handle, parent, lines = "1:", "root", []
    if link.get("rate_bps"):
        rate = int(link["rate_bps"])
        burst = max(MTU_ROOM, rate // 8000)
        lines.append(f"qdisc add dev {interface} root handle 1: htb default 1")
        lines.append(
            f"class add dev {interface} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit"
            f" burst {burst} cburst {burst} overhead {link['overhead_bytes']}"
        )
        handle, parent = "2:", "parent 1:1"
    behind = queue_of(link)
    return [*lines, f"qdisc add dev {interface} {parent} handle {handle} {behind}"] if behind else lines


def queue_of(link: dict[str, Any]) -> str:
    """The innermost queue of a link, as `tc` calls it; empty for the kernel's own."""
    delay_us, loss, queue = link.get("delay_ns", 0) / 1000, link.get("loss", 0), link["queue"]
    if delay_us or loss:
        words = (f" delay {delay_us}us" if delay_us else "") + (f" loss {100 * loss}%" if loss else "")
        return f"netem{words} limit {queue.get('limit_packets') or NETEM_PACKETS}"
    if queue.get("limit_packets"):
        return f"pfifo limit {queue['limit_packets']}"
    return f"bfifo limit {queue['limit_bytes']}" if queue.get("limit_bytes") else ""


def unlike(link: dict[str, Any], queues: str, classes: str) -> list[str]:
    """What the kernel has of a link's rate, queue, delay and loss that is not as it was set."""
    wanted = []
    if link.get("rate_bps"):
        found = re.search(r"htb .*?rate (\d+(?:\.\d+)?)([KMG]?)bit", classes)
        scale = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}
        rate = float(found[1]) * scale[found[2]] if found else 0.0
        # tc shows few digits.
        wanted.append(("rate", abs(rate - link["rate_bps"]) <= 0.01 * link["rate_bps"]))
    if behind := queue_of(link):
        kind, limit = behind.split()[0], behind.split()[-1]
        wanted.append(("queue", re.search(rf"{kind} .*limit {limit}\D", queues) is not None))
    if link.get("delay_ns"):
        wanted.append(("delay", "delay" in queues))
    if link.get("loss"):
        wanted.append(("loss", "loss" in queues))
    return [f"{link['name']}: its {what} is not set" for what, right in wanted if not right]


def verified(impaired: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """What of all links, each at its interface, differs from its settings: two calls of `tc` for all of them."""
    queues: dict[str, str] = {}
    for line in run("tc", "qdisc", "show").splitlines():
        queues.setdefault(line.split(" dev ")[1].split()[0], "")
        queues[line.split(" dev ")[1].split()[0]] += f"{line}\n"
    rated = [interface for interface, link in impaired if link.get("rate_bps")]
    said = run("tc", "-batch", "-", lines=[f"class show dev {interface}" for interface in rated]).splitlines()
    if len(said) != len(rated):
        return [f"{len(rated)} links have a rate, and the kernel has {len(said)} classes"]
    classes = dict(zip(rated, said, strict=True))
    return [
        wrong
        for interface, link in impaired
        for wrong in unlike(link, queues.get(interface, ""), classes.get(interface, ""))
    ]


def bridge(name: str, interfaces: list[str]) -> list[str]:
    """Lines for `ip` that make a switch which learns and floods nothing."""
    lines = [f"link add {name} type bridge stp_state 0 forward_delay 0 ageing_time 0 mcast_snooping 0"]
    still = "learning off flood off mcast_flood off bcast_flood off"
    for interface in interfaces:
        lines.append(f"link set {interface} master {name}")
        lines.append(f"link set dev {interface} type bridge_slave {still}")
        lines.append(f"link set {interface} up")
    return [*lines, f"link set {name} up"]


def build(wanted: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The network and its description."""
    from mininet.link import Link
    from mininet.net import Mininet
    from mininet.node import Node

    # Mininet would set limits of the whole machine here.
    Mininet.inited = True
    quiet = [f"net.ipv6.conf.{which}.disable_ipv6=1" for which in ("all", "default")]
    run("sysctl", "-qw", *quiet)
    net = Mininet(topo=None, controller=None, build=False)
    hosts = [
        net.addHost(f"h{i}", ip=f"{host['address']}/16", mac=host["mac"])
        for i, host in enumerate(wanted["hosts"])
    ]
    # All switches stand in the namespace of the box: one shell will do for them.
    switches = Node("switches", inNamespace=False)
    ports: dict[Any, str] = {}
    for i, host in enumerate(wanted["hosts"]):
        Link(hosts[i], switches, intfName1=f"h{i}-eth0", intfName2=f"s{host['switch']}-h{i}")
        ports[("host", i)] = f"s{host['switch']}-h{i}"
    lines = []
    for i, pair in enumerate(wanted["links"]):
        taps = [f"tuntap add dev l{i}{end} mode tap" for end in "ab"]
        lines += taps if pair["relayed"] else [f"link add l{i}a type veth peer name l{i}b"]
        for direction, interface in (("forward", f"l{i}a"), ("backward", f"l{i}b")):
            ports[("link", pair[direction]["number"])] = interface
    net.build()
    of = {
        s: [name for (kind, i), name in ports.items() if _at(kind, i, s, wanted)]
        for s in range(wanted["switches"])
    }
    if wanted["switching"] == "bridge":
        lines += [line for s, interfaces in of.items() for line in bridge(f"s{s}", interfaces)]
    else:
        lines += [f"link set {interface} up" for interfaces in of.values() for interface in interfaces]
    run("ip", "-batch", "-", lines=lines)
    if wanted["switching"] == "bridge":
        fdb = [f"fdb replace {mac} dev {port} master static" for _, mac, port in _ways(wanted, ports)]
        run("bridge", "-batch", "-", lines=fdb)
        wrong = []
    else:
        wrong = _open_vswitch(wanted, ports, of)
    wrong += _impair(wanted, ports)
    for number, host in enumerate(hosts):
        _introduce(host, [other for i, other in enumerate(wanted["hosts"]) if i != number])
        if wanted["switching"] == "netdev":
            # A switch in user space sees packets before anybody has filled in their checksums.
            _in(host, "ethtool", "-K", f"{host.name}-eth0", "tx", "off")
    return net, {"op": "ready", "pids": [host.pid for host in hosts], "wrong": wrong}


def _introduce(host: Any, others: list[dict[str, Any]]) -> None:
    """Gives a host the addresses of all others."""
    lines = [f"neigh replace {o['address']} lladdr {o['mac']} dev {host.name}-eth0" for o in others]
    _in(host, "ip", "-batch", "-", lines=lines)


def _in(host: Any, *command: str, lines: list[str] | None = None) -> None:
    """Runs a command in the network namespace of a host."""
    run("nsenter", f"--net=/proc/{host.pid}/ns/net", *command, lines=lines)


def _at(kind: str, number: int, switch: int, wanted: dict[str, Any]) -> bool:
    """Whether a port is at a switch."""
    if kind == "host":
        return bool(wanted["hosts"][number]["switch"] == switch)
    return bool(wanted["ends"][number] == switch)


def _ways(wanted: dict[str, Any], ports: dict[Any, str]) -> list[tuple[int, str, str]]:
    """Switch, address and port: where frames for every host go at every switch."""
    ways = []
    for i, host in enumerate(wanted["hosts"]):
        for switch in range(wanted["switches"]):
            link = wanted["routes"][switch][host["switch"]]
            if switch == host["switch"]:
                port = ports[("host", i)]
            elif link == NO_LINK:
                continue
            else:
                port = ports[("link", link)]
            ways.append((switch, host["mac"], port))
    return ways


def _open_vswitch(wanted: dict[str, Any], ports: dict[Any, str], of: dict[int, list[str]]) -> list[str]:
    """Switches of Open vSwitch with daemons of their own, which end with the namespaces; what is not as it was set."""
    folder, data_path = wanted["folder"], wanted["switching"]
    Path(folder).mkdir()
    os.environ |= {f"OVS_{kind}DIR": folder for kind in ("RUN", "LOG", "DB")}
    server, quiet = f"unix:{folder}/db.sock", ("--detach", "--no-chdir", "--pidfile", "-vconsole:off")
    run("ovsdb-tool", "create", f"{folder}/conf.db", OVS_SCHEMA)
    run("ovsdb-server", f"{folder}/conf.db", f"--remote=p{server}", *quiet)
    run("ovs-vsctl", f"--db={server}", "--no-wait", "init")
    run("ovs-vswitchd", server, *quiet)
    words = []
    for s, interfaces in of.items():
        words += ["--", "add-br", f"s{s}", "--", "set", "bridge", f"s{s}"]
        words += [f"datapath_type={data_path}", "fail_mode=secure"]
        words += [word for interface in interfaces for word in ("--", "add-port", f"s{s}", interface)]
    run("ovs-vsctl", f"--db={server}", "--timeout=30", *words)
    for s in of:
        flows = [f"dl_dst={mac},actions=output:{port}" for at, mac, port in _ways(wanted, ports) if at == s]
        run("ovs-ofctl", "add-flows", f"s{s}", "-", lines=flows)
    told = run("ovs-appctl", "dpif/show")
    wrong = [f"{name}: not in the data path" for name in ports.values() if not re.search(rf"\b{name} ", told)]
    if not re.search(rf"^{data_path}@", told, re.MULTILINE):
        wrong.append(f"Open vSwitch: no data path {data_path}")
    return wrong


def _impair(wanted: dict[str, Any], ports: dict[Any, str]) -> list[str]:
    """Sets rates, queues, delays and losses; what is not as it was set afterwards."""
    pairs = [pair for pair in wanted["links"] if not pair["relayed"]]
    links = [pair[direction] for pair in pairs for direction in ("forward", "backward")]
    impaired = [(ports[("link", link["number"])], link) for link in links]
    run("tc", "-batch", "-", lines=[line for interface, link in impaired for line in shaped(interface, link)])
    return verified(impaired)


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
