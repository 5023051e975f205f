"""Cameras, microphones and speakers of the machine: what is not there is told, and other flows go on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import types
from itertools import pairwise

import numpy as np
import pytest

import tcpsbed
from tcpsbed.errors import ConfigError, HookError
from tcpsbed.media import camera_device, sound, sound_device
from tcpsbed.media.camera import open_camera
from tcpsbed.media.camera_device import CameraDevice
from tcpsbed.scenarios import load

EYES = """
name = "eyes"
duration = "2 s"
[components]
tactile-operator = "home"
tactile-teleoperator = { node = "field", robot = "arm" }
[flows.kinematic]
[flows.video]
rate = "10 Hz"
[flows.video.picture]
width = 160
height = 96
codec = "raw"
camera = "/dev/video77"
"""


def pictures(camera, count):
    """So many pictures, with how old each was when it was given, in ms."""
    taken, ages_ms = [], []
    end = time.monotonic() + 20.0
    while len(taken) < count and time.monotonic() < end:
        now_ns = time.monotonic_ns()
        taken.append(camera.frame(now_ns, len(taken)))
        ages_ms.append((now_ns - camera.taken_ns) / 1e6)
    return taken, ages_ms


def test_a_device_gives_its_newest_picture():
    """FFmpeg's test pictures at their own pace stand in for a camera."""
    pytest.importorskip("av")
    camera = CameraDevice("testsrc=size=64x48:rate=25,realtime", 64, 48, "lavfi")
    taken, _ = pictures(camera, 4)
    assert all(picture.shape == (48, 64, 3) for picture in taken)
    assert any((a != b).any() for a, b in pairwise(taken)), "it goes on"
    missed, end = [], time.monotonic() + 20.0
    while len(missed) < 4:
        assert time.monotonic() < end, "the camera gives no more pictures"
        newest = camera._newest
        if newest is not None and not any(newest[1] is old for old in missed):
            missed.append(newest[1])
        time.sleep(0.002)
    given = camera.frame(time.monotonic_ns(), 9)
    assert not any(given is old for old in missed[:-1]), "what came while nobody looked is left out"


def test_a_camera_that_is_not_there_is_told_and_looked_for_again(monkeypatch):
    pytest.importorskip("av")
    camera = open_camera("/dev/video77", 64, 48, False)
    for _ in range(2):
        with pytest.raises(HookError, match=r"/dev/video77: .*allowed: "):
            camera.frame(0, 0)
    monkeypatch.setattr(camera_device, "AGAIN_S", 0.0)
    camera.path, camera.form, camera._again_s = "testsrc=size=64x48:rate=25,realtime", "lavfi", 0.0
    assert pictures(camera, 1)[0][0].shape == (48, 64, 3), "it has been plugged in"


def test_a_run_goes_on_without_its_camera_and_says_why(tmp_path):
    pytest.importorskip("av")
    summary = tcpsbed.run(EYES, out=tmp_path).summary
    assert summary["flows"]["kinematic"]["delivered"] > 1900
    assert summary["media"]["video"]["shown"] == 0
    (told,) = summary["errors"]
    assert "/dev/video77" in told and "allowed:" in told


def test_a_camera_cannot_be_compared_with_what_it_gave(tmp_path):
    pytest.importorskip("av")
    file = tmp_path / "eyes.toml"
    file.write_text(EYES + "compare = 5\n")
    with pytest.raises(ConfigError, match="a camera that gives no picture twice"):
        tcpsbed.run(load(file), out=tmp_path / "out")


def test_the_packages_of_sound_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    for opened in (
        lambda: sound.open_microphone("device", 16_000, 1, 320),
        lambda: sound.open_speaker("device:USB", 16_000, 1),
    ):
        with pytest.raises(HookError, match=r"tcpsbed\[sound\].*libportaudio2"):
            opened()


class Stream:
    """A stream of a device that runs ahead."""

    latency = 0.012

    def __init__(self, **settings):
        self.settings, self.at, self.ahead, self.pulled = settings, 0, 5 * 320, False
        self.played = []

    def start(self):
        pass

    def close(self, ignore_errors):
        self.closed = True

    @property
    def read_available(self):
        return self.ahead

    def read(self, count):
        if self.pulled:
            raise PortAudioError("Device unavailable")
        part = np.arange(self.at, self.at + count, dtype=np.int16)[:, None]
        self.at, self.ahead = self.at + count, max(self.ahead - count, 0)
        return part, False

    def write(self, samples):
        self.played.append(samples)


