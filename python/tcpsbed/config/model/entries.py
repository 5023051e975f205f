"""Keys of a scenario that come from the native module's tables of parameters: here they get units and file places.

```text
tables of the native module ─► fields of a table of a scenario (units, schema) ─► completed: checked there, once
```
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    FiniteFloat,
    PrivateAttr,
    StrictBool,
    StrictInt,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tcpsbed import _tcps, door
from tcpsbed.config.model.table import Table, close_match
from tcpsbed.config.units import (
    PACKETS,
    Drift,
    Dscp,
    Duration,
    Frequency,
    Rate,
    Share,
    Size,
    packets,
    parameters,
    refuse,
    shown,
)

_OWN = '"./mine.py:Mine"'
_QUANTITIES = ("ns", "bps", "bytes", "hz", "ppb", "packets", "share", "text")
"""Units of values in quotes."""
Entry = dict[str, Any]
"""An entry as the native module describes it: `id`, `name`, `doc` and `params`."""

_KINDS: dict[str, tuple[Any, str]] = {
    "ns": (Duration, "time"),
    "bps": (Rate, "rate"),
    "bytes": (Size, "size"),
    "hz": (Frequency, "frequency"),
    "ppb": (Drift, "drift"),
    "packets": (Annotated[int, BeforeValidator(packets), WithJsonSchema(PACKETS.schema())], "packets"),
    "share": (Share, "share"),
    "number": (FiniteFloat, "number"),
    "count": (StrictInt, "whole number"),
    "code_point": (Dscp, "code point"),
    "flag": (StrictBool, "true or false"),
    "text": (str, "text"),
}
"""What a value of each unit is read as, and what the documentation calls it."""


@cache
def entries(room: str) -> dict[str, Entry]:
    """The entries of a room, such as `queue`, by name."""
    found: list[Entry] = json.loads(_tcps.tables())[room]
    return {entry["name"]: entry for entry in found}


def params(room: str) -> dict[str, Entry]:
    """The parameters of all entries of a room by key."""
    return {param["key"]: param for entry in entries(room).values() for param in entry["params"]}


class Chosen(Table):
    """A table that names an entry of a room and has its parameters."""

    room: ClassVar[str]
    by: ClassVar[str] = "kind"
    _plan: dict[str, Any] = PrivateAttr()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        name, of_room = getattr(self, self.by), params(self.room)
        beside = [field.alias or key for key, field in type(self).model_fields.items() if key not in of_room]
        own: dict[str, Any] = getattr(self, "params", {})
        if ":" in name:
            stray = [of_room[key]["name"] for key in sorted(self._given())]
            if stray:
                raise _refused(stray[0], "unknown key beside code of your own", ", ".join(beside))
            self._plan = {"kind": name} | parameters(own)
            return self
        beside = [key for key in beside if key != "params"]
        if own:
            raise _refused("params", f"found params of {name}", f"params of code such as {self.by} = {_OWN}")
        self._plan = {"kind": name} | _completed(self.room, name, self._given(), beside)
        return self

    def _given(self) -> dict[str, Any]:
        """The parameters that are there, by their keys in a plan."""
        return {key: getattr(self, key) for key in self.model_fields_set & params(self.room).keys()}

    @property
    def plan(self) -> dict[str, Any]:
        """The entry with its parameters as the plan has them."""
        return self._plan


def keys(room: str) -> type[Chosen]:
    """A table with all keys of a room, whose entry another key names."""
    fields: Any = {}
    for key, param in params(room).items():
        of = [name for name, entry in entries(room).items() if param in entry["params"]]
        fields[key] = _field(param, None, f"{', '.join(of)}: {param['doc']}.")
    return _made(room, f"_{room.title()}", (Chosen,), fields)


def kinds(room: str, base: type[Table] = Table) -> dict[str, Any]:
    """A table for each entry of a room, with its `kind` and the keys of `base`."""
    return {name: _table(room, name, base) for name in entries(room)}


def _table(room: str, name: str, base: type[Table]) -> type[Chosen]:
    entry = entries(room)[name]
    fields: Any = {"kind": (Literal[name], ...)}
    fields |= {
        param["key"]: _field(param, _required(param), _sentence(param["doc"])) for param in entry["params"]
    }
    bases = (Chosen,) if base is Table else (base, Chosen)
    return _made(room, _class(name), bases, fields, _sentence(entry["doc"]))


def _made(room: str, name: str, bases: Any, fields: Any, doc: str = "") -> type[Chosen]:
    make: Any = create_model
    found: type[Chosen] = make(name, __base__=bases, __doc__=doc, **fields)
    found.room = room
    return found


def one_of(tables: Iterable[Any]) -> Any:
    """The type of any of these tables."""
    return reduce(or_, tables)


def _class(name: str) -> str:
    return "".join(part.title() for part in name.split("-"))


def _required(param: dict[str, Any]) -> Any:
    return ... if param["default"] == "" else None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _field(param: dict[str, Any], absent: Any, description: str) -> Any:
    default = absent if param["value"] is None else param["value"]
    bounds = (
        {"minimum": param["min"], "maximum": param["max"]} if param["unit"] in ("count", "number") else {}
    )
    extra = {key: value for key, value in bounds.items() if value is not None}
    described = Field(default, alias=param["name"], description=description, json_schema_extra=extra or None)
    return (_read(param["unit"]) if default is not None else _read(param["unit"]) | None, described)


def _read(unit: Any) -> Any:
    if isinstance(unit, str):
        return _KINDS[unit][0]
    ((kind, of),) = unit.items()
    if kind == "choice":
        return Literal[tuple(of)]
    if kind == "pair":
        return tuple[_read(of[0]), _read(of[1])]  # type: ignore[misc]
    return list[_read(of)] if kind == "list" else dict[str, _read(of)]  # type: ignore[misc]


def is_code(value: Any) -> bool:
    """Whether a name is that of code of the user's: `"./mine.py:Mine"`, `"./libmine.so:queue"`."""
    return isinstance(value, str) and ":" in value


