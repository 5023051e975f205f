"""JSON files of a run folder; an error names the file and the remedy."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args

from tcpsbed import inputs
from tcpsbed.errors import DataError, brief

REMEDY = "a file as tcpsbed run left it; run the scenario again"


def read(file: Path, needs: Iterable[str] = ()) -> dict[str, Any]:
    """Return the object in a file.

    Parameters
    ----------
    file
        A JSON file that tcpsbed wrote.
    needs
        Keys that must be there.

    Raises
    ------
    DataError
        The file is absent, unreadable, broken, no object, or lacks a key.
    """
    content = inputs.from_json(file, REMEDY)
    if not isinstance(content, dict):
        raise DataError("found no object", file=file, allowed=REMEDY)
    needs = list(needs)
    if needs and (hidden := inputs.unprintable(content)):
        key = ".".join(map(str, hidden[0]))
        raise DataError(f"found {inputs.unseen(hidden[1])}", file=file, key=key, allowed=REMEDY)
    for key in needs:
        if key not in content:
            raise DataError("is missing", file=file, key=key, allowed=REMEDY)
    return content


@dataclass(frozen=True)
class Maybe:
    """Of a shape, or null; of a key with a shape, absent, too."""

    shape: Any


@dataclass(frozen=True)
class Each:
    """Of an object whose keys are names: the shape of every value."""

    shape: Any


def shaped(content: object, shape: Any, file: Path, key: str = "") -> Any:
    """What a file holds, once it is known to have a shape; numbers are finite.

    Parameters
    ----------
    content
        From JSON.
    shape
        A type (`float` takes whole numbers, too) or a union of types; a mapping of keys with their shapes; a list with the
        shape of every entry; a tuple with the shape of each; or one of these in `Maybe` or `Each`.
    file, key
        Where it is from.

    Raises
    ------
    DataError
        With file and key, if something is missing or of another kind.

    Examples
    --------
    >>> shaped({"runs": 3, "rtt_ms": [0, 2.5]}, {"runs": int, "rtt_ms": [float]}, Path("map.json"))["runs"]
    3
    """

    def refused(found: str) -> DataError:
        return DataError(found, file=file, key=key or None, allowed=REMEDY)

    if isinstance(shape, Maybe):
        return content if content is None else shaped(content, shape.shape, file, key)
    if isinstance(shape, Each):
        shape = dict.fromkeys(content, shape.shape) if isinstance(content, dict) else {}
    if isinstance(shape, type | UnionType):
        kinds = get_args(shape) or (shape,)
        if type(content) not in kinds and not (type(content) is int and float in kinds):
            raise refused(f"found {_named(content)}")
        if isinstance(content, float) and not math.isfinite(content):
            raise refused(f"found {_named(content)}")
        return content
    if not isinstance(content, dict if isinstance(shape, Mapping) else list):
        raise refused(f"found {_named(content)}")
    if isinstance(shape, Mapping):
        parts = [
            (name, inner) for name, inner in shape.items() if name in content or not isinstance(inner, Maybe)
        ]
        if missing := next((name for name, _ in parts if name not in content), None):
            raise DataError("is missing", file=file, key=f"{key}.{missing}".lstrip("."), allowed=REMEDY)
    elif shape and isinstance(shape, list) and _numbers(content, shape[0]):
        return content
    else:
        parts = list(enumerate(shape if isinstance(shape, tuple) else shape * len(content)))
        if len(parts) != len(content):
            raise refused(f"found {len(content)} entries, not {len(parts)}")
    for name, inner in parts:
        shaped(content[name], inner, file, f"{key}.{name}".lstrip("."))
    return content


def _numbers(content: Any, shape: Any) -> bool:
    """Whether a list of finite numbers, perhaps with gaps, has no other entries: of those there may be millions."""
    if shape not in (float, Maybe(float)):
        return False
    kinds = {int, float} if shape is float else {int, float, NoneType}
    return set(map(type, content)) <= kinds and all(map(math.isfinite, filter(None, content)))


def _named(content: object) -> str:
    """What a value of JSON is, for messages."""
    return brief(json.dumps(content)) if isinstance(content, dict | list) else json.dumps(content)


@contextmanager
def trusted(folder: Path | str) -> Iterator[None]:
    """Reports exceptions from reading a run folder as damage of that folder.

    Raises
    ------
    DataError
        Something in it is not of the kind that tcpsbed writes.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        if isinstance(error, UnicodeEncodeError) and not str(folder).isprintable():
            raise  # the name of the folder is none that a library takes: nothing is wrong with what it holds
        found = f"has a file that is damaged or was edited (detail: {error})"
        allowed = "the files as tcpsbed wrote them: run the scenario again"
        raise DataError(found, file=folder, allowed=allowed) from error


def strict(content: object, *, dense: bool = False) -> str:
    """As JSON that a browser reads: what is no finite number is null; `dense`: without spaces."""
    separators = (",", ":") if dense else None
    try:
        return json.dumps(content, separators=separators, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(content), separators=separators, allow_nan=False)


def _finite(content: object) -> object:
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
