"""`predict` serves sound and pictures, too: lost frames are concealed; and the predictive display of force and picture."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import KINDS, open_records
from tcpsbed.media import picture_code

MEDIA = """
name = "media"
duration = "8 s"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-com = "ss"
tactile-teleoperator = "ss"
[flows.{flow}]
rate = "50 Hz"
sample = "320 B"
codec = "raw"
sink = "count"
[hooks.conceal]
kind = "predict"
run = "conceal"
at = "ms-com"
flow = "{flow}"
period = "20 ms"
answers = "arrivals"
params = {{ medium = "{medium}" }}
[links.line]
from = "ms"
to = "ss"
delay = "5 ms"
loss = "30 %"
"""
DISPLAY = """
name = "display"
duration = "6 s"
[components]
hand = { kind = "tactile-operator", node = "ms" }
ms-com = "ms"
ss-com = "ss"
tactile-teleoperator = { node = "ss", robot = "wall_mass" }
[flows.kinematic]
source = { recording = "to_and_fro.csv", columns = ["x_m"], repeat = "loop" }
codec = "f64"
[flows.haptic]
sample = "24 B"
codec = "f64"
[hooks.display]
kind = "predict"
run = "environment"
at = "ms-com"
flow = "haptic"
period = "1 ms"
[links.line]
from = "ms"
to = "ss"
delay = "10 ms"
[[events]]
at = "4 s"
link = "line"
up = false
[[events]]
at = "5 s"
link = "line"
up = true
[measure]
signals = ["ms-com.exit", "tactile-teleoperator.sense"]
"""
PICTURE = (
    DISPLAY.replace('duration = "6 s"', 'duration = "5 s"')
    + """
