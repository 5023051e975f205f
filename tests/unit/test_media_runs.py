"""Flows of pictures and sound in virtual time, and what a scenario may not say of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis.records import KINDS, plan_of
from tcpsbed.errors import ConfigError
from tcpsbed.media import region
from tcpsbed.studio import freeze
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder

SCENARIO = """
name = "eyes"
duration = "2 s"
[components]
tactile-operator = "home"
ms-embsys = "home"
ms-com = "home"
ss-com = "field"
ss-embsys = "field"
tactile-teleoperator = "field"
[flows.video]
rate = "25 Hz"
[flows.video.picture]
width = 160
height = 96
codec = "raw"
compare = 5
capture_cost = "2 ms"
encode_cost = "3 ms"
decode_cost = "1 ms"
show_cost = "4 ms"
[flows.audio]
rate = "50 Hz"
[flows.audio.sound]
microphone = "builtin:sound"
[links.line]
from = "home"
to = "field"
rate = "100 Mbit/s"
delay = "10 ms"
"""
FRAME_BYTES = 160 * 96 * 3
PACKETS = 40
"""Datagrams of 1200 B with 1176 B of a frame each."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tcpsbed.run(SCENARIO, out=tmp_path_factory.mktemp("eyes"))


def test_glass_to_glass_is_the_sum_of_what_the_scenario_says(run):
    """Costs 10 ms, propagation 10 ms, and the frame on the line with 78 B of headers a packet."""
    found = run.summary["media"]["video"]
    wire_ms = (FRAME_BYTES + PACKETS * 78) * 8 / 100e6 * 1e3
    # Sound packets share the line: at most one may be in front of a frame.
    assert found["glass_to_glass_ms"]["min"] == pytest.approx(20.0 + wire_ms, abs=0.05)
    assert found["glass_to_glass_ms"]["max"] == pytest.approx(20.0 + wire_ms, abs=0.2)
    assert (found["unread"], found["repeated"]) == (0, 0)
    assert 49 <= found["shown"] <= 50


def test_raw_pictures_lose_nothing_and_have_their_size(run):
    found = run.summary["media"]["video"]
    assert found["ssim"] == pytest.approx(1.0)
    assert found["psnr_db"] is None, "nothing is different"
    assert found["coded_bytes"] == FRAME_BYTES
    assert found["coded_bps"] == pytest.approx(FRAME_BYTES * 8 * 25, rel=1e-3)


def test_sound_arrives(run):
    found = run.summary["media"]["audio"]
    assert found["kind"] == "sound"
    assert found["shown"] >= 98
    assert -60.0 < found["loudness_db"] < 0.0
    assert found["coded_bytes"] == 640


def test_the_stages_stand_where_the_boards_are(run):
    stages = {(s["component"], s["flow"], s["kind"]) for s in run.summary["stages"] if s["flow"] == "video"}
    assert stages == {
        ("tactile-teleoperator", "video", "capture"),
        ("ss-embsys", "video", "code"),
        ("ms-embsys", "video", "decode"),
        ("tactile-operator", "video", "show"),
    }


def test_the_same_seed_gives_the_same_rows(run, tmp_path):
    again = tcpsbed.run(SCENARIO, out=tmp_path / "again")
    assert again.summary["records_sha256"] == run.summary["records_sha256"]
    assert "this machine" in again.summary["promise"]


def test_the_report_shows_pictures(run):
    folder = open_folder(run.folder)
    assert "glass to glass" in freeze.render(folder)
    assert "age mean ms" in text.overview(folder)


def test_a_stage_that_cannot_keep_up_drops_pictures_and_the_rest_goes_on(tmp_path):
    found = tcpsbed.run(
        SCENARIO, out=tmp_path / "slow", set=['flows.video.picture.encode_cost="100 ms"']
    ).summary
    drops = found["flows"]["video"]["drops"]
    # One core: what waits for it waits in front of the encoder or of the camera.
    assert sum(count for place, count in drops.items() if place.endswith(" overload")) > 20
    # Of 25 fps 10 are coded; at the end up to four of them are in flight.
    assert 15 <= found["media"]["video"]["shown"] <= 20
    assert found["flows"]["audio"]["lost"] == 0


FOLLOWED = """
name = "followed"
duration = "6 s"
warmup = "3 s"
[components]
tactile-operator = "home"
ms-com = "home"
ss-com = "field"
tactile-teleoperator = "field"
[flows.haptic]
sample = "12 B"
[flows.video]
rate = "25 Hz"
[flows.video.picture]
width = 320
height = 240
follow = true
quality = 98
bitrate = "10 Mbit/s"
[channels.all]
flows = ["haptic", "video"]
transport = { kind = "visual-haptic", capacity = "3 Mbit/s", overhead = "67 B" }
[links.line]
from = "home"
to = "field"
rate = "3 Mbit/s"
delay = "10 ms"
"""


