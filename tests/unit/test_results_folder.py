"""Nothing of the user's is ever lost: results go only where nothing else is, and take their place whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest
from command import scenario, start, tcpsbed

from tcpsbed import results
from tcpsbed.errors import ConfigError
from tcpsbed.results import exchange, folder, lock, marker

KILLS = 20
"""Moments at which a process is killed."""


def listed(place: Path) -> dict[str, str]:
    """All files below a folder with their content."""
    return {
        str(file.relative_to(place)): file.read_text(errors="replace")
        for file in sorted(place.rglob("*"))
        if file.is_file() and "site" not in file.parts
    }


def names(place: Path) -> list[str]:
    """What is in a folder."""
    return sorted(file.name for file in place.iterdir())


def written(out: Path, content: str, kind: str = "run") -> None:
    """A result of two files."""
    with results.writing(out, kind) as place:
        (place.path / "summary.json").write_text(content)
        (place.path / "inputs").mkdir()
        (place.path / "inputs" / "flow.f64").write_text(content)


@contextmanager
def refused(place: Path, said: str) -> Iterator[None]:
    """What is refused changes nothing below a folder."""
    before = listed(place)
    with pytest.raises(ConfigError, match=said):
        yield
    assert listed(place) == before


def test_a_result_takes_the_place_of_the_former_one_whole(tmp_path: Path) -> None:
    with results.writing(tmp_path / "a", "run") as place:
        (place.path / "series.json").write_text("x")
    written(tmp_path / "a", "two")
    assert set(listed(tmp_path / "a")) == {".tcpsbed", "summary.json", "inputs/flow.f64"}
    assert names(tmp_path) == ["a"]


def test_the_former_result_is_whole_while_the_next_is_written(tmp_path: Path) -> None:
    written(tmp_path / "a", "one")
    with results.writing(tmp_path / "a", "run") as place:
        (place.path / "summary.json").write_text("half of tw")
        assert listed(tmp_path / "a")["summary.json"] == "one"


def test_a_result_that_finds_no_room_at_its_end_is_named_and_can_be_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "a", "one")
    write = marker.Marker.write

    def full(self: marker.Marker, place: Path) -> None:
        if self.state == marker.WHOLE:
            raise OSError(errno.ENOSPC, "full")
        write(self, place)

    monkeypatch.setattr(marker.Marker, "write", full)
    with pytest.raises(OSError, match=f"'{tmp_path / 'a'}'"):
        written(tmp_path / "a", "two")
    assert listed(tmp_path / "a")["summary.json"] == "one"
    assert "recover it with: tcpsbed report" in capsys.readouterr().err


def test_a_place_of_another_user_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a", "one")

    def denied(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "the lock")

    with monkeypatch.context() as as_another:  # root may write everywhere
        as_another.setattr(os, "open", denied)
        with refused(tmp_path, rf"^{tmp_path}/a: cannot be written \(Permission denied\); allowed: a folder"):
            folder.tended(tmp_path / "a", writes=[]).__enter__()
        as_another.setattr(os, "access", lambda *_: False)
        for name in ("b", "b/c"):
            with refused(tmp_path, f"^{tmp_path}: --out: cannot be written; allowed: a folder of your own"):
                written(tmp_path / name, "two")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_work_that_fails_leaves_the_former_one_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    written(tmp_path / "a", "one")
    with pytest.raises(error), results.writing(tmp_path / "a", "run") as place:
        (place.path / "summary.json").write_text("two")
        raise error
    assert listed(tmp_path / "a")["summary.json"] == "one" and names(tmp_path) == ["a"]


def test_work_that_fails_leaves_no_new_folder_and_none_above_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError), results.writing(tmp_path / "x/y/a", "run"):
        raise ValueError
    assert names(tmp_path) == []


@pytest.mark.parametrize("stands_in_it", [False, True])
def test_work_that_fails_leaves_an_empty_folder_of_the_users(
    tmp_path: Path, stands_in_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o750)
    monkeypatch.chdir(mine if stands_in_it else tmp_path)
    with pytest.raises(ValueError), results.writing(mine, "run"):
        raise ValueError
    assert names(mine) == []
    with results.growing(mine, "sweep"):
        pass
    assert names(mine) == [] and mine.stat().st_mode & 0o777 == 0o750
    left = tmp_path / "mine.unfinished-1"
    left.mkdir()
    marker.Marker("run", target=str(mine)).write(left)
    folder.tend_all(tmp_path)
    assert names(tmp_path) == ["mine"]


def test_a_run_without_a_name_that_fails_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError), results.writing(results.fresh("one"), "run"):
        raise ValueError
    assert names(tmp_path / "runs") == []


def test_a_result_that_is_there_already_is_kept_however_the_command_ends(tmp_path: Path) -> None:
    written(tmp_path / "a", "one")
    with pytest.raises(KeyboardInterrupt), results.writing(tmp_path / "a", "run") as place:
        (place.path / "summary.json").write_text("two")
        place.keep = True
        raise KeyboardInterrupt
    assert listed(tmp_path / "a")["summary.json"] == "two"


@pytest.mark.parametrize(
    "theirs", ["notes.txt", "inputs/mine.csv", "seeds/mine", "work/mine", ".hidden", "empty/"]
)
@pytest.mark.parametrize("marked", [False, True])
def test_a_folder_with_something_of_the_users_is_refused(tmp_path: Path, theirs: str, marked: bool) -> None:
    if marked:
        written(tmp_path / "a", "one")
    (tmp_path / "a" / theirs).parent.mkdir(parents=True, exist_ok=True)
    if theirs.endswith("/"):
        (tmp_path / "a" / theirs).mkdir(parents=True)
    else:
        (tmp_path / "a" / theirs).write_text("mine")
    for kind in ("run", "sweep", "reproduction"):
        with (
            refused(tmp_path, f"holds {theirs}, which is no result of tcpsbed"),
            results.growing(tmp_path / "a", kind)
            if kind == "sweep"
            else results.writing(tmp_path / "a", kind),
        ):
            pytest.fail("it was written")


def test_a_file_of_ours_that_the_user_edited_is_the_users(tmp_path: Path) -> None:
    written(tmp_path / "a", "one")
    (tmp_path / "a/summary.json").write_text("one, and what I think of it")
    with refused(tmp_path, "holds summary.json, which was changed since"):
        written(tmp_path / "a", "two")


@pytest.mark.parametrize("coarse", [False, True])
def test_an_edit_of_the_same_length_a_moment_later_is_the_users(tmp_path: Path, coarse: bool) -> None:
    """Also on a file system that keeps moments of 2 s, where an edit leaves the very moment."""
    with results.writing(tmp_path / "a", "run") as place:
        (place.path / "summary.json").write_text("one")
        if coarse:
            os.utime(place.path / "summary.json", (1e9, 1e9))
    (tmp_path / "a/summary.json").write_text("two")
    if coarse:
        os.utime(tmp_path / "a/summary.json", (1e9, 1e9))
    with refused(tmp_path, "holds summary.json, which was changed since"):
        written(tmp_path / "a", "new")


@pytest.mark.parametrize("ns", [10**9, 10**9 + 1])
def test_of_a_file_too_large_to_be_known_a_moment_that_was_made_coarser_is_enough(
    tmp_path: Path, ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker, "MOST_HASHED", 2)
    with results.writing(tmp_path / "a", "run") as place:
        (place.path / "summary.json").write_text("one")
        os.utime(place.path / "summary.json", ns=(0, 10**9 + 5))
    os.utime(tmp_path / "a/summary.json", ns=(0, ns))
    with nullcontext() if ns == 10**9 else refused(tmp_path, "copied or changed since"):
        written(tmp_path / "a", "new")


def test_a_copy_of_a_result_is_a_result_until_somebody_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a", "one")
    grown(tmp_path / "s", "one")
    for name in ("a", "s"):
        shutil.copytree(tmp_path / name, tmp_path / f"{name}-copy", copy_function=shutil.copyfile)
        for file in (tmp_path / f"{name}-copy").rglob("*.*"):
            os.utime(file, (1e9, 1e9))
    grown(tmp_path / "s-copy", "two")
    assert listed(tmp_path / "s-copy")["cells/one.json"] == "one"
    (tmp_path / "a-copy/summary.json").write_text("two")
    os.utime(tmp_path / "a-copy/summary.json", (1e9, 1e9))
    with refused(tmp_path, "a-copy: --out: holds summary.json, which was changed since"):
        written(tmp_path / "a-copy", "three")
    (tmp_path / "a-copy/summary.json").write_text("one")
    os.utime(tmp_path / "a-copy/summary.json", (1e9, 1e9))
    written(tmp_path / "a-copy", "three")
    assert listed(tmp_path / "a-copy")["summary.json"] == "three"
    monkeypatch.setattr(marker, "MOST_HASHED", 2)
    written(tmp_path / "a", "four")
    os.utime(tmp_path / "a/summary.json", (1e9, 1e9))
    with refused(tmp_path, "holds summary.json, which was copied or changed since"):
        written(tmp_path / "a", "five")


def test_a_link_to_the_users_file_in_a_result_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/data").write_text("mine")
    written(tmp_path / "a", "one")
    (tmp_path / "a/data").symlink_to(tmp_path / "mine")
    with refused(tmp_path, "holds data"):
        written(tmp_path / "a", "two")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    written(tmp_path / "a", "one")
    (tmp_path / "latest").symlink_to("a")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name, said in (("file", "is no folder"), ("latest", "is a link to a"), ("dangling", "is a link")):
        with refused(tmp_path, said):
            written(tmp_path / name, "two")


@pytest.mark.parametrize("out", ["a", "a/.", "b/../a", "."])
def test_a_folder_with_a_file_that_is_read_is_refused(
    tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a", "one")
    (tmp_path / "b").mkdir()
    with (
        refused(tmp_path, "(holds |is above .*)summary.json"),
        results.writing(out, "run", inputs=[Path("b/../a/summary.json")]),
    ):
        pytest.fail("it was written")


def test_a_second_writer_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    with results.writing(tmp_path / "a", "run") as place:
        (place.path / "report.html").write_text("one")
        for kind in ("run", "reproduction"):
            with pytest.raises(ConfigError, match=f"another tcpsbed .process {os.getpid()}."):
                written(tmp_path / "a", "two", kind)
    assert listed(tmp_path / "a")["report.html"] == "one" and names(tmp_path) == ["a"]


def test_a_folder_where_somebody_stands_stays_the_folder_that_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    for content in ("one", "two"):
        written(Path(), content)
        assert Path("summary.json").read_text() == content and Path("inputs/flow.f64").read_text() == content
    assert set(names(Path())) == {".tcpsbed", "summary.json", "inputs"}


def test_without_an_exchange_in_one_step_two_renames_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_renameat2", lambda: None)
    for content in ("one", "two", "three"):
        written(tmp_path / "a", content)
    assert listed(tmp_path / "a")["summary.json"] == "three" and names(tmp_path) == ["a"]


# -- the user's files that come meanwhile ----------------------------------------------------------------------


def left_of(out: Path) -> Path:
    """The only folder that a run left beside its result, or in it."""
    (left,) = [*out.parent.glob(f"{out.name}.unfinished-*"), *out.glob(".tcpsbed-unfinished-*")]
    return left


@pytest.mark.parametrize("theirs", ["notes.txt", "report.html", "inputs/mine.f64", "summary.json"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_file_that_comes_into_the_folder_during_a_run_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str, inside: bool
) -> None:
    out = tmp_path / "a"
    written(out, "one")
    monkeypatch.chdir(out if inside else tmp_path)
    with (
        pytest.raises(ConfigError, match=f"holds {theirs}, .* move {theirs} away"),
        results.writing(out, "run") as place,
    ):
        (place.path / "summary.json").write_text("two")
        (place.path / "report.html").write_text("two")
        (out / theirs).write_text("mine")
    assert (out / theirs).read_text() == "mine" and (out / "inputs/flow.f64").read_text() == "one"
    assert (left_of(out) / "report.html").read_text() == "two"
    with refused(tmp_path, f"holds {theirs}"):
        written(out, "three")
    folder.tend_all(tmp_path)
    assert (out / theirs).read_text() == "mine"
    (out / theirs).rename(tmp_path / "mine")
    folder.tend(out, say=False)
    assert (out / "report.html").read_text() == "two", "the exchange is completed"
    assert not (out / "inputs").exists()
    written(out, "four")
    assert (out / "summary.json").read_text() == "four" and (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("swaps", [False, True])
def test_a_former_result_is_never_put_back_over_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swaps: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file comes in the very moment of the exchange: it stays in what was the folder, and nothing else does."""
    usual = exchange.swap

    def late(one: Path, other: Path) -> bool:
        (other / "notes.txt").write_text("mine")
        return usual(one, other) if swaps else False

    written(tmp_path / "a", "one")
    monkeypatch.setattr(exchange, "swap", late)
    written(tmp_path / "a", "two")
    monkeypatch.undo()
    assert names(left_of(tmp_path / "a")) == ["notes.txt"]
    assert f"{left_of(tmp_path / 'a')} holds what came into" in capsys.readouterr().err
    written(tmp_path / "a", "three")
    written(tmp_path / "a", "four")
    folder.tend_all(tmp_path)
    assert listed(tmp_path / "a")["summary.json"] == "four"
    assert (left_of(tmp_path / "a") / "notes.txt").read_text() == "mine"


