"""`flows.NAME.playout`: from the scenario to the summary, the report and the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis.playout import playout
from tcpsbed.analysis.records import KINDS
from tcpsbed.errors import ConfigError
from tcpsbed.studio import freeze
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder

SCENARIO = """
duration = "3 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.haptic]
playout = {playout}
[links.l1]
from = "b"
to = "a"
delay = "5 ms"
jitter = {{ kind = "uniform", low = "0 ms", high = "4 ms", reorder = true }}
"""


def run(folder: Path, playout: str) -> tcpsbed.Run:
    file = folder / "shown.toml"
    file.write_text(SCENARIO.format(playout=playout))
    return tcpsbed.run(file, world="virtual", out=folder / "out")


# [model: playout] [Ramjee 1994]
def test_what_was_shown_and_when_is_in_summary_report_and_rows(tmp_path: Path) -> None:
    done = run(tmp_path, '{ kind = "fixed", delay = "8 ms" }')
    shown = done.flows["haptic"]["playout"]
    assert shown["played"] + shown["late"] == pytest.approx(3000, abs=10)
    assert 600 < shown["late"] < 900, "a quarter of the delays of 5 to 9 ms"
    assert shown["age_ms"]["min"] == shown["age_ms"]["max"] == 8.0
    assert (shown["skipped"], shown["starved"], done.flows["haptic"]["lost"]) == (0, 0, 0)
    rows = done.records
    counts = {kind: int((rows["kind"] == 1 + KINDS.index(kind)).sum()) for kind in ("played", "overdue")}
    assert counts == {"played": shown["played"], "overdue": shown["late"]}
    folder = open_folder(done.folder)
    assert "starved" in text.everything(folder) and "8.000" in text.overview(folder)
    assert "Playout" in freeze.render(folder)


# [model: playout] [Ramjee 1994]
def test_inside_a_run_a_policy_does_what_it_does_on_its_recording(tmp_path: Path) -> None:
    inside = run(tmp_path, '{ kind = "hold", display = "burst" }')
    outside = playout(inside, "haptic", {"kind": "hold", "display": "burst"})
    rows = inside.records
    rows = rows[rows["kind"] == 1 + KINDS.index("played")]
    same = min(len(rows), len(outside.index))
    assert same > 1500 and abs(len(rows) - len(outside.index)) < 10
    assert np.array_equal(rows["index"][:same], outside.index[:same])
    assert np.array_equal(rows["time"][:same], np.rint(outside.at_s[:same] * 1e9).astype(np.int64))
    for policy, said in (
        ({"kind": "later"}, r'policy\.kind: found "later"; allowed: hold, fixed, '),
        (
            {"kind": "fixed", "window": "1 s"},
            'policy: found "window", which is not a parameter of fixed; allowed: delay$',
        ),
        ({"kind": "fixed", "delay": 20}, r"policy\.delay: found 20, a number without a unit; .* such as"),
        (
            {"kind": "fixed", "delay": "1 h"},
            r'policy\.delay: found "1 h"; allowed: a span of time from 0 ns to 10 s',
        ),
        (
            {"kind": "fixed", "delay": "1e999 s"},
            'policy: found "1e999 s", which is too large; allowed: a span',
        ),
    ):
        with pytest.raises(ConfigError, match=said):
            playout(inside, "haptic", policy)


@pytest.mark.parametrize(
    ("playout", "said"),
    [
        ('"later"', "hold"),
        (
            '{ kind = "fixed", window = "1 s" }',
            'found "window", which is not a parameter of fixed; allowed: delay',
        ),
        ('{ kind = "fixed", delay = 20 }', "without a unit"),
        ('{ kind = "queue", threshold = 0 }', "from 1 to 1000000"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(tmp_path: Path, playout: str, said: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(SCENARIO.format(playout=playout))
    with pytest.raises(ConfigError, match=r"flows\.haptic\.playout") as refused:
        scenarios.check(scenarios.load(file))
    assert said in str(refused.value)