def name_of(room: str) -> Any:
    """The type of a key that names an entry of a room."""

    def known(value: Any) -> Any:
        if is_code(value):
            return value
        if value not in entries(room):
            if isinstance(value, str) and is_code(own := door.named(room, value)):
                return own
            allowed = ", ".join(f'"{name}"' for name in entries(room))
            close = close_match(str(value), list(entries(room))).partition("(")[2]
            allowed += f", or code such as {_OWN}"
            raise refuse(f"found {shown(value)}", f"{allowed} ({close}" if close else allowed)
        return value

    return Annotated[
        str,
        BeforeValidator(known),
        WithJsonSchema({"anyOf": [{"enum": list(entries(room))}, {"type": "string", "pattern": ":"}]}),
    ]


def _completed(room: str, name: str, given: dict[str, Any], beside: list[str]) -> dict[str, Any]:
    """The parameters of an entry as the plan has them, checked and with their defaults.

    Parameters
    ----------
    given
        Parameters in base units by their key in a plan.
    beside
        Other keys of the table.
    """
    own = {param["key"]: param["name"] for param in entries(room)[name]["params"]}
    if unknown := sorted(given.keys() - own.keys()):
        allowed = ", ".join([*beside, *own.values()])
        raise _refused(params(room)[unknown[0]]["name"], f"unknown key of a {name} {room}", allowed)
    try:
        plan: dict[str, Any] = json.loads(_tcps.completed(room, name, json.dumps(given)))
    except ValueError as error:
        key, found, allowed = error.args
        raise _refused(own.get(key, key), f"found {found}", allowed) from None
    return plan


def _refused(key: str, found: str, allowed: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{key}", {"key": key, "found": found, "allowed": allowed})


def page(room: str) -> str:
    """What the documentation says of a room: its entries, and their parameters in a table."""
    text = "".join(f"- `{entry['name']}`: {entry['doc']}\n" for entry in entries(room).values())
    rows: dict[tuple[str, str], list[str]] = {}
    for entry in entries(room).values():
        for param in entry["params"]:
            row = f"| `{param['name']}` | {_kind(param)}, {_default(param)} |", f"| {param['doc']} |"
            rows.setdefault(row, []).append(f"`{entry['name']}`")
    table = "".join(f"{key} {', '.join(names)} {doc}\n" for (key, doc), names in rows.items())
    return f"{text}\n| key | type, default | of | meaning |\n|---|---|---|---|\n{table}"


def _kind(param: dict[str, Any]) -> str:
    unit = param["unit"]
    if unit == "count" and param["max"] is not None:
        return f"{param['min']:g} to {param['max']:.0f}"
    if isinstance(unit, str):
        return _KINDS[unit][1]
    ((kind, of),) = unit.items()
    return ", ".join(f'`"{name}"`' for name in of) if kind == "choice" else kind


def _default(param: dict[str, Any]) -> str:
    text = param["default"]
    if text in ("", "-"):
        return "none" if text else "required"
    quoted = "choice" in param["unit"] or param["unit"] in _QUANTITIES
    return f'`"{text}"`' if quoted else f"`{text}`"
