"""Stalls of loops on the machine's clock, and which share of the samples they touched.

A stall *touched* a sample if it overlaps the time in which the sample was in flight: from its creation to its arrival, by
the clocks of the nodes. Only loops on the path of the sample's flow count: those of the nodes of its components, and the
emulator's if the flow crosses from one node to another.
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
        Span at the beginning whose arrivals are left out, as they are from delays.
    analysis
        What the rows say (`_tcps.analyse`).

    Returns
    -------
    dict or None
        `n`; `longest_ms`; `flows` by name with `samples` (touched) and `share` of those that arrived. `None` if no loop
        stalled; then no row is read.
    """
    if not analysis["nodes"]:
        return None
    import numpy as np

    gaps = np.concatenate([rows[rows["kind"] == GAP] for rows in _blocks(folder)])
    spans = [_spans(gaps, nodes) for nodes in _loops(plan)]
    touched, arrived = np.zeros(len(spans), dtype=np.int64), np.zeros(len(spans), dtype=np.int64)
    for rows in _blocks(folder):
        rows = rows[(rows["kind"] == DELIVERED) & (rows["time"] >= warmup_ns)]
        for number in np.unique(rows["flow"][rows["flow"] < len(spans)]):
            of = rows[rows["flow"] == number]
            arrived[number] += len(of)
            touched[number] += _overlapping(of["time"] - of["value"], of["time"], *spans[number])
    names = [flow["name"] for flow in plan["flows"]]
    found = zip(names, touched.tolist(), arrived.tolist(), strict=True)
    return {
        "n": sum(node["gaps"] for node in analysis["nodes"]),
        "longest_ms": max(node["longest_gap_ns"] for node in analysis["nodes"]) / NS_PER_MS,
        "flows": {name: {"samples": few, "share": few / most} for name, few, most in found if most},
    }


def _blocks(folder: Path) -> Any:
    return record_blocks(folder / "records.bin", BLOCK_ROWS)


def _loops(plan: Mapping[str, Any]) -> list[list[int]]:
    """By flow the numbers of the nodes on its path; the emulator's is the one after the last node's."""
    found = []
    for flow in plan["flows"]:
        nodes = {plan["components"][part["component"]]["node"] for part in flow["path"]}
        found.append([*nodes, len(plan["nodes"])] if len(nodes) > 1 else [*nodes])
    return found


def _spans(gaps: NDArray[np.void], nodes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When the stalls of these nodes began and ended (ns), each in order, shape (stalls,)."""
    import numpy as np

    of = gaps[np.isin(gaps["node"], nodes)]
    return np.sort(of["time"] - of["value"]), np.sort(of["time"])


def _overlapping(
    made: NDArray[np.int64],
    came: NDArray[np.int64],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """How many of the spans from `made` to `came`, shape (samples,), overlap one from `begins` to `ends` (all in ns).

    A stall overlaps if it began before the arrival and had not ended at the creation: more have begun than ended.
    """
    import numpy as np

    begun, ended = np.searchsorted(begins, came, "left"), np.searchsorted(ends, made, "right")
    return int(np.count_nonzero(begun > ended))


def sentence(found: Mapping[str, Any]) -> str:
    """What the stalls of a run touched: `12 stalls of at most 34.0 ms touched 0.4 % of the samples of kinematic`.

    Parameters
    ----------
    found
        `stalls` of a summary.
    """
    n, longest = found["n"], f"{found['longest_ms']:.1f} ms"
    head = f"1 stall of {longest}" if n == 1 else f"{n} stalls of at most {longest}"
    shares = {name: flow["share"] for name, flow in found["flows"].items() if flow["share"]}
    most = sorted(shares, key=lambda name: -shares[name])
    said = [f"{_percent(shares[name])} of the samples of {name}" for name in most[:MOST_NAMED]]
    if left := most[MOST_NAMED:]:
        said.append(f"at most {_percent(shares[left[0]])} of {counted(len(left), 'other flow')}")
    return f"{head} touched {', '.join(said) or 'no sample'}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.1g} %"
