"""An operator who goes away gives no commands; one who comes back finds the hand where it was, with its button up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

pytest.importorskip("websockets", reason="needs the extra console")

from tcpsbed.console import presence
from tcpsbed.console.hooks import Hand, Head, Mark
from tcpsbed.console.server import Console
from tcpsbed.media.line import VARIABLE

BROWSER, OTHER = object(), object()
PUSH = json.dumps({"k": "hand", "p": [[0.0, 0.5, -0.5, 0.25, 1.0, 3.0]]})
POSE = json.dumps({"k": "head", "p": [[0.0, 0.0, 1.6, 0.0, 0.0, 0.0, 0.0, 1.0]]})


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    """A console that a run finds."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    made = Console(tmp_path)
    made.address = "http://127.0.0.1:4711/?token=a"
    yield made
    made.stop()


def called(hook: Hand | Head | Mark) -> list[float]:
    """What a hook gives out."""
    y = np.zeros(16)
    return y[: hook(10_000_000_000, 0, None, np.zeros(0), y)].tolist()


def test_a_hand_rests_before_the_first_browser_and_is_away_after_the_last(console: Console) -> None:
    hand, head, told = Hand(reach=1.0), Head(), []
    console.told = told.append
    assert called(hand)[:5] == [0, 0, 0, 0, 0], "nobody has been there: it rests"
    console.presence.heard(BROWSER)
    console._hear(PUSH, BROWSER)
    console._hear(POSE, BROWSER)
    pushing = called(hand)
    assert pushing[:5] == [0.25, -0.5, -0.5, 1, 3] and len(called(head)) == 8
    console.presence.heard(OTHER)
    console.presence.left(OTHER)
    assert called(hand)[:5] == pushing[:5], "another browser is still there"
    console.presence.left(BROWSER)
    assert called(hand) == [] and called(head) == []
    assert len(told) == 1 and "the browser disconnected" in told[0] and console.address in told[0]
    console.presence.heard(BROWSER)
    assert called(hand)[:5] == [0.25, -0.5, -0.5, 0, 3], "where it was, its button up"
    assert called(head) == [], "until the headset says something"


def test_a_mark_is_given_as_shares_of_the_picture(console: Console) -> None:
    mark = Mark()
    assert called(mark) == [], "nothing is marked"
    console.presence.heard(BROWSER)
    console._hear('{"k": "mark", "p": [[0, 0.25, 0.5, 2.0, -1.0]]}', BROWSER)
    assert called(mark)[:4] == [0.25, 0.5, 1.0, 0.0]
    before = console.refused
    console._hear('{"k": "mark", "p": [[0, 0.25, 0.5]]}', BROWSER)
    assert console.refused == before + 1 and called(mark)[:2] == [0.25, 0.5]


def test_a_browser_that_says_nothing_is_away_until_it_does(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = Hand()
    console.presence.heard(BROWSER)
    console._hear(PUSH, BROWSER)
    assert not console.presence.look()
    monkeypatch.setattr(presence, "SILENT_S", -1.0)
    assert console.presence.look() and called(hand) == []
    console._hear('{"k": "ping", "t": 1}', BROWSER)
    assert len(called(hand)) == 6


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_the_arm_stops_also_where_nobody_can_be_told(console: Console, error: type[Exception]) -> None:
    hand = Hand()
    console.presence.heard(BROWSER)
    console._hear(PUSH, BROWSER)

    def told(_: str) -> None:
        raise error("closed")

    console.told = told
    console.presence.left(BROWSER)
    assert called(hand) == []
    console.presence.heard(BROWSER)
    assert len(called(hand)) == 6


def test_a_look_never_sends_an_operator_away_who_has_come_back(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one thread says that nobody is there, no other thread can have said that somebody is."""
    hand, leave, comes = Hand(), console._leave, Event()
    console.presence.heard(BROWSER)
    console.presence.left(BROWSER)
    comer = Thread(target=lambda: (comes.wait(10), console.presence.heard(BROWSER)))
    comer.start()

    def slow() -> None:
        comes.set()
        comer.join(0.2)
        leave()

    monkeypatch.setattr(console.presence, "still_away", slow)
    assert console.presence.look()
    comer.join(10)
    assert not console.presence.away and len(called(hand)) == 6


def test_a_run_that_begins_while_nobody_is_there_any_more_is_told(console: Console) -> None:
    console.presence.heard(BROWSER)
    console.presence.left(BROWSER)
    hand = Hand()
    assert len(called(hand)) == 6
    assert console.presence.look()  # as it does every LOOK_S
    assert called(hand) == []
