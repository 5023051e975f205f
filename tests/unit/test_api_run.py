"""`tcpsbed.run`: overrides by key, seeds with intervals, progress; the same numbers as the command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import SHORT

import tcpsbed
from tcpsbed import campaign, scenarios
from tcpsbed.api import seeds
from tcpsbed.errors import ConfigError, DataError


@pytest.fixture
def short(tmp_path: Path) -> Path:
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    return file


@pytest.mark.parametrize(
    ("key", "value", "typed"),
    [
        ("links.wan.rate", "2 Mbit/s", "links.wan.rate=2 Mbit/s"),
        ("seed", 7, "seed=7"),
        ("seed", np.int64(7), "seed=7"),
        ("links.wan.duplicate", "0.5 %", 'links.wan.duplicate="0.5 %"'),
        ("measure.pcapng", True, "measure.pcapng=true"),
        ("measure.signals", ["kinematic.sent"], 'measure.signals=["kinematic.sent"]'),
        ("links.wan.queue", {"limit": "20 packets", "discipline": "codel"},
         'links.wan.queue={ limit = "20 packets", discipline = "codel" }'),
        ("links.wan.outages", [("0.1 s", "0.2 s")], 'links.wan.outages=[["0.1 s", "0.2 s"]]'),
    ],
)  # fmt: skip
def test_an_override_by_key_is_that_of_the_command_line(
    short: Path, key: str, value: Any, typed: str
) -> None:
    by_key, by_text = scenarios.overrides({key: value}), scenarios.overrides([typed])
    assert scenarios.tables(short, by_key).document == scenarios.tables(short, by_text).document


def test_text_stays_text() -> None:
    assert scenarios.overrides({"name": "5"}) == ['name="5"']


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"seeds": 0}, "seeds: found 0; allowed: a whole number from 1 to 10000, such as seeds=10"),
        ({"jobs": 0}, "jobs: found 0"),
        ({"set": "links.wan.rate=2 Mbit/s"}, 'allowed: a mapping such as {"links.wan.rate": "2 Mbit/s"}'),
        ({"set": {"links.wan.rate": object()}}, "links.wan.rate: found .* of type object; allowed: text, a number"),
        ({"set": {"links.wan.rat": "2 Mbit/s"}}, r"did you mean rate\?"),
        ({"duration": "3"}, 'found "3", a number without a unit'),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_message(short: Path, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tcpsbed.run(short, out=short.parent / "out", **asked)
    assert not (short.parent / "out").exists()


def test_values_over_time_are_those_of_both_ends(short: Path) -> None:
    ends = ["tactile-operator.exit", "tactile-teleoperator.entry"]
    run = tcpsbed.run(short, set={"measure.signals": ends}, out=short.parent / "run")
    sent, came = map(run.signal, ends)
    assert len(came.numbers) == run.flows["kinematic"].delivered < len(sent.numbers)
    rows = [sent.numbers.tolist().index(number) for number in came.numbers.tolist()]
    assert np.array_equal(came.values, sent.values[rows]) and (came.t_ns > sent.t_ns[rows]).all()
    with pytest.raises(DataError, match=r"point: found \"srv\.exit\"; allowed"):
        run.signal("srv.exit")
    for wrong in ((None, None), (5, None), (ends[0], ["kinematic"])):
        with pytest.raises(DataError, match=r"(point|flow): found .*; allowed"):
            run.signal(*wrong)


def test_seeds_are_those_of_the_command(short: Path) -> None:
    asked = ["--seeds", "3", "--seed", "5", "--duration", "0.5 s", "--out", "typed", "--quiet", "--no-report"]
    subprocess.run([sys.executable, "-m", "tcpsbed", "run", short, *asked], cwd=short.parent, check=True)
    typed = json.loads((short.parent / "typed" / "summary.json").read_text())
    shares: list[float] = []
    run = tcpsbed.run(
        short, duration="0.5 s", seed=5, seeds=3, jobs=1, out=short.parent / "called", progress=shares.append
    )
    assert run.summary["across_seeds"] == typed["across_seeds"]
    assert run.summary.records_sha256 == typed["records_sha256"]
    assert run.summary.across_seeds.seeds == [5, 6, 7]
    assert run.summary.across_seeds.flows["kinematic"].loss.ci95 > 0
    assert shares == sorted(shares) and shares[-1] == 1


@pytest.mark.parametrize("as_text", [True, False])
def test_a_scenario_without_a_file_has_seeds_too(
    short: Path, monkeypatch: pytest.MonkeyPatch, as_text: bool
) -> None:
    monkeypatch.chdir(short.parent)
    given = SHORT if as_text else tcpsbed.Scenario.read(short)
    run = tcpsbed.run(given, set={"links.wan.loss": "20 %"}, duration="0.5 s", seeds=2, out="out")
    assert run.summary.across_seeds.seeds == [1, 2] and run.summary.across_seeds.failed == []
    [*cells] = (run.folder / "seeds" / "cells").glob("*.json")
    summary = json.loads(cells[0].read_text())["summary"]
    same = tcpsbed.run(short, set={"links.wan.loss": "20 %"}, duration="0.5 s", seed=2, out="same")
    assert summary["records_sha256"] == same.summary.records_sha256


def test_failed_seeds_are_said(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    across = {"seeds": [1], "unchanged": False, "failed": [2], "disturbed": [], "flows": {}}
    monkeypatch.setattr(seeds.seeds, "spread", lambda *_: (across, {"key": "no memory"}))
    with pytest.warns(RuntimeWarning, match="1 of 2 seeds failed: no memory"):
        run = tcpsbed.run(short, seeds=2, out=short.parent / "out")
    assert "FAILED: seeds 2" in repr(run)


def test_progress_draws_the_bar(
    short: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    tcpsbed.run(short, out=short.parent / "out", progress=True)
    assert "short, virtual [####" in capsys.readouterr().err
    tcpsbed.run(short, out=short.parent / "out")
    assert capsys.readouterr().err == ""


ITSELF: dict[str, Any] = {}
ITSELF["again"] = ITSELF
FAR = 10**5000


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda file: tcpsbed.run(file, out=3), "out: found int; allowed: a text or a Path"),
        (lambda file: tcpsbed.run(file, out=""), "out: found no name"),
        (lambda file: tcpsbed.run(file, seed=FAR), "seed: found"),
        (lambda file: tcpsbed.run(file, seeds=FAR), "seeds: found a number of more than 18 digits"),
        (lambda file: tcpsbed.run(file, set={"seed": FAR}), "seed: found"),
        (lambda file: tcpsbed.run(file, set={"links": ITSELF}), "does not hold itself"),
        (lambda file: tcpsbed.run(file, set=[3]), "set: found int"),
        (lambda file: tcpsbed.run(file, world=3), "world: found int"),
        (lambda _: tcpsbed.load(3), "load: found int"),
        (lambda _: tcpsbed.load("a\0b"), "load: found a zero byte"),
        (lambda _: tcpsbed.compare(1, 2), "folder: found int"),
        (lambda _: tcpsbed.plot(3), "plot: found int"),
        (lambda _: tcpsbed.plot("a", y=5), "--y: found int; allowed: a text, such as haptic"),
        (lambda _: tcpsbed.plot("a", y=None, x=3), "--x: found int; allowed: a text, such as links"),
        (
            lambda _: tcpsbed.plot("a", labels=[("a", "b")]),
            "--label: found tuple; allowed: a text, such as runs/a",
        ),
        (
            lambda _: tcpsbed.plot("a", style=["ieee"], kind=7),
            "--kind: found int; allowed: a text, such as lines",
        ),
        (lambda _: tcpsbed.Scenario.read(3), "file: found int"),
        (lambda _: campaign.run(None), "campaign: found NoneType; allowed: the path of its file"),
        (lambda _: campaign.run(ITSELF), "campaign: found tables and lists more than"),
        (lambda file: campaign.run({"scenario": str(file), "seeds": FAR}), "a whole number of 64 bits"),
        (lambda file: campaign.run({"scenario": str(file)}, jobs="2"), "jobs: found '2'"),
        (lambda file: campaign.run({"scenario": str(file)}, cluster=3), "cluster: found int"),
        (lambda file: campaign.run({"scenario": str(file)}, progress=3), "progress: found int"),
        (lambda file: campaign.run({"scenario": str(file)}, out=3), "out: found int"),
    ],
)
def test_a_value_of_a_wrong_type_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(SHORT)
    with pytest.raises(tcpsbed.ConfigError, match=re.escape(said)):
        call(Path("short.toml"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["short.toml"]
