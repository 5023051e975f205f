"""A running proxy: ports with an emulated network between them and their targets."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tcpsbed import _tcps
from tcpsbed.errors import ConfigError, needs_linux
from tcpsbed.processes import cores
from tcpsbed.proxy import circles
from tcpsbed.proxy.changes import Changes
from tcpsbed.proxy.door import Door, once
from tcpsbed.proxy.profile import Profile

SPIN_NS = 50_000
"""Length of the spin at the end of a wait, if a core is spare for it."""


def waiting() -> dict[str, Any]:
    """How a loop waits on this machine: it spins at the end if another core is left for other programs."""
    spare = cores() > 1
    return {"waiting": "hybrid" if spare else "timer", "spin_ns": SPIN_NS, "realtime": os.geteuid() == 0}


def check(doors: Sequence[Door]) -> None:
    """Raises `ConfigError` or `WorldError` if these ports cannot be, as far as that is known without opening them."""
    needs_linux("the proxy")
    if not doors:
        raise ConfigError(
            "found no port", key="PORT=TARGET", allowed="one or more, such as 7000=127.0.0.1:7100/udp"
        )
    once(doors, "PORT=TARGET")
    circles.refuse(doors)


class Proxy:
    """Ports with an emulated network between them and their targets, running until closed.

    Parameters
    ----------
    profile : Profile
        The emulated network.
    doors : sequence of Door
        The ports.
    capture : Path, optional
        File for a capture (pcapng) of each packet at entry and exit.
    record : mapping, optional
        Where rows go, from `Recorder.settings`.

    Raises
    ------
    ConfigError, WorldError
        If no port is given, or one cannot be opened.

    Examples
    --------
    >>> from tcpsbed.proxy import Proxy, load
    >>> from tcpsbed.proxy.door import parse
    >>> with Proxy(load("lte"), [parse("0=127.0.0.1:7100/udp")]) as proxy:
    ...     port = proxy.ports[0]
    """

    def __init__(
        self,
        profile: Profile,
        doors: Sequence[Door],
        *,
        capture: Path | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        check(doors)
        self.profile, self.doors, self._changes = profile, tuple(doors), Changes()
        settings = {
            "network": profile.network,
            "seed": profile.seed,
            "doors": [door.settings() for door in doors],
            "capture": None if capture is None else str(capture),
            "record": record,
        }
        self._native = _tcps.Proxy(json.dumps(settings | waiting()))
        self.outcome: dict[str, Any] | None = None

    @property
    def ports(self) -> list[int]:
        """Ports for clients, in the order of the doors."""
        return [int(address.rpartition(":")[2]) for address in self._native.addresses()]

    def snapshot(self) -> dict[str, Any]:
        """Counts so far, rates and delays of the last second: `t_s`, `clients` and `doors` (one row per direction)."""
        found: dict[str, Any] = json.loads(self._native.snapshot())
        return found

    def start_ns(self) -> int:
        """When its time was 0 (CLOCK_MONOTONIC)."""
        return self._native.start_ns()

    def event(self, line: dict[str, Any], network: dict[str, Any]) -> None:
        """Asks for an event of the record's plan, after which the network is this one; see `Recorder`."""
        self._native.event(json.dumps(line), json.dumps(network))
        self._changes.event(line, self.profile.network)

    def change(self, profile: Profile, event: int | None = None) -> None:
        """Replaces the profile. If only rates, delays and independent losses differ, waiting packets see the change;
        otherwise packets in flight finish under the old profile. A record has it as the event of this number.

        Raises
        ------
        ConfigError
            If it has no path between the two sides; then nothing has changed.
        """
        self._native.change(json.dumps(profile.network), event)
        self._changes.profile(self.profile.network, profile.network)
        self.profile = profile

    def ended(self) -> bool:
        """Whether its loop has ended unexpectedly."""
        return self._native.ended()

    def close(self) -> dict[str, Any]:
        """Stops it, once. Returns the outcome: `doors` with set against delivered, `links`, `own`, `errors`, and by link
        what was `changed`.
        """
        if self.outcome is None:
            self.outcome = json.loads(self._native.stop()) | {"changed": self._changes.found}
        found: dict[str, Any] = self.outcome
        return found

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
