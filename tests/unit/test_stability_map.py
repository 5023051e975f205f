"""The stability map: what a grid is, where limits are crossed, and the engine against the scenario that it stands for."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.lab.control import experiment, figure, stability
from tcpsbed.lab.control.batch import Bench, Cell, bursty
from tcpsbed.lab.control.response import Step
from tcpsbed.lab.control.verdict import Limits


@pytest.mark.parametrize("cells", ["x50", "abcx50", "50xabc", "50x0", "1", "50x1001"])
def test_cells_that_are_none_are_refused_with_one_loss_too(cells: str) -> None:
    with pytest.raises(ConfigError, match="--cells"):
        tcpsbed.map(cells=cells, loss="10%", runs=1)


def test_the_engine_is_the_scenario_without_packets(shipped_scenarios):
    """[Polachan 2022: steps] Without loss all five figures of the engine are those of the run, for several delays."""
    for there, back, ki in ((1, 1, 0.3), (5, 5, 0.0909), (7, 12, 0.08), (30, 30, 0.03)):
        sets = [
            f'links.line.forward={{delay="{there} ms"}}',
            f'links.line.backward={{delay="{back} ms"}}',
            f"hooks.pi.params.ki_per_ms={ki}",
        ]
        [run] = experiment.run(scenarios.load(shipped_scenarios / "step.toml", sets), runs=1)
        [cell] = Bench(runs=1, duration_ms=1200).run([Cell(1, there, back, 0.2, ki)], keep=True)
        for name, value in vars(run.responses[0]).items():
            mine = cell["runs"][0][name]
            assert (math.nan if mine is None else mine) == pytest.approx(value, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize(("there", "back"), [(7.5, 7.5), (5.2, 5.3), (0.4, 3.9)])
def test_the_engine_and_the_scenario_agree_where_both_sides_tick_at_moments_of_their_own(
    shipped_scenarios, there: float, back: float
) -> None:
    """[Polachan 2022: steps] `step --phases` and `map`: all five figures of each run, between whole ticks too."""
    ways = [f'links.line.{way}={{delay="{ms} ms"}}' for way, ms in (("forward", there), ("backward", back))]
    scenario = scenarios.load(shipped_scenarios / "step.toml", ways)
    [run] = experiment.run(scenario, runs=6, phases=True)
    bench = Bench(runs=6, duration_ms=1200, seed=scenario.seed)
    [cell] = bench.run([Cell(1, there, back, 0.2, 0.0909, phases=True)], keep=True)
    for response, mine in zip(run.responses, cell["runs"], strict=True):
        assert vars(response) == pytest.approx(mine, abs=1e-6)
    assert len({response.rise_ms for response in run.responses}) > 1


def test_the_page_says_what_the_command_gives(shipped_scenarios) -> None:
    """The longest round trips of docs/step.md."""
    command = ["map", str(shipped_scenarios / "step.toml"), "--cells", "50x2"]
    said = CliRunner().invoke(app, command).stdout
    page = (shipped_scenarios.parent / "docs" / "step.md").read_text(encoding="utf-8")
    sentences = re.findall(r"^for a mean overshoot.*\n", page, re.MULTILINE)
    assert len(sentences) == 2 and said.startswith("".join(sentences))


@pytest.mark.slow
def test_the_engine_loses_as_the_scenario_loses(shipped_scenarios):
    """Means of 300 runs with 30 % loss each way: rise time and overshoot within three of their standard errors."""
    scenario = scenarios.load(
        shipped_scenarios / "step.toml", ["links.line.loss=30 %", "hooks.pi.params.ki_per_ms=0.13"]
    )
    for phases in (False, True):
        [run] = experiment.run(scenario, runs=300, phases=phases)
        [cell] = Bench(runs=20_000, duration_ms=1200).run(
            [Cell(1, 5, 5, 0.2, 0.13, loss={"kind": "random", "p": 0.3}, phases=phases)]
        )
        for name in ("rise_ms", "overshoot"):
            values = np.array([getattr(response, name) for response in run.responses])
            scatter = 3 * values.std() / len(values) ** 0.5
            assert values.mean() == pytest.approx(cell[name]["mean"], abs=scatter), (name, phases)


def test_bursts_have_their_share_and_their_length():
    """[Gilbert 1960] Share p / (p + r) and mean length 1 / r."""
    loss = bursty(0.1, 8)
    assert loss is not None
    assert loss["p"] / (loss["p"] + loss["r"]) == pytest.approx(0.1) and 1 / loss["r"] == 8
    assert bursty(0, 8) is None and bursty(0.3, 1) == {"kind": "random", "p": 0.3}
    with pytest.raises(DataError, match="--bursts"):
        bursty(0.9, 2)


def drawn(overshoots: list[list[float]], good: list[list[float]]) -> stability.StabilityMap:
    grid = stability.Grid([0.0, 10.0, 20.0], [0.0, 0.5], 1, 0.2, 0.1)
    mean = {"overshoot": np.array(overshoots), "rise_ms": np.ones((2, 3))}
    return stability.StabilityMap(grid, Bench(), mean, np.array(good))


def test_the_longest_round_trip_is_where_the_limit_is_first_crossed():
    found = drawn([[0, 10, 30], [25, 10, 12]], [[1, 0.97, 0.2], [1, 1, 1]])
    assert found.longest_rtt_ms(0) == pytest.approx(15)
    assert math.isnan(found.longest_rtt_ms(1)), "later cells that are good again do not count"
    assert found.longest_rtt_ms(0, reliability=0.95) == 10
    assert math.isinf(found.longest_rtt_ms(1, reliability=0.95))
    assert (
        "tolerates an RTT up to a limit between 10 and 20 ms at 0 % loss (use more cells)"
        in found.sentence(0)
    )
    assert "does not tolerate an RTT" in found.sentence(1)
    assert "every RTT up to 20 ms at 50 % loss" in found.sentence(1, reliability=0.95)


def test_a_map_has_a_row_for_each_loss_and_grows_worse(shipped_scenarios):
    grid = stability.Grid([2.0, 10.0, 30.0], [0.0, 0.4], 1, 0.2, 0.1, burst=4)
    found = stability.compute(grid, Bench(Step(), runs=100, limits=Limits(overshoot=20)))
    table = found.mean["overshoot"]
    assert table.shape == found.good.shape == (2, 3)
    assert (np.diff(table, axis=1) >= 0).all() and (table[1] >= table[0] - 1e-9).all() and table[1, 2] > 100


def test_what_the_engine_refuses_is_a_message():
    with pytest.raises(ConfigError, match="delay -1"):
        Bench(runs=1).run([Cell(1, -1, 0, 0.2, 0.1)])


def test_a_map_is_kept_in_a_folder_that_is_asked_for(shipped_scenarios, tmp_path) -> None:
    command = [
        "map",
        str(shipped_scenarios / "step.toml"),
        "--cells",
        "3x2",
        "--runs",
        "5",
        "--out",
        str(tmp_path / "m"),
    ]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0 and told.output.endswith(f"results: {tmp_path / 'm'}\n")
    assert sorted(file.name for file in (tmp_path / "m").iterdir()) == [
        ".tcpsbed",
        "map.html",
        "map.json",
        "scenario.toml",
    ]
    again = CliRunner().invoke(app, [*command, "--json"])
    assert again.output == (tmp_path / "m/map.json").read_text(), "a result of ours is written anew"
    (tmp_path / "m/mine.txt").write_text("x")
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2 and "holds mine.txt" in refused.stderr


@pytest.mark.parametrize("more", [("--gain", "0:0"), ("--loss", "50%..100%")])
def test_a_loop_that_never_gets_there_tolerates_nothing(shipped_scenarios, more) -> None:
    command = ["map", str(shipped_scenarios / "step.toml"), "--cells", "3x2", "--runs", "5", *more]
    said = CliRunner().invoke(app, command).output
    assert "this application does not tolerate an RTT of" in said.splitlines()[1], said


def test_a_run_that_is_too_short_is_not_blamed_on_the_overshoot(tmp_path):
    """A slow loop is stable: both commands say which duration would do, and with it they find that it is tolerated."""
    slow = {"gain": "0:0.001", "runs": 2}
    said = str(tcpsbed.map(cells="3x2", **slow))
    assert "does not tolerate" not in said and "no run reaches 90 % of the step within 1200 ms" in said
    [wanted, *_] = re.findall(r'a duration of "([\d.]+ s)" would do', said)
    longer = tcpsbed.map(cells="3x2", set={"duration": wanted}, **slow)
    assert longer.longest_rtt_ms(0) == math.inf and "too short" not in str(longer)
    told = str(tcpsbed.step(out=tmp_path / "short", **slow))
    assert "TOO SHORT" in told and re.findall(r'a duration of "([\d.]+ s)" would do', told) == [wanted]
    done = tcpsbed.step(out=tmp_path / "long", duration=wanted, **slow)
    assert "TOO SHORT" not in str(done) and all(one.rise_ms > 1000 for one in done["gain 0:0.001"].responses)
    never = str(tcpsbed.map(cells="3x2", gain="0.1:0", runs=2))
    assert "keeps an error" in never and "would do" not in never
    mean = {name: values.copy() for name, values in longer.map.mean.items()}
    mean["rise_ms"][:, 1:] = math.nan
    late = replace(longer.map, mean=mean).sentence(0)
    assert re.search(
        r"tolerates an RTT up to a limit between 0 and 25 ms at 0 % loss .*; from there on no run reaches 90 %",
        late,
    )


def test_a_coarse_grid_names_the_round_trips_between_which_the_limit_is():
    fine = tcpsbed.map(cells="26x2", runs=10)
    limit = fine.longest_rtt_ms(0)
    assert f"an RTT up to {limit:.1f} ms at 0 % loss" in str(fine) and "use more cells" not in str(fine)
    coarse = tcpsbed.map(cells="3x2", runs=10)
    low, high = map(
        float,
        re.findall(r"an RTT up to a limit between ([\d.]+) and ([\d.]+) ms at 0 % loss \(use", str(coarse))[
            0
        ],
    )
    assert low < limit < high == low + 25
    assert abs(coarse.longest_rtt_ms(0) - limit) > 2, "the number between would be far off"


def test_one_loss_is_a_row_and_a_longer_duration_an_option(shipped_scenarios, tmp_path) -> None:
    file = tmp_path / "row.png"
    command = [
        "map",
        str(shipped_scenarios / "step.toml"),
        "--cells",
        "6x5",
        "--runs",
        "5",
        "--figure",
        str(file),
    ]
    told = CliRunner().invoke(app, [*command, "--loss", "10%", "--duration", "2 s", "--json"])
    found = json.loads(told.stdout)
    assert found["grid"]["loss"] == [0.1] and len(found["grid"]["rtt_ms"]) == 6
    assert found["bench"]["duration_ms"] == 2000 and len(found["sentences"]) == 1
    assert file.stat().st_size > 1000
    assert tcpsbed.map(cells="6x1", loss="10%", runs=5).map.grid.loss == [0.1]
    with pytest.raises(ConfigError, match="for one loss give one, such as --loss 10%"):
        tcpsbed.map(cells="6x1", runs=5)


def test_labels_of_contours_stay_inside_the_figure(monkeypatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(figure, "saved", lambda made, file: drawn.append(made) or file)
    tcpsbed.map(cells="10x10", runs=20).draw("map.png")
    [made] = drawn
    made.draw_without_rendering()
    axes = made.axes[0]
    area = axes.get_window_extent()
    labels = [text.get_window_extent() for text in axes.texts]
    assert len(labels) == 5
    for label in labels:
        assert area.x0 <= label.x0 < label.x1 <= area.x1 and area.y0 <= label.y0 < label.y1 <= area.y1
