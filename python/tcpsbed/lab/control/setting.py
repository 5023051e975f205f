"""What a setting of a step experiment changes in its scenario: the link and the gains."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import linear, scenarios
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control import values
from tcpsbed.lab.control.loop import COMPENSATOR, CONTROLLER, ROBOT, Loop, controllers, loops, reached
from tcpsbed.lab.control.systems import EMPTY, override
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

MOST_NUMBER = 1e30
"""Largest number of a system, and its reciprocal the least that the largest of a multiplied controller may be."""


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
        refuse_gains(max([loop.axes for loop in loops_of(scenario)], default=1))
        allowed = 'a hook with run = "pi"; another controller has its gains in --controller'
        raise ConfigError('found no hook with run = "pi"', key="--gain", allowed=allowed)
    return [f"hooks.{name}.params.{key}={value!r}" for name in hooks for key, value in found.items()]


def factors_of(scenario: Scenario, text: str) -> list[str]:
    """Overrides that multiply the linear controller of a scenario by a factor, as `tcpsbed tune` finds one."""
    factor = values.factor(text, "--factor")
    hooks = [name for name, hook in scenario.hooks.items() if hook.run == COMPENSATOR]
    if len(hooks) != 1:
        allowed = f'one such hook, or --controller; the gains of a hook with run = "{CONTROLLER}" are those of --gain'
        raise ConfigError(
            f'found {len(hooks) or "no"} hooks with run = "{COMPENSATOR}"', key="--factor", allowed=allowed
        )
    loop = next(one for one in loops(_plan(scenario)) if one.law is not None)
    period_ns = round(loop.period_ms * 1e6)
    law = linear.multiplied(loop.law or {}, 1.0, period_ns)
    largest = _largest([law[key] for key in ("num", "c", "d") if key in law])
    if largest and not 1 / MOST_NUMBER <= factor * largest <= MOST_NUMBER:
        allowed = f"{1 / MOST_NUMBER / largest:.3g} to {MOST_NUMBER / largest:.3g}, with this controller"
        raise ConfigError(f'found "{text}"', key="--factor", allowed=allowed)
    law = linear.multiplied(law, factor, period_ns)
    told: dict[str, Any] = {key: law[key] for key in ("kind", "num", "den", "a", "b", "c", "d") if key in law}
    if law.get("sample_time_ns"):
        told["sample_time"] = f"{law['sample_time_ns']} ns"
    place = f"hooks.{hooks[0]}.params.system"
    return [f"{place}={EMPTY}", override("factor", place, told)]


def _largest(of: Any) -> float:
    """The largest size of numbers in lists; 0 of none."""
    return max(map(_largest, of), default=0.0) if isinstance(of, list) else abs(of)


def refuse_gains(axes: int) -> None:
    """Raises `ConfigError` for gains of a loop with several axes."""
    if axes > 1:
        found = f"found Kp and Ki of one axis, for a loop with {axes} axes"
        raise ConfigError(
            found, key="--gain", allowed=f"no --gain; for {axes} axes a controller with as many: --controller"
        )


def loops_of(scenario: Scenario) -> list[Loop]:
    """The loops of a scenario; none if it names no plant: they have one axis then."""
    named = [one.robot.params for one in scenario.components.values() if one.robot and one.robot.run == ROBOT]
    if not any("plant" in params for params in named):
        return []
    return loops(_plan(scenario))


def loop_of(scenario: Scenario, which: str | None, key: str = "--loop") -> Loop:
    """The loop with this name, or the only one."""
    plan = _plan(scenario)
    found = {loop.name: loop for loop in loops(plan)}
    only = next(iter(found)) if which is None and len(found) == 1 else which
    loop = found.get(only or "")
    if loop is None:
        named = f'found "{which}"' if which else f"found {len(found)} loops"
        raise ConfigError(
            named, key=key, allowed=f"a component that closes a loop: {close_match(which or '', found)}"
        )
    reached(plan, [loop])
    return loop


def _plan(scenario: Scenario) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        return scenarios.compile_plan(scenario, Path(folder))
