"""Where a follower's supervisor may stand, and what its parameters must agree with."""

from __future__ import annotations

from typing import Any

from tcpsbed.config.compile.book import Book, Way
from tcpsbed.config.compile.code import SUPERVISOR
from tcpsbed.config.compile.sources import codec, values_of
from tcpsbed.config.model.code import Hook
from tcpsbed.config.units import parameters

_HOLD_MS = 50.0
"""That of a supervisor where it is not said."""
_SIDES = {"forward": "ss-", "backward": "ms-"}
"""Front of the kinds of components that stand before the robot, and before the operator's device."""


def check(book: Book, name: str, hook: Hook, way: Way, place: int) -> None:
    """Refuses a supervisor at a place on a flow's way where it guards nothing, or that does not know what it must.

    It needs a period, no longer than its threshold, and before a robot it must know where that begins.
    """
    if hook.run != SUPERVISOR:
        return
    if hook.period_ns is None:
        raise book.scenario.error(
            ("hooks", name, "period"), "found nothing", 'the time between its ticks, such as "1 ms"'
        )
    if way.path[place].id not in _places(book, way):
        raise book.scenario.error(
            ("hooks", name),
            f"found a supervisor at {way.path[place].id} on the flow {way.id}",
            _allowed(book),
        )
    hold_ms = parameters(hook.params).get("hold_ms", _HOLD_MS)
    if isinstance(hold_ms, int | float) and 0 < hold_ms * 1e6 < hook.period_ns:
        raise book.scenario.error(
            ("hooks", name, "period"),
            f"found {hook.period_ns / 1e6:g} ms, longer than hold_ms = {hold_ms:g}",
            "a period of at most hold_ms, such as a tenth of it",
        )
    if way.path[-1].model.robot is not None and not {"measured", "start"} & set(hook.params):
        raise book.scenario.error(
            ("hooks", name, "params"),
            "found nothing that says where the robot is when the supervisor begins",
            "measured = [0, 1] (which of the values that come back are its position) or start = [0.1, 0.2] "
            "(where it is at the beginning), a number for each value of a command",
        )


def check_values(book: Book, name: str, hook: Hook, way: Way, place: int, source: dict[str, Any]) -> None:
    """Refuses lists that do not fit the values of a command, where no hook before it makes other values of them."""
    if hook.run != SUPERVISOR:
        return
    number = values_of(way, source)
    before = {key for at in way.path[: place + 1] for key in (at.id, at.kind)}
    for other in book.scenario.hooks.values():
        here = way.id in (other.flow or [way.id]) and (other.at is None or before & set(other.at))
        if here and other.kind != "work" and other.run != SUPERVISOR:
            return
    if number is None:
        return
    axes = number - ("clutch" in hook.params)
    for key in ("start", "measured", "workspace"):
        given = hook.params.get(key)
        if not isinstance(given, list) or len(given) == axes or (key == "workspace" and len(given) == 1):
            continue
        size = way.model.sample_bytes
        sample = (
            f'flows.{way.id}.sample = "{size} B"'
            if source["kind"] == "generated"
            else f"flows.{way.id}.source"
        )
        clutch = ", one of them the clutch" * ("clutch" in hook.params)
        raise book.scenario.error(
            ("hooks", name, "params"),
            f"found {key} for {len(given)} values, but {sample} holds {number}{clutch}",
            f"{key} with {axes} entries" + ", or with one for all" * (key == "workspace"),
        )


def _places(book: Book, way: Way) -> list[str]:
    """Components on a flow's way where a supervisor guards a robot that follows its values, or the operator's hand."""
    hooks = book.scenario.hooks.values()
    decoded = any(hook.kind == "decode" and way.id in (hook.flow or [way.id]) for hook in hooks)
    if codec(way.model) == "raw" and not decoded:
        return []
    if way.model.direction == "forward" and way.model.sink not in (None, "robot"):
        return []
    return [at.id for at in way.path if at.kind.startswith(_SIDES[way.model.direction])]


def _allowed(book: Book) -> str:
    """Every place of a scenario where a supervisor may stand, with the flow."""
    found = {way.id: _places(book, way) for way in book.ways}
    each = [f'flow = "{id}" with at = "{at}"' for id, places in found.items() for at in places]
    return "; ".join(each) or (
        'a flow whose values a robot follows, with at = "ss-com" or "ss-ei" among the components'
    )
