"""Results opened from their folders."""

from __future__ import annotations

from pathlib import Path

from tcpsbed.errors import DataError
from tcpsbed.results import kind_of
from tcpsbed.runs.run import Run
from tcpsbed.views.folder import open_folder


def load(folder: Path | str) -> Run:
    """Opens the result in a folder.

    Parameters
    ----------
    folder : Path or str
        Of a run, as `tcpsbed.run` and `tcpsbed run` leave it.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    DataError
        If there is no result in it, or one of another kind.

    Examples
    --------
    >>> import tcpsbed
    >>> tcpsbed.load("runs/latest").flows["haptic"].delay_ms.p99  # doctest: +SKIP
    """
    path = Path(folder)
    if path.suffix in (".toml", ".xlsx"):
        raise DataError(
            "is a scenario", file=path, allowed="tcpsbed.Scenario.read(file), or the folder of a result"
        )
    kind = kind_of(path)
    if kind not in ("", "run"):
        raise DataError(f"holds a {kind}", file=path, allowed="the folder of a run, such as runs/latest")
    return Run(open_folder(path).path)
