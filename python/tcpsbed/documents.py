"""JSON files of a run folder; an error names the file and the remedy."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import DataError

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
