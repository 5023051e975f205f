"""Who may look, steer and move the hand at a page, with clients that want more than they may."""

from __future__ import annotations

import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("websockets", reason="needs the extra studio")
pytest.importorskip("cryptography", reason="needs the extra studio")

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync import client

from tcpsbed.console.hooks import Hand
from tcpsbed.console.server import Console
from tcpsbed.media.line import VARIABLE
from tcpsbed.studio import limits, site
from tcpsbed.studio.certificate import own_addresses
from tcpsbed.studio.limits import Bucket, ByAddress
from tcpsbed.studio.listening import Listening, listening
from tcpsbed.studio.server import Studio

PUSH = json.dumps({"k": "hand", "p": [[0.0, 0.5, 0.0, 0.0, 1.0, 0.0]]})
PULL = json.dumps({"k": "hand", "p": [[0.0, -0.5, 0.0, 0.0, 0.0, 0.0]]})
EVENT = json.dumps({"k": "event", "id": "1", "event": {"link": "l1", "delay": "5 ms"}})


class Served:
    """A page with an operator's pane and a hook that has its hand."""

    def __init__(self, where: Listening, folder: Path) -> None:
        self.console = Console(folder)
        self.studio = Studio(where, folder / "run", (), self.console)
        self.hand = Hand(reach=1.0)
        self.tls = None
        if where.certificate:
            self.tls = ssl.create_default_context(cafile=str(where.certificate))
        self.base = f"{self.studio.listening.scheme}://{where.host}:{self.studio.port}"
        self.opened = ExitStack()

    def connect(self, path: str, token: str | None = None, more: str = "", **keys: Any) -> Any:
        """A WebSocket, as whoever has this token (absent: that of those who steer)."""
        token = self.studio.token if token is None else token
        address = f"{self.base.replace('http', 'ws', 1)}{path}?token={token}{more}"
        return self.opened.enter_context(client.connect(address, ssl=self.tls, close_timeout=0.2, **keys))

    def page(self, name: str) -> tuple[Any, Any]:
        """Both WebSockets of a page that steers: its words and its hand, which come in this order."""
        before = self.studio.viewers.changes
        words = self.connect("/live", more=f"&viewer={name}&page=of-{name}")
        becomes(lambda: self.studio.viewers.changes > before)
        return words, self.connect("/ws", more=f"&page=of-{name}")

    def get(self, path: str) -> tuple[int, Any]:
        """Status and headers of an answer."""
        try:
            with urllib.request.urlopen(self.base + path, timeout=10, context=self.tls) as got:
                return got.status, got.headers
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers

    def right(self) -> float:
        """Where the hook has the hand, from the middle to the right edge; none: there are no commands."""
        y = np.zeros(16)
        return -float(y[1]) if self.hand(10_000_000_000, 0, None, np.zeros(0), y) else float("nan")

    def stop(self) -> None:
        self.opened.close()
        self.studio.stop()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder and a console of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture(params=["plain", "tls"])
def served(request: Any, own: Path) -> Iterator[Served]:
    """A page on loopback, as it is by default and under TLS."""
    where = Listening()
    if request.param == "tls":
        file = listening("0.0.0.0", 0, None, None).certificate if own_addresses() else None
        if file is None:
            pytest.skip("this machine has no address but loopback")
        where = listening(None, 0, file, file)
    made = Served(where, own)
    made.studio.start()
    yield made
    made.stop()


def becomes(holds: Callable[[], Any], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.01)


def told(line: Any, kind: str, **keys: Any) -> dict[str, Any]:
    """The next message of a kind with these values."""
    while True:
        found: dict[str, Any] = json.loads(line.recv(timeout=10))
        if found["k"] == kind and keys.items() <= found.items():
            return found


def test_who_lacks_the_token_gets_nothing_and_is_slowed_down(served: Served) -> None:
    wrong = [None, "", "x", "é", served.studio.token[:-1], served.studio.token + "a"]
    for path in ("/", "/all.json", "/scenario.toml", "/report"):
        assert served.get(f"{path}?token=x")[0] == 403
    for token in wrong:
        with pytest.raises(InvalidStatus, match="403"):
            served.connect("/live", token or "")
    assert {served.get("/?token=x")[0] for _ in range(40)} == {403, 429}
    assert served.get(f"/?token={served.studio.token}")[0] == 200, "who knows it is not held up by that"
    assert served.studio.refused()["requests without the right token"] >= 40 + len(wrong)


@pytest.mark.parametrize(
    "asked, reason",
    [("x" * 20_000, "is a table"), (None, "is a table"), ({"name": "x" * 20_000}, "10000 characters")],
)
def test_an_event_of_another_form_or_length_is_answered(served: Served, asked: Any, reason: str) -> None:
    words, _ = served.page("one")
    words.send(json.dumps({"k": "event", "id": "1", "event": asked}))
    answer = told(words, "asked", id="1")
    assert reason in answer["refused"] and len(json.dumps(answer)) < 1000


