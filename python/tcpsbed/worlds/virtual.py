"""The virtual world: simulated clock, network and cores, deterministic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tcpsbed import _tcps
from tcpsbed.errors import WorldError


def run(
    plan: dict[str, Any],
    folder: Path,
    *,
    progress: Callable[[float], bool] | None,
    pcapng: bool,
    foreign: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Runs a plan; rows go to ``records.bin`` in the folder.

    Parameters
    ----------
    plan
        The compiled scenario.
    folder
        The run's folder.
    progress
        Called with the share done, 0 to 1; a false answer stops the run.
    pcapng
        Whether packets are captured into ``packets.pcapng``.
    foreign
        The program that simulates the network in place of the built-in one, as ``tcpsbed.worlds.ns3`` names it.

    Returns
    -------
    dict
        What the run tells about itself (``result.json``).
    """
    end = plan["duration_ns"]
    report = None if progress is None else (lambda t_ns: progress(t_ns / end))
    capture = folder / "packets.pcapng" if pcapng else None
    try:
        text = _tcps.run_virtual(
            json.dumps(plan),
            folder / "records.bin",
            progress=report,
            pcapng_path=capture,
            foreign_json=None if foreign is None else json.dumps(foreign),
        )
    except ValueError as error:
        raise WorldError(str(error)) from None
    result: dict[str, Any] = json.loads(text)
    return result
