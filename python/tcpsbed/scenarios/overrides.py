"""Overrides as a user gives them: on the command line as texts `KEY=VALUE`, in Python also by key, with values of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios.dump import value_text
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.scenarios.model.table import plain
from tcpsbed.scenarios.origin import option
from tcpsbed.scenarios.units import shown

MOST_BITS = 1000
"""Of a whole number that can be written into a message."""
Overrides = Mapping[str, Any] | Sequence[str]
"""By key, such as `{"links.wan.rate": "2 Mbit/s"}`; or texts, such as `links.wan.rate="2 Mbit/s"`."""


def overrides(
    given: Overrides | None = None, *, seed: int | None = None, duration: str | None = None
) -> list[str]:
    """All overrides as texts in the order of their weight: the given ones, then those with names of their own.

    Parameters
    ----------
    given
        Values by key: text, numbers, truth values, lists, tables. Text stays text: `"5"` is not 5. Or texts `KEY=VALUE`.
    seed, duration
        Replace those of the scenario, if they are given.

    Raises
    ------
    ConfigError
        If a value is none that TOML has, or the texts are one text.
    """
    if isinstance(given, str):
        allowed = 'a mapping such as {"links.wan.rate": "2 Mbit/s"}, or a list of texts KEY=VALUE'
        raise ConfigError(f'found the text "{given}"', key="set", allowed=allowed)
    if not isinstance(given, Mapping | Sequence | None):
        raise ConfigError(f"found {given!r}", key="set", allowed='a mapping such as {"seed": 5}')
    for one in given or ():
        _refuse_no_text(one)
    if type(seed) is int and seed.bit_length() > MOST_BITS:
        raise ConfigError(f"found {shown(seed)}", key="seed", allowed="a whole number from 0 to 2^63 - 1")
    texts = [_text(*one) for one in given.items()] if isinstance(given, Mapping) else list(given or ())
    own = {"seed": seed, "duration": duration}
    return [*texts, *(option(key, key, value) for key, value in own.items() if value is not None)]


def _refuse_no_text(one: object) -> None:
    if not isinstance(one, str):
        allowed = 'keys such as "seed", or texts KEY=VALUE such as "seed=5"'
        raise ConfigError(f"found {type(one).__name__}", key="set", allowed=allowed)


def _text(key: str, value: Any) -> str:
    try:
        return f"{key}={value_text(plain(value))}"
    except Refusal as error:
        raise ConfigError(error.context["found"], key=key, allowed=error.context["allowed"]) from None
