"""Pictures and sound: the code in the picture, quality, codecs, cameras, and what is refused."""

from __future__ import annotations

import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed.errors import HookError
from tcpsbed.media import camera, picture_code, quality, region, sound, stages
from tcpsbed.media.camera import DISPARITY, STEP, Clip, open_camera
from tcpsbed.media.codecs import Jpeg, Raw, open_codec

SIZE = (640, 480)


def picture(index: int = 0, size: tuple[int, int] = SIZE) -> np.ndarray:
    return np.array(open_camera("test", *size, False).frame(0, index))


# --- the code in the picture


@given(
    t_us=st.integers(0, (1 << picture_code.TIME_BITS) - 1),
    number=st.integers(0, (1 << picture_code.NUMBER_BITS) - 1),
    width=st.integers(160, 700),
)
def test_time_and_number_are_read_as_they_were_drawn(t_us, number, width):
    frame = np.full((64, width, 3), 90, np.uint8)
    picture_code.draw(frame, t_us * 1000 + 999, number)
    assert picture_code.read(frame) == (t_us * 1000, number), "whole microseconds"


@pytest.mark.parametrize("coarse", [5, 20, 75])
@pytest.mark.parametrize("size", [(360, 288), SIZE])
def test_the_code_outlives_a_coder(coarse, size):
    pytest.importorskip("simplejpeg")
    codec = Jpeg(*size, 30.0, coarse)
    for index in range(20):
        frame = picture(index, size)
        picture_code.draw(frame, index * 33_000_000, index)
        back = codec.decode(np.frombuffer(codec.encode(frame), np.uint8))
        assert picture_code.read(back) == (index * 33_000_000, index)


def test_what_is_no_code_is_not_read():
    assert sum(picture_code.read(picture(index)) is not None for index in range(50)) == 0
    frame = picture()
    picture_code.draw(frame, 5_000_000, 7)
    side = picture_code.block(SIZE[0])
    frame[:side, 3 * side : 4 * side] ^= 255
    assert picture_code.read(frame) is None, "one wrong block fails the checksum"


def test_a_picture_too_narrow_for_the_code_is_left_as_it_is():
    frame = np.zeros((16, picture_code.COLUMNS * picture_code.LEAST_BLOCK - 1, 3), np.uint8)
    picture_code.draw(frame, 1, 1)
    assert not frame.any()
    assert picture_code.read(frame) is None


# --- quality


def test_psnr_by_its_definition():
    a = np.full((32, 32, 3), 100, np.uint8)
    assert quality.psnr_db(a, a) == float("inf")
    assert quality.psnr_db(a, a + np.uint8(5)) == pytest.approx(10 * np.log10(255**2 / 25))


# [Wang 2004]
def test_ssim_is_one_of_equals_and_falls_with_structure_rather_than_with_brightness():
    a = picture()
    brighter = np.clip(a.astype(int) + 16, 0, 255).astype(np.uint8)
    noise = np.clip(a + np.random.default_rng(1).normal(0, 16, a.shape), 0, 255).astype(np.uint8)
    assert quality.ssim(a, a) == pytest.approx(1.0)
    assert quality.ssim(a, brighter) > 0.95 > quality.ssim(a, noise)
    assert abs(quality.psnr_db(a, brighter) - quality.psnr_db(a, noise)) < 1.0, "PSNR sees no difference"


def test_ssim_of_flat_pictures_in_closed_form():
    """Without variance only the means count: (2 a b + c1) / (a^2 + b^2 + c1)."""
    a, b = (np.full((16, 16, 3), level, np.uint8) for level in (100, 150))
    c1 = (0.01 * 255) ** 2
    assert quality.ssim(a, b) == pytest.approx((2 * 100 * 150 + c1) / (100**2 + 150**2 + c1), abs=1e-6)


