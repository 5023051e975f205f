"""What a campaign adds to its runs: processor time a cell, the share of both cores that simulates, memory of thousands."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import ROOT, Ended, Result, Row, tcpsbed

TITLE = "Campaigns: what cells cost beside their simulation"
QUICKSTART = ROOT / "scenarios" / "quickstart.toml"
TINY = """
name = "tiny"
duration = "0.3 s"
components = { ms-com = "a", ss-com = "b" }
flows.kinematic = { rate = "100 Hz" }
links.l1 = { from = "a", to = "b", rate = "5 Mbit/s", delay = "5 ms", loss = "5 %" }
"""
SHORT, LIMIT_S = 20, 5.0
BUSY = 0.9
MIB = 1 << 20


def swept(scenario: Path, folder: Path, over: list[str], seeds: int, *more: str) -> Ended:
    """A sweep into a new folder."""
    overs = [word for text in over for word in ("--over", text)]
    words = [*overs, "--seeds", str(seeds), "--out", str(folder), "--yes", "--quiet", *more]
    return tcpsbed("sweep", scenario, *words, limit_s=3600)


def short_cells(home: Path) -> Row:
    """Processor time of a sweep of a few short cells, all included."""
    over = ["links.l1.delay=1..10 ms step 1", "duration=1 s"]
    found = swept(QUICKSTART, home / "short", over, SHORT // 10, "--jobs", "2")
    told = f"{found.processor_s:.1f} s of processor time"
    return Row(f"sweep of {SHORT} cells of 1 s of the quickstart, all included", told, "", "", f"{LIMIT_S:g} s",
               found.processor_s <= LIMIT_S)  # fmt: skip


def busy(home: Path, cells: int) -> list[Row]:
    """Cells of about a second of processor time: on one core; two halves beside each other, which is what the machine has
    to give; on two cores; and on two workers of Dask.
    """

    def run(name: str, first: int, last: int, *more: str) -> Ended:
        over = [f"links.l1.delay={first}..{last} ms step 1", "duration=180 s"]
        return swept(QUICKSTART, home / name, over, 1, *more)

    def halves() -> float:
        begun = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            ends = [(1, cells // 2), (cells // 2 + 1, cells)]
            list(pool.map(lambda end: run(f"half{end[0]}", *end, "--jobs", "1"), ends))
        return time.monotonic() - begun

    alone_s = run("one", 1, cells, "--jobs", "1").wall_s
    what = f"{cells} cells of {alone_s / cells:.2f} s"
    rows = [_share(f"{what}, halves as two commands beside each other", alone_s, halves(), judged=False)]
    rows.append(_share(f"{what}, two cores", alone_s, run("two", 1, cells, "--jobs", "2").wall_s))
    if importlib.util.find_spec("distributed"):
        wall_s = run("dask", 1, cells, "--cluster", "local:2").wall_s
        rows.append(_share(f"{what}, two workers of Dask, their start included", alone_s, wall_s))
    else:
        rows.append(Row("two workers of Dask", "not measured: pip install 'tcpsbed[cluster]'", "", "", ""))
    return rows


def _share(what: str, alone_s: float, wall_s: float, *, judged: bool = True) -> Row:
    share = alone_s / (2 * wall_s)
    told = f"{100 * share:.0f} % of both cores"
    against = f"one core: {alone_s:.1f} s"
    if not judged:
        return Row(what, f"{wall_s:.1f} s", against, told, "")
    return Row(what, f"{wall_s:.1f} s", against, told, f"{100 * BUSY:.0f} %", share >= BUSY)


def many(home: Path, cells: tuple[int, int]) -> list[Row]:
    """Tiny cells by the thousand: processor time each, and memory of the largest process."""
    (home / "tiny.toml").write_text(TINY, encoding="utf-8")
    over = ["links.l1.rate=1..10 Mbit/s step 1", "links.l1.delay=1..10 ms step 1"]
    few, all_ = (swept(home / "tiny.toml", home / f"many{n}", over, n // 100, "--jobs", "2") for n in cells)
    table = (home / f"many{cells[1]}" / "sweep.parquet").stat().st_size / MIB
    return [
        Row(f"{cells[1]} cells of 0.3 s, one table of {table:.1f} MB",
            f"{1e3 * all_.processor_s / cells[1]:.0f} ms of processor time a cell",
            f"{cells[0]} cells: {1e3 * few.processor_s / cells[0]:.0f} ms",
            f"{all_.processor_s / cells[1] / (few.processor_s / cells[0]):.2f}", ""),
        Row("largest process meanwhile", f"{all_.peak_mb:.0f} MB", f"{cells[0]} cells: {few.peak_mb:.0f} MB",
            f"{all_.peak_mb / few.peak_mb:.2f}", ""),
    ]  # fmt: skip


def measure(quick: bool) -> Result:
    """All of it, each in new folders."""
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        home = Path(folder)
        rows = [
            short_cells(home),
            *busy(home, 8 if quick else 100),
            *many(home, (100, 400) if quick else (1000, 10_000)),
        ]
    return Result("campaign", TITLE, rows)
