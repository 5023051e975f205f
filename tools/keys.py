"""Tables of the keys of a scenario, drawn from its models: key, type, default and meaning.

The text below a field is its meaning; what follows `; absent: ` is its default, if the field does not have one.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tcpsbed.scenarios.fields import Called, FieldInfo, WithJsonSchema
from tcpsbed.scenarios.model import (
    attack,
    code,
    flow,
    link,
    measure,
    media,
    place,
    radio,
    scenario,
    span,
    traffic,
)
from tcpsbed.scenarios.model.entries import UNITS
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import DIMENSIONS, Dimension
from tcpsbed.worlds import fit

MODELS: dict[str, type[Table]] = {
    name: found
    for module in (attack, code, flow, link, measure, media, place, radio, scenario, span, traffic)
    for name, found in vars(module).items()
    if isinstance(found, type) and issubclass(found, Table)
}
SECTIONS = {
    "attack": "attacks",
    "board": "boards",
    "echo": "measure",
    "event": "events",
    "link settings": "links",
    "measure": "measure",
    "loss": "loss-jitter-and-other-faults",
    "picture": "pictures-and-sound",
    "playout": "playout",
    "queue": "queues",
    "radio": "radio",
    "real": "real",
    "robot": "robots",
    "sound": "pictures-and-sound",
    "source": "sources-and-sinks",
    "span": "costs-and-delays",
    "topology": "topology",
    "transport": "channels-and-transports",
}
"""Types that a section of the page explains."""
PLACES = {"links.*": ("LinkSettings", "Queue"), "flows.*": ("Flow",), "events.*": ("Event",)}
"""Models with keys that not every network honours."""
PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false"}

Row = tuple[str, str, str, str]


def page(asked: str) -> str:
    """The table of a model, `Echo`; of several with their kinds, `Nr,Lte`; without keys of a base, `Web-_Traffic`."""
    names, _, base = asked.partition("-")
    models = [MODELS[name] for name in names.split(",")]
    rows: dict[Row, list[str]] = {}
    for model in models:
        for row in _rows(model, set(MODELS[base].model_fields) if base else set()):
            rows.setdefault(row, []).append(_kind(model) if len(models) > 1 else "")
    of = ["of"] * (len(models) > 1)
    lines = [["key", "type", "default", *of, "meaning"]]
    for (key, kind, default, text), kinds in rows.items():
        lines.append([f"`{key}`", kind, default, *[", ".join(f"`{one}`" for one in kinds)] * len(of), text])
    drawn = [f"| {' | '.join(line)} |\n" for line in lines]
    return "".join([drawn[0], f"|{'---|' * len(lines[0])}\n", *drawn[1:]])


def _kind(model: type[Table]) -> str:
    return str(get_args(model.model_fields["kind"].annotation)[0])


def _rows(model: type[Table], without: set[str], inside: str = "") -> Iterator[Row]:
    for name, field in model.model_fields.items():
        key, (text, _, absent) = field.alias or name, model.marked(name).rstrip(".").partition("; absent: ")
        if name in without or not text or field.description:
            continue
        short = ". A plain value in place of the table is this key" * (key == model.shorthand)
        yield (
            inside + key,
            _type(field.annotation, field.bounds),
            absent or _default(field),
            _begun(text) + short + _refused(model, key),
        )
        within = _models(field.annotation)
        if len(within) == 1 and _name(within[0]) not in SECTIONS:
            yield from _rows(within[0], set(), f"{inside}{key}.")


def _begun(text: str) -> str:
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _refused(model: type[Table], key: str) -> str:
    """The networks that do not honour a key."""
    places = [f"{place}.{key}" for place, names in PLACES.items() if model.__name__ in names]
    places += [place.replace(f".{key}", f".queue.{key}") for place in places]
    found = ""
    for row in fit.KEYS:
        if row.key in places:
            others = " or ".join(n for n in fit.NETWORKS if n not in row.by)
            said = "Only in virtual time" if row.by == (fit.VIRTUAL,) else f"Not with {others}"
            found += f". {said}" + (f": {row.values}" if row.values else "")
    return found


def _called(annotation: Any) -> str | None:
    """What the model calls a type."""
    rest = annotation.__metadata__ if get_origin(annotation) is Annotated else get_args(annotation)
    found = [one.name for one in rest if isinstance(one, Called)]
    inner = [one for one in get_args(annotation) if one is not types.NoneType]
    if not found and len(inner) == 1 and get_origin(annotation) in (Union, types.UnionType):
        return _called(inner[0])
    return found[-1] if found else None


def _models(annotation: Any) -> list[type[Table]]:
    """The tables in a type, but those in a dictionary, which have sections of their own."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return [annotation]
    parts = () if get_origin(annotation) is dict else get_args(annotation)
    return [model for part in parts for model in _models(part)]


