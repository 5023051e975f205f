"""Nodes on several computers, reached by the system's ssh.

```text
 this computer ─┬─ ssh ─► agent on lab1 ─► node, node
                ├─ ssh ─► agent on lab2 ─► node
                └─ ssh ─► agent on mid  ─► what lies between (role = "network")
```
Files that the plan names are copied with a hash, versions compared, clocks read against ours. Rows come over the same line
while the run lasts: a host that dies takes at most its last tenth of a second with it, and all others go on to their end.
"""

from __future__ import annotations

import ipaddress
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from tcpsbed.errors import TcpsbedError, WorldError
from tcpsbed.scenarios.model.place import Host
from tcpsbed.worlds.contract import Hosting
from tcpsbed.worlds.link import LOCAL, Link, files_of
from tcpsbed.worlds.process import ControlChannel
from tcpsbed.worlds.rows import Drain

UNBOUND = "no UDP socket on "
"""What a process says of an address at which it cannot bind one."""


class Hosts(Hosting):
    """A process a node, on the computers of the scenario's `hosts`."""

    name: ClassVar[str] = "hosts"
    what: ClassVar[str] = "the computers of [hosts], reached by ssh"
    here: ClassVar[bool] = False
    shares_files: ClassVar[bool] = False
    lead_s: ClassVar[float] = 2.0

    @classmethod
    def missing(cls) -> str | None:
        """The system's ssh."""
        return "ssh: apt install openssh-client" if shutil.which("ssh") is None else None

    @property
    def hosts(self) -> Mapping[str, Host]:
        """The computers of the scenario."""
        return {} if self.job.scenario is None else self.job.scenario.hosts

    def refuse(self) -> None:
        """Every node is on one host, and its data address is one."""
        scenario = self.job.scenario
        if scenario is None or not scenario.hosts:
            raise WorldError(
                "found no hosts for --world hosts",
                key="hosts",
                allowed='a table for each computer, such as [hosts.robot] address = "10.0.0.2" and nodes = ["robot"]',
            )
        names = [node["name"] for node in self.job.plan["nodes"]]
        placed = [(node, host) for host, model in scenario.hosts.items() for node in model.nodes]
        for node, host in placed:
            if node not in names:
                raise scenario.error(
                    ("hosts", host, "nodes"), f'found "{node}"', f"nodes: {', '.join(names)}"
                )
        for node in names:
            homes = [host for placed_node, host in placed if placed_node == node]
            if len(homes) != 1:
                found = f"node {node} is on {', '.join(homes) if homes else 'no host'}"
                raise scenario.error(("hosts",), found, "each node in the list `nodes` of one host")
        for host, model in scenario.hosts.items():
            self._refuse_address(host, model)
        if not scenario.real.insecure:
            self._refuse_unprotected()

    def refuse_between(self) -> None:
        """It needs a host whose role is `network`."""
        self._middle()

    def _refuse_unprotected(self) -> None:
        """Whoever reaches the network between two hosts could move the robot; nobody else reaches loopback."""
        homes = {node: name for name, host in self.hosts.items() for node in host.nodes}
        at = [homes[node["name"]] for node in self.job.plan["nodes"]]
        # With a host between them, datagrams of nodes on one host leave it, too.
        between = {name for name, host in self.hosts.items() if host.role == "network"}
        bare = []
        for one in self.job.plan["channels"]:
            ends = {at[one["a"]], at[one["b"]]} | between
            is_open = any(not ipaddress.ip_address(_data(self.hosts[end])).is_loopback for end in ends)
            if len(ends) > 1 and is_open and "security" not in one:
                bare.append(one["name"].partition("@")[0])
        if bare:
            raise WorldError(
                f"found no security on {', '.join(dict.fromkeys(bare))}: others on the network could command the robot",
                key="channels",
                allowed='security = "aead" at a channel with these flows (tcpsbed docs security), or --insecure',
            )

    def _refuse_address(self, name: str, host: Host) -> None:
        try:
            ipaddress.ip_address(_data(host))
        except ValueError:
            assert self.job.scenario is not None
            raise self.job.scenario.error(
                ("hosts", name, "data"), f'found "{_data(host)}"', "the IP address of its sockets for data"
            ) from None

    def launch(self) -> list[ControlChannel]:
        """Reaches all hosts, gives them what the nodes need, and starts the nodes."""
        self.links: dict[str, Link] = {}
        for name, host in self.hosts.items():
            self.links[name] = Link(name, host)
        files = files_of(self.job.plan)
        with ThreadPoolExecutor(len(self.links)) as pool:
            for done in [pool.submit(_ready, link, files) for link in self.links.values()]:
                done.result()
        homes = {node: self.links[name] for name, host in self.hosts.items() for node in host.nodes}
        nodes = enumerate(self.job.plan["nodes"])
        return [homes[node["name"]].launch(node["name"], self.job.ring(id)) for id, node in nodes]

    def addresses(self) -> list[str]:
        """The data addresses of the nodes' hosts."""
        homes = {node: _data(host) for host in self.hosts.values() for node in host.nodes}
        return [homes[node["name"]] for node in self.job.plan["nodes"]]

    def _middle(self) -> str:
        """The host whose role is `network`."""
        between = [host for host, model in self.hosts.items() if model.role == "network"]
        if len(between) != 1:
            raise WorldError(
                f'found {len(between)} hosts with role = "network"',
                key="hosts",
                allowed='role = "network" at one host, which emulates what lies between the nodes',
            )
        return between[0]

    def beside(self, name: str) -> ControlChannel:
        """On the host whose role is `network`."""
        middle = self._middle()
        self.job.plan["real"]["gates"] = _data(self.hosts[middle])
        return self.links[middle].launch(name, self.job.memory / name)

    def simulator(self) -> str:
        """That of the host whose role is `network`."""
        return self.links[self._middle()].simulator()

    def explained(self, error: TcpsbedError, name: str) -> TcpsbedError:
        """A socket that cannot be bound names the address of its host."""
        scenario = self.job.scenario
        if scenario is None or UNBOUND not in error.found:
            return error
        nodes = [node["name"] for node in self.job.plan["nodes"]]
        for host, model in self.hosts.items():
            if name in model.nodes or (model.role == "network" and name not in nodes):
                return scenario.error(("hosts", host, "data"), error.found, error.allowed or "")
        return error

    def captures(self, ready: Sequence[Mapping[str, Any]]) -> list[Path]:
        """They come over the lines as well, while the run lasts."""
        known = {link.memory: link for link in self.links.values()}
        parts = []
        for capture in (capture for answer in ready for capture in answer.get("captures", ())):
            part = self.job.folder / Path(capture).name
            part.write_bytes(b"")
            known[str(Path(capture).parent)].captures[capture] = part
            parts.append(part)
        return parts

    def drain(self, ready: Sequence[Mapping[str, Any]]) -> Drain:
        """Rows that come over the lines."""
        known = {link.memory: link for link in self.links.values()}
        for answer in ready:
            for ring in answer["rings"]:
                link = known[str(Path(ring).parent)]
                link.parts[ring] = self.job.folder / f"{Path(ring).name}.rows"
                link.parts[ring].write_bytes(b"")
        for link in self.links.values():
            link.say("rings", rings=list(link.parts), captures=list(link.captures))
        return LineDrain(list(self.links.values()))

    def told(self) -> dict[str, Any]:
        """Hosts with their clocks and what became of them."""
        return {"hosts": [_told(link) for link in self.links.values()]}

    def teardown(self) -> None:
        """Lets all hosts go."""
        for link in getattr(self, "links", {}).values():
            link.close()


