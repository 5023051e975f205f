r"""A scenario as a test: pytest collects `test_*.toml` profiles that name a scenario.

```toml
scenario = "../scenarios/quickstart.toml"     # test_delay.toml
set = ["links.l1.delay=\"5 ms\""]

[flows.haptic]
"delay_ms.p99" = { most = 30 }

[step]
"overshoot.mean" = { most = 20 }
```
Every limit is a test of its own; the scenario runs once, in virtual time, and as often as asked for its step responses.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tcpsbed import inputs
from tcpsbed.errors import DataError, TcpsbedError

if TYPE_CHECKING:
    from tcpsbed.lab.qos import response
    from tcpsbed.lab.qos.check import Verdict
    from tcpsbed.lab.qos.profile import Profile, Rule


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> ScenarioFile | None:
    """Takes files named `test_*.toml` that hold a `scenario`."""
    if file_path.suffix != ".toml" or not file_path.name.startswith("test_"):
        return None
    try:
        text = inputs.text(file_path, "a profile in TOML")
        if "scenario" not in inputs.toml(text):
            return None
    except (DataError, ValueError, RecursionError):
        return None
    from tcpsbed.lab.qos import profile

    found = profile.read(text, file_path)
    collected: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    collected.profile = found
    return collected


class ScenarioFile(pytest.File):
    """A profile with a scenario."""

    profile: Profile

    def collect(self) -> Iterator[pytest.Item]:
        """One test for each limit."""
        for rule in self.profile.rules:
            flow = rule.flow if rule.other is None else f"{rule.flow}-{rule.other}"
            item: Limit = Limit.from_parent(self, name=f"{flow}.{rule.metric}")
            item.rule = rule
            yield item
        for rule in self.profile.step:
            step: StepLimit = StepLimit.from_parent(self, name=f"step.{rule.metric}")
            step.rule = rule
            yield step

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the scenario's run came to."""
        from tcpsbed import scenarios
        from tcpsbed.runs import session

        scenario = scenarios.load(self.profile.scenario or "", self.profile.overrides)
        with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
            if session.execute(scenario, world="virtual", out=Path(folder)).stopped:
                raise KeyboardInterrupt
            return session.summary_of(Path(folder))

    @cached_property
    def responses(self) -> response.Figures:
        """What its loops' step responses came to."""
        from tcpsbed.lab.qos import response

        return response.figures(self.profile)


class Limit(pytest.Item):
    """A limit of a run."""

    rule: Rule
    parent: ScenarioFile

    def runtest(self) -> None:
        """Fails with the number that was found."""
        from tcpsbed.lab.qos import check
        from tcpsbed.lab.qos.profile import Profile

        only = Profile(self.parent.profile.name, "", (self.rule,))
        _fail(check.check(self.parent.summary, only))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A message for a missing number, flow or key, instead of a traceback."""
        known = isinstance(excinfo.value, TcpsbedError)
        return str(excinfo.value) if known else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where the limit is written."""
        return self.path, None, self.name


class StepLimit(Limit):
    """A limit of step responses."""

    def runtest(self) -> None:
        """Fails with the number that was found."""
        from tcpsbed.lab.qos import response

        _fail(response.verdicts(self.parent.responses, self.rule, self.parent.profile.runs))


def _fail(verdicts: list[Verdict]) -> None:
    broken = [str(one) for one in verdicts if not one.passed]
    if broken:
        pytest.fail("; ".join(broken), pytrace=False)
