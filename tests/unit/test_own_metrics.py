"""Metrics of the user's: in the summary, on the terminal and on the page; what goes wrong in them is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from config_tools import ROOT
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.campaign.outcome import Outcome
from tcpsbed.cli.app import app
from tcpsbed.errors import TcpsbedError

CODE = """
import tcpsbed
class Sent(tcpsbed.Metric):
    "How many samples each flow sent."
    unit = "samples"
    def of(self, run):
        return {name: flow["sent"] for name, flow in run.flows.items()}
class Unknown(tcpsbed.Metric):
    def of(self, run):
        return float("nan")
class Fails(tcpsbed.Metric):
    def of(self, run):
        return run.summary["nothing"]
class Half(tcpsbed.Metric):
    pass
class Plain:
    def of(self, run):
        return 1
"""
SCENARIO = """
duration = "1 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows]
kinematic = { sample = "24 B" }
haptic = { sample = "12 B", rate = "500 Hz" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "broken.py").write_text("1 / 0\nclass Late:\n    pass\n")
    (tmp_path / "s.toml").write_text(SCENARIO)
    return tmp_path / "s.toml"


def own(file: Path, *names: str) -> str:
    listed = ", ".join(f'"./mine.py:{name}"' for name in names)
    return f"measure.metrics=[{listed}]"


def test_it_is_in_the_summary_on_the_terminal_and_on_the_page(file: Path) -> None:
    out = file.parent / "out"
    run = tcpsbed.run(file, set=[own(file, "Sent", "Unknown")], out=out)
    named = {"name": "Sent", "unit": "samples", "meaning": "How many samples each flow sent"}
    assert run.summary["metrics"] == [
        named | {"of": "kinematic", "value": 1000.0},
        named | {"of": "haptic", "value": 500.0},
        {"name": "Unknown", "of": "", "value": None, "unit": "", "meaning": ""},
    ]
    shown = CliRunner().invoke(app, ["show", str(out)]).output
    assert re.search(r"Sent +kinematic +1.000 +samples +How many samples each flow sent", shown), shown
    assert CliRunner().invoke(app, ["report", str(out)]).exit_code == 0
    page = (out / "report.html").read_text()
    assert "Metrics of your own" in page and "How many samples each flow sent" in page


def test_two_files_may_have_one_of_the_same_name(file: Path) -> None:
    (file.parent / "other.py").write_text(CODE.replace('flow["sent"]', "1"))
    both = 'measure.metrics=["./mine.py:Sent", "./other.py:Sent"]'
    rows = tcpsbed.run(file, set=[both], out=file.parent / "out").summary["metrics"]
    assert [(row["name"], row["value"]) for row in rows if row["of"] == "haptic"] == [
        ("Sent", 500),
        ("Sent", 1),
    ]


def test_a_run_without_them_has_no_word_of_them(file: Path) -> None:
    assert "metrics" not in tcpsbed.run(file, out=file.parent / "out").summary


def test_one_that_fails_is_told_with_file_and_line_beside_the_others(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    run = tcpsbed.run(file, set=[own(file, "Fails", "Sent")], out=file.parent / "out")
    assert [row["value"] for row in run.summary["metrics"]] == [None, 1000.0, 500.0]
    assert run.summary["errors"] == ["metric Fails: KeyError: 'nothing', at mine.py:13 in of"]


def test_one_that_cannot_be_made_costs_no_run(file: Path) -> None:
    (file.parent / "mine.py").write_text(
        CODE.replace("    def of", "    def __init__(self): 1 / 0\n    def of", 1)
    )
    run = tcpsbed.run(file, set=[own(file, "Sent")], out=file.parent / "out")
    assert run.flows["kinematic"]["delivered"] == 1000
    (error,) = run.summary["errors"]
    assert error.startswith("metric Sent: ZeroDivisionError: ") and "mine.py:6 in __init__" in error, error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("./mine.py:Half", 'found "Half", which is not a metric; allowed: class Half(tcpsbed.Metric) with of(self, run)'),
        ("./mine.py:Plain", 'measure.metrics: found "Plain", which is not a metric; allowed: class Plain(tcpsbed.Metric)'),
        ("./mine.py:Send", 'found "Send" (did you mean Sent?); allowed: a name in ./mine.py: tcpsbed, Sent, '),
        ("./broken.py:Late", 'measure.metrics: found "./broken.py:Late": the module cannot be imported: ZeroDivisionError'),
        ("late", 'measure.metrics: found "late"; allowed: code such as "./mine.py:Mine"'),
    ],
)  # fmt: skip
def test_what_is_no_metric_is_refused_before_the_run(file: Path, given: str, said: str) -> None:
    with pytest.raises(TcpsbedError) as refused:
        tcpsbed.run(file, set=[f'measure.metrics="{given}"'], out=file.parent / "out")
    assert said in str(refused.value) and not (file.parent / "out").exists()