def test_a_file_that_comes_into_what_is_being_written_is_not_ours(tmp_path: Path) -> None:
    with results.writing(tmp_path / "a", "run") as place:
        (place.path / "summary.json").write_text("one")
        (place.path / "notes.txt").write_text("mine")
    with refused(tmp_path, "holds notes.txt"):
        written(tmp_path / "a", "two")
    with pytest.raises(ValueError), results.writing(tmp_path / "b", "run") as place:
        (place.path / "summary.json").write_text("one")
        (place.path / "notes.txt").write_text("mine")
        raise ValueError
    folder.tend_all(tmp_path)
    assert listed(left_of(tmp_path / "b")) == {"notes.txt": "mine"}


@pytest.mark.parametrize("name", ["a.unfinished-mine", "a.unfinished-1"])
def test_results_that_are_called_like_unfinished_ones_stay(tmp_path: Path, name: str) -> None:
    written(tmp_path / name, "mine")
    with results.growing(tmp_path / "a.unfinished-2", "sweep") as out:
        (out / "sweep.json").write_text("{}")
    before = listed(tmp_path)
    written(tmp_path / "a", "one")
    assert before.items() <= listed(tmp_path).items()


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("swaps", [False, True])
def test_an_exchange_cut_off_anywhere_is_completed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swaps: bool, inside: bool
) -> None:
    """Every step that changes a name is the last one of a process, in turn."""
    if not swaps:
        monkeypatch.setattr(exchange, "_renameat2", lambda: None)
    reached = set()
    for steps in range(40):
        out = tmp_path / f"at{steps}" / "a"
        written(out, "one")
        if inside:
            monkeypatch.chdir(out)
        dies_after(monkeypatch, steps)
        with suppress(RuntimeError):
            written(out, "two")
        monkeypatch.undo()
        if not swaps:
            monkeypatch.setattr(exchange, "_renameat2", lambda: None)
        folder.tend(out, say=False)
        found = listed(out)
        assert {found.pop(name) for name in ("summary.json", "inputs/flow.f64")} in ({"one"}, {"two"}), steps
        assert set(found) == {".tcpsbed"} and names(out.parent) == ["a"], steps
        reached.add((out / "summary.json").read_text())
        written(out, "three")
        assert (out / "summary.json").read_text() == "three"
    assert reached == {"one", "two"}


