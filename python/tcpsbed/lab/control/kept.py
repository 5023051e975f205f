"""Results of the step experiment in files, and read from them: curves of `step`, cells of `map`.

| file | content |
|---|---|
| `curves.parquet` | `setting`, `run`, `t_ms`, `h1` …; in its metadata (`tcpsbed`) loop, margins, offsets of each setting |
| `map.json` | grid, bench, tables of all cells, cells that were compared with packets |
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import documents
from tcpsbed.documents import Maybe, shaped
from tcpsbed.errors import DataError, Refused, one_line
from tcpsbed.lab.control.batch import Bench
from tcpsbed.lab.control.experiment import Curve, Experiment, curve_of
from tcpsbed.lab.control.loci import AxesMargins, Disk
from tcpsbed.lab.control.loop import Loop
from tcpsbed.lab.control.offsets import Offsets
from tcpsbed.lab.control.response import Step
from tcpsbed.lab.control.stability import FIGURES, Grid, StabilityMap
from tcpsbed.lab.control.theory import Margins
from tcpsbed.lab.control.verdict import Limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.verification import Point

CURVES = "curves.parquet"
_OWN = b"tcpsbed"
_STEP = {"c": float, "t0_ms": float, "plant": Maybe({"kind": str}), "disturbance": str, "axis": int}
_LIMITS = dict.fromkeys(("rise_ms", "overshoot", "undershoot"), float | None)
_ANSWER = {"overshoot": float | None, "ci95": float | None, "good": int, "runs": int}
_TABLES = {name: [[float | None]] for name in (*FIGURES, "good")}
MAP = {
    "grid": {
        "rtt_ms": [float],
        "loss": [float],
        **dict.fromkeys(("period_ms", "kp", "ki_per_ms", "burst", "jitter_ms"), float),
        "phases": bool,
        "controller": Maybe({"kind": str}),
    },
    "bench": {
        "step": _STEP,
        **dict.fromkeys(("runs", "seed"), int),
        "duration_ms": float,
        "limits": _LIMITS,
        "answers": str,
        "axes": [int],
    },
    "reliability": float | None,
    "linearised": Maybe({"order": int, "off": float}),
    "verified": Maybe([{"rtt_ms": float, "loss": float, "map": _ANSWER, "testbed": _ANSWER}]),
    **_TABLES,
}
"""What is read of `map.json`."""


def write_curves(file: Path, world: str, limits: Limits, settings: Sequence[tuple[str, Experiment]]) -> None:
    """Writes all curves of settings."""
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    every = [(n, run, curve) for n, (_, one) in enumerate(settings) for run, curve in enumerate(one.curves)]
    lengths = [len(curve.t_ms) for *_, curve in every]
    columns = {
        "setting": np.repeat([n for n, *_ in every], lengths).astype(np.int32),
        "run": np.repeat([run for _, run, _ in every], lengths).astype(np.int32),
        "t_ms": np.concatenate([curve.t_ms for *_, curve in every]),
    }
    most = max(one.loop.axes for _, one in settings)
    for axis in range(most):
        columns[f"h{axis + 1}"] = np.concatenate([_column(curve, axis) for *_, curve in every])
    told = {
        "world": world,
        "limits": asdict(limits),
        "settings": [
            {
                "name": name,
                "loop": asdict(one.loop),
                "margins": None if one.margins is None else asdict(one.margins),
                "seen": None if one.seen is None else asdict(one.seen),
                "disturbed": [curve.disturbed for curve in one.curves],
            }
            for name, one in settings
        ],
    }
    made = pyarrow.table(columns).replace_schema_metadata({_OWN: json.dumps(told)})
    parquet.write_table(made, file)


def _column(curve: Curve, axis: int) -> NDArray[np.float64]:
    """Values of an axis; not numbers where a loop has fewer."""
    import numpy as np

    return curve.axes[:, axis] if axis < curve.axes.shape[1] else np.full(len(curve.t_ms), math.nan)


def read_curves(file: Path) -> tuple[str, Limits, list[tuple[str, Experiment]]]:
    """World, limits and settings of a file of curves.

    Raises
    ------
    DataError
        If it is none.
    """
    import numpy as np
    from pyarrow import parquet

    try:
        found = parquet.read_table(file)
        told = json.loads((found.schema.metadata or {})[_OWN])
        setting, run, t_ms = (found[name].to_numpy() for name in ("setting", "run", "t_ms"))
        most = max(one["loop"]["axes"] for one in told["settings"])
        h = np.column_stack([found[f"h{axis + 1}"].to_numpy() for axis in range(most)])
        settings = []
        for number, one in enumerate(told["settings"]):
            loop = Loop(
                **one["loop"] | {"step": Step(**one["loop"]["step"]), "sent": tuple(one["loop"]["sent"])}
            )
            curves = []
            for n, disturbed in enumerate(one["disturbed"]):
                mine = (setting == number) & (run == n)
                curves.append(curve_of(t_ms[mine], h[mine][:, : loop.axes], loop, tuple(disturbed)))
            seen = None if one["seen"] is None else Offsets(**one["seen"])
            known = None if one["margins"] is None else _margins(one["margins"])
            settings.append((one["name"], Experiment(loop, curves, seen, known)))
        return told["world"], Limits(**told["limits"]), settings
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        allowed = "the folder of tcpsbed step, as this version leaves it"
        raise DataError(
            f"holds no curves that can be read ({one_line(str(error))})", file=file, allowed=allowed
        ) from None


def _margins(told: Mapping[str, Any]) -> Margins:
    if "disk" not in told:
        return Margins(**told)
    disk = None if told["disk"] is None else Disk(**told["disk"])
    one = {"disk": disk, "one_at_a_time": tuple(map(_margins, told["one_at_a_time"]))}
    return AxesMargins(**{**told, **one, "left": tuple(told.get("left", ()))})


def read_map(file: Path) -> tuple[StabilityMap, dict[str, Any], list[Point]]:
    """The map of a `map.json`, what else is in it, and the cells that were compared with packets.

    Raises
    ------
    DataError
        If it is none.
    """
    import numpy as np

    told = shaped(documents.read(file), MAP, file)
    rows = ((float | None,) * len(told["grid"]["rtt_ms"]),) * len(told["grid"]["loss"])
    for name in _TABLES:
        shaped(told[name], rows, file, name)
    for number, one in enumerate(told.get("verified") or []):
        if one["loss"] not in told["grid"]["loss"]:
            found_ = f"found {one['loss']}, which is not in grid.loss"
            raise DataError(found_, file=file, key=f"verified.{number}.loss", allowed=documents.REMEDY)
    try:
        limits = {key: math.inf if value is None else value for key, value in told["bench"]["limits"].items()}
        asked = told["bench"] | {"axes": tuple(told["bench"]["axes"])}
        bench = Bench(**asked | {"step": Step(**asked["step"]), "limits": Limits(**limits)})
        mean = {name: np.array(told[name], float) for name in FIGURES}
        found = StabilityMap(Grid(**told["grid"]), bench, mean, np.array(told["good"], float))
        found.margins(found.grid.rtt_ms[0])  # all of its matrices
        return found, told, [_point(one) for one in told.get("verified") or []]
    except (ArithmeticError, LookupError, Refused, TypeError, ValueError) as error:
        allowed = "the folder of tcpsbed map, as this version leaves it"
        raise DataError(f"holds no map that can be read ({error})", file=file, allowed=allowed) from None


def _point(told: Mapping[str, Any]) -> Point:
    from tcpsbed.analysis.stats import Interval
    from tcpsbed.lab.control.verdict import wilson
    from tcpsbed.lab.control.verification import Answer, Point

    def answer(of: Mapping[str, Any]) -> Answer:
        mean = of["overshoot"]
        known = None if mean is None else Interval(of["runs"], mean, of["ci95"])
        return Answer(known, wilson(of["good"], of["runs"]))

    return Point(told["rtt_ms"], told["loss"], answer(told["map"]), answer(told["testbed"]))
