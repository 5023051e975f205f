"""Objects of built-in classes as a run makes them."""

from __future__ import annotations

from typing import Any

from tcpsbed import hooks


def made(code: type, **params: Any) -> Any:
    """One with these parameters, and the defaults of its table."""
    return hooks.make(code.__module__, code.__name__, params)
