"""Frames of bytes: what comes out is what was in the file, cut where it should be."""

import json
import struct
import wave
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded

from tcpsbed.datasets.frames import open_frames
from tcpsbed.errors import DataError


def opened(path, rate_hz=50.0, **spec):
    return open_frames({"frames": str(path), **spec}, rate_hz, path.parent)


def a_wav(path, samples=1600, sampling_hz=16_000, channels=1, width=2):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(sampling_hz)
        out.writeframes(bytes(i % 251 for i in range(samples * channels * width)))
    return path


def test_sound_of_100_ms_is_five_frames_of_20_ms(tmp_path):
    content, offsets = opened(a_wav(tmp_path / "x.wav"))
    assert offsets == [0, 640, 1280, 1920, 2560, 3200]
    assert content == bytes(i % 251 for i in range(3200))


def test_a_period_that_is_no_whole_number_of_samples_drifts_by_none(tmp_path):
    # 44100 Hz at 30 ms: 1323 samples; at 23 Hz: 1917.39.
    _, offsets = opened(a_wav(tmp_path / "x.wav", 44_100, 44_100, channels=2), 23.0)
    assert len(offsets) == 24 and offsets[-1] == 4 * 44_100
    assert all(at % 4 == 0 for at in offsets)
    assert {b - a for a, b in pairwise(offsets)} == {4 * 1917, 4 * 1918}


def test_sound_that_a_frame_does_not_fit_in(tmp_path):
    with pytest.raises(DataError, match="100 samples of sound"):
        opened(a_wav(tmp_path / "x.wav", 100))
    with pytest.raises(DataError, match=r"1 Hz to 16000 Hz"):
        opened(a_wav(tmp_path / "x.wav"), 0.01)


def test_any_file_in_equal_parts(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(range(10)))
    assert opened(path, frame_bytes=4) == (bytes(range(8)), [0, 4, 8])
    assert opened(path, frame_bytes=64) == (bytes(range(10)), [0, 10])
    for wrong in (0, -1, 1.5, True, "4"):
        with pytest.raises(DataError, match="frame_bytes"):
            opened(path, frame_bytes=wrong)
    with pytest.raises(DataError, match="a file without frames"):
        opened(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="an empty file"):
        opened(path, frame_bytes=4)


def an_index(path, **changed):
    (path.parent / "x.bin").write_bytes(b"aabbbc")
    path.write_text(json.dumps({"file": "x.bin", "offsets": [0, 2, 5, 6], **changed}))
    return path


def test_an_index_and_its_file(tmp_path):
    path = an_index(tmp_path / "x.json")
    assert opened(path) == (b"aabbbc", [0, 2, 5, 6])
    assert opened(path, 1.0, start=1, stop=2) == (b"bbb", [0, 3])
    assert opened(path, 1.0, start=1, stop=99) == (b"bbbc", [0, 3, 4])
    with pytest.raises(DataError, match=r"no frames from 3 s.*3 frames are 3 s at 1 Hz"):
        opened(path, 1.0, start=3)
    with pytest.raises(DataError, match="a number of seconds"):
        opened(path, start=-1)


@pytest.mark.parametrize(
    "offsets",
    [[0, 2, 5, 7], [0, 5, 2, 6], [1, 6], [0], [], [0, 2.5, 6], [0, True, 6], [0, 2, 2, 6], "0", None],
)
def test_offsets_that_do_not_fit(tmp_path, offsets):
    with pytest.raises(DataError, match="offsets"):
        opened(an_index(tmp_path / "x.json", offsets=offsets))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "{", '{"file": "x.bin"}', '{"file": 3, "offsets": [0, 6]}', "\xff"]
)
def test_an_index_that_is_none(tmp_path, text):
    path = an_index(tmp_path / "x.json")
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=r"index|kind"):
        opened(path)


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("y.bin", "no such file"),
        ("~nobody-of-this-name/y", "cannot be looked up"),
        ("y" * 300, "cannot be looked up"),
        ("builtin:none", "no built-in recording"),
    ],
)
def test_an_index_without_its_file(tmp_path, file, found):
    with pytest.raises(DataError, match=rf'x\.json: file: "{file[:60]}": .*{found}.*allowed: a file beside'):
        opened(an_index(tmp_path / "x.json", file=file))


def test_keys_and_rate_are_checked(tmp_path):
    path = an_index(tmp_path / "x.json")
    with pytest.raises(DataError, match="unknown key 'fps'"):
        opened(path, fps=25)
    with pytest.raises(DataError, match="found no file of frames"):
        open_frames({}, 1.0, tmp_path)
    with pytest.raises(DataError, match="a rate above 0"):
        opened(path, 0.0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    content=st.binary(max_size=80), cut=st.integers(0, 300), hurt=st.integers(0, 43), byte=st.integers(0, 255)
)
def test_no_wav_makes_anything_but_frames_or_a_message(tmp_path, content, cut, hurt, byte):
    whole = bytearray(a_wav(tmp_path / "whole.wav", 100).read_bytes())
    whole[hurt] = byte
    for text in (
        content,
        b"RIFF" + struct.pack("<I", 99) + b"WAVE" + content,
        bytes(whole[:cut]),
        bytes(whole),
    ):
        path = tmp_path / "x.wav"
        path.write_bytes(text)
        try:
            data, offsets = opened(path, 400.0)
        except DataError as error:
            assert str(error)
        else:
            assert offsets[0] == 0 and offsets[-1] == len(data) and offsets == sorted(offsets)


def test_a_wav_whose_header_says_more_than_there_is_is_refused(tmp_path):
    path = a_wav(tmp_path / "x.wav")
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(
        DataError, match="3100 B of sound, and a header that says 3200 B; allowed: a whole file"
    ):
        opened(path)
    path.write_bytes(whole[:40] + b"\xff" * 4 + whole[44:])
    assert len(opened(path)[0]) == 3200, "written into a pipe"


def test_a_recording_of_a_texture_in_floats():
    content, offsets = opened(recorded("haptic/vibtac12/Texture8.wav"), 50.0, start=1.0, stop=2.0)
    assert len(offsets) == 51 and offsets[1] == 1280 and len(content) == offsets[-1] == 64_000
