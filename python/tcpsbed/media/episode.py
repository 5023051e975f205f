"""A camera with the pictures of an episode of a LeRobot data set (v2, v2.1, v3).

```toml
[flows.video.picture]
camera = "tcpsbed.media.episode:EpisodeCamera"
params = { data_set = "/data/pick", episode = 1, video = "observation.images.front" }
```
"""

from __future__ import annotations

from pathlib import Path

from tcpsbed.datasets.formats import lerobot
from tcpsbed.media.camera import Clip


class EpisodeCamera(Clip):
    """The pictures of an episode in a circle, one in each period of the flow; needs PyAV.

    Parameters
    ----------
    data_set
        Folder of the data set.
    video
        Key of the camera, such as `observation.images.front`.
    episode
        Its number, from 0.
    width, height, stereo
        Of the picture, as the scenario has them.
    """

    def __init__(
        self,
        data_set: str,
        video: str,
        episode: int = 0,
        width: int = 640,
        height: int = 480,
        stereo: bool = False,
    ) -> None:
        path, span_s = lerobot.video_of(Path(data_set).expanduser(), episode, video)
        super().__init__(path, width, height, stereo, span_s)
