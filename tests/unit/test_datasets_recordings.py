"""Adapters of recordings, on generated files and on the ones beside the project."""

import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded

from tcpsbed import scenarios
from tcpsbed.datasets import recordings
from tcpsbed.datasets.formats import FOLDERS, READERS, guess
from tcpsbed.errors import ConfigError, DataError


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
        ("time,a\n0,1\n1,oops\n", {}, r"x\.csv:3: found 'oops'; allowed: finite numbers"),
        ("time,a\n0,1\n1,nan\n", {}, r"x\.csv:3: found 'nan'"),
        ("time,a\n0,1\n1,1e999\n", {}, r"x\.csv:3: found '1e999'"),
        (
            "time,a\n0,-1e308\n1,1e308\n",
            {},
            r"x\.csv:2: found '-1e308'; allowed: finite numbers, at most 1e\+100",
        ),
        ("time,a\n0,1\n1\n", {}, r"x\.csv:3: found 1 value; allowed: 2"),
        ("time,a,b\n0,1\n", {}, r"x\.csv:2: found 2 values under 3 names"),
        ("time,a\n1,1\n0,1\n", {}, r"x\.csv:3: found the time 0 s after 1 s"),
        ("time,a\n", {}, "no samples"),
        ("time,a\n0,1\n", {}, "one row; allowed: a recording of at least two rows"),
        (
            "time,a\n0,1\n0,2\n1,2\n",
            {},
            "time: found row 2 at 0 s, after a row at 0 s; allowed: rising times",
        ),
        ("time,a\n0,1\nnan,2\n", {}, r"x\.csv:3: found 'nan'"),
        ("", {}, "no rows"),
        ("time,a\n0,1\n1,1\n", {"columns": ["z"]}, "no column 'z'.*a"),
        ("time,a\n0,1\n1,1\n", {"columns": [7]}, "no column 7"),
        ("time,x,x\n0,1,2\n1,1,2\n", {"columns": ["x"]}, "2 columns 'x'.*by its number: [01], [12]"),
        ("time,a\n0,1\n1,1\n", {"columns": "a"}, "a list"),
        ("time,a\n0,1\n1,1\n", {"columns": []}, "a list"),
        ("time,a\n0,1\n1,1\n", {"scale": "big"}, "scale"),
        ("time,a\n0,1\n1,1\n", {"scale": [1, 2]}, "a list of 1"),
        ("time,a\n0,1\n1,1\n", {"start": "1 s"}, "a number of seconds"),
        ("time,a\n0,1\n", {"format": "xls"}, "allowed: auto, csv"),
        ("time,a\n0,1\n", {"colums": ["a"]}, "unknown key 'colums'"),
        ("time,a\n0,1\n", {"rate_hz": 5}, "no rate_hz, or a file without a column of time"),
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
    with pytest.raises(DataError, match="a header with other columns"):
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
    with pytest.raises(DataError, match="broken JSON"):
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