def test_a_page_of_another_site_is_refused_at_every_socket(served: Served) -> None:
    ours = f"{served.studio.listening.scheme}://127.0.0.1:{served.studio.port}"
    others = ["http://evil.example", "null", ours + "1", ours.replace("127.0.0.1", "127.0.0.1.evil.example")]
    others.append(ours.replace("http", "https") if "https" not in ours else ours.replace("https", "http"))
    for path in ("/live", "/ws", "/pictures", "/near"):
        for origin in others:
            with pytest.raises(InvalidStatus, match="403"):
                served.connect(path, origin=origin)
    served.connect("/live", origin=ours)
    assert served.studio.refused()["requests of other pages"] == 4 * len(others)


def test_one_viewer_moves_the_hand_until_it_hands_it_over(served: Served) -> None:
    words, hand = served.page("first")
    assert told(words, "viewers")["steers"] == 1, "of a run with an operator the first has control"
    told(hand, "control", mine=True)
    hand.send(PUSH)
    becomes(lambda: served.right() == 0.5)
    others, second = served.page("second")
    told(second, "control", mine=False)
    second.send(PULL)
    second.send(json.dumps({"k": "head", "p": [[0.0] * 8]}))
    second.send(json.dumps({"k": "mark", "p": [[0.0] * 5]}))
    becomes(lambda: served.studio.refused().get("messages of viewers who do not steer") == 3)
    assert served.right() == 0.5
    others.send(EVENT)
    assert told(others, "asked")["refused"] == "viewer 1 steers"
    others.send(json.dumps({"k": "give", "to": 2}))
    others.send(json.dumps({"k": "ask"}))
    told(words, "viewers", asking=[2])
    assert served.right() == 0.5, "asking is not getting"
    words.send(json.dumps({"k": "give", "to": 2}))
    told(second, "control", mine=True)
    told(hand, "control", mine=False)
    hand.send(PUSH)
    second.send(PULL)
    becomes(lambda: served.right() == -0.5)
    hand.send(PUSH)
    becomes(lambda: served.studio.refused()["messages of viewers who do not steer"] == 5)
    assert served.right() == -0.5


def test_a_hand_that_is_let_go_of_sends_no_commands_and_no_movement_takes_it(served: Served) -> None:
    words, hand = served.page("first")
    hand.send(PUSH)
    becomes(lambda: served.right() == 0.5)
    others, second = served.page("second")
    told(others, "viewers", here=[1, 2])
    words.send(json.dumps({"k": "give", "to": None}))
    becomes(lambda: np.isnan(served.right()))
    for line in (hand, second):
        line.send(PULL)
    becomes(lambda: served.studio.refused().get("messages of viewers who do not steer") == 2)
    third, _ = served.page("third")
    assert told(third, "viewers")["steers"] is None, "who comes later does not get it by coming"
    assert np.isnan(served.right())
    others.send(json.dumps({"k": "ask"}))
    told(others, "viewers", steers=2)
    second.send(PULL)
    becomes(lambda: served.right() == -0.5)


def test_the_commands_end_with_the_page_that_steers_though_others_are_open(served: Served) -> None:
    words, hand = served.page("first")
    others, second = served.page("second")
    watching = served.connect("/ws", served.studio.watch_token)
    hand.send(PUSH)
    becomes(lambda: served.right() == 0.5)
    words.close()
    hand.close()
    becomes(lambda: np.isnan(served.right()))
    for line in (second, watching):
        line.send(json.dumps({"k": "ping", "t": 1.0}))
        told(line, "pong")
    second.send(PULL)
    time.sleep(0.3)
    assert np.isnan(served.right()), "neither a ping nor a movement takes control"
    again, back = served.page("first")
    told(again, "viewers", you=1, steers=1)
    back.send(PUSH)
    becomes(lambda: served.right() == 0.5)
    assert others


def test_a_page_that_connects_again_keeps_control_though_its_old_connection_is_not_known_to_be_dead(
    served: Served,
) -> None:
    old, hand = served.page("first")
    served.page("second")
    becomes(lambda: served.studio.viewers.here == {1, 2})
    again = served.connect("/live", more="&viewer=first&page=of-first")
    assert told(again, "viewers")["you"] == 1 == served.studio.viewers.steers
    old.close()
    becomes(lambda: len(served.studio.numbers) == 4)
    hand.send(PUSH)
    becomes(lambda: served.right() == 0.5)
    assert served.studio.viewers.here == {1, 2}