class LineDrain(Drain):
    """Rows that hosts send."""

    def __init__(self, links: list[Link]) -> None:
        self.links = links
        self.parts = [part for link in links for part in link.parts.values()]
        self.rows_lost = 0

    def drain(self) -> bytes:
        """Rows that came since; they are in their files already."""
        fresh = []
        for link in self.links:
            while link.fresh:
                fresh.append(link.fresh.pop(0))
        return b"".join(fresh)

    def silent_s(self) -> dict[str, float]:
        """Silences as reported by the live hosts."""
        return {name: s for link in self.links if link.dead is None for name, s in link.silent_s.items()}

    def finish(self) -> None:
        """Waits for the last rows of the live hosts, and reads their clocks again."""
        for link in self.links:
            if link.dead is None:
                with suppress(WorldError):
                    self.rows_lost += link.ask("lost")["rows"]
                    link.drift_ns = link.clock()[0] - link.offset_ns

    def lost(self) -> int:
        """Rows for which a ring of a host that lives had no room."""
        return self.rows_lost


def _ready(link: Link, files: set[Path]) -> None:
    link.greet()
    link.send_files(files)


def _data(host: Host) -> str:
    return host.data or ("127.0.0.1" if host.address in LOCAL else host.address)


def _told(link: Link) -> dict[str, Any]:
    return {
        "name": link.name,
        "address": link.host.address,
        "data": _data(link.host),
        "nodes": list(link.host.nodes),
        "python": link.python,
        "files_sha256": link.sha256,
        "clock_error_ns": link.error_ns,
        "clock_drift_ns": link.drift_ns,
        "lost": link.dead,
        "lost_at_s": None if link.dead is None else link.died_at_s(),
    }
