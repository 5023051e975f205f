"""`tcpsbed run --seeds N`: means over seeds with intervals; one seed says that it is one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import scenario, start, tcpsbed
from texts import SHORT

from tcpsbed import scenarios
from tcpsbed.analysis import chance
from tcpsbed.analysis.stats import t975
from tcpsbed.campaign import seeds, survey
from tcpsbed.campaign.results import Group


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


@pytest.mark.slow
def test_the_interval_is_that_of_the_seeds_means(tmp_path: Path) -> None:
    """Student's t over the losses of four runs that were started one by one."""
    (tmp_path / "short.toml").write_text(SHORT)
    command = [sys.executable, "-m", "tcpsbed", "run", "short.toml", "--no-samples"]
    for arguments in (
        ["--seeds", "4", "--out", "all"],
        *(["--seed", str(n), "--out", str(n)] for n in range(1, 5)),
    ):
        subprocess.run([*command, *arguments], cwd=tmp_path, check=True, capture_output=True)
    losses = [summary(tmp_path / str(n))["flows"]["kinematic"]["loss"] for n in range(1, 5)]
    mean = sum(losses) / 4
    sd = (sum((loss - mean) ** 2 for loss in losses) / 3) ** 0.5
    across = summary(tmp_path / "all")["across_seeds"]
    assert across["seeds"] == [1, 2, 3, 4] and across["failed"] == []
    assert sd > 0, "the scenario draws its losses"
    found = across["flows"]["kinematic"]["loss"]
    assert found["n"] == 4
    assert found["mean"] == pytest.approx(mean)
    assert found["ci95"] == pytest.approx(t975(3) * sd / 2)


def test_means_over_seeds_stand_where_a_run_has_its_numbers() -> None:
    """t(0.975, 2) = 4.3027: three seeds with a standard deviation of 1 ms; nothing is known of the loss."""
    rows = {seed: {"delay_mean_ms": 4.0 + seed, "delay_p99_ms": 9.0, "loss": None} for seed in (1, 2, 3)}
    found = seeds._across(Group((), "haptic", rows))
    half = pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert found["delay_ms"]["mean"] == {"n": 3, "mean": 6.0, "ci95": half}
    assert (found["delay_ms"]["p99"]["n"], found["delay_ms"]["p99"]["mean"]) == (3, 9.0)
    assert found.keys() == {"delay_ms", "loss"} and found["loss"] is None


