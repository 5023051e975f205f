"""The virtual world: simulated clock, network and cores, deterministic."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from tcpsbed import _tcps
from tcpsbed.clocks import NS3_VIRTUAL, VIRTUAL
from tcpsbed.hooks import kept_alive, safely
from tcpsbed.robots import MEMORY
from tcpsbed.scenarios.codes import is_ours
from tcpsbed.worlds import memory
from tcpsbed.worlds.steering import Live, Progress, Steering

ROW_BYTES = 32
EVERY_S = 0.05
"""Interval between polls of a run that is watched."""


def run(
    plan: dict[str, Any],
    folder: Path,
    *,
    progress: Progress | None,
    pcapng: bool,
    world: str = VIRTUAL,
    live: Live | None = None,
    steering: Steering | None = None,
) -> dict[str, Any]:
    """Runs a plan; rows go to ``records.bin`` in the folder.

    Parameters
    ----------
    plan
        The compiled scenario.
    progress, live, steering
        As of ``worlds.record``.
    pcapng
        Whether packets are captured into ``packets.pcapng``.
    world
        One whose clock is simulated: it says whose network lies between the nodes.

    Returns
    -------
    dict
        What the run tells about itself (``result.json``).
    """
    watched = _Watched(plan, folder / "records.bin", progress, live, steering)
    capture = folder / "packets.pcapng" if pcapng else None
    ours = is_ours(plan)  # then runs may overlap, which `kept_alive` does not
    guard = nullcontext() if ours else kept_alive()
    with guard, memory.folder() if MEMORY in json.dumps(plan) else nullcontext() as shared:
        run = _tcps.run_virtual if ours else partial(safely, _tcps.run_virtual)
        text = run(
            json.dumps(memory.placed(plan, shared or "")),
            folder / "records.bin",
            progress=watched,
            pcapng_path=capture,
            foreign_json=_foreign(plan, world),
            every_ns=watched.every_ns,
        )
    watched.hand_over(plan["duration_ns"])
    result: dict[str, Any] = json.loads(text)
    return result


class _Watched:
    """What a run calls now and then with its time, ns: it tells how far it is, shows new rows, keeps to its pace and
    gives the run the events that were asked for. A false answer stops the run.
    """

    def __init__(
        self,
        plan: dict[str, Any],
        records: Path,
        progress: Progress | None,
        live: Live | None,
        steering: Steering | None,
    ) -> None:
        self.plan, self.records, self.progress, self.live, self.steering = (
            plan,
            records,
            progress,
            live,
            steering,
        )
        self.read = 0
        self.begun = time.monotonic()
        """When the run would have begun if it had never fallen behind its pace."""
        self.pace = None if steering is None else steering.pace
        self.every_ns = (
            None if live is None and steering is None else round(EVERY_S * (self.pace or 10.0) * 1e9) or 1
        )

    def __call__(self, t_ns: int, split: str) -> bool | str:
        self.hand_over(t_ns, split)
        while True:
            if self.progress is not None and not self.progress(t_ns / self.plan["duration_ns"]):
                return False
            left_s = self._left_s(t_ns)
            if left_s <= 0:
                break
            time.sleep(min(left_s, EVERY_S))
        # Some of what happens at this nanosecond is over: the next one is the first that a repeated run can meet.
        taken = [] if self.steering is None else self.steering.take(t_ns + 1)
        self.plan["events"].extend(taken)
        return json.dumps(taken) if taken else True

    def hand_over(self, t_ns: int, split: str = "") -> None:
        """Shows the rows that are on the disk by now, and where the time of samples went so far."""
        if self.live is None:
            return
        with self.records.open("rb") as file:
            file.seek(self.read)
            content = file.read()
        whole = content[: len(content) // ROW_BYTES * ROW_BYTES]
        self.read += len(whole)
        self.live(whole, t_ns / 1e9, split)

    def _left_s(self, t_ns: int) -> float:
        """Time until the machine's clock has come as far as the run, at its pace."""
        if self.pace is None:
            return 0.0
        now = time.monotonic()
        # One that fell behind goes on from now: it does not hurry to make up for it.
        self.begun = max(self.begun, now - t_ns / 1e9 / self.pace - EVERY_S)
        return self.begun + t_ns / 1e9 / self.pace - now


def _foreign(plan: dict[str, Any], world: str) -> str | None:
    """The program that simulates the network in place of the built-in one; `None` if none does."""
    if world != NS3_VIRTUAL:
        return None
    from tcpsbed.worlds import ns3

    # Nothing is a datagram here, whatever `real.background` says of runs on the machine's clock.
    return json.dumps(ns3.foreign_of(plan, plan["network"]["traffic"]))
