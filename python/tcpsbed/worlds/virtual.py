"""The virtual world: simulated clock, network and cores, deterministic."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tcpsbed import _tcps
from tcpsbed.clocks import NS3_VIRTUAL, VIRTUAL
from tcpsbed.errors import WorldError
from tcpsbed.hooks import kept_alive, safely
from tcpsbed.results.files import FULL, LIMIT, ROOM
from tcpsbed.robots import MEMORY
from tcpsbed.worlds import memory


def run(
    plan: dict[str, Any],
    folder: Path,
    *,
    progress: Callable[[float], bool] | None,
    pcapng: bool,
    world: str = VIRTUAL,
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
    world
        One whose clock is simulated: it says whose network lies between the nodes.

    Returns
    -------
    dict
        What the run tells about itself (``result.json``).
    """
    end = plan["duration_ns"]
    report = None if progress is None else (lambda t_ns: progress(t_ns / end))
    capture = folder / "packets.pcapng" if pcapng else None
    with kept_alive(), memory.folder() if MEMORY in json.dumps(plan) else nullcontext() as shared:
        try:
            text = safely(
                _tcps.run_virtual,
                json.dumps(memory.placed(plan, shared or "")),
                folder / "records.bin",
                progress=report,
                pcapng_path=capture,
                foreign_json=_foreign(plan, world),
            )
        except ValueError as error:
            raise _told(str(error)) from None
    result: dict[str, Any] = json.loads(text)
    return result


def _told(said: str) -> WorldError:
    """An error of the run, with what to do about a disk that takes no more."""
    found = re.fullmatch(r"(.*) \(os error (\d+)\)", said, re.S)
    if found is None or int(found[2]) not in FULL:
        return WorldError(said)
    return WorldError(found[1], allowed=LIMIT if int(found[2]) == errno.EFBIG else ROOM)


def _foreign(plan: dict[str, Any], world: str) -> str | None:
    """The program that simulates the network in place of the built-in one; `None` if none does."""
    if world != NS3_VIRTUAL:
        return None
    from tcpsbed.worlds import ns3

    # Nothing is a datagram here, whatever `real.background` says of runs on the machine's clock.
    return json.dumps(ns3.foreign_of(plan, plan["network"]["traffic"]))
