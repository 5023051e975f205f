"""The fault matrix: each fault in a run, and what is said, kept and left behind (docs/faults.md)."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from real_run import NETWORK, Started, chain, gone, rows, started, summary

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
WRITE = os.environ.get("FAULTS") == "write"
PLACES = {
    "operator's node": "node0",
    "server's node": "node1",
    "robot's node": "node2",
    "emulator": "emulator",
    "the command": "",
}
LASTING = chain("60 s", more=NETWORK)
SHORT = chain("3 s", more=NETWORK)
STOPPED_S = 1.5
UNDER_WAY = 60
"""Most samples of a flow of 1 kHz that are in the network of 10 ms when a run ends."""


def told(errors: str) -> str:
    """The lines of a command on standard error, without what differs from run to run."""
    assert "Traceback" not in errors and "panicked" not in errors, errors
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith("tcpsbed: warning")]
    text = "<br>".join(lines)
    text = re.sub(r"\S*/pytest-of-\S*/disk", "FOLDER", text)
    opened = r"tcpsbed: \S+(?: cannot be written)?: Too many open files"
    text = re.sub(opened, "tcpsbed: FILE: Too many open files", text)  # whichever file was next
    text = re.sub(r"/dev/shm/[^:]*", "/dev/shm/NAME", text)
    text = re.sub(r"\((?:Original error was: )?\S+ failed to map", "(a library: failed to map", text)
    text = re.sub(r"(?<!status -)\b\d+(\.\d+)*", "N", text)
    return re.sub(r"\S*out(\.unfinished-\S+)?/?", "OUT", text).replace("|", "\\|")


def row(section: str, *cells: str) -> None:
    """Compares a row of the page with what was observed, or writes it."""
    text = PAGE.read_text()
    begin = text.index("\n", text.index(f"<!-- faults:{section} -->")) + 1
    end = text.index("<!-- /faults -->", begin)
    lines = text[begin:end].splitlines()
    line = "| " + " | ".join(cells) + " |"
    if not WRITE:
        assert line in lines, f"docs/faults.md has no such row; FAULTS=write writes it:\n{line}"
        return
    heads = {
        "processes": "| fault | of | status | says | rows until then | left behind |\n|---|---|---|---|---|---|",
        "machine": "| fault | status | says | left behind |\n|---|---|---|---|",
        "network": "| fault | world | counted |\n|---|---|---|",
    }[section].splitlines()
    names = 2 if section == "machine" else 3
    kept = [one for one in lines[2:] if one.split("|")[1:names] != line.split("|")[1:names]]
    PAGE.write_text(text[:begin] + "\n".join([*heads, *sorted([*kept, line])]) + "\n" + text[end:])


def left_in(folder: Path, run: Started | None = None) -> str:
    """What a run left behind beside its result."""
    found = [re.sub(r"-\S+", "-*", path.name) for path in folder.glob("out.unfinished*")]
    if run is not None:
        if not gone(list(run.nodes.values())):
            found.append("processes")
        found += [ring.name for ring in run.rings.values() if ring.parent.exists()]
    return ", ".join(found) or "nothing"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", ["kill -9", "SIGSTOP", "SIGHUP"])
def test_a_process_of_a_run(tmp_path: Path, fault: str, place: str) -> None:
    lasting = fault != "SIGSTOP"
    with started(tmp_path, LASTING if lasting else SHORT, 4) as run:
        while run.run_time_s("node0") < 0.8:
            time.sleep(0.01)
        published = sum(run.published(node) for node in run.rings)
        victim = run.nodes[PLACES[place]] if PLACES[place] else run.command.pid
        os.kill(
            victim, {"kill -9": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP, "SIGHUP": signal.SIGHUP}[fault]
        )
        if fault == "SIGSTOP":
            time.sleep(STOPPED_S)
            os.kill(victim, signal.SIGCONT)
        status, output, errors = run.finish()
        left = left_in(tmp_path, run)
    said = told(errors)
    if status == -signal.SIGKILL:
        assert left == "out.unfinished-*" or left.startswith("out.unfinished-*"), left
        (unfinished,) = tmp_path.glob("out.unfinished-*")
        command = [sys.executable, "-m", "tcpsbed", "report", unfinished.name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
        said = f"the next command says `tcpsbed report`, which says: {told(done.stderr)}"
        kept = rows(tmp_path / Path(done.stdout.strip()).parent)
        assert not list(tmp_path.glob("out.unfinished-*")) and left_in(tmp_path, run) == "nothing"
        left = "the unfinished folder, until `report`"
    else:
        kept = rows(run.out)
    if fault == "SIGSTOP":
        said += "the run is DISTURBED" if "DISTURBED" in output else "nothing"
    assert len(kept) >= published, f"{published - len(kept)} rows are lost"
    row("processes", fault, place, str(status), said or "nothing", "kept", left)


@contextmanager
def small(folder: Path, options: str) -> Iterator[Path]:
    """A small disk in memory."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def tcpsbed(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tcpsbed", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=150, check=False, **more
    )


