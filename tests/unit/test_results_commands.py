"""Nothing of the user's is ever lost: folders that grow, single files, and commands that are killed or meet each other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import scenario, start, tcpsbed
from result_files import grown, listed, names, refused, written

from tcpsbed import inputs, results
from tcpsbed.cli.app import at_home
from tcpsbed.errors import ConfigError
from tcpsbed.results import folder, lock, marker

KILLS = 20
"""Moments at which a process is killed."""


def test_a_folder_of_a_sweep_is_no_folder_for_a_run(tmp_path: Path) -> None:
    with results.growing(tmp_path / "s", "sweep") as out:
        (out / "sweep.json").write_text("{}")
    with refused(tmp_path, "holds a sweep, not a run"):
        written(tmp_path / "s", "two")
    with results.growing(tmp_path / "s", "sweep") as out:
        assert (out / "sweep.json").read_text() == "{}"


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
        pytest.raises(ConfigError, match=r"sweep\.html was created or changed .* the result is in"),
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
    cell = f"cells/{'0123456789' * 2}.json"
    with results.growing(tmp_path / "s", "sweep") as out:
        (out / "cells").mkdir()
        (out / cell).write_text("{}")
    for left in ("cells/.two.json.77.part.json", ".sweep.parquet.77.part.parquet"):
        (tmp_path / "s" / left).write_text("{")
    with results.growing(tmp_path / "s", "sweep") as out:
        assert set(listed(out)) == {".tcpsbed", cell}


def test_files_added_to_a_result_are_ours_and_others_stay(tmp_path: Path) -> None:
    written(tmp_path / "a", "one")
    with results.tended(tmp_path / "a", writes=["samples.csv"]):
        (tmp_path / "a/samples.csv").write_text("1,2")
    written(tmp_path / "a", "two")
    (tmp_path / "a/samples.csv").write_text("mine")
    with (
        refused(tmp_path, "samples.csv exists already"),
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
    with refused(tmp_path, f"map.svg is a link to {leads}"):
        results.may_write(tmp_path / "map.svg", force=True)
    with refused(tmp_path, f"map.svg is a link to {leads}"):
        results.write_whole(tmp_path / "map.svg", "drawn")
    written(tmp_path / "a", "one")
    (tmp_path / "a/report.html").symlink_to(tmp_path / leads)
    with (
        refused(tmp_path, "report.html is a link to .*svg"),
        results.tended(tmp_path / "a", writes=["report.html"], force=True),
    ):
        results.write_whole(tmp_path / "a/report.html", "drawn")


def test_what_a_command_reads_is_not_written_whatever_force_says(tmp_path: Path) -> None:
    mine, run = tmp_path / "mine.toml", tmp_path / "run"
    mine.write_text("mine")
    os.link(mine, tmp_path / "same.toml")
    with refused(tmp_path, "same.toml is an input of this command"):
        results.may_write(tmp_path / "same.toml", force=True, reads=[mine])
    written(run, "one")
    with refused(tmp_path, "inputs/flow.f64 belongs to the run in"):
        results.may_write(run / "inputs/flow.f64", force=True)
    (run / ".tcpsbed").unlink()
    with refused(tmp_path, 'summary.json is in the folder .*run", which this command reads'):
        results.may_write(run / "summary.json", force=True, reads=[run])
    results.may_write(run / "new.csv", reads=[run])


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
        ("sweep", "short.toml", "--over", "name=a,b", "--out", "."),
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
    assert done.returncode == 2 and "--out: " in done.stderr and " holds " in done.stderr, done.stderr
    assert listed(tmp_path) == before


def test_a_run_of_its_own_scenario_into_its_own_folder_is_refused(tmp_path: Path) -> None:
    assert tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--out", "a", "-q").returncode == 0
    before = listed(tmp_path)
    for out in ("a", "./a", "runs/../a"):
        done = tcpsbed(tmp_path, "run", "a/scenario.toml", "--out", out)
        assert done.returncode == 2 and "holds scenario.toml" in done.stderr, done.stderr
    assert {name: text for name, text in listed(tmp_path).items() if name in before} == before


@pytest.mark.slow
def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\ntakes_s = 8.0\n')
    first = start(tmp_path, "run", str(file), "--out", "a", "-q")
    while not list(tmp_path.glob("a.unfinished-*")):
        time.sleep(0.02)
    done = tcpsbed(tmp_path, "run", str(file), "--out", "a", "-q")
    assert done.returncode == 2
    assert f"/a is being written by another tcpsbed (process {first.pid})" in done.stderr
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
    [
        "SIGHUP",
        "SIGINT",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGQUIT", "SIGXCPU")),
    ],
)
def test_a_sweep_ends_with_what_asks_for_its_end_and_can_go_on(tmp_path: Path, number: str) -> None:
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\ntakes_s = 5.0\n')
    going = start(tmp_path, "sweep", str(file), "--over", "delay_ms=1,2", "--seeds", "2", "--out", "s")
    while not list(tmp_path.glob("s/work/*")):
        time.sleep(0.02)
    going.send_signal(signal.Signals[number])
    _, errors = going.communicate(timeout=60)
    assert going.returncode == 130 and "the same command continues from there" in errors, errors


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
    with refused(tmp_path, "heard.wav exists already"), results.streamed([file]):
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
    shutil.copyfile(tmp_path / "mine.wav", file)  # keeps what the file carries
    with refused(tmp_path, "heard.wav exists already"), results.streamed([file]):
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
    said = r"map\.svg was created or changed .* is in .*map\.\d+\.svg"
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


def test_a_place_that_takes_nothing_has_a_remedy() -> None:
    with pytest.raises(ConfigError, match=r"/proc/x cannot be written \(.*\); allowed: a place where you"):
        written(Path("/proc/x"), "one")
    with pytest.raises(
        ConfigError, match=r"/proc/x.html cannot be written \(.*\); allowed: a file in a folder of"
    ):
        results.write_whole(Path("/proc/x.html"), "one")


def test_a_tilde_in_quotes_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    words = ["run", "~/a.toml", "--out=~/b", "--out", "~/c", "--set", "k=~/d", "--", "~/e"]
    home = str(tmp_path)
    wanted = ["run", f"{home}/a.toml", f"--out={home}/b", "--out", f"{home}/c", "--set", "k=~/d", "--", "~/e"]
    assert at_home(words) == wanted
    assert inputs.path("~/x", "out") == tmp_path / "x"
    done = tcpsbed(tmp_path, "init", "~/mine.toml")
    assert done.returncode == 0 and (tmp_path / "mine.toml").is_file() and not (tmp_path / "~").exists()
