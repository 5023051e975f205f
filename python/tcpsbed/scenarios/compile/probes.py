"""Echo commands and clock synchronisation. [Polachan 2022]"""

from __future__ import annotations

from typing import Any

from tcpsbed._tcps import HELD
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile.book import Book, Way
from tcpsbed.scenarios.model.measure import Echo
from tcpsbed.scenarios.origin import Key


def probes(book: Book, flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The echo commands as the plan has them, for its compiled `flows`."""
    plans: dict[int, dict[str, Any]] = {}
    for number, echo in enumerate(book.scenario.measure.echo):
        key: Key = ("measure", "echo", number)
        for way in _ways(book, echo, key):
            if way.number in plans:
                allowed = "one entry for each flow, with all its points"
                raise book.scenario.error((*key, "flow"), f"found {way.name} a second time", allowed)
            plan = {
                "flow": way.number,
                "points": _points(book, way, echo, _born_outside(flows[way.number]), (*key, "points")),
                "period_ns": echo.period_ns,
                "start_ns": echo.start_ns,
                "reply_to": _giver(book, way.path[0].node),
            }
            given = {"drawn": echo.drawn or None, "count": echo.count}
            plans[way.number] = plan | {key: value for key, value in given.items() if value is not None}
    return list(plans.values())


def _giver(book: Book, otherwise: int) -> int:
    """The node of the test-pc, if there is one."""
    return otherwise if book.test_pc is None else book.test_pc


def _ways(book: Book, echo: Echo, key: Key) -> list[Way]:
    ids = list(book.scenario.flows)
    forward = [id for id, flow in book.scenario.flows.items() if flow.direction == "forward"]
    id = echo.flow or ("kinematic" if "kinematic" in ids else (forward or ids)[0])
    ways = book.flows([id], (*key, "flow"))
    if echo.session is None:
        return ways
    session = book.find(echo.session, book.sessions, (*key, "session"), "a session")
    return [way for way in ways if way.session == session]


def _born_outside(flow: dict[str, Any]) -> bool:
    """Whether samples pass steps in their first component, so that its entry is a place of its own."""
    return bool(flow["path"][0]["steps"])


def _points(book: Book, way: Way, echo: Echo, first_entry: bool, key: Key) -> list[int]:
    known = _known(way)
    plain = [f"{way.path[0].id}.entry"] if not first_entry else []
    points: list[int] = []
    for name in echo.points:
        if name == "all":
            points += [p for label, p in known.items() if label not in plain and not label.endswith(".held")]
        elif name in known:
            points.append(known[name])
        else:
            allowed = f'"all" or a point of {way.name}: {close_match(name, list(known))}'
            raise book.scenario.error(key, f'found "{name}"', allowed)
    return list(dict.fromkeys(points))


def _known(way: Way) -> dict[str, int]:
    """The points on a flow's path by name."""
    points: dict[str, int] = {}
    for instance in way.path:
        points[f"{instance.id}.entry"] = 2 * instance.number
        points[f"{instance.id}.exit"] = 2 * instance.number + 1
        if instance.model.robot is not None:
            points[f"{instance.id}.held"] = HELD | instance.number
    return points


def sync(book: Book) -> dict[str, Any] | None:
    """Clock synchronisation as the plan has it."""
    model = book.scenario.measure.sync
    if model is None:
        return None
    reference = _giver(book, 0)
    if model.reference is not None:
        reference = book.find(model.reference, book.nodes, ("measure", "sync", "reference"), "a node")
    return {"reference": reference, "period_ns": model.period_ns}
