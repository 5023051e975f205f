"""Fields of tables: their annotations are read here, all that is wrong is gathered, and JSON Schema comes of the same.

```text
annotation ─► reader, made when its table is first read ─► value, or what is wrong, with its place
           └► JSON Schema
```
The words are those of pydantic, whose models take longer to be made than a scenario takes to be checked.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

Place = tuple[str | int, ...]
Schema = dict[str, Any]
ABSENT: Any = object()
"""What stands where no default is."""
TEXTS = {
    "at": "ss-com",
    "component": "srv",
    "flow": "kinematic",
    "flows": "kinematic",
    "from": "home",
    "link": "wan",
    "node": "edge",
    "on": "wan",
    "points": "srv.entry",
    "run": "./mine.py:Mine",
    "to": "edge",
}
"""Examples of texts, by their key."""


class Refusal(ValueError):
    """What a value is refused for: a kind of error, and what a message needs of it (`found`, `allowed`, `key`)."""

    def __init__(self, kind: str, /, **context: Any) -> None:
        self.kind, self.context = kind, context
        super().__init__(
            "; allowed: ".join(str(context[key]) for key in ("found", "allowed") if key in context)
        )


@dataclass(frozen=True)
class Fault:
    """What is wrong at a place: the kind of error, the value there, and what a message needs besides."""

    kind: str
    place: Place
    value: Any
    context: Mapping[str, Any]


class WrongTable(ValueError):
    """All that is wrong with a table, in the order of its fields."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{fault.place}: {fault.kind}" for fault in faults))


Reader = Callable[[Any, Place, list[Fault]], Any]
"""Gives back the value that stands for another; what is wrong with that is added to a list."""


@dataclass(frozen=True, eq=False)
class BeforeValidator:
    """A function that a value passes before it is read, and what it takes if that is another type."""

    before: Callable[[Any], Any]
    json_schema_input_type: Any = ABSENT


@dataclass(frozen=True, eq=False)
class AfterValidator:
    """A function that a value passes after it was read."""

    after: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class WithJsonSchema:
    """The JSON Schema of a value, in place of that of its type."""

    schema: Schema


@dataclass(frozen=True, eq=False)
class Discriminator:
    """Selects one of several tables for a value: by the text at a key, or by a function."""

    by: str | Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Tag:
    """The text for a table, if a function selects it."""

    tag: str


@dataclass(frozen=True)
class Called:
    """What the documentation calls a type."""

    name: str


class FieldInfo:
    """A field: its default, its name in a file, its bounds, and what it is."""

    def __init__(
        self,
        default: Any = ABSENT,
        *,
        default_factory: Callable[[], Any] | None = None,
        alias: str | None = None,
        description: str | None = None,
        json_schema_extra: Schema | None = None,
        **bounds: Any,
    ) -> None:
        self.default, self.default_factory, self.alias = default, default_factory, alias
        self.description, self.json_schema_extra, self.bounds = description, json_schema_extra, bounds
        self.annotation: Any = None

    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is ABSENT and self.default_factory is None

    def absent(self) -> Any:
        """Its value where it is not given."""
        if self.default_factory is not None:
            return self.default_factory()
        return self.default.copy() if isinstance(self.default, dict | list) else self.default

    @classmethod
    def of(cls, annotation: Any, default: Any) -> FieldInfo:
        """The field of an annotation with its default."""
        field = default if isinstance(default, cls) else cls(default)
        if get_origin(annotation) is Annotated:
            rest = get_args(annotation)[1:]
            for own in [one for one in rest if isinstance(one, cls)]:
                field.alias = field.alias or own.alias
        field.annotation = annotation
        return field


def Field(default: Any = ABSENT, **more: Any) -> Any:
    """A field of a table (`FieldInfo`)."""
    return FieldInfo(default, **more)


FiniteFloat = Annotated[float, FieldInfo(allow_inf_nan=False)]


def _matches(value: str, pattern: str) -> bool:
    """Whether a text matches; `$` is its end, as in JSON Schema, not a line's."""
    return re.search(pattern.replace("$", r"\Z"), value) is not None


_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "ge": ("greater_than_equal", lambda value, bound: value >= bound, "minimum"),
    "gt": ("greater_than", lambda value, bound: value > bound, "exclusiveMinimum"),
    "le": ("less_than_equal", lambda value, bound: value <= bound, "maximum"),
    "lt": ("less_than", lambda value, bound: value < bound, "exclusiveMaximum"),
    "min_length": ("too_short", lambda value, bound: len(value) >= bound, "minItems"),
    "max_length": ("too_long", lambda value, bound: len(value) <= bound, "maxItems"),
    "allow_inf_nan": ("finite_number", lambda value, _: math.isfinite(value), ""),
    "pattern": ("string_pattern_mismatch", lambda value, bound: _matches(value, bound), "pattern"),
}
"""By bound: what is wrong with a value beyond it, whether one is within, and its name in JSON Schema."""


