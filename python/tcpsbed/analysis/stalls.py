"""Stalls of loops on the machine's clock, and which share of the samples they touched.

A stall *touched* a sample if it overlaps the time in which the sample was in flight: from its creation to its arrival, by
the clocks of the nodes. Only loops on the path of the sample's flow count: all loops of the nodes of its components, also
those of other sessions, and the emulator's if the flow crosses from one node to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.records import KINDS, record_blocks
from tcpsbed.analysis.units import NS_PER_MS
from tcpsbed.errors import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GAP, DELIVERED = (1 + KINDS.index(kind) for kind in ("gap", "delivered"))
BLOCK_ROWS = 1 << 18
"""Rows that are read at a time."""
MOST_NAMED = 4
"""Flows whose shares are told one by one."""


def stalls(folder: Path, plan: Mapping[str, Any], warmup_ns: int, analysis: Mapping[str, Any]) -> Any:
    """The stalls of a run: how many, the longest, and by flow how many of its samples they touched.

    Parameters
    ----------
    folder
        The run folder, with `records.bin`.
    plan
        The compiled scenario.
    warmup_ns
        Span at the beginning: samples made in it are left out, as they are from delays.
    analysis
        What the rows say (`_tcps.analyse`).

    Returns
    -------
    dict or None
        `n` and `longest_ms` of those that ended after the warm-up; `flows` by name with `samples` (touched) and `share` of
        those that arrived. `None` if no loop stalled; then no row is read.
    """
    if not analysis["nodes"]:
        return None
    import numpy as np

    loops = _loops(plan)
    groups = {nodes: number for number, nodes in enumerate(dict.fromkeys(loops))}
    gaps = _gaps(folder, plan, analysis)
    spans = [_spans(*gaps, nodes) for nodes in groups]
    group_of = np.array([groups[nodes] for nodes in loops], dtype=np.int64)
    touched, arrived = np.zeros(len(loops), dtype=np.int64), np.zeros(len(loops), dtype=np.int64)
    for rows in _blocks(folder):
        rows = rows[(rows["kind"] == DELIVERED) & (rows["flow"] < len(loops))]
        rows = rows[rows["time"] - rows["value"] >= warmup_ns]
        flows, came = rows["flow"], rows["time"]
        made, group = came - rows["value"], group_of[flows]
        hit, order = np.zeros(len(rows), dtype=bool), np.argsort(group, kind="stable")
        for of in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(rows) else ():
            hit[of] = _overlapping(made[of], came[of], *spans[group[of[0]]])
        arrived += np.bincount(flows, minlength=len(loops))
        touched += np.bincount(flows[hit], minlength=len(loops))
    names = [flow["name"] for flow in plan["flows"]]
    found = zip(names, touched.tolist(), arrived.tolist(), strict=True)
    return {
        "n": sum(node["gaps"] for node in analysis["nodes"]),
        "longest_ms": max(node["longest_gap_ns"] for node in analysis["nodes"]) / NS_PER_MS,
        "flows": {name: {"samples": few, "share": few / most} for name, few, most in found if most},
    }


def _blocks(folder: Path) -> Any:
    return record_blocks(folder / "records.bin", BLOCK_ROWS)


def _loops(plan: Mapping[str, Any]) -> list[frozenset[int]]:
    """By flow the numbers of the nodes on its path; the emulator's is the one after the last node's."""
    found = []
    for flow in plan["flows"]:
        nodes = {plan["components"][part["component"]]["node"] for part in flow["path"]}
        found.append(frozenset([*nodes, len(plan["nodes"])] if len(nodes) > 1 else nodes))
    return found


def _gaps(
    folder: Path, plan: Mapping[str, Any], analysis: Mapping[str, Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """When each stall began and ended (ns) and the number of its node, shape (stalls,): as the analysis lists them, which is
    quick, or from the rows if its lists are not complete.
    """
    import numpy as np

    numbers = {name: i for i, name in enumerate([*(node["name"] for node in plan["nodes"]), "emulator"])}
    listed = all(len(node["first_gaps"]) == node["gaps"] for node in analysis["nodes"])
    if listed and len(numbers) > len(plan["nodes"]):
        every = [
            (round(gap["t_s"] * 1e9), gap["length_ns"], numbers[node["name"]])
            for node in analysis["nodes"]
            if node["name"] in numbers
            for gap in node["first_gaps"]
        ]
        ends, lengths, nodes = np.array(every, dtype=np.int64).reshape(-1, 3).T
    else:
        rows = np.concatenate([rows[rows["kind"] == GAP] for rows in _blocks(folder)])
        ends, lengths, nodes = rows["time"], rows["value"], rows["node"].astype(np.int64)
    return ends - lengths, ends, nodes


def _spans(
    begins: NDArray[np.int64], ends: NDArray[np.int64], at: NDArray[np.int64], nodes: frozenset[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When the stalls of these nodes began and ended (ns), each in order, shape (stalls,)."""
    import numpy as np

    of = np.isin(at, list(nodes))
    return np.sort(begins[of]), np.sort(ends[of])


def _overlapping(
    made: NDArray[np.int64],
    came: NDArray[np.int64],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which of the spans from `made` to `came`, shape (samples,), overlap one from `begins` to `ends` (all in ns).

    A stall overlaps if it began before the arrival and had not ended at the creation: more have begun than ended.
    """
    import numpy as np

    begun, ended = np.searchsorted(begins, came, "left"), np.searchsorted(ends, made, "right")
    return np.asarray(begun > ended)


def sentence(found: Mapping[str, Any]) -> str:
    """The stalls of a run and what they touched: `12 stalls of at most 34.0 ms touched 0.4 % of the samples of
    kinematic (of those that arrived)`.

    Parameters
    ----------
    found
        `stalls` of a summary.
    """
    n, longest = found["n"], f"{found['longest_ms']:.1f} ms"
    return f"{f'1 stall of {longest}' if n == 1 else f'{n} stalls of at most {longest}'} touched {touched(found)}"


def touched(found: Mapping[str, Any]) -> str:
    """What they touched: `0.4 % of the samples of kinematic (of those that arrived)`; with the parameters of `sentence`."""
    shares = {name: flow["share"] for name, flow in found["flows"].items() if flow["share"]}
    most = sorted(shares, key=lambda name: -shares[name])
    said = [f"{_percent(shares[name])} of the samples of {name}" for name in most[:MOST_NAMED]]
    if left := most[MOST_NAMED:]:
        said.append(f"at most {_percent(shares[left[0]])} of {counted(len(left), 'other flow')}")
    return f"{', '.join(said)} (of those that arrived)" if said else "no sample"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.1g} %"
