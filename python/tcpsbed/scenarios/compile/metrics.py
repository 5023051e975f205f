"""The user's metrics that a scenario names."""

from __future__ import annotations

import inspect

from tcpsbed import door
from tcpsbed.errors import HookError
from tcpsbed.hooks import has
from tcpsbed.scenarios.compile.code import loaded
from tcpsbed.scenarios.model.entries import choices, is_code
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key

_KEY: Key = ("measure", "metrics")


def metrics(scenario: Scenario) -> list[tuple[str, str]]:
    """Name and code of each; the name is that of an entry point, or of the class."""
    codes = [
        (text, text if is_code(text) else door.named("metric", text)) for text in scenario.measure.metrics
    ]
    return [(code.rpartition(":")[2] if text == code else text, code) for text, code in codes]


def metric(scenario: Scenario, code: str) -> type[door.Metric]:
    """The class of a metric, or an error if it is not one."""
    if not is_code(code):
        raise scenario.error(_KEY, f'found "{code}"', choices("metric", (), code))
    _, found = loaded(scenario, _KEY, code)
    if not (inspect.isclass(found) and issubclass(found, door.Metric) and not inspect.isabstract(found)):
        symbol = code.rpartition(":")[2]
        allowed = f"class {symbol}(tcpsbed.Metric) with of(self, run), as tcpsbed docs summary shows"
        raise scenario.error(_KEY, f'found "{symbol}", which is not a metric', allowed)
    try:
        has(found, f"metric {code}", "of", "run")
    except HookError as error:
        raise scenario.error(_KEY, error.found, error.allowed or "") from None
    return found