@pytest.mark.parametrize("name", ["astronaut", "cat", "coffee"])
def test_ssim_against_scikit_image(name):
    """Plain windows agree within 0.02; the Gaussian ones of Wang et al. 2004 are up to 0.04 lower, in the same order."""
    data = pytest.importorskip("skimage.data", reason="needs scikit-image")
    metrics = pytest.importorskip("skimage.metrics")
    jpeg = pytest.importorskip("simplejpeg")
    a = np.ascontiguousarray(getattr(data, name)()[:240, :320])
    found = []
    for level in (5, 10, 20, 40, 80, 95):
        b = jpeg.decode_jpeg(jpeg.encode_jpeg(a, quality=level))
        x, y = (quality._luma(picture).astype(float) for picture in (a, b))
        plain = metrics.structural_similarity(x, y, data_range=255, win_size=7)
        wang = metrics.structural_similarity(
            x, y, data_range=255, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
        )
        ours = quality.ssim(a, b)
        assert ours == pytest.approx(plain, abs=0.02)
        assert 0 <= ours - wang <= 0.04
        found.append((ours, wang))
    assert found == sorted(found) and [w for _, w in found] == sorted(w for _, w in found)


# --- cameras


def test_the_test_camera_walks_and_sees_with_two_eyes():
    camera = open_camera("test", 64, 48, True)
    frame, later = camera.frame(0, 10), camera.frame(0, 12)
    assert frame.shape == (48, 128, 3)
    left, right = frame[:, :64], frame[:, 64:]
    assert np.array_equal(left[:, DISPARITY:], right[:, :-DISPARITY]), (
        "the right eye sees further to the right"
    )
    assert np.array_equal(left[STEP:, 2 * STEP :], later[:-STEP, : 64 - 2 * STEP]), "two steps on"
    assert np.array_equal(frame, open_camera("test", 64, 48, True).frame(99, 10)), "the same in every run"


CAMERAS = """
import numpy as np
class Framed:
    def __init__(self, width, height, stereo): self.shape = (height, width, 3)
    def frame(self, t_ns, index): return np.full(self.shape, index, np.uint8)
class Rendered:
    def __init__(self, width, height, stereo): pass
    def render(self, camera, width, height):
        return np.full((height, width, 3), {"left": 1, "right": 2, "camera": 3}[camera], np.uint8)
class Listed:
    def __init__(self, width, height, stereo): self.shape = (height, width, 3)
    def __iter__(self): return iter([(5, np.full(self.shape, 8, np.uint8))])
class Killed:
    def __init__(self, width, height, stereo): pass
    def __iter__(self): return self
    def __next__(self): raise StopIteration("the drawing process ended by signal 9")
class Small(Framed):
    def frame(self, t_ns, index): return np.zeros((2, 2, 3), np.uint8)
class Nothing:
    def __init__(self, width, height, stereo): pass
class Broken:
    def __init__(self, width, height, stereo): raise OSError("no such device")
"""


@pytest.fixture
def cameras(tmp_path):
    (tmp_path / "cams.py").write_text(CAMERAS)
    return lambda name, stereo=False: open_camera(f"{tmp_path}/cams.py:{name}", 32, 16, stereo)


def test_cameras_of_the_user(cameras):
    assert cameras("Framed").frame(0, 4)[0, 0, 0] == 4
    assert cameras("Rendered").frame(0, 0)[0, 0, 0] == 3
    eyes = cameras("Rendered", stereo=True).frame(0, 0)
    assert (eyes[0, 0, 0], eyes[0, -1, 0], eyes.shape) == (1, 2, (16, 64, 3))
    listed = cameras("Listed")
    assert listed.frame(0, 0)[0, 0, 0] == 8
    with pytest.raises(HookError, match="no more pictures;"):
        listed.frame(0, 1)
    with pytest.raises(HookError, match="no more pictures: the drawing process ended by signal 9;"):
        cameras("Killed").frame(0, 0)


@pytest.mark.parametrize(
    "name, said",
    [
        ("Nothing", "no method that gives pictures; allowed: a class with frame"),
        ("Broken", "its class raised OSError: no such device; allowed: a class that opens"),
        ("None_", "no such name"),
    ],
)
def test_cameras_that_are_none_are_refused(cameras, name, said):
    with pytest.raises(HookError, match=said):
        cameras(name)


DRAWN = {"robot": "mujoco-arm", "state": "memory:arm"}
UNDRAWN = """
class Undrawn:
    def __init__(self): pass
    def show(self, state): pass
    def render(self, camera, width, height): raise ValueError("no light")
"""


