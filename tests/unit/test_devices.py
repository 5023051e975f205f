"""Operators' devices: recorded reports are understood, nonsense is counted and harmless, a device that is gone is silent."""

from __future__ import annotations

import json
import math
import os
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made import made

from tcpsbed import scenarios
from tcpsbed.devices import DEVICES
from tcpsbed.devices.evdev import EVENT, Evdev, EvdevReports
from tcpsbed.devices.inverse3 import Inverse3, Inverse3Force, Inverse3Reports, service
from tcpsbed.devices.spacemouse import SpaceMouse, SpaceMouseReports
from tcpsbed.errors import ConfigError, HookError

NONE = np.zeros(0)


def event(kind: int, code: int, value: int, at_s: float = 0.0) -> bytes:
    """An event as linux/input.h has it."""
    return EVENT.pack(int(at_s), int(at_s % 1 * 1e6), kind, code, value)


def report(at_s: float = 0.0) -> bytes:
    return event(0, 0, 0, at_s)


def called(device, t_ns: int = 5_000_000_000) -> np.ndarray:
    """What a device gives at a moment."""
    y = np.full(16, np.nan)
    return y[: device(t_ns, 0, None, NONE, y)]


def until(what, seconds: float = 10.0) -> None:
    """Waits for something to become true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


# --- evdev ---------------------------------------------------------------------------------------------------------


def test_a_mouse_moves_the_hand_and_its_left_button_turns_up_into_further():
    hand = EvdevReports(count=0.01)
    hand.take(event(2, 0, 20) + event(2, 1, -30))
    assert (hand.right, hand.up) == (0.0, 0.0), "nothing counts before its report"
    hand.take(report() + event(1, 0x110, 1) + report() + event(2, 1, -10) + event(2, 8, 1) + report())
    assert (hand.right, hand.up, hand.further) == pytest.approx((0.2, 0.3, 0.1))
    assert (hand.button, hand.wheel, hand.refused) == (1.0, 1.0, 0)


def test_absolute_axes_lie_between_their_ends():
    hand = EvdevReports(ends={0: (0, 1023), 1: (-128, 127)})
    hand.take(event(3, 0, 1023) + event(3, 1, 127) + report())
    assert (hand.right, hand.up) == (1.0, -1.0)
    hand.take(event(3, 0, 10**9) + event(3, 2, 5) + report())
    assert (hand.right, hand.further) == (1.0, 0.0), "bounded; an axis without ends says nothing"


def test_what_the_kernel_dropped_does_not_count():
    hand = EvdevReports(count=0.01)
    hand.take(event(2, 0, 5) + event(0, 3, 0) + event(2, 0, 7) + report() + event(2, 0, 1) + report())
    assert hand.right == pytest.approx(0.01)


def test_hostile_events_are_counted_and_change_nothing():
    hand = EvdevReports()
    bad = [
        event(0x20, 0, 0),
        event(2, 0x10, 1),
        event(1, 0x110, 3),
        event(1, 0x300, 1),
        event(2, 0, 2**31 - 1),
        event(0, 0x10, 0),
    ]
    hand.take(b"".join(bad) + report())
    assert hand.refused == len(bad)
    assert (hand.right, hand.up, hand.button) == (0.0, 0.0, 0.0)


@given(st.lists(st.binary(max_size=100), max_size=20))
@example([event(2, 0, 1)[:7], event(2, 0, 1)[7:] + report()])
def test_any_bytes_of_a_stream_leave_the_hand_within_bounds_however_they_are_cut(parts):
    hand, whole = EvdevReports(ends={0: (0, 255)}), EvdevReports(ends={0: (0, 255)})
    for part in parts:
        hand.take(part)
    whole.take(b"".join(parts))
    assert vars(hand) == vars(whole)
    assert max(abs(hand.right), abs(hand.up), abs(hand.further)) <= 1.0 and hand.button in (0.0, 1.0)
    hand.rest()
    assert hand.button == 0.0


def test_a_recording_plays_and_then_the_device_is_gone(tmp_path):
    path = tmp_path / "hand.evdev"
    moves = b"".join(event(2, 0, 100, 10 + i / 20) + report(10 + i / 20) for i in range(5))
    path.write_bytes(event(1, 0x110, 1, 10) + report(10) + moves)
    device = made(Evdev, path=str(path), rest=[0.3, 0.0, 0.2], reach=0.1)
    assert len(called(device, 1)) == 9 - 2
    until(lambda: device.reports.right >= 0.5)
    until(lambda: not device.line.present)
    assert device.reports.button == 0.0, "let go of"
    with pytest.raises(HookError, match=r"hand.evdev is gone \(0 reports refused\)"):
        called(device, 3_000_000_000)


def test_a_device_that_is_unplugged_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr("tcpsbed.devices.device.AGAIN_S", 2.0)
    path = tmp_path / "event5"
    os.mkfifo(path)
    first = os.open(path, os.O_RDWR)  # a reader beside ours, so that opening to write does not wait
    device = made(Evdev, path=str(path))
    device.line.start()
    os.write(first, event(1, 0x110, 1) + event(2, 0, 500) + report())
    until(lambda: device.reports.button == 1.0)
    assert called(device)[:5] == pytest.approx([0.0, -0.05, 0.0, 1.0, 0.0])
    os.close(first)
    until(lambda: not device.line.present)
    with pytest.raises(HookError, match="gone"):
        called(device, 9_000_000_000)
    again = os.open(path, os.O_RDWR)
    until(lambda: device.line.present)
    os.write(again, event(2, 0, -500) + report())
    until(lambda: device.reports.right == 0.0)
    assert called(device, 9_500_000_000)[3] == 0.0
    os.close(again)


def test_what_cannot_be_read_is_told_before_the_run(tmp_path):
    with pytest.raises(HookError, match="No such file"):
        made(Evdev, path=str(tmp_path / "event9"))
    (tmp_path / "empty").touch()
    for device in (Evdev, SpaceMouse):
        with pytest.raises(HookError, match="found no report"):
            made(device, path=str(tmp_path / "empty"))
    with pytest.raises(HookError, match="ends"):
        made(Evdev, path="/dev/null", ends=[[5, 5]])


# --- SpaceMouse ----------------------------------------------------------------------------------------------------


def test_the_cap_pushes_and_turns():
    """Recorded form of a SpaceNavigator: report 1 to 3; one of newer devices has all six axes in report 1."""
    cap = SpaceMouseReports()
    cap.take(struct.pack("<B3h", 1, 0, -350, 175))  # away from the user, half down
    cap.take(struct.pack("<B3h", 2, 0, 0, -350))  # anticlockwise from above
    cap.take(bytes([3, 2, 0]))
    assert cap.push.tolist() == [1.0, 0.0, -0.5] and cap.turn.tolist() == [0.0, 0.0, 1.0] and cap.buttons == 2
    cap.take(struct.pack("<B6h", 1, 350, 0, 0, 0, 0, 0))
    assert cap.push.tolist() == [0.0, -1.0, 0.0] and not cap.turn.any()
    cap.take(bytes([0x17, 100]))
    assert cap.refused == 0


@given(st.lists(st.binary(max_size=16), max_size=20))
@example([b"", b"\x01", bytes(7), b"\x02" + bytes(12), b"\x03", b"\x09\x00"])
def test_any_report_leaves_speeds_within_bounds(reports):
    cap = SpaceMouseReports()
    for content in reports:
        cap.take(content)
    assert np.abs(cap.push).max() <= 1.0 and np.abs(cap.turn).max() <= 1.0
    assert cap.refused <= len(reports)


def test_hostile_reports_are_counted():
    cap = SpaceMouseReports()
    for content in (
        b"",
        b"\x01",
        b"\x01" + bytes(7),
        b"\x02" + bytes(12),
        b"\x03",
        b"\x03" + bytes(9),
        b"\x09\x00",
    ):
        cap.take(content)
    assert cap.refused == 7 and not cap.push.any()


def test_a_recording_of_hid_recorder_moves_the_hand_within_its_reach(tmp_path):
    path = tmp_path / "cap.hid"
    push = "E: 000000.{:06d} 7 01 00 00 a2 fe 00 00\n"  # y = -350: to the front
    wrong = "E: 000000.000000 9 01 00\n"
    path.write_text(
        "D: 0\nR: 3 05 01 09\nN: SpaceNavigator\n"
        + wrong
        + "".join(push.format(i * 20_000) for i in range(40))
    )
    device = made(SpaceMouse, path=str(path), rest=[0.3, 0.0, 0.2], reach=0.02, speed_m_s=0.1)
    begun, places = time.monotonic_ns(), []
    with pytest.raises(HookError, match=r"cap\.hid is gone"):
        while time.monotonic_ns() < begun + 20_000_000_000:
            places.append(called(device, 1 + time.monotonic_ns() - begun))
            time.sleep(0.005)
    way = np.array([place[:3] for place in places])
    assert way[0, 0] == pytest.approx(0.3, abs=0.002) and way[-1, 0] == pytest.approx(0.32)
    assert (way[:, 1] == 0.0).all() and (np.diff(way[:, 0]) >= 0).all()
    assert places[-1][-1] == 1.0, "the wrong line was counted"
    assert not device.reports.push.any(), "gone: nobody pushes"


# --- Inverse3 ------------------------------------------------------------------------------------------------------


def state(
    x: float = 0.01, y: float = 0.02, z: float = 0.03, pressed: bool = False, device: str = "04A1"
) -> dict:
    """A message as the service's published examples have it."""
    return {
        "inverse3": [
            {
                "device_id": device,
                "state": {
                    "cursor_position": {"x": x, "y": y, "z": z},
                    "cursor_velocity": {"x": 0.0, "y": 0.0, "z": 0.0},
                },
            }
        ],
        "wireless_verse_grip": [
            {
                "device_id": "61548",
                "state": {
                    "orientation": {"x": 0.0, "y": 0.0, "z": 0.6, "w": 0.8},
                    "buttons": {"a": pressed, "b": False, "c": False},
                },
            }
        ],
    }


