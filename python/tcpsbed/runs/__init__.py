"""Runs: started, watched, ended, and recovered if their command was killed."""

from __future__ import annotations

from tcpsbed.errors import ConfigError

MOST_SEEDS = 10_000
"""Most runs of packets, each with a seed of its own."""


def refuse_number(key: str, value: object) -> None:
    """Raises `ConfigError` for a number of runs, unless it is None, that is no whole number from 1 to `MOST_SEEDS`."""
    if value is None or (type(value) is int and 1 <= value <= MOST_SEEDS):
        return
    told = (
        f"{value!r:.40}"
        if not isinstance(value, int) or abs(value) < 1e18
        else "a number of more than 18 digits"
    )
    allowed = f"a whole number from 1 to {MOST_SEEDS}, such as {key}=10"
    raise ConfigError(f"found {told}", key=key, allowed=allowed)
