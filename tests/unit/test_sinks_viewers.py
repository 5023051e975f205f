"""Sinks for viewers: what Foxglove's app, readers of MCAP and Rerun get of a run."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_sinks import played

import tcpsbed
from tcpsbed import shipped
from tcpsbed.analysis import signals
from tcpsbed.errors import TcpsbedError
from tcpsbed.studio import sinks
from tcpsbed.studio.collector import ROW
from tcpsbed.studio.sinks import running, values

SCENARIO = """
name = "touch"
duration = "3 s"
[components]
tactile-operator = "a"
ss-com = "b"
tactile-teleoperator = { node = "b", robot = "arm" }
[hooks]
inverse_kinematics = { run = "arm3", at = "ss-com" }
[flows.kinematic]
rate = "1 kHz"
source = { recording = "builtin:hand" }
[hooks.kinematics]
run = "imu_wrist"
at = "tactile-operator"
[flows.haptic]
rate = "1 kHz"
source = "robot"
sample = "56 B"
[links.l1]
from = "a"
to = "b"
delay = "5 ms"
rate = "4 Mbit/s"
[measure]
queues = "10 ms"
signals = ["tactile-operator.exit", "ss-com.exit", "tactile-teleoperator.sense"]
[[events]]
at = "1 s"
link = "l1"
delay = "20 ms"
name = "l1 gets slow"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tcpsbed.run(SCENARIO, out=tmp_path_factory.mktemp("viewers") / "run")


def test_places_of_hand_and_tool_are_known_and_angles_are_none(run: Any) -> None:
    plan = json.loads((run.folder / "plan.json").read_text())
    found = {point.name: (point.at, point.force) for point in values.points(plan)}
    assert found == {
        "tactile-operator.exit": (0, None),
        "ss-com.exit": (None, None),
        "tactile-teleoperator.sense": (3, 0),
    }


def test_values_among_new_rows_are_those_of_the_run(run: Any) -> None:
    plan = json.loads((run.folder / "plan.json").read_text())
    rows = np.fromfile(run.folder / "records.bin", ROW)
    point = values.points(plan)[-1]
    whole = signals.of_rows(rows, plan, point.name)
    chosen = rows[(rows["time"] >= 1_000_000_000) & (rows["time"] < 1_050_000_000)]
    torn = chosen[5:-3]
    found = list(values.of_point(torn, point))
    assert len(found) == values.MOST_AT_ONCE
    for t_ns, numbers in found:
        assert numbers == whole.values[np.flatnonzero(whole.t_ns == t_ns)[0]].tolist()
    assert list(values.of_point(chosen[:0], point)) == []


