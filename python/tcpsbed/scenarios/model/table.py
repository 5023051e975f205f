"""The base of every table of a scenario: refuses unknown keys, names missing ones, opens shorthands."""

from __future__ import annotations

import ast
import inspect
import keyword
import os
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import date, time
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from tcpsbed.inputs import DEEPEST
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.explain import explain
from tcpsbed.scenarios.fields import (
    ABSENT,
    TEXTS,
    AfterValidator,
    BeforeValidator,
    Called,
    Fault,
    Field,
    FieldInfo,
    Place,
    Reader,
    Refusal,
    Schema,
    WithJsonSchema,
    WrongTable,
    bounded,
    reader,
    schema,
    with_bounds,
)
from tcpsbed.scenarios.origin import Origin
from tcpsbed.scenarios.units import refuse, shown

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}"


def _name(value: str) -> str:
    if not re.fullmatch(_NAME, value):
        raise refuse(
            f"found the name {shown(value)}", 'up to 100 letters, digits, "_" and "-", such as "edge-1"'
        )
    return value


Name = Annotated[str, AfterValidator(_name), Called("name")]
"""A name of something in a scenario."""


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_NAMES_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

Names = Annotated[
    list[str],
    Field(min_length=1),
    BeforeValidator(_names),
    WithJsonSchema(_NAMES_SCHEMA),
    Called("names"),
]
"""One name or a list of names."""
AnyNames = Annotated[list[str], BeforeValidator(_names), WithJsonSchema(_NAMES_SCHEMA), Called("names")]
"""One name, or a list of names that may be empty."""


def plain(value: Any, depth: int = 0) -> Any:
    """A value of Python as TOML has it: paths are texts, numbers of numpy numbers, tables their keys and values.

    Raises
    ------
    Refusal
        If TOML has no such value, or tables and lists lie too deep, or in themselves.
    """
    if depth > DEEPEST:
        raise refuse(f"found tables and lists more than {DEEPEST} deep", "a value that does not hold itself")
    if isinstance(value, Table):
        return plain(value._written, depth)
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise refuse(f"found {shown(value)}", "a whole number of 64 bits")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value) in (bool, int, float, str) or isinstance(value, date | time):
        return value
    if callable(like := getattr(value, "tolist", None)):  # of numpy
        return plain(like(), depth)
    allowed = "text, a number, true or false, a list, a mapping, or a table such as Link(...)"
    raise refuse(f"found {shown(value)} of type {type(value).__name__}", allowed)


