"""Linear systems of several inputs and outputs: from tick to tick, and in motion.

```text
in s or z     x' = A x + B u,  y = C x + D u          A: n x n, B: n x inputs, C: outputs x n, D: outputs x inputs
plan          {kind = "state-space", a, b, c, d}, or {kind = "transfer-function", num, den}: a list of coefficients for
              each input of each output; with `sample_time_ns` in z
```
Each entry of a system is one of a single input and output, which the native module computes: systems of one axis and of
several are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps
from tcpsbed.errors import Refused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


MOST_KEPT = 16
"""Systems that are kept as they are over a span of time: on the machine's clock each span is another."""
MOST_AXES = 16
"""Most inputs or outputs of a system."""
MOST_STATES = 256
"""Most states of a system of several axes, and most coefficients of a polynomial."""


@dataclass(frozen=True)
class Sampled:
    """A system from tick to tick: A (n, n), B (n, inputs), C (outputs, n), D (outputs, inputs)."""

    a: Matrix
    b: Matrix
    c: Matrix
    d: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and inputs."""
        return self.d.shape[0], self.d.shape[1]


def shape(system: Mapping[str, Any]) -> tuple[int, int] | None:
    """Outputs and inputs of a system of a plan; none if it is one of a single input and output, written as such."""
    if system.get("axes"):
        return system["axes"], system["axes"]
    of = system.get("num" if system["kind"] == "transfer-function" else "d")
    if of is None and _nested(system.get("b")) and _nested(system.get("c")):
        return len(system["c"]), len(system["b"][0])
    rows = of if isinstance(of, list) and of and isinstance(of[0], list) else None
    return None if rows is None else (len(rows), len(rows[0]))


def several(system: Mapping[str, Any]) -> bool:
    """Whether a system is written with rows for several axes."""
    keys = ("num", "den") if system["kind"] == "transfer-function" else ("b", "c", "d")
    return any(_nested(system.get(key)) for key in keys)


def _nested(of: Any) -> bool:
    return isinstance(of, list) and any(isinstance(one, list) for one in of)


def refuse_shapes(system: Mapping[str, Any]) -> None:
    """Raises `Refused` for a system of several axes whose parts do not fit together."""
    if system["kind"] == "transfer-function":
        sizes = [_size(system, key, _coefficients) for key in ("num", "den")]
        _refuse_other(sizes[1], sizes[0], "den", "as num has")
        outputs, inputs = sizes[0]
    else:
        n = len(system["a"]) if isinstance(system.get("a"), list) else 0
        if n > MOST_STATES:
            raise _refused("a", f"{n} rows", f"at most {MOST_STATES}, one for each state, such as [[-50.0]]")
        outputs, inputs = _size(system, "d", _matrix)
        for key, wanted in (("b", (n, inputs)), ("c", (outputs, n))) if n else ():
            _refuse_other(_size(system, key, _matrix), wanted, key, "as A and D have rows and columns")
    if max(outputs, inputs) > MOST_AXES:
        raise _refused("", f"{outputs} outputs and {inputs} inputs", f"at most {MOST_AXES} of each")


def _size(system: Mapping[str, Any], key: str, read: Callable[[Any], NDArray[Any] | None]) -> tuple[int, int]:
    """Rows and columns of a part."""
    import numpy as np

    try:
        found = read(system.get(key))
    except (TypeError, ValueError):
        found = None
    if found is None or found.ndim != 2 or not found.size or not np.isfinite(found.astype(float)).all():
        entry = "a list of coefficients" if read is _coefficients else "a number"
        example = "[[[1], [0]], [[0], [1]]]" if read is _coefficients else "[[1, 0], [0, 1]]"
        raise _refused(
            key, f"{system.get(key)!r:.80}", f"rows with {entry} for each column, such as {example}"
        )
    return found.shape[0], found.shape[1]


def _matrix(rows: Any) -> Matrix | None:
    import numpy as np

    return np.array(rows, float) if isinstance(rows, list) else None


def _coefficients(rows: Any) -> NDArray[Any] | None:
    """The sum of the coefficients of each entry."""
    import numpy as np

    return np.array([[sum(map(float, of)) if of else math.nan for of in row] for row in rows])


def _refuse_other(found: tuple[int, int], wanted: tuple[int, int], key: str, why: str) -> None:
    if found != wanted:
        told, fits = (" x ".join(map(str, size)) for size in (found, wanted))
        raise _refused(key, f"{told} entries", f"{fits}, {why}")


def _refused(key: str, found: str, allowed: str) -> Refused:
    return Refused(f"{key}: found {found}; allowed: {allowed}", key, found, allowed)


def sampled(system: Mapping[str, Any], period_ns: int, *, controls: bool) -> Sampled:
    """A system of a plan from tick to tick: a plant, whose input holds; or a controller, by the bilinear rule.

    Raises
    ------
    Refused
        If an entry cannot be computed.
    """
    import numpy as np

    several = shape(system)
    rest = {key: value for key, value in system.items() if key not in ("num", "den", "a", "b", "c", "d")}

    def entry(**of: Any) -> dict[str, Any]:
        told = system if several is None else rest | of
        found: dict[str, Any] = json.loads(_tcps.sampled_system(json.dumps(told), period_ns, controls))
        return found

    outputs, inputs = several or (1, 1)
    places = [(i, j) for i in range(outputs) for j in range(inputs)]
    if several is not None and system["kind"] == "transfer-function":
        return _beside(
            {(i, j): entry(num=system["num"][i][j], den=system["den"][i][j]) for i, j in places}, several
        )

    def of(i: int, j: int) -> dict[str, Any]:
        if several is None:
            return entry()
        b, c = [row[j] for row in system["b"]], system["c"][i] if system["a"] else []
        return entry(a=system["a"], b=b, c=c, d=system["d"][i][j])

    every = {place: of(*place) for place in places}
    n = len(every[0, 0]["a"])
    return Sampled(
        np.array(every[0, 0]["a"], float).reshape(n, n),
        np.array([every[0, j]["b"] for j in range(inputs)], float).reshape(inputs, n).T,
        np.array([every[i, 0]["c"] for i in range(outputs)], float).reshape(outputs, n),
        np.array([every[place]["d"] for place in places], float).reshape(outputs, inputs),
    )


def multiplied(system: Mapping[str, Any], factor: float, period_ns: int) -> dict[str, Any]:
    """A controller of a plan, multiplied by a factor; one that is neither matrices nor a transfer function becomes matrices
    from tick to tick.

    Examples
    --------
    >>> multiplied({"kind": "transfer-function", "num": [1.5, 3.0], "den": [1.0, 12.0]}, 2.0, 1_000_000)
    {'kind': 'transfer-function', 'num': [3.0, 6.0], 'den': [1.0, 12.0]}
    """
    told = dict(system)
    if told["kind"] not in ("transfer-function", "state-space"):
        told = ticking(told, period_ns)
    scaled = ("num",) if told["kind"] == "transfer-function" else ("c", "d")
    return told | {key: _scaled(told[key], factor) for key in scaled if key in told}


def _scaled(of: Any, factor: float) -> Any:
    return [_scaled(one, factor) for one in of] if isinstance(of, list) else factor * of


def ticking(system: Mapping[str, Any], period_ns: int) -> dict[str, Any]:
    """A controller of a plan as matrices from tick to tick."""
    law = sampled(system, period_ns, controls=True)
    if shape(system) is None:
        told = {"b": law.b[:, 0].tolist(), "c": law.c[0].tolist(), "d": float(law.d[0, 0])}
    else:
        told = {"b": law.b.tolist(), "c": law.c.tolist(), "d": law.d.tolist()}
    return {"kind": "state-space", "sample_time_ns": period_ns, "a": law.a.tolist()} | told


def _beside(every: Mapping[tuple[int, int], Mapping[str, Any]], size: tuple[int, int]) -> Sampled:
    """Entries with states of their own, as one system."""
    import numpy as np

    n = sum(len(one["a"]) for one in every.values())
    found = Sampled(np.zeros((n, n)), np.zeros((n, size[1])), np.zeros((size[0], n)), np.zeros(size))
    at = 0
    for (i, j), one in every.items():
        here = slice(at, at + len(one["a"]))
        if one["a"]:
            found.a[here, here], found.b[here, j], found.c[i, here] = one["a"], one["b"], one["c"]
        found.d[i, j] = one["d"]
        at = here.stop
    return found


class Motion:
    """A system that moves from rest on, where its input and output are 0."""

    def __init__(self, system: Mapping[str, Any], *, controls: bool) -> None:
        import numpy as np

        self._controls = controls
        self._at = lru_cache(MOST_KEPT)(lambda dt_ns: sampled(system, dt_ns, controls=controls))
        self.step_ns = int(system.get("sample_time_ns") or 0)
        first = self._at(self.step_ns)
        self._last, self._x, self._u = first, np.zeros(len(first.a)), np.zeros(first.shape[1])

    def move(self, dt_ns: int) -> None:
        """Lets time pass under the last input; a controller in z takes one of its steps."""
        self._last = self._at(self.step_ns if self._controls and self.step_ns else dt_ns)
        self._x = self._last.a @ self._x + self._last.b @ self._u

    def answer(self, u: Matrix) -> Matrix:
        """The output under the input `u`, which holds from now on."""
        self._u = u
        found: Matrix = self._last.c @ self._x + self._last.d @ u
        return found
