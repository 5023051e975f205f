"""From the nanoseconds of the analysis to the milliseconds of the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NS_PER_MS = 1e6


def ms(found: Any) -> Any:
    """Nanoseconds as milliseconds, those of a distribution too, where `n` stays a count; nothing stays nothing."""
    if isinstance(found, Mapping):
        return {key: value if key == "n" else ms(value) for key, value in found.items()}
    return None if found is None else found / NS_PER_MS


def curve_ms(values_ns: Sequence[float | None]) -> list[float | None]:
    """A curve in nanoseconds as one in milliseconds."""
    return [ms(value) for value in values_ns]
