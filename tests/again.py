"""Judges tests on the machine's clock, and with other programs, fairly: what fails beside load is made again.

Beside each of them a bare loop runs. Where such a test fails and the loop was late, or a run says that this machine cannot
simulate its network, it is made again, with whatever its module had measured; a machine that is never quiet can say
nothing, and the test is skipped. A test that fails while nothing disturbs it is made again once, and the first failure is
printed: a second one is final. What fails in the same words each time, or by its own words alone, fails in the end. What is
judged `in_time` is made again, and in the end skipped, where its own run says that it was disturbed.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

TRIES = 3
OVERLOADED = re.compile(r"behind the clock at [\d.]+ s|this machine cannot simulate")
"""A run's own words, also where the middle of them is left out: reason to try again, and none to give up."""
MOST_MS = 10.0
"""Stalls and lateness of a run up to this say nothing about its losses, counts and upper percentiles."""
DISTURBED = re.compile(r" stalled | late by | delayed by | emulation error .* \(p99|in its sockets")
"""A run's own words for a machine that does something else for a moment."""
NOT_JUDGED = "not judged: the run was disturbed: "
LOOP = """
import select, time
late, woken, longest_s = 0, 0, 0.0
print("runs", flush=True)
while True:
    begun = time.monotonic()
    if select.select([0], [], [], 0.001)[0]:
        break
    over_s = time.monotonic() - begun - 0.001
    woken, late, longest_s = woken + 1, late + (over_s > 0.001), max(longest_s, over_s)
if late > 0.01 * woken or longest_s > 0.02:
    print(f"a bare loop beside it was late {late} of {woken} times, by up to {longest_s * 1e3:.0f} ms")
"""
"""Sleeps a millisecond at a time until its input ends; a process of its own, which waits for no lock of an interpreter."""


@contextmanager
def in_time(said: Iterable[str], most_ms: float = MOST_MS) -> Iterator[None]:
    """Around what holds only where loops get their turn: losses, counts, upper percentiles. Medians, which a moment does
    not move, and what holds at any load stand outside. Where it does not hold and the run said (`disturbances`) that it was
    later than this, or that it lost datagrams in its sockets, the test is skipped in the run's words.
    """
    try:
        yield
    except AssertionError as failed:
        if late := [text for text in said if DISTURBED.search(text) and _most_ms(text) > most_ms]:
            first, _, _ = str(failed).partition("\n")
            pytest.skip(f"{NOT_JUDGED}{'; '.join(late)} ({first})")
        raise


def _most_ms(text: str) -> float:
    """The longest of the times in a text; without one, losses for want of room, it is as long as can be."""
    return max(map(float, re.findall(r"([\d.]+) ms", text)), default=math.inf)


class Witness:
    """A bare loop beside a test: how late it wakes up tells of the machine."""

    load = ""
    """What it saw, once it is through: "" where the machine was quiet."""

    def __enter__(self) -> Witness:
        self.process = subprocess.Popen(
            [sys.executable, "-IS", "-c", LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        self.load = self.process.communicate()[0].strip()


_WORDS = pytest.StashKey[list[str]]()
"""What the tries before failed with."""
_SEEN = pytest.StashKey[str]()
"""What the loop last saw in one of its tries; "" where the machine was quiet in all."""
_CALM = pytest.StashKey[bool]()
"""Whether it has failed while nothing disturbed it."""
_LOAD = pytest.StashKey[str]()
_TOLD = pytest.StashKey[list[str]]()


def _module(item: pytest.Function) -> pytest.Module | None:
    """The module of a test that takes what was made for the whole module, perhaps beside load."""
    taken = item._fixtureinfo.name2fixturedefs.values()
    return item.getparent(pytest.Module) if any(found[-1].scope == "module" for found in taken) else None


def _words(failed: pytest.TestReport) -> str:
    """What it failed with, or was skipped with."""
    if isinstance(failed.longrepr, tuple):
        return failed.longrepr[2]
    crash: Any = getattr(failed.longrepr, "reprcrash", None)
    return str(crash.message).strip() if crash else "it failed"


def _failed(report: pytest.TestReport) -> bool:
    """Whether it failed, or was not judged."""
    return report.failed or (report.skipped and NOT_JUDGED in str(report.longrepr))


def _why(failed: pytest.TestReport, load: str, stash: pytest.Stash) -> str:
    """Why a failure says nothing yet; "" if it does: also one that ran out of its time, which would again."""
    if failed.skipped:
        return _words(failed)
    if "from pytest-timeout" in failed.longreprtext:
        return ""
    if found := OVERLOADED.search(failed.longreprtext):
        load = load or f"it said: {found[0]}"
    if not load:
        load, stash[_CALM] = "" if stash.get(_CALM, False) else "failed once, undisturbed", True
    return load and f"{load} ({_words(failed).splitlines()[0]})"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Makes a test, and again as long as it fails beside load; only the last time is reported."""
    marks = {mark.name for mark in item.iter_markers()}
    if not isinstance(item, pytest.Function) or not marks & {"realtime", "interop"}:
        return None
    before = item.stash.setdefault(_WORDS, [])
    if not before:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    with Witness() as witness:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    load, module = witness.load, _module(item)
    if module is not None:
        load = module.stash[_LOAD] = load or module.stash.get(_LOAD, "")
    seen = item.stash[_SEEN] = load or item.stash.get(_SEEN, "")
    failed = next((report for report in reports if report.when != "teardown" and _failed(report)), None)
    if failed is not None and (why := _why(failed, load, item.stash)):
        told = item.config.stash.setdefault(_TOLD, [])
        before.append(_words(failed))
        if len(before) < TRIES:
            told.append(f"[again] {item.nodeid}: {why}")
            if module is not None:
                module.stash[_LOAD] = ""
                item.session._setupstate.teardown_exact(item.session)  # type: ignore[arg-type]
            # Through all hooks, so that the time limit of a test begins anew.
            return bool(item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem))
        told.append(f"[again] {item.nodeid}: given up: {why}")
        reason = _words(failed) if failed.skipped else ""
        if failed.failed and len(set(before)) > 1 and seen:
            reason = f"Skipped: the machine was too loaded to measure on, {TRIES} times: {seen}"
        if reason:
            failed.outcome, failed.longrepr = "skipped", (str(item.path), item.location[1], reason)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells what was made again, and why."""
    for line in terminalreporter.config.stash.get(_TOLD, []):
        terminalreporter.write_line(line)
