"""Mininet hosts and switches: a node in every host, the links of the scenario between static bridges.

```
 unshare ── box (system Python, Mininet) ── h0 ── s0 ══ s2 ══ s1 ── h1
                                            │                      │
                                     tcpsbed node            tcpsbed node      (nsenter into the hosts)
```
Everything that Mininet makes is in namespaces of the box, which the kernel removes with it.
"""

from __future__ import annotations

import json
import select
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from tcpsbed import _tcps
from tcpsbed.errors import WorldError
from tcpsbed.worlds import local, mininet_box
from tcpsbed.worlds.contract import Hosting, Network
from tcpsbed.worlds.process import NODE, Process, Talk

SYSTEM_PYTHON = "/usr/bin/python3"
"""Debian's package of Mininet is for the system's Python."""
BUILD_S = 60.0
"""Longest time that the box may take."""
UNSHARE = ("unshare", "--net", "--pid", "--mount", "--uts", "--fork", "--mount-proc", "--kill-child")
PACKAGES = "apt-get install mininet iproute2 util-linux"


class Hosts(Hosting):
    """A Mininet host a node."""

    name: ClassVar[str] = "mininet"
    what: ClassVar[str] = "a Mininet host a node, in namespaces of their own"

    @classmethod
    def missing(cls) -> str | None:
        """Root, Mininet, and the tools that it is built with."""
        if reason := local.Namespaces.missing():
            return reason
        tools = [tool for tool in ("unshare", "nsenter", "tc", "bridge", "ip") if shutil.which(tool) is None]
        if tools or not Path(SYSTEM_PYTHON).exists():
            return f"{', '.join(tools) or SYSTEM_PYTHON}: {PACKAGES}"
        found = subprocess.run([SYSTEM_PYTHON, "-c", "import mininet.net"], capture_output=True)
        return f"Mininet for {SYSTEM_PYTHON}: {PACKAGES}" if found.returncode else None

    def refuse(self) -> None:
        """What Mininet's switches cannot do."""
        refuse(self.job.plan)

    def launch(self) -> list[Talk]:
        """Builds hosts and switches, and starts the nodes in the hosts."""
        self.box = Box(layout(self.job.plan))
        self.started: list[Talk] = []
        for id, node in enumerate(self.job.plan["nodes"]):
            command = ("nsenter", f"--net=/proc/{self.box.pids[id]}/ns/net", *NODE)
            self.started.append(Process(node["name"], self.job.ring(id), command))
        return self.started

    def addresses(self) -> list[str]:
        """The addresses of the hosts."""
        return [address(id) for id in range(len(self.job.plan["nodes"]))]

    def teardown(self) -> None:
        """Ends the nodes, then the box."""
        for process in getattr(self, "started", ()):
            process.end()
        if hasattr(self, "box"):
            self.box.end()


class Switches(Network):
    """The links of the scenario between Mininet switches."""

    name: ClassVar[str] = "mininet"
    what: ClassVar[str] = "Mininet switches with the rates and queues of the scenario's links"

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Its switches join its own hosts."""
        return (
            None
            if hosting == "mininet"
            else f"Mininet switches join Mininet hosts; take mininet, or {hosting}+emulator"
        )

    def impair(self) -> Process | None:
        """The switches stand already: the hosts were built with them. Starts the background traffic."""
        assert isinstance(self.hosting, Hosts)
        if not self.job.plan["network"].get("traffic"):
            return None
        box = self.hosting.box
        places = {
            str(vertex): {"namespace": f"/proc/{box.pids[host]}/ns/net", "address": address(host)}
            for vertex, host in stands(self.job.plan).items()
        }
        self.traffic = _Traffic("traffic", self.job.memory / "traffic", places)
        return self.traffic

    def teardown(self) -> None:
        """Ends the background traffic."""
        if hasattr(self, "traffic"):
            self.traffic.end()

    def verify(self) -> list[str]:
        """What the kernel has not as it was set."""
        assert isinstance(self.hosting, Hosts)
        return self.hosting.box.wrong


class _Traffic(Process):
    """Background traffic between hosts of its own, in a process that speaks the emulator's part without gates."""

    def __init__(self, name: str, ring: Path, places: dict[str, Any]) -> None:
        self.places = places
        super().__init__(name, ring)

    def tell(self, **message: Any) -> None:
        """Sends a line; the first one also says where traffic begins and ends."""
        super().tell(**message, **({"places": self.places} if message["op"] == "prepare" else {}))


