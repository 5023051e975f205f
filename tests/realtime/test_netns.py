"""A command behind an emulated network: what it feels, its exit status, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from watch import devices, until

COMMAND = [sys.executable, "-m", "tcpsbed", "netns"]
PYTHON = sys.executable
SERVER = (
    "import socket; s = socket.create_server(('10.77.0.2', 7100))\n"
    "while True:\n p, _ = s.accept(); d = p.recv(100); p.sendall(d); p.close()"
)
CLIENT = (
    "import os, socket, sys, time\n"
    "for _ in range(200):\n"
    " try:\n  s = socket.create_connection((os.environ['TCPSBED_FAR'], 7100), 5); break\n"
    " except ConnectionRefusedError: time.sleep(0.05)\n"
    "begun = time.monotonic(); s.sendall(b'hand'); assert s.recv(10) == b'hand'\n"
    "print((time.monotonic() - begun) * 1e3)"
)
MULTICAST = (
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 7400))\n"
    "s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,"
    " socket.inet_aton('239.255.0.1') + socket.inet_aton('10.77.0.2'))\n"
    "d, a = s.recvfrom(100); s.sendto(b'seen ' + d, a)"
)
DISCOVERER = (
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.1)\n"
    "for _ in range(100):\n"
    " s.sendto(b'me', ('239.255.0.1', 7400))\n"
    " try:\n  print(s.recv(100).decode()); break\n"
    " except TimeoutError: pass"
)
ROOT = pytest.mark.needs("root", "tun")


def netns(*arguments: str, prefix: tuple[str, ...] = (), **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, *COMMAND, *arguments], capture_output=True, text=True, timeout=100, **more
    )


@ROOT
def test_a_round_trip_takes_twice_the_delay_and_nothing_is_left():
    before = devices()
    done = netns("--delay", "25 ms", "--far", f'{PYTHON} -c "{SERVER}"', "--", PYTHON, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    assert 50 <= float(done.stdout) < 500
    assert "ip to far" in done.stderr and "25.0" in done.stderr
    assert devices() == before


@pytest.mark.needs("netns", "tun", "unshare")
def test_the_same_without_root():
    """Somebody without any capability, who owns the files of this test."""
    nobody = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
    who = subprocess.run([*nobody, "id", "-u"], capture_output=True, text=True)
    if who.stdout.strip() != "1000":
        pytest.skip(f"cannot become somebody without rights: {who.stderr.strip()}")
    far = f'{PYTHON} -c "{SERVER}"'
    done = netns("--delay", "25 ms", "--far", far, "--", PYTHON, "-c", CLIENT, prefix=nobody)
    assert done.returncode == 0, done.stderr
    assert 50 <= float(done.stdout) < 500


@pytest.mark.beside
@ROOT
@pytest.mark.parametrize(
    ("script", "status"), [("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM), ("true", 0)]
)
def test_the_exit_status_is_passed_on(script, status):
    assert netns("--delay", "1 ms", "--quiet", "--", "sh", "-c", script).returncode == status


ANSWERS = (
    "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.77.0.2', int(sys.argv[1])))\n"
    "while True: s.sendto(*s.recvfrom(9000))"
)
ASKS = (
    "import os, socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2)\n"
    "left = int(sys.argv[2])\n"
    "for _ in range(500):\n"
    " s.sendto(bytes(int(sys.argv[3])), (os.environ['TCPSBED_FAR'], int(sys.argv[1])))\n"
    " try: s.recv(9000)\n"
    " except OSError: continue\n"
    " left -= 1\n"
    " if not left: break"
)


@pytest.mark.beside
@ROOT
def test_programs_in_one_namespace_have_rows_of_their_own_by_port_and_name(tmp_path):
    (tmp_path / "answers.py").write_text(ANSWERS)
    (tmp_path / "asks.py").write_text(ASKS)
    at = [f"{PYTHON} {tmp_path}/answers.py {port}" for port in (5004, 5006)]
    ask = [f"{PYTHON} {tmp_path}/asks.py {words}" for words in ("5004 20 3000", "5006 40 100")]
    far, near = f"sh -c '{at[0]} & {at[1]}'", f"{ask[0]} & {ask[1]}; wait"
    kept = ("--json", str(tmp_path / "told"), "--out", str(tmp_path / "out"))
    done = netns("--delay", "2 ms", *kept, "--far", far, "--", "sh", "-c", near)
    assert done.returncode == 0, done.stderr
    end = json.loads((tmp_path / "told").read_text().splitlines()[-1])
    rows = {(row["door"], row["way"]): row for row in end["services"]}
    there, back = rows["udp :5004 answers.py", "near -> far"], rows["udp :5004 answers.py", "far -> near"]
    assert back["packets"] == 60, "20 datagrams of three fragments each"
    assert there["packets"] >= 60 and rows["udp :5006 answers.py", "far -> near"]["packets"] == 40
    for door in end["doors"]:
        assert door["packets"] == sum(row["packets"] for (_, way), row in rows.items() if way == door["way"])
    assert there["set_delay_ns"]["p50"] >= 2_000_000 and "udp :5006 answers.py" in done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    kept_rows = {path["path"]: path["packets"] for path in summary["emulator"]}
    ends = {"near -> far": "to far", "far -> near": "to near"}
    every = [*((row["door"], row) for row in end["doors"]), *((door, row) for (door, _), row in rows.items())]
    assert kept_rows == {f"{door} {ends[row['way']]}": row["packets"] for door, row in every}
    assert "udp :5004 answers.py to far" in (tmp_path / "out" / "report.html").read_text()
    curves = json.loads((tmp_path / "out" / "series.json").read_text())["services"]["paths"]
    assert {name: (sum(curve["packets"]), sum(curve["lost"])) for name, curve in curves.items()} == {
        f"{door} {ends[way]}": (row["packets"] - row["inside"], row["lost"])
        for (door, way), row in rows.items()
        if row["packets"]
    }


@pytest.mark.beside
@ROOT
def test_a_program_learns_when_the_network_began_and_how_late_this_machine_wakes_it(tmp_path):
    client = (
        "import os, time\n"
        "print((time.monotonic_ns() - int(os.environ['TCPSBED_START_NS'])) / 1e9)\n"
        "time.sleep(0.3)"
    )
    done = netns("--delay", "1 ms", "--json", str(tmp_path / "told"), "--", PYTHON, "-c", client)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 60
    late = json.loads((tmp_path / "told").read_text().splitlines()[-1])["late_ns"]
    assert 0 < late["p50"] <= late["p99"] <= late["max"]
    assert f"{late['max'] / 1e6:.3g} ms at most; your programs wait like that, too" in done.stderr


SINK = (
    "import socket; s = socket.create_server(('10.77.0.2', 7100)); p, _ = s.accept()\n"
    "while p.recv(65536): pass\n"
    "p.sendall(b'all')"
)
BULK = (
    "import os, socket, time\n"
    "for _ in range(200):\n"
    " try:\n  s = socket.create_connection((os.environ['TCPSBED_FAR'], 7100), 5); break\n"
    " except ConnectionRefusedError: time.sleep(0.05)\n"
    "s.settimeout(60); s.sendall(bytes(1000000)); s.shutdown(socket.SHUT_WR); assert s.recv(10) == b'all'"
)


@pytest.mark.beside
@ROOT
@pytest.mark.parametrize(("loss", "again"), [("5 %", True), ("0 %", False)])
def test_segments_that_were_sent_again_are_told_by_side(tmp_path, loss, again):
    words = ("--delay", "2 ms", "--loss", loss, "--json", str(tmp_path / "told"), "--margin-ms", "1000")
    done = netns(*words, "--far", f'{PYTHON} -c "{SINK}"', "--", PYTHON, "-c", BULK)
    assert done.returncode == 0, done.stderr
    end = json.loads((tmp_path / "told").read_text().splitlines()[-1])
    near, far = end["tcp"]
    assert (near["side"], far["side"]) == ("near", "far")
    assert near["sent"] > 10 and (near["retransmitted"] > 0) == again, near
    there, back = end["doors"]
    assert ("longest_repair_ns" in there) == again and there.get("longest_repair_ns", 5e6) >= 4e6, (
        "two ways at least"
    )
    assert ("longest TCP repair" in done.stderr) == (
        "longest_repair_ns" in there or "longest_repair_ns" in back
    )
    line = next(line for line in done.stderr.splitlines() if line.startswith("TCP retransmitted: "))
    assert line.startswith(f"TCP retransmitted: near {near['retransmitted']} of "), line


@pytest.mark.beside
@ROOT
def test_multicast_crosses_the_network():
    done = netns("--delay", "5 ms", "--far", f'{PYTHON} -c "{MULTICAST}"', "--", PYTHON, "-c", DISCOVERER)
    assert done.stdout.strip() == "seen me", done.stderr


@pytest.mark.beside
@ROOT
@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_a_port_of_the_far_side_reaches_this_computer(kind):
    """A server here, a client in the namespace, the emulated network between them."""
    what = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, what) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        port = server.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                if kind == "udp":
                    data, peer = server.recvfrom(100)
                    server.sendto(data.upper(), peer)
                else:
                    server.listen()
                    talk, _ = server.accept()
                    talk.sendall(talk.recv(100).upper())
                    talk.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        script = (
            f"import socket; s = socket.socket(socket.AF_INET, {int(what)}); s.settimeout(20)\n"
            f"s.connect(('10.77.0.2', {port})); s.send(b'hand'); print(s.recv(100).decode())"
        )
        done = netns("--delay", "3 ms", "--reach", f"{port}/{kind}", "--", PYTHON, "-c", script)
        thread.join(60)
    assert done.stdout.strip() == "HAND", done.stderr


@pytest.mark.beside
@ROOT
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_kill_nothing_is_left(number):
    before = devices()
    mark = f"86{os.getpid()}"
    command = [*COMMAND, "--delay", "1 ms", "--far", f"sleep {mark}1", "--", "sleep", f"{mark}2"]
    child = subprocess.Popen(command)
    try:
        until(lambda: len(sleepers(mark)) == 2)
        os.kill(child.pid, number)
        child.wait(30)
        until(lambda: not sleepers(mark))
    finally:
        child.kill()
        for pid in sleepers(mark):
            os.kill(pid, signal.SIGKILL)
    assert devices() == before


def sleepers(mark: str) -> list[int]:
    """Processes that sleep that long."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = place.read_bytes().split(b"\0")
            if words[0] == b"sleep" and words[1].startswith(mark.encode()):
                found.append(int(place.parent.name))
    return found


