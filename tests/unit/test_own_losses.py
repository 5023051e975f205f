"""Loss models of the user's, in both worlds, in Python and in C; what goes wrong in them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis import facts
from tcpsbed.errors import ConfigError
from tcpsbed.worlds import fit

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """
duration = "2 s"
warmup = "0 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
sample = "24 B"
[links.l]
from = "a"
to = "b"
delay = "1 ms"
forward = { loss = {loss} }
[[events]]
at = "1.5 s"
link = "l.forward"
loss = {later}
"""
CODE = """
import tcpsbed
class Every(tcpsbed.LossModel):
    params = {"n": tcpsbed.Param("count", 2, 1000, "10", "one in so many is lost")}
    def lose(self, now_ns, packet):
        assert packet.bytes > 24 and packet.flow == 0 and packet.dscp == 0
        return packet.number % self.n == self.n - 1
class Silent(tcpsbed.LossModel):
    pass
class Boom(tcpsbed.LossModel):
    def lose(self, now_ns, packet): return self.boom
class Odd(tcpsbed.LossModel):
    def lose(self, now_ns, packet): return 0.5
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Any:
    def write(loss: str, later: str = "0") -> Path:
        (tmp_path / "mine.py").write_text(CODE)
        file = tmp_path / "own.toml"
        file.write_text(SCENARIO.replace("{loss}", loss).replace("{later}", later))
        return file

    return write


def lost(file: Path) -> int:
    run = tcpsbed.run(file, out=None)
    assert run.summary["errors"] == []
    (link,) = [link for link in run.summary["network"] if link["name"] == "l.forward"]
    assert link["drops"].keys() <= {"loss"}
    return int(link["drops"].get("loss", 0))


def share_on_sockets(file: Path) -> float:
    """Of all packets, to the end: a machine that stalls sends fewer."""
    file.write_text(file.read_text().partition("[[events]]")[0])
    run = tcpsbed.run(file, world="real", out=None)
    assert run.summary["errors"] == []
    (link,) = [link for link in run.summary["network"] if link["name"] == "l.forward"]
    return float(link["loss"])


def test_it_is_asked_of_every_packet_until_an_event_takes_its_place(scenario: Any) -> None:
    assert lost(scenario('"./mine.py:Every"')) == 150, "every tenth of 1.5 s"
    assert lost(scenario('{ kind = "./mine.py:Every", params = { n = 100 } }')) == 15
    assert lost(scenario('"./mine.py:Every"', '"100 %"')) == 150 + 500


@pytest.mark.realtime
@pytest.mark.beside
def test_on_sockets_it_is_the_same_code(scenario: Any) -> None:
    assert share_on_sockets(scenario('"./mine.py:Every"')) == pytest.approx(1 / 10, abs=0.002)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("world", ["virtual", "real"])
def test_one_in_c(world: str, scenario: Any, tmp_path: Path) -> None:
    source = (ROOT / "examples" / "own_loss.c").read_text()
    (tmp_path / "own.c").write_text(
        source + "int bad(void *s, const tcps_loss *p) { return (void)s, (void)p, -3; }\n"
    )
    include = ROOT / "python" / "tcpsbed" / "data"
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-I", include, "-o", tmp_path / "libown.so"]
    subprocess.run([*command, tmp_path / "own.c"], check=True)
    hundredth = scenario('"./libown.so:hundredth"')
    if world == "real":
        assert share_on_sockets(hundredth) == pytest.approx(1 / 100, abs=0.002)
        return
    assert lost(hundredth) == pytest.approx(15, abs=1)
    (error,) = tcpsbed.run(scenario('"./libown.so:bad"'), out=None).summary["errors"]
    assert (
        "libown.so:bad of links.l.forward: returned -3; allowed: TCPS_EMIT (the packet passes), TCPS_NOTHING (it is lost)"
        in error
    )


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("Boom", "AttributeError"),
        ("Odd", "lose() returned 0.5; allowed: True or False"),
    ],
)
def test_a_packet_at_which_it_fails_goes_on_and_it_is_named(scenario: Any, loss: str, told: str) -> None:
    run = tcpsbed.run(scenario(f'"./mine.py:{loss}"'), out=None)
    (error,) = run.summary["errors"]
    assert (
        f"mine.py:{loss} of links.l.forward: " in error and told in error and error.endswith("1500 times")
    ), error
    assert run.flows["kinematic"]["lost"] == 0


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ('"./mine.py:Silent"', "mine.py:Silent has no method lose; allowed: def lose(self, now_ns, packet)"),
        ('"./mine.py:Evry"', 'found "Evry" (did you mean Every?); allowed: a name in ./mine.py: '),
        (
            '{ kind = "./mine.py:Every", params = { n = 1 } }',
            "found 1; allowed: a whole number from 2 to 1000",
        ),
        (
            '{ kind = "./mine.py:Every", params = { m = 3 } }',
            'found "m", which is not a parameter of Every; allowed: n',
        ),
        (
            '{ kind = "gilbert" }',
            'found the kind "gilbert" (did you mean gilbert-elliott?); allowed: "random", "gilbert-elliott", or code',
        ),
    ],
)
def test_what_is_wrong_is_said_before_the_run(scenario: Any, loss: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        scenarios.check(scenarios.load(scenario(loss)))
    assert message in str(refused.value) and "own.toml:" in str(refused.value), refused.value


def test_ns3_refuses_it_with_the_remedy(scenario: Any) -> None:
    plan = scenarios.check(scenarios.load(scenario('"./mine.py:Every"')))
    found = [row for row in fit.unhonoured("ns-3", plan, "elsewhere") if "loss" in row[0]]
    assert found and found[0][:2] == ("links.l.forward.loss", "a loss model of your own")


def test_it_is_said_that_code_of_the_users_ran(scenario: Any) -> None:
    plan = scenarios.check(scenarios.load(scenario('"./mine.py:Every"')))
    assert "on this machine" in facts.scenario_info(plan, world="virtual")["promise"]
