"""The JSON Schema of scenario files, for editors that complete and check them."""

from __future__ import annotations

from typing import Any

from tcpsbed import door
from tcpsbed.devices import DEVICES
from tcpsbed.robots import ROBOTS
from tcpsbed.scenarios import fields
from tcpsbed.scenarios.model.entries import Entry, entries, type_of
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import DIMENSIONS

_NAMING = {
    "Transport": ("transport", "kind"),
    "Playout": ("playout", "kind"),
    "Security": ("security", "kind"),
    "Hook": ("hook", "run"),
    "Robot": ("robot", "run"),
}
"""Tables that name an entry of a room, and the key that does; parameters are beside a kind, else in `params`."""
_IN_PYTHON = {"robot": ROBOTS, "hook": DEVICES}


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file.

    Any of several tables may fit, and no key must be there: an included file, a name or a shorthand may say them.
    """
    tables: dict[str, type[Table]] = {}
    found = Scenario.json_schema(tables)
    known: dict[str, Any] = {}
    while new := tables.keys() - known.keys():
        known |= {name: tables[name].json_schema(tables) for name in new}
    known = _in_order(known)
    files = {"type": "array", "items": {"type": "string"}}
    include = {"description": "Files that this one extends.", "anyOf": [{"type": "string"}, files]}
    for name, (room, by) in _NAMING.items():
        rows = entries(room) | door.entries(_IN_PYTHON.get(room, {}))
        table = next(one for one in known[name]["anyOf"] if "properties" in one)
        table["allOf"] = [_then(room, by, entry, table) for entry in rows.values()]
        known |= {f"{room}.{entry['name']}": _params(entry) for entry in rows.values()}
    known |= dict(dimension.definition for dimension in DIMENSIONS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of tcpsbed",
        "description": "A teleoperation over a network, and what is measured.",
        "$defs": known,
        "additionalProperties": False,
        "type": "object",
        "anyOf": [{"required": ["include"]}, {"required": ["components", "flows"]}],
        "properties": {"include": include, **_in_order(found)["properties"]},
    }


def _in_order(found: Any, *, named: bool = False) -> Any:
    """A schema with its words in the order of the alphabet, and keys of a table as they are."""
    if isinstance(found, list):
        return [_in_order(item) for item in found]
    if not isinstance(found, dict):
        return found
    keys = found if named else sorted(found)
    return {key: _in_order(found[key], named=key in ("properties", "default")) for key in keys}


def _then(room: str, by: str, entry: Entry, table: dict[str, Any]) -> dict[str, Any]:
    """The keys of a table of a scenario that names this entry."""
    params: dict[str, Any] = {"$ref": f"#/$defs/{room}.{entry['name']}"}
    if by == "kind":
        then = params | {"propertyNames": {"enum": [*table["properties"], *_keys(entry)]}}
    else:
        then = {"properties": {"params": params | {"propertyNames": {"enum": _keys(entry)}}}}
    return {"if": {"properties": {by: {"const": entry["name"]}}, "required": [by]}, "then": then}


def _keys(entry: Entry) -> list[str]:
    """How a scenario may write the parameters of an entry: with the unit in the value, or in the key."""
    keys = [spelt for param in entry["params"] for spelt in (param["name"], param["key"])]
    beside = ["params"] if {"controller", "congestion"} & set(keys) else []
    return list(dict.fromkeys(keys + beside))


def _params(entry: Entry) -> dict[str, Any]:
    """The parameters of an entry as a scenario writes them."""
    return {"description": entry["doc"], "properties": {p["name"]: _param(p) for p in entry["params"]}}


def _param(param: dict[str, Any]) -> dict[str, Any]:
    default = {} if param["default"] in ("", "-") else {"default": param["default"]}
    return {**fields.schema(type_of(param), {}), "description": param["doc"], **default}