def dies_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Lets so many changes of names happen from here on, then none."""
    left = [steps]

    def limited(name: str) -> None:
        usual = getattr(Path, name)

        def act(*args: object, **more: object) -> object:
            if left[0] == 0:
                raise RuntimeError("killed")
            left[0] -= 1
            return usual(*args, **more)

        patch.setattr(Path, name, act)

    for name in ("rename", "replace", "unlink", "rmdir"):
        limited(name)
    patch.setattr(folder, "_leave", lambda place: None)
    patch.setattr(folder.lock, "held", lambda *_: nullcontext())


def test_a_folder_of_a_sweep_is_no_folder_for_a_run(tmp_path: Path) -> None:
    with results.growing(tmp_path / "s", "sweep") as out:
        (out / "sweep.json").write_text("{}")
    with refused(tmp_path, "holds a sweep, not a run"):
        written(tmp_path / "s", "two")
    with results.growing(tmp_path / "s", "sweep") as out:
        assert (out / "sweep.json").read_text() == "{}"


def grown(place: Path, content: str) -> None:
    """A command adds to a folder, as `sweep` does: its page anew, and a cell."""
    with results.growing(place, "sweep") as out:
        results.write_whole(out / "sweep.html", content)
        results.write_whole(out / f"cells/{content}.json", content)


@pytest.mark.parametrize("theirs", ["sweep.html", "cells/one.json"])
def test_a_file_of_a_growing_folder_that_the_user_edited_is_the_users(tmp_path: Path, theirs: str) -> None:
    for content in ("one", "two"):
        grown(tmp_path / "s", content)
    assert listed(tmp_path / "s")["sweep.html"] == "two"
    (tmp_path / "s" / theirs).write_text("what I think of it")
    with refused(tmp_path, f"holds {theirs}, which was changed since tcpsbed wrote it"):
        grown(tmp_path / "s", "three")
    (tmp_path / "s" / theirs).rename(tmp_path / "mine")
    grown(tmp_path / "s", "three")
    assert listed(tmp_path / "s")["sweep.html"] == "three"


@pytest.mark.parametrize("before", [False, True])
def test_a_file_of_a_growing_folder_that_the_user_edits_meanwhile_stays(tmp_path: Path, before: bool) -> None:
    grown(tmp_path / "s", "one")
    page = tmp_path / "s/sweep.html"
    with (
        pytest.raises(ConfigError, match=r"sweep\.html: came, or was changed, .* what was made is in"),
        results.growing(tmp_path / "s", "sweep"),
    ):
        if not before:
            results.write_whole(page, "two")
        page.write_text("what I think of it")
        results.write_whole(page, "three")
    assert page.read_text() == "what I think of it"
    with refused(tmp_path, "holds sweep"):
        grown(tmp_path / "s", "four")


def test_a_growing_folder_whose_command_was_killed_goes_on(tmp_path: Path) -> None:
    grown(tmp_path / "s", "one")
    with results.growing(tmp_path / "s", "sweep") as out:
        results.write_whole(out / "sweep.html", "two")
        killed = (out / ".tcpsbed").read_text()
    (tmp_path / "s/.tcpsbed").write_text(killed)
    grown(tmp_path / "s", "three")
    assert listed(tmp_path / "s")["sweep.html"] == "three"


def test_a_marker_is_read_as_often_however_much_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep that is extended by n cells takes n steps, not their square."""
    grown(tmp_path / "s", "one")
    reads: list[Path] = []
    read = marker.read
    monkeypatch.setattr(marker, "read", lambda folder: (reads.append(folder), read(folder))[1])
    counts = []
    for cells in (2, 20):
        before = len(reads)
        with results.growing(tmp_path / "s", "sweep") as out:
            for cell in range(cells):
                results.write_whole(out / f"cells/{cells}-{cell}.json", "{}")
        counts.append(len(reads) - before)
    assert counts[0] == counts[1]


