"""From the nanoseconds of the analysis to the milliseconds of the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NS_PER_MS = 1e6


def ms(value_ns: float | None) -> float | None:
    """Nanoseconds as milliseconds; nothing stays nothing."""
    return None if value_ns is None else value_ns / NS_PER_MS


def distribution_ms(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A distribution in nanoseconds as one in milliseconds; `n` stays a count."""
    if found is None:
        return None
    return {key: value if key == "n" else ms(value) for key, value in found.items()}


def curve_ms(values_ns: Sequence[float | None]) -> list[float | None]:
    """A curve in nanoseconds as one in milliseconds."""
    return [ms(value) for value in values_ns]
