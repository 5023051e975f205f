"""Pictures in real time: workers code them, their own code tells how old they are, and the haptic loop goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from again import in_time
from real_run import whole

SCENARIO = """
name = "eyes"
duration = "4 s"
warmup = "1 s"
[components]
tactile-operator = "home"
ms-embsys = "home"
ms-com = "home"
ss-com = "field"
ss-embsys = "field"
tactile-teleoperator = {{ node = "field", robot = "arm" }}
[flows.kinematic]
[flows.haptic]
[flows.video]
rate = "30 Hz"
[flows.video.picture]
codec = "{codec}"
width = {width}
height = {height}
stereo = {stereo}
{more}
"""


def eyes(codec: str, *, width: int = 640, height: int = 480, stereo: bool = False, more: str = "") -> str:
    return SCENARIO.format(codec=codec, width=width, height=height, stereo=str(stereo).lower(), more=more)


def stage(summary: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(s for s in summary["stages"] if s["kind"] == kind and s["flow"] == "video")


@pytest.mark.parametrize("codec", ["raw", "jpeg", "h264"])
def test_pictures_come_whole_and_soon(tmp_path: Path, codec: str) -> None:
    """From glass to glass is what the stages take, and not much more; motion and force lose nothing beside it."""
    pytest.importorskip({"jpeg": "simplejpeg", "h264": "av"}.get(codec, "numpy"))
    found, _ = whole(tmp_path, eyes(codec, more="compare = 10"))
    video = found["media"]["video"]
    assert video["unread"] == 0
    work_ms = sum(stage(found, kind)["cpu_ns"]["p50"] for kind in ("capture", "code", "decode", "show")) / 1e6
    with in_time(found["disturbances"]):
        assert video["shown"] > 0.8 * 30 * 3
    assert 0.8 * work_ms < video["glass_to_glass_ms"]["p50"] < work_ms + 25.0
    assert video["psnr_db"] is None if codec == "raw" else video["psnr_db"] > 30.0
    for flow in ("kinematic", "haptic"):
        assert found["flows"][flow]["delivered"] > 0.98 * found["flows"][flow]["sent"]


def test_a_slow_display_drops_pictures_and_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "class Screen:\n"
        "    def __init__(self, width, height): pass\n"
        "    def show(self, frame, t_ns, index): time.sleep(0.2)\n"
    )
    found, _ = whole(
        tmp_path, eyes("raw", width=160, height=120, more=f'display = "{tmp_path}/slow.py:Screen"')
    )
    assert 5 < found["media"]["video"]["shown"] < 25, "five a second"
    assert found["flows"]["video"]["drops"]["tactile-operator overload"] > 30
    for flow in ("kinematic", "haptic"):
        assert found["flows"][flow]["delivered"] > 0.95 * found["flows"][flow]["sent"]


def test_a_display_that_goes_away_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text(
        "class Screen:\n"
        "    def __init__(self, width, height): pass\n"
        "    def show(self, frame, t_ns, index):\n"
        "        if index > 30: raise ConnectionError('the window was closed')\n"
    )
    text = eyes("raw", width=160, height=120, more=f'display = "{tmp_path}/gone.py:Screen"')
    found, _ = whole(tmp_path, text, ok=False)
    shown = stage(found, "show")
    assert shown["failures"] > 20
    assert "the window was closed" in str(found["disturbances"]) + str(found["errors"]) + str(shown)
    assert found["flows"]["haptic"]["delivered"] > 0.95 * found["flows"]["haptic"]["sent"]
