"""Nothing of the user's is ever lost: results go only where nothing else is, and take their place whole."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from result_files import grown, listed, names, refused, written

from tcpsbed import results
from tcpsbed.errors import ConfigError
from tcpsbed.results import exchange, folder, lock, marker


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
        with refused(tmp_path, rf"^{tmp_path}/a cannot be written \(Permission denied\); allowed: a folder"):
            folder.tended(tmp_path / "a", writes=[]).__enter__()
        as_another.setattr(os, "access", lambda *_: False)
        for name in ("b", "b/c"):
            with refused(tmp_path, f"^--out: {tmp_path} cannot be written; allowed: a folder of your own"):
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
            refused(tmp_path, f"holds {theirs}, which is not a result of tcpsbed"),
            results.growing(tmp_path / "a", kind)
            if kind == "sweep"
            else results.writing(tmp_path / "a", kind),
        ):
            pytest.fail("it was written")


@pytest.mark.parametrize("kind", ["step", "map", "rerun", "sweep", "study"])
def test_a_result_of_another_kind_is_refused_and_a_name_without_one_is_not(tmp_path: Path, kind: str) -> None:
    write = results.growing if kind in marker.GROWS else results.writing
    written(tmp_path / "a", "one")
    with refused(tmp_path, f"holds a run, not a {kind}"), write(tmp_path / "a", kind):
        pytest.fail("it was written")
    assert listed(tmp_path / "a")["summary.json"] == "one"
    (tmp_path / "b").mkdir()
    marker.Marker("run", marker.WHOLE).write(tmp_path / "b")
    with write(tmp_path / "b", kind) as made:
        place = getattr(made, "path", made)
        assert marker.kind_of(place) == kind
        (place / next(name for name in marker.LAYOUT[kind] if name.endswith(".json"))).write_text("{}")
    assert marker.kind_of(tmp_path / "b") == kind


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
    with refused(tmp_path, "--out: .*a-copy holds summary.json, which was changed since"):
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
    for name, said in (("file", "is a file"), ("latest", "is a link to a"), ("dangling", "is a link")):
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
    assert f"{left_of(tmp_path / 'a')} holds files that were created in" in capsys.readouterr().err
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


@pytest.mark.parametrize("kind", ["link", "text", "pipe", "folder"])
def test_what_stands_where_the_lock_would_is_kept_and_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "mine").write_text("precious")
    there = tmp_path / ".a.tcpsbed-lock"
    make = {
        "link": lambda: there.symlink_to("mine"),
        "text": lambda: there.write_text("notes of 2019"),
        "pipe": lambda: os.mkfifo(there),
        "folder": there.mkdir,
    }
    make[kind]()
    with refused(tmp_path, r"holds \.a\.tcpsbed-lock, which is not a lock of tcpsbed"):
        written(tmp_path / "a", "one")
    assert (tmp_path / "mine").read_text() == "precious" and there.lstat()
    assert kind != "text" or there.read_text() == "notes of 2019"


def test_a_link_in_place_of_a_marker_that_is_being_written_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    written(tmp_path / "a", "one")
    (tmp_path / "a/.tcpsbed.part").symlink_to(tmp_path / "mine")
    marker.note(tmp_path / "a", world="real")
    assert (tmp_path / "mine").read_text() == "precious" and not (tmp_path / "a/.tcpsbed").is_symlink()


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
        ConfigError, match=r"--out: runs cannot be made here .*; allowed: a folder that you may"
    ):
        results.fresh("mine")
