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
    from tcpsbed.campaign.outcome import Outcome


def load(folder: Path | str) -> Run | Outcome:
    """Opens the result in a folder.

    Parameters
    ----------
    folder : Path or str
        Of a run, a sweep or a campaign, as the functions and commands of these names leave it.

    Returns
    -------
    Run or Outcome
        The run; or the table of a sweep or a campaign, finished or not.

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
    if kind not in ("", "run"):
        raise DataError(
            f"holds a {kind}",
            file=path,
            allowed="the folder of a run, a sweep or a campaign, such as runs/latest",
        )
    return Run(open_folder(path).path)
