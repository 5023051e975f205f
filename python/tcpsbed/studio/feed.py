"""The run's end of the studio: rows go out, events come in; it never waits.

Frames are a header (kind, length, moment of the run) and a body. Text is JSON.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tcpsbed import documents
from tcpsbed.analysis.records import ROW_BYTES, record_blocks
from tcpsbed.errors import ConfigError, TcpsbedError, WorldError, one_line
from tcpsbed.media.line import folder as console_folder
from tcpsbed.media.line import leave
from tcpsbed.media.packages import need
from tcpsbed.processes import PYTHON, how_ended
from tcpsbed.scenarios.model.span import FILES
from tcpsbed.studio.listening import Listening
from tcpsbed.views.folder import open_folder
from tcpsbed.worlds import Steering

HEADER = struct.Struct("<B3xId")
"""Kind, length of the body in bytes, moment of the run in seconds."""
PLAN, SCENARIO, ROWS, SPLIT, TEXT, OVER = range(6)
"""A plan; the scenario's text, which comes first; rows and how many were not sent (8 bytes in front); where the time of
samples went so far; a message for pages; the summary of the run, which is over."""
MOST_WAITING = 4 << 20
"""Bytes that wait for the page's process; rows beyond are counted and not shown."""
MOST_BEHIND_S = 1.0
"""Nor are rows shown while bytes have been waiting for so long: a page that is too slow would fall behind the run."""
PIPE_BYTES = 1 << 20
BLOCK_ROWS = 1 << 15
"""Rows that are read at a time of a run that is over."""
LAST_S = 2.0
"""After the run the page's process is left alone when it has taken nothing for this long."""
_SET_SIZE = 1031
"""`F_SETPIPE_SZ` of Linux."""