def without(message: dict, *keys) -> dict:
    """A message that lacks something."""
    changed = json.loads(json.dumps(message))
    here = changed
    for key in keys[:-1]:
        here = here[key]
    del here[keys[-1]]
    return changed


HOSTILE = [
    b"",
    b"\xff\xfe",
    b"[]",
    b"null",
    b'{"inverse3": []}',
    b'{"inverse3": 5}',
    b"[" * 50_000,
    json.dumps(without(state(), "inverse3", 0, "state", "cursor_position", "z")).encode(),
    json.dumps(without(state(), "inverse3", 0, "device_id")).encode(),
    json.dumps(state(x=math.nan)).encode(),
    json.dumps(state(x=1e9)).encode(),
    json.dumps(state(device="x" * 65)).encode(),
    json.dumps(without(state(), "wireless_verse_grip", 0, "state", "orientation", "w")).encode(),
]


def test_hostile_messages_are_counted_and_change_nothing():
    reports = Inverse3Reports()
    for content in HOSTILE:
        reports.take(content)
    assert reports.refused == len(HOSTILE)
    assert reports.device is None and not reports.cursor_m.any()


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["inverse3", "device_id", "state", "cursor_position", "x", "y", "z"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=12,
)


@given(st.one_of(st.binary(max_size=200), JSON.map(lambda value: json.dumps(value).encode())))
def test_any_message_is_taken_or_counted(content):
    reports = Inverse3Reports()
    reports.take(content)
    assert np.isfinite(reports.cursor_m).all()
    assert reports.refused == (reports.device is None)


