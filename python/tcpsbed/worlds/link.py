"""The connection to a host: an agent started by the system's ssh, with the state of its clock and its life signs."""

from __future__ import annotations

import base64
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcpsbed import _tcps
from tcpsbed.beside import imported
from tcpsbed.errors import WorldError
from tcpsbed.processes import OURS, talking
from tcpsbed.robots import OUTPUTS
from tcpsbed.scenarios.model.place import Host
from tcpsbed.worlds import memory, ns3_program
from tcpsbed.worlds.agent import BEAT_S, PIECE, digest
from tcpsbed.worlds.process import ControlChannel, Pipe, heard

SILENT_S = 1.6
"""Silence after which a host is taken for dead: three signs of life are missing."""
ANSWER_S = 30.0
"""Longest time that a host may take to answer before the run, or keep silent until it has its files."""
MADE_THERE = (*OUTPUTS, "state", "key_file")
"""Keys whose files are written during the run, or read once they are, or stay here."""
EXCHANGES = 30
"""Readings of a host's clock; the one with the shortest round trip counts (Cristian 1989)."""
VERSION = _tcps.version()
OPTIONS = (
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=1",
    "-o",
    "ServerAliveCountMax=2",
)
LOCAL = ("localhost",)


class Link:
    """A host that takes part in a run.

    Parameters
    ----------
    name, host
        As the scenario has it.
    """

    def __init__(self, name: str, host: Host) -> None:
        self.name, self.host = name, host
        self.remotes: dict[str, Remote] = {}
        self.parts: dict[str, Path] = {}
        self.captures: dict[str, Path] = {}
        self.fresh: list[bytes] = []
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.words: list[str] = []
        self.dead: str | None = None
        self.died_ns, self.start_ns = 0, 0
        self.ending = False
        self.offset_ns, self.error_ns, self.drift_ns = 0, 0, 0
        self.sha256, self.root, self.python, self.memory = "", "", "", ""
        self.lock = threading.Lock()
        self.heard = time.monotonic()
        self.silent_s: dict[str, float] = {}
        """How long the loops of each process there have not run, by the name of its ring, as the last beat said."""
        self.child = talking(self._command())
        self.pipe = Pipe(self.child.stdin)
        for body in (self._listen, self._overhear, self._guard):
            threading.Thread(target=body, daemon=True).start()

    def _command(self) -> list[str]:
        host = self.host
        if host.address in LOCAL:
            return [*OURS, "agent"]
        target = host.address if host.user is None else f"{host.user}@{host.address}"
        port = [] if host.port is None else ["-p", str(host.port)]
        return ["ssh", *OPTIONS, *port, *host.options, "--", target, f"{host.python} -P -m tcpsbed agent"]

    # -- what comes ---------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.heard = time.monotonic()
            message = heard(line)
            try:
                if message is not None:
                    self._take(message.pop("op"), message)
                    continue
            except KeyError:
                pass
            self.words.append(line)
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(1)
        said = "".join(self.words).strip().splitlines()
        self._die(f"its connection ended (status {self.child.returncode}): {said[-1] if said else 'no word'}")

    def _overhear(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.words.append(line)

    def _guard(self) -> None:
        """Sends signs of life, and notices when none come back."""
        while self.dead is None and not self.ending:
            time.sleep(BEAT_S / 2)
            self.pipe.beat()
            silent_s = time.monotonic() - self.heard
            if self.python and silent_s > (SILENT_S if self.root else ANSWER_S):
                self._die(f"no answer for {silent_s:.1f} s")

    def _take(self, op: str, message: dict[str, Any]) -> None:
        match op:
            case "beat":
                self.silent_s = message["silent_s"]
            case "rows":
                rows = base64.b64decode(message["rows"])
                with self.parts[message["ring"]].open("ab") as part:
                    part.write(rows)
                self.fresh.append(rows)
            case "capture":
                with self.captures[message["capture"]].open("ab") as part:
                    part.write(base64.b64decode(message["piece"]))
            case "from":
                remote = self.remotes[message["name"]]
                remote.words = message.get("words", remote.words)
                remote.answers.put(message["line"])
            case _:
                message["came_ns"] = _tcps.monotonic_ns()
                self.answers.put({"op": op} | message)

    def _die(self, why: str) -> None:
        with self.lock:
            if self.dead is not None:
                return
            if self.ending:
                return
            self.dead, self.died_ns = why, _tcps.monotonic_ns()
        for remote in self.remotes.values():
            remote.words = f"with host {self.name} ({self.host.address}) at {self.died_at_s():.1f} s: {why}"
            remote.answers.put(None)
        self.answers.put({"op": "dead"})

    def died_at_s(self) -> float:
        """Run time of its death."""
        return (self.died_ns - self.start_ns) / 1e9 if self.start_ns else 0.0

    # -- what goes ----------------------------------------------------------------------------------------------

    def say(self, op: str, **content: Any) -> None:
        """Sends a message; a host that is dead, or reads no more, is noticed by its silence."""
        self.pipe.say({"op": op} | content, lambda: self.dead is None and not self.ending)

    def ask(self, op: str, wait_s: float = ANSWER_S, **content: Any) -> dict[str, Any]:
        """Sends a message and waits for its answer, at most so long.

        Raises
        ------
        WorldError
            If the host is gone or keeps silent.
        """
        self.say(op, **content)
        try:
            answer = self.answers.get(timeout=wait_s)
        except queue.Empty:
            raise WorldError(f'host {self.name}: no answer to "{op}" for {wait_s:g} s') from None
        if answer["op"] != op:
            raise WorldError(f"host {self.name} ({self.host.address}): {self.dead or answer}{self._advice()}")
        return answer

    def _advice(self) -> str:
        said = "".join(self.words)
        if "No module named" in said or "not found" in said:
            return f"; install tcpsbed {VERSION} there: {self.host.python} -m pip install tcpsbed=={VERSION}"
        if "Permission denied" in said:
            return "; ssh must log in without a password: ssh-copy-id"
        return ""

    def greet(self) -> None:
        """Compares versions and reads the host's clock.

        Raises
        ------
        WorldError
            If another version of tcpsbed runs there.
        """
        hello = self.ask("hello")
        if hello["version"] != VERSION:
            raise WorldError(
                f"host {self.name} ({self.host.address}): found tcpsbed {hello['version']}, here is {VERSION}; install "
                f"the same there: {self.host.python} -m pip install tcpsbed=={VERSION}"
            )
        self.python, self.memory = hello["python"], hello["memory"]
        self.offset_ns, self.error_ns = self.clock()

    def clock(self) -> tuple[int, int]:
        """Offset of the host's monotonic clock against ours, and how wrong it can be: half the shortest round trip."""
        best = (1 << 62, 0)
        for number in range(EXCHANGES):
            sent_ns = _tcps.monotonic_ns()
            answer = self.ask("clock", number=number)
            trip_ns = answer["came_ns"] - sent_ns
            best = min(best, (trip_ns, answer["monotonic_ns"] - sent_ns - trip_ns // 2))
        return best[1], (best[0] + 1) // 2

    def send_files(self, files: Iterable[Path]) -> None:
        """Copies files, each to its own path below a folder of the run there, and compares a hash.

        Raises
        ------
        WorldError
            If what came is not what was sent.
        """
        sent = {os.path.normpath(path).lstrip("/"): path for path in files}
        for name, path in sent.items():
            content = path.read_bytes()
            for begin in range(0, max(len(content), 1), PIECE):
                piece = base64.b64encode(content[begin : begin + PIECE]).decode("ascii")
                self.say("file", path=name, piece=piece)
        wanted, answer = digest(sent), self.ask("files")
        if answer["sha256"] != wanted:
            raise WorldError(
                f"host {self.name}: files arrived damaged (hash {answer['sha256'][:12]}, sent {wanted[:12]})"
            )
        self.root, self.sha256 = answer["root"], wanted

    def simulator(self) -> str:
        """The file of ns-3's program there, compiled if it is not there yet.

        Raises
        ------
        WorldError
            If ns-3 or a compiler is missing there.
        """
        answer = self.ask("simulator", wait_s=ns3_program.COMPILE_S + ANSWER_S)
        if answer["program"] is None:
            raise WorldError(f"host {self.name} ({self.host.address}): {answer['why']}")
        return str(answer["program"])

    def launch(self, name: str, ring: Path) -> Remote:
        """Starts a process there, which goes by the name of its ring."""
        remote = Remote(name, ring, self)
        self.remotes[ring.name] = remote
        self.say("launch", name=ring.name)
        return remote

    def close(self) -> None:
        """Lets the host go; a second time does nothing."""
        self.ending = True
        self.pipe.close()
        try:
            self.child.wait(3 if self.dead is None else 0.1)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Remote(ControlChannel):
    """A process on another host."""

    def __init__(self, name: str, ring: Path, link: Link) -> None:
        super().__init__(name, ring)
        self.link, self.words = link, "no word"

    def send(self, **message: Any) -> None:
        """Sends a line; paths are converted to those of the host, times to its clock."""
        if message["op"] == "prepare":
            message["plan"] = _moved(memory.placed(message["plan"], self.link.memory), self.link.root)
            message["ring"] = f"{self.link.memory}/{self.ring.name}"
            if message.get("capture") is not None:
                message["capture"] = message["ring"]
        if message["op"] == "start":
            self.link.start_ns = message["at_ns"]
            message["at_ns"] += self.link.offset_ns
        self.link.say("to", name=self.ring.name, line=message)

    def last_output(self) -> str:
        """How it ended, as reported by its host."""
        return self.words

    def end(self) -> None:
        """Its host ends it when it is let go."""


def files_of(content: Any, key: str = "") -> set[Path]:
    """The files that a plan names by absolute paths and that are read, with the modules that code among them imports."""
    if isinstance(content, dict):
        return set().union(*(files_of(value, key) for key, value in content.items()))
    if isinstance(content, list):
        numbers = bool(content) and isinstance(content[0], int | float)
        return set() if numbers else set().union(*(files_of(value, key) for value in content))
    path = _path(content, key)
    return set() if path is None else {path, *imported(path)}


def _path(content: Any, key: str) -> Path | None:
    if not isinstance(content, str) or not content.startswith("/"):
        return None
    name, code, _ = content.partition(":")
    return Path(name) if Path(name).is_file() and (code or key not in MADE_THERE) else None


def _moved(content: Any, root: str, key: str = "") -> Any:
    """The content with the paths of its files below another folder."""
    if isinstance(content, dict):
        return {key: _moved(value, root, key) for key, value in content.items()}
    if isinstance(content, list):
        return [_moved(value, root, key) for value in content]
    return content if _path(content, key) is None else f"{root}{os.path.normpath(content)}"