@pytest.mark.parametrize(
    "symbol, params, said",
    [
        ("RobotCamera", {"robot": {"run": "mujoco-arm"}}, "robot: found .*; allowed: text"),
        ("RobotCamera", {"state": 7}, "state: found 7; allowed: text"),
        ("RobotCamera", {"cameras": []}, r"cameras: found no camera; allowed: .*\["),
        ("CameraSource", {"rate_hz": {"a": 1}}, "rate_hz: found .*; allowed: a number"),
        ("CameraSource", {"rate_hz": -30}, "rate_hz: found -30; allowed: a number from 0.001"),
        (
            "CameraSource",
            {"robot": "./undrawn.py:Undrawn"},
            "cannot be drawn: ValueError: no light, at .*undrawn.py:5",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path, capfd, symbol, params, said):
    (tmp_path / "undrawn.py").write_text(UNDRAWN)
    params = {
        key: str(tmp_path / value[2:]) if str(value)[:2] == "./" else value for key, value in params.items()
    }
    with pytest.raises(HookError, match=said):
        open_camera(f"tcpsbed.robots.camera:{symbol}", 64, 48, False, DRAWN | params)
    assert "Traceback" not in capfd.readouterr().err


def test_a_frame_of_another_shape_is_refused(cameras):
    with pytest.raises(HookError, match=r"shape \(2, 2, 3\); allowed: the shape \(16, 32, 3\)"):
        cameras("Small").frame(0, 0)


@pytest.mark.parametrize("content, said", [(None, "no such file"), (b"no video at all", "cannot be decoded")])
def test_a_file_that_is_no_video_is_refused(tmp_path, content, said):
    pytest.importorskip("av")
    path = tmp_path / "clip.mp4"
    if content:
        path.write_bytes(content)
    with pytest.raises(HookError, match=said):
        open_camera(str(path), 64, 48, False)


def test_a_video_file_without_its_package_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    for ask in (
        lambda: open_camera(str(tmp_path / "a.mp4"), 64, 48, False),
        lambda: open_codec("h264", 64, 48, 30.0, 75, 1e6, 30),
        lambda: sound.open_sound_codec("opus", 48_000, 1, 960, 32_000),
    ):
        with pytest.raises(HookError, match=r"pip install 'tcpsbed\[av\]'"):
            ask()


# --- codecs of pictures


def test_raw_pictures_come_back_whole_or_not_at_all():
    codec, frame = Raw(*SIZE), picture()
    assert np.array_equal(codec.decode(codec.encode(frame)), frame)
    with pytest.raises(HookError, match="found 5 B"):
        codec.decode(np.zeros(5, np.uint8))


def test_jpeg_follows_a_bit_rate():
    pytest.importorskip("simplejpeg")
    codec = Jpeg(*SIZE, 30.0, 95)
    codec.aim(3e6)
    sizes = [len(codec.encode(picture(index))) for index in range(60)]
    assert np.mean(sizes[30:]) * 8 * 30 == pytest.approx(3e6, rel=0.15)


def test_of_a_long_clip_the_beginning_is_shown_and_told(tmp_path, monkeypatch, capsys):
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "clip.mp4"), "w") as file:
        stream = file.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(6):
            frame = av.VideoFrame.from_ndarray(picture(index, (64, 48)), format="rgb24")
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    assert len(Clip(tmp_path / "clip.mp4", 64, 48, False).frames) == 6
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(camera, "MOST_BYTES", 4 * 64 * 48 * 3)
    assert len(Clip(tmp_path / "clip.mp4", 64, 48, False).frames) == 4
    assert "only its first 4 pictures" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["h264", "vp8", "vp9"])
def test_codecs_of_ffmpeg_give_a_picture_for_each(name):
    pytest.importorskip("av")
    there, back = (open_codec(name, 320, 240, 30.0, 75, 2e6, 30) for _ in range(2))
    for index in range(5):
        frame = picture(index, (320, 240))
        shown = back.decode(np.frombuffer(there.encode(frame), np.uint8))
        assert shown is not None, "no picture waits for a later one"
        assert quality.psnr_db(frame, shown) > 25.0


@pytest.mark.parametrize("name", ["jpeg", "h264"])
@given(noise=st.binary(min_size=0, max_size=200))
def test_bytes_of_anybody_are_refused_or_wait(name, noise):
    pytest.importorskip({"jpeg": "simplejpeg"}.get(name, "av"))
    codec = open_codec(name, 64, 48, 30.0, 75, 1e6, 30)
    try:
        assert codec.decode(np.frombuffer(noise, np.uint8)) is None
    except HookError as error:
        assert "decoded" in str(error) or "found" in str(error)


