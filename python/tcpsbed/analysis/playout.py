"""Playout policies over what a run's sink received: what would have been shown, and when."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.config.units import parameters
from tcpsbed.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpsbed.analysis.run import Run

DELIVERED = 2


@dataclass(frozen=True)
class Played:
    """What a policy did with the samples of a flow.

    Parameters
    ----------
    at_s
        Moments at which samples were shown.
    delay_s
        From the making of each to that moment.
    index
        Their numbers.
    late, dropped, gaps
        Samples after their moment; samples dropped to keep the delay down; ticks with nothing new.
    """

    at_s: NDArray[np.float64]
    delay_s: NDArray[np.float64]
    index: NDArray[np.int64]
    late: int
    dropped: int
    gaps: int


def arrivals(run: Run, flow: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Arrival (ns), origin (ns) and number of the samples of a flow at its sink, in the order of arrival."""
    names = [f["name"] for f in json.loads((run.folder / "plan.json").read_text(encoding="utf-8"))["flows"]]
    if flow not in names:
        raise DataError(f'found no flow "{flow}"', file=run.folder, allowed=", ".join(names))
    rows = run.records
    rows = rows[(rows["kind"] == DELIVERED) & (rows["flow"] == names.index(flow))]
    at = rows["time"].astype(np.int64)
    return at, at - rows["value"].astype(np.int64), rows["index"].astype(np.int64)


# [Ramjee 1994]
def playout(run: Run, flow: str, policy: dict[str, Any]) -> Played:
    """Plays a flow of a run with a policy.

    Parameters
    ----------
    run
        A run whose records were kept.
    flow
        Name of the flow.
    policy
        `kind` and parameters as in a scenario (docs/playout.md), where samples have no keys:
        `{"kind": "fixed", "delay": "20 ms"}`, `{"kind": "queue", "threshold": 30, "length": 2}`.

    Returns
    -------
    Played
        What was shown, and what was not.
    """
    from tcpsbed import _tcps

    at, origin, index = arrivals(run, flow)
    end = int(at[-1]) + 1 if len(at) else 0
    try:
        acts = _tcps.playout(
            json.dumps(parameters(policy)), at.tolist(), origin.tolist(), index.tolist(), end
        )
    except ValueError as e:
        raise DataError(str(e), key="policy") from None
    made = dict(zip(index.tolist(), origin.tolist(), strict=True))
    shown = [(moment, moment - made[i], i) for what, moment, i in acts if what == "played"]
    table = np.array(shown, dtype=np.int64).reshape(-1, 3)

    def count(kind: str) -> int:
        return sum(1 for what, *_ in acts if what == kind)

    return Played(
        table[:, 0] / 1e9, table[:, 1] / 1e9, table[:, 2], count("late"), count("dropped"), count("gap")
    )
