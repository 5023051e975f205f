"""Results opened from their folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcpsbed import inputs
from tcpsbed.errors import DataError
from tcpsbed.results import kind_of
from tcpsbed.runs.run import Run
from tcpsbed.views.folder import open_folder

if TYPE_CHECKING:
    from tcpsbed.api.map import LoopMap
    from tcpsbed.api.step import StepResponses
    from tcpsbed.campaign.outcome import Outcome
    from tcpsbed.campaign.search.boundary import Boundary
    from tcpsbed.campaign.search.contour import BoundaryCurve
    from tcpsbed.campaign.search.optimum import Optimum


def load(
    folder: Path | str,
) -> Run | Outcome | Boundary | BoundaryCurve | Optimum | StepResponses | LoopMap:
    """Opens the result in a folder.

    Parameters
    ----------
    folder : Path or str
        Of a run, a sweep, a campaign, a search, a step experiment or a map, as the functions and commands of these names
        leave it.

    Returns
    -------
    Run, Outcome, Boundary, BoundaryCurve, Optimum, StepResponses or LoopMap
        What the function returned; of a sweep or a campaign the table, finished or not.

    Raises
    ------
    DataError
        If there is no result in it, or one of another kind.

    Examples
    --------
    >>> import tcpsbed
    >>> tcpsbed.load("runs/latest").flows["haptic"].delay_ms.p99  # doctest: +SKIP
    """
    path = inputs.path(folder, "load")
    if path.suffix in (".toml", ".xlsx"):
        raise DataError(
            "is a scenario", file=path, allowed="tcpsbed.Scenario.read(file), or the folder of a result"
        )
    kind = kind_of(path)
    if kind == "sweep":
        from tcpsbed.campaign import outcome

        return outcome.opened(path)
    if kind == "step":
        from tcpsbed.api import step

        return step.opened(path)
    if kind == "map":
        from tcpsbed.api import map as maps

        return maps.opened(path)
    if kind == "search":
        from tcpsbed.campaign.search.opened import opened

        return opened(path)
    return Run(open_folder(path).path)
