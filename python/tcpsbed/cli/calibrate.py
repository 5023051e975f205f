"""`tcpsbed calibrate`: costs of stages, sockets and wake-ups, measured in a real run for virtual runs. [design: costs]"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed import results
from tcpsbed.analysis.records import KINDS, STEP_KINDS, open_records, plan_of
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Duration, File, Force, Quiet, Seed, Sets, overrides
from tcpsbed.errors import WorldError

if TYPE_CHECKING:
    import numpy as np

QUANTILES = 101
"""Points of the cost distribution that are kept, from 0 % to 100 %."""

ENTER, EXIT, STAGE = (1 + KINDS.index(kind) for kind in ("enter", "exit", "stage"))

HELP = """Measure real costs of stages, sockets and wake-ups for virtual runs.

\b
Example:
  tcpsbed calibrate my.toml --to my.costs.json --duration "20 s"
  then in my.toml:  calibration = "my.costs.json"

Holds for every component and stage the quantiles of its measured cost. What a component takes between its entry and
its exit beside its stages counts as its stage "work". Holds for every node how late its loop wakes up, what a send call
takes, and how long a datagram waits in its socket. Costs that the scenario gives are left as they are.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("calibrate", help=HELP)(guarded(calibrate))


def calibrate(
    file: File,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="JSON", help="File to write [default: FILE.costs.json].", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder of the real run [default: runs/NAME-calibration-DATE-TIME].",
            show_default=False,
        ),
    ] = None,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Calibrates a scenario; see HELP."""
    from tcpsbed import scenarios
    from tcpsbed.cli.run import refuse_errors, watched
    from tcpsbed.clocks import REAL
    from tcpsbed.runs import session

    scenario = scenarios.load(file, [*overrides(sets, seed, duration), 'measure.records="events"'])
    target = to or file.with_suffix(".costs.json")
    made_anew = scenario.folder / scenario.calibration if scenario.calibration else None
    results.may_write(target, force=force, reads=[one for one in scenario.files if one != made_anew])
    with session.place(scenario, out, "-calibration") as place:
        stopped = watched(scenario, REAL, place, quiet=quiet, samples=False)
        costs, nodes = stages_of(place.path), nodes_of(place.path)
        summary = session.summary_of(place.path)
        described = _described(summary, costs, nodes) | {"run": str(place.shown)}
    if not costs and not nodes:
        refuse_errors(summary)
        allowed = "a longer --duration, or a scenario with hooks"
        raise WorldError("nothing ran", file=place.shown, allowed=allowed)
    results.write_whole(target, json.dumps(described, indent=1) + "\n")
    print(
        f"{target}: {len(costs)} stages, {len(nodes)} nodes. In the scenario: calibration = {json.dumps(target.name)}"
    )
    if stopped:
        raise KeyboardInterrupt(f"stopped early; the costs are from what ran until then ({place.shown})")
    refuse_errors(summary)


def _described(
    summary: Mapping[str, Any], costs: Mapping[str, Any], nodes: Mapping[str, Any]
) -> dict[str, Any]:
    """The costs with the machine and the run that they are from."""
    about = {key: summary.get(key) for key in ("name", "machine", "versions", "disturbances")}
    return {"version": 1, **about, "run": "", "stages": costs, "nodes": nodes}


BOUNDARY = ("wakeup", "send", "receive")
"""What lies between a loop and its network."""


def nodes_of(folder: Path) -> dict[str, Any]:
    """Quantiles of the time between the loops of each node and the network, in nanoseconds.

    A node with several loops gives the mean of their quantiles. A kind that a node never did is left out.
    """
    import numpy as np

    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    loops: dict[str, dict[str, list[list[int]]]] = {}
    for node in result["nodes"]:
        for kind in BOUNDARY:
            quantiles = node.get("quantiles_ns", {}).get(kind)
            if quantiles:
                loops.setdefault(node["name"], {}).setdefault(kind, []).append(quantiles)
    return {
        name: {
            kind: {"quantiles_ns": np.mean(every, axis=0).astype(int).tolist()}
            for kind, every in kinds.items()
        }
        for name, kinds in loops.items()
    }


def stages_of(folder: Path) -> dict[str, Any]:
    """Quantiles of the cost of every stage (`srv.kinematics`) in the records of a run, in nanoseconds."""
    import numpy as np

    plan = plan_of(folder)
    rows = np.asarray(open_records(folder / "records.bin"))
    names = [component["name"] for component in plan["components"]]
    found: dict[str, Any] = {}
    stages = rows[rows["kind"] == STAGE]
    for component, kind in sorted(set(zip(stages["point"].tolist(), stages["detail"].tolist(), strict=True))):
        spans = stages["value"][(stages["point"] == component) & (stages["detail"] == kind)]
        found[f"{names[component]}.{STEP_KINDS[kind]}"] = _quantiles(spans)
    delayed = _delayed(plan)
    for component, name in enumerate(names):
        spans = beside_stages(rows, component)
        if spans.any() and component not in delayed and f"{name}.work" not in found:
            found[f"{name}.work"] = _quantiles(spans)
    return found


def _delayed(plan: Mapping[str, Any]) -> set[int]:
    """Components with a delay in the scenario: it would be counted twice as their work."""
    visits = [visit for flow in plan["flows"] for visit in flow["path"]]
    return {
        visit["component"] for visit in visits if any(step.get("delay") for step in visit.get("steps", ()))
    }


def _quantiles(spans_ns: np.ndarray) -> dict[str, Any]:
    import numpy as np

    points = np.quantile(spans_ns, np.linspace(0, 1, QUANTILES))
    return {
        "n": len(spans_ns),
        "mean_ns": float(spans_ns.mean()),
        "quantiles_ns": [max(int(p), 0) for p in points],
    }


def beside_stages(rows: np.ndarray, component: int) -> np.ndarray:
    """Time that each sample spent in a component beside its stages, in nanoseconds."""
    import numpy as np

    def keyed(part: np.ndarray) -> np.ndarray:
        keys: np.ndarray = (part["flow"].astype(np.int64) << 32) | part["index"]
        return keys

    enter = rows[(rows["kind"] == ENTER) & (rows["point"] == 2 * component)]
    leave = rows[(rows["kind"] == EXIT) & (rows["point"] == 2 * component + 1)]
    both, first, last = np.intersect1d(keyed(enter), keyed(leave), return_indices=True)
    inside = leave["time"][last] - enter["time"][first]
    stages = rows[(rows["kind"] == STAGE) & (rows["point"] == component)]
    place = np.searchsorted(both, keyed(stages))
    known = place < len(both)
    known[known] = both[place[known]] == keyed(stages)[known]
    spent = np.zeros(len(both), np.int64)
    np.add.at(spent, place[known], stages["value"][known])
    beside: np.ndarray = np.maximum(inside - spent, 0)
    return beside