def test_an_encoder_follows_what_force_leaves_of_the_line(tmp_path):
    """3 Mbit/s less 1000 packets of 79 B a second, and nine tenths of that; force stays on time."""
    pytest.importorskip("simplejpeg")
    found = tcpsbed.run(FOLLOWED, out=tmp_path / "follows").summary
    assert found["media"]["video"]["coded_bps"] == pytest.approx(0.9 * (3e6 - 632e3), rel=0.15)
    assert found["flows"]["haptic"]["lost"] == found["flows"]["video"]["lost"] == 0
    blind = tcpsbed.run(FOLLOWED, out=tmp_path / "blind", set=["flows.video.picture.follow=false"]).summary
    assert blind["flows"]["video"]["lost"] > 0, "more than the line carries: frames are dropped whole"
    for summary in (found, blind):
        assert summary["flows"]["haptic"]["delay_ms"]["max"] < 16.0, "the picture yields"


def test_where_pictures_cannot_get_smaller_there_are_fewer(tmp_path):
    """Of 0.75 Mbit/s force leaves little; the smallest JPEG of this size 25 times a second would be more."""
    pytest.importorskip("simplejpeg")
    narrow = ['channels.all.transport.capacity="0.75 Mbit/s"', 'links.line.rate="0.75 Mbit/s"']
    found = tcpsbed.run(FOLLOWED, out=tmp_path, set=narrow).summary
    video, flow = found["media"]["video"], found["flows"]["video"]
    assert 2.0 < video["shown_per_s"] < 20.0
    assert video["coded_bps"] < 1.05 * (0.75e6 - 632e3)
    assert flow["lost"] == 0 and flow["suppressed"] + flow["delivered"] == pytest.approx(flow["sent"], abs=3)
    assert found["flows"]["haptic"]["delay_ms"]["max"] < 20.0, "the picture yields"


def test_pictures_answer_echo_commands_at_every_stage(run, tmp_path):
    echo = 'measure.echo={ points = "all", flow = "video", period = "40 ms" }'
    found = tcpsbed.run(SCENARIO, out=tmp_path / "echo", set=[echo]).summary["echo"]["video"]
    forward = {p["point"]: p["forward_ms"]["mean"] for p in found["points"]}
    order = [
        "ss-embsys.entry",
        "ss-embsys.exit",
        "ms-embsys.entry",
        "ms-embsys.exit",
        "tactile-operator.exit",
    ]
    reached = [forward[point] for point in order]
    # Capture 2 ms, coding 3 ms, line 10 ms and the frame, decoding 1 ms, showing 4 ms.
    assert reached == sorted(reached)
    assert forward["ss-embsys.entry"] == pytest.approx(2.0, abs=0.01)
    assert forward["ss-embsys.exit"] == pytest.approx(5.0, abs=0.01)
    assert forward["tactile-operator.exit"] - forward["ms-embsys.entry"] == pytest.approx(5.0, abs=0.01)


def test_a_camera_that_fails_is_told_and_the_rest_goes_on(tmp_path):
    (tmp_path / "cam.py").write_text(
        "import numpy as np\n"
        "class Cam:\n"
        "    def __init__(self, width, height, stereo): self.shape = (height, width, 3)\n"
        "    def frame(self, t_ns, index):\n"
        "        if index == 7: raise OSError('unplugged')\n"
        "        return np.zeros(self.shape, np.uint8)\n"
    )
    (tmp_path / "eyes.toml").write_text(SCENARIO)
    settings = [f'flows.video.picture.camera="{tmp_path}/cam.py:Cam"', "flows.video.picture.compare=0"]
    found = tcpsbed.run(tmp_path / "eyes.toml", out=tmp_path / "out", set=settings).summary
    capture = next(s for s in found["stages"] if s["kind"] == "capture" and s["flow"] == "video")
    assert capture["failures"] == 1
    assert "unplugged" in json.dumps(found)
    assert found["media"]["video"]["shown"] >= 47
    assert found["flows"]["audio"]["lost"] == 0


def compiled(tmp_path, *settings):
    (tmp_path / "eyes.toml").write_text(SCENARIO)
    return scenarios.check(scenarios.load(tmp_path / "eyes.toml", settings))


