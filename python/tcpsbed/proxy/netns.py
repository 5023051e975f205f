"""A command in a network namespace behind an emulated network, optionally with another one at its far side.

```text
 near 10.77.0.1 ── COMMAND ══ emulated network ══ COMMAND, or ports that lead out ── far 10.77.0.2
```
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tcpsbed.errors import ConfigError, WorldError, needs_linux, of_run
from tcpsbed.processes import OURS
from tcpsbed.proxy import door
from tcpsbed.proxy.changes import Changes
from tcpsbed.proxy.door import Door
from tcpsbed.proxy.profile import Profile
from tcpsbed.proxy.proxy import waiting

NEAR_IP, FAR_IP = "10.77.0.1", "10.77.0.2"
"""Addresses of the sides; commands find them in `TCPSBED_NEAR` and `TCPSBED_FAR`."""
ANSWER_S = 5.0
"""Longest time that the emulated network may take to answer."""


@dataclass(frozen=True)
class Ended:
    """How a command behind an emulated network ended: its exit status, and what the emulator did; `tcp` has the segments
    that each side has `sent` and `retransmitted`, as its kernel counts them; `late_ns` says how late this machine woke an
    ordinary program (`p50`, `p99`, `max`; `None` if it ended at once).
    """

    status: int
    outcome: dict[str, Any]


def reach(text: str) -> Door:
    """A port of the far side that leads out: `7100/udp` to the same port of this computer, or `80=robot:8080/tcp`."""
    port, _, kind = text.partition("/")
    if not port:
        raise ConfigError(f'found "{text}"', key="--reach", allowed='a port, such as "7100/udp"')
    if "=" not in text:
        text = f"{port}={door.LOOPBACK}:{port}" + (f"/{kind}" if kind else "")
    return door.parse(text, listen=FAR_IP, key="--reach")


class Behind:
    """A command behind an emulated network, at work until it ends. No process or device is left behind, however it ends.

    Parameters
    ----------
    profile : Profile
        What lies between the sides.
    near, far : sequence of str
        The command, and another one at the far side, which ends with it.
    reaching : sequence of Door
        Ports of the far side that lead out, from `reach`.
    capture : Path, optional
        Where packets are captured (pcapng).
    say : callable, optional
        Hears the lines that the commands write to a terminal, in its place.
    record : mapping, optional
        Where rows go, from `Recorder.settings`.
    """

    def __init__(
        self,
        profile: Profile,
        near: Sequence[str],
        *,
        far: Sequence[str] = (),
        reaching: Sequence[Door] = (),
        capture: Path | None = None,
        say: Callable[[str], None] | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        needs_linux("netns")
        door.once(reaching, "--reach")
        self.profile, self._line, self._changes = profile, _Line(), Changes()
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tcpsbed-")))
            settings = {
                "proxy": {
                    "network": profile.network,
                    "seed": profile.seed,
                    "capture": None if capture is None else str(capture.absolute()),
                    "record": record,
                }
                | waiting(),
                "near": list(near),
                "far": list(far),
                "reach": [one.settings() for one in reaching],
                "control": str(self._folder / "control"),
            }
            told = self._folder / "settings.json"
            told.write_text(json.dumps(settings), encoding="utf-8")
            command = [
                *OURS,
                "inside",
                str(told),
                str(self._folder / "report.json"),
            ]
            self._child = _start(command, say, stack)
            stack.callback(self._line.close)
            self._stack = stack.pop_all()

    def snapshot(self) -> dict[str, Any]:
        """Counts so far, rates and delays of the last second: `t_s`, `doors` (one row per direction) and
        `services` (the same per port at which a program listens); no rows before the start and after the end of the network.
        """
        answer = self._ask(op="snapshot") or {}
        found: dict[str, Any] = answer.get(
            "snapshot", {"t_s": 0.0, "doors": [], "services": [], "clients": 0}
        )
        return found

    def start_ns(self) -> int | None:
        """When the network's time was 0 (CLOCK_MONOTONIC); `None` before its start and after its end."""
        answer = self._ask(op="start") or {}
        found: int | None = answer.get("start_ns")
        return found

    def event(self, line: dict[str, Any], network: dict[str, Any]) -> None:
        """Asks for an event of the record's plan, as `Proxy.event` does.

        Raises
        ------
        WorldError
            As of `change`.
        """
        self._order(op="event", line=line, network=network)
        self._changes.event(line, self.profile.network)

    def change(self, profile: Profile, event: int | None = None) -> None:
        """Puts another profile in the place of the present one, as `Proxy.change` does.

        Raises
        ------
        WorldError
            If no way leads through it, or the network does not stand; then nothing has changed.
        """
        self._order(op="change", network=profile.network, event=event)
        self._changes.profile(self.profile.network, profile.network)
        self.profile = profile

    def _order(self, **request: Any) -> None:
        answer = self._ask(**request)
        if answer is None or "refused" in answer:
            raise WorldError("the network does not answer" if answer is None else answer["refused"])

    def _ask(self, **request: Any) -> dict[str, Any] | None:
        return self._line.ask(self._folder / "control", request)

    def ended(self) -> bool:
        """Whether the command has ended."""
        return self._child.poll() is not None

    def wait(self, seconds: float | None = None) -> None:
        """Waits for its end, at most so long."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(seconds)

    def close(self) -> Ended:
        """Waits for its end; how it went.

        Raises
        ------
        WorldError
            If there can be no namespaces here, or a command could not be started.
        """
        status, report = self._child.wait(), self._folder / "report.json"
        if not report.exists():
            raise WorldError(f"the emulated network ended with status {status} before it reported")
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        if "error" in found:
            raise of_run(**found["error"])
        more = {"tcp": found["tcp"], "late_ns": found["late_ns"], "changed": self._changes.found}
        return Ended(status, found["outcome"] | more)

    def __enter__(self) -> Behind:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


class _Line:
    """The connection to the network in the namespaces, opened once it exists."""

    def __init__(self) -> None:
        self._open: IO[str] | None = None

    def ask(self, path: Path, request: dict[str, Any]) -> dict[str, Any] | None:
        """The answer; `None` before the network's start and after its end."""
        try:
            line = self._open = self._open or _opened(path)
            line.write(json.dumps(request) + "\n")
            line.flush()
            answer: dict[str, Any] = json.loads(line.readline())
        except (OSError, ValueError):
            self.close()
            return None
        return answer

    def close(self) -> None:
        """Ends the talk."""
        line, self._open = self._open, None
        if line is not None:
            with suppress(OSError):
                line.close()


