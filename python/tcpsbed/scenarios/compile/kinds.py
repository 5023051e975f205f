"""The user's component kinds: their place on the path of a flow, and their code."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import door
from tcpsbed.errors import ConfigError
from tcpsbed.inputs import LIBRARY
from tcpsbed.nearest import meant
from tcpsbed.scenarios.compile import builtins
from tcpsbed.scenarios.compile.book import Book, Instance
from tcpsbed.scenarios.compile.code import code, loaded
from tcpsbed.scenarios.model.place import KINDS, ORDER
from tcpsbed.scenarios.origin import Key


@dataclass(frozen=True)
class Own:
    """The description of a component kind by a class of the user."""

    after: dict[str, str]
    """The built-in kind before it, by the direction of a flow."""
    run: dict[str, Any]
    """Its code as the plan has it."""


def own(book: Book, instance: Instance) -> Own | None:
    """The user's kind of a component; `None` of a built-in one."""
    if instance.kind in KINDS and not instance.model.params:
        return None
    if instance.id not in book.kinds:
        book.kinds[instance.id] = _own(book, instance)
    found: Own = book.kinds[instance.id]
    return found


def _own(book: Book, instance: Instance) -> Own:
    key: Key = ("components", instance.id, "kind")
    scenario, text, params = book.scenario, instance.kind, instance.model.params
    if text in KINDS:
        allowed = 'no params, or code of your own that takes them, such as kind = "./mine.py:Mine"'
        raise scenario.error(
            (*key[:-1], "params"), f'found params of the built-in "{text}", which takes none', allowed
        )
    place, _, symbol = text.rpartition(":")
    found = f'found "{text}"'
    allowed = f"a class of Python such as class {symbol}(tcpsbed.Component), as tcpsbed docs own-parts shows"
    if LIBRARY.fullmatch(place):
        raise scenario.error(key, found, f'{allowed}, with run = "./{Path(place).name}:{symbol}" in it')
    module, kind = loaded(scenario, key, text)
    if not (inspect.isclass(kind) and issubclass(kind, door.Component)):
        raise scenario.error(key, f"{found}, which is not a kind of component", allowed)
    after = _after(book, key, kind)
    if kind.run is None:
        return Own(after, code(book, key, text, "hook", params))
    completed = builtins.by_table(scenario, (*key[:-1], "params"), module, symbol, params)
    given = {name: value for name, value in completed.items() if value is not None}
    try:
        return Own(after, code(book, key, _beside(kind, module), "hook", given))
    except ConfigError as error:
        raise scenario.error(key, f"{found}, at whose run: {error.found}", error.allowed or "") from None


def _after(book: Book, key: Key, kind: type[door.Component]) -> dict[str, str]:
    """The kind before it by direction: one that has another behind it."""
    said = getattr(kind, "after", None)
    before = {way: [kind for slot in order[:-1] for kind in slot] for way, order in ORDER.items()}
    after = said if isinstance(said, dict) else {way: said for way in before if said in before[way]}
    wrong = [said] if not after else [name for way, name in after.items() if name not in before.get(way, ())]
    if wrong:
        ways = [way for way, name in after.items() if name in wrong and way in before] or before
        known = [name for name in KINDS if any(name in before[way] for way in ways)]
        found = f"found after = {said!r} in {kind.__name__}{meant(str(wrong[0]), known)}"
        allowed = f"""after = one of {", ".join(known)}, or a table such as {{"forward": "ms-com", "backward": "srv"}}"""
        raise book.scenario.error(key, found, allowed)
    return after


def _beside(kind: type[door.Component], module: str) -> str:
    """The code that a kind names, with a file beside that of its class by its whole path."""
    text = str(kind.run)
    place, colon, symbol = text.rpartition(":")
    home = module if module.endswith(".py") else inspect.getfile(kind)
    file = Path(home).parent / (place if colon else text)
    return f"{file.resolve()}{colon}{symbol if colon else ''}" if file.is_file() else text