@cache
def reader(annotation: Any) -> Reader:
    """What reads values of a type."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(inner[0], inner[1:])
    if origin in (Union, types.UnionType):
        return _union([one for one in inner if one is not type(None)], type(None) in inner)
    if origin is Literal:
        return _literal(inner)
    if origin in (list, tuple, dict):
        return {list: _list, tuple: _tuple, dict: _dict}[origin](*inner)
    return getattr(annotation, "reads", None) or _PLAIN[annotation]


def _annotated(of: Any, rest: Iterable[Any]) -> Reader:
    chosen = next((one for one in rest if isinstance(one, Discriminator)), None)
    read = _chosen(of, chosen.by) if chosen else reader(of)
    for one in rest:
        if isinstance(one, BeforeValidator):
            read = _before(one.before, read)
        elif isinstance(one, AfterValidator):
            read = _after(one.after, read)
        elif isinstance(one, FieldInfo):
            read = bounded(read, one.bounds)
    return read


def _before(function: Callable[[Any], Any], read: Reader) -> Reader:
    def before(value: Any, place: Place, faults: list[Fault]) -> Any:
        try:
            made = function(value)
        except Refusal as error:
            return faults.append(Fault(error.kind, place, value, error.context))
        return read(made, place, faults)

    return before


def _after(function: Callable[[Any], Any], read: Reader) -> Reader:
    def after(value: Any, place: Place, faults: list[Fault]) -> Any:
        known = len(faults)
        made = read(value, place, faults)
        try:
            return function(made) if len(faults) == known else None
        except Refusal as error:
            return faults.append(Fault(error.kind, place, value, error.context))

    return after


def bounded(read: Reader, bounds: Mapping[str, Any]) -> Reader:
    """What reads values within bounds."""
    if not bounds:
        return read

    def within(value: Any, place: Place, faults: list[Fault]) -> Any:
        known = len(faults)
        made = read(value, place, faults)
        if made is None or len(faults) > known:
            return None
        for name, bound in bounds.items():
            kind, holds, _ = _BOUNDS[name]
            if not holds(made, bound):
                whole = isinstance(made, int)
                return faults.append(Fault(kind, place, value, {name: bound, "whole": whole}))
        return made

    return within


def _union(kinds: list[Any], with_none: bool) -> Reader:
    readers = [reader(one) for one in kinds]
    if len(readers) == 1:
        return _or_none(readers[0]) if with_none else readers[0]
    plain = {one: read for one, read in zip(kinds, readers, strict=True) if one in _PLAIN}

    def either(value: Any, place: Place, faults: list[Fault]) -> Any:
        if with_none and value is None:
            return None
        all_faults: list[Fault] = []
        for read in [plain[type(value)]] if type(value) in plain else readers:
            own: list[Fault] = []
            made = read(value, place, own)
            if not own:
                return made
            all_faults += own
        faults += all_faults
        return None

    return either


def _or_none(read: Reader) -> Reader:
    return lambda value, place, faults: None if value is None else read(value, place, faults)


def _chosen(of: Any, by: str | Callable[[Any], Any]) -> Reader:
    """The reader of the table that a value selects."""
    tables = {tag: reader(table) for table in get_args(of) for tag in _tags(table)}

    def chosen(value: Any, place: Place, faults: list[Fault]) -> Any:
        if isinstance(by, str) and not isinstance(value, dict):
            return faults.append(Fault("dict_type", place, value, {"kinds": tuple(tables)}))
        tag = value.get(by) if isinstance(by, str) else by(value)
        if tag is None:
            return faults.append(Fault("union_tag_not_found", place, value, {}))
        read = tables.get(tag) if isinstance(tag, str) else None
        if read is None:
            return faults.append(Fault("union_tag_invalid", place, tag, {"expected": tuple(tables)}))
        return read(value, place, faults)

    return chosen


def _tags(table: Any) -> tuple[str, ...]:
    if get_origin(table) is Annotated:
        return tuple(one.tag for one in get_args(table) if isinstance(one, Tag))
    return get_args(table.model_fields["kind"].annotation)


def _literal(choices: tuple[Any, ...]) -> Reader:
    def choice(value: Any, place: Place, faults: list[Fault]) -> Any:
        if type(value) in (str, int) and value in choices:
            return value
        return faults.append(Fault("literal_error", place, value, {"expected": choices}))

    return choice


def _list(of: Any) -> Reader:
    read, plain = reader(of), get_args(of)[0] if get_origin(of) is Annotated else of

    def items(value: Any, place: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, list):
            return faults.append(Fault("list_type", place, value, {"of": plain}))
        return [read(item, (*place, number), faults) for number, item in enumerate(value)]

    return items


def _tuple(*of: Any) -> Reader:
    readers = [reader(one) for one in of]

    def items(value: Any, place: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, list | tuple):
            return faults.append(Fault("tuple_type", place, value, {}))
        if len(value) > len(readers):
            return faults.append(Fault("too_long", place, value, {"max_length": len(readers)}))
        if len(value) < len(readers):
            return faults.append(Fault("missing", (*place, len(value)), value, {}))
        pairs = enumerate(zip(readers, value, strict=True))
        return tuple(read(item, (*place, number), faults) for number, (read, item) in pairs)

    return items


def _dict(of_key: Any, of: Any) -> Reader:
    read_key, read = reader(of_key), reader(of)

    def entries(value: Any, place: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, dict):
            return faults.append(Fault("dict_type", place, value, {}))
        return {
            read_key(key, (*place, key), faults): read(item, (*place, key), faults)
            for key, item in value.items()
        }

    return entries


def _type(kind: str, *taken: type) -> Reader:
    def same(value: Any, place: Place, faults: list[Fault]) -> Any:
        return value if type(value) in taken else faults.append(Fault(kind, place, value, {}))

    return same


def _text(value: Any, place: Place, faults: list[Fault]) -> Any:
    return value if isinstance(value, str) else faults.append(Fault("string_type", place, value, {}))


def _float(value: Any, place: Place, faults: list[Fault]) -> Any:
    try:
        if type(value) in (int, float) or (isinstance(value, str) and value.isascii()):
            return float(value)
    except (ValueError, OverflowError):
        return faults.append(Fault("float_parsing", place, value, {}))
    return faults.append(Fault("float_type", place, value, {}))


_PLAIN: dict[Any, Reader] = {
    str: _text,
    int: _type("int_type", int),
    float: _float,
    bool: _type("bool_type", bool),
    Any: lambda value, _place, _faults: value,
}


_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema(annotation: Any, tables: dict[str, Any]) -> Schema:
    """The JSON Schema of values of a type; the tables in it are added to others, by name."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _schema_of(inner[0], inner[1:], tables)
    if origin in (Union, types.UnionType):
        found = [schema(one, tables) for one in inner]
        return {
            "anyOf": [part for one in found for part in (one["anyOf"] if list(one) == ["anyOf"] else [one])]
        }
    if origin is Literal:
        choices = {"const": inner[0]} if len(inner) == 1 else {"enum": list(inner)}
        return choices | {"type": _NAMES[type(inner[0])]}
    if origin is list:
        return {"items": schema(inner[0], tables), "type": "array"}
    if origin is tuple:
        items = [schema(one, tables) for one in inner]
        return {"maxItems": len(inner), "minItems": len(inner), "prefixItems": items, "type": "array"}
    if origin is dict:
        return {"additionalProperties": schema(inner[1], tables) or True, "type": "object"}
    if annotation is Any:
        return {}
    if annotation is type(None):
        return {"type": "null"}
    if annotation in _NAMES:
        return {"type": _NAMES[annotation]}
    tables.setdefault(annotation.__name__, annotation)
    return {"$ref": f"#/$defs/{annotation.__name__}"}


def _schema_of(of: Any, rest: Iterable[Any], tables: dict[str, Any]) -> Schema:
    for one in reversed(tuple(rest)):
        if isinstance(one, WithJsonSchema):
            return dict(one.schema)
        if isinstance(one, BeforeValidator) and one.json_schema_input_type is not ABSENT:
            return schema(one.json_schema_input_type, tables)
    found = schema(of, tables)
    for one in rest:
        if isinstance(one, FieldInfo):
            found = with_bounds(found, one.bounds)
    return found


def with_bounds(found: Schema, bounds: Mapping[str, Any]) -> Schema:
    """A JSON Schema with bounds; if null is allowed, too (`anyOf`), they go to its first alternative, the value."""
    named = {_BOUNDS[name][2]: bound for name, bound in bounds.items() if _BOUNDS[name][2]}
    if not named:
        return found
    if "anyOf" in found:
        first, *others = found["anyOf"]
        return found | {"anyOf": [first | named, *others]}
    return found | named
