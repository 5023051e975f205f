"""The network: vertices, unidirectional links with everything inherited, and their names."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from tcpsbed.config.compile.book import Book
from tcpsbed.config.compile.code import own
from tcpsbed.config.compile.files import existing, read
from tcpsbed.config.compile.graphs import Edge, graph
from tcpsbed.config.compile.radio import radio
from tcpsbed.config.compile.spans import dist
from tcpsbed.config.model.entries import is_code
from tcpsbed.config.model.link import Link, LinkSettings, Queue
from tcpsbed.config.model.table import close_match
from tcpsbed.config.origin import Key
from tcpsbed.config.units import shown


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
        """The numbers of the links that a name stands for."""
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
                    raise self.book.scenario.error(
                        key, f'found the duplicate id "{name}"', f"a name that no other {what} has"
                    )
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
        except ValidationError:
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
                allowed = "a node or a router" + (
                    f", or settings of an edge: {edges}" if self.graph.edges else ""
                )
                raise self.book.scenario.error((*key, end), "found nothing", allowed)
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
                    key, f'found the duplicate id "{taken}"', "a name that no other link has"
                )
        medium = {"medium": name} if duplex == "half" else {}
        self.named[name] = []
        directions = ((a, b, medium | forward), (b, a, medium | backward))
        air = radio(self.book.scenario, key, forward, backward, len(self.links))
        for one, (start, end, settings), access in zip(names, directions, air, strict=False):
            self.named.setdefault(one, [])
            for alias in {one, name}:
                self.named[alias].append(len(self.links))
            self.links.append(
                {"name": one, "from": start, "to": end} | self._settings(settings, key) | access
            )

    def _settings(self, found: dict[str, Any], key: Key) -> dict[str, Any]:
        scenario = self.book.scenario
        plan: dict[str, Any] = {
            k: found[k]
            for k in ("rate_bps", "delay_ns", "medium", "dscp", "duplicate", "corrupt")
            if k in found
        }
        if "queue" in found:
            plan["queue"] = self._queue(found["queue"], (*key, "queue"))
            if found["queue"].discipline == "gates":
                self._own_line(found, (*key, "queue", "gates"), "gates")
        if "loss" in found:
            plan["loss"] = found["loss"].plan
        if "jitter" in found:
            span = dist(scenario, (*key, "jitter"), found["jitter"].delay)
            plan["jitter"] = {"delay": span, "reorder": found["jitter"].reorder}
        if "outages" in found:
            plan["outages"] = self._outages(found["outages"], (*key, "outages"))
        if "slots" in found:
            plan["slots"] = self._slots(found, key)
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

    def _outages(self, spans: list[tuple[int, int]], key: Key) -> list[list[int]]:
        last = 0
        for start, end in spans:
            if start < last or end <= start:
                raise self.book.scenario.error(
                    key, "found spans out of order", '[["1 s", "2 s"], ["5 s", "6 s"]]: from, to, in order'
                )
            last = end
        return [list(span) for span in spans]

    def _slots(self, found: dict[str, Any], key: Key) -> dict[str, Any]:
        self._own_line(found, (*key, "slots"), "slots")
        slots = found["slots"]
        return {"cycle_ns": slots.cycle_ns, "open": slots.open}

    def _own_line(self, found: dict[str, Any], key: Key, name: str) -> None:
        """What opens and closes needs a line of its own, which nothing else opens and closes."""
        for other in ("medium", "trace", "slots"):
            if other in found and other != name:
                raise self.book.scenario.error(key, f"found {name} and {other}", "one of them")

    def _opportunities(self, found: dict[str, Any], key: Key) -> list[int]:
        """Moments of delivery: a line is a millisecond, several opportunities in one are several lines (mahimahi)."""
        if found.get("rate_bps") is not None:
            raise self.book.scenario.error((*key, "trace"), "found a rate and a trace", "one of them")
        if "medium" in found:
            raise self.book.scenario.error(
                (*key, "trace"), "found a shared medium and a trace", "one of them"
            )
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