def test_a_file_of_mcap_has_numbers_places_and_the_log(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("foxglove.messages", reason="needs the package foxglove-sdk")
    reader = pytest.importorskip("mcap.reader", reason="needs the package mcap")
    file = tmp_path / "run.mcap"
    made = running.Sinks([f"mcap={file}"])
    assert made.where[0].startswith(f"mcap: {file}, layout ")
    played(run, made, 3.0)
    for t_s in (3.0, 3.05, 3.2):
        made.picture(t_s, f"\xff\xd8 a picture at {t_s}".encode("latin1"))
    assert not file.exists()
    made.end()
    by_topic: dict[str, list[tuple[str, int, bytes]]] = {}
    with file.open("rb") as stream:
        for schema, channel, message in reader.make_reader(stream).iter_messages():
            by_topic.setdefault(channel.topic, []).append((schema.name, message.log_time, message.data))
    assert by_topic.keys() == {
        "/flows/kinematic", "/flows/haptic", "/queues/l1.forward", "/queues/l1.backward", "/log", "/tf", "/scene",
        "/values/tactile-operator.exit", "/values/ss-com.exit", "/values/tactile-teleoperator.sense",
        "/poses/tactile-operator.exit", "/poses/tactile-teleoperator.sense", "/picture",
    }  # fmt: skip
    shown = [data for _, _, data in by_topic["/picture"]]
    assert ["3.0" in str(data) for data in shown] == [True, False], "no more than 10 a second"
    assert b"\xff\xd8 a picture at 3.2" in shown[1]
    told = [json.loads(data) for _, _, data in by_topic["/flows/kinematic"]]
    assert len(told) == 12 and told[-1]["mean_ms"] > 15 > told[2]["mean_ms"]
    assert sum(part["ms"] for part in told[-1]["parts"]) == pytest.approx(told[-1]["mean_ms"], rel=0.02)
    schemas = {topic: seen[0][0] for topic, seen in by_topic.items()}
    assert schemas["/tf"] == "foxglove.FrameTransform" and schemas["/scene"] == "foxglove.SceneUpdate"
    assert schemas["/picture"] == "foxglove.CompressedImage"
    assert (
        schemas["/poses/tactile-operator.exit"] == "foxglove.PoseInFrame"
        and schemas["/log"] == "foxglove.Log"
    )
    [(_, at_ns, entry)] = by_topic["/log"]
    assert b"l1 gets slow" in entry
    [first, *_, last] = [at for _, at, _ in by_topic["/queues/l1.forward"]]
    assert last - first == pytest.approx(3e9, rel=0.05) and first < at_ns < last
    [(_, when, seen)] = by_topic["/values/tactile-teleoperator.sense"][100:101]
    pose = next(data for _, at, data in by_topic["/poses/tactile-teleoperator.sense"] if at == when)
    for number in json.loads(seen)["values"][3:6]:
        assert struct.pack("<d", number) in pose


def test_the_app_of_foxglove_gets_channels_and_messages(run: Any) -> None:
    pytest.importorskip("foxglove.messages", reason="needs the package foxglove-sdk")
    client = pytest.importorskip("websockets.sync.client", reason="needs the package websockets")
    made: Any = sinks.opened("foxglove=0")
    with client.connect(
        f"ws://127.0.0.1:{made.port}", subprotocols=["foxglove.sdk.v1"], max_size=None
    ) as app:
        assert json.loads(app.recv(timeout=10))["op"] == "serverInfo"
        made.begin(json.loads((run.folder / "plan.json").read_text()))
        channels: dict[str, dict[str, Any]] = {}
        while "/log" not in channels or "/flows/haptic" not in channels:
            said = json.loads(app.recv(timeout=10))
            channels |= {one["topic"]: one for one in said["channels"]} if said["op"] == "advertise" else {}
        assert channels["/log"]["schemaName"] == "foxglove.Log"
        wanted = channels["/flows/haptic"]
        assert wanted["schemaName"] == "tcpsbed.Flow" and wanted["encoding"] == "json"
        app.send(json.dumps({"op": "subscribe", "subscriptions": [{"id": 7, "channelId": wanted["id"]}]}))
        found = b""
        for _ in range(100):
            made.take(
                {"t_s": 1.0, "flows": [{"name": "haptic", "n": 3, "p99_ms": 7.5, "loss": None, "parts": []}]}
            )
            try:
                said = app.recv(timeout=0.1)
            except TimeoutError:
                continue
            if isinstance(said, bytes):
                found = said
                break
    kind, subscription, _ = struct.unpack_from("<BIQ", found)
    assert (kind, subscription) == (1, 7) and json.loads(found[13:]) == {"p99_ms": 7.5, "parts": []}
    with pytest.raises(TcpsbedError, match="allowed: another port, such as foxglove=0"):
        sinks.opened(f"foxglove={made.port}")
    made.server.stop()


def test_the_layout_shows_topics_that_exist() -> None:
    from tcpsbed.studio.sinks import messages

    layout = json.loads((shipped.DATA / "foxglove.json").read_text())
    assert {"configById", "globalVariables", "userNodes", "playbackConfig", "layout"} == layout.keys()

    def leaves(node: Any) -> list[str]:
        return [node] if isinstance(node, str) else leaves(node["first"]) + leaves(node["second"])

    assert sorted(leaves(layout["layout"])) == sorted(layout["configById"])
    for panel, config in layout["configById"].items():
        for path in config.get("paths", ()):
            topic, _, key = path["value"].rpartition(".")
            assert topic.startswith("/flows/") and key in messages.FLOW["properties"], panel


def test_a_file_of_rerun_has_the_run(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="needs the package rerun-sdk")
    file = tmp_path / "run.rrd"
    made = running.Sinks([f"rerun={file}"])
    played(run, made, 3.0)
    made.end()
    content = file.read_bytes()
    assert content[:4] in (b"RRF2", b"RRF1", b"RRIO") and len(content) > 10_000
    assert [left.name for left in tmp_path.iterdir()] == ["run.rrd"]


@pytest.mark.parametrize("name", ["mcap", "rerun"])
def test_a_file_that_is_not_ours_stays(name: str, tmp_path: Path) -> None:
    pytest.importorskip({"mcap": "foxglove.messages", "rerun": "rerun"}[name])
    file = tmp_path / "mine"
    file.write_text("kept")
    with pytest.raises(TcpsbedError, match="exists already"):
        sinks.opened(f"{name}={file}")
    with pytest.raises(TcpsbedError, match=f"found no file; allowed: a file to write, such as {name}=run"):
        sinks.opened(name)
    assert file.read_text() == "kept"


def test_a_package_that_is_not_there_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rerun", None)
    with pytest.raises(TcpsbedError, match=r"pip install 'tcpsbed\[rerun\]'"):
        sinks.opened("rerun=run.rrd")
