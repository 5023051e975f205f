"""Pictures of an episode of a LeRobot data set: the span of a video that several episodes share."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tcpsbed.datasets.formats import lerobot
from tcpsbed.errors import DataError
from tcpsbed.media.camera import open_camera

pa = pytest.importorskip("pyarrow")
av = pytest.importorskip("av", reason="needs PyAV: pip install 'tcpsbed[av]'")
pq = pytest.importorskip("pyarrow.parquet")
VIDEO = "observation.images.front"
CAMERA = "tcpsbed.media.episode:EpisodeCamera"


@pytest.fixture
def data_set(tmp_path: Path) -> Path:
    """Two episodes in one video: 5 dark pictures, then 8 bright ones, 10 a second."""
    info = {"codebase_version": "v3.0", "fps": 10, "total_episodes": 2, "video_path": lerobot.V3_VIDEO}
    table = {"episode_index": [0, 1]}
    table |= {f"videos/{VIDEO}/{name}": [0, 0] for name in ("chunk_index", "file_index")}
    table |= {f"videos/{VIDEO}/from_timestamp": [0.0, 0.5], f"videos/{VIDEO}/to_timestamp": [0.5, 1.3]}
    (tmp_path / "meta/episodes/chunk-000").mkdir(parents=True)
    pq.write_table(pa.table(table), tmp_path / "meta/episodes/chunk-000/file-000.parquet")
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    file = tmp_path / lerobot.V3_VIDEO.format(video_key=VIDEO, chunk_index=0, file_index=0)
    file.parent.mkdir(parents=True)
    with av.open(str(file), "w") as out:
        stream = out.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for level in [40] * 5 + [200] * 8:
            picture = av.VideoFrame.from_ndarray(np.full((48, 64, 3), level, np.uint8), format="rgb24")
            out.mux(stream.encode(picture))
        out.mux(stream.encode(None))
    return tmp_path


@pytest.mark.parametrize(("episode", "count", "level"), [(0, 5, 40), (1, 8, 200)])
def test_a_camera_shows_one_episode_of_the_video(
    data_set: Path, episode: int, count: int, level: int
) -> None:
    params = {"data_set": str(data_set), "video": VIDEO, "episode": episode}
    camera = open_camera(CAMERA, 64, 48, False, params)
    pictures = camera.object.frames  # type: ignore[attr-defined]
    assert len(pictures) == count
    assert all(abs(float(picture.mean()) - level) < 15 for picture in pictures)
    assert camera.frame(0, 0).shape == (48, 64, 3)


def test_a_camera_that_is_not_there_is_named(data_set: Path) -> None:
    with pytest.raises(DataError, match=r"observation\.images\.back"):
        lerobot.video_of(data_set, 0, "observation.images.back")
    with pytest.raises(DataError, match=r"no episode 2.*0 to 1"):
        lerobot.video_of(data_set, 2, VIDEO)
