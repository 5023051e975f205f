"""A proxy at work: ports with an emulated network between them and their targets."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tcpsbed import _tcps
from tcpsbed.errors import ConfigError, WorldError
from tcpsbed.proxy import circles
from tcpsbed.proxy.door import Door, once
from tcpsbed.proxy.profile import Profile

SPIN_NS = 50_000
"""Length of the spin at the end of a wait, where a core is spare for it."""


def waiting() -> dict[str, Any]:
    """How a loop waits here: with the last part spun where another core is left for everybody else."""
    spare = len(os.sched_getaffinity(0)) > 1
    return {"waiting": "hybrid" if spare else "timer", "spin_ns": SPIN_NS, "realtime": os.geteuid() == 0}


class Proxy:
    """Ports with an emulated network between them and their targets, at work until it is closed.

    Parameters
    ----------
    profile : Profile
        What lies between.
    doors : sequence of Door
        The ports.
    capture : Path, optional
        Where packets are captured (pcapng), each where it came in and where it went out.

    Raises
    ------
    ConfigError, WorldError
        If there is no port, or one cannot be had.

    Examples
    --------
    >>> from tcpsbed.proxy import Proxy, load
    >>> from tcpsbed.proxy.door import parse
    >>> with Proxy(load("lte"), [parse("0=127.0.0.1:7100/udp")]) as proxy:
    ...     port = proxy.ports[0]
    """

    def __init__(self, profile: Profile, doors: Sequence[Door], *, capture: Path | None = None) -> None:
        if not doors:
            raise ConfigError(
                "found no port", key="PORT", allowed="one or more, such as 7000=127.0.0.1:7100/udp"
            )
        once(doors, "PORT")
        circles.refuse(doors)
        self.profile, self.doors = profile, tuple(doors)
        settings = {
            "network": profile.network,
            "seed": profile.seed,
            "doors": [door.settings() for door in doors],
            "capture": None if capture is None else str(capture),
        }
        try:
            self._native = _tcps.Proxy(json.dumps(settings | waiting()))
        except ValueError as error:
            raise WorldError(str(error)) from None
        self.outcome: dict[str, Any] | None = None

    @property
    def ports(self) -> list[int]:
        """Where clients come, in the order of the doors."""
        return [int(address.rpartition(":")[2]) for address in self._native.addresses()]

    def snapshot(self) -> dict[str, Any]:
        """Counts so far, rates and delays of the last second: `t_s`, `clients` and `doors` (a row a direction)."""
        found: dict[str, Any] = json.loads(self._native.snapshot())
        return found

    def change(self, profile: Profile) -> None:
        """Puts another profile in the place of the present one. Where only rates, delays and independent losses differ,
        packets that wait see the change; else those under way finish as they began.

        Raises
        ------
        WorldError
            If no way leads through it; then nothing has changed.
        """
        try:
            self._native.change(json.dumps(profile.network))
        except ValueError as error:
            raise WorldError(str(error)) from None
        self.profile = profile

    def ended(self) -> bool:
        """Whether its loop has ended by itself, which it should not."""
        return self._native.ended()

    def close(self) -> dict[str, Any]:
        """Ends it, once; what came of it: `doors` with set against delivered, `links`, `own`, `errors`."""
        if self.outcome is None:
            self.outcome = json.loads(self._native.stop())
        found: dict[str, Any] = self.outcome
        return found

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
