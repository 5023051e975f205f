"""Changes of a supervisor's state: rows of the record, lines of the summary, the tables and the page."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import KINDS, open_records
from tcpsbed.errors import ConfigError
from tcpsbed.studio import freeze
from tcpsbed.views import folder, text

STATE = 1 + KINDS.index("state")
AGENT = """
class Forward:
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = x + 1.0
        return len(x)
"""
SCENARIO = """
name = "outage"
duration = "2 s"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-ei = "edge"
ss-com = "ss"
[flows.kinematic]
source = { recording = "still.csv", columns = ["x"], repeat = "loop" }
codec = "f64"
[hooks.safety]
kind = "predict"
run = "supervisor"
at = "ss-ei"
flow = "kinematic"
period = "1 ms"
params = { hold_ms = 50, stop_ms = 300, recover_ms = 20, speed = 0.2, start = [0.1] }
[links.line]
from = "ms"
to = "edge"
delay = "2 ms"
[links.last]
from = "edge"
to = "ss"
[[events]]
at = "0.5 s"
link = "line"
up = false
[[events]]
at = "1 s"
link = "line"
up = true
[measure]
signals = ["ss-com.exit"]
"""


@pytest.fixture
def outage(tmp_path: Path) -> Path:
    """A scenario with an outage of half a second before ss-ei, where the supervisor stands."""
    (tmp_path / "still.csv").write_text("time,x\n" + "\n".join(f"{ms / 1e3},0.1" for ms in range(100)))
    (tmp_path / "agent.py").write_text(AGENT)
    file = tmp_path / "outage.toml"
    file.write_text(SCENARIO)
    return file


def test_every_change_is_a_row_and_a_line(outage: Path, tmp_path: Path) -> None:
    run = tcpsbed.run(outage, out=tmp_path / "out")
    rows = open_records(run.folder / "records.bin")
    told = rows[rows["kind"] == STATE]
    first, changes = told[0], told[1:]
    assert first["size"] == first["detail"] == 0, "the state that it begins in"
    found = json.loads((run.folder / "summary.json").read_text())
    [watched] = found["states"]
    assert (watched["component"], watched["flow"]) == ("ss-ei", "kinematic")
    assert watched["first"] == {"t_s": first["time"] / 1e9, "state": "normal"}
    listed = [(c["from"], c["to"]) for c in watched["changes"]]
    names = ["normal", "degraded", "hold", "safe stop", "recovering", "normal"]
    assert listed == list(itertools.pairwise(names)) and watched["count"] == len(changes) == 5
    hold = watched["changes"][1]
    none = "no command arrived"
    causes = [
        "commands are late",
        none,
        none,
        "commands are good again",
        "it has reached the command",
    ]
    assert [change["cause"] for change in watched["changes"]] == causes
    assert watched["causes"]["hold"] == {none: 1} and watched["limited"] == 0
    assert hold["age_ms"] == pytest.approx(50, abs=1) and hold["t_s"] == pytest.approx(0.552, abs=0.002)
    assert sum(watched["spent_s"].values()) == pytest.approx(2, abs=2e-3)
    assert watched["spent_s"]["safe stop"] == pytest.approx(0.22, abs=0.1)


def test_changes_are_shown(outage: Path, tmp_path: Path) -> None:
    run = tcpsbed.run(outage, out=tmp_path / "out")
    opened = folder.open_folder(run.folder)
    shown, page = text.everything(opened), freeze.render(opened)
    for said in ("safe stop", "recovering", "ss-ei"):
        assert said in shown and said in page
    said = (
        "degraded because commands are late (1); hold because no command arrived (1); "
        "safe stop because no command arrived (1)"
    )
    assert "ss-ei (kinematic)" in text.overview(opened) and said in text.overview(opened)
    assert "→ normal, because it has reached the command, newest accepted" in text.overview(opened)
    assert "because" in page and "no command arrived" in page and "WARNING" not in shown
    assert "Safety and display" in page and "5 changes, the last at" in shown


def test_an_agent_in_python_leads_and_hands_back(outage: Path, tmp_path: Path) -> None:
    """Up to its reach while the line is down, at half the speed, and back to the command."""
    params = (
        "{hold_ms=50, stop_ms=900, recover_ms=20, speed=0.2, start=[0.1], "
        'action="agent", agent="./agent.py:Forward", reach=0.03}'
    )
    run = tcpsbed.run(outage, out=tmp_path / "out", set=[f"hooks.safety.params={params}"])
    where = signals.read(run.folder, "ss-com.exit", "kinematic").values[:, 0]
    assert where.max() == pytest.approx(0.13) and where[-1] == pytest.approx(0.1)
    assert np.abs(np.diff(where)).max() <= 0.2e-3 + 1e-9
    found = json.loads((run.folder / "summary.json").read_text())
    assert "on this machine" in found["promise"], "Python ran in it"


def test_an_agent_that_is_no_code_is_refused(outage: Path) -> None:
    for agent, said in (
        ("7", "agent: found 7"),
        ('"./nobody.py:X"', "no such file"),
        ('"zho"', "allowed: .*zoh"),
        ('{run="zoh", speed=1}', "found"),
    ):
        sets = [f'hooks.safety.params={{action="agent", agent={agent}}}']
        with pytest.raises(ConfigError, match=said):
            scenarios.check(scenarios.load(outage, sets))
    with pytest.raises(ConfigError, match='found no agent; allowed: action = "agent" and an agent'):
        scenarios.check(scenarios.load(outage, ['hooks.safety.params={action="agent"}']))


def test_a_stage_that_answers_on_arrival_only_fills_gaps(outage: Path, tmp_path: Path) -> None:
    """Each sample goes on at once; where half are lost, the timer makes up for them, and nothing twice."""
    supervised = outage.read_text()
    begin, end = supervised.index("run = "), supervised.index("[links.line]")
    held = 'run = "zoh"\nat = "ss-ei"\nflow = "kinematic"\nperiod = "1 ms"\nanswers = "arrivals"\n'
    outage.write_text(supervised[:begin] + held + supervised[end:])
    sets = [
        'duration="0.4 s"',
        "events=[]",
    ]
    whole = tcpsbed.run(outage, out=tmp_path / "whole", set=sets)
    summary = json.loads((whole.folder / "summary.json").read_text())
    assert summary["flows"]["kinematic"]["delay_ms"]["max"] == pytest.approx(2.0, abs=1e-3)
    [stage] = [s for s in summary["stages"] if s["kind"] == "predict"]
    assert stage["calls"] == pytest.approx(398, abs=3), "one for each sample"
    lossy = tcpsbed.run(outage, out=tmp_path / "lossy", set=[*sets, "links.line.loss=50 %"])
    rows = open_records(lossy.folder / "records.bin")
    out = rows[(rows["kind"] == 1 + KINDS.index("renumbered"))]
    assert 0.3 < (out["detail"] == 0).mean() < 0.6, "gaps are filled"
    gaps = np.diff(out["time"]) / 1e6
    assert gaps.max() <= 1.5 + 1e-6 and gaps.min() > 0.4, "a sample that is late by half a period is no gap"
    with pytest.raises(ConfigError, match=r"safety\.answers"):
        outage.write_text(outage.read_text().replace('period = "1 ms"\n', ""))
        scenarios.check(scenarios.load(outage))


def test_of_samples_that_overtake_each_other_the_newest_is_used(outage: Path, tmp_path: Path) -> None:
    """[Polachan 2022: edge] At each tick of a periodic stage: the largest of those that have come since the one before."""
    text = outage.read_text()
    begin, end = text.index("run = "), text.index("[links.line]")
    hold = 'run = "zoh"\nat = "ss-ei"\nflow = "kinematic"\nperiod = "20 ms"\n'
    outage.write_text(text[:begin] + hold + text[end:])
    jitter = 'links.line.jitter={ kind = "exponential", mean = "5 ms", reorder = true }'
    run = tcpsbed.run(outage, out=tmp_path / "out", set=[jitter])
    rows = open_records(run.folder / "records.bin")
    names = [
        component["name"] for component in json.loads((run.folder / "plan.json").read_text())["components"]
    ]
    here = names.index("ss-ei")
    came = rows[(rows["kind"] == 1 + KINDS.index("enter")) & (rows["point"] == 2 * here)]
    made = rows[(rows["kind"] == 1 + KINDS.index("renumbered")) & (rows["detail"] == 1)]
    overtaken = 0
    for n in range(1, len(made)):
        since = (came["time"] > made["time"][n] - 20_000_000) & (came["time"] <= made["time"][n])
        assert made["value"][n] == came["index"][since].max(), n
        overtaken += int(came["index"][since][-1] < came["index"][since].max())
    assert overtaken > 10, "the last to come is often not the newest"
