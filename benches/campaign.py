"""What a campaign adds to its runs: processor time a cell, the share of both cores that simulates, memory of thousands."""

from __future__ import annotations

import importlib.util
import tempfile
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
    """Cells of about a second of processor time: on one core, on two, and on two workers of Dask."""
    over = [f"links.l1.delay=1..{cells} ms step 1", "duration=180 s"]
    alone = swept(QUICKSTART, home / "one", over, 1, "--jobs", "1")
    rows = []
    places = [("two cores", ("--jobs", "2"))]
    if importlib.util.find_spec("distributed"):
        places.append(("two workers of Dask, their start included", ("--cluster", "local:2")))
    else:
        rows.append(Row("two workers of Dask", "not measured: pip install 'tcpsbed[cluster]'", "", "", ""))
    for number, (name, more) in enumerate(places):
        found = swept(QUICKSTART, home / f"two{number}", over, 1, *more)
        share = alone.wall_s / (2 * found.wall_s)
        rows.append(
            Row(f"{cells} cells of {alone.wall_s / cells:.2f} s, {name}", f"{found.wall_s:.1f} s",
                f"one core: {alone.wall_s:.1f} s", f"{100 * share:.0f} % of both cores",
                f"{100 * BUSY:.0f} %", share >= BUSY)
        )  # fmt: skip
    return rows


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