def _opened(path: Path) -> IO[str]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
        end.settimeout(ANSWER_S)
        end.connect(str(path))
        return end.makefile("rw", encoding="utf-8")


def _start(command: list[str], say: Callable[[str], None] | None, stack: ExitStack) -> subprocess.Popen[str]:
    """Starts a command; Ctrl-C is for what runs inside, a request to end ends it. It is gone when the stack is left."""
    out, err = (
        subprocess.PIPE if say is not None and stream.isatty() else None
        for stream in (sys.stdout, sys.stderr)
    )
    before = signal.signal(signal.SIGINT, lambda *_: None)  # what is ignored stays so in a new program
    stack.callback(signal.signal, signal.SIGINT, before)
    child = subprocess.Popen(command, stdout=out, stderr=err, text=True, errors="replace")
    heard = signal.signal(signal.SIGTERM, lambda *_: child.kill())
    stack.callback(signal.signal, signal.SIGTERM, heard)
    for stream in (child.stdout, child.stderr):
        if say is not None and stream is not None:
            reader = threading.Thread(target=_hand_on, args=(stream, say), daemon=True)
            reader.start()
            stack.callback(reader.join, 1.0)
    stack.callback(child.wait)
    stack.callback(child.kill)
    return child


def _hand_on(stream: IO[str], say: Callable[[str], None]) -> None:
    for line in stream:
        say(line.rstrip("\n"))