class Server:
    """A stand-in for Haply's service: sends a state, and one more for each message, keeping what it is told."""

    def __init__(self, port: int = 0) -> None:
        sync = pytest.importorskip("websockets.sync.server", reason="needs the package websockets")
        self.told: list[dict] = []
        self.say = json.dumps(state())
        self.server = sync.serve(self._talk, "127.0.0.1", port)
        self.port = self.server.socket.getsockname()[1]
        self.lines: list = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _talk(self, line) -> None:
        self.lines.append(line)
        line.send(self.say)
        for message in line:
            self.told.append(json.loads(message))
            time.sleep(0.002)
            line.send(self.say)

    @property
    def forces(self) -> list[dict]:
        return [told["inverse3"][0]["commands"]["set_cursor_force"]["values"] for told in self.told]

    def stop(self) -> None:
        self.server.shutdown()
        for line in self.lines:
            line.close()


def test_the_hand_at_the_cursor_the_force_in_it_and_what_happens_when_the_service_goes():
    server = Server()
    address = f"ws://127.0.0.1:{server.port}"
    hand, felt = (
        made(Inverse3, address=address, rest=[0.3, 0.0, 0.2], scale=2.0),
        made(Inverse3Force, address=address, most_n=2.0),
    )
    assert hand.service is felt.service is service(address, "values")
    assert len(called(hand, 1)) == 0, "nothing before the first state"
    until(lambda: hand.service.present)
    values = called(hand)
    assert values[:3] == pytest.approx([0.3 + 2 * 0.02, -2 * 0.01, 0.2 + 2 * 0.03])
    assert values[6:].tolist() == [0.0, 0.0, 0.6, 0.8, 0.0]
    y = np.zeros(8)
    for _ in range(5):
        assert felt(0, 0, np.array([3.0, 4.0, 0.0]), NONE, y) == 3
        time.sleep(0.02)
    until(lambda: any(force["y"] for force in server.forces))
    strongest = max(server.forces, key=lambda force: math.hypot(*force.values()))
    # (3, 4, 0) N to the front and to the left is (-4, 3, 0) along the device's axes, of 5 N limited to 2 N
    assert list(strongest.values()) == pytest.approx([-1.6, 1.2, 0.0])
    assert server.told[-1]["inverse3"][0]["device_id"] == "04A1"
    until(lambda: server.forces[-1] == {"x": 0.0, "y": 0.0, "z": 0.0})  # a force that is not renewed fades
    at_ns = hand.service.at_ns
    server.say = "nonsense"  # it still answers: its device has been unplugged
    until(lambda: not hand.service.present)
    refused = hand.service.reports.refused
    assert refused > 0 and server.forces[-1] == {"x": 0.0, "y": 0.0, "z": 0.0}
    until(lambda: hand.service.reports.refused > refused)
    assert not hand.service.present and hand.service.at_ns < at_ns + 5_000_000_000, (
        "no new moment for an old place"
    )
    server.stop()
    with pytest.raises(HookError, match=r"inverse3.*gone"):
        called(hand, 9_000_000_000)
    again = Server(server.port)
    until(lambda: hand.service.present)
    hand.service.push(np.array([0.0, 0.0, 1.0]))
    hand.service.stop()
    assert again.forces[-1] == {"x": 0.0, "y": 0.0, "z": 0.0}, "the last word is no force"
    again.stop()


