"""Keys of a scenario that come from the native module's tables of parameters: here they get units and file places.

```text
tables of the native module ─► fields of a table of a scenario (units, schema) ─► completed: checked there, once
```
"""

import json
import types
from collections.abc import Iterable, Sequence
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal

from tcpsbed import _tcps, door
from tcpsbed.errors import Refused
from tcpsbed.nearest import meant
from tcpsbed.scenarios.fields import (
    ABSENT,
    BeforeValidator,
    Discriminator,
    Field,
    FiniteFloat,
    Refusal,
    Tag,
    WithJsonSchema,
    schema,
)
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import (
    PACKETS,
    Drift,
    Dscp,
    Duration,
    Frequency,
    Parameters,
    Rate,
    Share,
    Size,
    packets,
    parameters,
    refuse,
    shown,
)

CODE = "code"
"""Kind of a plant in a plan that is code, called at each tick."""
_OWN = '"./mine.py:Mine"'
_QUANTITIES = ("ns", "bps", "bytes", "hz", "ppb", "packets", "share", "text", "file")
"""Units of values in quotes."""
Entry = dict[str, Any]
"""An entry as the native module describes it: `id`, `name`, `doc` and `params`."""

UNITS: dict[str, tuple[Any, str]] = {
    "ns": (Duration, "time"),
    "bps": (Rate, "rate"),
    "bytes": (Size, "size"),
    "hz": (Frequency, "frequency"),
    "ppb": (Drift, "drift"),
    "packets": (Annotated[int, BeforeValidator(packets), WithJsonSchema(PACKETS.schema())], "packets"),
    "share": (Share, "share"),
    "number": (FiniteFloat, "number"),
    "count": (int, "whole number"),
    "code_point": (Dscp, "code point"),
    "flag": (bool, "true or false"),
    "text": (str, "text"),
    "file": (str, "file"),
    "object": (dict[str, Any] | str, "table"),
}
"""What a value of each unit is read as, and what the documentation calls it."""


@cache
def _rooms() -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = json.loads(_tcps.tables())
    return found


@cache
def entries(room: str) -> dict[str, Entry]:
    """The entries of a room, such as `queue`, by name."""
    return {entry["name"]: entry for entry in _rooms()[room]}


def defaults(room: str, name: str) -> dict[str, Any]:
    """Defaults of an entry's parameters in a plan."""
    found = ((param["key"], param["value"]) for param in entries(room)[name]["params"])
    return {key: value for key, value in found if value is not None}


def params(room: str) -> dict[str, Entry]:
    """The parameters of all entries of a room by key."""
    return {param["key"]: param for entry in entries(room).values() for param in entry["params"]}


class Chosen(Table):
    """A table that names an entry of a room and has its parameters."""

    room: ClassVar[str]
    by: ClassVar[str] = "kind"
    _plan: dict[str, Any]

    def _check(self) -> None:
        name, of_room = getattr(self, self.by), params(self.room)
        beside = [field.alias or key for key, field in self.model_fields.items() if key not in of_room]
        own: dict[str, Any] = getattr(self, "params", {})
        if ":" in name:
            stray = [of_room[key]["name"] for key in sorted(self._given())]
            if stray:
                raise _refused(stray[0], "unknown key beside code of your own", ", ".join(beside))
            self._plan = {"kind": name} | parameters(own)
            return
        beside = [key for key in beside if key != "params"]
        if own:
            raise _refused("params", f"found params of {name}", f"params of code such as {self.by} = {_OWN}")
        self._plan = {"kind": name} | _completed(self.room, name, self._given(), beside)

    def _given(self) -> dict[str, Any]:
        """The given parameters, by their keys in a plan."""
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
    fields: Any = {"kind": (Literal[name], ABSENT)}
    fields |= {
        param["key"]: _field(param, _required(param), _sentence(param["doc"])) for param in entry["params"]
    }
    bases = (Chosen,) if base is Table else (base, Chosen)
    return _made(room, _class(name), bases, fields, _sentence(entry["doc"]))


def _made(room: str, name: str, bases: Any, fields: Any, doc: str = "") -> type[Chosen]:
    found: type[Chosen] = types.new_class(
        name,
        bases,
        {"fields": fields},
        lambda space: space.update(room=room, __doc__=doc, __module__=__name__),
    )
    return found


def one_of(tables: Iterable[Any]) -> Any:
    """The type of any of these tables."""
    return reduce(or_, tables)


def _class(name: str) -> str:
    return "".join(part.title() for part in name.split("-"))


def _required(param: dict[str, Any]) -> Any:
    return ABSENT if param["default"] == "" else None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _field(param: dict[str, Any], absent: Any, description: str) -> Any:
    default = absent if param["value"] is None else param["value"]
    described = Field(default, alias=param["name"], description=description)
    return (type_of(param) if default is not None else type_of(param) | None, described)