def limited(what: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (most, most))


LIMITS = {
    ("no shared memory", "virtual"): limited(resource.RLIMIT_FSIZE, 1 << 20),
    ("no shared memory", "real"): limited(resource.RLIMIT_FSIZE, 1 << 20),
    ("no file descriptors", "virtual"): limited(resource.RLIMIT_NOFILE, 7),
    ("no file descriptors", "real"): limited(resource.RLIMIT_NOFILE, 7),
    ("no memory", "virtual"): limited(resource.RLIMIT_AS, 200 << 20),
    ("no memory", "real"): limited(resource.RLIMIT_AS, 400 << 20),
}
"""Of memory what a run finds too little of; between this and what it needs, a library of numpy ends it (docs/faults.md)."""


@pytest.mark.parametrize(("fault", "world"), LIMITS)
def test_a_limit_of_the_machine(tmp_path: Path, fault: str, world: str) -> None:
    (tmp_path / "scenario.toml").write_text(LASTING)
    words = ("run", "scenario.toml", "--world", world, "--out", "out", "-q", "--duration", "20 s")
    done = tcpsbed(tmp_path, *words, preexec_fn=LIMITS[fault, world])
    row(
        "machine",
        f"{fault}, {world}",
        str(done.returncode),
        told(done.stderr) or "nothing",
        left_in(tmp_path),
    )


@pytest.mark.needs("root")
@pytest.mark.parametrize("world", ["virtual", "real"])
@pytest.mark.parametrize("options", ["size=6M", "size=6M,ro"])
def test_a_disk(tmp_path: Path, options: str, world: str) -> None:
    (tmp_path / "scenario.toml").write_text(LASTING)
    with small(tmp_path / "disk", options):
        words = ("run", "scenario.toml", "--world", world, "--out", "disk/out", "-q", "--yes")
        done = tcpsbed(tmp_path, *words)
        left = left_in(tmp_path / "disk")
    fault = "read-only disk" if "ro" in options else "disk full"
    row("machine", f"{fault}, {world}", str(done.returncode), told(done.stderr) or "nothing", left)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        (tmp_path / "scenario.toml").write_text(SHORT)
        done = tcpsbed(tmp_path, "studio", "scenario.toml", "--no-browser", "--port", port)
    row("machine", "port taken, studio", str(done.returncode), told(done.stderr), left_in(tmp_path))


@pytest.mark.parametrize(("name", "value"), [("TZ", "Pacific/Kiritimati"), ("LC_ALL", "tr_TR.UTF-8")])
def test_surroundings_change_no_record(tmp_path: Path, name: str, value: str) -> None:
    (tmp_path / "scenario.toml").write_text(SHORT)
    hashes = set()
    for out, more in (("one", {}), ("two", {name: value})):
        words = ("run", "scenario.toml", "--world", "virtual", "--out", out, "-q")
        done = tcpsbed(tmp_path, *words, env=os.environ | more)
        assert (done.returncode, done.stderr) == (0, "")
        hashes.add(json.loads((tmp_path / out / "result.json").read_text())["records_sha256"])
    assert len(hashes) == 1
    row("machine", f"{name}={value}, virtual", "0", "nothing; the same records", "nothing")


FAULTY = {
    "link flap": """
[[events]]
at = "1 s"
link = "access"
up = false
[[events]]
at = "1.3 s"
link = "access"
up = true
""",
    "cut in one direction": '[[events]]\nat = "1 s"\nlink = "access.forward"\nup = false\n',
    "50 % loss": '[links.access]\nloss = "50 %"\n',
    "duplicates": '[links.access]\nduplicate = "20 %"\n',
    "damage": '[links.access]\ncorrupt = "20 %"\n',
    "reordering": '[links.access]\njitter = { kind = "exponential", mean = "2 ms", reorder = true }\n',
}


@pytest.mark.parametrize("world", ["virtual", "real"])
@pytest.mark.parametrize("fault", FAULTY)
def test_a_network(tmp_path: Path, fault: str, world: str) -> None:
    more = FAULTY[fault]
    text = SHORT.replace("[links.access]\n", more) if more.startswith("[links") else SHORT + more
    (tmp_path / "scenario.toml").write_text(text)
    done = tcpsbed(tmp_path, "run", "scenario.toml", "--world", world, "--out", "out", "-q")
    assert done.returncode == 0, done.stderr
    assert not told(done.stderr)
    counted = set()
    for flow in summary(tmp_path / "out")["flows"].values():
        dropped = {name.partition(" ")[2] or name: count for name, count in flow["drops"].items() if count}
        others = {"duplicates_dropped", "reordered"}
        counted |= {*dropped, *(name.replace("_", " ") for name in others if flow[name])}
        apart = flow["sent"] - flow["delivered"] - sum(dropped.values())
        assert 0 <= apart <= UNDER_WAY, f"{apart} samples are neither delivered nor named as lost"
    row("network", fault, world, ", ".join(sorted(counted)) or "nothing")