@pytest.mark.parametrize(
    ("width", "height", "stereo"), [(640, 480, False), (96, 200, False), (160, 96, True)]
)
def test_the_film_that_ships_is_seen_in_any_shape(width, height, stereo):
    pytest.importorskip("simplejpeg")
    film = camera.open_camera("builtin:clip", width, height, stereo)
    first, second, again = (film.frame(0, index) for index in (0, 1, len(film.frames)))
    assert first.shape == (height, width * (2 if stereo else 1), 3) and first.dtype == np.uint8
    assert [place for place, frame in enumerate(film.frames) if frame is not None] == [0, 1]
    assert film.frame(0, 0) is first or stereo, "decoded once"
    assert first.std() > 20 and np.array_equal(first, again) and not np.array_equal(first, second)
    if stereo:
        left, right = first[:, :width].astype(int), first[:, width:].astype(int)
        assert np.array_equal(left[:, camera.DISPARITY :], right[:, : -camera.DISPARITY])


def test_a_picture_of_another_size_is_the_same_picture():
    ramp = np.repeat(np.arange(0, 160, 2, dtype=np.uint8)[None, :, None], 60, axis=0).repeat(3, axis=2)
    larger = camera.resized(ramp, 160, 120)
    assert np.abs(np.diff(larger[60, 2:-2, 0].astype(int)) - 1).max() <= 1 and larger[
        0, 80, 0
    ] == pytest.approx(80, abs=2)
    square = camera.resized(ramp, 30, 30)
    assert np.ptp(square[:, 0, 0]) == 0
    assert square[0, 0, 0] == pytest.approx(21, abs=2), (
        "the middle: 10 of 80 columns are cut off on either side"
    )


# --- a region

BOX = {"x": 32, "y": 16, "width": 64, "height": 48, "quality": 100, "every": 3, "track": False}


def test_the_region_is_raw_in_every_picture_and_the_rest_comes_now_and_then():
    there, back = (
        (region.Regions(Raw(160, 96), 160, 96, BOX, 30.0) for _ in range(2)) if jpeg() else (None, None)
    )
    assert there is not None and back is not None
    frames = [picture(index, (160, 96)) for index in range(5)]
    for index, frame in enumerate(frames):
        data = np.frombuffer(there.encode(frame), np.uint8)
        shown = back.decode(data)
        inside = (slice(16, 64), slice(32, 96))
        assert np.array_equal(shown[inside], frame[inside])
        assert np.array_equal(shown[80:], frames[index - index % 3][80:]), "of the last background"
        assert (len(data) > 160 * 96 * 3) == (index % 3 == 0)


def test_region_and_background_together_take_the_bit_rate():
    pytest.importorskip("simplejpeg")
    codec = region.Regions(Jpeg(*SIZE, 30.0, 95), *SIZE, BOX, 30.0)
    sizes = []
    for index in range(180):
        codec.aim(6e6)
        sizes.append(len(codec.encode(picture(index))))
    assert np.mean(sizes[90:]) * 8 * 30 == pytest.approx(6e6, rel=0.15)


def jpeg() -> bool:
    pytest.importorskip("simplejpeg")
    return True


def test_the_region_follows_what_moves():
    tracker = region.Tracker((0, 0, 64, 48), (240, 320))
    for step in range(20):
        frame = np.zeros((240, 320, 3), np.uint8)
        frame[150:180, 200 + step : 230 + step] = 200
        x, y, width, height = tracker.follow(frame)
    assert x <= 215 <= x + width and y <= 165 <= y + height
    assert tracker.follow(frame) == (x, y, width, height), "nothing moves: it stays"


@given(noise=st.binary(min_size=0, max_size=60))
def test_regions_of_anybody_are_refused(noise):
    pytest.importorskip("simplejpeg")
    codec = region.Regions(Raw(160, 96), 160, 96, BOX, 30.0)
    with pytest.raises(HookError):
        codec.decode(np.frombuffer(noise, np.uint8))


