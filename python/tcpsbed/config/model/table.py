"""The base of every table of a scenario: refuses unknown keys, names missing ones, opens shorthands."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from tcpsbed.config.units import refuse, shown

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}"


def close_match(word: str, known: list[str]) -> str:
    """The known names as a text, with the one that was probably meant in front."""
    close = difflib.get_close_matches(word, known, 1, 0.6) if len(known) > 1 else []
    names = ", ".join(known) if known else "none"
    return f"{names} (did you mean {close[0]}?)" if close else names


def _name(value: str) -> str:
    if not re.fullmatch(_NAME, value):
        raise refuse(
            f"found the name {shown(value)}", 'up to 100 letters, digits, "_" and "-", such as "edge-1"'
        )
    return value


Name = Annotated[str, AfterValidator(_name)]
"""A name of something in a scenario."""


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_NAMES_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

Names = Annotated[list[str], Field(min_length=1), BeforeValidator(_names), WithJsonSchema(_NAMES_SCHEMA)]
"""One name or a list of names."""
AnyNames = Annotated[list[str], BeforeValidator(_names), WithJsonSchema(_NAMES_SCHEMA)]
"""One name, or a list of names that may be empty."""


def _wanted(field: FieldInfo) -> str:
    """What a field takes: its choices, else its description."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(f'"{choice}"' for choice in get_args(field.annotation))
    text = (field.description or "a value").rstrip(".")
    return text[:1].lower() + text[1:]


class Table(BaseModel):
    """A table of a scenario. With a `shorthand`, a plain value stands for the table with only that key."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
    shorthand: ClassVar[str | None] = None
    refuses_numbers: ClassVar[bool] = False
    """Whether a bare number is taken for the shorthand, which then names the unit that it lacks."""

    @classmethod
    def keys(cls) -> dict[str, FieldInfo]:
        """The keys that the table may have, by their name in the file."""
        return {field.alias or name: field for name, field in cls.model_fields.items()}

    @model_validator(mode="before")
    @classmethod
    def _open(cls, found: Any) -> Any:
        number = cls.refuses_numbers and isinstance(found, int | float) and not isinstance(found, bool)
        if cls.shorthand and (isinstance(found, str) or number):
            found = {cls.shorthand: found}
        known = cls.keys()
        if not isinstance(found, dict):
            raise refuse(f"found {shown(found)}", f"a table with the keys {', '.join(known)}")
        for key in found:
            if key not in known and cls.model_config.get("extra") == "forbid":
                context = {"key": key, "found": "unknown key", "allowed": close_match(key, list(known))}
                raise PydanticCustomError("unknown", "unknown key {key}", context)
        for key, field in known.items():
            if field.is_required() and key not in found:
                context = {"key": key, "found": "found nothing", "allowed": _wanted(field)}
                raise PydanticCustomError("absent", "missing key {key}", context)
        return found

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        if cls.shorthand is None:
            return schema
        resolved = handler.resolve_ref_schema(schema)
        table = dict(resolved)
        resolved.clear()
        resolved.update({"anyOf": [table["properties"][cls.shorthand] | {"title": "Shorthand"}, table]})
        return schema
