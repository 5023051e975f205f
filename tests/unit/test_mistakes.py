"""Mistakes that are easily made: each is answered with status 2, in one message that names the remedy.

A case is a scenario, with a line added or changed, and words of a command; or these alone. `says` is a part of the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import sample_run
from typer.testing import CliRunner

from tcpsbed.cli.app import app

GOOD = """duration = "50 ms"
[components]
tactile-operator = "a"
ms-com = "a"
ss-com = "b"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "1 kHz"
sample = "24 B"
[links.l1]
from = "a"
to = "b"
"""
CHECK = "check my.toml"


@dataclass(frozen=True)
class Mistake:
    """What is typed, and what is said."""

    says: str
    words: str = CHECK
    more: str = ""
    """What stands behind the good scenario: keys of its link, or further tables."""
    old: str = ""
    new: str = ""
    """What stands in place of a part of it."""


def link(line: str, says: str) -> Mistake:
    """A wrong key of a link."""
    return Mistake(says, more=f"{line}\n")


def changed(old: str, new: str, says: str) -> Mistake:
    """A wrong line in place of a right one."""
    return Mistake(says, old=old, new=new)


def table(text: str, says: str) -> Mistake:
    """A wrong table behind the others."""
    return Mistake(says, more=text)


def typed(words: str, says: str) -> Mistake:
    """Wrong words of a command."""
    return Mistake(says, words)


CHANNEL = '[channels.session]\nflows = ["kinematic"]\n'
MISTAKES = {
    # quantities and their units
    "a queue without a unit": link("queue = 20", '"20 packets", "20 B" or a table'),
    "a queue without a unit in quotes": link('queue = "20"', '"20 packets", "20 B" or a table'),
    "packets cut short": link('queue = "20 pkts"', "did you mean packets?"),
    "a rate without a unit": link("rate = 10", '"10 bit/s" or "10 Mbit/s"'),
    "a rate in Mbps": link('rate = "10 Mbps"', "did you mean Mbit/s?"),
    "a rate in MB/s": link('rate = "10 MB/s"', "did you mean Mbit/s? 1 MB/s is 8 Mbit/s"),
    "a rate in kbps": link('rate = "64 kbps"', "did you mean kbit/s?"),
    "a delay without a unit": link("delay = 10", '"10 ms" or "10 s"'),
    "a delay in msec": link('delay = "10 msec"', "did you mean ms?"),
    "a delay that is a rate": link(
        'delay = "10 Mbit/s"', 'which is a bit rate; allowed: a span of time such as "15 ms"'
    ),
    "a negative delay": link('delay = "-5 ms"', "which is negative; allowed: a span of time"),
    "a loss without a percent sign": link("loss = 0.01", '"1 %" if 0.01 of 1 is meant'),
    "a loss in words": link('loss = "1 percent"', "did you mean %?"),
    "a loss above all": link('loss = "120 %"', "allowed: "),
    "a jitter that is no distribution": link(
        'jitter = "2 ms"', '{ kind = "uniform", low = "0 ms", high = "2 ms" }'
    ),
    "a rate of samples without a unit": changed('"1 kHz"', "1000", '"1000 Hz"'),
    "a rate of samples in small letters": changed('"1 kHz"', '"1 khz"', "did you mean kHz?"),
    "a rate of samples in bit/s": changed(
        '"1 kHz"',
        '"1 Mbit/s"',
        'which is a bit rate, not samples or steps a second; allowed: a frequency such as "1 kHz"',
    ),
    "a sample without a unit": changed('"24 B"', "24", '"24 B"'),
    "a sample in bytes": changed('"24 B"', '"24 bytes"', "did you mean B?"),
    "a duration without a unit": changed('"50 ms"', "10", '"10 ms" or "10 s"'),
    "a duration of nothing": changed('"50 ms"', '"0 s"', "which is zero; allowed: a span of time"),
    "a decimal comma": link('delay = "5,5 ms"', 'allowed: a decimal point ("5.5 ms")'),
    "a range": link('delay = "1-10 ms"', 'such as "1 ms"; to sweep over several: --over '),
    "a seed in quotes": changed(
        'duration = "50 ms"', 'seed = "3"', "allowed: a whole number without quotes, such as 3"
    ),
    "a seed below zero": changed('duration = "50 ms"', "seed = -3", "a whole number of 0 or more"),
    # keys
    "latency for delay": link('latency = "10 ms"', "did you mean delay?"),
    "bandwidth for rate": link('bandwidth = "10 Mbit/s"', "did you mean rate?"),
    "bw for rate": link('bw = "10 Mbit/s"', "did you mean rate?"),
    "plr for loss": link('plr = "1 %"', 'did you mean loss? such as "1 %"'),
    "buffer for queue": link('buffer = "20 packets"', "did you mean queue?"),
    "rtt for delay": link('rtt = "20 ms"', "did you mean delay? it is one way: half of the RTT"),
    "packetloss for loss": link('packetloss = "1 %"', "did you mean loss?"),
    "freq for rate": changed('rate = "1 kHz"', 'freq = "1 kHz"', "did you mean rate?"),
    "host for node": changed('ms-com = "a"', 'ms-com = { host = "a" }', "did you mean node?"),
    "letters swapped": link('dealy = "20 ms"', "did you mean delay?"),
    "source for from": changed('from = "a"', 'source = "a"', "did you mean from?"),
    "fps for rate": changed('rate = "1 kHz"', "fps = 30", 'did you mean rate? such as "30 Hz"'),
    "size for sample": changed('sample = "24 B"', 'size = "24 B"', "did you mean sample?"),
    "time for duration": changed("duration", "time", "did you mean duration?"),
    "seeds for seed": changed('duration = "50 ms"', "seeds = 3", "did you mean seed?"),
    "one link": table('[link.l2]\nfrom = "a"\n', "did you mean links?"),
    "one channel": table("[channel.session]\n", "did you mean channels?"),
    "protocol for transport": table(f'{CHANNEL}protocol = "udp"\n', "did you mean transport?"),
    "a table that was not begun": table('[measure]\nsignal = ["ss-com.exit"]\n', "did you mean signals?"),
    "an echo that is true": table(
        "[measure]\necho = true\n", 'allowed: a table such as { points = "all", period = "10 ms" }'
    ),
    "a key that is there twice": link(
        'to = "b"', "links.l1.to: found a second time (first on line 12); allowed: each table"
    ),
    # names and kinds
    "a transport misspelt": table(f'{CHANNEL}transport = "dmp"\n', "did you mean dpm?"),
    "a queue misspelt": link('queue = { discipline = "codell" }', "did you mean codel?"),
    "kind for discipline": link('queue = { kind = "codel" }', "did you mean discipline?"),
    "fifo for drop-tail": link('queue = { discipline = "fifo" }', "did you mean drop-tail?"),
    "gilbert for gilbert-elliott": link(
        'loss = { kind = "gilbert", p = "1 %" }', "did you mean gilbert-elliott?"
    ),
    "a loss without a kind": link(
        'loss = { p = "1 %" }', '{ kind = "gilbert-elliott", p = "1 %", r = "10 %" }'
    ),
    "a hook misspelt": table('[hooks.predict]\nrun = "zho"\nat = "ss-com"\n', "did you mean zoh?"),
    "a hook in a file that is not there": table(
        '[hooks.predict]\nrun = "./no.py:Mine"\nat = "ss-com"\n', "no.py"
    ),
    "traffic misspelt": table(
        '[traffic.t]\nkind = "poison"\non = "l1"\nrate = "1 Mbit/s"\n', "did you mean poisson?"
    ),
    "traffic on another link": table('[traffic.t]\non = "l2"\nrate = "1 Mbit/s"\n', "did you mean l1?"),
    "a component without a kind": changed(
        "ms-com =",
        "camera =",
        'such as camera = { kind = "tactile-operator", node = "a" }; kinds: ',
    ),
    "a component misspelt": changed("ms-com =", "mscom =", "did you mean ms-com?"),
    "server for srv": changed("ms-com =", "server =", 'server = { kind = "srv", node = "a" }'),
    "a node misspelt": Mistake(
        'components.ms-com.node: found "robo", a node without a link (did you mean robot?)',
        more='[links.l2]\nfrom = "b"\nto = "robot"\n[nodes.robot]\n',
        old='ms-com = "a"',
        new='ms-com = { node = "robo" }',
    ),
    "a source misspelt": changed('rate = "1 kHz"', 'source = "robto"', "did you mean robot?"),
    "a component on a list of nodes": changed(
        'ms-com = "a"', 'ms-com = ["a"]', 'its node in quotes, such as "edge", or a table with'
    ),
    "a component on no node": changed(
        'ms-com = "a"', "ms-com = {}", 'the node on which the component runs, such as "edge"'
    ),
    "a flow misspelt": changed(
        "flows.kinematic", "flows.kinematics", "or rename the flow to kinematic, which has a direction"
    ),
    "a link to nowhere": changed(
        'to = "b"', 'to = "c"', "allowed: a node or a router (topology.routers): a, b"
    ),
    "delays of one direction": table(
        f'{CHANNEL}transport = "dpm"\n',
        "allowed: flows in both directions, because delay is reported in packets of the return",
    ),
    "nothing but a flow": changed(
        GOOD[: GOOD.index("[flows")], "", "a table [components] with the node of each component, such as"
    ),
    # formats
    "a value without quotes": link("rate = 10 Mbit/s", 'text in quotes: key = "15 ms"'),
    "a comparison": link('rate == "1 Mbit/s"', 'with = in place of == in rate = "1 Mbit/s"'),
    "YAML": changed(
        GOOD, "duration: 10 s\nlinks:\n  - a\n", "allowed: TOML, with = in place of : in duration ="
    ),
    "JSON": changed(GOOD, '{"duration": "10 s"}\n', "allowed: TOML in place of JSON"),
    "an empty file": changed(GOOD, "", "a table [components] with the node of each component, such as"),
    # files and folders
    "a file that is not there": typed("run no.toml", "a scenario file in TOML, or a spreadsheet"),
    "a file misspelt": typed("run mi.toml", "did you mean my.toml?"),
    "a scenario that ships": typed("run quickstart.toml", "allowed: tcpsbed init --from quickstart"),
    "a scenario that ships, by its name": typed("run quickstart", "allowed: tcpsbed init --from quickstart"),
    "a folder for a file": typed("run .", "(it is a folder); allowed: a scenario file in TOML"),
    "a capture for a scenario": typed("run x.pcap", "allowed: a scenario file in TOML"),
    "a run that is not there": typed("show runs/no", '"tcpsbed runs" lists all runs'),
    "a file for a run": typed("show my.toml", "is a file; allowed: the folder of a run, such as runs/latest"),
    "the page for its run": typed("show done/report.html", "is a file; allowed: the folder of the run: done"),
    "a folder of no run": typed("show .", "the folder of a finished run, such as runs/latest"),
    "a run compared with nothing": typed(
        "compare done", "allowed: two run folders or more, such as runs/a runs/b"
    ),
    "runs in no folder": typed("runs no", "no such folder; allowed: a folder with runs in it"),
    "a file for a folder": typed(
        "run my.toml --out x.pcap", "--out: x.pcap is a file; allowed: a folder, new or empty"
    ),
    "a name that is taken": typed("init my.toml", "exists already; allowed: another name"),
    # commands and options
    "a command misspelt": typed("rnu my.toml", "did you mean run?"),
    "version for --version": typed("version", "did you mean --version?"),
    "help for --help": typed("help", "did you mean --help?"),
    "simulate for run": typed("simulate my.toml", "did you mean run?"),
    "validate for check": typed("validate my.toml", "did you mean check?"),
    "no command": typed("my.toml", "allowed: a command before the file, such as tcpsbed run my.toml"),
    "a command of a group misspelt": typed("config form-xlsx my.xlsx", "did you mean from-xlsx?"),
    "an option misspelt": typed("run my.toml --wrold real", "did you mean --world?"),
    "an option between two": typed("run my.toml --sed 3", "did you mean --set or --seed?"),
    "one seed too many": typed("sweep my.toml --seed 3", "did you mean --seeds?"),
    "output for out": typed("run my.toml --output here", "did you mean --out?"),
    "a key for an option": typed("run my.toml --rate 3", "allowed: a key of the scenario by --set KEY=VALUE"),
    "an option without its value": typed(
        "run my.toml --world", "--world needs a value; allowed: --world real"
    ),
    "no file": typed("run", "run: found no FILE (scenario, in TOML or .xlsx); allowed: tcpsbed run my.toml"),
    "no name": typed("new hook", "found no NAME (name of the files and, in Python, of the module)"),
    "nothing to run": typed("netns --profile lte", "found no COMMAND… (command to run, after --)"),
    "a file too many": typed(
        "run my.toml other.toml", "found more arguments than it takes (other.toml); allowed: tcpsbed run ["
    ),
    "no seeds": typed("run my.toml --seeds 0", '--seeds: found "0"; allowed: a whole number of 1 or more'),
    "seeds in words": typed(
        "run my.toml --seeds three",
        '--seeds: found "three"; allowed: a whole number in the digits 0 to 9, such as',
    ),
    "a virtual run live": typed("run my.toml --live", "--live needs another --world, such as real"),
    "docker for containers": typed("run my.toml --world docker", "did you mean containers?"),
    "sim for virtual": typed("run my.toml --world sim", "did you mean virtual?"),
    "half a world misspelt": typed("run my.toml --world process+emulater", "did you mean process+emulator?"),
    "an option without a unit": typed("run my.toml --duration 10", '"10 ms" or "10 s"'),
    "a key set without a value": typed("run my.toml --set links.l1.rate", "allowed: KEY=VALUE on one line"),
    "a key set without a unit": typed("run my.toml --set links.l1.rate=10", '"10 bit/s" or "10 Mbit/s"'),
    "a table set misspelt": typed("run my.toml --set link.l1.rate=1", "did you mean links?"),
    "a link set that is not there": typed("run my.toml --set links.l2.rate=1", 'found "l2"; allowed: l1'),
    "a link set in capitals": typed("run my.toml --set links.L1.rate=1", 'found "L1"; allowed: l1'),
    "a component set that is not there": typed(
        'run my.toml --set components.camera="home"', 'a new one in the file: camera = { kind = "'
    ),
    "a sweep over a range": typed(
        "sweep my.toml --over links.l1.delay=1-10ms", "to sweep over several: --over"
    ),
    "a sweep over nothing": typed(
        "sweep my.toml", "allowed: tcpsbed sweep my.toml --over 'links.l1.rate=1 Mbit/s,2 Mbit/s'"
    ),
    "a sweep over a key alone": typed(
        "sweep my.toml --over links.l1.rate", "allowed: KEY=VALUE,VALUE such as"
    ),
    "a sweep over another link": typed("sweep my.toml --over links.l2.rate=1,2", 'found "l2"; allowed: l1'),
    "a work misspelt": typed("reproduce gokhale-2017", "did you mean gokhale2017?"),
    "no work": typed("reproduce", "reproduce: NAME is missing; allowed: all, gokhale2017"),
    "a page misspelt": typed("docs scenarioo", "did you mean scenario or scenarios?"),
    "a shipped scenario misspelt": typed("init --from quikstart", "did you mean quickstart?"),
    "a kind of code misspelt": typed("new controler mine", "did you mean controller?"),
    "a name that Python has not": typed("new controller My-Rule", "such as my_rule"),
    "kinds for a kind": typed("plugins --kind transports", "did you mean transport?"),
    "a profile misspelt": typed("proxy --profile wfi 7000=127.0.0.1:7100", "did you mean wifi?"),
    "letters too many": typed("proxy --profile lteee 7000=127.0.0.1:7100", "did you mean lte?"),
    "4g for lte": typed("proxy --profile 4g 7000=127.0.0.1:7100", "did you mean lte?"),
    "a port without a target": typed("proxy --profile lte 7000", "such as 7000=127.0.0.1:7100/udp"),
    "a proxy without ports": typed("proxy --profile lte", "one or more, such as 7000=127.0.0.1:7100/udp"),
    "a proxy of nothing": typed("proxy 7000=127.0.0.1:7100", "such as --profile lte, or one of --delay"),
    "a delay of a proxy without a unit": typed("proxy --delay 20 7000=127.0.0.1:7100", '"20 ms" or "20 s"'),
    "a namespace for nothing": typed(
        "netns --profile lte", "allowed: tcpsbed netns --profile lte -- ping 10.77.0.2"
    ),
    "limits misspelt": typed("check-qos done --profile telehaptic", "did you mean telehaptics?"),
    "an export of nothing": typed("export done", "--csv, --mcap, --parquet or --operator FILE"),
    "a recording cut short": typed("data mahi", "did you mean mahimahi?"),
    "a step without a robot": typed("step my.toml", "as in `tcpsbed init --from step`"),
    "a tuning without a unit": typed("tune --rtt 10", '"10 ms" or "10 s"'),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_answered_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    mistake = MISTAKES[case]
    monkeypatch.chdir(tmp_path)
    assert mistake.old in GOOD
    Path("my.toml").write_text(
        (GOOD.replace(mistake.old, mistake.new) if mistake.old else GOOD) + mistake.more
    )
    Path("x.pcap").write_bytes(b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00")
    sample_run.write(Path("done"))
    Path("done/report.html").touch()
    done = CliRunner().invoke(app, mistake.words.split())
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert done.stderr.startswith("tcpsbed: ") and done.stderr.count("tcpsbed: ") == 1
    assert mistake.says in done.stderr
