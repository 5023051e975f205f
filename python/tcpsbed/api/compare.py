"""Runs, or the combinations of a sweep, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from tcpsbed import inputs
from tcpsbed.errors import DataError
from tcpsbed.views import compare as sides
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.metric import named

if TYPE_CHECKING:
    from tcpsbed.views.compare import Compared
    from tcpsbed.views.paired import Comparison


@overload
def compare(folder: Path | str, /, *, metrics: Sequence[str] = ()) -> Comparison: ...
@overload
def compare(
    first: RunFolder | Path | str, second: RunFolder | Path | str, /, *more: RunFolder | Path | str,
    metrics: Sequence[str] = (),
) -> Compared: ...  # fmt: skip
def compare(*runs: RunFolder | Path | str, metrics: Sequence[str] = ()) -> Compared | Comparison:
    """Puts runs side by side, every metric of the flows that all of them have; or the combinations of a sweep.

    Parameters
    ----------
    *runs : Run, Path or str
        Two runs or more, or their folders; differences are to the first. Or the folder of one sweep or campaign.
    metrics : sequence of str
        What is tested seed by seed, such as `["haptic.delay_ms.p99"]`; absent: the metrics of the campaign, or else mean and
        p99 of the delay, and the loss, of every flow.

    Returns
    -------
    Compared or Comparison
        Of runs: numbers (`rows`, `.to_pandas()`) and tables of the first seeds, and where runs have further seeds in common
        the differences seed by seed (`by_seed`). Of a sweep: these differences alone, with intervals, effects and p-values
        (`differences`, `.to_pandas()`), and what they say (`verdicts`). `print` shows them.

    Raises
    ------
    DataError
        If there are fewer than two runs or combinations, if no two combinations have two seeds in common, if versions of
        tcpsbed differ, or if no flow is in all runs.
    ConfigError
        If a metric is none.

    Examples
    --------
    >>> import tcpsbed
    >>> print(tcpsbed.compare("runs/udp", "runs/dpm"))  # doctest: +SKIP
    >>> tcpsbed.compare("runs/my-campaign").to_pandas()[["condition", "p_holm"]]  # doctest: +SKIP
    """
    folders = [run.path if isinstance(run, RunFolder) else inputs.path(run, "folder") for run in runs]
    if any((folder / "sweep.json").is_file() for folder in folders):
        return _combinations(folders, metrics)
    return sides.compare(*runs, metrics=metrics)


def _combinations(folders: Sequence[Path], metrics: Sequence[str]) -> Comparison:
    """Those of the sweep that is compared."""
    from tcpsbed.campaign.compared import compared

    if len(folders) > 1:
        found = f"found a sweep among {len(folders)} folders"
        raise DataError(found, key="compare", allowed="one sweep, whose combinations are compared, or runs")
    combinations = compared(folders[0], [named(path, "--metric") for path in metrics])
    combinations.refuse_unknown("--metric")
    if not combinations.differences and not any(one.unchanged for one in combinations.conditions):
        found = "has no two seeds that combinations have in common"
        raise DataError(found, file=folders[0], allowed="a sweep with --seeds 2 or more, such as --seeds 10")
    return combinations
