"""Mininet hosts and switches: a node per host, and the scenario's links between switches with fixed tables.

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
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from tcpsbed.errors import WorldError
from tcpsbed.processes import talking
from tcpsbed.worlds import local, mininet_box, mininet_plan
from tcpsbed.worlds.contract import Hosting, Job, Network
from tcpsbed.worlds.process import NODE, ControlChannel, Process

SYSTEM_PYTHON = "/usr/bin/python3"
"""Debian's package of Mininet is for the system's Python."""
BUILD_S = 60.0
"""Longest time that the box may take."""
UNSHARE = ("unshare", "--net", "--pid", "--mount", "--uts", "--fork", "--mount-proc", "--kill-child")
PACKAGES = "apt-get install mininet iproute2 util-linux"
OPEN_VSWITCH = "apt-get install openvswitch-switch ethtool"


class Hosts(Hosting):
    """A Mininet host a node."""

    name: ClassVar[str] = "mininet"
    what: ClassVar[str] = "one Mininet host per node, each in its own namespaces"
    datagrams: ClassVar[bool] = True
    switching = "bridge"
    """What its switches are; the network says."""

    @classmethod
    def missing(cls) -> str | None:
        """Root, Mininet, and the tools that it is built with."""
        if reason := local.Namespaces.missing():
            return reason
        tools = [tool for tool in ("unshare", "nsenter", "tc", "bridge", "ip") if shutil.which(tool) is None]
        if tools or not Path(SYSTEM_PYTHON).exists():
            return f"{', '.join(tools) or SYSTEM_PYTHON}: {PACKAGES}"
        found = subprocess.run([SYSTEM_PYTHON, "-I", "-c", "import mininet.net"], capture_output=True)
        return f"Mininet for {SYSTEM_PYTHON}: {PACKAGES}" if found.returncode else None

    def refuse(self) -> None:
        """What neither switches nor relay can do."""
        mininet_plan.refuse(self.job.plan)

    def launch(self) -> list[ControlChannel]:
        """Builds hosts and switches, and starts the nodes in the hosts."""
        wanted = mininet_plan.layout(self.job.plan)
        self.box = Box(wanted | {"switching": self.switching, "folder": str(self.job.memory / "ovs")})
        self.started: list[ControlChannel] = []
        for id, node in enumerate(self.job.plan["nodes"]):
            command = ("nsenter", f"--net=/proc/{self.box.pids[id]}/ns/net", *NODE)
            self.started.append(Process(node["name"], self.job.ring(id), command))
        return self.started

    def addresses(self) -> list[str]:
        """The addresses of the hosts."""
        return [mininet_plan.address(id) for id in range(len(self.job.plan["nodes"]))]

    def teardown(self) -> None:
        """Ends the nodes, then the box."""
        for process in getattr(self, "started", ()):
            process.end()
        if hasattr(self, "box"):
            self.box.end()


class Switches(Network):
    """The links of the scenario between Mininet switches, which are bridges of the kernel."""

    name: ClassVar[str] = "mininet"
    what: ClassVar[str] = "Mininet switches with the scenario's links between them"
    switching: ClassVar[str] = "bridge"

    def __init__(self, job: Job, hosting: Hosting) -> None:
        super().__init__(job, hosting)
        assert isinstance(hosting, Hosts)
        self.hosts = hosting
        hosting.switching = self.switching

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Its switches join its own hosts."""
        return (
            None
            if hosting == "mininet"
            else f"switches of Mininet join only hosts of Mininet; allowed: mininet, or {hosting}+emulator"
        )

    def impair(self) -> Process | None:
        """The switches exist already, built with the hosts. Starts a process with the emulator's part without gates:
        the relay of some links, and background traffic.
        """
        box, plan = self.hosts.box, self.job.plan
        wires, stands = mininet_plan.wires(plan), mininet_plan.stands(plan)
        if not wires and not stands:
            return None
        command = ("nsenter", f"--net=/proc/{box.home()}/ns/net", *NODE)
        self.beside = Process("switches", self.job.memory / "switches", command)
        if wires:
            self.beside.also["wires"] = wires
        if stands:
            self.beside.also["places"] = {
                str(vertex): {
                    "namespace": f"/proc/{box.pids[host]}/ns/net",
                    "address": mininet_plan.address(host),
                }
                for vertex, host in stands.items()
            }
        return self.beside

    def teardown(self) -> None:
        """Ends what is beside the switches."""
        if hasattr(self, "beside"):
            self.beside.end()

    def verify(self) -> list[str]:
        """What the kernel has not as it was set."""
        return self.hosts.box.wrong


class OpenVSwitch(Switches):
    """The same with switches of Open vSwitch, in the kernel's data path."""

    name: ClassVar[str] = "ovs"
    what: ClassVar[str] = "Open vSwitch, in the kernel, with the scenario's links between switches"
    switching: ClassVar[str] = "system"

    @classmethod
    def missing(cls) -> str | None:
        """The programs of Open vSwitch, and its data path in the kernel."""
        if reason := lacking():
            return reason
        if has_data_path():
            return None
        return "a kernel with Open vSwitch's data path: modprobe openvswitch, or --world mininet+ovs-user"


class UserSpace(Switches):
    """The same with switches of Open vSwitch whose data path is in user space."""

    name: ClassVar[str] = "ovs-user"
    what: ClassVar[str] = "Open vSwitch, in user space, with the scenario's links between switches"
    switching: ClassVar[str] = "netdev"

    @classmethod
    def missing(cls) -> str | None:
        """The programs of Open vSwitch."""
        return lacking()


def has_data_path() -> bool:
    """Whether the kernel switches for Open vSwitch: it then knows the messages that control that."""
    asked = ("genl", "ctrl", "get", "name", "ovs_datapath")
    return subprocess.run(asked, capture_output=True).returncode == 0


def lacking() -> str | None:
    """What lacks for switches of Open vSwitch; `None` if nothing does."""
    found = [tool for tool in (*mininet_box.OVS_TOOLS, "ethtool", "genl") if shutil.which(tool) is None]
    return f"{', '.join(found)}: {OPEN_VSWITCH}" if found else None


class Box:
    """The namespaces with everything of Mininet in them."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        # A file holds any number of its words; a pipe that nobody reads would stop it when it is full.
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.child = talking([*UNSHARE, SYSTEM_PYTHON, "-I", mininet_box.__file__], stderr=self.errors)
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
        self.child.wait()
        self.errors.seek(0)
        said = (self.errors.read() or line).strip().splitlines()
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

    def home(self) -> int:
        """The process in whose network namespace all switches are: the child of `unshare`."""
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        if not children:
            raise WorldError("Mininet: its process is gone")
        return int(children[0])

    def _inside(self, pid: int) -> bool:
        """Whether a process is in the namespaces of this box."""
        return Path(f"/proc/{pid}/ns/pid").readlink() == Path(f"/proc/{self.home()}/ns/pid").readlink()

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
        if self.child.stdout is not None:
            self.child.stdout.close()
        self.errors.close()