def test_what_a_kill_left_of_a_file_goes_when_a_folder_grows_again(tmp_path: Path) -> None:
    with results.growing(tmp_path / "s", "sweep") as out:
        (out / "cells").mkdir()
        (out / "cells/one.json").write_text("{}")
    for left in ("cells/.two.json.77.part.json", ".sweep.parquet.77.part.parquet"):
        (tmp_path / "s" / left).write_text("{")
    with results.growing(tmp_path / "s", "sweep") as out:
        assert set(listed(out)) == {".tcpsbed", "cells/one.json"}


def test_files_added_to_a_result_are_ours_and_others_stay(tmp_path: Path) -> None:
    written(tmp_path / "a", "one")
    with results.tended(tmp_path / "a", writes=["samples.csv"]):
        (tmp_path / "a/samples.csv").write_text("1,2")
    written(tmp_path / "a", "two")
    (tmp_path / "a/samples.csv").write_text("mine")
    with (
        refused(tmp_path, "samples.csv: exists already"),
        results.tended(tmp_path / "a", writes=["samples.csv"]),
    ):
        pytest.fail("it was written")


def test_a_single_file_is_written_whole_and_never_over_one_of_the_users(tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    results.may_write(file)
    with pytest.raises(ValueError), results.whole(file) as part:
        part.write_text("half")
        raise ValueError
    assert names(tmp_path) == []
    results.write_whole(file, "drawn")
    results.may_write(file)  # it is ours
    file.write_text("drawn, and mended by hand")
    with refused(tmp_path, "exists already"):
        results.may_write(file)
    results.may_write(file, force=True)
    with pytest.raises(ConfigError, match="is a folder"):
        results.may_write(tmp_path)


@pytest.mark.parametrize("leads", ["mine.svg", "nowhere.svg"])
def test_a_single_file_goes_through_no_link(tmp_path: Path, leads: str) -> None:
    (tmp_path / "mine.svg").write_text("mine")
    (tmp_path / "map.svg").symlink_to(leads)
    with refused(tmp_path, f"map.svg: is a link to {leads}"):
        results.may_write(tmp_path / "map.svg", force=True)
    with refused(tmp_path, f"map.svg: is a link to {leads}"):
        results.write_whole(tmp_path / "map.svg", "drawn")
    written(tmp_path / "a", "one")
    (tmp_path / "a/report.html").symlink_to(tmp_path / leads)
    with (
        refused(tmp_path, "report.html: is a link to .*svg"),
        results.tended(tmp_path / "a", writes=["report.html"], force=True),
    ):
        results.write_whole(tmp_path / "a/report.html", "drawn")


def test_what_a_command_reads_is_not_written_whatever_force_says(tmp_path: Path) -> None:
    mine, run = tmp_path / "mine.toml", tmp_path / "run"
    mine.write_text("mine")
    os.link(mine, tmp_path / "same.toml")
    with refused(tmp_path, "same.toml: is read by this command"):
        results.may_write(tmp_path / "same.toml", force=True, reads=[mine])
    written(run, "one")
    with refused(tmp_path, "inputs/flow.f64: is a file of the run in"):
        results.may_write(run / "inputs/flow.f64", force=True)
    (run / ".tcpsbed").unlink()
    with refused(tmp_path, "summary.json: is a file of .*run, which this command reads"):
        results.may_write(run / "summary.json", force=True, reads=[run])
    results.may_write(run / "new.csv", reads=[run])


def test_a_folder_far_above_an_input_is_told_as_above_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/s.toml").write_text("mine")
    with (
        refused(tmp_path, f"is above {tmp_path}/deep/s.toml, which this command reads"),
        results.writing(tmp_path, "run", inputs=[tmp_path / "deep/s.toml"]),
    ):
        pytest.fail("it was written")


def test_locks_that_nobody_holds_are_swept(tmp_path: Path) -> None:
    written(tmp_path / "a", "one")
    left = [tmp_path / ".gone.tcpsbed-lock", tmp_path / ".a.tcpsbed-lock", tmp_path / "a/.tcpsbed-lock"]
    for file in left:
        file.write_text("4711\n")
    with lock.held(left[1], tmp_path / "a"):
        results.tend_all(tmp_path)
        assert [file.exists() for file in left] == [False, True, False]


def test_a_full_device_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(OSError) as error:
        results.write_whole(Path("/dev/full"), "text")
    assert (error.value.filename, error.value.strerror) == ("/dev/full", "No space left on device")
    with pytest.raises(OSError) as error, results.writing(tmp_path / "a", "run"):
        raise OSError(28, "No space left on device")
    assert error.value.filename == str(tmp_path / "a")


def test_where_no_runs_can_be_made_another_folder_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")
    with pytest.raises(
        ConfigError, match=r"runs: --out: cannot be made here .*; allowed: a folder that you may"
    ):
        results.fresh("mine")


WRITER = """
import sys, time
from pathlib import Path
from tcpsbed import results
number = 0
while True:
    number += 1
    with results.writing("a", "run") as place:
        for name in ("plan.json", "series.json", "summary.json"):
            (place.path / name).write_text(str(number))
"""


def test_a_kill_at_any_moment_leaves_one_whole_result(tmp_path: Path) -> None:
    """Killed while it exchanges one result after the other, at moments of chance."""
    for kill in range(KILLS):
        child = subprocess.Popen([sys.executable, "-c", WRITER], cwd=tmp_path)
        while not (tmp_path / "a/summary.json").exists() or (kill == 0 and child.poll() is not None):
            time.sleep(0.01)
        time.sleep(0.13 + 0.0173 * kill)
        child.kill()
        child.wait()
        folder.tend(tmp_path / "a", say=False)
        found = {(tmp_path / "a" / name).read_text() for name in ("plan.json", "series.json", "summary.json")}
        assert len(found) == 1, found
        assert marker.foreign(tmp_path / "a") is None
        assert [name for name in names(tmp_path) if not name.endswith("-lock")] == ["a"]


# -- the commands, with stand-ins for what they run ------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "short.toml", "--out", "."),
        ("run", "short.toml", "--out", "../{name}"),
        ("sweep", "short.toml", "--over", "seed=1,2", "--out", "."),
        ("latency", "short.toml", "--out", "."),
        ("run", "short.toml", "--out", "seeds"),
    ],
)
def test_a_command_touches_nothing_of_the_users(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    scenario(tmp_path)
    for name in ("seeds/mine", "work/mine", "cells/mine.json", "summary.json", "report.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = listed(tmp_path)
    done = tcpsbed(tmp_path, *(part.format(name=tmp_path.name) for part in arguments))
    assert done.returncode == 2 and "--out: holds" in done.stderr, done.stderr
    assert listed(tmp_path) == before


def test_a_run_of_its_own_scenario_into_its_own_folder_is_refused(tmp_path: Path) -> None:
    assert tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--out", "a", "-q").returncode == 0
    before = listed(tmp_path)
    for out in ("a", "./a", "runs/../a"):
        done = tcpsbed(tmp_path, "run", "a/scenario.toml", "--out", out)
        assert done.returncode == 2 and "holds scenario.toml" in done.stderr, done.stderr
    assert {name: text for name, text in listed(tmp_path).items() if name in before} == before


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\ntakes_s = 4.0\n')
    first = start(tmp_path, "run", str(file), "--out", "a", "-q")
    while not list(tmp_path.glob("a.unfinished-*")):
        time.sleep(0.02)
    done = tcpsbed(tmp_path, "run", str(file), "--out", "a", "-q")
    assert done.returncode == 2
    assert f"a: --out: is being written by another tcpsbed (process {first.pid})" in done.stderr
    assert first.wait(60) == 0
    assert [name for name in names(tmp_path) if name != "site"] == ["a", "short.toml"]


def test_the_latest_run_is_one_that_came_to_an_end(tmp_path: Path) -> None:
    file = scenario(tmp_path)
    assert tcpsbed(tmp_path, "run", str(file), "-q").returncode == 0
    latest = (tmp_path / "runs/latest").readlink()
    assert tcpsbed(tmp_path, "run", str(file), "-q", "--set", 'fault="world"').returncode == 2
    assert (tmp_path / "runs/latest").readlink() == latest
    assert names(tmp_path / "runs") == sorted(["latest", str(latest)])


@pytest.mark.parametrize(
    "number",
    ["SIGHUP", "SIGINT", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGQUIT"))],
)
def test_a_sweep_ends_with_what_asks_for_its_end_and_can_go_on(tmp_path: Path, number: str) -> None:
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\ntakes_s = 5.0\n')
    going = start(tmp_path, "sweep", str(file), "--over", "delay_ms=1,2", "--seeds", "2", "--out", "s")
    while not list(tmp_path.glob("s/work/*")):
        time.sleep(0.02)
    going.send_signal(signal.Signals[number])
    _, errors = going.communicate(timeout=60)
    assert going.returncode == 130 and "the same command goes on from there" in errors, errors


def test_what_is_ignored_from_the_start_stays_so(tmp_path: Path) -> None:
    """As under nohup: a run is not ended by a terminal that is closed."""
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\ntakes_s = 1.0\n')
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGINT)}
    try:
        going = start(tmp_path, "run", str(file), "--out", "a", "-q")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    while not list(tmp_path.glob("a.unfinished-*")):
        time.sleep(0.02)
    for number in before:
        going.send_signal(number)
    assert going.wait(60) == 0 and json.loads((tmp_path / "a/summary.json").read_text())


def test_a_sound_of_the_users_is_not_recorded_over(tmp_path: Path) -> None:
    """What a run writes bit by bit: the next run may write it again, as long as nobody changed it."""
    file = tmp_path / "heard.wav"
    for content in ("one", "two"):
        with results.streamed([file]):
            file.write_text(content)
    file.write_text("mine")
    with refused(tmp_path, "heard.wav: exists already"), results.streamed([file]):
        pytest.fail("it was written")
    with results.streamed([tmp_path / "never-opened.wav"]):
        pass
    assert names(tmp_path) == ["heard.wav"]


def test_a_sound_of_a_run_that_was_killed_is_the_users(tmp_path: Path) -> None:
    """What a run of ours writes now may be written by another one; nobody knows what became of it after a kill."""
    file = tmp_path / "heard.wav"
    script = "import sys, pathlib; from tcpsbed import results\nwith results.streamed([pathlib.Path(sys.argv[1])]):\n"
    script += "    pathlib.Path(sys.argv[1]).write_text('half'); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        results.may_write(file)
        child.kill()
        child.wait()
    (tmp_path / "mine.wav").write_text("mine")
    shutil.copyfile(tmp_path / "mine.wav", file)  # keeps what the file bears
    with refused(tmp_path, "heard.wav: exists already"), results.streamed([file]):
        pytest.fail("it was written")


@pytest.mark.parametrize("before", [None, "drawn long ago"])
@pytest.mark.parametrize("asked", [False, True])
def test_a_file_that_comes_while_another_is_made_stays(
    tmp_path: Path, before: str | None, asked: bool
) -> None:
    file = tmp_path / "map.svg"
    if before is not None:
        file.write_text(before)
    if asked:
        results.may_write(file, force=True)
        file.write_text("mine, of this hour")
    said = r"map\.svg: came, or was changed, .* is in .*map\.\d+\.svg"
    with pytest.raises(ConfigError, match=said), results.whole(file) as part:
        part.write_text("drawn")
        if not asked:
            file.write_text("mine, of this hour")
    assert file.read_text() == "mine, of this hour"
    assert [kept.read_text() for kept in tmp_path.glob("map.*.svg")] == ["drawn"]


def test_runs_without_a_name_are_tended_at_the_next_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was killed under a name of its own date is found by the next run, which has another."""
    for name, rows in (("early", b""), ("late", b"x" * 64)):
        (tmp_path / name).mkdir()
        marker.Marker("run", marker.WHOLE).write(tmp_path / name)
        left = tmp_path / f"{name}.unfinished-1"
        left.mkdir()
        marker.Marker("run", target=str(tmp_path / name)).write(left)
        (left / "plan.json").write_text("{}")
        (left / "records.bin").write_bytes(rows)
    (tmp_path / "theirs.unfinished-business").mkdir()
    (tmp_path / "theirs.unfinished-business/notes").write_text("mine")
    folder.tend_all(tmp_path)
    assert f"tcpsbed report {tmp_path / 'late.unfinished-1'}" in capsys.readouterr().err
    assert names(tmp_path) == ["late", "late.unfinished-1", "theirs.unfinished-business"]
    with results.writing(tmp_path / "being", "run") as place:
        (place.path / "plan.json").write_text("x")
        folder.tend_all(tmp_path)
        assert (place.path / "plan.json").exists(), "one that is being written stays"


def test_commands_that_read_a_run_name_the_interrupted_one_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    left = Path("runs/x.unfinished-1234")
    left.mkdir(parents=True)
    marker.Marker("run", target=str(tmp_path / "runs/x")).write(left)
    assert results.interrupted(Path("runs/x")) == [], "nothing was recorded"
    (left / "plan.json").write_text("{}")
    (left / "records.bin").write_bytes(b"x" * 32)
    said = f"{left} holds an interrupted run; recover it with: tcpsbed report {left}"
    for command in (
        ("show", "runs/x"),
        ("report", "runs/x"),
        ("check-qos", "runs/x", "--profile", "lip-sync"),
    ):
        done = tcpsbed(tmp_path, *command)
        assert done.returncode == 2 and said in done.stderr, command
    Path("runs/x").mkdir()
    Path("runs/x/summary.json").write_text("{}")
    assert results.interrupted(Path("runs/x")) == [said]
    with lock.held(folder.lock_of(tmp_path / "runs/x"), tmp_path / "runs/x"):
        assert results.interrupted(Path("runs/x")) == [], "it is being written"
