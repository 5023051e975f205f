"""Adapters of recordings, on generated files and on the ones beside the project."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded

from tcpsbed.datasets import recordings
from tcpsbed.datasets.formats import READERS, guess
from tcpsbed.errors import DataError


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def opened(path, at_hz=10.0, **spec):
    return recordings.open_values({"recording": str(path), **spec}, at_hz, path.parent)


# Plain tables


@pytest.mark.parametrize(
    "text", ["time,a,b\n0,1,2\n1,3,4\n", "t_ms;a;b\n0;1;2\n1000;3;4\n", "Time\ta\tb\n0\t1\t2\n1\t3\t4\n"]
)
def test_a_table_with_a_column_of_time(tmp_path, text):
    values = opened(written(tmp_path / "x.csv", text), 2.0)
    assert values.tolist() == [[1, 2], [2, 3], [3, 4]]


def test_a_table_without_a_header_needs_a_rate(tmp_path):
    path = written(tmp_path / "x.csv", "# a remark\n1 2\n\n3 4\n")
    assert opened(path, 10.0, rate_hz=5.0).tolist() == [[1, 2], [2, 3], [3, 4]]
    with pytest.raises(DataError, match=r"no column of time.*rate_hz"):
        opened(path)


def test_only_ends_of_lines_part_a_header_from_its_rows(tmp_path):
    """A form feed or a Unicode separator is none: no row may be taken for the rest of the header."""
    for separator in "\x0b\x0c\x1c\x85\u2028":
        values = opened(written(tmp_path / "x.csv", f"time,a{separator}\n0,1\n1,2\n"), 1.0)
        assert values.tolist() == [[1], [2]]


def test_the_column_of_time_can_be_named(tmp_path):
    path = written(tmp_path / "x.csv", "a,stamp\n1,0\n3,1000000\n")
    assert opened(path, 2.0, time="stamp", time_unit="us").tolist() == [[1], [2], [3]]
    assert opened(path, 2.0, time=1, time_unit="us").tolist() == [[1], [2], [3]]


def test_columns_scale_and_part(tmp_path):
    path = written(tmp_path / "x.csv", "time,a,b.x,b.y\n0,1,2,3\n1,1,2,3\n2,1,2,9\n")
    assert opened(path, 1.0, columns=["b", 0], scale=[1, 10, 100]).tolist()[0] == [2, 30, 100]
    assert opened(path, 1.0, columns=["b.y"], scale=0.5, start=1, stop=2).tolist() == [[1.5], [4.5]]


@pytest.mark.parametrize(
    ("text", "spec", "message"),
    [
        ("time,a\n0,1\n1,oops\n", {}, r"x\.csv:3: 'oops'; allowed: finite numbers"),
        ("time,a\n0,1\n1,nan\n", {}, r"x\.csv:3: 'nan'"),
        ("time,a\n0,1\n1,1e999\n", {}, r"x\.csv:3: '1e999'"),
        ("time,a\n0,-1e308\n1,1e308\n", {}, r"x\.csv:2: '-1e308'; allowed: finite numbers, at most 1e\+100"),
        ("time,a\n0,1\n1\n", {}, r"x\.csv:3: 1 values; allowed: 2"),
        ("time,a,b\n0,1\n", {}, r"x\.csv:2: 2 values under 3 names"),
        ("time,a\n1,1\n0,1\n", {}, r"x\.csv:3: time 0 s after 1 s"),
        ("time,a\n", {}, "no samples"),
        ("", {}, "no rows"),
        ("time,a\n0,1\n", {"columns": ["z"]}, "no column 'z'.*a"),
        ("time,a\n0,1\n", {"columns": [7]}, "no column 7"),
        ("time,a\n0,1\n", {"columns": "a"}, "a list"),
        ("time,a\n0,1\n", {"columns": []}, "a list"),
        ("time,a\n0,1\n", {"scale": "big"}, "scale"),
        ("time,a\n0,1\n", {"scale": [1, 2]}, "a list of 1"),
        ("time,a\n0,1\n", {"start": "1 s"}, "a number of seconds"),
        ("time,a\n0,1\n", {"format": "xls"}, "allowed: auto, csv"),
        ("time,a\n0,1\n", {"colums": ["a"]}, "unknown key 'colums'"),
        ("time,a\n0,1\n", {"rate_hz": 5}, "one of the two"),
        ("time,a\n0,1\n", {"time_unit": "min"}, "s, ms, us, ns"),
        ("time,a\n0,1\n", {"time": "tick"}, "no column 'tick'"),
        ("a\n1\n", {"rate_hz": 0}, "above 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, spec, message):
    with pytest.raises(DataError, match=message):
        opened(written(tmp_path / "x.csv", text), **spec)


def test_a_quaternion_is_found_by_its_names(tmp_path):
    path = written(tmp_path / "x.csv", "time,hand.qw,hand.qx,hand.qy,hand.qz\n0,1,0,0,0\n1,0,1,0,0\n")
    middle = opened(path, 2.0)[1]
    assert np.allclose(middle, [np.sqrt(0.5), np.sqrt(0.5), 0, 0])


# Formats of their own


def test_jigsaws(tmp_path):
    row = np.zeros((4, 19))
    row[:, 3:12] = np.eye(3).ravel()
    rows = [row.copy(), row.copy()]
    rows[1][2, :3] = [0.3, 0.6, 0.9]
    path = tmp_path / "x.txt"
    np.savetxt(path, [r.ravel() for r in rows], fmt="%14.8f")
    assert guess(path) == "jigsaws"
    values = opened(path, 60.0, columns=["slave_left.position"])
    assert np.allclose(values, [[0, 0, 0], [0.15, 0.3, 0.45], [0.3, 0.6, 0.9]])
    with pytest.raises(DataError, match="75 columns"):
        opened(written(path, " ".join(["1"] * 75)), format="jigsaws")


def test_mouse(tmp_path):
    head = "record timestamp,client timestamp,button,state,x,y\n"
    events = (
        "0,0,NoButton,Move,0,0\n9,1,Left,Pressed,10,0\n9,2,NoButton,Drag,10,10\n9,3,Left,Released,10,20\n"
    )
    path = written(tmp_path / "x.csv", head + events)
    assert guess(path) == "mouse"
    assert opened(path, 2.0).tolist() == [
        [0, 0, 0], [5, 0, 0], [10, 0, 1], [10, 5, 1], [10, 10, 1], [10, 15, 1], [10, 20, 0],
    ]  # fmt: skip
    for bad in ("1,2,Left\n", '1,"2,Left,Move,3,4\n', "1,2,Left,Move,3,inf\n", "x" * 200_000 + "\n"):
        with pytest.raises(DataError, match=r"x\.csv:6"):
            opened(written(path, head + events + bad))
    with pytest.raises(DataError, match="no samples"):
        opened(written(path, head))
    with pytest.raises(DataError, match="another header"):
        opened(written(path, "a,b\n"), format="mouse")


def test_kinesthetic(tmp_path):
    head = "time\tSF_x\tSF_y\tSF_z\tMV_x\tMV_y\tMV_z\tMP_x\tMP_y\tMP_z\n"
    path = written(
        tmp_path / "x.txt", head + "5\t" + "\t".join("123456789") + "\n6\t" + "\t".join("123456789")
    )
    assert guess(path) == "kinesthetic"
    assert opened(path, 1000.0, columns=["velocity"]).tolist() == [[4, 5, 6], [4, 5, 6]]
    with pytest.raises(DataError, match="2 columns"):
        opened(written(path, head + "1\t2\n"))


def test_lerobot(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "episode.parquet"
    rows = {
        "action": [[0.0, 1.0], [2.0, 3.0]],
        "timestamp": [0.0, 0.1],
        "frame_index": [0, 1],
        "task": ["a", "b"],
    }
    pq.write_table(pa.table(rows), path)
    assert opened(path, 20.0).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert opened(path, 10.0, columns=["action[1]"]).tolist() == [[1], [3]]
    info = '{"fps": 5, "features": {"action": {"names": [["left", "right"]]}}}'
    written(tmp_path / "info.json", info)
    assert opened(path, 10.0, columns=["action.right"]).tolist() == [[1], [3]]
    pq.write_table(pa.table({"action": rows["action"]}), path)
    assert opened(path, 10.0).tolist() == [[0, 1], [1, 2], [2, 3]]  # 5 Hz from info.json
    written(tmp_path / "info.json", "{")
    with pytest.raises(DataError, match="not JSON"):
        opened(path)
    (tmp_path / "info.json").unlink()
    with pytest.raises(DataError, match="no column timestamp"):
        opened(path)
    pq.write_table(pa.table({"task": ["a"], "timestamp": [0.0]}), path)
    with pytest.raises(DataError, match="no column of numbers"):
        opened(path)
    pq.write_table(pa.table({"action": [[1.0], [float("nan")]], "timestamp": [0.0, 1.0]}), path)
    with pytest.raises(DataError, match="not finite"):
        opened(path)
    path.write_bytes(b"PAR1 but no more")
    with pytest.raises(DataError, match="Parquet"):
        opened(path)


# Whatever a file holds


@pytest.mark.parametrize("name", [name for name in READERS if name != "lerobot"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    content=st.binary(max_size=400)
    | st.text(alphabet='0123456789 ,;\t\n.-+e#"nanif\r', max_size=400).map(str.encode)
    | st.text(max_size=100).map(str.encode)
)
def test_no_content_makes_anything_but_values_or_a_message(tmp_path, name, content):
    path = tmp_path / "x"
    headers = {
        "mouse": b"record timestamp,client timestamp,button,state,x,y\n",
        "kinesthetic": b"time SF_x SF_y SF_z MV_x MV_y MV_z MP_x MP_y MP_z\n",
    }
    for text in (content, headers.get(name, b"") + content):
        path.write_bytes(text)
        for form in (name, "auto"):
            try:
                values = opened(path, 1.0, format=form, stop=100.0)
            except DataError as error:
                assert str(error)
            else:
                assert values.ndim == 2 and len(values)


# The recordings beside the project


def test_the_jigsaws_recording():
    path = recorded("kinematics/jigsaws/Suturing_D001.txt")
    values = opened(path, 1000.0, columns=["slave_left.position", "slave_left.rotation"], stop=10.0)
    assert values.shape == (10_001, 12)
    rotation = values[:, 3:].reshape(-1, 3, 3)
    assert np.allclose(rotation @ rotation.transpose(0, 2, 1), np.eye(3), atol=1e-9)
    assert np.abs(np.diff(values[:, :3], axis=0)).max() < 1e-3  # 1 m/s


def test_the_lerobot_episode():
    pytest.importorskip("pyarrow")
    path = recorded("kinematics/lerobot_g1/episode_000013.parquet")
    track = recordings.open_track({"recording": str(path)}, path.parent)
    assert "action.kLeftElbow" in track.names and "observation.state.kLeftElbow" in track.names
    values = opened(path, 30.0)
    assert values.shape[1] == 26 and np.abs(values).max() < 4.0  # rad


def test_the_mouse_log():
    values = opened(recorded("kinematics/mouse/user29_session_2786719181.csv"), 125.0, stop=60.0)
    assert values.shape == (7_501, 3) and set(np.unique(values[:, 2])) <= {0.0, 1.0, 2.0, 3.0}
    assert values[:, 0].min() >= 0 and values[:, 0].max() <= 1919


def test_the_haptic_recording_has_its_eleven_contacts():
    force = opened(recorded("haptic/kinesthetic_1khz/sDB.txt"), 1000.0, columns=["force"])
    assert force.shape == (25_000, 3)
    touching = np.linalg.norm(force, axis=1) > 0.0
    assert np.count_nonzero(~touching[:-1] & touching[1:]) == 11
