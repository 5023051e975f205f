"""Delay models of the user's for jitter, in both worlds, in Python and in C; what goes wrong in them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis import facts
from tcpsbed.analysis.records import KINDS
from tcpsbed.errors import ConfigError
from tcpsbed.worlds import fit

DELIVERED = KINDS.index("delivered") + 1
ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """
duration = "1 s"
warmup = "0 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
sample = "24 B"
[links.l]
from = "a"
to = "b"
delay = "5 ms"
forward = { jitter = {jitter} }
"""
CODE = """
import tcpsbed
class Every(tcpsbed.DelayModel):
    params = {
        "n": tcpsbed.Param("count", 2, 1000, "10", "one in so many is late"),
        "late_ns": tcpsbed.Param("ns", 0, 1e9, "2 ms", "by how much"),
    }
    def delay(self, now_ns, packet):
        assert packet.bytes > 24 and packet.flow == 0 and packet.dscp == 0
        return self.late_ns if packet.number % self.n == self.n - 1 else 0
class Silent(tcpsbed.DelayModel):
    pass
class Boom(tcpsbed.DelayModel):
    def delay(self, now_ns, packet): return self.boom
class Odd(tcpsbed.DelayModel):
    def delay(self, now_ns, packet): return 0.5
class Early(tcpsbed.DelayModel):
    def delay(self, now_ns, packet): return -1
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Any:
    def write(jitter: str) -> Path:
        (tmp_path / "mine.py").write_text(CODE)
        file = tmp_path / "own.toml"
        file.write_text(SCENARIO.replace("{jitter}", jitter))
        return file

    return write


def ages_ns(file: Path, world: str = "virtual") -> Any:
    run = tcpsbed.run(file, world=world, out=file.parent / world)
    assert run.summary["errors"] == []
    rows = run.records
    mine = rows[(rows["kind"] == DELIVERED) & (rows["flow"] == 0)]
    return mine["value"][np.argsort(mine["index"], kind="stable")]


def late(file: Path) -> int:
    """Samples that came later than the constant delay."""
    return int((ages_ns(file) > 5_500_000).sum())


def assert_tenths_are_late(ages: Any) -> None:
    """Of each ten samples in a row the last came 2 ms later than the others, by medians: load moves some of them."""
    assert len(ages) > 500
    medians = np.sort([np.median(ages[first::10]) for first in range(10)])
    assert medians[-1] - medians[:-1] == pytest.approx(2e6, abs=0.5e6), medians


def test_it_is_asked_of_every_packet_and_others_wait_or_overtake(scenario: Any) -> None:
    assert late(scenario('{ kind = "./mine.py:Every", reorder = true }')) == 99, (
        "the hundredth is in flight at the end"
    )
    # The packet 1 ms behind a late one waits for it.
    assert late(scenario('"./mine.py:Every"')) == 2 * 99
    table = '{ kind = "./mine.py:Every", params = { n = 100, late = "3 ms" }, reorder = true }'
    assert late(scenario(table)) == 9
    nested = '{ delay = { kind = "./mine.py:Every" }, reorder = true }'
    assert late(scenario(nested)) == 99


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("world", ["virtual", "real"])
def test_one_in_c(world: str, scenario: Any, tmp_path: Path) -> None:
    source = (ROOT / "examples" / "own_delay.c").read_text()
    (tmp_path / "own.c").write_text(
        source + "int bad(void *s, tcps_delay *p) { return (void)s, (void)p, -3; }\n"
    )
    include = ROOT / "python" / "tcpsbed" / "data"
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-I", include, "-o", tmp_path / "libown.so"]
    subprocess.run([*command, tmp_path / "own.c"], check=True)
    table = '{ kind = "./libown.so:tenth", reorder = true }'
    file = scenario(table)
    if world == "real":
        assert_tenths_are_late(ages_ns(file, world))
    else:
        assert late(file) == 99
        (error,) = tcpsbed.run(scenario('"./libown.so:bad"'), out=tmp_path / "bad").summary["errors"]
        assert (
            "delay" in error and "libown.so:bad of links.l.forward: returned -3; allowed: TCPS_EMIT" in error
        )


@pytest.mark.realtime
@pytest.mark.beside
def test_on_sockets_it_is_the_same_code(scenario: Any) -> None:
    table = '{ kind = "./mine.py:Every", reorder = true }'
    assert_tenths_are_late(ages_ns(scenario(table), "real"))


@pytest.mark.parametrize(
    ("jitter", "told"),
    [
        ("Boom", "AttributeError"),
        ("Odd", "delay() returned 0.5; allowed: nanoseconds as a whole number"),
        ("Early", "delay() returned -1; allowed: nanoseconds from 0 to 3600000000000"),
    ],
)
def test_a_packet_at_which_it_fails_is_not_late_and_it_is_named(
    scenario: Any, jitter: str, told: str
) -> None:
    file = scenario(f'"./mine.py:{jitter}"')
    run = tcpsbed.run(file, out=file.parent / "out")
    (error,) = run.summary["errors"]
    assert f"mine.py:{jitter} of links.l.forward: " in error, error
    assert told in error and error.endswith("1000 times"), error
    assert run.flows["kinematic"]["lost"] == 0 and run.flows["kinematic"]["delay_ms"]["max"] < 6


@pytest.mark.parametrize(
    ("jitter", "message"),
    [
        (
            '"./mine.py:Silent"',
            "mine.py:Silent has no method delay; allowed: def delay(self, now_ns, packet)",
        ),
        ('"./mine.py:Evry"', 'found "Evry" (did you mean Every?); allowed: a name in ./mine.py: '),
        (
            '{ kind = "./mine.py:Every", params = { n = 1 } }',
            "found 1; allowed: a whole number from 2 to 1000",
        ),
        (
            '{ kind = "./mine.py:Every", params = { m = 3 } }',
            'found "m", which is not a parameter of Every; allowed: n, late',
        ),
        ('{ kind = "gauss" }', "gauss"),
        ('"0.3 ms"', 'found "0.3 ms"'),
    ],
)
def test_what_is_wrong_is_said_before_the_run(scenario: Any, jitter: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        scenarios.check(scenarios.load(scenario(jitter)))
    assert message in str(refused.value) and "own.toml:" in str(refused.value), refused.value


def test_ns3_refuses_it_with_the_remedy(scenario: Any) -> None:
    plan = scenarios.check(scenarios.load(scenario('"./mine.py:Every"')))
    found = [row for row in fit.unhonoured("ns-3", plan, "elsewhere") if "jitter" in row[0]]
    assert found and found[0] == ("links.l.forward.jitter", "jitter", "no jitter, or elsewhere")


def test_it_is_said_that_code_of_the_users_ran(scenario: Any) -> None:
    plan = scenarios.check(scenarios.load(scenario('"./mine.py:Every"')))
    assert "on this machine" in facts.scenario_info(plan, world="virtual")["promise"]
