"""Published experiments repeated from Python, with published values beside the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcpsbed import executors, inputs
from tcpsbed.analysis.frame import Frame, field
from tcpsbed.errors import counted
from tcpsbed.lab.reproduce import page, works
from tcpsbed.lab.reproduce.rows import UNEXPLAINED, Row
from tcpsbed.results import writing
from tcpsbed.runs import refuse_number

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpsbed.lab.reproduce.study import Study

REPRODUCED = Path("reproduced")
"""Where figures and pages go, a folder for each work."""


@dataclass(frozen=True)
class Reproduction(Frame):
    """A published work repeated; `print` shows a table, `.to_pandas()` has a line for each row.

    Attributes
    ----------
    study
        What was run: `rows`, each with the `expected` value, `ours`, `within`, `verdict` and `reason`.
    reference
        The work.
    page
        The page with table and figures.
    """

    study: Study
    reference: str
    page: Path

    @property
    def rows(self) -> list[Row]:
        """The items that were compared."""
        return self.study.rows

    @property
    def missed(self) -> list[Row]:
        """The rows outside their tolerance without a reason."""
        return [row for row in self.rows if row.verdict == UNEXPLAINED]

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `item`, `key`, `published`, `ours`, `within`, `verdict`, `reason`; the unit ends the item."""
        import pyarrow

        words, number = pyarrow.string(), pyarrow.float64()
        kinds = {"published": number, "ours": number, "within": pyarrow.bool_()}
        names = ("item", "key", "published", "ours", "within", "verdict", "reason")
        schema = pyarrow.schema([field(name, kinds.get(name, words)) for name in names])
        return pyarrow.Table.from_pylist([row.to_json() for row in self.rows], schema)

    def __str__(self) -> str:
        return f"{self.study.work}: {self.reference}\n\n{page.text(self.study)}"


def reproduce(
    work: str,
    *,
    short: bool = False,
    out: Path | str = REPRODUCED,
    note: str = "",
    tell: Callable[[str], None] = lambda _: None,
    clock: bool = True,
    jobs: int | None = None,
    cluster: str | None = None,
) -> Reproduction:
    """Runs the experiments of a published work and compares.

    Parameters
    ----------
    work : str
        Its name, as `tcpsbed reproduce --list` prints it.
    short : bool
        Whether only short sweeps run, as in tests.
    out : Path or str
        Folder of the figures, with a folder for each work.
    note : str
        About the run, kept in rows.json.
    tell : callable
        Hears of each finished case.
    clock : bool
        Whether it may take minutes of the machine's clock.
    jobs : int, optional
        Cases in simulated time at a time; absent: as many as there are cores.
    cluster : str, optional
        A scheduler of Dask, such as `tcp://host:8786`, or `local:4`, for cases in simulated time; needs the extra `cluster`.

    Returns
    -------
    Reproduction
        Rows with verdicts.

    Raises
    ------
    TcpsbedError
        If there is no such work, or a run fails.
    KeyboardInterrupt
        If the user stops it; the message says where the rows are that were done.

    Examples
    --------
    >>> import tcpsbed
    >>> found = tcpsbed.reproduce("dpm-q", short=True)  # doctest: +SKIP
    >>> found.missed  # doctest: +SKIP
    []
    """
    asked, above = works.find(work), inputs.path(out, "out")
    refuse_number("jobs", jobs)
    with (
        executors.opened(jobs, cluster, asked.world) as executor,
        writing(above / asked.name, "reproduction") as place,
    ):
        study = asked.reproduce(
            place.path, full=not short, tell=tell, clock=clock, note=note, executor=executor
        )
        if study.stopped and (not study.rows or (place.target.is_dir() and any(place.target.iterdir()))):
            raise KeyboardInterrupt(f"stopped; {above / asked.name} is unchanged")
        path = place.told(page.write(study, asked.reference, place.path))
    if study.stopped:
        raise KeyboardInterrupt(f"stopped; {counted(len(study.rows), 'row')} done until then: {path}")
    return Reproduction(study, asked.reference, path)
