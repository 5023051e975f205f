"""Names of what the native module brings along: hooks, robots, transports."""

from __future__ import annotations

from tcpsbed.config.model.scenario import Scenario
from tcpsbed.config.model.table import close_match
from tcpsbed.config.origin import Key


def known() -> dict[str, list[str]]:
    """The built-in names of each kind (`hooks`, `robots`, `transports`); none where the native module is missing."""
    try:
        from tcpsbed import _tcps
    except ImportError:
        return {}
    names: dict[str, list[str]] = _tcps.builtins()
    return names


def check(scenario: Scenario, key: Key, name: str, kind: str, others: str = "") -> str:
    """The name, if it is a built-in `hook`, `robot` or `transport`; any name where none are known."""
    names = known().get(f"{kind}s")
    if names is not None and name not in names:
        raise scenario.error(
            key, f'found "{name}"', f"a built-in {kind}: {close_match(name, sorted(names))}{others}"
        )
    return name