def test_what_is_no_value_is_told_with_its_class_and_an_example(file: Path) -> None:
    mine = file.with_name("mine.py")
    mine.write_text(
        mine.read_text() + '\n\nclass Words(tcpsbed.Metric):\n    def of(self, run):\n        return "fast"\n'
    )
    run = tcpsbed.run(file, set=['measure.metrics="./mine.py:Words"'], out=None)
    (error,) = [error for error in run.summary["errors"] if "Words" in error]
    assert (
        "of() of ./mine.py:Words gave 'fast'; allowed: a number, None, or these by name, such as {" in error
    )


def test_the_page_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs" / "summary.md").read_text(encoding="utf-8")
    assert (ROOT / "examples" / "own_metric.py").read_text(encoding="utf-8") in page


CAMPAIGN = """scenario = "s.toml"
set = ['measure.metrics=["./mine.py:Sent", "./mine.py:Samples"]', 'phases="random"', 'duration="2 s"']
seeds = 2
metrics = ["haptic.loss", "metrics.Sent.haptic.value", "metrics.Samples.value"]
[grid]
flows.haptic.rate = ["500 Hz", "1 kHz"]
[labels]
metrics.Sent.haptic.value = "forces"
"""
SAMPLES = """
class Samples(tcpsbed.Metric):
    unit = "samples"
    def of(self, run):
        return sum(flow["sent"] for flow in run.flows.values()) + run.summary["seed"]
"""


def test_it_is_a_column_of_a_campaign_of_compare_and_of_a_figure(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the numbers of its flow; one that is of no flow in a table of its own."""
    monkeypatch.chdir(file.parent)
    (file.parent / "mine.py").write_text(CODE + SAMPLES)
    (file.parent / "two.toml").write_text(CAMPAIGN)
    done = CliRunner().invoke(app, ["campaign", "two.toml", "--out", "out"])
    assert done.exit_code == 0, done.output
    haptic, others = done.output.split("\nmetrics\n")
    assert re.search(r"seeds +loss +± +forces samples", haptic), haptic
    assert re.search(r"\n500 Hz +2 +0.00 % +0.00 % +(1.000|999) ", haptic) and "loss samples" not in others, (
        haptic
    )
    assert re.search(r"Samples samples", others) and re.search(r"\n500 Hz +2 +3.?00[0-9] ", others), others
    found = tcpsbed.compare("out", metrics=["metrics.Sent.haptic.value"])
    assert [round(one.found.difference.mean, -1) for one in found.differences] == [1000]
    assert found.verdicts == [
        "haptic, forces: no difference shown between flows.haptic.rate=1 kHz and 500 Hz: 2 pairs are too few."
    ]
    drawn = tcpsbed.plot("out", x="rate", y="metrics.Samples.value")
    assert drawn.panels[0].y == "Samples (samples)", drawn.panels[0]
    loaded = tcpsbed.load("out")
    assert isinstance(loaded, Outcome)
    column = loaded.to_arrow().schema.field("metrics_Sent")
    assert column.metadata == {b"unit": b"samples"}


def test_a_campaign_refuses_one_that_the_scenario_does_not_have(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    wrong = CAMPAIGN.replace('"metrics.Samples', '"metrics.Sampels').replace(', "./mine.py:Samples"', "")
    (file.parent / "two.toml").write_text(wrong)
    refused = CliRunner().invoke(app, ["campaign", "two.toml", "--out", "out"])
    said = 'two.toml:4: metrics.2: found "Sampels", which is not a metric of the scenario; allowed: Sent'
    assert refused.exit_code == 2 and said in refused.stderr, refused.stderr
    (file.parent / "two.toml").write_text(re.sub("(?m)^set = .*", "", wrong))
    refused = CliRunner().invoke(app, ["campaign", "two.toml", "--out", "out"])
    assert '[measure] metrics = "./mine.py:Sent" in the scenario' in refused.stderr, refused.stderr
    assert not (file.parent / "out").exists()
