"""What a setting of a step experiment changes in its scenario: the link and the gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpsbed.errors import ConfigError
from tcpsbed.lab.control import values
from tcpsbed.lab.control.loop import controllers
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario


def link_of(scenario: Scenario, wanted: str | None) -> str:
    """The link of this name, or the only one."""
    names = list(scenario.links)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    found = f'found "{wanted}"' if wanted else f"found {len(names)} links"
    raise ConfigError(
        found, key="--link", allowed=close_match(wanted or "", names) if names else "a scenario with a link"
    )


def gains_of(scenario: Scenario, text: str | None) -> list[str]:
    """Overrides that give all built-in controllers these gains; none if there is no text."""
    if not text:
        return []
    found = dict(zip(("kp", "ki_per_ms"), values.gains(text, "--gain"), strict=True))
    hooks = controllers(scenario.hooks)
    if not hooks:
        raise ConfigError('found no hook with run = "pi"', key="--gain", allowed='a hook with run = "pi"')
    return [f"hooks.{name}.params.{key}={value!r}" for name in hooks for key, value in found.items()]
