"""A request to end may come at any moment, also in the middle of another one (`timeout` sends two)."""

from __future__ import annotations

import itertools
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

from tcpsbed import interrupts
from tcpsbed.cli.app import app
from tcpsbed.runs import forecast


@pytest.mark.timeout(20)
@pytest.mark.parametrize("moment", range(25))
def test_a_request_in_the_middle_of_a_request_waits_for_nothing(moment: int) -> None:
    """The second one comes when so many lines of the handler, and of what it calls, have run."""
    usual: list[int] = []
    passed = itertools.count()

    def again(_frame: FrameType, _event: str, _value: object) -> Any:
        if next(passed) == moment:
            signal.raise_signal(signal.SIGTERM)
        return again

    before = signal.signal(signal.SIGTERM, lambda number, _frame: usual.append(number))
    traced = sys.gettrace()
    try:
        with interrupts.interrupts() as stop:
            sys.settrace(again)
            signal.raise_signal(signal.SIGTERM)
            sys.settrace(traced)
            assert stop.asked and len(usual) <= 1
    finally:
        sys.settrace(traced)
        signal.signal(signal.SIGTERM, before)


def test_stopped_before_the_run_it_says_that_nothing_was_recorded(
    shipped_scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forecast, "ask", stopped)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["run", str(shipped_scenarios / "quickstart.toml"), "--out", str(out)])
    assert (done.exit_code, done.stderr) == (
        130,
        "tcpsbed: stopped before the run began: nothing was recorded\n",
    )
    assert not out.exists()
