"""The combinations of a sweep or campaign as conditions that are compared seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tcpsbed.campaign.filling import filling
from tcpsbed.campaign.results import naming
from tcpsbed.errors import DataError
from tcpsbed.views import paired
from tcpsbed.views.folder import cells_in
from tcpsbed.views.metric import Metric
from tcpsbed.views.paired import Comparison, Condition, kept


def compared(folder: Path, metrics: Sequence[Metric] = ()) -> Comparison:
    """The combinations that have results, each with its baseline: the campaign's, or else the first combination.

    Parameters
    ----------
    folder
        Of a sweep or a campaign.
    metrics
        What is compared; empty: the metrics of the campaign, or else the usual ones of every flow.

    Raises
    ------
    DataError
        If there are fewer than two combinations.
    """
    sweep = filling(folder)
    shown = sweep.survey.shown
    asked = metrics or sweep.survey.design.metrics
    found: dict[tuple[str, ...], dict[int, Mapping[str, Any]]] = {}
    for one in cells_in(folder):
        cell = sweep.keys[one.name]
        found.setdefault(cell.values, {})[cell.seed] = one.part(*kept(asked))
    if len(found) < 2:
        raise DataError("has nothing to compare", file=folder, allowed="a sweep of two combinations or more")
    places = {values: place for place, values in enumerate(found)}
    first = next(iter(places))
    named = naming(found)
    conditions = []
    for values, by_seed in found.items():
        factors = {shown.called(shown.axes[place].key): shown.called(values[place]) for place in named}
        base = places.get(shown.base_of(values, first))
        conditions.append(Condition(paired.pairs(factors), by_seed, base, factors))
    summary = next(iter(found[first].values()))
    return Comparison(conditions, [one.dressed(shown.labels, summary) for one in asked])
