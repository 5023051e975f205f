"""Sound through a ring buffer: whole and in order, never old, and what is no ring or silent is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.errors import ConfigError, HookError, TcpsbedError
from tcpsbed.media import sound
from tcpsbed.media.sound_ring import HEAD, Ring


def samples(begin: int, count: int, channels: int = 1) -> np.ndarray:
    """Samples that say their number."""
    return np.repeat((np.arange(begin, begin + count) % 30_000).astype(np.int16)[:, None], channels, axis=1)


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 3))
def test_what_is_read_is_what_was_written_or_nothing(tmp_path_factory, counts, channels):
    path = tmp_path_factory.mktemp("ring") / "r"
    ring, other = Ring.create(path, 8000, channels, 64), Ring.open(path)
    total = 0
    for count in counts:
        ring.write(samples(total, count, channels))
        total += count
        assert other.written == total
        for begin in {0, max(total - 64, 0), max(total - 10, 0), total}:
            read = other.read(begin, 10)
            there = begin + 10 <= total <= begin + 64
            assert (read is not None) == there
            assert read is None or np.array_equal(read, samples(begin, 10, channels))


def test_a_microphone_takes_frames_in_order_and_leaves_out_what_is_old(tmp_path):
    ring = Ring.create(tmp_path / "r", 16_000, 2, 16_000)
    microphone = sound.open_microphone(f"ring:{tmp_path}/r", 16_000, 2, 320)
    ring.write(samples(0, 640, 2))
    assert [microphone.frame(0, i)[0, 0] for i in range(1)] == [320], "it begins with the newest frame"
    ring.write(samples(640, 640, 2))
    assert [microphone.frame(0, i)[0, 0] for i in (1, 2)] == [640, 960]
    ring.write(samples(1280, 3200, 2))
    assert microphone.frame(0, 3)[0, 0] == 4480 - 320, "ten frames are too many"


def test_a_silent_ring_a_wrong_one_and_none_are_told(tmp_path):
    lost = sound.open_microphone(f"ring:{tmp_path}/r", 16_000, 1, 160)
    with pytest.raises(
        HookError, match=r"No such file or directory; allowed: a ring that another program has made"
    ):
        lost.frame(0, 0)
    Ring.create(tmp_path / "r", 8000, 1, 4000)
    with pytest.raises(HookError, match=r"found 8000 Hz, 1 channels; allowed: 16000 Hz"):
        lost.frame(0, 1)
    Ring.create(tmp_path / "r", 16_000, 1, 4000)
    with pytest.raises(HookError, match=r"nobody writes into it; allowed: a program that does"):
        lost.frame(0, 2)
    for content in (b"", b"x" * HEAD.itemsize, (tmp_path / "r").read_bytes()[:-1]):
        (tmp_path / "r").write_bytes(content)
        with pytest.raises(HookError, match="allowed: a ring"):
            Ring.open(tmp_path / "r")
    with pytest.raises(HookError, match="cannot be made"):
        sound.open_speaker(f"ring:{tmp_path}/nowhere/r", 16_000, 1)


SCENARIO = """
name = "ring"
duration = "1 s"
[components]
tactile-operator = "home"
tactile-teleoperator = "field"
[flows.audio]
rate = "50 Hz"
[flows.audio.sound]
speaker = "ring:{ring}"
"""


def scenario(tmp_path: Path, ring: str, text: str = SCENARIO) -> Path:
    """The file of a scenario with a speaker."""
    (tmp_path / "ring.toml").write_text(text.format(ring=ring))
    return tmp_path / "ring.toml"


@pytest.mark.parametrize("speaker", ["ring:{ring}", "{ring}.wav"])
def test_a_check_makes_no_file_and_leaves_one_as_it_is(tmp_path: Path, speaker: str):
    file = scenario(tmp_path, "ear", SCENARIO.replace("ring:{ring}", speaker))
    scenarios.check(scenarios.load(file))
    assert list(tmp_path.iterdir()) == [file]
    Ring.create(tmp_path / "ear", 8000, 1, 4000).write(samples(0, 400))
    (tmp_path / "ear.wav").write_bytes(b"somebody's")
    before = (tmp_path / "ear").read_bytes()
    scenarios.check(scenarios.load(file))
    assert (tmp_path / "ear").read_bytes() == before
    assert (tmp_path / "ear.wav").read_bytes() == b"somebody's"


def test_a_check_refuses_a_microphone_that_is_no_file(tmp_path: Path):
    text = SCENARIO.replace("[flows.audio.sound]\n", '[flows.audio.sound]\nmicrophone = "mouth.wav"\n')
    assert "mouth.wav" in text
    file = scenario(tmp_path, "ear", text)
    with pytest.raises(
        ConfigError, match=r'flows\.audio\.sound\.microphone: found "mouth\.wav", but there is no'
    ):
        scenarios.check(scenarios.load(file))


@pytest.mark.parametrize("content", [b"", b"a diary\n" * 20])
def test_a_file_that_is_no_ring_is_refused_and_stays(tmp_path: Path, content: bytes):
    (tmp_path / "ear").write_bytes(content)
    file = scenario(tmp_path, "ear")
    with pytest.raises(ConfigError, match=r"flows\.audio\.sound.*not a ring; allowed: a ring, or a new file"):
        scenarios.check(scenarios.load(file))
    with pytest.raises(TcpsbedError, match="not a ring; allowed: a ring, or a new file"):
        tcpsbed.run(file, out=tmp_path / "out")
    assert (tmp_path / "ear").read_bytes() == content
    with pytest.raises(HookError, match="allowed: a ring, or a new file"):
        Ring.create(tmp_path, 8000, 1, 4000)


def test_a_ring_is_looked_for_beside_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = scenario(tmp_path, "ear")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    tcpsbed.run(file, out=tmp_path / "out")
    assert Ring.open(tmp_path / "ear").written >= 49 * 320
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_ring_with_less_room_than_a_frame_is_told(tmp_path: Path):
    microphone = sound.open_microphone(f"ring:{tmp_path}/r", 16_000, 1, 320)
    Ring.create(tmp_path / "r", 16_000, 1, 319).write(samples(0, 319))
    with pytest.raises(HookError, match="room for 319 samples, less than a frame; allowed: 320 or more"):
        microphone.frame(0, 0)
    Ring.create(tmp_path / "r", 16_000, 1, 320).write(samples(0, 320))
    assert np.array_equal(microphone.frame(0, 1), samples(0, 320))


def test_a_program_beside_a_run_hears_the_speech(tmp_path: Path):
    (tmp_path / "ring.toml").write_text(SCENARIO.format(ring=tmp_path / "ear"))
    run = tcpsbed.run(tmp_path / "ring.toml", out=tmp_path / "out")
    assert run.summary["errors"] == []
    heard = Ring.open(tmp_path / "ear")
    assert heard.hz == 16_000 and heard.written >= 49 * 320
    first = sound.open_microphone("builtin:speech", 16_000, 1, 320)
    assert np.array_equal(heard.read(0, 320), first.frame(0, 0))
