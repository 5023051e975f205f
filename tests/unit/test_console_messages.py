"""Messages of browsers to the console: whatever comes is answered, obeyed or counted, and nothing raises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("websockets", reason="needs the extra console")

from tcpsbed.console.server import MOST_POINTS, POINT, Console

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=2), inner)
)
MESSAGES = st.fixed_dictionaries(
    {"k": st.sampled_from(["hand", "ping", "force"]) | VALUES},
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
    made.server.socket.close()
    made._close()


@given(
    message=st.binary(max_size=64) | st.text(max_size=64) | MESSAGES.map(json.dumps) | VALUES.map(json.dumps)
)
def test_any_message_is_answered_obeyed_or_counted(console: Console, message: str | bytes) -> None:
    before = console.refused
    answer = console._hear(message)
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
        '{"k": "ping", "t": "soon"}',
        '{"k": "ping", "t": ' + "9" * 5000 + "}",
    ],
)
def test_what_is_no_message_is_counted(console: Console, message: str) -> None:
    before = console.refused
    assert console._hear(message) is None
    assert console.refused == before + 1


def test_a_hand_is_bounded_and_a_ping_comes_back(console: Console, tmp_path: Path) -> None:
    before = console.refused
    assert console._hear('{"k": "hand", "p": [[1e300, 1e300, -1e300, 0, 1, 0]]}') is None
    answer = console._hear('{"k": "ping", "t": 5}')
    assert answer is not None and answer["t"] == 5.0
    assert console.refused == before