def type_of(param: Entry) -> Any:
    """The type of a parameter where a scenario writes it. Its schema has the bounds, which the native module checks."""

    def read(unit: Any) -> Any:
        if unit in ("count", "number"):
            return Annotated[UNITS[unit][0], WithJsonSchema(schema(UNITS[unit][0], {}) | limits)]
        if isinstance(unit, str):
            return UNITS[unit][0]
        ((kind, of),) = unit.items()
        if kind == "choice":
            return Literal[tuple(of)]
        if kind == "pair":
            return tuple[read(of[0]), read(of[1])]  # type: ignore[misc]
        if kind == "array":
            return Annotated[list[read(of[1])], Field(min_length=of[0], max_length=of[0])]  # type: ignore[misc]
        return list[read(of)] if kind == "list" else dict[str, read(of)]  # type: ignore[misc]

    least = "exclusiveMinimum" if param["min"] == door.ABOVE_ZERO else "minimum"
    bounds = {least: 0 if param["min"] == door.ABOVE_ZERO else param["min"], "maximum": param["max"]}
    limits = {key: value for key, value in bounds.items() if value is not None}
    return read(param["unit"])


class OwnCode(Table):
    """Code of your own."""

    kind: Annotated[str, WithJsonSchema({"type": "string", "pattern": ":"})]
    """"./mine.py:Mine", "module:Class" or "./libmine.so:function"."""
    params: Parameters = Field({})
    """Its parameters."""


def kind_of(entry: Any) -> Any:
    """The `kind` of a table of a scenario, read or not."""
    return entry.get("kind") if isinstance(entry, dict) else getattr(entry, "kind", None)


def with_own(room: str, tables: dict[str, Any], own: Any) -> Any:
    """The type of any of these tables by kind, or of code: by its place, or by the name that a package gave it."""

    def installed(entry: Any) -> Any:
        kind = kind_of(entry)
        if not isinstance(kind, str) or kind in tables or is_code(kind):
            return entry
        if not is_code(named := door.named(room, kind)):
            raise refuse(f'found the kind "{kind}"', choices(room, list(tables), kind))
        return entry | {"kind": named}

    place = _OWN.strip('"')
    which = Discriminator(lambda entry: place if is_code(kind_of(entry)) else kind_of(entry))
    found = one_of(Annotated[table, Tag(kind)] for kind, table in (tables | {place: own}).items())
    return Annotated[found, which, BeforeValidator(installed)]


def is_code(value: Any) -> bool:
    """Whether a name is that of code of the user's: `"./mine.py:Mine"`, `"./libmine.so:queue"`."""
    return isinstance(value, str) and ":" in value


def choices(room: str, names: Sequence[str], near: str) -> str:
    """What a key takes that names one of these, one of an installed package, or code; and which is like `near`."""
    every = [*names, *door.installed(room)]
    allowed = "".join(f'"{name}", ' for name in every) + "or " * bool(every) + f"code such as {_OWN}"
    return allowed + meant(near, every)


def name_of(room: str, names: Sequence[str] = ()) -> Any:
    """The type of a key that names an entry of a room, or one of `names`."""
    names = names or [*entries(room)]

    def known(value: Any) -> Any:
        if is_code(value):
            return value
        if value not in names:
            if isinstance(value, str) and is_code(own := door.named(room, value)):
                return own
            raise refuse(f"found {shown(value)}", choices(room, names, str(value)))
        return value

    return Annotated[
        str,
        BeforeValidator(known),
        WithJsonSchema({"anyOf": [{"enum": [*names]}, {"type": "string", "pattern": ":"}]}),
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
    except Refused as fault:
        raise _refused(own.get(fault.key, fault.key), f"found {fault.found}", fault.allowed) from None
    return plan


def _refused(key: str, found: str, allowed: str) -> Refusal:
    return Refusal("refused", key=key, found=found, allowed=allowed)


def page(room: str) -> str:
    """The documentation of a room: its entries, and a table of their parameters."""
    text = "".join(f"- `{entry['name']}`: {entry['doc']}\n" for entry in entries(room).values())
    return f"{text}\n{table(entries(room))}"


def table(found: dict[str, Entry]) -> str:
    """The parameters of entries in a table. The text of one without a value may end with "; default ..."."""
    rows: dict[tuple[str, str], list[str]] = {}
    for entry in found.values():
        for param in entry["params"]:
            doc, _, absent = param["doc"].partition("; default ")
            row = f"| `{param['name']}` | {_kind(param)} | {absent or _default(param)} |", f"| {doc} |"
            rows.setdefault(row, []).append(f"`{entry['name']}`")
    lines = "".join(f"{key} {', '.join(names)} {doc}\n" for (key, doc), names in rows.items())
    return f"| key | type | default | of | meaning |\n|---|---|---|---|---|\n{lines}"


def _kind(param: dict[str, Any]) -> str:
    unit = param["unit"]
    if unit == "count" and param["max"] is not None:
        return f"{param['min']:g} to {param['max']:.0f}"
    if isinstance(unit, str):
        return UNITS[unit][1]
    ((kind, of),) = unit.items()
    if kind == "array":
        return f"list of {of[0]}"
    return ", ".join(f'`"{name}"`' for name in of) if kind == "choice" else kind


def _default(param: dict[str, Any]) -> str:
    text = param["default"]
    if text in ("", "-"):
        return "none" if text else "required"
    quoted = "choice" in param["unit"] or param["unit"] in _QUANTITIES
    return f'`"{text}"`' if quoted else f"`{text}`"
