"""The operator's output in a session, as a file that replaces the operator of another session.

```text
tcpsbed console … ─► records (tactile-operator.exit) ─► tcpsbed export DIR --operator FILE ─► source = "operator:FILE"
```
The rows are what left the operator, after the hooks there; a session that replays them leaves those hooks out.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import results
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import open_records, plan_of
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

KIND = "tactile-operator"


def export(folder: Path, file: Path, flow: str | None = None) -> Path:
    """Writes what an operator did.

    Parameters
    ----------
    folder
        The run folder.
    file
        A csv: `time_s` from the start of the flow, then `v0`, `v1` … as they left the operator, in SI units.
    flow
        The flow; absent: `kinematic`, else the first that an operator sends.

    Raises
    ------
    DataError
        If no operator sends the flow, or its values were not recorded.
    """
    import numpy as np

    plan = plan_of(folder)
    name, point = _sent(plan, flow)
    signal = signals.of_rows(open_records(folder / "records.bin"), plan, point, name)
    values = signal.values[:, np.isfinite(signal.values).all(axis=0)]
    if values.shape[1] == 0:
        raise DataError(f'found no finite values at "{point}"', file=folder, key=name, allowed="numbers")
    planned = next(entry for entry in plan["flows"] if entry["name"] == name)
    times_s = (signal.t_ns - planned["start_ns"]) / 1e9
    if times_s[0] <= planned["period_ns"] / 1e9:
        times_s = times_s - times_s[0]
    else:  # the operator began later: until then the first values hold
        times_s, values = np.insert(times_s, 0, 0.0), np.vstack((values[:1], values))
    with results.whole(file) as part, part.open("w", encoding="utf-8", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["time_s", *(f"v{number}" for number in range(values.shape[1]))])
        rows.writerows([f"{t:.9f}", *map(repr, row)] for t, row in zip(times_s, values.tolist(), strict=True))
    return file


def _sent(plan: Mapping[str, Any], wanted: str | None) -> tuple[str, str]:
    """The flow that is meant, and the point at which it leaves its operator."""
    sent = {}
    for flow in plan["flows"]:
        first = plan["components"][flow["path"][0]["component"]]
        if flow["direction"] == "forward" and first["kind"] == KIND and flow["codec"] != "raw":
            sent[flow["name"]] = f"{first['name']}.exit"
    if wanted is None:
        wanted = "kinematic" if "kinematic" in sent else next(iter(sent), "kinematic")
    if wanted not in sent:
        raise DataError(
            f'found "{wanted}"',
            key="--flow",
            allowed=close_match(wanted, sent) if sent else "a flow of values from a tactile-operator",
        )
    return wanted, sent[wanted]


def recording(scenario: Scenario) -> list[str]:
    """The override of a scenario that records what its operators do, beside what it records anyway."""
    points = [f"{name}.exit" for name, component in scenario.components.items() if component.kind == KIND]
    asked = list(dict.fromkeys([*scenario.measure.signals, *points]))
    return ["measure.signals=[" + ", ".join(f'"{point}"' for point in asked) + "]"] if points else []
