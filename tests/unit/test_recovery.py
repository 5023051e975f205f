"""What a dead run recorded is saved before it goes from anywhere, and nothing else goes with it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tcpsbed
from tcpsbed import results
from tcpsbed.cli import runs
from tcpsbed.errors import REMEDIES, ConfigError, DataError, WorldError, of_run
from tcpsbed.results import folder as folders
from tcpsbed.results import marker
from tcpsbed.runs import recovery
from tcpsbed.worlds import memory
from tcpsbed.worlds import rows as rows_

ROW_BYTES = 32
SCENARIO = """
name = "short"
duration = "300 ms"
[components]
tactile-operator = "ms"
tactile-teleoperator = "ss"
[flows.kinematic]
[flows.haptic]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that came to its end."""
    return Path(tcpsbed.run(SCENARIO, out=tmp_path_factory.mktemp("runs") / "made").folder)


@pytest.fixture
def dead(tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An unfinished run `a.unfinished-1`: half of its rows are in its folder, and all in the ring of a dead process."""
    run, shared = tmp_path / "a.unfinished-1", tmp_path / "shm/tcpsbed-1-dead"
    for place in (run, shared):
        place.mkdir(parents=True)
    for name in ("plan.json", "scenario.toml"):
        shutil.copy(finished / name, run)
    rows = recorded(finished)
    (run / "node0.0.ring.rows").write_bytes(rows[: len(rows) // 64 * 32])
    head = struct.pack("<Q", len(rows) // ROW_BYTES).ljust(192, b"\0")
    (shared / "node0.0.ring").write_bytes(head + rows)
    (shared / ".lock").touch()
    (shared / ".folder").write_text(str(run))
    marker.Marker("run", target=str(tmp_path / "a"), world="real", memory=str(shared)).write(run)
    monkeypatch.setattr(memory, "home", lambda: tmp_path / "shm")
    return run


def recorded(run: Path) -> bytes:
    """The rows of a run."""
    return (run / "records.bin").read_bytes()


def full(*_: object, **__: object) -> Any:
    """A disk that takes no more."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_dead_run_is_recovered_with_all_its_rows(dead: Path, finished: Path) -> None:
    made = recovery.recovered(dead)
    assert made == dead.with_name("a") and recorded(made) == recorded(finished)
    assert not dead.exists() and not list(memory.home().iterdir())
    assert not list(made.glob("*.rows")) and marker.foreign(made) is None


@pytest.mark.parametrize("named", ["a.unfinished-1", "a", "renamed"])
def test_what_the_user_puts_into_an_unfinished_run_stays_the_users(dead: Path, named: str) -> None:
    """Also a capture and rows of the user's own, which are none of the run's loops."""
    theirs = dict.fromkeys(("notes.txt", "eth0.pcapng", "mine.rows", "inputs/mine"), b"\n\r\r\nmine")
    (dead / "inputs").mkdir()
    for name, content in theirs.items():
        (dead / name).write_bytes(content)
    if named != dead.name:
        dead.rename(dead.with_name(named))
    made = recovery.recovered(dead.with_name(named))
    assert {name: (made / name).read_bytes() for name in theirs} == theirs
    assert (made / "summary.json").is_file() and not results.is_unfinished(made)
    with (
        pytest.raises(ConfigError, match=r"holds eth0\.pcapng, which is not a result"),
        results.writing(made, "run"),
    ):
        pytest.fail("it was written")


def test_a_result_without_summary_is_recovered_and_the_users_files_stay(
    tmp_path: Path, finished: Path
) -> None:
    """Its analysis failed; then the user added a file."""
    with pytest.raises(OSError, match="No space"), results.writing(tmp_path / "a", "run") as place:
        for name in ("plan.json", "scenario.toml", "records.bin", "result.json"):
            shutil.copy(finished / name, place.path)
        full()
    (tmp_path / "a/notes.txt").write_text("mine")
    assert recovery.recovered(tmp_path / "a") == tmp_path / "a"
    assert marker.foreign(tmp_path / "a") == "notes.txt"
    (tmp_path / "a/notes.txt").unlink()
    assert marker.foreign(tmp_path / "a") is None


def test_what_was_whole_before_the_round_of_the_kill_stays_as_it_was(dead: Path, finished: Path) -> None:
    """`tcpsbed latency` on sockets has the echoes of all rounds in the summary, and the rows of the last one alone."""
    memory.sweep()
    (dead / "node0.0.ring.rows").unlink()
    for name in ("records.bin", "result.json"):
        shutil.copy(finished / name, dead)
    (dead / "summary.json").write_text('{"echo": "of all rounds"}')
    (dead / marker.AGAIN).mkdir()
    marker.Marker("run").write(dead / marker.AGAIN)
    (dead / marker.AGAIN / "node0.0.ring.rows").write_bytes(b"torso")
    made = recovery.recovered(dead)
    assert (made / "summary.json").read_text() == '{"echo": "of all rounds"}'
    assert marker.foreign(made) is None and not (made / marker.AGAIN).exists()


def test_a_run_that_was_killed_while_it_was_summed_up_is_summed_up(dead: Path, finished: Path) -> None:
    memory.sweep()
    (dead / "node0.0.ring.rows").unlink()
    for name in ("records.bin", "result.json", "summary.json"):
        shutil.copy(finished / name, dead)
    made = recovery.recovered(dead)
    assert (made / "series.json").is_file() and (made / "samples.parquet").is_file()


def test_in_a_folder_without_a_marker_nothing_is_removed(dead: Path, finished: Path) -> None:
    memory.sweep()
    (dead / ".tcpsbed").unlink()
    before = sorted(file.name for file in dead.iterdir())
    assert recovery.recovered(dead) == dead and recorded(dead) == recorded(finished)
    assert set(before) <= {file.name for file in dead.iterdir()}


@pytest.mark.parametrize("left", [0, 1])
def test_a_kill_while_parts_are_removed_loses_nothing(dead: Path, finished: Path, left: int) -> None:
    """All rows are in records.bin already, and of the parts so many are still there."""
    memory.sweep()
    shutil.copy(finished / "records.bin", dead)
    part = dead / "node0.0.ring.rows"
    part.write_bytes(part.read_bytes()[:ROW_BYTES]) if left else part.unlink()
    assert recorded(recovery.recovered(dead)) == recorded(finished)


def test_rows_that_cannot_be_saved_stay_in_memory(
    dead: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (dead / "node0.0.ring.rows").write_bytes(b"")  # the disk was full from the beginning
    (dead / "reserve.part").write_bytes(b"room")
    with monkeypatch.context() as disk:
        disk.setattr(memory._tcps, "Drain", full)
        folders.tend(dead.with_name("a"), say=False)
        memory.sweep()
        with pytest.raises(OSError, match="No space"):
            recovery.recovered(dead)
    assert "rows of a dead run stay there: [Errno 28] No space left" in capsys.readouterr().err
    assert recorded(recovery.recovered(dead)) == recorded(finished)


def test_rows_are_saved_once_by_whoever_comes_first(
    dead: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several processes start after a kill: another one sweeps while the first is about to save."""
    usual = memory._tcps.Drain

    def slow(*arguments: Any, **more: Any) -> Any:
        made = usual(*arguments, **more)
        monkeypatch.setattr(memory._tcps, "Drain", usual)
        memory.sweep()
        return made

    monkeypatch.setattr(memory._tcps, "Drain", slow)
    memory.sweep()
    assert (dead / "node0.0.ring.rows").read_bytes() == recorded(finished)


def test_memory_is_never_seen_without_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process sweeps just before this one has its lock."""
    (tmp_path / "shm").mkdir()
    monkeypatch.setattr(memory, "home", lambda: tmp_path / "shm")
    usual, seen = memory.fcntl.flock, []

    def late(descriptor: int, how: int) -> None:
        if not seen:
            seen.append(descriptor)
            memory.sweep()
        usual(descriptor, how)

    monkeypatch.setattr(memory.fcntl, "flock", late)
    with memory.folder() as shared:
        memory.sweep()
        assert seen and (shared / ".lock").is_file()
    assert not list((tmp_path / "shm").iterdir())


@pytest.fixture
def crowded(tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a run whose disk has no room for rows twice; the process that records it lives."""
    run = tmp_path / "a.unfinished-1"
    run.mkdir()
    (tmp_path / "shm").mkdir()
    monkeypatch.setattr(memory, "home", lambda: tmp_path / "shm")
    shutil.copy(finished / "plan.json", run)
    shutil.copy(finished / "scenario.toml", run)
    (run / "node0.0.ring.rows").write_bytes(recorded(finished))
    marker.Marker("run", target=str(tmp_path / "a"), world="real").write(run)
    usual = rows_._tcps.merge

    def merge(parts: list[Path], into: Path) -> Any:
        return usual(parts, into) if into.is_relative_to(tmp_path / "shm") else full()

    monkeypatch.setattr(rows_._tcps, "merge", merge)
    return run


def test_without_room_for_rows_twice_they_are_merged_in_memory(crowded: Path, finished: Path) -> None:
    with memory.folder(crowded) as shared:
        rows, _ = rows_.merged([crowded / "node0.0.ring.rows"], [], crowded, shared, [])
    assert recorded(crowded) == recorded(finished) and rows == len(recorded(finished)) // ROW_BYTES
    assert not list(memory.home().iterdir()) and not list(crowded.glob("*.rows"))


def test_rows_that_no_disk_takes_any_more_stay_in_memory(
    crowded: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program took the room of the parts in the moment when they went."""
    part = crowded / "node0.0.ring.rows"
    with (
        monkeypatch.context() as disk,
        pytest.raises(WorldError, match=r"No space .*: rows stay in .*tcpsbed report"),
        memory.folder(crowded) as shared,
    ):
        disk.setattr(rows_.shutil, "copyfile", full)
        rows_.merged([part], [], crowded, shared, [])
    assert folders.tend(crowded.with_name("a"), say=False) == [crowded]
    with monkeypatch.context() as disk:
        disk.setattr(memory.shutil, "copyfile", full)
        memory.sweep()
    assert recorded(recovery.recovered(crowded)) == recorded(finished)
    assert not list(memory.home().iterdir())


def test_packets_that_cannot_be_merged_stay_as_they_are(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, captures = [tmp_path / "node0.0.ring.rows"], [tmp_path / "node0.0.pcapng"]
    parts[0].write_bytes(recorded(finished))
    captures[0].write_bytes(b"packets")
    monkeypatch.setattr(rows_._tcps, "merge_captures", full)
    errors: list[str] = []
    rows_.merged(parts, captures, tmp_path, tmp_path / "memory", errors)
    assert captures[0].read_bytes() == b"packets" and not (tmp_path / "packets.pcapng").exists()
    assert "No space left on device: packets stay in node0.0.pcapng" in errors[0]


def test_packets_beyond_a_limit_are_told_with_the_reason_and_the_final_folder(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a.unfinished-1"
    folder.mkdir()
    parts, captures = [folder / "node0.0.ring.rows"], [folder / "node0.0.pcapng"]
    parts[0].write_bytes(recorded(finished))
    captures[0].write_bytes(b"packets")

    def limited(*_: object) -> None:
        raise OSError("a.part: File too large (os error 27)")

    monkeypatch.setattr(rows_._tcps, "merge_captures", limited)
    marker.Marker(marker.RUN, target=str(tmp_path / "a")).write(folder)
    errors: list[str] = []
    rows_.merged(parts, captures, folder, tmp_path / "memory", errors)
    said = f"{tmp_path / 'a' / 'packets.pcapng'}: a.part: File too large (os error 27): packets stay in node0.0.pcapng"
    assert errors == [said]


def test_a_limit_of_the_size_of_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(*_: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(rows_.os, "posix_fallocate", limited)
    with pytest.raises(WorldError, match=r"no room for a run.*ulimit -f"), rows_.reserve(tmp_path):
        pass
    assert "ulimit -f" in REMEDIES[errno.EFBIG] and "ulimit" not in REMEDIES[errno.ENOSPC]
    assert "ulimit -f" in str(of_run("world", "records.bin", errno=errno.EFBIG))


def test_a_result_of_a_run_has_no_name_that_is_not_listed(finished: Path) -> None:
    assert marker.foreign(finished) is None
    assert json.loads((finished / ".tcpsbed").read_text())["state"] == "whole" and os.access(
        finished, os.W_OK
    )


@pytest.mark.parametrize("before", [True, False])
def test_latest_says_that_the_newest_run_did_not_end(
    dead: Path, before: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(dead.parent)
    if before:
        tcpsbed.run(SCENARIO, out="older")
        Path("latest").symlink_to("older")
        os.utime(dead, ns=(2 * 10**18, 2 * 10**18))
        runs.opened(Path("latest"))
        said = capsys.readouterr().err
    else:
        with pytest.raises(DataError) as refused:
            runs.opened(Path("latest"))
        said = str(refused.value)
    assert "the newest run did not finish: a.unfinished-1 holds an interrupted run" in said
    assert "tcpsbed report a.unfinished-1" in said


def test_a_marker_that_names_a_folder_of_the_user_removes_nothing(dead: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "victim"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("precious")
    (theirs / ".lock").touch()
    for named in (theirs, memory.home() / "tcpsbed-2-link"):
        if named != theirs:
            named.symlink_to(theirs)
        marker.Marker("run", target=str(tmp_path / "a"), world="real", memory=str(named)).write(dead)
        with memory.rescued(dead):
            pass
        assert (theirs / "thesis.tex").read_text() == "precious", named


@pytest.mark.parametrize("state", [None, marker.WHOLE])
def test_rows_of_a_run_that_nobody_was_writing_are_not_cut(
    tmp_path: Path, finished: Path, state: str | None
) -> None:
    theirs, run = tmp_path / "thesis.bin", tmp_path / "run"
    run.mkdir()
    for name in ("plan.json", "scenario.toml"):
        shutil.copy(finished / name, run)
    theirs.write_bytes(recorded(finished) + b"my precious tail")
    (run / "records.bin").symlink_to(theirs)
    if state is not None:
        marker.Marker("run", state).write(run)
    with pytest.raises(DataError, match="found 16 B behind"):
        recovery.recover(run)
    assert theirs.read_bytes().endswith(b"my precious tail")


def test_a_report_of_a_folder_without_a_marker_is_written_over_nothing(
    tmp_path: Path, finished: Path
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(finished, copied, ignore=shutil.ignore_patterns(marker.NAME))
    (copied / "report.html").write_text("my own text")
    with pytest.raises(ConfigError, match=r"report\.html"), folders.tended(copied, writes=["report.html"]):
        pass
    assert (copied / "report.html").read_text() == "my own text"


def test_a_marker_that_is_no_text_of_ours_is_none(tmp_path: Path) -> None:
    (tmp_path / marker.NAME).write_text("[" * 100_000)
    assert marker.read(tmp_path) is None
    (tmp_path / marker.NAME).unlink()
    os.mkfifo(tmp_path / marker.NAME)
    assert marker.read(tmp_path) is None


def test_a_folder_for_shared_memory_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(memory.VARIABLE, str(tmp_path))
    with memory.folder() as made:
        assert made.parent == tmp_path
    monkeypatch.setenv(memory.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(
        ConfigError,
        match=r"TCPSBED_MEMORY: '.*none' is not a writable folder; allowed: TCPSBED_MEMORY=/dev/shm",
    ):
        memory.home()
