"""A mark in sound is laid at whole seconds and found where it is heard: the delay from mouth to ear is measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcpsbed
from tcpsbed.media import sound, sound_mark
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder

HZ = 16_000
FRAME = 320
FRAME_NS = 20_000_000
S = 1_000_000_000


def spoken(frames: int, hz: int = HZ) -> list[np.ndarray]:
    """Frames of speech, or of the tone where the speech has another rate."""
    microphone = sound.open_microphone("builtin:sound" if hz == HZ else "test", hz, 1, hz // 50)
    return [microphone.frame(0, index) for index in range(frames)]


def heard(frames: list[np.ndarray], delay_ns: int, hz: int = HZ) -> list[float]:
    """Delays that an ear finds in ms, which hears frame i so much after it was taken."""
    ear, found = sound_mark.Ear(hz), []
    for index, frame in enumerate(frames):
        now_ns = (index + 1) * FRAME_NS + delay_ns
        laid_ns = ear.hear(frame, now_ns, index)
        if laid_ns is not None:
            found.append((now_ns - laid_ns) / 1e6)
    return found


def marked(frames: list[np.ndarray], hz: int = HZ) -> list[np.ndarray]:
    mouth = sound_mark.Mouth(hz)
    return [mouth.lay(frame, (index + 1) * FRAME_NS) for index, frame in enumerate(frames)]


@settings(deadline=None, max_examples=20)
@given(delay_ns=st.integers(0, 900_000_000))
def test_the_delay_is_found_to_a_sample(delay_ns):
    """A frame is heard whole `delay_ns` after it was taken; its first sample is a frame older."""
    found = heard(marked(spoken(160)), delay_ns)
    assert len(found) == 3
    assert found == pytest.approx([delay_ns / 1e6 + 20.0] * 3, abs=1.1e3 / HZ)


def test_speech_alone_has_no_mark():
    assert heard(spoken(500), 0) == []
    assert heard([np.zeros((FRAME, 1), np.int16)] * 100, 0) == []


@given(late_ns=st.lists(st.integers(-4_000_000, 4_000_000), min_size=110, max_size=110))
def test_one_mark_a_second_whatever_the_ticks_do(late_ns):
    mouth, silence, laid = sound_mark.Mouth(HZ), np.zeros((FRAME, 1), np.int16), []
    for index, late in enumerate(late_ns):
        laid.append(mouth.lay(silence, (index + 1) * FRAME_NS + late))
    whole = np.concatenate(laid)[:, 0]
    assert not silence.any(), "the frame of the microphone is left as it is"
    mark = sound_mark.chirp(HZ).astype(np.int16)
    assert np.abs(whole.astype(int)).sum() == 2 * np.abs(mark.astype(int)).sum(), "each of two, whole"


def test_behind_a_gap_a_torn_mark_is_none():
    mouth = sound_mark.Mouth(HZ)
    frames = [mouth.lay(frame, index * FRAME_NS + FRAME_NS // 2) for index, frame in enumerate(spoken(80))]

    def found(lost: set[int]) -> int:
        ear = sound_mark.Ear(HZ)
        came = [(i, frame) for i, frame in enumerate(frames) if i not in lost]
        return sum(ear.hear(frame, i * FRAME_NS, i) is not None for i, frame in came)

    assert found(set()) == 1, "half of it in frame 50, half in frame 51"
    assert [found({index}) for index in (49, 50, 51, 52)] == [1, 0, 0, 1]


@pytest.mark.parametrize("hz", [8_000, 48_000])
def test_other_rates_have_a_mark_of_their_own(hz):
    found = heard(marked(spoken(120, hz), hz), 30_000_000, hz)
    assert found == pytest.approx([50.0, 50.0], abs=1.1e3 / hz)


def test_opus_keeps_the_mark_and_its_own_delay_is_part_of_what_is_found():
    pytest.importorskip("av")
    there, back = (sound.open_sound_codec("opus", HZ, 1, FRAME, 24_000) for _ in range(2))
    frames = [back.decode(np.frombuffer(there.encode(frame), np.uint8)) for frame in marked(spoken(160))]
    found = heard([frame for frame in frames if frame is not None], 0)
    assert len(found) == 3
    assert all(20.0 < delay_ms < 20.0 + 30.0 for delay_ms in found)
    assert np.ptp(found) < 1.0


SCENARIO = """
name = "ears"
duration = "6 s"
[components]
tactile-operator = "home"
tactile-teleoperator = "field"
[flows.audio]
rate = "50 Hz"
playout = { kind = "fixed", delay = "35 ms" }
[flows.audio.sound]
microphone = "builtin:sound"
mark = true
[links.line]
from = "home"
to = "field"
delay = "10 ms"
"""


def test_a_run_tells_the_delay_from_mouth_to_ear(tmp_path):
    """A frame fills for 20 ms and is played 35 ms after it was taken."""
    run = tcpsbed.run(SCENARIO, out=tmp_path / "held")
    ear = run.summary["media"]["audio"]["mouth_to_ear_ms"]
    assert ear["n"] == 5
    assert ear["mean"] == pytest.approx(55.0, abs=1.1e3 / HZ)
    assert "audio" in text.overview(open_folder(tmp_path / "held"))
    run = tcpsbed.run(
        SCENARIO, out=tmp_path / "free", set=['flows.audio.playout={ kind = "fixed", delay = "0 ms" }']
    )
    assert run.summary["media"]["audio"]["mouth_to_ear_ms"] is None, "all came too late to be played"


def test_without_a_mark_nothing_is_assumed(tmp_path):
    run = tcpsbed.run(SCENARIO, out=tmp_path, set=["flows.audio.sound.mark=false", 'duration="1 s"'])
    assert run.summary["media"]["audio"]["mouth_to_ear_ms"] is None
