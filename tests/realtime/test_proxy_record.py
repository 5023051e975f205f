"""A network between a user's own programs as a run: its folder has the verdict's numbers, and its page steers it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from watch import until

from tcpsbed import proxy
from tcpsbed.cli.app import app

TCPSBED = [sys.executable, "-m", "tcpsbed"]
WHOLE = {"plan.json", "records.bin", "report.html", "result.json", "samples.parquet", "scenario.toml"} | {
    "series.json",
    "summary.json",
}
WAIT_S = 20.0


@contextmanager
def echo(kind: int) -> Iterator[int]:
    """A server on loopback that sends back what it gets; its port."""
    with socket.socket(socket.AF_INET, kind) as server:
        server.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            server.listen()

        def datagrams() -> None:
            while True:
                try:
                    data, client = server.recvfrom(65536)
                    server.sendto(data, client)
                except OSError:
                    return

        def streams() -> None:
            peer, _ = server.accept()
            with peer:
                while data := peer.recv(65536):
                    peer.sendall(data)

        threading.Thread(target=datagrams if kind == socket.SOCK_DGRAM else streams, daemon=True).start()
        yield server.getsockname()[1]


@contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A proxy as a command, and its ports."""
    child = subprocess.Popen(
        [*TCPSBED, "proxy", *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    try:
        ready = child.stdout.readline()
        assert ready, child.stderr and child.stderr.read()
        yield child, [row["port"] for row in json.loads(ready)["ports"]]
    finally:
        child.kill()
        child.wait()


def ended(child: subprocess.Popen[str], number: int = signal.SIGINT) -> dict[str, Any]:
    """Asks it to end; what it said last."""
    child.send_signal(number)
    out, err = child.communicate(timeout=100)
    assert child.returncode in (0, 1), err
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


def talk(port: int, count: int, kind: int = socket.SOCK_DGRAM) -> list[float]:
    """Sends and waits for the answer, one after the other; how long each took that came back, s."""
    took = []
    with socket.socket(socket.AF_INET, kind) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(0.5 if kind == socket.SOCK_DGRAM else WAIT_S)
        for _ in range(count):
            begun = time.monotonic()
            client.send(b"x" * 100)
            try:
                client.recv(200)
            except TimeoutError:
                continue
            took.append(time.monotonic() - begun)
    return took


def test_ctrl_c_leaves_a_whole_folder_with_the_numbers_of_the_verdict(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.toml", tmp_path / "out"
    file.write_text('[links.path]\ndelay = "5 ms"\nloss = "5 %"\nrate = "10 Mbit/s"\nqueue = "50 packets"\n')
    with echo(socket.SOCK_DGRAM) as udp, echo(socket.SOCK_STREAM) as tcp:
        doors = [f"0=127.0.0.1:{tcp}/tcp", f"0=127.0.0.1:{udp}"]
        with running("--profile", str(file), *doors, "--out", str(out)) as (child, ports):
            talk(ports[1], 100)
            talk(ports[0], 50, socket.SOCK_STREAM)
            file.write_text(file.read_text().replace("5 ms", "9 ms"))
            until(lambda: min(talk(ports[1], 3), default=0) >= 0.017)
            file.write_text(file.read_text().replace("50 packets", "60 packets"))
            time.sleep(1)  # it is read within a quarter of a second
            talk(ports[1], 20)
            end = ended(child)
    assert {file.name for file in out.iterdir()} >= WHOLE
    summary = json.loads((out / "summary.json").read_text())
    assert summary["errors"] == [] and summary["world"] == "proxy"
    said = ["path delay 9 ms", "path queue changed"]
    assert [event["name"] for event in summary["events"]] == [
        f"profile mine read again: {one}" for one in said
    ]
    names = ["0/udp to far", "0/udp to near", "0/tcp to far", "0/tcp to near"]
    assert list(summary["flows"]) == names == [path["path"] for path in summary["emulator"]]
    for row, path, flow in zip(end["doors"], summary["emulator"], summary["flows"].values(), strict=True):
        assert path["packets"] == row["packets"] == flow["sent"] > 0
        assert flow["delivered"] == row["delivered"] and flow["lost"] == row["lost"] + row["unsent"]
        assert flow["loss"] == pytest.approx(row["delivered_loss"])
        for key in ("p50", "p99"):
            assert path["delivered_delay_ms"][key] == pytest.approx(row["delivered_delay_ns"][key] / 1e6)
            assert flow["delay_ms"][key] == pytest.approx(row["delivered_delay_ns"][key] / 1e6, rel=0.01)
    udp_rows = end["doors"][:2]
    carried = [link["packets"] for link in summary["network"]]
    assert carried == [row["delivered"] for row in udp_rows], "those before the queue changed, too"
    assert [link["drops"].get("loss", 0) for link in summary["network"]] == [r["lost"] for r in udp_rows]
    assert summary["disturbances"][-len(end["broken"]) :] == end["broken"] or not end["broken"]
    page = (out / "report.html").read_text()
    delay = summary["emulator"][0]["delivered_delay_ms"]["p50"]
    assert "0/udp to far" in page and f"{delay:.3f}" in page
    commands_read(out)


def commands_read(out: Path) -> None:
    """Commands for runs take the folder like any other."""
    listed = CliRunner().invoke(app, ["runs", str(out.parent), "--json"])
    assert [row["world"] for row in json.loads(listed.stdout)] == ["proxy"]
    for words in (["show"], ["report"], ["compare", str(out)], ["export", "--csv"]):
        done = CliRunner().invoke(app, [words[0], str(out), *words[1:]])
        assert done.exit_code == 0, done.stderr


def test_the_saved_scenario_is_one_that_runs_in_virtual_time(tmp_path: Path) -> None:
    with echo(socket.SOCK_DGRAM) as port:
        words = ("--delay", "5 ms", f"0=127.0.0.1:{port}", "--out", str(tmp_path / "out"))
        with running(*words) as (child, ports):
            talk(ports[0], 50)
            ended(child)
    again = CliRunner().invoke(
        app, ["run", str(tmp_path / "out" / "scenario.toml"), "--out", str(tmp_path / "b")]
    )
    assert again.exit_code == 0, again.stderr
    flows = json.loads((tmp_path / "b" / "summary.json").read_text())["flows"]
    assert flows["0-udp-to-far"]["delay_ms"]["p50"] == pytest.approx(5, abs=0.01)


def test_a_record_whose_process_was_killed_is_recovered(tmp_path: Path) -> None:
    with echo(socket.SOCK_DGRAM) as port:
        words = ("--delay", "5 ms", f"0=127.0.0.1:{port}", "--out", str(tmp_path / "out"))
        with running(*words) as (child, ports):
            talk(ports[0], 50)
            time.sleep(0.5)
            child.kill()
            child.wait()
    (left,) = tmp_path.glob("out.unfinished-*")
    done = CliRunner().invoke(app, ["report", str(left)])
    assert done.exit_code == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["flows"]["0/udp to far"]["delivered"] == 50 and summary["duration_s"] < 60


class Watched:
    """The page of an emulated network, whose address is in a line."""

    def __init__(self, line: str) -> None:
        found = re.match(r"studio: (http://127\.0\.0\.1:(\d+)/\?token=(\S+))", line)
        assert found, line
        self.address, self.port, self.token = found.groups()

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}?token={self.token}") as got:
            return str(got.read().decode())

    @contextmanager
    def viewer(self) -> Iterator[Any]:
        client = pytest.importorskip("websockets.sync.client", reason="needs the package websockets")
        with client.connect(f"ws://127.0.0.1:{self.port}/live?token={self.token}", max_size=None) as found:
            yield found


def message(viewer: Any, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The first message that is wanted."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        told: dict[str, Any] = json.loads(viewer.recv(timeout=WAIT_S))
        if wanted(told):
            return told
    raise AssertionError("no such message came")


def test_a_slider_changes_the_delay_of_real_datagrams_and_streams_within_50_ms(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with echo(socket.SOCK_DGRAM) as port, echo(socket.SOCK_STREAM) as stream:
        doors = (f"0=127.0.0.1:{port}", f"0=127.0.0.1:{stream}/tcp")
        words = ("--delay", "2 ms", *doors, "--out", str(out), "--studio", "--no-browser")
        with running(*words) as (child, ports):
            assert child.stderr is not None
            page = Watched(child.stderr.readline())
            with page.viewer() as viewer:
                assert message(viewer, lambda told: told["k"] == "steered")["saves"] == "profile"
                assert max(talk(ports[0], 50)) < 0.03
                event = {"link": "path", "delay": "40 ms", "name": "path: 40 ms"}
                viewer.send(json.dumps({"k": "event", "id": "1", "event": event}))
                asked = message(viewer, lambda told: told["k"] == "asked")
                assert "refused" not in asked and asked["by"] == 1
                assert min(talk(ports[0], 10)) >= 0.08
                assert min(talk(ports[1], 10, socket.SOCK_STREAM)) >= 0.08
                stop = {"flow": "0/udp to far", "running": False}
                viewer.send(json.dumps({"k": "event", "id": "2", "event": stop}))
                refused = message(viewer, lambda told: told["k"] == "asked" and told["id"] == "2")
                assert "your own programs" in refused["refused"]
                now = message(
                    viewer, lambda told: told["k"] == "now" and told["flows"][0].get("max_ms", 0) > 40
                )
                assert now["flows"][0]["name"] == "0/udp to far"
                saved = tmp_path / "profile.toml"
                saved.write_text(page.get("/profile.toml"))
                ended(child)
    assert proxy.load(saved).directions()[0]["delay_ms"] == 40
    summary = json.loads((out / "summary.json").read_text())
    (told,) = summary["events"]
    assert (told["name"], told["by"]) == ("path: 40 ms (viewer 1)", "viewer 1")
    assert 0 <= told["t_s"] - asked["asked_s"] < 0.05
    assert summary["flows"]["0/udp to far"]["delay_ms"]["max"] >= 40


@pytest.mark.needs("root", "tun")
def test_netns_leaves_a_folder_and_passes_the_status_on(tmp_path: Path) -> None:
    server = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.77.0.2', 7100))\n"
        "while True:\n d, a = s.recvfrom(100); s.sendto(d, a)"
    )
    client = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)\n"
        "for _ in range(50):\n s.sendto(b'hand', ('10.77.0.2', 7100))\n try: s.recv(10)\n except OSError: pass\n"
        "sys.exit(7)"
    )
    out = tmp_path / "out"
    words = ["netns", "--delay", "10 ms", "--out", str(out), "--far", f'{sys.executable} -c "{server}"']
    words += ["--studio", "--no-browser", "--json", str(tmp_path / "lines")]
    done = subprocess.run(
        [*TCPSBED, *words, "--", sys.executable, "-c", client], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 7, done.stderr
    Watched(done.stderr.splitlines()[0])
    end = json.loads((tmp_path / "lines").read_text().splitlines()[-1])
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["world"], summary["errors"]) == ("netns", [])
    for row, (name, flow) in zip(end["doors"], summary["flows"].items(), strict=True):
        assert name.startswith("ip to ") and flow["sent"] == row["packets"] >= 49
        assert flow["delay_ms"]["p50"] == pytest.approx(row["delivered_delay_ns"]["p50"] / 1e6, rel=0.01)
    assert summary["emulator"][0]["stamps"] == "after the read"