@pytest.mark.beside
@ROOT
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--delay", "1 ms", "--", "no-such-program"], "no-such-program"),
        (["--delay", "1 ms", "--far", "no-such-server", "--", "true"], "no-such-server"),
        (
            ["--delay", "1 ms", "--reach", "7100", "--reach", "7100", "--", "true"],
            "--reach: found a port twice",
        ),
        (["--", "true"], "--profile"),
        (
            ["--delay", "1 ms", "--json", "a", "--pcapng", "./a", "--", "true"],
            "--pcapng: found a at --json, too",
        ),
    ],
)
def test_bad_input_ends_with_2_and_one_message(arguments, words):
    done = netns(*arguments)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.beside
@ROOT
def test_a_command_that_cannot_start_leaves_no_file_and_the_next_one_can(tmp_path):
    files = ("--json", str(tmp_path / "told"), "--pcapng", str(tmp_path / "seen.pcapng"))
    assert netns("--delay", "1 ms", *files, "--", "no-such-program").returncode == 2
    assert not [*tmp_path.iterdir()]
    for _ in range(2):
        assert netns("--delay", "1 ms", *files, "--", "true").returncode == 0
        assert netns("--delay", "1 ms", *files, "--", "no-such-program").returncode == 2


@pytest.mark.beside
@pytest.mark.needs("root", "setpriv")
def test_without_namespaces_the_message_says_what_is_missing():
    drop = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--no-new-privs", "--")
    done = netns("--delay", "1 ms", "--", "true", prefix=drop)
    assert done.returncode == 2
    assert "needs root" in done.stderr and "Traceback" not in done.stderr