def test_axes_are_a_permutation_and_a_force_has_one_name():
    with pytest.raises(HookError, match="axes"):
        made(Inverse3, address="ws://localhost:1", axes=["x", "x", "z"])
    with pytest.raises(HookError, match="the same for one service"):
        made(Inverse3Force, address="ws://localhost:1", key="vector")


PARAMETERS = [
    (Inverse3Force, {"gain": "much"}, "gain"),
    (Inverse3Force, {"most_n": -1.0}, "most_n"),
    (Inverse3, {"rest": [0.0, 0.0]}, "rest"),
    (Evdev, {"path": "/dev/null", "reach": -0.1}, "reach"),
    (Evdev, {"path": "/dev/null", "ends": [[0]]}, "ends"),
    (SpaceMouse, {"path": "/dev/null", "dead": 1}, "dead"),
    (SpaceMouse, {"path": "/dev/null", "speed_m_s": "fast"}, "speed_m_s"),
]


@pytest.mark.parametrize(("device", "params", "name"), PARAMETERS)
def test_a_number_that_makes_no_sense_is_refused(device, params, name):
    with pytest.raises(HookError, match=rf"{name}: found .*; allowed: a "):
        made(device, **params)


@given(st.lists(st.floats(), min_size=3, max_size=3), st.floats(-1e300, 1e300), st.floats(0, 1e300))
@example([1e308, -1e308, 0.0], 1e10, 5.0)
@example([1e160, 1e160, 1e160], 1.0, 5.0)
@example([5e-324, 0.0, 0.0], 1.0, 1e300)
def test_what_is_felt_is_finite_and_bounded_whatever_comes(x, gain, most_n):
    pytest.importorskip("websockets", reason="needs the package websockets")
    felt = made(Inverse3Force, address="ws://localhost:1", gain=gain, most_n=most_n)
    with np.errstate(all="ignore"):
        felt(0, 0, np.array(x), NONE, np.zeros(3))
    assert np.isfinite(felt.service.force_n).all()
    assert math.hypot(*felt.service.force_n) <= most_n * (1 + 1e-9)


