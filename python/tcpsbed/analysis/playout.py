"""Playout policies applied to the samples that a run's sink received."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcpsbed.analysis.records import plan_of
from tcpsbed.errors import ConfigError, DataError, Refused
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.scenarios.units import parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpsbed.scenarios.origin import Key

DELIVERED = 2


class Recorded(Protocol):
    """A run with its rows, such as `tcpsbed.Run`."""

    @property
    def folder(self) -> Path:
        """The run folder."""

    @property
    def records(self) -> NDArray[np.void]:
        """The rows of `records.bin`."""


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


def arrivals(run: Recorded, flow: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Arrival (ns), origin (ns) and number of the samples of a flow at its sink, in the order of arrival."""
    names = [f["name"] for f in plan_of(run.folder)["flows"]]
    if flow not in names:
        raise DataError(f'found no flow "{flow}"', file=run.folder, allowed=close_match(flow, names))
    rows = run.records
    rows = rows[(rows["kind"] == DELIVERED) & (rows["flow"] == names.index(flow))]
    at = rows["time"].astype(np.int64)
    return at, at - rows["value"].astype(np.int64), rows["index"].astype(np.int64)


# [Ramjee 1994]
def playout(run: Recorded, flow: str, policy: dict[str, Any]) -> Played:
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

    Raises
    ------
    ConfigError
        If there is no such policy, or a parameter of it cannot be.
    """
    from tcpsbed import _tcps

    at, origin, index = arrivals(run, flow)
    end = int(at[-1]) + 1 if len(at) else 0
    try:
        acts = _tcps.playout(
            json.dumps(parameters(policy)), at.tolist(), origin.tolist(), index.tolist(), end
        )
    except Refusal as error:
        raise _wrong((), error.context["found"], error.context["allowed"]) from None
    except Refused as fault:
        from tcpsbed.scenarios.compile.builtins import faulty

        raise faulty(_wrong, (), policy.get("kind", "hold"), policy, fault) from None
    made = dict(zip(index.tolist(), origin.tolist(), strict=True))
    shown = [(moment, moment - made[i], i) for what, moment, i in acts if what == "played"]
    table = np.array(shown, dtype=np.int64).reshape(-1, 3)

    def count(kind: str) -> int:
        return sum(1 for what, *_ in acts if what == kind)

    return Played(
        table[:, 0] / 1e9, table[:, 1] / 1e9, table[:, 2], count("late"), count("dropped"), count("gap")
    )


def _wrong(key: Key, found: str, allowed: str) -> ConfigError:
    return ConfigError(found, key=".".join(map(str, ("policy", *key))), allowed=allowed)