ECHO = (
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.77.0.2', 7100))\n"
    "while True:\n d, a = s.recvfrom(100); s.sendto(d, a)"
)
"""Sends back what comes."""
PINGER = (
    "import os, socket, sys, time\n"
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5)\n"
    "more = 6\n"
    "while more:\n"
    " more -= os.path.exists(sys.argv[1])\n"
    " begun = time.monotonic(); s.sendto(b'hand', (os.environ['TCPSBED_FAR'], 7100))\n"
    " try:\n  s.recv(100); print((time.monotonic() - begun) * 1e3, flush=True)\n"
    " except TimeoutError: pass\n"
    " time.sleep(0.02)"
)
"""Prints round trips in ms until a file is there, and then a few more."""


def profile(file: Path, delay: str) -> Path:
    """A profile, put in place whole."""
    part = file.with_suffix(".part")
    part.write_text(f'[links.path]\ndelay = "{delay}"\n')
    part.replace(file)
    return file


@ROOT
def test_the_profile_changes_while_the_command_runs_and_one_that_is_wrong_changes_nothing(tmp_path):
    file, told, enough = profile(tmp_path / "mine.toml", "5 ms"), tmp_path / "told.jsonl", tmp_path / "enough"
    command = [*COMMAND, "--profile", str(file), "--json", str(told), "--far", f'{PYTHON} -c "{ECHO}"', "--"]
    child = subprocess.Popen(
        [*command, PYTHON, "-c", PINGER, str(enough)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def events(name: str) -> list[dict]:
        lines = told.read_text().splitlines() if told.exists() else []
        return [found for found in map(json.loads, lines) if found["event"] == name]

    def delays_ms() -> list[float]:
        recent = [row for now in events("now") for row in now["doors"] if row["rate_pps"] > 0]
        return [row["recent_delay_ns"]["p50"] / 1e6 for row in recent]

    try:
        until(lambda: any(row["delivered"] > 5 for now in events("now") for row in now["doors"]))
        profile(file, "never")
        until(lambda: any("error" in one for one in events("profile")))
        file.write_text("")  # as an editor leaves it for a moment
        until(lambda: len(events("profile")) == 2)
        profile(file, "60 ms")
        until(lambda: any("error" not in one for one in events("profile")))
        until(lambda: any(delay_ms >= 60 for delay_ms in delays_ms()))
        enough.touch()
        output, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 0, errors
    trips = [float(line) for line in output.split()]
    assert 10 <= min(trips) < 120 <= min(trips[-4:]), "the last ones left after the change"
    assert [("error" in one) for one in events("profile")] == [True, True, False]
    assert "the profile stays as it was" in errors and "read again" in errors
    (end,) = events("end")
    there = end["doors"][0]
    assert there["way"] == "near -> far" and there["packets"] == there["delivered"]
    assert 5 <= min(delays_ms()) < 60 <= max(delays_ms())


@pytest.mark.beside
@ROOT
def test_the_live_table_stands_below_what_the_command_writes(tmp_path):
    """On a terminal of its own."""
    script = "import time; print('a line of the command', flush=True); time.sleep(1.5)"
    leader, follower = pty.openpty()
    command = [*COMMAND, "--delay", "5 ms", "--live", "--", PYTHON, "-c", script]
    wide = os.environ | {"COLUMNS": "160"}
    child = subprocess.Popen(command, stdout=follower, stderr=follower, stdin=subprocess.DEVNULL, env=wide)
    os.close(follower)
    shown = b""
    with suppress(OSError):
        while piece := os.read(leader, 65536):
            shown += piece
    os.close(leader)
    assert child.wait(60) == 0
    text = shown.decode("utf-8", "replace")
    assert "a line of the command" in text and "packets/s" in text and "far -> near" in text, text
    assert text.index("a line of the command") < text.rindex("packets/s")
