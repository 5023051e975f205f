"""Somebody who is not root: what works for him, and what says that it needs more.

The user is 65534 without any capability, with a home of his own; root is needed to become him. Where folders on the way to
the interpreter are closed to him, they are opened in a mount namespace of the test's own.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from real_run import chain

from tcpsbed.worlds import ns3_program

pytestmark = [pytest.mark.needs("root", "setpriv", "unshare", "mount")]

NOBODY = 65534
DROP = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
    "--no-new-privs", "--",
)  # fmt: skip
OPEN = """
set -e
mkdir -p "$1/kept"
mount --bind "$2" "$1/kept"
mount -t tmpfs -o mode=0755 tmpfs "$2"
mkdir -p "$2/$3"
mount --bind "$1/kept/$3" "$2/$3"
shift 3
exec "$@"
"""
"""Of a folder that is closed to others ($2) only what is needed of it ($3) is there, in a folder that is open."""
NETWORK = '[links.path]\nfrom = "ms"\nto = "edge"\ndelay = "5 ms"\n[links.on]\nfrom = "edge"\nto = "ss"\n'
"""Links of the chain, so that something lies between its nodes."""


@dataclass(frozen=True)
class Somebody:
    """A user without rights."""

    home: Path
    prefix: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        return os.environ | {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "COLUMNS": "200",
        }

    def command(self, *words: str, within: tuple[str, ...] = ()) -> list[str]:
        return [*self.prefix, *DROP, *within, sys.executable, "-m", "tcpsbed", *words]

    def tcpsbed(self, *words: str, within: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, within=within),
            cwd=self.home, env=self.environment(), capture_output=True, text=True, timeout=150,
        )  # fmt: skip

    def runs(self, world: str, place: Path, text: str, within: tuple[str, ...] = ()) -> dict:
        """Runs a scenario and gives its summary, which says whether it was ended before its time."""
        out = self.home / f"{world}-{place.name}"
        (self.home / "scenario.toml").write_text(text)
        words = ("run", "scenario.toml", "--world", world, "--out", str(out), "--no-report")
        done = self.tcpsbed(*words, within=within)
        assert done.returncode in (0, 1), done.stderr
        told = dict(json.loads((out / "summary.json").read_text()))
        assert (done.returncode == 1) == bool(told["errors"]), done.stderr
        return told


def closed() -> Path | None:
    """The first folder on the way to the interpreter that others cannot enter."""
    way = [Path(sys.base_prefix).resolve(), *Path(sys.base_prefix).resolve().parents]
    return next((place for place in reversed(way) if not place.stat().st_mode & 0o001), None)


@pytest.fixture(scope="module")
def somebody() -> Iterator[Somebody]:
    home = Path(tempfile.mkdtemp(prefix="tcpsbed-nobody-"))
    inside = home / "home"
    try:
        inside.mkdir()
        home.chmod(0o755)
        os.chown(inside, NOBODY, NOBODY)
        prefix: tuple[str, ...] = ()
        if (shut := closed()) is not None:
            needed = str(Path(sys.base_prefix).resolve().relative_to(shut))
            prefix = ("unshare", "--mount", "--", "sh", "-c", OPEN, "sh", str(home), str(shut), needed)
        found = Somebody(inside, prefix)
        who = [*found.command()[:-2], "-c", "import os, tcpsbed._tcps; print(os.geteuid())"]
        asked = subprocess.run(who, cwd=inside, env=found.environment(), capture_output=True, text=True)
        if asked.stdout.strip() != str(NOBODY):
            pytest.skip(f"cannot become user {NOBODY} here: {asked.stderr.strip()[-300:]}")
        yield found
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.beside
def test_virtual_time_works(somebody, tmp_path):
    told = somebody.runs("virtual", tmp_path, chain("1 s", more=NETWORK))
    assert told["errors"] == [] and told["flows"]["kinematic"]["delivered"] > 900


def test_sockets_and_the_emulator_work(somebody, tmp_path):
    told = somebody.runs("real", tmp_path, chain("2 s", more=NETWORK))
    assert {row["stamps"] for row in told["emulator"]} == {"kernel"}, "gates of UDP on loopback"
    rights = [right for node in told["nodes"] for right in node.get("privileges", [])]
    asked = [right for right in rights if right.startswith("SCHED_FIFO: ")]
    assert asked and not any(right.endswith(": yes") for right in asked), rights
    flow = told["flows"]["kinematic"]
    assert told["errors"] == []
    assert flow["delivered"] > 1000 and 4.9 < flow["delay_ms"]["p50"] < 7


@pytest.mark.needs("ns3")
def test_ns3_behind_gates_works(somebody, tmp_path):
    # Compiled before, as at a second run: that takes minutes.
    program = ns3_program.built()
    cache = somebody.home / ".cache" / "tcpsbed" / "ns3"
    shutil.copytree(program.parent, cache / program.parent.name)
    os.chown(cache, NOBODY, NOBODY)
    told = somebody.runs("ns3", tmp_path, chain("2 s", more=NETWORK))
    assert any(node["name"] == "ns-3" for node in told["nodes"])
    assert [kept.name for kept in cache.iterdir()] == [program.parent.name], "nothing was compiled for him"
    flow = told["flows"]["kinematic"]
    assert told["errors"] == [], "among them that ns-3 could not keep up"
    assert flow["delivered"] > 1000 and 4.9 < flow["delay_ms"]["p50"] < 8


@pytest.mark.beside
def test_the_proxy_works_between_two_programs(somebody):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        far = f"0=127.0.0.1:{server.getsockname()[1]}"
        command = somebody.command("proxy", "--delay", "20 ms", far, "--json", "--duration", "60 s")
        child = subprocess.Popen(
            command, cwd=somebody.home, env=somebody.environment(), stdout=subprocess.PIPE, text=True
        )
        try:
            assert child.stdout is not None
            port = json.loads(child.stdout.readline())["ports"][0]["port"]

            def answer() -> None:
                data, client = server.recvfrom(100)
                server.sendto(data.upper(), client)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talk:
                talk.settimeout(60)
                begun = time.monotonic()
                talk.sendto(b"hand", ("127.0.0.1", port))
                assert talk.recv(100) == b"HAND"
                assert time.monotonic() - begun >= 0.04, "20 ms each way"
            thread.join(60)
        finally:
            child.kill()
            child.communicate()


@pytest.mark.needs("netns", "tun:others")
def test_in_a_user_namespace_nodes_have_namespaces_of_their_own(somebody, tmp_path):
    """Root there is nobody here; the emulator holds the nodes' devices."""
    root_there = ("unshare", "--user", "--map-root-user", "--")
    own = [*somebody.prefix, *DROP, *root_there, "unshare", "--net", "true"]
    tried = subprocess.run(own, cwd=somebody.home, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"this kernel gives users no namespaces of their own: {tried.stderr.strip()}")
    told = somebody.runs("namespaces", tmp_path, chain("2 s", more=NETWORK), within=root_there)
    assert told["errors"] == [] and told["flows"]["kinematic"]["delivered"] > 500
    assert {row["stamps"] for row in told["emulator"]} == {"after the read"}, "by device"


@pytest.mark.beside
@pytest.mark.parametrize("world", ["namespaces", "mininet", "containers", "namespaces+ns3-tap"])
def test_worlds_that_need_root_say_so(somebody, world):
    (somebody.home / "scenario.toml").write_text(chain("1 s", more=NETWORK))
    done = somebody.tcpsbed("run", "scenario.toml", "--world", world)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"tcpsbed: world {world} is not ready here: it needs root (CAP_SYS_ADMIN")
    assert "sudo tcpsbed" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.beside
@pytest.mark.needs("tun:others")
def test_a_command_behind_a_network_runs_where_users_have_namespaces_and_else_says_what_it_needs(somebody):
    own = [*somebody.prefix, *DROP, "unshare", "--user", "--net", "true"]
    has = subprocess.run(own, cwd=somebody.home, capture_output=True).returncode == 0
    done = somebody.tcpsbed("netns", "--delay", "1 ms", "--quiet", "--", "sh", "-c", "exit 7")
    assert done.returncode == (7 if has else 2), done.stderr
    assert ("it needs root" in done.stderr) != has and "Traceback" not in done.stderr