# --- in a scenario -------------------------------------------------------------------------------------------------


def scenario(folder: Path, run: str, params: str) -> scenarios.Scenario:
    """A hand on a device, and an arm."""
    (folder / "own.toml").write_text(
        "[components]\ntactile-operator = 'desk'\nss-embsys = 'field'\n"
        "tactile-teleoperator = { node = 'field', robot = 'arm' }\n"
        "[flows.kinematic]\nrate = '500 Hz'\nsample = '48 B'\ncodec = 'f64'\n"
        f"[hooks.kinematics]\nrun = '{run}'\nat = 'tactile-operator'\nparams = {params}\n"
    )
    return scenarios.load(folder / "own.toml")


def test_devices_are_named_in_scenarios_and_their_files_looked_for_beside_them(tmp_path):
    (tmp_path / "hand.evdev").write_bytes(report())
    plan = scenarios.check(scenario(tmp_path, "evdev", "{ path = 'hand.evdev' }"))
    run = plan["flows"][0]["path"][0]["steps"][0]["run"]
    assert (run["name"], run["symbol"]) == DEVICES["evdev"]
    assert run["params"]["path"] == str(tmp_path / "hand.evdev")
    with pytest.raises(ConfigError, match=r"kinematics.*No such file"):
        scenarios.check(scenario(tmp_path, "spacemouse", "{ path = '/dev/hidraw99' }"))


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ("{ path = 'hand.evdev', reach = -1 }", r"params\.reach: found -1; allowed: a number from 0 on"),
        (
            "{ path = 'hand.evdev', rest = [0, 0] }",
            r"params\.rest: found \[0,0\]; allowed: a list of 3, each a number",
        ),
        (
            "{ path = 'hand.evdev', rech = 1 }",
            r'params: found "rech", which is not a parameter of Evdev.*did you mean reach',
        ),
        ("{ reach = 1 }", r'params: found no parameter "path"; allowed: text in quotes'),
    ],
)
def test_parameters_of_a_device_are_checked_by_its_table(tmp_path, params, says):
    (tmp_path / "hand.evdev").write_bytes(report())
    with pytest.raises(ConfigError, match=says):
        scenarios.check(scenario(tmp_path, "evdev", params))