def lerobot_v3(folder):
    """A data set of three episodes in two files, as LeRobot v3 lays it out."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    episodes = {"episode_index": [0, 1, 2], "data/chunk_index": [0, 0, 0], "data/file_index": [0, 0, 1]}
    episodes |= {"dataset_from_index": [0, 2, 5], "dataset_to_index": [2, 5, 7], "length": [2, 3, 2]}
    tables = {"meta/episodes/chunk-000/file-000.parquet": episodes}
    for file, held in enumerate(([0, 0, 1, 1, 1], [2, 2])):
        frame = [held[:i].count(e) for i, e in enumerate(held)]
        rows = {"action": [[10.0 * e, float(f)] for e, f in zip(held, frame, strict=True)]}
        rows |= {"timestamp": [f / 10 for f in frame], "frame_index": frame, "episode_index": held}
        tables[f"data/chunk-000/file-{file:03d}.parquet"] = rows
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), folder / name)
    info = """{"codebase_version": "v3.0", "fps": 10, "total_episodes": 3, "chunks_size": 1000,
      "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
      "features": {"action": {"dtype": "float32", "shape": [2], "names": {"motors": ["left", "right"]}}}}"""
    written(folder / "meta" / "info.json", info)
    return folder


def test_a_file_that_is_no_parquet_is_named_once(tmp_path):
    path = written(tmp_path / "x.parquet", "nothing of the kind")
    with pytest.raises(DataError, match="magic bytes") as refused:
        opened(path)
    assert str(refused.value).count(str(path)) == 1


def test_an_episode_of_lerobot_v3_is_found_by_its_number(tmp_path):
    folder = lerobot_v3(tmp_path)
    assert opened(folder, 10.0).tolist() == [[0, 0], [0, 1]], "the first, unless another is named"
    assert opened(folder, 10.0, episode=1).tolist() == [[10, 0], [10, 1], [10, 2]]
    assert opened(folder, 10.0, episode=2, columns=["action.right"]).tolist() == [[0], [1]]
    with pytest.raises(DataError, match=r"no episode 3.*0 to 2"):
        opened(folder, 10.0, episode=3)


def test_a_scenario_names_the_folder_of_a_data_set(tmp_path):
    lerobot_v3(tmp_path / "set")
    text = """duration = "1 s"
    components = { tactile-operator = "a", tactile-teleoperator = "b" }
    [flows.kinematic]
    rate = "10 Hz"
    source = { recording = "set", episode = 1, repeat = "hold" }
    """
    scenario = scenarios.load(written(tmp_path / "s.toml", text))
    plan = scenarios.compile_plan(scenario, tmp_path / "inputs")
    values = np.fromfile(plan["flows"][0]["source"]["path"], "<f8")
    assert values.tolist() == [10, 0, 10, 1, 10, 2]
    with pytest.raises(ConfigError, match=r"source\.episode.*no episode 9.*0 to 2"):
        scenarios.compile_plan(
            scenarios.load(tmp_path / "s.toml", ["flows.kinematic.source.episode=9"]), tmp_path / "i"
        )


def test_a_file_of_lerobot_v3_with_several_episodes_needs_one_named(tmp_path):
    file = lerobot_v3(tmp_path) / "data" / "chunk-000" / "file-000.parquet"
    with pytest.raises(DataError, match=r"2 episodes.*episode = 0"):
        opened(file)
    assert opened(file, 10.0, episode=1).tolist() == [[10, 0], [10, 1], [10, 2]]
    with pytest.raises(DataError, match=r"no episode 2.*0, 1"):
        opened(file, episode=2)
    assert opened(file.with_name("file-001.parquet"), 10.0).tolist() == [[20, 0], [20, 1]]


def test_a_data_set_of_lerobot_v2_is_read_by_the_number_of_an_episode(tmp_path):
    folder = lerobot_v3(tmp_path)
    whole = folder / "data" / "chunk-000"
    (whole / "file-001.parquet").rename(whole / "episode_000002.parquet")
    (folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet").unlink()
    (folder / "meta" / "episodes" / "chunk-000").rmdir()
    (folder / "meta" / "episodes").rmdir()
    pattern = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
    written(folder / "meta" / "info.json", '{"total_episodes": 3, "data_path": "' + pattern + '"}')
    assert opened(folder, 10.0, episode=2).tolist() == [[20, 0], [20, 1]]
    with pytest.raises(DataError, match=r"no episode 1.*0 to 2"):
        opened(folder, 10.0, episode=1)
    for wide in ("../../{episode_index}", "/etc/passwd", "data/{episode_chunk:99999999999}", "{0.__class__}"):
        written(folder / "meta" / "info.json", json.dumps({"data_path": wide}))
        with pytest.raises(DataError, match="leads out of the data set, or is not a file pattern"):
            opened(folder, 10.0)
    written(folder / "meta" / "info.json", '{"data_path": "data/{nowhere}"}')
    with pytest.raises(DataError, match="data_path"):
        opened(folder, 10.0)
    with pytest.raises(DataError, match=r"episode with format csv.*lerobot"):
        opened(written(tmp_path / "x.csv", "1,2"), rate_hz=1.0, episode=0)


def vibtac(folder):
    """Twelve textures of three motion samples; the sound of the second."""
    for axis, name in enumerate("XYZ"):
        rows = "\n".join(f"{t}.{axis},{t}.{axis}5,{t}" for t in range(1, 13))
        written(folder / f"{name}.csv", rows + "\n")
    sound = np.arange(120, dtype="<f4") / 1000
    head = b"RIFF" + bytes(4) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 3, 1, 8000, 32_000, 4, 32)
    content = head + b"data" + struct.pack("<I", sound.nbytes) + sound.tobytes()
    (folder / "Texture2.wav").write_bytes(content)
    return folder


def test_a_texture_of_vibtac12_is_a_row(tmp_path):
    folder = vibtac(tmp_path)
    assert guess(folder) == "vibtac12"
    assert opened(folder, 200.0, texture=3).tolist() == [[3.0, 3.1, 3.2], [3.05, 3.15, 3.25], [3, 3, 3]]
    with pytest.raises(DataError, match=r"texture: found 13; allowed: 1 to 12"):
        opened(folder, 200.0, texture=13)
    written(folder / "Z.csv", "1,2,3\n")
    with pytest.raises(DataError, match=r"1 rows.*12"):
        opened(folder, 200.0)


def test_a_texture_with_its_sound_is_multimodal(tmp_path):
    values = opened(vibtac(tmp_path), 8000.0, texture=2)
    assert values.shape == (120, 4)
    assert values[[0, 39, 40], 0].tolist() == [2.0, 2.0, 2.05], "motion holds for 40 samples of sound"
    assert np.allclose(values[:, 3], np.arange(120) / 1000)


# Whatever a file holds


@pytest.mark.parametrize("name", [name for name in READERS if name not in FOLDERS])
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


def test_the_textures_of_vibtac12():
    folder = recorded("haptic/vibtac12")
    assert opened(folder, 200.0, texture=1).shape == (4000, 3)
    eighth = opened(folder, 8000.0, texture=8)
    assert eighth.shape == (160_000, 4) and 0.0 < np.abs(eighth[:, 3]).max() <= 1.0


def test_the_mouse_log():
    values = opened(recorded("kinematics/mouse/user29_session_2786719181.csv"), 125.0, stop=60.0)
    assert values.shape == (7_501, 3) and set(np.unique(values[:, 2])) <= {0.0, 1.0, 2.0, 3.0}
    assert values[:, 0].min() >= 0 and values[:, 0].max() <= 1919


def test_the_haptic_recording_has_its_eleven_contacts():
    force = opened(recorded("haptic/kinesthetic_1khz/sDB.txt"), 1000.0, columns=["force"])
    assert force.shape == (25_000, 3)
    touching = np.linalg.norm(force, axis=1) > 0.0
    assert np.count_nonzero(~touching[:-1] & touching[1:]) == 11
