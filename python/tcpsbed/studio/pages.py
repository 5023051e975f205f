"""Pages that another page starts: each is a command of its own, with an address of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from tcpsbed.errors import WorldError
from tcpsbed.processes import OURS, talking
from tcpsbed.studio.listening import Listening

MOST = 8
"""Pages at a time."""
ADDRESS = re.compile(r"studio: (https?://\S+)")
END_S = 20.0
"""Time that a run has to end in good order."""
PAGE_S = 5.0
"""Time that its page has."""
LINES_KEPT = 5
"""Lines of a command that failed which are told."""


class Started:
    """A page that was started: its process, and what it prints.

    Parameters
    ----------
    what : str
        What it shows.
    words : sequence of str
        The command behind `tcpsbed studio`.
    exclusive : bool
        Whether another such page would disturb it: a run on the machine's clock.

    Raises
    ------
    WorldError
        If it ended before it had an address: with what it said.
    """

    def __init__(self, what: str, words: Sequence[str], *, exclusive: bool = False) -> None:
        self.what, self.exclusive = what, exclusive
        self.over = threading.Event()
        """Set when what it shows is over, and nothing is lost with the page."""
        self.address = ""
        self.said: deque[str] = deque(maxlen=LINES_KEPT)
        command = [*OURS, "studio", *words, "--no-browser"]
        self.process = talking(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        for line in self.process.stdout or ():
            if self._read(line):
                break
        if not self.address:
            self.process.wait()
            raise WorldError("\n".join(self.said) or f"{what}: ended without a page")
        threading.Thread(target=self._listen, daemon=True).start()

    def _read(self, line: str) -> bool:
        self.said.append(line.rstrip("\n").removeprefix("tcpsbed: "))
        if found := ADDRESS.match(line):
            self.address = found[1]
        if line.startswith("studio: the page stays"):
            self.over.set()
        return bool(self.address)

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self._read(line)
        self.over.set()

    @property
    def alive(self) -> bool:
        """Whether it can be looked at."""
        return self.process.poll() is None

    def stop(self) -> None:
        """Ends it; a run keeps what it recorded until then."""
        if not self.over.is_set():
            self._ask()
            self.over.wait(END_S)
        self._ask()
        try:
            self.process.wait(PAGE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _ask(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)


class Pages:
    """The pages that were started, at most `MOST` at a time.

    Parameters
    ----------
    listening : Listening
        Where they listen, on free ports.
    """

    def __init__(self, listening: Listening) -> None:
        self.options = listening.options
        self.lock = threading.Lock()
        self.started: list[Started] = []

    def show(self, what: str, words: Sequence[str]) -> str:
        """The address of a page that nobody changes: a new one, unless it is there already.

        Raises
        ------
        WorldError
            As of `start`.
        """
        there = next((one for one in self._alive() if one.what == what), None)
        return there.address if there else self.start(what, words)

    def start(self, what: str, words: Sequence[str], *, exclusive: bool = False) -> str:
        """Starts a page, and returns its address; the oldest one whose run is over makes room.

        Raises
        ------
        WorldError
            If too much is in progress, or the command fails.
        """
        with self.lock:
            self.started = self._alive()
            busy = [one for one in self.started if not one.over.is_set()]
            if exclusive and (other := next((one for one in busy if one.exclusive), None)):
                raise WorldError(f"{other.what} is in progress on sockets: a second run would disturb it")
            if len(self.started) >= MOST:
                idle = next((one for one in self.started if one.over.is_set()), None)
                if idle is None:
                    raise WorldError(f"{MOST} runs are in progress: wait until one of them is over")
                idle.stop()
                self.started.remove(idle)
            made = Started(what, [*words, *self.options], exclusive=exclusive)
            self.started.append(made)
            return made.address

    def _alive(self) -> list[Started]:
        return [one for one in self.started if one.alive]

    def stop(self) -> None:
        """Ends all of them."""
        ending = [threading.Thread(target=one.stop) for one in self.started]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()
