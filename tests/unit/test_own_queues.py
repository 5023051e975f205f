"""Queue disciplines and background sources of the user's, in both worlds, in Python and in C; what goes wrong in them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tcpsbed
from tcpsbed import door, scenarios
from tcpsbed.errors import ConfigError

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
rate = "2 Mbit/s"
queue = {queue}
[traffic.own]
on = "l.forward"
{traffic}
"""
CBR = 'kind = "cbr"\nrate = "3 Mbit/s"\npacket = "1000 B"'
QUEUE = '{ limit = "30 kB", discipline = "./mine.py:Mine" }'
CODE = "import tcpsbed\nclass Mine(tcpsbed.QueueDiscipline):\n"
FIFO = """
import tcpsbed
class Mine(tcpsbed.QueueDiscipline):
    params = {"most": tcpsbed.Param("count", 1, 1000, "50", "packets that may wait")}
    def __init__(self, name, seed, **params):
        super().__init__(name, seed, **params)
        self.waiting = []
    def enqueue(self, now_ns, packet, dropped):
        self.waiting.append(packet.number)
        if len(self.waiting) > self.most:
            dropped.append(self.waiting.pop(0))
    def dequeue(self, now_ns, dropped):
        return self.waiting.pop(0)
class Every(tcpsbed.Source):
    params = {"period_ns": tcpsbed.Param("ns", 1, 1e9, "1 ms", "between packets")}
    def __init__(self, name, seed, **params):
        super().__init__(name, seed, **params)
        self.n = 0
    def next(self):
        self.n += 1
        return (self.n - 1) * self.period_ns, 100
class Silent(tcpsbed.Source):
    pass
class Half(tcpsbed.QueueDiscipline):
    def enqueue(self, now_ns, packet, dropped):
        pass
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Any:
    def write(code: str, queue: str = QUEUE, traffic: str = CBR) -> Path:
        (tmp_path / "mine.py").write_text(code)
        file = tmp_path / "own.toml"
        file.write_text(SCENARIO.replace("{queue}", queue).replace("{traffic}", traffic))
        return file

    return write


def records(file: Path, *settings: str) -> str:
    return str(tcpsbed.run(file, *settings, out=file.parent / "out").summary["records_sha256"])


def test_a_fifo_in_python_and_in_c_is_the_built_in_one(scenario: Any, tmp_path: Path) -> None:
    built_in = records(scenario(FIFO, '"30 kB"'))
    assert records(scenario(FIFO, QUEUE[:-1] + ", params = { most = 1000 } }")) == built_in
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "fifo.c").write_text(
        '#include "tcps_hook.h"\nstatic uint32_t ring[4096], first, n;\n'
        "int fifo(void *state, tcps_queue *c) {\n(void)state;\n"
        "if (c->what == TCPS_ARRIVES) ring[(first + n++) % 4096] = c->packet;\n"
        "else { c->packet = ring[first++ % 4096]; n--; }\nreturn TCPS_EMIT; }\n"
        "static int64_t at;\nint every(void *state, tcps_source *s) {\n(void)state;\n"
        "s->at_ns = at; s->bytes = 100; at += 1000000; return TCPS_EMIT; }\n"
    )
    include = ROOT / "python" / "tcpsbed" / "data"
    library = tmp_path / "libown.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", include, "-o", library, tmp_path / "fifo.c"], check=True)
    own = '{ limit = "30 kB", discipline = "./libown.so:fifo" }'
    assert records(scenario(FIFO, own)) == built_in
    same = records(scenario(FIFO, '"30 kB"', 'kind = "cbr"\nrate = "800 kbit/s"\npacket = "100 B"'))
    assert records(scenario(FIFO, '"30 kB"', 'kind = "./mine.py:Every"')) == same
    assert records(scenario(FIFO, '"30 kB"', 'kind = "./libown.so:every"')) == same


def test_what_a_discipline_drops_is_accounted(scenario: Any) -> None:
    run = tcpsbed.run(scenario(FIFO, QUEUE[:-1] + ", params = { most = 3 } }"), out=None)
    (link,) = [link for link in run.summary["network"] if link["name"] == "l.forward"]
    assert link["drops"].keys() == {"managed"} and link["drops"]["managed"] > 100
    assert link["max_queue_packets"] <= 4


@pytest.mark.parametrize(
    "queue, traffic, message",
    [
        (QUEUE[:-1] + ", params = { most = 0 } }", CBR, "found 0; allowed: a whole number from 1 to 1000"),
        (
            QUEUE[:-1] + ", params = { mosst = 3 } }",
            CBR,
            'found "mosst", which is not a parameter of Mine; allowed: most',
        ),
        (
            QUEUE.replace("Mine", "Mini"),
            CBR,
            'found "Mini" (did you mean Mine?); allowed: a name in ./mine.py: tcpsbed, Mine, Every, Silent, Half',
        ),
        (
            QUEUE[:-1] + ', target = "1 ms" }',
            CBR,
            "queue.target: unknown key beside code of your own; allowed: ",
        ),
        ('{ discipline = "codel", params = { most = 3 } }', CBR, "queue.params: found params of codel"),
        ('{ discipline = "codl" }', CBR, 'found "codl" (did you mean codel?); allowed: '),
        (
            '"30 kB"',
            'kind = "./mine.py:Every"\nparams = { period = "2 s" }',
            "allowed: a span of time from 1 ns to 1 s",
        ),
        ('"30 kB"', 'kind = "./mine.py:Mine"', "has no method next; allowed: def next(self)"),
        (
            '"30 kB"',
            'kind = "./mine.py:Silent"',
            "mine.py:Silent has no method next; allowed: def next(self)",
        ),
        (
            QUEUE.replace("Mine", "Half"),
            CBR,
            "mine.py:Half has no method dequeue; allowed: def dequeue(self, now_ns, dropped)",
        ),
    ],
)
def test_what_is_wrong_is_said_before_the_run(scenario: Any, queue: str, traffic: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        scenarios.check(scenarios.load(scenario(FIFO, queue, traffic)))
    assert message in str(refused.value) and "own.toml:" in str(refused.value)


@pytest.mark.parametrize(
    "body, told",
    [
        ("    def dequeue(self, now_ns, dropped): return self.boom\n", "AttributeError"),
        (
            "    def dequeue(self, now_ns, dropped): return 10**6\n",
            "sent packet 1000000, which does not wait",
        ),
        ("    def dequeue(self, now_ns, dropped): return None\n", "sent nothing, and "),
        (
            "    def dequeue(self, now_ns, dropped): return 'first'\n",
            "dequeue() returned 'first'; allowed: the number of ",
        ),
    ],
)
def test_a_discipline_that_fails_is_named_and_the_oldest_packet_goes(
    scenario: Any, body: str, told: str
) -> None:
    code = CODE + "    def enqueue(self, now_ns, packet, dropped): pass\n" + body
    file = scenario(code, '{ limit = "30 kB", discipline = "./mine.py:Mine" }')
    tcpsbed.run(file, out=file.parent / "own")
    (error,) = json.loads((file.parent / "own" / "summary.json").read_text())["errors"]
    assert "mine.py:Mine of links.l.forward: " in error and told in error and error.endswith(" times"), error
    if told == "AttributeError":
        assert "mine.py:4 in dequeue" in error
    assert records(file) == records(scenario(FIFO, '"30 kB"'))


def test_a_source_ends_with_its_first_mistake(scenario: Any) -> None:
    code = "import tcpsbed\nclass Mine(tcpsbed.Source):\n    def next(self): return -1, 0\n"
    run = tcpsbed.run(scenario(code, '"30 kB"', 'kind = "./mine.py:Mine"'), out=None)
    assert any(
        "source" in error and "gave a packet of 0 B at -1 ns" in error for error in run.summary["errors"]
    )


@pytest.mark.parametrize("said", ["'soon'", "5", "(1, 2, 3)"])
def test_what_no_packet_is_is_told_with_an_example(scenario: Any, said: str) -> None:
    code = f"import tcpsbed\nclass Mine(tcpsbed.Source):\n    def next(self): return {said}\n"
    run = tcpsbed.run(scenario(code, '"30 kB"', 'kind = "./mine.py:Mine"'), out=None)
    (error,) = run.summary["errors"]
    expected = f"traffic.own.l.forward: TypeError: next() returned {said}; allowed: (ns since its start, bytes), such as ("
    assert expected in error


def test_a_source_whose_time_stands_still_ends(scenario: Any) -> None:
    code = "import tcpsbed\nclass Mine(tcpsbed.Source):\n    def next(self): return 5, 1000\n"
    run = tcpsbed.run(scenario(code, '"30 kB"', 'kind = "./mine.py:Mine"'), out=None)
    (error,) = run.summary["errors"]
    assert "gave 100001 packets at 5 ns; allowed: at most 100000 at one time" in error


@pytest.mark.realtime
@pytest.mark.beside
def test_on_sockets_it_is_the_same_code(scenario: Any) -> None:
    """Every packet of the overload that is dropped was dropped by it, and a source makes its packets."""
    file = scenario(
        FIFO,
        QUEUE[:-1] + ", params = { most = 3 } }",
        'kind = "./mine.py:Every"\nparams = { period = "200 us" }',
    )
    run = tcpsbed.run(file, world="real", out=None)
    (link,) = [link for link in run.summary["network"] if link["name"] == "l.forward"]
    assert link["drops"].get("managed", 0) > 100 and not run.summary["errors"]
    (traffic,) = run.summary["traffic"]
    assert traffic["packets"] > 4000


def test_an_installed_package_gives_them_names(
    scenario: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brought.py").write_text(FIFO)
    about = tmp_path / "brought-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    points = "[tcpsbed.queue]\nfirst = brought:Mine\n[tcpsbed.traffic]\nregular = brought:Every\n"
    (about / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    door.installed.cache_clear()
    file = scenario("", '{ limit = "30 kB", discipline = "first" }', 'kind = "regular"')
    network = scenarios.check(scenarios.load(file))["network"]
    door.installed.cache_clear()
    assert network["links"][0]["queue"]["discipline"]["kind"].endswith("brought.py:Mine")
    assert network["traffic"][0]["model"]["kind"].endswith("brought.py:Every")


@pytest.mark.realtime
@pytest.mark.beside
def test_slow_code_is_named_on_the_terminal_with_the_remedy(scenario: Any) -> None:
    slow = FIFO.replace(
        "        return self.waiting.pop(0)\n",
        "        time.sleep(2e-4)\n        return self.waiting.pop(0)\n",
    )
    file = scenario(f"import time{slow}")
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "run",
        str(file),
        "--world",
        "real",
        "--out",
        str(file.parent / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    said = re.search(
        r"queue .*mine.py:Mine took (\d+) µs \(p99 of \d+ calls\), and packets waited for it: write it in C",
        done.stdout,
    )
    assert said and int(said[1]) > 200, done.stdout + done.stderr
    virtual = tcpsbed.run(file, out=None).summary["disturbances"]
    assert not any("took" in said for said in virtual), "nothing waits for it there"