def test_other_seeds_run_as_many_at_a_time_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number of cores there is."""
    widths = []

    def here(file: Path, work: Path, width: int) -> Any:
        widths.append(width)
        raise InterruptedError

    monkeypatch.setattr(survey, "Here", here)
    (tmp_path / "still.toml").write_text(STILL)
    for width in (1, 3, 77):
        others = survey.Survey(tmp_path / "still.toml", (), (2, 3), (), "virtual", tmp_path / "out")
        with pytest.raises(InterruptedError):
            seeds.spread(others, {"seed": 1, "flows": {}}, width, lambda *_: None)
    assert widths == [1, 3, 77]


def test_tables_and_report_state_the_interval(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--seeds", "3", "--out", "here")
    assert done.returncode == 0, done.stderr
    assert "Means over 3 seeds with the 95 % interval; all else is about seed 1." in done.stdout
    assert "Across seeds" in (tmp_path / "here/report.html").read_text()
    assert "Means over 3 seeds" in tcpsbed(tmp_path, "show", "here").stdout


@pytest.mark.realtime
@pytest.mark.beside
def test_one_seed_says_so(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--out", "here")
    assert "One seed: other seeds may give other numbers. --seeds 10 gives intervals" in done.stdout
    assert "One seed: other seeds" in (tmp_path / "here/report.html").read_text()
    real = tcpsbed(tmp_path, "run", "short.toml", "--world", "real", "--out", "there")
    assert "One seed" not in real.stdout


def test_a_later_run_in_the_folder_does_not_keep_the_interval(tmp_path: Path) -> None:
    file = str(scenario(tmp_path))
    tcpsbed(tmp_path, "run", file, "--seeds", "2", "--out", "here")
    tcpsbed(tmp_path, "run", file, "--out", "here")
    assert not (tmp_path / "here/seeds").exists()
    assert summary(tmp_path / "here")["across_seeds"] == {
        "seeds": [1],
        "unchanged": False,
        "failed": [],
        "disturbed": [],
        "flows": {},
    }


def test_what_changes_during_the_first_run_is_not_run_under_other_seeds(tmp_path: Path) -> None:
    text = 'name = "short"\nduration = "10 s"\ntakes_s = 2.0\n'
    file = scenario(tmp_path, text)
    run = start(tmp_path, "run", str(file), "--seeds", "2", "--out", "here")
    while not list(tmp_path.glob("here.unfinished-*")):
        time.sleep(0.02)
    time.sleep(0.5)
    file.write_text(text.replace("10 s", "20 s"))
    _, said = run.communicate(timeout=60)
    assert run.returncode == 2 and "changed while the run was running" in said, said
    assert summary(tmp_path / "here")["seed"] == 1


def test_seeds_that_fail_are_counted_and_the_others_go_on(tmp_path: Path) -> None:
    """The run goes well under the first seed; under seed 3 the stand-in fails."""
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\nfails_at_seed = 3\n')
    done = tcpsbed(tmp_path, "run", str(file), "--seeds", "4", "--out", "here")
    assert done.returncode == 1
    assert "1 of 4 seeds failed" in done.stderr and "Traceback" not in done.stderr
    across = summary(tmp_path / "here")["across_seeds"]
    assert (across["seeds"], across["failed"]) == ([1, 2, 4], [3])


STILL = SHORT.replace('loss = "10 %"\n', "")


def run_of(folder: Path, *arguments: str, text: str = STILL) -> str:
    (folder / "still.toml").write_text(text)
    command = [sys.executable, "-m", "tcpsbed", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_seeds_that_change_nothing_are_said_and_not_run(tmp_path: Path) -> None:
    printed = run_of(tmp_path, "run", "still.toml", "--seeds", "6", "--out", "all")
    across = summary(tmp_path / "all")["across_seeds"]
    assert across["seeds"] == [1, 2] and across["unchanged"] is True and across["failed"] == []
    assert across["flows"]["kinematic"]["delay_ms"]["mean"]["ci95"] is None
    assert "seeds change nothing: nothing here is random" in printed and "±" not in printed
    printed = run_of(
        tmp_path,
        "sweep",
        "still.toml",
        "--over",
        "links.wan.delay=1 ms,2 ms",
        "--seeds",
        "6",
        "--out",
        "sweep",
    )
    assert "seeds change nothing: nothing here is random" in printed and "±" not in printed
    assert len(list((tmp_path / "sweep/cells").glob("*.json"))) == 4
    assert "nothing here is random" in (tmp_path / "sweep/sweep.html").read_text()


def test_more_seeds_are_suggested_only_where_something_is_random(tmp_path: Path) -> None:
    """What is said to hold nothing random gives the same records under another seed."""
    printed = run_of(tmp_path, "run", "still.toml", "--out", "one")
    assert "--seeds 10" not in printed and "Nothing here is random: other seeds give the same" in printed
    run_of(tmp_path, "run", "still.toml", "--seed", "2", "--out", "two")
    one, two = summary(tmp_path / "one"), summary(tmp_path / "two")
    assert one["random"] is False and one["records_sha256"] == two["records_sha256"]


@pytest.mark.parametrize(
    "added",
    [
        'links.wan.loss="1 %"',
        'links.wan.jitter={kind="exponential", mean="1 ms"}',
        'links.wan.queue={limit="60 kB", discipline="red", min="5 kB", max="15 kB"}',
        'traffic.noise={on="wan", rate="100 kbit/s", kind="poisson"}',
        'traffic.users={on="wan", kind="web"}',
        'events=[{at="0.5 s", link="wan", loss="5 %"}]',
        'channels.all={flows=["kinematic"], transport="tcp"}',
        'measure.echo=[{points="all"}]',
        'components.tactile-teleoperator={node="b", cost={kind="uniform", low="1 us", high="9 us"}}',
    ],
)
def test_what_draws_from_the_seed_is_found(tmp_path: Path, added: str) -> None:
    """Each of these alone makes a scenario random."""
    (tmp_path / "still.toml").write_text(STILL)

    def draws(*sets: str) -> bool:
        return chance.draws(scenarios.compile_plan(scenarios.load(tmp_path / "still.toml", sets), tmp_path))

    assert not draws() and draws(added)


@pytest.mark.slow
def test_loss_that_is_rare_does_not_end_a_sweep_after_two_seeds(tmp_path: Path) -> None:
    text = SHORT.replace("10 %", "0.0001 %")
    run_of(tmp_path, "run", "still.toml", "--seeds", "4", "--out", "all", text=text)
    assert summary(tmp_path / "all")["across_seeds"]["seeds"] == [1, 2, 3, 4]


@pytest.mark.slow
def test_random_phases_are_of_the_seed_and_of_each_source_alone(tmp_path: Path) -> None:
    """Uniform within the period, the same for the same seed, and another flow beside it moves nothing."""
    random = 'phases = "random"\n' + STILL
    two = random.replace("[links.wan]", '[flows.haptic]\nrate = "200 Hz"\n[links.wan]')
    starts = {}
    for name, text, seed in (("a", random, 1), ("b", random, 2), ("c", two, 1), ("aligned", STILL, 1)):
        run_of(tmp_path, "run", "still.toml", "--seed", str(seed), "--out", name, text=text)
        plan = json.loads((tmp_path / name / "plan.json").read_text())
        starts[name] = {flow["name"]: flow["start_ns"] for flow in plan["flows"]}
    assert 0 < starts["a"]["kinematic"] < 5_000_000 and starts["aligned"]["kinematic"] == 0
    assert starts["a"]["kinematic"] != starts["b"]["kinematic"]
    assert starts["a"]["kinematic"] == starts["c"]["kinematic"] != starts["c"]["haptic"]
    assert summary(tmp_path / "aligned")["records_sha256"] == summary_without_the_key(tmp_path)


def summary_without_the_key(folder: Path) -> str:
    """Hash of the records of a scenario that says `aligned`, which is the default."""
    run_of(folder, "run", "still.toml", "--out", "said", text='phases = "aligned"\n' + STILL)
    found: str = summary(folder / "said")["records_sha256"]
    return found