class Box:
    """The namespaces with everything of Mininet in them."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self.child = subprocess.Popen(
            [*UNSHARE, SYSTEM_PYTHON, "-I", mininet_box.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            answer = self._ask(wanted)
            self.wrong: list[str] = answer["wrong"]
            self.pids = [self._outside(pid) for pid in answer["pids"]]
        except BaseException:
            self.end()
            raise

    def _ask(self, wanted: dict[str, Any]) -> dict[str, Any]:
        assert self.child.stdin is not None and self.child.stdout is not None
        with suppress(BrokenPipeError):
            self.child.stdin.write(json.dumps(wanted) + "\n")
            self.child.stdin.flush()
        ready, _, _ = select.select([self.child.stdout], [], [], BUILD_S)
        line = self.child.stdout.readline() if ready else ""
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            answer = {"op": "failed", "error": self._words(line, bool(ready))}
        if answer["op"] != "ready":
            raise WorldError(f"Mininet: {answer['error']}")
        return answer

    def _words(self, line: str, spoke: bool) -> str:
        self.child.kill()
        said = (self.child.communicate()[1] or line).strip().splitlines()
        return said[-1] if said else "no word" if spoke else f"not built after {BUILD_S:g} s"

    def _outside(self, pid: int) -> int:
        """The number that a process of the box has outside of it."""
        for place in Path("/proc").glob("[0-9]*/status"):
            with suppress(OSError):
                lines = place.read_text().splitlines()
                numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
                if len(numbers) > 1 and numbers[-1] == str(pid) and self._inside(int(numbers[0])):
                    return int(numbers[0])
        raise WorldError(f"Mininet: its host with process {pid} is gone")

    def _inside(self, pid: int) -> bool:
        """Whether a process is in the namespaces of this box: those of the child of `unshare`."""
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        homes = {str(Path(f"/proc/{child}/ns/pid").readlink()) for child in children}
        return str(Path(f"/proc/{pid}/ns/pid").readlink()) in homes

    def end(self) -> None:
        """Has everything taken down; a second time does nothing."""
        if self.child.stdin is not None:
            with suppress(BrokenPipeError):
                self.child.stdin.close()
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def address(host: int) -> str:
    """The address of a host."""
    return f"10.66.{(host + 1) // 256}.{(host + 1) % 256}"


def layout(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What the box is to build: a switch for each vertex, a host for each node, a pair of interfaces for each link."""
    links = plan["network"]["links"]
    switches = [*range(len(plan["nodes"])), *stands(plan)]
    hosts = [
        {
            "switch": switch,
            "address": address(id),
            "mac": f"02:00:00:00:{(id + 1) // 256:02x}:{(id + 1) % 256:02x}",
        }
        for id, switch in enumerate(switches)
    ]
    pairs = [
        {
            "from": links[a]["from"],
            "to": links[a]["to"],
            "forward": _link(links[a], a),
            "backward": _link(links[b], b),
        }
        for a, b in pairs_of(links)
    ]
    return {
        "switches": len(plan["network"]["vertices"]),
        "hosts": hosts,
        "links": pairs,
        "ends": [link["from"] for link in links],
        "routes": json.loads(_tcps.routes(json.dumps(plan))),
    }


def stands(plan: Mapping[str, Any]) -> dict[int, int]:
    """Background traffic has hosts of its own, behind those of the nodes: number of the host by vertex."""
    vertices = {entry[end] for entry in plan["network"].get("traffic", []) for end in ("from", "to")}
    return {vertex: len(plan["nodes"]) + place for place, vertex in enumerate(sorted(vertices))}


def _link(link: Mapping[str, Any], number: int) -> dict[str, Any]:
    queue = link.get("queue", {})
    return {
        "name": f"links.{link['name']}",
        "number": number,
        "rate_bps": link.get("rate_bps"),
        "delay_ns": link.get("delay_ns", 0),
        "loss": (link.get("loss") or {}).get("p", 0),
        "queue": {key: queue[key] for key in ("limit_bytes", "limit_packets") if queue.get(key) is not None},
    }


def pairs_of(links: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Both directions of each link; a link of one direction has none, see `refuse`."""
    numbers = {link["name"]: number for number, link in enumerate(links)}
    return [
        (number, numbers[name.removesuffix("forward") + "backward"])
        for name, number in numbers.items()
        if name.endswith(".forward")
    ]


def has_netem() -> bool:
    """Whether the kernel can delay and lose: tried on a device that is gone at once."""
    attempt = "ip link add ta type veth peer name tb && tc qdisc add dev ta root netem delay 1ms"
    return subprocess.run(["unshare", "--net", "sh", "-c", attempt], capture_output=True).returncode == 0


def refuse(plan: Mapping[str, Any]) -> None:
    """Refuses what Mininet's switches would do otherwise than asked for, with the remedy.

    Raises
    ------
    WorldError
        With the first such thing.
    """
    if not plan["network"]["links"]:
        raise WorldError(
            "links: found none, so Mininet has nothing to build; allowed: one or more, or --world real"
        )
    for place, found, allowed in _unfit(plan):
        raise WorldError(f"{place}: found {found}, which Mininet does not do here; allowed: {allowed}")


def _unfit(plan: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    built_in = "the emulator (--world namespaces)"
    links = plan["network"]["links"]
    delayed = [link["name"] for link in links if link.get("delay_ns") or link.get("loss")]
    if delayed and not has_netem():
        yield (
            f"links.{delayed[0]}",
            "a delay or a loss, and this kernel has no netem",
            f"modprobe sch_netem, or {built_in}",
        )
    for link in links:
        for key in (
            "medium",
            "jitter",
            "duplicate",
            "corrupt",
            "outages",
            "radio",
            "slots",
            "opportunities_ns",
        ):
            if link.get(key):
                yield f"links.{link['name']}", key.removesuffix("_ns"), built_in
        if link.get("dscp") is not None:
            yield f"links.{link['name']}.dscp", "a code point", built_in
        if link.get("queue", {}).get("discipline", {}).get("kind", "drop_tail") != "drop_tail":
            yield f"links.{link['name']}.queue", "a discipline", f"drop-tail, or {built_in}"
        if not link["name"].endswith((".forward", ".backward")):
            yield f"links.{link['name']}", "a link of one direction", "both directions"
    for traffic in plan["network"].get("traffic", []):
        if traffic["model"]["kind"] == "tcp":
            yield (
                f"traffic.{traffic['name']}",
                "users of TCP",
                f"cbr, poisson, vbr, replay or video; or {built_in}",
            )
    for event in plan.get("events", []):
        if event["action"]["kind"] in ("link", "reroute", "traffic"):
            yield (
                f"events ({event['name']})",
                "a change of the network",
                f"events of flows and components, or {built_in}",
            )