@cache
def _texts_of(module: str) -> dict[str, dict[str, str]]:
    """The texts below the fields of the classes of a module, by the names of the classes."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    texts: dict[str, dict[str, str]] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.ClassDef):
            texts[one.name] = {
                field.target.id: inspect.cleandoc(text.value.value)
                for field, text in pairwise(one.body)
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
                if isinstance(text.value.value, str)
            }
    return texts


class _Signature:
    """The keys of a table as parameters, for help and completion."""

    def __get__(self, _: object, table: type[Table]) -> inspect.Signature:
        return inspect.Signature(
            [
                inspect.Parameter(
                    f"{key}_" if keyword.iskeyword(key) else key,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field.is_required() else field.absent(),
                )
                for key, field in table.keys().items()
            ]
        )


class Table:
    """A table of a scenario. With a `shorthand`, a plain value is the value of that key.

    Fields are declared as in a dataclass, and read when a table is made of values by their keys; it then stays as it is.
    """

    __signature__: ClassVar[Any] = _Signature()

    shorthand: ClassVar[str | None] = None
    refuses_numbers: ClassVar[bool] = False
    """Whether a bare number is taken for the shorthand, which then names the unit that it lacks."""
    extra: ClassVar[bool] = False
    """Whether it may have keys that are no fields, which are its `model_extra`."""
    model_fields: ClassVar[dict[str, FieldInfo]] = {}
    """All fields by name."""
    _readers: ClassVar[dict[str, Reader]]

    def __init_subclass__(cls, fields: dict[str, tuple[Any, Any]] | None = None) -> None:
        """Notes the fields of a class: those of its bases, its own, and those that are handed in with type and default."""
        found: dict[str, FieldInfo] = {}
        for base in reversed(cls.__mro__[1:]):
            found |= vars(base).get("model_fields", {})
        annotations: dict[str, Any] = inspect.get_annotations(cls)
        for name, annotation in annotations.items():
            if name[0] != "_" and get_origin(annotation) is not ClassVar:
                found[name] = FieldInfo.of(annotation, vars(cls).get(name, ABSENT))
                if name in vars(cls):
                    delattr(cls, name)
        found |= {name: FieldInfo.of(*field) for name, field in (fields or {}).items()}
        cls.model_fields = found

    def __init__(self, **given: Any) -> None:
        """A table with these keys and values, as in a file; `from_` is `from`, and what is `None` is not given.

        A key that must be there may still be missing: the name that the table gets in a scenario may stand for it.

        Raises
        ------
        ConfigError
            If anything in them is not as it should be.
        """
        self._make(Origin(Path(type(self).__name__), self._keyed(given)))

    @classmethod
    def _keyed(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values of Python by the keys of the file."""
        found: dict[str, Any] = {}
        for name, value in given.items():
            key = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
            try:
                found |= {} if value is None else {key: plain(value)}
            except Refusal as error:
                said = error.context["found"], error.context["allowed"]
                raise Origin(Path(cls.__name__)).error((key,), *said) from None
        return found

    def _make(self, origin: Origin) -> None:
        """Reads the tables of an origin.

        Raises
        ------
        ConfigError
            If anything in them is not as it should be.
        """
        faults: list[Fault] = []
        self._fill(origin.document, (), faults, whole=False)
        if faults:
            raise explain(WrongTable(faults), origin)

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_":
            raise AttributeError(f"{type(self).__name__}.{name} stays as it is")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.model_dump() == self.model_dump()

    def __hash__(self) -> int:
        return hash(repr(self.model_dump()))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._written.items())})"
        )

    @classmethod
    def model_validate(cls, found: Any) -> Self:
        """The table of a value.

        Raises
        ------
        WrongTable
            If anything in it is not as it should be.
        """
        faults: list[Fault] = []
        table = cls.reads(found, (), faults)
        if faults:
            raise WrongTable(faults)
        return table

    @classmethod
    def reads(cls, found: Any, place: Place, faults: list[Fault]) -> Self:
        """The table of a value at a place; what is wrong with that is added to a list."""
        table = cls.__new__(cls)
        table._fill(found, place, faults)
        return table

    def _fill(self, value: Any, place: Place, faults: list[Fault], *, whole: bool = True) -> None:
        cls, known = type(self), len(faults)
        try:
            found = cls._open(value)
            missing = cls._missing(found)
            if missing and whole:
                key = missing[0]
                raise Refusal("absent", key=key, found="is missing", allowed=cls._wanted(key))
        except Refusal as error:
            return faults.append(Fault(error.kind, place, value, error.context))
        if "_readers" not in vars(cls):
            cls._readers = {
                name: bounded(reader(field.annotation), field.bounds)
                for name, field in cls.model_fields.items()
            }
        values, given = vars(self), set()
        values["_written"] = found
        for name, read in cls._readers.items():
            key = cls.model_fields[name].alias or name
            if key in found:
                given.add(name)
                try:
                    values[name] = read(found[key], (*place, key), faults)
                except ValueError:  # a whole number of more digits than Python writes
                    said = {
                        "found": f"found {shown(found[key])}",
                        "allowed": "a whole number below 9223372036854775808",
                    }
                    faults.append(Fault("refused", (*place, key), found[key], said))
            else:
                values[name] = None if key in missing else cls.model_fields[name].absent()
        known_keys = cls.keys()
        values["model_fields_set"] = given
        values["model_extra"] = (
            {key: value for key, value in found.items() if key not in known_keys} if cls.extra else {}
        )
        if len(faults) == known and not missing:
            try:
                self._check()
            except Refusal as error:
                faults.append(Fault(error.kind, place, value, error.context))

    def _check(self) -> None:
        """Refuses fields that do not fit each other."""

    _written: dict[str, Any]
    """The values that it was read from, by key."""
    model_fields_set: set[str]
    """Fields that are given."""
    model_extra: dict[str, Any]
    """What stands beside the fields."""

    def model_dump(
        self, *, exclude: Iterable[str] = (), exclude_none: bool = False, by_alias: bool = False
    ) -> dict[str, Any]:
        """Its fields by name, or by their name in the file, and tables in them too."""

        def plain(value: Any) -> Any:
            if isinstance(value, Table):
                return value.model_dump(exclude_none=exclude_none, by_alias=by_alias)
            if isinstance(value, dict):
                return {key: plain(item) for key, item in value.items()}
            return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value

        own = {
            (field.alias if by_alias else None) or name: plain(getattr(self, name))
            for name, field in self.model_fields.items()
            if name not in exclude and not (exclude_none and getattr(self, name) is None)
        }
        return own | self.model_extra

    @classmethod
    def keys(cls) -> dict[str, FieldInfo]:
        """The keys that the table may have, by their name in the file."""
        return {field.alias or name: field for name, field in cls.model_fields.items()}

    @classmethod
    def marked(cls, field: str) -> str:
        """What a field is, as docs/scenario.md has it, with links: the text below it, read when somebody asks."""
        bases = (base for base in cls.__mro__ if issubclass(base, Table))
        texts = (_texts_of(base.__module__).get(base.__name__, {}) for base in bases)
        return " ".join(next((found[field] for found in texts if field in found), "").split())

    @classmethod
    def text(cls, field: str) -> str:
        """What a field is, without links."""
        described = cls.model_fields[field].description or cls.marked(field)
        return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", described)

    @classmethod
    def _wanted(cls, key: str) -> str:
        """What a key takes: its choices, else what it is."""
        field = next(name for name, one in cls.model_fields.items() if (one.alias or name) == key)
        annotation = cls.model_fields[field].annotation
        if get_origin(annotation) is Literal:
            return ", ".join(f'"{choice}"' for choice in get_args(annotation))
        text = (cls.text(field) or "a value").partition(". ")[0].rstrip(".").replace("`", "")
        return text[:1].lower() + text[1:]

    @classmethod
    def _open(cls, found: Any) -> dict[str, Any]:
        """The keys of a value, which may be a shorthand: known ones."""
        number = cls.refuses_numbers and isinstance(found, int | float) and not isinstance(found, bool)
        if cls.shorthand and (isinstance(found, str) or number):
            found = {cls.shorthand: found}
        known = cls.keys()
        if not isinstance(found, dict):
            such = f', such as "{TEXTS[cls.shorthand]}"' if cls.shorthand in TEXTS else ""
            alone = f"its {cls.shorthand} in quotes{such}, or " if cls.shorthand else ""
            if cls.shorthand and get_origin(cls.model_fields[cls.shorthand].annotation) is Literal:
                alone = f"{cls._wanted(cls.shorthand)}, or "
            keyed = f"some of the keys {', '.join(known)}" if len(known) > 1 else f"the key {''.join(known)}"
            raise refuse(f"found {shown(found)}", f"{alone}a table with {keyed}")
        for key in found:
            if key not in known and not cls.extra:
                raise Refusal("unknown", key=key, found="unknown key", allowed=close_match(key, list(known)))
        return found

    @classmethod
    def _missing(cls, found: dict[str, Any]) -> list[str]:
        """The keys that must be there and are not."""
        return [key for key, field in cls.keys().items() if key not in found and field.is_required()]

    @classmethod
    def json_schema(cls, tables: dict[str, type[Table]]) -> Schema:
        """Its JSON Schema; tables in it are added to others, by name."""
        properties = {}
        for name, field in cls.model_fields.items():
            key = field.alias or name
            here = with_bounds(schema(field.annotation, tables), field.bounds) | (
                field.json_schema_extra or {}
            )
            if not _is_table(field.annotation):
                here["title"] = key.replace("_", " ").title()
            if text := cls.text(name):
                here["description"] = text
            if not field.is_required():
                absent = field.absent()
                here["default"] = absent.model_dump(by_alias=True) if isinstance(absent, Table) else absent
            properties[key] = here
        table = {
            "additionalProperties": cls.extra,
            "description": inspect.getdoc(cls),
            "properties": properties,
            "title": cls.__name__,
            "type": "object",
        }
        if cls.shorthand is None:
            return table
        return {"anyOf": [properties[cls.shorthand] | {"title": "Shorthand"}, table]}


def _is_table(annotation: Any) -> bool:
    """Whether a field is one table or none."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    inner = [one for one in get_args(annotation) if one is not type(None)]
    if len(inner) == 1 and type(None) in get_args(annotation):
        return _is_table(inner[0])
    return isinstance(annotation, type) and issubclass(annotation, Table)