class PortAudioError(Exception):
    """As the package has it."""


@pytest.fixture
def audio(monkeypatch):
    """A stand-in of the package with one microphone."""
    made = types.ModuleType("sounddevice")
    made.PortAudioError, made.InputStream, made.OutputStream = PortAudioError, Stream, Stream
    made.query_devices = lambda: [{"name": "USB mic", "max_input_channels": 1, "max_output_channels": 0}]
    monkeypatch.setitem(sys.modules, "sounddevice", made)
    return made


def test_a_microphone_that_runs_ahead_is_cut_and_one_that_is_pulled_out_is_told(audio, monkeypatch):
    microphone = sound.open_microphone("device:USB", 16_000, 1, 320)
    assert microphone.frame(0, 0)[0, 0] == 2 * 320, "two frames of five are left out"
    assert microphone.stream.settings["device"] == "USB"
    microphone.stream.pulled = True
    for _ in range(2):
        with pytest.raises(HookError, match=r'Device unavailable.*allowed: "device:USB mic"'):
            microphone.frame(0, 1)
    monkeypatch.setattr(sound_device.time, "monotonic", lambda: time.perf_counter() + 1e6)
    assert microphone.frame(0, 2).shape == (320, 1), "it has been plugged in again"


def test_a_speaker_says_what_it_holds_back(audio):
    speaker = sound.open_speaker("device", 16_000, 1)
    speaker.play(np.zeros((320, 1), np.int16), 0, 0)
    assert speaker.delay_ns == 12_000_000 and speaker.stream.settings["device"] is None


EARS = """
name = "ears"
duration = "1 s"
[components]
tactile-operator = "home"
tactile-teleoperator = { node = "field", robot = "arm" }
[flows.kinematic]
[flows.audio]
rate = "50 Hz"
[flows.audio.sound]
microphone = "device"
"""


def test_a_run_goes_on_without_its_microphone_and_says_why(audio, monkeypatch, tmp_path):
    def refuses(self):
        raise PortAudioError("Device unavailable")

    monkeypatch.setattr(Stream, "start", refuses)
    summary = tcpsbed.run(EARS, out=tmp_path).summary
    assert summary["flows"]["kinematic"]["delivered"] > 900
    assert summary["media"]["audio"]["shown"] == 0
    (told,) = summary["errors"]
    assert "Device unavailable" in told and 'allowed: "device:USB mic"' in told


TRIAL = """
import numpy as np
from tcpsbed.media import sound
microphone, speaker = sound.open_microphone("device:mouth", 16_000, 1, 320), sound.open_speaker("device:ear", 16_000, 1)
for index in range(25):
    speaker.play(np.full((320, 1), 1000 + index, np.int16), 0, index)
    frame = microphone.frame(0, index)
    assert frame.shape == (320, 1) and frame.dtype == np.int16 and 77 in frame
speaker.stream.stop()
"""
ALSA = """
pcm.mouth {{ type file slave.pcm "null" file "/dev/null" infile "{folder}/spoken.raw" format "raw" }}
pcm.ear {{ type file slave.pcm "null" file "{folder}/played.raw" format "raw" }}
"""


def test_the_real_package_reads_and_plays_through_alsa(tmp_path):
    """ALSA's file and null devices stand in for a sound card."""
    try:
        import sounddevice  # noqa: F401
    except (ImportError, OSError) as error:
        pytest.skip(f"needs sounddevice and PortAudio ({error})")
    (tmp_path / "asoundrc").write_text(ALSA.format(folder=tmp_path))
    (tmp_path / "spoken.raw").write_bytes(np.full(160_000, 77, "<i2").tobytes())
    settings = os.environ | {"ALSA_CONFIG_PATH": f"/usr/share/alsa/alsa.conf:{tmp_path}/asoundrc"}
    done = subprocess.run(
        [sys.executable, "-c", TRIAL], env=settings, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    played = np.frombuffer((tmp_path / "played.raw").read_bytes(), np.int16)
    assert set(range(1000, 1020)) <= set(played.tolist())
