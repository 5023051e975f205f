"""Nodes on hosts that real ssh servers reach: each host a network namespace, the emulator between them as a wide area."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from real_run import children, gone, rings_of
from watch import blocks, home, until

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.errors import ConfigError, WorldError
from tcpsbed.scenarios.model.place import Host
from tcpsbed.worlds import ns3_program, registry
from tcpsbed.worlds.agent import PIECE, Agent, digest
from tcpsbed.worlds.contract import Job
from tcpsbed.worlds.link import SILENT_S, Link, files_of
from tcpsbed.worlds.process import Process

SSHD = Path("/usr/sbin/sshd")
HOSTS = ("left", "right")
SCENARIO = """
name = "apart"
duration = "{duration}"
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
sample = "24 B"
rate = "200 Hz"
[flows.haptic]
sample = "24 B"
rate = "200 Hz"
[channels.session]
flows = ["kinematic", "haptic"]
security = "aead"
[hooks]
kinematics = {{ at = "ss-com", run = "./mine.py:Twice" }}
[links.wide]
from = "left"
to = "right"
delay = "30 ms"
[hosts.middle]
address = "localhost"
data = "10.78.0.1"
role = "network"
"""
HOST = """
[hosts.{name}]
address = "10.78.0.{number}"
user = "root"
nodes = ["{name}"]
python = "{python}"
options = ["-i", "{key}", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
"""
HOOK = """
class Twice:
    def __init__(self, **params):
        pass
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = 2 * x
        return len(x)
"""
SERVER = """
Port 22
ListenAddress 10.78.0.{number}
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
SetEnv PYTHONPATH={path} PATH={search}
"""


@dataclass
class Lab:
    """Two hosts with an ssh server each, and this computer between them."""

    folder: Path
    prefix: list[str]
    servers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)

    def file(self, duration: str) -> Path:
        text = SCENARIO.format(duration=duration)
        for number, name in enumerate(HOSTS, 2):
            text += HOST.format(name=name, number=number, python=sys.executable, key=self.folder / "key")
        (self.folder / "s.toml").write_text(text)
        (self.folder / "mine.py").write_text(HOOK)
        return self.folder / "s.toml"

    def start(self, world: str, duration: str, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tcpsbed", "run", str(self.file(duration)), "--world", world, *more]
        return subprocess.Popen(
            [*self.prefix, *command, "--out", str(self.folder / "run"), "--no-report"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def summary(self) -> dict:
        return dict(json.loads((self.folder / "run" / "summary.json").read_text()))

    def inside(self, name: str) -> list[int]:
        """Processes on a host."""
        here = self.homes[name]
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if home(place.name) == here:
                    found.append(int(place.name))
        return found

    def kill(self, name: str) -> None:
        """The host is gone: everything on it dies at once."""
        for pid in self.inside(name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def sh(script: str) -> None:
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True, text=True)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if not SSHD.exists():
        pytest.skip("needs openssh-server")
    for name in ("key", "host"):
        sh(f"ssh-keygen -q -t ed25519 -N '' -f {tmp_path / name}")
    Path("/run/sshd").mkdir(exist_ok=True)
    middle = subprocess.Popen(["unshare", "-n", "sleep", "300"])
    at = ["nsenter", "-t", str(middle.pid), "-n"]
    found = Lab(tmp_path, at)
    homes = []
    try:
        until(lambda: home(middle.pid) != home("self"))
        enter = " ".join(at)
        sh(f"{enter} ip link set lo up; {enter} ip link add br0 type bridge; {enter} ip link set br0 up")
        sh(f"{enter} ip addr add 10.78.0.1/24 dev br0")
        for number, name in enumerate(HOSTS, 2):
            place = subprocess.Popen(["unshare", "-n", "sleep", "300"])
            homes.append(place)
            until(lambda p=place: home(p.pid) != home("self"))
            found.homes[name] = home(place.pid)
            there = f"nsenter -t {place.pid} -n"
            sh(f"{enter} ip link add {name} type veth peer name eth0 netns {place.pid}")
            sh(f"{enter} ip link set {name} master br0 up; {there} ip addr add 10.78.0.{number}/24 dev eth0")
            sh(f"{there} ip link set eth0 up; {there} ip link set lo up")
            path = os.environ.get("PYTHONPATH", "")
            text = SERVER.format(
                number=number, folder=tmp_path, path=path or "/nowhere", search=os.environ["PATH"]
            )
            (tmp_path / f"{name}.conf").write_text(text)
            server = [*there.split(), str(SSHD), "-D", "-e", "-f", str(tmp_path / f"{name}.conf")]
            found.servers[name] = subprocess.Popen(server, stderr=subprocess.PIPE, text=True)
        yield found
    finally:
        for name in found.servers:
            found.kill(name)
        for process in [*found.servers.values(), *homes, middle]:
            process.kill()
            process.wait()


@pytest.mark.needs("root", "ssh", "ip", "nsenter")
def test_two_hosts_with_the_emulator_as_a_wide_area(lab):
    run = lab.start("hosts+emulator", "3 s")
    output, errors = run.communicate(timeout=120)
    assert run.returncode == 0, errors + output
    summary = lab.summary()
    flow = summary["flows"]["kinematic"]
    assert flow["delivered"] > 300 and flow["loss"] == 0
    error_ms = 2 * max(host["clock_error_ns"] for host in summary["hosts"]) / 1e6
    assert abs(flow["delay_ms"]["p50"] - 30) < 3 + error_ms
    assert [host["name"] for host in summary["hosts"]] == ["middle", *HOSTS]
    assert all(host["lost"] is None and len(host["files_sha256"]) == 64 for host in summary["hosts"])
    assert sum(stage["calls"] for stage in summary["stages"]) == flow["delivered"], "the hook came along"
    assert summary["emulator"] and not summary["errors"]
    left = [pid for name in HOSTS for pid in lab.inside(name)]
    until(lambda: all(words(pid) in (b"sshd", b"sleep", None) for pid in left))


@pytest.mark.needs("root", "ssh", "ip", "nsenter")
@pytest.mark.needs("ns3")
@pytest.mark.interop
def test_two_hosts_with_ns3_on_the_one_between(lab):
    """Three computers: the nodes on two of them, ns-3 on the one in the middle."""
    run = lab.start("hosts+ns3", "3 s", "--set", "links.wide.rate='10 Mbit/s'")
    output, errors = run.communicate(timeout=ns3_program.COMPILE_S)
    assert run.returncode == 0, errors + output
    summary = lab.summary()
    flow = summary["flows"]["kinematic"]
    assert flow["delivered"] > 300 and flow["loss"] == 0
    error_ms = 2 * max(host["clock_error_ns"] for host in summary["hosts"]) / 1e6
    assert abs(flow["delay_ms"]["p50"] - 30) < 3 + error_ms
    assert "ns-3" in [node["name"] for node in summary["nodes"]]
    assert {row["path"] for row in summary["emulator"]} == {"left -> right", "right -> left"}
    assert not summary["errors"]


@pytest.mark.beside
@pytest.mark.needs("root", "ssh", "ip", "nsenter")
def test_captures_of_other_computers_come_along(lab):
    run = lab.start("hosts", "2 s", "--set", "measure.pcapng='on'", "--set", "measure.records='packets'")
    output, errors = run.communicate(timeout=120)
    assert run.returncode == 0, errors + output
    sent = sum(channel["sent_packets"] for channel in lab.summary()["channels"])
    seen = kinds(lab.folder / "run" / "packets.pcapng")
    assert seen[0] == 0x0A0D0D0A and seen.count(1) == len(HOSTS), "one header, an interface a node"
    # Each datagram twice: where it was sent, and where it arrived.
    assert 0.9 * 2 * sent <= seen.count(6) <= 2 * sent + 200
    assert not list((lab.folder / "run").glob("node*"))


def kinds(capture: Path) -> list[int]:
    """Types of the blocks of a capture."""
    return [kind for kind, _ in blocks(capture)]


def words(pid: int) -> bytes | None:
    """The name of a program; None if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_bytes().strip()
    except OSError:
        return None


def recorded(lab) -> int:
    """Rows of a node on another computer that a run has on its disk so far."""
    return sum(part.stat().st_size // 32 for part in lab.folder.glob("run.unfinished-*/node1.0.ring.rows"))


@pytest.mark.beside
@pytest.mark.needs("root", "ssh", "ip", "nsenter")
def test_a_host_that_dies_is_named_and_everything_until_then_is_kept(lab):
    run = lab.start("hosts", "60 s", "--set", "measure.pcapng='on'")
    until(lambda: run.poll() is not None or recorded(lab) > 800)
    assert run.poll() is None, run.communicate()
    kept = recorded(lab)
    died = time.monotonic()
    lab.kill("right")
    output, errors = run.communicate(timeout=60)
    took_s = time.monotonic() - died
    assert run.returncode == 3, errors + output
    assert "host right (10.78.0.3)" in errors
    summary = lab.summary()
    lost = {host["name"]: host for host in summary["hosts"]}
    assert lost["left"]["lost"] is None and lost["right"]["lost"]
    assert 0 < lost["right"]["lost_at_s"] < 60
    rows = (lab.folder / "run" / "records.bin").stat().st_size // 32
    assert rows > kept, "rows of the host that died and of the other"
    assert summary["flows"]["kinematic"]["delivered"] > 100
    assert kinds(lab.folder / "run" / "packets.pcapng").count(6) > 800, "of both hosts, until then"
    assert took_s < 30, "the others are not waited for until the end of the run"


HERE = """
name = "here"
duration = "60 s"
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
rate = "200 Hz"
[hooks]
kinematics = { at = "ss-com", run = "./mine.py:Twice" }
[hosts.one]
address = "localhost"
nodes = ["left"]
[hosts.two]
address = "localhost"
nodes = ["right"]
"""


@pytest.mark.slow
@pytest.mark.beside
@pytest.mark.needs("ssh")
def test_a_node_that_was_stopped_on_a_host_is_noticed_while_the_run_goes_on(tmp_path):
    """Its host lives, and says so; the hook came with the module that it imports."""
    (tmp_path / "s.toml").write_text(HERE)
    (tmp_path / "mine.py").write_text(f"import helper\n{HOOK}")
    (tmp_path / "helper.py").write_text("")
    command = [sys.executable, "-m", "tcpsbed", "run", "s.toml", "--world", "hosts", "--out", "out", "-q"]
    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        part = "out.unfinished-*/node1.0.ring.rows"
        until(lambda: run.poll() is not None or any(p.stat().st_size > 32 * 200 for p in tmp_path.glob(part)))
        assert run.poll() is None, run.communicate()
        [stopped] = [node for agent in children(run.pid) for node in children(agent) if is_of(node, "node1")]
        os.kill(stopped, signal.SIGSTOP)
        begun = time.monotonic()
        _, said = run.communicate(timeout=90)
    finally:
        run.kill()
    assert run.returncode == 1 and time.monotonic() - begun < 40, said
    assert re.search(r"node right: did not run for \d", said), said
    assert gone([stopped]), "a stopped node stays behind"


def is_of(process: int, name: str) -> bool:
    """Whether a process has the rings of a node."""
    return any(ring.name.startswith(f"{name}.") for ring in rings_of(process))


@pytest.mark.beside
@pytest.mark.needs("root", "ssh", "ip", "nsenter")
def test_a_cut_cable_is_noticed(lab):
    run = lab.start("hosts", "60 s")
    until(lambda: run.poll() is not None or recorded(lab) > 200)
    assert run.poll() is None, run.communicate()
    sh(f"{' '.join(lab.prefix)} ip link set right down")
    cut = time.monotonic()
    output, errors = run.communicate(timeout=60)
    assert run.returncode == 3, errors + output
    assert time.monotonic() - cut < 30, "it did not wait for the end of the run"
    assert "host right" in errors
    words = next(line for line in errors.splitlines() if "host right" in line)
    if "no answer for" in words:
        assert SILENT_S <= float(words.rpartition(" for ")[2].split()[0]) < 20


TWO = """[hosts.a]
address = "10.0.0.1"
nodes = ["left"]
[hosts.b]
address = "10.0.0.2"
nodes = ["right"]
"""


BETWEEN = """[hosts.a]
address = "10.0.0.1"
nodes = ["left", "right"]
[hosts.middle]
address = "10.0.0.2"
role = "network"
"""


@pytest.mark.beside
@pytest.mark.parametrize(
    "more",
    [
        '[channels.all]\nflows = ["kinematic"]\nsecurity = "aead"\n',
        '[channels.all]\nflows = ["kinematic"]\ntransport = "quic"\nsecurity = "tls"\n',
        "[real]\ninsecure = true\n",
        TWO.replace("10.0.0", "127.0.0"),
    ],
)
def test_protected_channels_may_go_between_hosts(tmp_path, more):
    """So may those of a user who says that nobody else is there, and those of one computer."""
    text = '[components]\nms-com = "left"\nss-com = "right"\n[flows.kinematic]\n'
    (tmp_path / "s.toml").write_text(text + (more if "[hosts" in more else TWO + more))
    scenario = scenarios.load(tmp_path / "s.toml")
    plan = scenarios.compile_plan(scenario, tmp_path / "inputs")
    registry.resolve("hosts", plan).hosting(Job(plan, scenario, tmp_path, tmp_path)).refuse()


@pytest.mark.beside
def test_a_scenario_says_where_its_nodes_are(tmp_path):
    text = '[components]\nms-com = "left"\nss-com = "right"\n[flows.kinematic]\n'
    for more, expected, words in [
        ("", WorldError, "found no hosts"),
        ('[hosts.a]\naddress = "10.0.0.1"\nnodes = ["left"]\n', ConfigError, "right is on no host"),
        ('[hosts.a]\naddress = "-oProxyCommand=x"\nnodes = ["left"]\n', ConfigError, "begin with -"),
        ('[hosts.a]\naddress = "10.0.0.1"\nuser = "-F"\nnodes = ["left"]\n', ConfigError, "begin with -"),
        ('[hosts.a]\naddress = "lab"\nnodes = ["left", "right"]\n', ConfigError, "hosts.a.data"),
        ('[hosts.a]\naddress = "10.0.0.1"\nnodes = ["left", "middle"]\n', ConfigError, "left, right"),
        (TWO, WorldError, "no security on kinematic: others on the network could command the robot"),
        (BETWEEN, WorldError, "no security on kinematic"),
    ]:
        (tmp_path / "s.toml").write_text(text + more)
        with pytest.raises(expected, match=words):
            scenario = scenarios.load(tmp_path / "s.toml")
            plan = scenarios.compile_plan(scenario, tmp_path / "inputs")
            registry.resolve("hosts", plan).hosting(Job(plan, scenario, tmp_path, tmp_path)).refuse()


@pytest.mark.beside
def test_an_address_that_a_computer_has_not_names_its_key_and_what_to_do(tmp_path: Path) -> None:
    hosts = '[hosts.a]\naddress = "localhost"\ndata = "192.0.2.1"\nnodes = ["left"]\n'
    hosts += '[hosts.b]\naddress = "localhost"\nnodes = ["right"]\n[real]\ninsecure = true\n'
    text = 'duration = "1 s"\n[components]\nms-com = "left"\nss-com = "right"\n[flows.kinematic]\n'
    (tmp_path / "s.toml").write_text(text + hosts)
    with pytest.raises(ConfigError) as error:
        tcpsbed.run(tmp_path / "s.toml", world="hosts", out=tmp_path / "run")
    assert str(error.value) == (
        f"{tmp_path}/s.toml:8: hosts.a.data: node left: no UDP socket on 192.0.2.1:0: Cannot assign requested address; "
        "allowed: an address of that computer (ip addr lists them)"
    )


@pytest.mark.beside
def test_files_that_a_plan_names_are_found_and_hashed(tmp_path):
    for name in ("mine.py", "hand.csv", "other.csv"):
        (tmp_path / name).write_text(name)
    plan = {
        "a": [{"path": f"{tmp_path}/mine.py:Twice"}],
        "b": {"c": str(tmp_path / "hand.csv")},
        "d": "/nowhere",
    }
    found = files_of(plan)
    assert found == {tmp_path / name for name in ("mine.py", "hand.csv")}
    before = digest({path.name: path for path in found})
    (tmp_path / "hand.csv").write_text("changed")
    assert digest({path.name: path for path in found}) != before


@pytest.mark.beside
def test_files_that_a_run_writes_stay_where_they_are(tmp_path):
    (tmp_path / "heard.wav").write_text("of an earlier run")
    (tmp_path / "mine.py").write_text("")
    for key in ("speaker", "archive", "publish"):
        assert files_of({"params": {key: f"{tmp_path}/heard.wav"}}) == set()
    assert files_of({"speaker": f"{tmp_path}/mine.py:Loud"}) == {tmp_path / "mine.py"}
    assert files_of({"microphone": f"{tmp_path}/heard.wav"}) == {tmp_path / "heard.wav"}


@pytest.mark.beside
def test_files_arrive_whole_however_long_they_are(tmp_path):
    (tmp_path / "long.bin").write_bytes(os.urandom(3 * PIECE + 1))
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "a").mkdir()
    link = Link("here", Host(address="localhost"))
    try:
        link.greet()
        link.send_files([tmp_path / "long.bin", tmp_path / "a" / ".." / "empty.csv"])
        there = Path(f"{link.root}{tmp_path}")
        assert (there / "long.bin").read_bytes() == (tmp_path / "long.bin").read_bytes()
        assert (there / "empty.csv").read_bytes() == b""
    finally:
        link.close()


@pytest.mark.beside
@pytest.mark.parametrize("path", ["/etc/passwd", "a/../../b"])
def test_a_file_outside_the_folder_of_the_run_is_refused(tmp_path, path):
    with pytest.raises(WorldError, match="below the folder of the run"):
        Agent(tmp_path)._file(path, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("during", ["files", "plan"])
def test_a_host_that_stops_reading_while_much_is_sent_is_given_up(tmp_path, monkeypatch, during):
    """A pipe takes 64 KiB of a plan or a file; whoever sends the rest is not left waiting."""
    monkeypatch.setattr("tcpsbed.worlds.link.ANSWER_S", 2.0)
    (tmp_path / "long.bin").write_bytes(os.urandom(4 * PIECE))
    link = Link("here", Host(address="localhost"))
    try:
        link.greet()
        if during == "plan":
            link.send_files([])
        os.kill(link.child.pid, signal.SIGSTOP)
        begun = time.monotonic()
        sending = threading.Thread(
            target=lambda: (
                link.say("to", name="n", line={"op": "prepare", "plan": "x" * 200_000})
                if during == "plan"
                else suppressed(link.send_files, [tmp_path / "long.bin"])
            ),
            daemon=True,
        )
        sending.start()
        sending.join(10)
        assert not sending.is_alive() and time.monotonic() - begun < 8
        assert "no answer for" in str(link.dead)
    finally:
        link.close()
    assert link.child.returncode is not None


def suppressed(body, *arguments):
    with suppress(WorldError):
        body(*arguments)


def test_a_node_that_stops_reading_its_plan_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("tcpsbed.worlds.process.TAKEN_S", 0.5)
    node = Process("n", tmp_path / "n")
    try:
        os.kill(node.child.pid, signal.SIGSTOP)
        telling = threading.Thread(target=lambda: node.send(op="prepare", x="x" * 200_000), daemon=True)
        telling.start()
        telling.join(10)
        assert not telling.is_alive()
        with pytest.raises(WorldError, match=r'no answer for 0\.1 s while waiting for "ready"'):
            node.receive("ready", 0.1)
    finally:
        node.end()
    assert node.child.returncode == -signal.SIGKILL


def test_silence_is_death_and_a_late_sign_is_not():
    """The guard alone, without a network: 1.6 s after the last word of a host it is dead."""
    link = Link("here", Host(address="localhost"))
    try:
        link.greet()
        os.kill(link.child.pid, signal.SIGSTOP)
        link.root, link.heard = "/", time.monotonic() - SILENT_S + 1.2
        time.sleep(0.4)
        assert link.dead is None
        until(lambda: link.dead is not None)
        assert float(str(link.dead).rpartition(" for ")[2].split()[0]) >= SILENT_S
    finally:
        os.kill(link.child.pid, signal.SIGCONT)
        link.close()
