"""Recovery of a run whose process died: its rows become a result that is marked as incomplete."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from tcpsbed import _tcps, documents, results
from tcpsbed.analysis.records import open_records
from tcpsbed.clocks import BETWEEN, VIRTUAL
from tcpsbed.errors import DataError
from tcpsbed.results import folder as folders
from tcpsbed.results import lock, marker
from tcpsbed.results.marker import PARTS
from tcpsbed.worlds import memory

WROTE = ("records.bin", "packets.pcapng", "result.json", "summary.json", "series.json", "samples.parquet")
"""Names of what is made here."""
TOLD = ("links", "traffic", "endpoints", "stages", "nodes", "robots", "emulator", "clocks", "boards")
"""What processes tell at the end of a run, and did not."""
WHY = "the process that ran it died: this is what was recorded until then, without the final reports of nodes and links"


def recovered(folder: Path) -> Path:
    """Makes a result of an unfinished run (`results.is_unfinished`); its folder.

    Raises
    ------
    ConfigError, DataError
        If the run is still being recorded, or there is nothing to recover.
    """
    if not (folder / "plan.json").is_file():
        return _left_beside(folder)
    place, found = folder.resolve(), marker.read(folder)
    target = place if found is None else folders.destination(place, found)
    with lock.held(folders.lock_of(target), target):
        recover(place)
        if found is not None and found.state == marker.WRITING:
            marker.remove(place / marker.AGAIN)
            found.listing(place).write(place)
        else:
            marker.add(place, *(name for name in WROTE if (place / name).is_file()))
        return folder if target == place else folders.rename_recovered(place, target)


def _left_beside(folder: Path) -> Path:
    """The only unfinished run beside a folder that holds none."""
    left = [run for run in folders.leftovers(folder.resolve()) if (run / "plan.json").is_file()]
    if len(left) == 1:
        return recovered(left[0])
    if left:
        named = ", ".join(map(str, left))
        raise DataError(f"{len(left)} unfinished runs are beside it", file=folder, allowed=f"one of {named}")
    return folder


def recover(run: Path) -> None:
    """Makes records, result and summary of what a dead process left in the folder of a run."""
    from tcpsbed.runs import session

    with memory.rescued(run):
        parts, captures = (sorted(found for name in names for found in run.glob(name)) for names in PARTS)
        summed_up = (run / "result.json").is_file() and (run / "summary.json").is_file()
        if not parts and summed_up and ((run / marker.AGAIN).is_dir() or (run / "series.json").is_file()):
            return  # it died after that, with the next one of several
        rows, sha256 = _rows(run, parts)
        if rows == 0:
            raise DataError("holds no rows", file=run, allowed="a run that recorded something before it died")
        begun = [capture for capture in captures if capture.stat().st_size]
        if begun and not (run / "packets.pcapng").exists():
            with results.whole(run / "packets.pcapng") as part:
                _tcps.merge_captures(begun, part)
        result = _result(run, rows, sha256)
        if result["world"] in BETWEEN:
            _end_at_last_row(run)
        results.write_whole(run / "result.json", json.dumps(result))
        session.analyse(run)
        for part in [*parts, *captures] if marker.read(run) is not None else []:
            part.unlink()


def _rows(run: Path, parts: list[Path]) -> tuple[int, str]:
    """Merges the rows of all loops, if that was not done before the kill; how many there are, and their hash."""
    if not parts or (run / memory.RECORDS).exists():
        return _whole_rows(run)
    with results.whole(run / memory.RECORDS) as part:
        rows, sha256 = _tcps.merge(parts, part)
    return rows, sha256


def _whole_rows(run: Path) -> tuple[int, str]:
    """Cuts what a kill tore off the end of our own file of rows; how many there are, and their hash."""
    import hashlib

    records, found = run / memory.RECORDS, marker.read(run)
    if not records.is_file():
        return 0, ""
    rows, torn = divmod(records.stat().st_size, _tcps.RECORD_BYTES)
    if torn and (found is None or found.state != marker.WRITING or records.is_symlink()):
        raise DataError(
            f"found {torn} B behind {rows} rows of {_tcps.RECORD_BYTES} B, in a folder that no run was writing",
            file=records,
            allowed="rows as tcpsbed run left them",
        )
    if torn:
        os.truncate(records, rows * _tcps.RECORD_BYTES)
    with records.open("rb") as file:
        return rows, hashlib.file_digest(file, "sha256").hexdigest()


def _end_at_last_row(run: Path) -> None:
    """A network between the user's own programs had no end in its plan: it is as long as its rows."""
    plan, text = documents.read(run / "plan.json"), (run / "scenario.toml").read_text(encoding="utf-8")
    rows = open_records(run / memory.RECORDS)
    plan["duration_ns"] = min(plan["duration_ns"], int(rows["time"].max()) + 1)
    text = re.sub(r'(?m)^duration = ".*"$', f'duration = "{plan["duration_ns"]} ns"', text, count=1)
    results.write_whole(run / "plan.json", json.dumps(plan))
    results.write_whole(run / "scenario.toml", text)


def _result(run: Path, rows: int, sha256: str) -> dict[str, Any]:
    """The report that the run would have written, as far as known; or the one that it wrote."""
    if (run / "result.json").is_file():
        return documents.read(run / "result.json") | {"records": rows, "records_sha256": sha256}
    found = marker.read(run)
    world = found.world if found is not None and found.world else VIRTUAL
    plan = documents.read(run / "plan.json")
    return {key: [] for key in TOLD} | {
        "simulate_s": plan["duration_ns"] / 1e9,
        "total_s": None,
        "events": 0,
        "records": rows,
        "records_sha256": sha256,
        "interrupted": True,
        "errors": [WHY],
        "world": world,
    }
