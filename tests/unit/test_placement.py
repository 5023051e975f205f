"""An edge component at several places: which, what is compared, what each buys, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tcpsbed import scenarios
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control import edge, placement, placement_figure

LINE = """
name = "line"
duration = "3 s"
[topology]
routers = ["cell"]
[components]
tactile-operator = "home"
ms-com = "home"
ss-ei = "field"
ss-com = "field"
[flows.kinematic]
rate = "100 Hz"
source = { recording = "motion.csv", columns = ["x"], repeat = "loop" }
codec = "f64"
[hooks.hold]
kind = "predict"
run = "zoh"
at = "ss-ei"
flow = "kinematic"
period = "1 ms"
cost = "0.2 ms"
[links.far]
from = "home"
to = "cell"
delay = "4 ms"
[links.last]
from = "cell"
to = "field"
delay = "1 ms"
forward = { loss = "50 %" }
"""


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """A scenario whose last mile loses half of what it is given."""
    motion = [f"{s:.2f},{0.1 * np.sin(2 * np.pi * s):.6f}" for s in np.arange(0, 1, 0.01)]
    (tmp_path / "motion.csv").write_text("\n".join(["time,x", *motion]))
    file = tmp_path / "line.toml"
    file.write_text(LINE)
    return file


def test_the_edge_its_host_and_the_hop_before_it_are_found(line: Path) -> None:
    found = edge.find(scenarios.load(line))
    assert (found.hook, found.component, found.flow, found.next) == ("hold", "ss-ei", "kinematic", "ss-com")
    assert (found.node, found.host, found.before) == ("field", "field", "cell")
    assert found.meant == "tactile-operator.exit" and found.period_ms == 1 and found.charged
    assert found.last_mile == ("last.forward",)


def test_a_hold_before_the_lossy_mile_beats_one_behind_it(line: Path) -> None:
    """[Polachan 2022: edge] Ten copies a sample against half of the packets: young data for ten times the packets."""
    found = placement.compare(line)
    without, host, before = found.places
    assert [one.node for one in found.places] == [None, "field", "cell"]
    assert found.best is before and before.rms < 0.7 * without.rms
    assert host.rms == pytest.approx(without.rms, rel=0.1), "what was lost cannot be held"
    assert before.age_ms < host.age_ms - 3 and before.age_max_ms < host.age_max_ms
    assert before.packets_per_s == pytest.approx(1000, rel=0.05)
    for one in (host, without):
        assert one.packets_per_s == pytest.approx(100, rel=0.05)


def test_the_way_by_echo_points_holds_what_the_edge_takes(line: Path) -> None:
    """[Polachan 2022: echoes] The cost of 0.2 ms is charged where the hook runs, and is part of the way to the next one."""
    found = placement.compare(line)
    without, host, before = found.places
    assert without.own_ms == 0
    assert host.own_ms == pytest.approx(0.2, abs=0.01)
    assert without.delay_ms == pytest.approx(5, abs=0.05)
    assert host.delay_ms == pytest.approx(5.2, abs=0.05)
    assert before.delay_ms >= 5.2 - 0.05 and before.own_ms >= 0.2 - 0.01


def test_the_error_is_the_distance_of_two_staircases() -> None:
    """Against numbers that can be counted: nothing before the first sample, then the newest."""
    course = placement.Course(np.array([1.0, 2.0]), np.array([[3.0], [5.0]]))
    assert np.isnan(course.held(np.array([0.5]))).all()
    assert course.held(np.array([1.0, 1.9, 2.0, 9.0]))[:, 0].tolist() == [3, 3, 5, 5]
    assert np.isnan(placement.Course(np.empty(0), np.empty((0, 1))).held(np.array([1.0]))).all()


def test_a_mile_that_loses_all_leaves_no_numbers_and_a_sentence(line: Path) -> None:
    command = ["predict", "place", str(line), "--set", 'links.last.forward.loss="100 %"']
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and "no sample reached ss-com at any place" in done.output, done.output
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    assert found["best"] is None and all(one["rms"] is None for one in found["places"])


def test_a_value_that_never_came_is_no_error_of_zero(line: Path) -> None:
    motion = [f"{s:.2f},{0.1 * np.sin(2 * np.pi * s):.6f},{s:.2f}" for s in np.arange(0, 1, 0.01)]
    (line.parent / "motion.csv").write_text("\n".join(["time,x,y", *motion]))
    line.write_text(LINE.replace('columns = ["x"]', 'columns = ["x", "y"]'))
    command = ["predict", "place", str(line), "--values", "1", "--json"]
    found = json.loads(CliRunner().invoke(app, [*command, "--set", 'links.last.forward.loss="100 %"']).output)
    assert found["best"] is None and all(one["rms"] is None for one in found["places"])
    assert json.loads(CliRunner().invoke(app, command).output)["best"] == "one hop before"


def test_the_command_prints_a_table_draws_and_says_what_is_free(line: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = tmp_path / "places.png"
    free = line.read_text().replace('cost = "0.2 ms"\n', "")
    line.write_text(free)
    done = CliRunner().invoke(app, ["predict", "place", str(line), "--figure", str(drawn)])
    assert done.exit_code == 0 and drawn.stat().st_size > 10_000, done.output
    assert "one hop before" in done.output and "the error is smallest one hop before (cell)" in done.output
    assert "hooks.hold.cost is not given" in done.output


def test_named_places_nodes_and_routers(line: Path) -> None:
    found = placement.compare(line, nodes=["home"])
    assert [(one.place, one.node) for one in found.places] == [("without", None), ("elsewhere", "home")]
    assert all(math.isfinite(one.rms) for one in found.places)


def test_a_node_that_the_edge_leaves_stays_in_the_network(line: Path) -> None:
    """The gripper of figure 15 with ss-ei alone on the host before the last mile."""
    text = LINE.replace('routers = ["cell"]\n', "").replace('ss-ei = "field"', 'ss-ei = "cell"')
    line.write_text(text)
    found = edge.find(scenarios.load(line))
    assert found.alone and (found.node, found.before) == ("cell", "cell")
    assert [one.node for one in placement.compare(line).places] == [None, "field", "cell"]


@pytest.mark.parametrize(
    ("change", "words", "wanted"),
    [
        (('at = "ss-ei"', 'at = "ss-com"'), [], "found no predictor at ss-ei or ms-ei"),
        (("", ""), ["--hook", "other"], '--hook: found "other"; allowed: hold'),
        (("", ""), ["--places", "moon"], '--places: found "moon"; allowed: home, field, cell'),
        (("", ""), ["--world", "mars"], "mars"),
        (("", ""), ["--values", "²"], '--values: found "²"; allowed: numbers such as'),
        (("", ""), ["--values", "0,1"], "--values: found 1; allowed: 0 to 0"),
        (('name = "line"', 'name = "line"\nsessions = ["a", "b"]'), [], "sessions: found 2 sessions"),
        (("", ""), ["--figure", "places.xyz"], "--figure"),
    ],
)
def test_what_cannot_be_compared_is_a_message(
    line: Path, change: tuple[str, str], words: list[str], wanted: str
) -> None:
    line.write_text(LINE.replace(*change))
    done = CliRunner().invoke(app, ["predict", "place", str(line), "--duration", "1 s", *words])
    assert done.exit_code == 2 and wanted in done.stderr, done.output
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_without_links_there_is_no_last_mile(line: Path) -> None:
    line.write_text(LINE.partition("[links.far]")[0].replace('routers = ["cell"]', ""))
    with pytest.raises(ConfigError, match=r"found no link from home \(ms-com\) to field \(ss-com\)"):
        edge.find(scenarios.load(line))


def test_at_one_node_there_is_no_last_mile_either(line: Path) -> None:
    line.write_text(LINE.replace('ss-com = "field"', 'ss-com = "home"'))
    with pytest.raises(ConfigError, match=r"found ms-com and ss-com both at home: no place for the edge"):
        edge.find(scenarios.load(line))


def test_a_hook_that_gives_nonsense_is_told(line: Path, tmp_path: Path) -> None:
    """A hook whose values are no numbers is named; one that raises ends it with its own words."""
    (tmp_path / "bad.py").write_text(
        "class Nan:\n    def __call__(self, t_ns, index, x, other, y):\n        y[0] = float('nan')\n        return 1\n"
        "class Raises:\n    def __call__(self, t_ns, index, x, other, y):\n        raise ValueError('no idea')\n"
    )
    for name, status, wanted in (
        ("Nan", 2, "Nan at ss-ei (kinematic): returned values that are not finite"),
        ("Raises", 2, "Raises at ss-ei (kinematic): ValueError: no idea"),
    ):
        done = CliRunner().invoke(
            app, ["predict", "place", str(line), "--set", f'hooks.hold.run="./bad.py:{name}"']
        )
        assert done.exit_code == status and wanted in done.output, done.output
        assert "Traceback" not in done.output


def test_the_scenario_that_ships_says_where_its_predictor_should_stand(shipped_scenarios: Path) -> None:
    found = placement.compare(shipped_scenarios / "edge-placement.toml", ['duration="4 s"'])
    assert {one.node for one in found.places} == {None, "field", "cell"}
    assert found.best is not None and found.best.place != placement.WITHOUT
    assert placement_figure.PERIODS * found.edge.period_ms < 4000
