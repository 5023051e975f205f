"""Rate controllers in Python: what they learn, what they steer, and what becomes of their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis.records import open_records
from tcpsbed.errors import ConfigError, HookError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_controller.toml"
SCENARIO = """
duration = "1 s"
[components]
tactile-operator = "left"
tactile-teleoperator = "right"
[flows]
kinematic = {{ sample = "24 B" }}
haptic = {{ sample = "24 B" }}
[channels.c]
flows = ["kinematic", "haptic"]
transport = {{ kind = "telehaptic", controller = "./mine.py:Mine", {more} }}
[links.l1]
from = "left"
to = "right"
delay = "5 ms"
"""
PICTURES = """
duration = "4 s"
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
[channels.c]
flows = ["haptic", "video"]
transport = { kind = "rtp", feedback = "20 ms", congestion = "./mine.py:Mine", least = "1 Mbit/s", bandwidth = "4 Mbit/s" }
[links.line]
from = "home"
to = "field"
rate = "10 Mbit/s"
"""
HEAD = "import tcpsbed\n\n\nclass Mine(tcpsbed.RateController):\n"
ANSWER = "    def on_feedback(self, now_ns, delay_ns, value, told):\n        "


def written(folder: Path, body: str, more: str = 'learns = "delays"', text: str = SCENARIO) -> Path:
    (folder / "mine.py").write_text(HEAD + body)
    file = folder / "mine.toml"
    file.write_text(text.format(more=more) if text is SCENARIO else text)
    return file


def merged(folder: Path) -> list[int]:
    """Samples a packet, each time that it changed."""
    names = {name: number for number, name, _ in tcpsbed._tcps.record_names()[0]}
    rows = open_records(folder / "records.bin")
    return [int(value) for value in rows[rows["kind"] == names["merging"]]["value"]]


def test_the_example_merges_while_the_link_is_narrow(tmp_path):
    run = tcpsbed.run(EXAMPLE, out=tmp_path / "own")
    assert run.summary["errors"] == [] and run.flows["kinematic"]["lost"] == 0
    assert max(merged(tmp_path / "own")) in (3, 4) and merged(tmp_path / "own")[-1] == 1
    plain = tcpsbed.run(EXAMPLE, out=tmp_path / "plain", set=["channels.own.transport.params.k_max=1"])
    assert run.flows["kinematic"]["delay_ms"]["max"] < 0.2 * plain.flows["kinematic"]["delay_ms"]["max"]


@pytest.mark.realtime
@pytest.mark.beside
def test_it_runs_on_sockets(tmp_path):
    run = tcpsbed.run(EXAMPLE, out=tmp_path / "real", world="real")
    assert run.summary["errors"] == [] and max(merged(tmp_path / "real")) >= 3


@pytest.mark.parametrize(
    ("learns", "kind"),
    [
        ("delays", "delay"),
        ("reports", "report"),
        ("round-trips", "round_trip"),
        ("arrivals", "arrival"),
    ],
)
def test_it_learns_what_it_asks_for_beside_delays(tmp_path, learns, kind):
    body = "    seen = frozenset()\n" + ANSWER + "self.seen |= {told.kind}\n"
    body += "        assert type(delay_ns) is int and value in (1, 2)\n"
    body += f"        assert self.seen <= {{'delay', '{kind}'}}, self.seen\n"
    body += f"        return 2 if told.kind == '{kind}' else None\n"
    run = tcpsbed.run(written(tmp_path, body, f'learns = "{learns}"'), out=tmp_path / "out")
    assert run.summary["errors"] == []
    assert merged(tmp_path / "out") == [1, 1, 2, 2], "both ends"


def test_parameters_come_by_the_table_and_packets_are_told(tmp_path):
    body = '    params = {"hold_ns": tcpsbed.Param("ns", 0, 1e9, "4 ms"), "k": tcpsbed.Param("count", 1, 8, "3")}\n'
    body += "    sent = 0\n"
    body += "    def on_sent(self, now_ns, wire_bytes, k):\n        self.sent += 1\n        assert k <= 3\n"
    body += ANSWER + "assert (self.hold_ns, self.k) == (7_000_000, 3), self.hold_ns\n"
    body += "        assert self.sent > 3 and len(self.channel.flows) == 2\n        return self.k\n"
    run = tcpsbed.run(written(tmp_path, body, 'params = { hold = "7 ms" }'), out=tmp_path / "out")
    assert run.summary["errors"] == [] and merged(tmp_path / "out") == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            ANSWER + "return 9\n",
            "mine.py:Mine returned 9; allowed: None or a whole number of samples from 1 to 7",
        ),
        (
            ANSWER + "return True\n",
            "mine.py:Mine returned True; allowed: None or a whole number of samples",
        ),
        (ANSWER + "raise ValueError('boom')\n", "ValueError: boom, at mine.py:6 in on_feedback, "),
    ],
)
def test_what_goes_wrong_is_told_with_file_and_line_and_how_often(tmp_path, monkeypatch, body, said):
    monkeypatch.chdir(tmp_path)
    run = tcpsbed.run(written(tmp_path, body), out=tmp_path / "out")
    assert len(run.summary["errors"]) == 2, "one an end"
    assert all(said in text and text.endswith(" times") for text in run.summary["errors"])


@pytest.mark.parametrize(("answer_bps", "kept_bps"), [(2e6, 2e6), (1e3, 1e6), (9e9, 4e6)])
def test_flows_of_rtp_keep_within_the_rate_that_it_gives(tmp_path, answer_bps, kept_bps):
    pytest.importorskip("simplejpeg")
    body = ANSWER + f"assert told.kind == 'arrival' and value in (4e6, {answer_bps})\n"
    body += f"        return {answer_bps}\n"
    file = written(tmp_path, body, text=PICTURES)
    run = tcpsbed.run(file, out=tmp_path / "out")
    assert run.summary["errors"] == []
    ends = json.loads((tmp_path / "out" / "result.json").read_text())["endpoints"]
    assert [end["allowed_bps"] for end in ends if end["told"]] == [kept_bps]
    assert run.summary["media"]["video"]["coded_bps"] < 0.95 * kept_bps


TABLE = '    params = {"k_max": tcpsbed.Param("count", 1, 8, "4"), "hold_ns": tcpsbed.Param("ns", 0, 1e9, "4 ms")}\n'


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("params = { k_max = 9 }", "params.k_max: found 9; allowed: a whole number from 1 to 8"),
        ("params = { hold = 4 }", "params.hold: found 4, a number without a unit; allowed: a span of time"),
        ('params = { hold = "2 s" }', 'params.hold: found "2 s"; allowed: a span of time from 0 ns to 1 s'),
        (
            "params = { kmax = 3 }",
            'found "kmax", which is not a parameter of Mine (did you mean k_max?); allowed: k_max, hold',
        ),
        ('params = { hold = "4 kB" }', 'params.hold: found "4 kB"; allowed: a span of time'),
        ('params = "4"', 'params: found "4"; allowed: a table'),
        ('learns = "rumours"', '"rumours"; allowed: "delays", "reports", "round-trips", "arrivals"'),
    ],
)
def test_what_is_not_in_its_table_is_refused(tmp_path, more, said):
    file = written(tmp_path, TABLE + ANSWER + "return 1\n", more)
    with pytest.raises(ConfigError, match=r"mine.toml:\d+: channels.c.transport") as error:
        scenarios.check(scenarios.load(file))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            '"ns", 0, 1e7, "banana", "x"',
            'found the default "banana"; allowed: a span of time from 0 ns to 10 ms',
        ),
        ('"ns", 0, 1e7, "3 kB", "x"', 'found the default "3 kB"; allowed: a span of time from 0 ns to 10 ms'),
        ('"count", 1, 7, "99", "x"', 'found the default "99"; allowed: a whole number from 1 to 7'),
        ('"count", 1, 7, "2.5", "x"', 'found the default "2.5"; allowed: a whole number from 1 to 7'),
        ('"number", 0, None, "nan", "x"', 'found the default "nan"; allowed: a number from 0 on'),
        ('"flag", None, None, "yes", "x"', 'found the default "yes"; allowed: true or false'),
        ('("a", "b"), None, None, "c", "x"', 'found the default "c"; allowed: "a", "b"'),
        ('"count", 1, 7, 4, "x"', "found the default 4; allowed: text"),
        ('"count", 7, 1, "4", "x"', "found min = 7, max = 1; allowed: numbers"),
        ('"count", 0, float("inf"), "4", "x"', "found min = 0, max = inf; allowed: numbers, or None"),
        ('"banana", 0, 1, "4", "x"', "found the unit 'banana'; allowed: one of the units"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_its_class_and_key(tmp_path, row, said):
    key = "k_ns" if row.startswith('"ns"') else "k"
    table = f'    params = {{"{key}": tcpsbed.Param({row})}}\n'
    file = written(tmp_path, table + ANSWER + "return 1\n", 'learns = "delays"')
    with pytest.raises(HookError, match=rf'mine.py: Mine.params\["{key}"\]: found') as error:
        scenarios.check(scenarios.load(file))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('kind="telehaptic"', "found \"nothing\"; allowed: a class in Python"),
        ('kind="telehaptic", controller="dpm"', 'a transport of its own: kind = "dpm"'),
        ('kind="telehaptic", controller="./mine.py:Mien"', "did you mean Mine?"),
        ('kind="telehaptic", controller="./mine.py:HEAD"', "has no method on_feedback"),
        ('kind="dpm", controller="./mine.py:Mine"', 'found "controller", which is not a parameter of dpm'),
        ('kind="rtp", congestion="./mine.py:Mine"', 'found no parameter "feedback"; allowed: a time, because'),
        ('kind="rtp", feedback="20 ms", congestion="./mine.py:Mine"', "follow the transport"),
        ('kind="rtp", congestion="bbr"', 'none, gcc, or a class such as "./mine.py:Mine"'),
    ],
)  # fmt: skip
def test_what_is_no_controller_is_refused(tmp_path, given, said):
    file = written(
        tmp_path, ANSWER + "return 1\n\n\nclass HEAD:\n    def __init__(self, channel):\n        pass\n"
    )
    text = file.read_text()
    line = next(line for line in text.splitlines() if line.startswith("transport"))
    file.write_text(text.replace(line, f"transport = {{ {given} }}"))
    with pytest.raises(ConfigError) as error:
        scenarios.check(scenarios.load(file))
    assert said in str(error.value)
