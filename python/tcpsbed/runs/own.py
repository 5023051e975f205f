"""The user's metrics (`measure.metrics`), computed from a run with its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.errors import HookError
from tcpsbed.hooks import kept_alive, safely, told
from tcpsbed.runs.run import Run

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

Row = dict[str, Any]


def measured(folder: Path, scenario: Scenario) -> tuple[list[Row], list[str]]:
    """Their rows in the summary, and what failed, in words."""
    from tcpsbed.scenarios.compile.metrics import metric, metrics

    run, rows, errors = Run(folder), [], []
    for name, code in metrics(scenario):
        found: list[Row] = [{"of": "", "value": None}]
        said: Row = {"unit": "", "meaning": ""}
        try:
            with kept_alive():
                kind = metric(scenario, code)
                said["unit"] = str(kind.unit)
                said["meaning"] = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
                found = _values(code, safely(safely(kind).of, run))
        except (Exception, SystemExit) as error:  # the user's code may fail in any way
            errors.append(f"metric {name}: {told(error)}")
        rows += [{"name": name, **row, **said} for row in found]
    return rows, errors


def _values(code: str, given: Any) -> list[Row]:
    by_name = given if isinstance(given, Mapping) else {"": given}
    try:
        return [{"of": str(name), "value": _number(value)} for name, value in by_name.items()]
    except (TypeError, ValueError):
        allowed = 'a number, None, or these by name, such as {"haptic": 1.5}'
        raise HookError(f"of() of {code} gave {given!r:.80}", allowed=allowed) from None


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None