[flows.video]
rate = "25 fps"
[flows.video.picture]
width = 320
height = 160
camera = "test"
codec = "raw"
compare = 1
display = "./screen.py:Screen"
[hooks.preview]
kind = "predict"
run = "preview"
at = "hand"
flow = "video"
period = "40 ms"
answers = "arrivals"
other = ["kinematic", "haptic"]
params = { width = 320, height = 160, position = [0], pixels = [[3000, 0]], force = [1], mark = 4, stale_ms = 70 }
"""
)
SCREEN = '''
from pathlib import Path

import numpy as np


class Screen:
    """Keeps every frame that is shown, named by its moment."""

    def __init__(self, width, height):
        self.folder = Path(__file__).parent / "shown"
        self.folder.mkdir(exist_ok=True)

    def show(self, frame, t_ns, index):
        np.save(self.folder / f"{t_ns}.npy", frame)
'''
MARK = (255, 128, 0)


@pytest.mark.parametrize(("flow", "medium"), [("video", "picture"), ("audio", "sound")])
def test_a_frame_in_each_period_though_a_third_is_lost(tmp_path: Path, flow: str, medium: str) -> None:
    (tmp_path / "s.toml").write_text(MEDIA.format(flow=flow, medium=medium))
    run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "out")
    rows = open_records(run.folder / "records.bin")
    given = rows[rows["kind"] == 1 + KINDS.index("renumbered")]
    made_up = float((given["detail"] == 0).mean())
    assert made_up == pytest.approx(0.3, abs=0.08), "as many as are lost"
    assert len(given) == pytest.approx(8 * 50, rel=0.03), "one in each period"
    assert (np.diff(given["time"]) / 1e6).max() <= 30 + 1e-6, "one and a half periods at most"
    found = json.loads((run.folder / "summary.json").read_text())
    assert all(stage["failures"] == 0 for stage in found["stages"])


def test_the_force_goes_on_through_an_outage_and_is_marked(shipped_scenarios: Path, tmp_path: Path) -> None:
    """What the operator is shown while the line is down is the wall where the hand is, and the record says when."""
    (tmp_path / "to_and_fro.csv").write_text((shipped_scenarios / "to_and_fro.csv").read_text())
    (tmp_path / "s.toml").write_text(DISPLAY)
    run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "out")
    shown = signals.read(run.folder, "ms-com.exit", "haptic")
    t, force, x, marked = shown.t_s, shown.values[:, 0], shown.values[:, 1], shown.values[:, 3]
    down = (t > 4.2) & (t < 5.0)
    assert (marked[down] == 1).all() and (marked[(t > 1) & (t < 4)] == 0).all()
    # The hand goes on into the wall by itself, where the slave would not follow: no more than was felt before.
    wall = np.minimum(500 * np.maximum(x - 0.02, 0), force[t < 4].max())
    assert force[down].max() > 1, "the hand is in the wall meanwhile"
    assert np.abs(force[down] - wall[down]).max() < 0.25 * force[down].max()
    [watched] = json.loads((run.folder / "summary.json").read_text())["states"]
    assert [(c["from"], c["to"]) for c in watched["changes"]] == [
        ("live", "predicted"),
        ("predicted", "live"),
    ]
    assert watched["changes"][0]["t_s"] == pytest.approx(4.015, abs=0.003)


@pytest.fixture(scope="module")
def previewed(
    tmp_path_factory: pytest.TempPathFactory, shipped_scenarios: Path
) -> tuple[tcpsbed.Run, dict[float, np.ndarray]]:
    """A run whose line is down from 4.0 s to its end, and the frames that its operator saw, by time in s."""
    folder = tmp_path_factory.mktemp("preview")
    (folder / "to_and_fro.csv").write_text((shipped_scenarios / "to_and_fro.csv").read_text())
    (folder / "screen.py").write_text(SCREEN)
    text = PICTURE.replace('at = "5 s"', 'at = "4.6 s"').replace(
        '["ms-com.exit"', '["hand.exit", "ms-com.exit"'
    )
    (folder / "s.toml").write_text(text)
    run = tcpsbed.run(folder / "s.toml", out=folder / "out")
    return run, {int(path.stem) / 1e9: np.load(path) for path in (folder / "shown").glob("*.npy")}


def edge(frame: np.ndarray) -> tuple[int, ...]:
    """A pixel of the frame that is drawn around what is predicted."""
    return tuple(frame[100, 0])


def alike(shown: np.ndarray, last: np.ndarray, pixels: int) -> float:
    """How much of a frame, without what marks it, is the last one moved by so many pixels to the right."""
    moved = np.roll(last, pixels, axis=1)
    known = slice(max(pixels, 0) + 4, shown.shape[1] + min(pixels, 0) - 4)
    return float((shown[40:120, known] == moved[40:120, known]).mean())


def test_a_display_shows_where_the_tool_must_be_while_pictures_are_stale(previewed) -> None:
    """Pixels of what the operator's display was given: the last picture, moved by the way of the hand since it was taken."""
    run, shown = previewed
    times = sorted(shown)
    last = max(t for t in times if t < 4.02)
    predicted = [t for t in times if 4.08 < t < 4.6]
    assert len(predicted) == pytest.approx(12, abs=1), "a picture in each period"
    taken = math.floor(last / 0.04) * 0.04
    assert last - taken == pytest.approx(0.01, abs=0.002), "the line's delay"
    hand = signals.read(run.folder, "hand.exit", "kinematic")
    at = lambda t: hand.values[np.searchsorted(hand.t_s, t, side="right") - 1, 0]  # noqa: E731
    moved = []
    for t in predicted:
        by = 3000 * (at(t) - at(taken))
        moved.append(by)
        # The hand's sample of this very moment may count or not, and half a pixel goes either way.
        nearest = [int(by) + more for more in (-1, 0, 1)]
        assert max(alike(shown[t], shown[last], pixels) for pixels in nearest) > 0.99, (t, by)
        assert edge(shown[t]) == MARK
        assert picture_code.read(shown[t]) == picture_code.read(shown[last]), "its age is read of it"
        words = (shown[t][-24:, 4:316] == MARK).all(axis=2).sum()
        assert words > 300, "PICTURE PREDICTED, FORCE PREDICTED"
    assert max(moved) - min(moved) > 20, "it moves with the hand"


def test_live_pictures_pass_as_they_are_and_the_record_says_when_they_are_not(previewed) -> None:
    run, shown = previewed
    for t, frame in shown.items():
        if not 4.0 < t < 4.7:
            assert edge(frame) != MARK, t
    pictures = next(w for w in run.summary["states"] if w["flow"] == "video")
    changes = [(c["from"], c["to"]) for c in pictures["changes"]]
    assert changes == [("live", "predicted"), ("predicted", "live")]
    assert 4.05 < pictures["changes"][0]["t_s"] < 4.16
    seen = signals.read(run.folder, "hand.exit", "video").values
    _, times = np.unique(seen[~np.isnan(seen[:, 2]), 1], return_counts=True)
    _, shows = np.unique(seen[:, 1], return_counts=True)
    assert (times == times[0]).all() and shows.max() >= 10 * shows.min(), "shown again, compared once"