def test_the_background_is_coded_smaller_and_shown_as_large_as_it_was():
    pytest.importorskip("simplejpeg")
    there, back = (region.Regions(Raw(80, 48), 160, 96, BOX | {"shrink": 2}, 30.0) for _ in range(2))
    frame = picture(0, (160, 96))
    data = np.frombuffer(there.encode(frame), np.uint8)
    assert len(data) == region.HEAD.size + 80 * 48 * 3 + 64 * 48 * 3
    shown = back.decode(data)
    assert np.array_equal(shown[16:64, 32:96], frame[16:64, 32:96]), "the region is whole"
    around = frame[64:, :].astype(int)
    assert 0 < np.abs(shown[64:, :] - around).mean() < around.std() / 2
    assert np.array_equal(shown[64::2, ::2], shown[65::2, 1::2]), "four elements of one"


def test_an_operator_marks_a_region_and_it_goes_there():
    pytest.importorskip("simplejpeg")
    marked, y = region.Mark("test"), np.zeros(8)
    there, back = (region.Regions(Raw(160, 96), 160, 96, BOX | {"marks": "test"}, 30.0) for _ in range(2))
    frame = picture(3, (160, 96))

    def box(*mark: float) -> tuple[int, ...]:
        if mark:
            marked(0, 0, np.array(mark), None, y)
        data = np.frombuffer(there.encode(frame), np.uint8)
        assert back.decode(data) is not None
        return region.HEAD.unpack(data[: region.HEAD.size].tobytes())[1:5]

    assert box() == (32, 16, 64, 48), "nothing is marked yet"
    assert box(0.5, 0.25, 0.25, 0.5, 1.0) == (80, 24, 40, 48), "drawn"
    assert box(1.0, 0.0, 0.0, 0.0, 2.0) == (120, 0, 40, 48), "a place: as large as before, within the picture"
    assert box(float("nan"), 0.0, 0.5, 0.5) == (120, 0, 40, 48), "what is no mark changes nothing"
    assert box(-3.0, -3.0, 9.0, 9.0) == (0, 0, 160, 96)
    there.box = (0, 0, 32, 32)  # as one that follows what moves would
    assert box(-3.0, -3.0, 9.0, 9.0) == (0, 0, 32, 32), "the same mark again, as it is sent 20 times a second"
    assert box(0.0, 0.0, 1.0, 1.0, 3.0) == (0, 0, 160, 96), "the same place, marked at another moment"
    there.box = (0, 0, 32, 32)
    assert box(0.0, 0.0, 1.0, 1.0, float("nan")) == box(0.0, 0.0, 1.0, 1.0, 3.0) == (0, 0, 32, 32)
    assert box(0.0, 0.0, 1.0, 1.0, 4.0) == (0, 0, 160, 96)
    lost = region.Regions(Raw(160, 96), 160, 96, BOX | {"marks": "elsewhere"}, 30.0)
    with pytest.raises(HookError, match=r'no mark "elsewhere" at this node; allowed: a hook'):
        lost.encode(frame)


def test_the_marks_of_a_run_go_with_it():
    pytest.importorskip("simplejpeg")
    there = region.Regions(Raw(160, 96), 160, 96, BOX | {"marks": "gone"}, 30.0)
    first = region.Mark("gone")
    first(0, 0, np.array([0.5, 0.25, 0.25, 0.5, 1.0]), None, np.zeros(8))
    del first
    assert "gone" not in region.MARKS
    second = region.Mark("gone")
    there.encode(picture(3, (160, 96)))
    assert there.box == (32, 16, 64, 48) and second.newest is None, "nothing is marked in this one"


# --- sound


def test_sound_comes_back_as_it_was():
    codec = sound.open_sound_codec("pcm", 16_000, 2, 320, 0)
    frame = sound.open_microphone("test", 16_000, 2, 320).frame(0, 3)
    assert np.array_equal(codec.decode(np.frombuffer(codec.encode(frame), np.uint8)), frame)
    with pytest.raises(HookError, match="multiple of 4 B"):
        codec.decode(np.zeros(3, np.uint8))


