"""Messages of browsers to the console: whatever comes is answered, obeyed or counted, and nothing raises."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("websockets", reason="needs the extra console")

from tcpsbed.console.hooks import PER_FORCE, Feel
from tcpsbed.console.server import MOST_POINTS, POINT, Console
from tcpsbed.errors import HookError
from tcpsbed.media.line import FELT, HEAD, VARIABLE
from tcpsbed.studio.listening import Listening
from tcpsbed.studio.site import MOST_GREETING_S, MOST_OF_ADDRESS
from tcpsbed.studio.subject import Subject

BROWSER = object()
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=2), inner)
)
MESSAGES = st.fixed_dictionaries(
    {"k": st.sampled_from(["hand", "head", "mark", "ping", "force"]) | VALUES},
    optional={
        "p": st.lists(st.lists(LEAVES, min_size=POINT, max_size=POINT), max_size=3) | VALUES,
        "t": VALUES,
    },
)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console that serves nobody."""
    made = Console(tmp_path_factory.mktemp("console"))
    yield made
    made.stop()


@given(
    message=st.binary(max_size=64) | st.text(max_size=64) | MESSAGES.map(json.dumps) | VALUES.map(json.dumps)
)
def test_any_message_is_answered_obeyed_or_counted(console: Console, message: str | bytes) -> None:
    before = console.refused
    answer = console._hear(message, BROWSER)
    assert console.refused - before in ((0,) if answer else (0, 1))
    assert answer is None or set(answer) == {"k", "t", "s", "took"}


@pytest.mark.parametrize(
    "message",
    [
        "",
        "[" * 100_000,
        '{"k": "hand"}',
        '{"k": "hand", "p": []}',
        json.dumps({"k": "hand", "p": [[0.0] * POINT] * (MOST_POINTS + 1)}),
        '{"k": "hand", "p": [[0, NaN, 0, 0, 0, 0]]}',
        '{"k": "hand", "p": [[0, 0, 0, 0, 0]]}',
        '{"k": "hand", "p": [[0, true, 0, 0, 0, 0]]}',
        '{"k": "ping", "t": "soon"}',
        '{"k": "ping", "t": ' + "9" * 5000 + "}",
    ],
)
def test_what_is_no_message_is_counted(console: Console, message: str) -> None:
    before = console.refused
    assert console._hear(message, BROWSER) is None
    assert console.refused == before + 1


def test_a_hand_is_bounded_and_a_ping_comes_back(console: Console, tmp_path: Path) -> None:
    before = console.refused
    assert console._hear('{"k": "hand", "p": [[1e300, 1e300, -1e300, 0, 1, 0]]}', BROWSER) is None
    answer = console._hear('{"k": "ping", "t": 5}', BROWSER)
    assert answer is not None and answer["t"] == 5.0
    assert console.refused == before


@pytest.fixture
def felt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    """A console that a hook `Feel` talks to."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    made = Console(tmp_path)
    made.line.settimeout(5)
    yield made
    made.stop()


def test_a_force_says_what_it_was_predicted_from(felt: Console) -> None:
    """The mark of the predictive display becomes the age of the newest force that came."""
    feel, y = Feel(force=[1, 0], mark=2), np.zeros(3)
    told = []
    for ms in range(0, 100, PER_FORCE):
        x = np.array([4.0, 3.0, float(ms > 30)])
        assert feel(ms * 1_000_000, ms, x, np.zeros(0), y) == 3 and np.array_equal(y, x)
        told.append(FELT.unpack_from(felt.line.recv(256), HEAD.size))
    assert {force[:3] for force in told} == {(3.0, 4.0, 0.0)}
    ages = [force[3] for force in told]
    assert np.isnan(ages[:2]).all() and ages[2:] == [20.0, 40.0, 60.0]


@pytest.mark.parametrize("given", [{"force": []}, {"force": [0, 1, 2, 3]}, {"mark": -1}, {"force": [0.5]}])
def test_numbers_of_values_that_cannot_be_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(HookError, match="Feel: found force"):
        Feel(**given)


def test_a_crowd_that_says_nothing_takes_few_threads_and_makes_room_soon(tmp_path: Path) -> None:
    page = Subject(Listening(), Console(tmp_path))
    page.start()
    before, crowd = threading.active_count(), []
    try:
        for _ in range(300):
            crowd.append(socket.create_connection(("127.0.0.1", page.port), timeout=5))
            with suppress(OSError):  # hung up on
                crowd[-1].send(b"GET / HT")
        time.sleep(0.5)
        assert threading.active_count() - before <= 3 * MOST_OF_ADDRESS
        time.sleep(MOST_GREETING_S)
        with urlopen(page.address, timeout=5) as got:
            assert got.status == 200
    finally:
        for one in crowd:
            one.close()
        page.stop()
