"""What watching costs a run: the page's process stopped, many viewers, a viewer on a slow line; and the page's own cost.

Four flows at up to 1 kHz with coded pictures over nine links (`scenarios/watched.toml`). Pairs of runs without and with a
page, in turn. The run with its nodes is on core 0; the page and its viewers are on core 1,
and the viewers have a lower priority.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from measure import PROGRAM, ROOT, CannotMeasureError, Result, Row, median, summary_of

TITLE = "Watching a run"
SCENARIO = ROOT / "benches" / "scenarios" / "watched.toml"
RUN_CORE, PAGE_CORE = 0, 1
STOP_AFTER_S, AFTER_STOP_S = 3, 5
MOST_ADDED_US, MOST_ADDED_SHARE, MOST_ADDED_MB, MOST_LOAD = 50.0, 0.1, 64.0, 0.08
SLOW_BYTES_PER_S = 2000
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Peak(threading.Thread):
    """The most memory of a process while its run lasts, without that of the analysis behind it."""

    def __init__(self, pid: int, seconds: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.until_s, self.seen_mb = pid, time.monotonic() + seconds, 0.0
        self.start()

    def run(self) -> None:
        """Looks twice a second."""
        while time.monotonic() < self.until_s:
            self.seen_mb = max(self.seen_mb, _memory_mb(self.pid))
            time.sleep(0.5)

    def mb(self) -> float:
        """What was found.

        Raises
        ------
        CannotMeasureError
            If the process was never seen.
        """
        if not self.seen_mb:
            raise CannotMeasureError("the memory of the run's process could not be read")
        return self.seen_mb


class Watched:
    """A run with its page, from the printed address to its report."""

    def __init__(self, seconds: int, out: Path, *sinks: str) -> None:
        self.out = out
        named = [word for sink in sinks for word in ("--sink", sink)]
        words = [
            PROGRAM,
            "studio",
            SCENARIO,
            "--out",
            out,
            "--no-browser",
            "--duration",
            f"{seconds} s",
            *named,
        ]
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {RUN_CORE}),
        )
        self.peak = Peak(self.process.pid, seconds)
        assert self.process.stdout is not None
        found = re.match(r"studio: http://127\.0\.0\.1:(\d+)/\?token=(\S+)", self.process.stdout.readline())
        if not found:
            self.process.kill()
            raise CannotMeasureError(f"tcpsbed studio: {self.process.communicate()[1].strip()[-300:]}")
        self.port, self.token = int(found[1]), found[2]
        self.page = next(pid for pid in _children(self.process.pid) if b"tcpsbed.studio" in _command(pid))
        for task in Path(f"/proc/{self.page}/task").iterdir():
            os.sched_setaffinity(int(task.name), {PAGE_CORE})

    def ended(self) -> dict[str, Any]:
        """The summary, when the run is over."""
        out = self.process.stdout
        assert out is not None
        while not out.readline().startswith("report: "):
            if self.process.poll() is not None:
                raise CannotMeasureError(f"the run ended with {self.process.returncode}")
        return summary_of(self.out)

    def load_s(self) -> float:
        """Processor time of the page's process so far."""
        words = Path(f"/proc/{self.page}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) * TICK_S

    def close(self) -> None:
        """Ends the page."""
        with suppress(ProcessLookupError):
            os.kill(self.page, signal.SIGCONT)
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _memory_mb(pid: int) -> float:
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024
    return 0.0


@contextmanager
def viewers(run: Watched, count: int, kind: str = "watch") -> Iterator[None]:
    """Viewers in a process of their own."""
    process = subprocess.Popen([sys.executable, __file__, kind, str(run.port), run.token, str(count)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def not_shown(run: Watched) -> int:
    """Rows that the page says it did not show, after the run."""
    from websockets.sync.client import connect

    with connect(f"ws://127.0.0.1:{run.port}/live?token={run.token}", max_size=None) as line:
        while True:
            message = json.loads(line.recv(timeout=20))
            if message["k"] == "now":
                return int(message["left_out"])


def without(seconds: int) -> dict[str, Any]:
    """What a run is like that nobody watches."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        words = [
            PROGRAM,
            "run",
            SCENARIO,
            "--world",
            "real",
            "--out",
            out,
            "--quiet",
            "--duration",
            f"{seconds} s",
        ]
        process = subprocess.Popen(
            [str(word) for word in words], preexec_fn=lambda: os.sched_setaffinity(0, {RUN_CORE})
        )
        peak = Peak(process.pid, seconds)
        if process.wait():
            raise CannotMeasureError(f"tcpsbed run ended with {process.returncode}")
        return judged(summary_of(out), peak.mb())


def judged(summary: dict[str, Any], peak_mb: float) -> dict[str, Any]:
    """What a viewer might have changed."""
    nodes = summary["nodes"]
    return {
        "missed": sum(node["missed_ticks"] for node in nodes),
        "ticks": sum(node["ticks"] for node in nodes),
        "stalls": sum(node["gaps_over_1ms"] for node in nodes),
        "late_us": max(node["late_ns"]["p99"] for node in nodes) / 1e3,
        "peak_mb": peak_mb,
    }


def stopped(seconds: int) -> dict[str, Any]:
    """The page's process is stopped; it goes on before the end, and tells what it did not show."""
    with tempfile.TemporaryDirectory() as folder:
        run = Watched(seconds + STOP_AFTER_S + AFTER_STOP_S, Path(folder) / "run")
        try:
            time.sleep(STOP_AFTER_S)
            os.kill(run.page, signal.SIGSTOP)
            going = threading.Timer(seconds, os.kill, (run.page, signal.SIGCONT))
            going.start()
            with viewers(run, 1):
                summary = run.ended()
            return judged(summary, run.peak.mb()) | {"left_out": not_shown(run)}
        finally:
            run.close()


def watched(seconds: int, count: int, kind: str = "watch", sinks: tuple[str, ...] = ()) -> dict[str, Any]:
    """Viewers look at a run from its first seconds to its end."""
    with tempfile.TemporaryDirectory() as folder:
        run = Watched(seconds, Path(folder) / "run", *sinks)
        try:
            time.sleep(1)
            with viewers(run, count, kind):
                time.sleep(2)
                begun, before_s = time.monotonic(), run.load_s()
                time.sleep(seconds - 5)
                load = (run.load_s() - before_s) / (time.monotonic() - begun)
                page_mb = _memory_mb(run.page)
                summary = run.ended()
            found = {"load": load, "page_mb": page_mb, "left_out": not_shown(run)}
            return judged(summary, run.peak.mb()) | found
        finally:
            run.close()


def rows_of(what: str, pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Row]:
    """Ticks, lateness and memory with a viewer against without, and what was not shown.

    A tick is blocked if it is missed with the viewer and not without: the median over the pairs, because this machine
    misses some of its own.
    """
    plain, seen = [one for one, _ in pairs], [one for _, one in pairs]
    missed = [sum(one["missed"] for one in runs) for runs in (plain, seen)]
    blocked = median([b["missed"] - a["missed"] for a, b in pairs])
    late, base = (median([one["late_us"] for one in runs]) for runs in (seen, plain))
    added = median([b["late_us"] - a["late_us"] for a, b in pairs])
    bar_us = max(MOST_ADDED_US, MOST_ADDED_SHARE * base)
    memory = median([b["peak_mb"] - a["peak_mb"] for a, b in pairs])
    return [
        Row(
            f"{what}: ticks missed",
            f"{missed[1]} of {sum(one['ticks'] for one in seen)}, {sum(one['stalls'] for one in seen)} stalls over 1 ms",
            f"{missed[0]}, {sum(one['stalls'] for one in plain)} stalls",
            f"{max(blocked, 0):.0f} blocked",
            "0 blocked",
            blocked <= 0,
        ),
        Row(
            f"{what}: p99 lateness of nodes",
            f"{late:.0f} µs",
            f"{base:.0f} µs",
            f"{added:+.0f} µs",
            f"+{bar_us:.0f} µs",
            added <= bar_us,
        ),
        Row(
            f"{what}: memory of the run's process",
            f"{median([one['peak_mb'] for one in seen]):.0f} MB",
            f"{median([one['peak_mb'] for one in plain]):.0f} MB",
            f"{memory:+.0f} MB",
            f"+{MOST_ADDED_MB:.0f} MB",
            memory <= MOST_ADDED_MB,
        ),
        Row(f"{what}: rows not shown", " ".join(str(one["left_out"]) for one in seen), "counted", "", ""),
    ]


def measure(quick: bool) -> Result:
    """Each kind of viewer against none, in turn."""
    if not {RUN_CORE, PAGE_CORE} <= os.sched_getaffinity(0):
        raise CannotMeasureError(f"needs the cores {RUN_CORE} and {PAGE_CORE}")
    stop_s, look_s, count = (10, 12, 1) if quick else (60, 30, 3)
    cases: dict[str, tuple[int, Callable[[], dict[str, Any]]]] = {
        f"page stopped for {stop_s} s": (stop_s + STOP_AFTER_S + AFTER_STOP_S, lambda: stopped(stop_s)),
        "20 viewers": (look_s, lambda: watched(look_s, 20)),
        f"a viewer that reads {SLOW_BYTES_PER_S / 1e3:g} kB/s": (look_s, lambda: watched(look_s, 1, "slow")),
        "one viewer": (look_s, lambda: watched(look_s, 1)),
        "openmetrics": (look_s, lambda: watched(look_s, 0, sinks=("openmetrics=0",))),
    }
    rows, raw = [], {}
    for what, (seconds, run) in cases.items():
        pairs = [(without(seconds), run()) for _ in range(count)]
        raw[what] = pairs
        rows += rows_of(what, pairs)
        if loads := [one["load"] for _, one in pairs if "load" in one]:
            is_bar = what == "one viewer"
            page = f"{median([one['page_mb'] for _, one in pairs]):.0f} MB"
            load = median(loads)
            bar = ("under 8 % of a core", load < MOST_LOAD) if is_bar else ("", None)
            rows.append(
                Row(f"{what}: the page's process", f"{100 * load:.1f} % of a core, {page}", "", "", *bar)
            )
    return Result("studio", TITLE, rows, raw)


def watch(port: int, token: str, count: int) -> None:
    """Viewers that take everything."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    def look() -> None:
        address = f"ws://127.0.0.1:{port}/live?token={token}"
        with suppress(ConnectionClosed, OSError), connect(address, max_size=None, open_timeout=120) as line:
            for _ in line:
                pass

    every = [threading.Thread(target=look) for _ in range(count)]
    for one in every:
        one.start()
    for one in every:
        one.join()


def slow(port: int, token: str) -> None:
    """A viewer that asks for everything and reads a little."""
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", port))
        asked = f"GET /live?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        asked += "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        line.sendall(asked.encode())
        while line.recv(SLOW_BYTES_PER_S // 10):
            time.sleep(0.1)


if __name__ == "__main__":
    os.sched_setaffinity(0, {PAGE_CORE})
    os.nice(10)
    kind, at, secret, many = sys.argv[1:]
    if kind == "slow":
        slow(int(at), secret)
    else:
        watch(int(at), secret, int(many))
