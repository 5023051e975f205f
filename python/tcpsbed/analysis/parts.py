"""A part of `summary.json` with its keys as typed attributes; the classes of all parts are in `typed.py`.

```text
part["delay_ms"]["p99"]     as in the file: None if the run has no such number
part.delay_ms.p99           a float: nan if the run has none
```
"""

from __future__ import annotations

import keyword
import math
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from tcpsbed.nearest import meant

T = TypeVar("T")


class Part(dict[str, Any]):
    """A mapping as in `summary.json`, with its keys as attributes.

    An attribute that the run lacks is nan as a number, empty as text, list, mapping or part. A count or truth value that it
    lacks raises AttributeError.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The value of a key, in its type."""
            types = _types(type(self))
            if name not in types:
                raise AttributeError(f"{type(self).__name__} has no {name}{meant(name, list(types))}")
            key = name[:-1] if keyword.iskeyword(name[:-1]) else name
            value = self.get(key)
            if value is None and types[name] in (int, bool):
                raise AttributeError(f"this run has no {name} of {type(self).__name__}")
            return _typed(types[name], value)

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *_types(type(self))])


class Distribution(Part):
    """Statistics of a quantity, in the unit of its name."""

    n: int
    """Number of values."""
    min: float
    """The smallest."""
    mean: float
    """The mean."""
    max: float
    """The largest."""
    sd: float
    """Standard deviation, n - 1."""
    p50: float
    """The median."""
    p95: float
    """The 95th percentile."""
    p99: float
    """The 99th percentile."""
    p999: float
    """The 99.9th percentile."""
    ci95: float
    """Half width of the 95 % interval of the mean, for independent values."""
    ci95_batch: float
    """The same from the means of 20 consecutive batches: for values that depend on each other."""


class Named(dict[str, T]):
    """Parts by name; a name that is not there is answered with those that are."""

    def __missing__(self, name: str) -> T:
        known = ", ".join(self) or "nothing"
        raise KeyError(f'found "{name}"{meant(name, list(self))}; allowed: {known}')


@cache
def _types(part: type[Part]) -> dict[str, Any]:
    return get_type_hints(part)


def _typed(kind: Any, value: Any) -> Any:
    """A value of the file in a type."""
    if kind is float:
        return math.nan if value is None else value
    if kind is str:
        return "" if value is None else value
    if isinstance(kind, type) and issubclass(kind, Part):
        return kind(value or {})
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        return [_typed(inner, one) for one in value or ()]
    if get_origin(kind) is dict:
        _, inner = get_args(kind)
        return Named({name: _typed(inner, one) for name, one in (value or {}).items()})
    return value
