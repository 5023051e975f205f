"""`predict` serves sound and pictures, too: lost frames are concealed; and the display of force in a scenario."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import KINDS, open_records

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
loss = 0.3
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


def test_the_force_goes_on_through_an_outage_and_is_marked(scenarios: Path, tmp_path: Path) -> None:
    """What the operator is shown while the line is down is the wall where the hand is, and the record says when."""
    (tmp_path / "to_and_fro.csv").write_text((scenarios / "to_and_fro.csv").read_text())
    (tmp_path / "s.toml").write_text(DISPLAY)
    run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "out")
    shown = signals.read(run.folder, "ms-com.exit", "haptic")
    t, force, x, marked = shown.t_s, shown.values[:, 0], shown.values[:, 1], shown.values[:, 3]
    down = (t > 4.2) & (t < 5.0)
    assert (marked[down] == 1).all() and (marked[(t > 1) & (t < 4)] == 0).all()
    wall = 500 * np.maximum(x - 0.02, 0)
    assert force[down].max() > 1, "the hand is in the wall meanwhile"
    assert np.abs(force[down] - wall[down]).max() < 0.25 * force[down].max()
    [watched] = json.loads((run.folder / "summary.json").read_text())["states"]
    assert [(c["from"], c["to"]) for c in watched["changes"]] == [
        ("live", "predicted"),
        ("predicted", "live"),
    ]
    assert watched["changes"][0]["t_s"] == pytest.approx(4.015, abs=0.003)