class Feed:
    """Hands a run's rows to a page, and the page's events to the run. Call it with new rows, the run's
    time, s, and where the time of samples went (JSON).

    Parameters
    ----------
    folder : Path
        The run's folder, whose `plan.json` is there by the time that the first rows come.
    shown : Path
        How the user knows that folder.
    steering : Steering, optional
        Takes the page's events. Absent: the page changes nothing.
    listening : Listening, optional
        Where the page listens; absent: on a free port of 127.0.0.1.
    why : str
        Why the page changes nothing, where it does not.
    saves : str
        What the page saves with the changes made by hand: `scenario`, or the `profile` of a network between programs of
        the user, which no page stops or kills.
    sinks : sequence of str
        Where the data goes besides the page, `NAME` or `NAME=TARGET` each.
    shows : mapping, optional
        What the page shows beside the run: `operator` (its pane) and `tour`.

    Raises
    ------
    WorldError
        If `websockets` is not installed, the port is taken or a sink cannot be opened.
    """

    def __init__(
        self,
        folder: Path,
        shown: Path,
        *,
        steering: Steering | None = None,
        listening: Listening | None = None,
        why: str = "",
        saves: str = "scenario",
        sinks: Sequence[str] = (),
        shows: Mapping[str, Any] | None = None,
    ) -> None:
        need("websockets.sync.server", "the studio", "studio")
        self.folder, self.steering, self.why, self.saves = folder, steering, why, saves
        self.begun = False
        """Whether the page has the plan."""
        self.asked: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        """Answers for events that the run has yet to take."""
        self.waiting = bytearray()
        self.behind_since: float | None = None
        """Since when bytes have been waiting, on the monotonic clock."""
        self.left_out = 0
        """Rows that were not sent."""
        self.now_s = 0.0
        where = (listening or Listening()).dumped()
        command = [*PYTHON, "-m", "tcpsbed.studio", where, str(shown), *sinks]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.pipe = self.process.stdin.fileno()
        with suppress(OSError):  # a smaller pipe does it too
            fcntl.fcntl(self.pipe, _SET_SIZE, PIPE_BYTES)
        os.set_blocking(self.pipe, False)
        self.lock = threading.Lock()
        told = json.loads(self.process.stdout.readline() or b'{"error": "its process ended"}')
        if "error" in told:
            self.stop()
            raise WorldError(told["error"], allowed=told.get("allowed"))
        self.address: str = told["address"]
        """What a browser opens."""
        self.watch: str = told.get("watch", "")
        """What a browser opens that is to change nothing."""
        self.fingerprint: str = told.get("fingerprint", "")
        """SHA-256 of the page's certificate; empty without TLS."""
        self.sinks: list[str] = told.get("sinks", [])
        """What else the user opens, by the name of the sink."""
        threading.Thread(target=self._listen, daemon=True).start()
        if shows:
            self._tell({"k": "shows", **shows})

    def __enter__(self) -> Feed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if status := self.process.poll():
            went_on = ", and the run went on without it" if kind is None else ""
            said = f"the page's process ended {how_ended(status)}{went_on}"
            print(f"tcpsbed: {said}", file=sys.stderr)
        self.stop()

    def _begin(self, folder: Path) -> None:
        """Sends the plan: what the page showed until now is forgotten."""
        self.begun = True
        self._put(SCENARIO, 0.0, (folder / "scenario.toml").read_bytes())
        self._put(PLAN, 0.0, (folder / "plan.json").read_bytes())
        steered = {"k": "steered", "by": self.steering is not None, "why": self.why, "saves": self.saves}
        self._tell(steered)

    def __call__(self, rows: bytes, now_s: float, split: str) -> None:
        """Sends what can be sent at once."""
        if not self.begun:
            self._begin(self.folder)
        self.now_s = max(now_s, 0.0)
        self._tell_taken()
        with self.lock:
            if len(self.waiting) + len(rows) > MOST_WAITING or self._is_behind():
                self.left_out += len(rows) // ROW_BYTES
                rows, split = b"", ""
            self._append(ROWS, now_s, struct.pack("<Q", self.left_out) + rows)
            if split:
                self._append(SPLIT, now_s, split.encode())
            self._write()

    def happened(self, told: dict[str, Any], profile: str) -> None:
        """An event that nobody on the page asked for: another profile is in force from now on."""
        self._tell({"k": "profile", "text": profile})
        self._tell({"k": "asked", "id": f"profile {told['at_ns']}", "by": None} | told)

    @property
    def alive(self) -> bool:
        """Whether the page's process is running."""
        return self.process.poll() is None

    def over(self, run: Path) -> None:
        """The run has ended, and its results are in this folder: the page shows all of it and leads to its report.

        Raises
        ------
        DataError
            If there is no finished run in the folder.
        """
        summary = open_folder(run).summary
        self._tell_taken()
        if self.left_out or not self.begun:
            self._replay(run)
        for answer, _ in self.asked:  # behind the plan, with which a page begins anew
            self._tell(answer | {"refused": "the run is over"})
        self.asked.clear()
        self._put(OVER, summary.get("ran_s", summary["duration_s"]), documents.strict(summary).encode())
        self._drained()

    def _replay(self, run: Path) -> None:
        """Sends all rows of a run that is over, as fast as the page's process takes them."""
        self.left_out = 0
        self._begin(run)
        if not (run / "records.bin").is_file():
            return
        for rows in record_blocks(run / "records.bin", BLOCK_ROWS):
            self._put(ROWS, rows["time"][-1] / 1e9, struct.pack("<Q", 0) + rows.tobytes())
            if not self._drained(PIPE_BYTES):
                return

    def _drained(self, most: int = 0) -> bool:
        """Waits until at most so many bytes wait; false if the page's process took nothing for a while."""
        left, end = len(self.waiting), time.monotonic() + LAST_S
        while left > most and time.monotonic() < end:
            time.sleep(0.01)
            with self.lock:
                self._write()
            if len(self.waiting) < left:
                left, end = len(self.waiting), time.monotonic() + LAST_S
        return left <= most

    def stop(self) -> None:
        """Ends the page's process."""
        with suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        try:
            self.process.wait(LAST_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _put(self, kind: int, now_s: float, body: bytes) -> None:
        with self.lock:
            self._append(kind, now_s, body)
            self._write()

    def _is_behind(self) -> bool:
        return self.behind_since is not None and time.monotonic() - self.behind_since > MOST_BEHIND_S

    def _append(self, kind: int, now_s: float, body: bytes) -> None:
        self.waiting += HEADER.pack(kind, len(body), now_s)
        self.waiting += body

    def _write(self) -> None:
        try:
            while self.waiting:
                del self.waiting[: os.write(self.pipe, self.waiting)]
        except BlockingIOError:
            pass
        except OSError:  # a page's process that died ends no run, but the commands of its operator
            self.waiting.clear()
            if place := console_folder():
                leave(place)
        if not self.waiting:
            self.behind_since = None
        elif self.behind_since is None:
            self.behind_since = time.monotonic()

    def _listen(self) -> None:
        """Takes events that a page asks for."""
        for line in self.process.stdout or ():
            with suppress(ValueError):
                self._ask(json.loads(line))

    def _ask(self, asked: dict[str, Any]) -> None:
        answer = {"k": "asked"} | {key: asked.get(key) for key in ("id", "event", "by", "asked_s")}
        try:
            if self.steering is None:
                raise WorldError(self.why, allowed="another run")
            if file := next(_files(asked["event"]), ""):
                raise ConfigError(
                    f'found the file "{file}"', key="event", allowed="values: pages read no files"
                )
            by = {} if asked.get("by") is None else {"by": f"viewer {asked['by']}"}
            events = self.steering.event(**asked["event"] | by)
            answer["event"] = asked["event"] | by | {"name": events[0]["name"]}
            self.asked.append((answer, events))
        except (TcpsbedError, TypeError, KeyError) as error:
            self._tell(answer | {"refused": one_line(str(error))})

    def _tell_taken(self) -> None:
        for one in list(self.asked):
            answer, events = one
            if self.steering is None or any(event in self.steering.asked for event in events):
                continue
            self.asked.remove(one)
            done = {"at_ns": events[0]["at_ns"], "actions": [event["action"] for event in events]}
            self._tell(answer | done)

    def _tell(self, message: dict[str, Any]) -> None:
        self._put(TEXT, 0.0, documents.strict(message).encode())


def _files(value: Any) -> Iterator[str]:
    """Files that an event of a page names."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in FILES:
                yield str(item)
            yield from _files(item)
