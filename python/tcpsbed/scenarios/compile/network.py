"""The network: vertices, unidirectional links with everything inherited, and their names."""

from __future__ import annotations

from typing import Any

from tcpsbed import _tcps
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.builtins import accepted
from tcpsbed.scenarios.compile.code import own
from tcpsbed.scenarios.compile.files import existing, read
from tcpsbed.scenarios.compile.graphs import Edge, graph
from tcpsbed.scenarios.compile.radio import radio
from tcpsbed.scenarios.compile.spans import dist
from tcpsbed.scenarios.fields import WrongTable
from tcpsbed.scenarios.model.entries import OwnCode, is_code
from tcpsbed.scenarios.model.link import Jitter, Link, LinkSettings, Loss, Queue
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import shown


class Network:
    """Vertices and links of a plan.

    Attributes
    ----------
    vertices
        Names: the nodes, then routers and the vertices of the graph.
    links
        Unidirectional links as the plan has them.
    named
        Numbers of links by name: "l1" for both directions, "l1.forward" for one.
    """

    def __init__(self, book: Book) -> None:
        self.book = book
        self.graph = graph(book.scenario)
        self.vertices = self._vertices()
        self._numbers = {name: number for number, name in enumerate(self.vertices)}
        self.links: list[dict[str, Any]] = []
        self.named: dict[str, list[int]] = {}
        for node, model in book.scenario.nodes.items():
            if model.at is not None:
                self._access(node, model.at, model.link or LinkSettings())
            elif model.link is not None:
                raise book.scenario.error(
                    ("nodes", node, "link"), "found a link that leads nowhere", 'at = "router"'
                )
        for edge in self.graph.edges:
            self._edge(edge)
        edges = {name for edge in self.graph.edges for name in (edge.name, f"{edge.b}-{edge.a}")}
        for name, link in book.scenario.links.items():
            if name not in edges:
                self._link(name, link)

    def vertex(self, name: str, key: Key) -> int:
        """The number of a node or router."""
        known = self._numbers.get(name)
        if known is None:
            return self.book.find(name, self.vertices, key, "a node or a router (topology.routers)")
        return known

    def find(self, name: str, key: Key) -> list[int]:
        """The numbers of the links with a name."""
        if name not in self.named:
            raise self.book.scenario.error(
                key, f'found "{name}"', f"a link: {close_match(name, list(self.named))}"
            )
        return self.named[name]

    def _vertices(self) -> list[str]:
        vertices = list(self.book.nodes)
        for key, names in (
            (("topology", "routers"), self.book.scenario.topology.routers),
            (("topology", "graph"), self.graph.vertices),
        ):
            for name in names:
                if name in vertices:
                    what = "node" if name in self.book.nodes else "router"
                    found = f'found "{name}", which is the name of another {what}'
                    raise self.book.scenario.error(key, found, f'another name, such as "{name}-2"')
                vertices.append(name)
        return vertices

    def _access(self, node: str, router: str, settings: LinkSettings) -> None:
        a = self.vertex(node, ("nodes", node))
        b = self.vertex(router, ("nodes", node, "at"))
        both = _set(settings)
        self._join(f"{node}-{router}", a, b, both, both, ("nodes", node, "link"))

    def _edge(self, edge: Edge) -> None:
        """An edge of the graph: the graph's own settings under `topology.link` under `[links.A-B]`."""
        base = self._read(edge) | _set(self.book.scenario.topology.link)
        a, b = self.vertices.index(edge.a), self.vertices.index(edge.b)
        for name in (edge.name, f"{edge.b}-{edge.a}"):
            link = self.book.scenario.links.get(name)
            if link is None:
                continue
            key: Key = ("links", name)
            if link.from_ is not None or link.to is not None:
                raise self.book.scenario.error(
                    key, "found from or to at an edge of the graph", "only its settings"
                )
            ends = (a, b) if name == edge.name else (b, a)
            self._join(
                name,
                *ends,
                base | _set(link) | _set(link.forward),
                base | _set(link) | _set(link.backward),
                key,
            )
            return
        self._join(edge.name, a, b, base, base, ("topology", "link"))

    def _read(self, edge: Edge) -> dict[str, Any]:
        try:
            return _set(LinkSettings.model_validate(edge.settings))
        except WrongTable:
            found = f"found an edge {edge.name} with {', '.join(f'{k} {shown(v)}' for k, v in edge.settings.items())}"
            allowed = 'rate and delay with units, such as "10 Mbit/s"'
            raise self.book.scenario.error(("topology", "graph"), found, allowed) from None

    def _link(self, name: str, link: Link) -> None:
        key: Key = ("links", name)
        ends = {"from": link.from_, "to": link.to}
        numbers = []
        for end, place in ends.items():
            if place is None:
                edges = close_match(name, [edge.name for edge in self.graph.edges])
                allowed = f'a node or a router, such as {end} = "{self.vertices[0]}"' + (
                    f", or settings of an edge: {edges}" if self.graph.edges else ""
                )
                raise self.book.scenario.error((*key, end), "is missing", allowed)
            numbers.append(self.vertex(place, (*key, end)))
        if numbers[0] == numbers[1]:
            raise self.book.scenario.error(
                (*key, "to"), f'found "{link.to}", where the link begins', "another node or router"
            )
        forward, backward = _set(link) | _set(link.forward), _set(link) | _set(link.backward)
        self._join(name, numbers[0], numbers[1], forward, backward, key)

    def _join(
        self, name: str, a: int, b: int, forward: dict[str, Any], backward: dict[str, Any], key: Key
    ) -> None:
        duplex = forward.get("duplex") or "full"
        names = [name] if duplex == "simplex" else [f"{name}.forward", f"{name}.backward"]
        for taken in (name, *names):
            if taken in self.named:
                raise self.book.scenario.error(
                    key,
                    f'found "{taken}", which is the name of another link',
                    "a name that no other link has",
                )
        medium = {"medium": name} if duplex == "half" else {}
        self.named[name] = []
        directions = ((a, b, medium | forward), (b, a, medium | backward))
        air = radio(self.book.scenario, key, forward, backward, len(self.links))
        for one, (start, end, settings), access in zip(names, directions, air, strict=False):
            self.named.setdefault(one, [])
            for alias in {one, name}:
                self.named[alias].append(len(self.links))
            link = {"name": one, "from": start, "to": end} | self._settings(settings, key) | access
            self.links.append(accepted(self.book.scenario, key, _tcps.check_link, link))

    def _settings(self, found: dict[str, Any], key: Key) -> dict[str, Any]:
        plan: dict[str, Any] = {
            k: found[k]
            for k in ("rate_bps", "delay_ns", "medium", "dscp", "duplicate", "corrupt")
            if k in found
        }
        if "queue" in found:
            plan["queue"] = self._queue(found["queue"], (*key, "queue"))
        if "loss" in found:
            plan["loss"] = self._loss(found["loss"], (*key, "loss"))
        if "jitter" in found:
            plan["jitter"] = self.jitter(found["jitter"], (*key, "jitter"))
        if "outages" in found:
            plan["outages"] = [list(span) for span in found["outages"]]
        if "slots" in found:
            plan["slots"] = found["slots"].model_dump()
        if "trace" in found:
            plan["opportunities_ns"] = self._opportunities(found, key)
        return plan

    def _queue(self, queue: Queue, key: Key) -> dict[str, Any]:
        names = [way.name for way in self.book.ways] + [f"traffic.{n}" for n in self.book.scenario.traffic]
        if is_code(queue.discipline):
            return queue.plan | {
                "discipline": own(self.book, (*key, "discipline"), queue.discipline, "queue", queue.params)
            }
        for flow in queue.plan["discipline"].get("flow_limits", ()):
            self.book.find(flow, names, (*key, "flow_limits"), "a flow or traffic")
        return queue.plan

    def _loss(self, loss: Loss, key: Key) -> dict[str, Any]:
        if isinstance(loss, OwnCode):
            return own(self.book, (*key, "kind"), loss.kind, "loss", loss.params)
        return loss.plan

    def jitter(self, jitter: Jitter, key: Key) -> dict[str, Any]:
        """The extra delay of a link as the plan has it."""
        delay = jitter.delay
        if isinstance(delay, OwnCode):
            span = own(self.book, (*key, "kind"), delay.kind, "delay", delay.params)
        else:
            span = dist(self.book.scenario, key, delay)
        return {"delay": span, "reorder": jitter.reorder}

    def _opportunities(self, found: dict[str, Any], key: Key) -> list[int]:
        """Moments of delivery: a line is a millisecond, several opportunities in one are several lines (mahimahi)."""
        from tcpsbed.datasets import traces

        path = existing(self.book.scenario, (*key, "trace"), found["trace"])
        moments: list[int] = read(self.book.scenario, (*key, "trace"), lambda: traces.mahimahi(path)).tolist()
        return moments


def _set(settings: LinkSettings | None) -> dict[str, Any]:
    """The settings that are given."""
    if settings is None:
        return {}
    names = set(LinkSettings.model_fields) & settings.model_fields_set
    return {name: getattr(settings, name) for name in names if getattr(settings, name) is not None}
