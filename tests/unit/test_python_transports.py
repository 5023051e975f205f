"""Transports in Python: one call an event, what they are given, what they may ask for, and what becomes of their errors.

[design: endpoints in Python]
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import tcpsbed
from tcpsbed import _tcps, scenarios, worlds
from tcpsbed.errors import ConfigError, HookError, TcpsbedError

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "examples" / "own_transport.py"
SCENARIO = """
duration = "1 s"

[components]
tactile-operator = "left"
tactile-teleoperator = "right"

[flows.kinematic]
sample = "24 B"
transport = {{ kind = "./mine.py:{name}" {params} }}

[links.l1]
from = "left"
to = "right"
delay = "5 ms"
"""
KINDS = """
import struct

HEADER = struct.Struct("!HIq")


class Buffered:
    \"\"\"Holds each sample back until a fixed time after it was made.\"\"\"

    def __init__(self, channel, hold_ns):
        self.hold_ns, self.held = hold_ns, []
        assert [flow.name for flow in channel.flows] == ["kinematic"]
        assert channel.flows[0].arrives == (channel.side == "b") and channel.flows[0].period_ns == 1_000_000

    def on_input(self, now_ns, kind, data, out):
        if kind == "sample":
            out.transmit(HEADER.pack(data.flow, data.index, data.origin_ns) + data.bytes, data.flow, data.index)
        elif kind == "datagram":
            assert data.received_ns <= now_ns
            self.held.append(data.bytes)
        while self.held and HEADER.unpack_from(self.held[0])[2] + self.hold_ns <= now_ns:
            out.deliver(*HEADER.unpack_from(self.held[0]), self.held.pop(0)[HEADER.size :])
        out.wake_at(HEADER.unpack_from(self.held[0])[2] + self.hold_ns if self.held else None)


class Faulty(Buffered):
    \"\"\"Fails at every tenth datagram, and counts every tenth sample as given up.\"\"\"

    def __init__(self, channel):
        super().__init__(channel, 0)
        self.seen = 0

    def on_input(self, now_ns, kind, data, out):
        self.seen += kind != "timeout"
        if self.seen % 10 == 0 and kind == "sample":
            return out.incomplete()
        if self.seen % 10 == 0 and kind == "datagram":
            raise RuntimeError("the tenth")
        super().on_input(now_ns, kind, data, out)


class Restless:
    \"\"\"Wants to be woken in the past, always.\"\"\"

    def __init__(self, channel):
        self.calls = 0

    def on_input(self, now_ns, kind, data, out):
        self.calls += 1
        if self.calls < 1000:
            out.wake_at(now_ns - 5)


class Deaf:
    def __init__(self, channel):
        pass
"""


def own(tmp_path: Path, name: str, params: str = "") -> scenarios.Scenario:
    """The scenario with one of these classes."""
    (tmp_path / "mine.py").write_text(KINDS)
    (tmp_path / "scenario.toml").write_text(SCENARIO.format(name=name, params=params))
    return scenarios.load(tmp_path / "scenario.toml")


def result(folder: Path) -> dict:
    """What a run told about itself."""
    found: dict = json.loads((folder / "result.json").read_text())
    return found


def test_the_example_leaves_the_same_rows_as_udp(shipped_scenarios, tmp_path):
    """Same sizes on the wire, same moments, same samples: not a row differs."""
    file, more = shipped_scenarios / "dumbbell-udp.toml", ['duration="5 s"', 'measure.pcapng="off"']
    python = [f'flows.{flow}.transport="{OWN}:NoMerge"' for flow in ("kinematic", "haptic")]
    for name, sets in (("udp", []), ("python", python)):
        worlds.run(scenarios.load(file, [*more, *sets]), out=tmp_path / name)
    assert result(tmp_path / "python")["records_sha256"] == result(tmp_path / "udp")["records_sha256"]
    assert result(tmp_path / "python")["errors"] == []


def test_a_transport_in_python_takes_a_few_microseconds_an_event(shipped_scenarios, tmp_path):
    """500 s of the dumbbell are to take under 15 s: a tenth of it, in processor time."""
    python = [f'flows.{flow}.transport="{OWN}:NoMerge"' for flow in ("kinematic", "haptic")]
    scenario = scenarios.load(
        shipped_scenarios / "dumbbell-udp.toml", ['duration="50 s"', 'measure.pcapng="off"', *python]
    )
    begun = time.process_time()
    worlds.run(scenario, out=tmp_path / "out")
    assert time.process_time() - begun < 1.5


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_the_example_runs_in_both_worlds_with_its_echoes(tmp_path, world):
    run = tcpsbed.run(
        ROOT / "examples" / "own_transport.toml", out=tmp_path, world=world, set=['duration="2 s"']
    )
    assert run.summary["errors"] == []
    for flow in ("kinematic", "haptic"):
        assert run.flows[flow]["lost"] < 0.2 * run.flows[flow]["sent"]
    (point,) = run.summary["echo"]["kinematic"]["points"]
    assert point["n"] > 30
    assert 5 < point["forward_ms"]["p50"] < 20
    assert ("on this machine" in run.summary["promise"]) == (world == "virtual")


def test_timeouts_come_when_they_are_asked_for(tmp_path):
    worlds.run(own(tmp_path, "Buffered", ', hold = "8 ms"'), out=tmp_path / "run")
    from tcpsbed.analysis.records import open_records

    rows = open_records(tmp_path / "run" / "records.bin")
    delivered = rows[rows["kind"] == 2]
    assert len(delivered) > 980 and set(delivered["value"]) == {8_000_000}


def test_what_it_raises_is_told_and_its_datagram_counted(tmp_path):
    worlds.run(own(tmp_path, "Faulty"), out=tmp_path / "run")
    found = result(tmp_path / "run")
    assert len(found["errors"]) == 1
    assert "mine.py:Faulty" in found["errors"][0] and "the tenth" in found["errors"][0]
    ends = {end["side"]: end for end in found["endpoints"]}
    assert ends["left"]["incomplete"] == 100 and 80 <= ends["right"]["malformed"] <= 90


def test_time_goes_on_under_an_endpoint_that_wants_the_past(tmp_path):
    worlds.run(own(tmp_path, "Restless"), out=tmp_path / "run")
    assert result(tmp_path / "run")["errors"] == []


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [("Buffered", "", "hold_ns"), ("Deaf", "", "no method on_input"), ("Faulty", ", colour = 1", "colour")],
)
def test_a_class_that_cannot_be_an_endpoint_is_refused(tmp_path, name, params, said):
    with pytest.raises(TcpsbedError, match=said):
        worlds.run(own(tmp_path, name, params), out=tmp_path / "run")
    with pytest.raises(HookError, match=said):
        _tcps.check_transport(f"{tmp_path / 'mine.py'}:{name}", json.dumps({"colour": 1} if params else {}))


def test_a_name_that_is_not_there_is_refused_with_what_is(tmp_path):
    with pytest.raises(ConfigError, match="Buffered"):
        scenarios.compile_plan(own(tmp_path, "Bufferd"), tmp_path)
    file = tmp_path / "scenario.toml"
    file.write_text(file.read_text().replace("./mine.py:Bufferd", "udb"))
    with pytest.raises(ConfigError, match=r'udp.*"./mine.py:Mine"'):
        scenarios.compile_plan(scenarios.load(file), tmp_path)
