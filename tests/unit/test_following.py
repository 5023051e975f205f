"""Samples that are written while rows still come."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

import tcpsbed
from tcpsbed import errors
from tcpsbed.analysis import export, records
from tcpsbed.runs.samples import Samples

SCENARIO = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"


def blocks_of(path: Path, complete: Event | None) -> list[int]:
    return [len(rows) for rows in records.record_blocks(path, 3, complete)]


def test_rows_that_come_later_are_read_and_a_torn_one_is_not(tmp_path: Path) -> None:
    file, complete, seen = tmp_path / "records.bin", Event(), []
    row = bytes(records.ROW_BYTES)
    file.write_bytes(row * 4)
    for rows in records.record_blocks(file, 3, complete):
        seen.append(len(rows))
        if len(seen) == 1:  # one row waits for a whole block
            with file.open("ab") as more:
                more.write(row * 4)
        elif len(seen) == 2:
            with file.open("ab") as more:
                more.write(row[:7])
            complete.set()
    assert seen == [3, 3, 2]
    assert blocks_of(file, None) == seen


def test_the_file_is_the_same_as_the_one_that_is_made_afterwards(tmp_path: Path) -> None:
    run = tcpsbed.run(SCENARIO, duration="1 s", out=tmp_path / "run").folder
    again = export.to_parquet(run, tmp_path / "again.parquet")
    assert (run / "samples.parquet").read_bytes() == again.read_bytes()


def test_a_run_that_fails_before_its_first_row_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(errors.DataError), Samples(tmp_path) as written:
        written.follow({"components": [], "flows": []})
        raise errors.DataError("found a failed run")
    assert not list(tmp_path.iterdir())