def test_a_reload_that_is_quicker_than_the_end_of_the_old_page_keeps_control(served: Served) -> None:
    old, _ = served.page("first")
    served.page("second")
    becomes(lambda: served.studio.viewers.here == {1, 2})
    new = served.connect("/live", more="&viewer=first&page=another")
    assert told(new, "viewers")["you"] == 3
    old.close()
    becomes(lambda: served.studio.viewers.steers == 3)


def test_the_step_of_the_tour_is_that_of_whoever_steers(served: Served) -> None:
    words, _ = served.page("first")
    other, _ = served.page("second")
    other.send(json.dumps({"k": "step", "n": 4}))
    words.send(json.dumps({"k": "step", "n": "two"}))
    words.send('{"k": "step", "n": 1e999}')
    words.send(json.dumps({"k": "step", "n": 2}))
    watching = served.connect("/live", served.studio.watch_token)
    assert told(watching, "viewers", step=2)["you"] is None
    assert told(other, "viewers", step=2)["steers"] == 1
    assert served.studio.viewers.step == 2


def test_a_silent_page_loses_control_to_the_next_who_asks(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcpsbed.console.presence.SILENT_S", 0.3)
    words, hand = served.page("first")
    hand.send(PUSH)
    becomes(lambda: np.isnan(served.right()))
    others, second = served.page("second")
    second.send(PULL)
    others.send(json.dumps({"k": "ask"}))
    told(others, "viewers", steers=2)
    second.send(PULL)
    becomes(lambda: served.right() == -0.5)
    assert words


def test_the_other_address_shows_everything_and_changes_nothing(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    words, hand = served.page("first")
    hand.send(PUSH)
    becomes(lambda: served.right() == 0.5)
    token = served.studio.watch_token
    assert token in served.studio.watch and served.studio.token not in served.studio.watch
    assert served.get(f"/?token={token}")[0] == 200
    live, moves = (
        served.connect("/live", token, "&viewer=first&page=of-first"),
        served.connect("/ws", token, "&page=of-first"),
    )
    seen = told(live, "viewers")
    assert (seen["you"], seen["here"], seen["steers"]) == (None, [1], 1)
    told(words, "viewers", watching=1)
    assert not told(moves, "control")["mine"]
    for text in (EVENT, '{"k": "ask"}', '{"k": "give", "to": null}', '{"k": "keep"}'):
        live.send(text)
    for text in (PULL, '{"k": "study", "n": 1, "do": "go"}'):
        moves.send(text)
    becomes(lambda: served.studio.refused().get("messages of viewers who only watch") == 4)
    becomes(lambda: served.studio.refused().get("messages of viewers who do not steer") == 2)
    assert served.right() == 0.5 and capfd.readouterr().out == "", "no event goes to the run"
    words.send(json.dumps({"k": "give", "to": None}))
    told(live, "viewers", steers=None)
    live.send('{"k": "ask"}')
    moves.send(PULL)
    becomes(lambda: np.isnan(served.right()))
    time.sleep(0.3)
    assert np.isnan(served.right()) and served.studio.viewers.steers is None


def test_those_who_watch_leave_room_for_those_who_steer(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "MOST_WATCHING", 3)
    for _ in range(3):
        served.connect("/live", served.studio.watch_token)
    becomes(lambda: served.studio.watching == 3)
    with pytest.raises(InvalidStatus, match="503"):
        served.connect("/pictures", served.studio.watch_token)
    served.page("first")


def flood(line: Any, message: str | bytes, times: int) -> None:
    with suppress(ConnectionClosed):
        for _ in range(times):
            line.send(message)


@pytest.mark.parametrize("watches", [True, False])
def test_a_flood_of_messages_is_dropped_counted_and_cut_off(served: Served, watches: bool) -> None:
    words, hand = served.page("first")
    hand.send(PUSH)
    line = served.connect("/live", served.studio.watch_token if watches else None)
    flood(line, '{"k": "keep"}', 5000)
    with pytest.raises(ConnectionClosed):
        while True:
            line.recv(timeout=10)
    refused = served.studio.refused()
    within = site.WATCHING if watches else site.WORDS
    assert within.at_once / 2 < refused[limits.MESSAGES] < 3 * within.at_once, (
        "what is over, until it is cut off"
    )
    assert refused["connections that sent too much"] == 1
    assert told(words, "refused")["counts"][limits.MESSAGES] > 0, "the others see it"
    assert served.right() == 0.5


def test_pings_and_pieces_of_a_message_count_too(served: Served) -> None:
    """`websockets` itself answers each ping, and keeps each piece until a message is whole: also empty ones."""
    for each in ("ping", "piece"):
        line = served.connect("/live", served.studio.watch_token)
        with suppress(ConnectionClosed, OSError):
            if each == "ping":
                for _ in range(3000):
                    line.ping()
            else:
                line.send("" for _ in range(3000))
        with pytest.raises(ConnectionClosed):
            while True:
                line.recv(timeout=10)
    assert served.studio.refused()["connections that sent too much"] == 2


def test_a_huge_frame_ends_its_connection(served: Served) -> None:
    line = served.connect("/ws")
    with pytest.raises(ConnectionClosed) as closed:
        line.send("x" * (site.MOST_BYTES + 1))
        while True:
            line.recv(timeout=10)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


def test_a_mouse_with_a_thousand_movements_a_second_is_not_over_the_limit(served: Served) -> None:
    words, hand = served.page("first")
    begun = time.monotonic()
    for number in range(1500):
        hand.send(PUSH)
        time.sleep(max(begun + number / 1000 - time.monotonic(), 0.0))
    becomes(lambda: served.right() == 0.5)
    assert served.studio.refused() == {} and words


def test_who_does_not_finish_a_greeting_is_hung_up_on(served: Served) -> None:
    """Half a request; under TLS half a handshake, and one that is no TLS, too."""
    place = ("127.0.0.1", served.studio.port)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    crowd = [socket.create_connection(place, timeout=10) for _ in range(12)]
    for number, one in enumerate(crowd):
        one.sendall((b"", hello, b"GET / HT")[number % 3])
    begun = time.monotonic()
    for one in crowd:
        with suppress(ConnectionError):
            while one.recv(4096):
                pass
        one.close()
    assert time.monotonic() - begun < site.MOST_GREETING_S + 2
    assert served.get(f"/?token={served.studio.token}")[0] == 200


def test_one_address_never_has_all_connections(served: Served) -> None:
    place = ("127.0.0.1", served.studio.port)
    crowd = [socket.create_connection(place, timeout=10) for _ in range(site.MOST_OF_ADDRESS + 20)]
    becomes(lambda: served.studio.refused().get("connections over the limit", 0) >= 20)
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.2", 0))
        other.settimeout(10)
        other.connect(place)
        line = served.tls.wrap_socket(other, server_hostname="127.0.0.1") if served.tls else other
        line.sendall(f"GET /?token={served.studio.token} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert line.recv(15) == b"HTTP/1.1 200 OK"
        line.close()
    for one in crowd:
        one.close()


def test_a_reader_that_takes_nothing_is_hung_up_on_and_holds_little(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "STUCK_S", 1.0)
    made = Served(Listening(), own)
    made.studio.start()
    try:
        made.studio.messages = [json.dumps({"k": "x", "text": "y" * (1 << 20)}) for _ in range(64)]
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        line.connect(("127.0.0.1", made.studio.port))
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        line.sendall(
            f"GET /live?token={made.studio.token} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert line.recv(12) == b"HTTP/1.1 101"
        becomes(lambda: made.studio.viewers.here == {1})
        (held,) = made.studio.numbers
        assert held.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 2 * site.SEND_BYTES
        becomes(lambda: made.studio.viewers.here == set(), 15)
        line.close()
    finally:
        made.stop()


def test_pages_carry_a_policy_without_inline_styles_and_tell_nobody_their_address(served: Served) -> None:
    _, headers = served.get(f"/?token={served.studio.token}")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert {"default-src 'none'", "frame-ancestors 'none'", "style-src 'self'"} <= set(
        headers["Content-Security-Policy"].split("; ")
    )
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert served.get("/?token=x")[1]["Referrer-Policy"] == "no-referrer"


def test_an_address_that_is_none_ends_no_server(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    for path in ("//[", "/%ff?token=%ff", "/live?token=\u00e9".encode().decode("latin-1"), "/" + "a" * 9000):
        with closing(socket.create_connection(("127.0.0.1", served.studio.port), timeout=10)) as raw:
            line = served.tls.wrap_socket(raw, server_hostname="127.0.0.1") if served.tls else raw
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode("latin-1"))
            with suppress(ConnectionError):
                assert line.recv(15)[9:10] in (b"4", b"")
    assert served.get(f"/?token={served.studio.token}")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_bucket_pays_back_what_it_owes() -> None:
    bucket = Bucket(0.0, 3.0)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]
    assert not bucket.flooded
    bucket.take(), bucket.take()
    assert bucket.flooded
    bucket.seen_s -= 10.0
    bucket.rate = 1.0
    assert bucket.take() and bucket.left == pytest.approx(2.0, abs=0.1)


def test_addresses_have_buckets_of_their_own_and_networks_of_ipv6_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_ADDRESSES", 3)
    paces = ByAddress(0.0, 1.0)
    assert paces.take("192.0.2.1") and not paces.take("::ffff:192.0.2.1")
    assert paces.take("2001:db8::1") and not paces.take("2001:db8::ffff:1") and paces.take("2001:db8:0:1::1")
    for number in range(9):
        paces.take(f"192.0.2.{number}")
    assert len(paces.buckets) == 3
