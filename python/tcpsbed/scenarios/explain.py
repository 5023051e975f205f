"""Turns errors of tables into one message with file, key, what was found and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.errors import ConfigError, counted
from tcpsbed.nearest import meant
from tcpsbed.scenarios.fields import TEXTS, Fault, WrongTable
from tcpsbed.scenarios.origin import Key, Origin, dotted
from tcpsbed.scenarios.units import shown

_TYPES = {
    "bool_type": "true or false",
    "int_type": "a whole number, such as 3",
    "float_type": "a number, such as 0.5",
    "tuple_type": "a list",
    "float_parsing": "a number, such as 0.5",
    "finite_number": "a finite number, such as 0.5",
}


_LISTS: dict[Any, str] = {
    str: 'a list of texts, such as ["srv.entry"]',
    int: "a list of whole numbers, such as [1, 2]",
    float: "a list of numbers, such as [0.5]",
}
_PATTERNS = {
    "^[DUSF]{1,1024}$": 'letters D (downlink), U (uplink), S (neither) and F (both), such as "DDDSU"',
    "^operator:": '"operator:FILE.csv", a recording of an operator',
}
"""What text of a pattern is."""


def explain(error: WrongTable, origin: Origin) -> ConfigError:
    """The first thing that is wrong; where a list may stand, too, it says so."""
    first = min(error.faults, key=lambda fault: fault.kind != "unknown")
    found, allowed = _sentences(first)
    for fault in error.faults:
        if fault.kind == "list_type" != first.kind and fault.place == first.place:
            allowed += f", or {_list(fault)}"
    return origin.error(_key(first, origin.document), found, allowed)


def _key(fault: Fault, document: dict[str, Any]) -> Key:
    """The key in the file: without those that a shorthand implies, with the key of the table's error."""
    key: list[str | int] = []
    here: Any = document
    for part in (*fault.place, *fault.context.get("at", ())):
        inside = isinstance(here, dict) and part in here
        if inside or (isinstance(here, list) and isinstance(part, int) and part < len(here)):
            key.append(part)
            here = here[part]
    return (*key, fault.context["key"]) if "key" in fault.context else tuple(key)


def _sentences(fault: Fault) -> tuple[str, str]:
    context, kind = fault.context, fault.kind
    found = f"found {shown(fault.value)}"
    if kind in ("refused", "unknown", "absent"):
        return context["found"], context["allowed"]
    if kind == "union_tag_invalid":
        found = f'found the kind "{fault.value}"'
    if kind in ("literal_error", "union_tag_invalid"):
        return found, _choice(str(fault.value), context["expected"])
    if kind == "missing":
        return f"found {counted(len(fault.value), 'value')}", "all values, as in tcpsbed docs scenario"
    if kind == "union_tag_not_found":
        return "found no kind", "a table with a kind"
    if kind == "dict_type":
        return found, _table(fault)
    if kind == "list_type":
        return found, _list(fault)
    if kind == "string_type":
        return found, _text(fault)
    if kind == "int_type" and isinstance(fault.value, str):
        return found, "a whole number without quotes, such as 3"
    return found, _TYPES.get(kind) or _limit(kind, context)


def _list(fault: Fault) -> str:
    return _LISTS.get(fault.context.get("of"), "a list")


def _text(fault: Fault) -> str:
    key = next((part for part in reversed(fault.place) if isinstance(part, str)), "")
    return "text in quotes" + (f', such as "{TEXTS[key]}"' if key in TEXTS else "")


def _table(fault: Fault) -> str:
    """A table as it would be written in place of a value."""
    kinds = fault.context.get("kinds", ())
    if kinds:
        kind = fault.value if fault.value in kinds else kinds[0]
        return f'a table such as {{ kind = "{kind}" }}'
    return f"a table such as [{dotted(fault.place)}]"


def _limit(kind: str, context: Mapping[str, Any]) -> str:
    bounds = {"greater_than_equal": ("ge", "of {} or more"), "less_than_equal": ("le", "of {} or less")}
    bounds |= {"greater_than": ("gt", "above {}"), "less_than": ("lt", "below {}")}
    if kind in bounds:
        name, words = bounds[kind]
        return f"a {'whole ' if context['whole'] else ''}number {words.format(context[name])}"
    if kind == "too_short":
        return f"{context['min_length']} or more in the list"
    if kind == "too_long":
        return f"{context['max_length']} in the list"
    return _PATTERNS[context["pattern"]]


def _choice(value: str, expected: tuple[str | int, ...]) -> str:
    listed = ", ".join(f'"{name}"' if isinstance(name, str) else str(name) for name in expected)
    return listed + meant(value, [name for name in expected if isinstance(name, str)])