@pytest.mark.parametrize("span_ms", [2.5, 5.0, 10.0, 20.0])
def test_opus_gives_the_tone_back(span_ms):
    pytest.importorskip("av")
    samples = round(48 * span_ms)
    there, back = (sound.open_sound_codec("opus", 48_000, 1, samples, 64_000) for _ in range(2))
    tone = sound.open_microphone("test", 48_000, 1, samples)
    frames = [tone.frame(0, index) for index in range(int(1000 / span_ms))]
    heard = [back.decode(np.frombuffer(there.encode(frame), np.uint8)) for frame in frames]
    whole = np.concatenate([part for part in heard if part is not None])[:, 0].astype(float)
    spectrum = np.abs(np.fft.rfft(whole * np.hanning(len(whole))))
    assert np.argmax(spectrum) * 48_000 / len(whole) == pytest.approx(sound.TONE_HZ, abs=2.0)
    assert len(whole) == pytest.approx(48_000, rel=0.05)


@pytest.mark.parametrize("hz", [8_000, 16_000, 24_000])
def test_opus_gives_back_the_rate_that_it_was_given(hz):
    pytest.importorskip("av")
    there, back = (sound.open_sound_codec("opus", hz, 2, hz // 50, 64_000) for _ in range(2))
    tone = sound.open_microphone("test", hz, 2, hz // 50)
    heard = [back.decode(np.frombuffer(there.encode(tone.frame(0, i)), np.uint8)) for i in range(50)]
    whole = np.concatenate([part for part in heard if part is not None])
    spectrum = np.abs(np.fft.rfft(whole[:, 1] * np.hanning(len(whole))))
    assert np.argmax(spectrum) * hz / len(whole) == pytest.approx(sound.TONE_HZ, abs=2.0)
    assert whole.shape[1] == 2 and len(whole) == pytest.approx(hz, rel=0.05)


def test_opus_takes_its_own_frames_only():
    pytest.importorskip("av")
    with pytest.raises(HookError, match="found frames of 7 ms"):
        sound.open_sound_codec("opus", 48_000, 1, 336, 32_000)


def test_recorded_speech_goes_round_and_another_rate_is_refused(tmp_path):
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(np.arange(500, dtype="<i2").tobytes())
    heard = sound.open_microphone(str(path), 8000, 1, 160).frame(0, 3)[:, 0]
    assert heard.tolist() == [i % 500 for i in range(480, 640)]
    with pytest.raises(HookError, match="found 8000 Hz"):
        sound.open_microphone(str(path), 16_000, 1, 320)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(HookError) as refused:
        sound.open_microphone(str(path), 8000, 1, 160)
    assert str(refused.value).count(str(path)) == 1 and "no RIFF/WAVE" in str(refused.value)


def test_speech_is_the_same_sentence_at_another_rate():
    mono = sound.open_microphone("builtin:speech", 16_000, 1, 16_000).frame(0, 1)[:, 0]
    more = sound.open_microphone("builtin:speech", 48_000, 2, 48_000).frame(0, 1)
    assert np.array_equal(more[:, 0], more[:, 1]) and np.array_equal(more[::3, 0], mono)
    assert mono.std() > 300, "somebody speaks"


def test_a_speaker_keeps_time_over_what_is_lost(tmp_path):
    path = tmp_path / "heard.wav"
    speaker = sound.open_speaker(str(path), 8000, 1)
    for index in (5, 6, 9, 8):
        speaker.play(np.full((80, 1), index, np.int16), 0, index)
    speaker.file.close()
    with wave.open(str(path)) as file:
        heard = np.frombuffer(file.readframes(10_000), "<i2")
    assert heard.reshape(-1, 80)[:, 0].tolist() == [5, 6, 0, 0, 9], (
        "what comes behind a later one is left out"
    )


def test_a_frame_with_a_wild_number_fills_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(sound, "MOST_SILENCE_S", 1)
    speaker = sound.open_speaker(str(tmp_path / "heard.wav"), 8000, 1)
    for index in (0, 1 << 40):
        speaker.play(np.ones((80, 1), np.int16), 0, index)
    assert speaker.file.tell() == 8000 + 2 * 80


# --- displays


def test_a_window_without_a_screen_names_what_else_there_is(monkeypatch):
    pytest.importorskip("tkinter")
    monkeypatch.delenv("DISPLAY", raising=False)
    params = {"width": 64, "height": 48, "stereo": False, "display": "window", "compare": 0, "stamp": False}
    with pytest.raises(HookError, match=r'DISPLAY is not set.*allowed: "none"'):
        stages.PictureShow(**params)