def _name(model: type[Table]) -> str:
    return "link settings" if model.__name__ == "LinkSettings" else model.__name__.lower()


def _dimension(annotation: Any) -> Dimension | None:
    """The kind of quantity of a type."""
    if get_origin(annotation) is Annotated:
        for one in annotation.__metadata__:
            text = json.dumps(one.schema) if isinstance(one, WithJsonSchema) else ""
            for dimension in DIMENSIONS:
                if f'"{dimension.schema()["$ref"]}"' in text:
                    return dimension
    inner = [_dimension(part) for part in get_args(annotation)]
    return inner[0] if inner and get_origin(annotation) is not list else None


def _type(annotation: Any, bounds: dict[str, Any]) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if called := _called(annotation):
        return f"[{called}](#{SECTIONS[called]})" if called in SECTIONS else called
    if origin in (Union, types.UnionType):
        parts = [_type(one, bounds) for one in inner if one is not types.NoneType]
        return " or ".join(", ".join(parts).rsplit(", ", 1)) if len(parts) > 1 else parts[0]
    if dimension := _dimension(annotation):
        return UNITS[dimension.suffix or "share"][1]
    if origin is Annotated:
        own = [one.bounds for one in inner[1:] if isinstance(one, FieldInfo)]
        return _type(inner[0], bounds | (own[0] if own else {}))
    if origin is Literal:
        return ", ".join(f"`{json.dumps(one)}`" for one in inner)
    if origin is list and _models(annotation):
        return "list of tables"
    if origin is list:
        one = _type(inner[0], {}).replace("text", "name")
        return f"list of {one}" + ("" if one.endswith("s") else "s")
    if origin is dict:
        return "table" if inner[1] is Any else "tables by name"
    if _models(annotation):
        name = _name(annotation)
        return f"[{name}](#{SECTIONS[name]})" if name in SECTIONS else "table"
    if annotation is not bool and {"ge", "le"} <= bounds.keys():
        return f"{bounds['ge']} to {bounds['le']}"
    return PLAIN[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.absent()
    if isinstance(value, Table):
        value = getattr(value, value.shorthand) if value.shorthand else value.model_dump(by_alias=True)
    if value in (None, [], "") or isinstance(value, dict):
        return "none"
    if dimension := _dimension(field.annotation):
        return f'`"{_quantity(value, dimension)}"`'
    return f"`{value:g}`" if type(value) is float else f"`{json.dumps(value)}`"


def _quantity(value: float, dimension: Dimension) -> str:
    """A value with the largest unit in which it is at least one."""
    units = [(unit, float(factor)) for unit, factor in dimension.units.items() if unit.isascii()]
    units = [
        (unit, factor) for unit, factor in units if unit not in ("min", "h", "KiB", "MiB", "kB", "packet")
    ]
    zero = (dimension.example.split()[1], 1.0)
    unit, factor = max((one for one in units if value >= one[1]), key=lambda one: one[1], default=zero)
    return f"{value / factor:g} {unit}"
