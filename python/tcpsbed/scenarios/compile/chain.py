"""The components that a flow passes, in the order of the house.

```text
forward    operator  ms-embsys  ms-com         srv  ss-ei  ss-com  ss-embsys  teleoperator
backward   operator  ms-embsys  ms-com  ms-ei  srv         ss-com  ss-embsys  teleoperator   (read from the right)
```
"""

from __future__ import annotations

from tcpsbed.errors import counted
from tcpsbed.scenarios.compile.book import Book, Instance, Way
from tcpsbed.scenarios.compile.kinds import own
from tcpsbed.scenarios.model.place import KINDS, ORDER


def derive(book: Book, way: Way) -> list[Instance]:
    """The components on the path of a flow: those of its session in the usual order, or its own list."""
    around = book.of_session(way.session)
    path = (
        _usual(book, way, list(around.values())) if way.model.path is None else _explicit(book, way, around)
    )
    if len(path) < 2:
        found = f"found {counted(len(path), 'component')} on its path"
        kinds = ", ".join(kind for slot in ORDER[way.model.direction] for kind in slot)
        raise book.scenario.error(
            way.key,
            found,
            f'two or more in [components], of the kinds {kinds}, or path = ["left", "right"] with their ids',
        )
    return path


def _explicit(book: Book, way: Way, around: dict[str, Instance]) -> list[Instance]:
    path = way.model.path or []
    if len(set(path)) < len(path):
        raise book.scenario.error(
            (*way.key, "path"),
            "found a component twice",
            'each component once, such as path = ["left", "right"]',
        )
    for id in path:
        if id not in around:
            book.find(id, list(around), (*way.key, "path"), "a component")
    return [around[id] for id in path]


def _usual(book: Book, way: Way, around: list[Instance]) -> list[Instance]:
    slots = [[c for c in around if c.kind in slot] for slot in _order(book, way, around)]
    start, end = _cut(book, way, slots)
    wanted = {id for id in (*way.model.via, way.model.from_, way.model.to) if id is not None}
    _check_wanted(book, way, slots, wanted)
    path: list[Instance] = []
    for slot in slots[start : end + 1]:
        path += _choose(book, way, slot, wanted)
    return path


def _order(book: Book, way: Way, around: list[Instance]) -> list[tuple[str, ...]]:
    """The kinds in the order of a path: each of the user's after the one that it names."""
    order = [*ORDER[way.model.direction]]
    for instance in around:
        kind = own(book, instance)
        after = kind and kind.after.get(way.model.direction)
        if after and (instance.kind,) not in order:
            place = 1 + next(place for place, slot in enumerate(order) if after in slot)
            while order[place][0] not in KINDS:
                place += 1
            order.insert(place, (instance.kind,))
    return order


def _cut(book: Book, way: Way, slots: list[list[Instance]]) -> tuple[int, int]:
    """The first and the last slot: those of `from` and `to`."""
    where = {c.id: number for number, slot in enumerate(slots) for c in slot}
    start, end = 0, len(slots) - 1
    if way.model.from_ is not None:
        book.find(way.model.from_, list(where), (*way.key, "from"), "a component on the way")
        start = where[way.model.from_]
    if way.model.to is not None:
        book.find(way.model.to, list(where), (*way.key, "to"), "a component on the way")
        end = where[way.model.to]
    return start, end


def _check_wanted(book: Book, way: Way, slots: list[list[Instance]], wanted: set[str]) -> None:
    present = [c.id for slot in slots for c in slot]
    for id in sorted(wanted):
        book.find(id, present, (*way.key, "via"), "a component on the way")


def _choose(book: Book, way: Way, slot: list[Instance], wanted: set[str]) -> list[Instance]:
    """What a flow passes of components of one sort: those it names, the only one, or the plain board among apps."""
    named = [c for c in slot if c.id in wanted]
    boards = [c for c in slot if not c.kind.endswith("-app")]
    if named or len(slot) <= 1:
        return named or slot
    if len(boards) == 1:
        return boards
    ids = [c.id for c in slot]
    found = f"found {len(ids)} components for one place on its path ({', '.join(ids)})"
    raise book.scenario.error(way.key, found, " or ".join(f'via = ["{id}"]' for id in ids))


def on_path(way: Way, at: list[str]) -> list[int]:
    """The places on a flow's path with one of these ids or kinds."""
    return [place for place, c in enumerate(way.path) if c.id in at or c.kind in at]
