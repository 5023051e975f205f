"""Names of what the native module brings along: hooks, robots, transports."""

from __future__ import annotations


def names(kind: str) -> list[str] | None:
    """The built-in names of a kind (`hooks`, `robots`, `transports`); `None` if they cannot be known here."""
    try:
        from tcpsbed import _tcps
    except ImportError:
        return None
    known: dict[str, list[str]] = _tcps.builtins()
    return sorted(known[kind]) if kind in known else None
