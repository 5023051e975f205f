"""The virtual microscope: rates and sizes, its queue, what force does, and surfaces as a hand feels them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from made import made

from tcpsbed.errors import HookError
from tcpsbed.robots.cell import Cell
from tcpsbed.robots.feel import Feel
from tcpsbed.robots.microscope import MODIFY, PATCH, PATH, POINT, ROW, SCAN, Microscope
from tcpsbed.robots.sample import Sample
from tcpsbed.robots.view import HAND, TIP, SurfaceView

MS = 1_000_000
MAPS = sorted((recorded.DATA / "afm").glob("*.npy"))


class Bench:
    """A microscope stepped at 1 kHz."""

    def __init__(self, **params) -> None:
        self.device, self.t_ms, self.sense = made(Microscope, **params), 0, np.zeros(32)

    def run(self, ms: int, *command: float) -> np.ndarray:
        """What it gives out after so many ticks."""
        for _ in range(ms):
            assert self.device.step(self.t_ms * MS, np.array(command), self.sense) == 27
            self.t_ms += 1
        return self.sense.copy()


def test_a_scan_measures_at_its_rate_along_its_lines():
    """[Hudson 2001: streams] [Hudson 2001] 300 measurements a second at constant speed."""
    bench = Bench(noise_nm=0.0)
    places = [bench.run(1, 1, SCAN, 100, 200, 90, 10)[:4] for _ in range(1000)]
    numbers = np.array(places)[:, 3]
    assert numbers[-1] == pytest.approx(300, abs=2) and (np.diff(numbers) <= 1).all()
    first = {int(row[3]): row for row in places}
    assert [first[i][0] for i in (2, 11, 20)] == [110, 190, 100], "forth, then back"
    assert first[5][1] == 200 and first[15][1] == 210
    held = bench.run(500, 2, SCAN, 0, 0, 0, 0)[3]
    assert bench.run(100, 2, SCAN, 0, 0, 0, 0)[3] == held, "no lines: it holds still"


def test_a_point_is_answered_with_all_channels():
    """[Hudson 2001: streams] A command of 7 values of 4 B, an answer of 14."""
    bench = Bench(noise_nm=0.0)
    answer = bench.run(100, 7, POINT, 500, 600, 0, 0, 0)[4:18]
    sample = Sample.generated(10.0)
    height, *others = sample.channels(500, 600)
    assert answer[:4].tolist() == [7, POINT, 500, 600]
    assert answer[4:8] == pytest.approx([height, *others])
    assert len(answer) * 4 == 56


def test_a_request_waits_for_the_tip_to_get_there():
    bench = Bench(speed_nm_s=10_000, settle_s=0.01, settle_sd_s=0.0)
    bench.run(200, 1, POINT, 0, 0)
    before = bench.run(100, 2, POINT, 2000, 0)[4]
    assert before == 1, "2000 nm at 10000 nm/s take 0.2 s"
    assert bench.run(120, 2, POINT, 2000, 0)[4] == 2


def test_a_new_request_replaces_a_waiting_one_of_its_kind():
    """[Hudson 2001: updateable] Ten requests of two kinds in 10 ms: one is at work, of each kind the newest is served."""
    bench = Bench(settle_s=0.05)
    served = set()
    for number in range(1, 11):
        kind = POINT if number % 2 else PATCH
        bench.run(1, number, kind, 1000 + number, 1000, 10)
    for _ in range(3000):
        served.add(int(bench.run(1, 10, PATCH, 1010, 1000, 10)[4]))
    assert served == {0, 1, 9, 10}
    assert bench.device.replaced == 7 and bench.device.arrived()


def test_a_patch_is_answered_when_it_is_whole():
    """[Hudson 2001: surfaces] Nine heights around the point, and never some of one patch and some of another."""
    bench = Bench(noise_nm=0.0, settle_s=0.01, settle_sd_s=0.0)
    sample = Sample.generated(10.0)
    for number, x in ((1, 500.0), (2, 900.0)):
        for _ in range(300):
            sense = bench.run(1, number, PATCH, x, 700, 40)
            if sense[4] > 0:
                centre = sense[6]
                heights = [
                    sample.height(centre + i * 40, 700 + j * 40) for j in (-1, 0, 1) for i in (-1, 0, 1)
                ]
                assert sense[18:27] == pytest.approx(heights)
        assert sense[4] == number and sense[6:9] == pytest.approx([x, 700, heights[4]])


def test_a_path_is_followed_without_the_network():
    """[Hudson 2001: streams] 40 points in one command are all measured and archived."""
    bench = Bench(settle_s=0.001, settle_sd_s=0.0)
    path = np.column_stack((np.linspace(100, 900, 40), np.full(40, 300.0)))
    seen = {tuple(bench.run(1, 3, PATH, *path.ravel())[6:8]) for _ in range(200)}
    assert {tuple(point) for point in path} <= seen


def test_the_archive_keeps_what_the_stream_does_not(tmp_path):
    file = tmp_path / "archive.bin"
    bench = Bench(archive=str(file))
    bench.run(1000, 1, SCAN, 0, 0, 500, 20)
    del bench
    rows = np.fromfile(file, ROW)
    assert len(rows) >= 290 and (np.diff(rows["t_s"]) > 0).all()
    assert rows["height"].std() > 1
    with pytest.raises(HookError, match="cannot be written"):
        made(Microscope, archive=str(tmp_path / "absent" / "x"))


def test_force_above_the_strength_leaves_a_groove_and_below_it_none():
    for force, deep in ((20.0, False), (120.0, True)):
        bench = Bench(noise_nm=0.0, settle_s=0.001)
        before = bench.device.sample.height_nm.copy()
        bench.run(100, 1, POINT, 200, 200)
        bench.run(300, 2, MODIFY, 400, 200, force)
        lowered = before - bench.device.sample.height_nm
        assert (lowered.max() > 1) == deep and lowered.min() >= 0
        rows, columns = np.nonzero(lowered > 0.5)
        assert not deep or (abs(rows * 10 - 200).max() <= 30 and columns.min() * 10 >= 170)


def test_a_particle_is_pushed_along_by_enough_force():
    for force, moves in ((5.0, False), (20.0, True)):
        bench = Bench(settle_s=0.001)
        x, y, radius = bench.device.sample.particle
        bench.run(300, 1, POINT, x - 100, y)
        bench.run(300, 2, MODIFY, x + 100, y, force)
        pushed = bench.device.sample.particle[0] - x
        assert pushed == (pytest.approx(100 + radius, abs=15) if moves else 0.0)


@given(st.lists(st.floats(), max_size=12))
def test_hostile_commands_are_survived(command):
    bench = Bench(settle_s=0.001)
    assert np.isfinite(bench.run(20, *command)).all()


def test_a_map_that_is_none_is_refused(tmp_path):
    np.save(tmp_path / "line.npy", np.zeros(5))
    (tmp_path / "text.npy").write_text("heights")
    for name in ("line.npy", "text.npy", "absent.npy"):
        with pytest.raises(HookError, match="allowed: "):
            made(Microscope, surface=str(tmp_path / name))


@pytest.mark.skipif(not MAPS, reason=f"no afm/*.npy in {recorded.DATA} (set TCPSBED_DATA)")
@pytest.mark.parametrize("file", MAPS, ids=lambda file: file.stem)
def test_measured_surfaces_are_felt(file):
    facts = json.loads(file.with_name("surfaces.json").read_text())[file.stem]
    bench = Bench(surface=str(file), pixel_nm=facts["pixel_nm"] if facts["pixel_nm"] > 0 else 10.0)
    heights = [bench.run(1, 1, SCAN, 0, 0, bench.device.sample.side_nm, 30)[2] for _ in range(1000)]
    assert np.std(heights) > 0.05 * facts["rms_nm"]


def felt(feel: Feel, t_ms: float, hand, measured=None) -> np.ndarray | None:
    """The force on a hand."""
    y = np.zeros(3)
    x = None if measured is None else np.array([0, 0, *measured], dtype=float)
    n = feel(int(t_ms * MS), 0, x, np.array([0, 0, *hand], dtype=float), y)
    return y if n else None


def test_the_plane_goes_through_the_last_two_points():
    """[Hudson 2001: surfaces] Points 10 nm high at 0 and 20 nm high at 100: 15 nm in the middle, sloping by 0.1."""
    feel = Feel(damping_nn_s_nm=0.0)
    assert felt(feel, 0, (0, 0, 0), (0, 0, 10)) is None, "one point is no plane"
    felt(feel, 50, (0, 0, 100), (100, 0, 20))
    force = felt(feel, 60, (50, 7, 13))
    normal = np.array([-0.1, 0, 1]) / np.sqrt(1.01)
    assert force == pytest.approx(2 / np.sqrt(1.01) * normal)
    assert (felt(feel, 61, (50, 7, 16)) == 0).all(), "above it nothing is felt"


def test_a_hand_inside_a_new_plane_is_let_out_over_one_update():
    """[Hudson 2001: surfaces]"""
    feel = Feel(damping_nn_s_nm=0.0)
    for t, height in ((0, 0.0), (50, 0.0)):
        felt(feel, t, (0, 0, 5), (t, 0, height))
    felt(feel, 100, (0, 0, 5), (100, 0, 20.0))
    forces = [felt(feel, 100 + ms, (100, 0, 0))[2] for ms in range(1, 60)]
    assert forces[0] < 2 and (np.diff(forces) > -1e-9).all()
    assert forces[-1] == pytest.approx(20 / (1 + 0.4**2), rel=0.01)


def test_a_warped_plane_is_felt_where_the_hand_is():
    """[Hudson 2001: surfaces] The newest height is under the hand, however far it has gone since."""
    for model, height in (("plane", 40.0), ("warped", 20.0)):
        feel = Feel(model=model, damping_nn_s_nm=0.0, stiffness_nn_nm=0.1)
        felt(feel, 0, (200, 0, 99), (0, 0, 10))
        felt(feel, 50, (300, 0, 99), (100, 0, 20))
        force = felt(feel, 51, (300, 0, 5))
        assert force[2] == pytest.approx(0.1 * (height - 5) / 1.01, rel=1e-3), model


def test_what_is_no_number_is_not_felt():
    feel = Feel(damping_nn_s_nm=0.0)
    felt(feel, 0, (0, 0, 0), (0, 0, 10))
    felt(feel, 50, (0, 0, 0), (100, 0, 10))
    assert felt(feel, 60, (np.nan, 0, 0)) is None
    assert felt(feel, 61, (50, 0, 8), (np.inf, np.nan, 10))[2] == pytest.approx(2)


@given(st.floats(-45, 45), st.floats(-45, 45))
def test_a_patch_is_the_surface_between_its_nine_points(dx, dy):
    """[Hudson 2001: surfaces] Bilinear: exact on a twisted plane, level beyond its rim."""
    feel = Feel(model="patch", spacing_nm=30.0, damping_nn_s_nm=0.0, most_nn=1e9)

    def height(x: float, y: float) -> float:
        return 50 + 0.2 * x - 0.1 * y + 0.002 * x * y

    grid = [height(i * 30, j * 30) for j in (-1, 0, 1) for i in (-1, 0, 1)]
    y = np.zeros(3)
    feel(0, 0, np.array([0, 0, 100, 200, *grid], dtype=float), np.array([0, 0, 100, 200, 999.0]), y)
    surface = feel.surface.at(0, np.array([100 + dx, 200 + dy, 0.0]))
    assert surface[0] == pytest.approx(height(np.clip(dx, -30, 30), np.clip(dy, -30, 30)))


def test_the_view_shows_what_the_scan_has_brought(tmp_path):
    """The far half is hidden where the near one is higher; hand and tip are marked."""
    view = SurfaceView(side_nm=630.0, publish=str(tmp_path / "state"))
    empty = view.render("front", 160, 120)
    y = np.zeros(8)
    for row in range(0, 640, 10):
        for x in range(0, 640, 10):
            sample = np.array([x, row, 50.0 if row < 300 else 0.0, 0])
            assert view(row * 100 + x, 0, sample, np.array([0, 0, 315, 100, 80.0]), y) == 4
    full = view.render("front", 160, 120)
    assert not (full == empty).all() and not np.isnan(view.heights).any()
    assert ((full == HAND).all(axis=2)).sum() > 20 and ((full == TIP).all(axis=2)).sum() > 20
    other = SurfaceView(side_nm=630.0)
    other.show(Cell.open(tmp_path / "state").read()[2])
    assert (other.render("front", 160, 120) == full).all()
    with pytest.raises(HookError, match="the same number of cells"):
        SurfaceView(cells=10).show(np.zeros(5))
