"""What a native node costs while one flow at 1 kHz passes through it: share of a core, and memory."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from measure import HERE, Result, Row, summary_of, tcpsbed

TITLE = "Cost of a native node, one flow at 1 kHz, blocking wait"
SCENARIO = HERE / "scenarios" / "relay.toml"
NODE = "middle"


class Watch(threading.Thread):
    """Looks at the memory of all `tcpsbed node` processes until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb: dict[int, float] = {}
        self.over = threading.Event()

    def run(self) -> None:
        """Look twice a second."""
        while not self.over.wait(0.5):
            for place in Path("/proc").glob("[0-9]*"):
                self._look(place)

    def _look(self, place: Path) -> None:
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            if b"node" not in words or not any(b"tcpsbed" in word for word in words):
                return
            text = (place / "smaps_rollup").read_text()
        except OSError:
            return
        kb = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
        pid = int(place.name)
        self.peak_mb[pid] = max(self.peak_mb.get(pid, 0.0), kb / 1024)


def measure(quick: bool) -> Result:
    """One run, watched."""
    seconds = 5 if quick else 30
    keys = {"duration": f'"{seconds} s"', "real.waiting": '"blocking"', "measure.echo": "[]"}
    keys["measure.pcapng"] = '"off"'
    watch = Watch()
    with tempfile.TemporaryDirectory() as place:
        watch.start()
        begin = time.monotonic()
        tcpsbed("run", SCENARIO, "--world", "real", "--out", place, "--no-report", keys=keys)
        wall_s = time.monotonic() - begin
        watch.over.set()
        read = summary_of(Path(place))
    share = next(node["busy_s"] for node in read["nodes"] if node["name"] == NODE) / seconds
    largest_mb = max(watch.peak_mb.values(), default=0.0)
    rows = [
        Row(f"processor of {NODE}, {seconds} s", f"{share:.1%} of a core", "", "", "8 %", share <= 0.08),
        Row("largest node process", f"{largest_mb:.1f} MB", "", "", "40 MB", 0 < largest_mb <= 40),
    ]
    return Result(
        "node_cost", TITLE, rows, {"nodes": read["nodes"], "peak_mb": watch.peak_mb, "wall_s": wall_s}
    )