def test_stages_stand_where_the_scenario_says(tmp_path):
    plan = compiled(
        tmp_path, 'flows.video.picture.encode_at="ss-com"', 'flows.video.picture.decode_at="tactile-operator"'
    )
    video = next(flow for flow in plan["flows"] if flow["name"] == "video")
    kinds = [[step["kind"] for step in visit["steps"]] for visit in video["path"]]
    assert kinds == [["capture"], [], ["code"], [], [], ["decode", "show"]]


REFUSED = {
    'flows.video.picture.codec="mpeg"': "flows.video.picture.codec",
    'flows.video.codec="f32"': "or none; picture.codec",
    'flows.video.sink="verify"': "a frame is shown, not obeyed",
    "flows.video.picture.width=4096": None,
    'flows.video.picture.camera="nowhere.mp4"': "nowhere.mp4",
    'flows.video.picture.display="./mine.py:Screen"': "mine.py",
    'flows.video.picture.encode_at="srv"': "a component on the way",
    'flows.video.picture.decode_at="ss-embsys"': "a component behind the one that encodes",
    "flows.video.picture.stamp=false": "compare = 0",
    "flows.video.picture.region={ width = 32, height = 32 }": '"jpeg"',
    'flows.video.picture.camera="builtin:speech"': '"builtin:clip", "test"',
    "flows.video.picture.params={ zoom = 2 }": 'flows.video.picture.params: found parameters of "builtin:clip"',
    'flows.audio.sound.microphone="builtin:clip"': '"builtin:speech" or "builtin:sound"',
    'flows.audio.sound.microphone="nowhere.wav"': "nowhere.wav",
    'flows.audio.sound.speaker="heard.mp3"': ".wav",
    "flows.video.picture.width=100": None,
}


@pytest.mark.parametrize("setting", REFUSED)
def test_what_cannot_be_is_refused_with_the_remedy(tmp_path, setting):
    if REFUSED[setting] is None:
        compiled(tmp_path, setting, "flows.video.picture.stamp=false", "flows.video.picture.compare=0")
        return
    with pytest.raises(ConfigError) as told:
        compiled(tmp_path, setting)
    assert REFUSED[setting] in str(told.value), str(told.value)
    assert "; allowed: " in str(told.value)


def test_pictures_and_sound_take_a_flow_each(tmp_path):
    with pytest.raises(ConfigError, match="a flow each"):
        compiled(tmp_path, 'flows.video.sound.codec="pcm"')


MARKED = {
    'hooks.mark.params={ name = "other" }': 'found "interest", which no hook takes where ss-embsys encodes',
    'flows.video.picture.region.marks="other"': r'tcpsbed\.media\.region:Mark", at = "ss-embsys"',
    'hooks.mark={ at = "ms-com", kind = "kinematics" }': "no hook takes where ss-embsys encodes",
    'flows.video.picture.encode_at="ms-com"': "no hook takes where ms-com encodes",
    'sessions=["a", "b"]': 'found "interest" in 2 sessions, which would share it; allowed: one session',
}


@pytest.mark.parametrize("setting", MARKED)
def test_marks_that_no_hook_takes_or_sessions_share_are_refused(shipped_scenarios, setting):
    pytest.importorskip("simplejpeg")
    loaded = scenarios.load(shipped_scenarios / "console-region.toml", [setting])
    with pytest.raises(ConfigError, match=r"flows\.video\.picture\.region\.marks.*" + MARKED[setting]):
        scenarios.check(loaded)


def test_what_an_operator_marked_is_sent_better_from_then_on(tmp_path, shipped_scenarios):
    pytest.importorskip("simplejpeg")
    (tmp_path / "marks.csv").write_text("time_s,v0,v1,v2,v3,v4\n0,0.4,0.4,0.1,0.1,0\n1,0.1,0.2,0.8,0.75,1\n")
    sets = ['duration="2 s"', f'flows.mark.source="operator:{tmp_path}/marks.csv"']
    sets += ["flows.video.rate='10 Hz'"]
    run = tcpsbed.run(shipped_scenarios / "console-region.toml", out=tmp_path / "out", set=sets)
    assert run.summary["errors"] == [] and run.summary["media"]["video"]["unread"] == 0
    assert [stage for stage in run.summary["stages"] if stage["failures"]] == []
    assert "interest" not in region.MARKS, "they end with their run"
    rows = run.records
    video = [flow["name"] for flow in plan_of(run.folder)["flows"]].index("video")
    coded = rows[(rows["kind"] == 1 + KINDS.index("delivered")) & (rows["flow"] == video)]
    before, after = (coded["size"][coded["time"] // 1_000_000_000 == second] for second in (0, 1))
    assert len(before) > 5 and after[1:].min() > 2 * np.median(before), "a region of 60 % instead of 1 %"
