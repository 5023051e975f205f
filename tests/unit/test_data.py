"""`tcpsbed data`: recordings fetched from a server on loopback, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tcpsbed.cli.app import app
from tcpsbed.datasets import store
from tcpsbed.errors import DataError
from tcpsbed.lab.reproduce import recordings

pytest.importorskip("pooch", reason="needs pooch: pip install 'tcpsbed[data]'")
runner = CliRunner()
CONTENT = b"what a recording holds\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def source(tmp_path: Path) -> Iterator[str]:
    """The address of a server that gives out `good`, `cut` and `long`."""
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "good").write_bytes(CONTENT)
    (folder / "cut").write_bytes(CONTENT[:5])
    (folder / "long").write_bytes(CONTENT * 1000)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def registry(folder: Path, url: str, path: str = "deep/in/it.csv") -> Path:
    file = folder / "mine.toml"
    file.write_text(
        f'[one]\nwhat = "w"\nlicence = "MIT"\nsource = "s"\n[[one.files]]\npath = "{path}"\nurl = "{url}"\n'
        f'bytes = {len(CONTENT)}\nsha256 = "{hashlib.sha256(CONTENT).hexdigest()}"\n'
    )
    return file


def called(*words: object) -> tuple[int, str]:
    done = runner.invoke(app, ["data", *(str(word) for word in words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_recording_is_fetched_once_and_its_licence_said(tmp_path: Path, source: str) -> None:
    mine = registry(tmp_path, f"{source}/good")
    place = tmp_path / "place"
    status, said = called("one", "--registry", mine, "--to", place)
    assert status == 0 and "licence MIT" in said and "deep/in/it.csv" in said
    assert (place / "deep/in/it.csv").read_bytes() == CONTENT
    status, said = called("all", "--registry", mine, "--to", place)
    assert status == 0 and "installed already" in said
    (tmp_path / "server" / "good").unlink()
    assert called("one", "--registry", mine, "--to", place)[0] == 0, "what is here is not asked for again"


def test_a_file_is_no_folder_of_recordings(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.touch()
    assert called("--to", place) == (
        2,
        f"tcpsbed: {place} is a file; allowed: a folder, such as recordings, for --to or in TCPSBED_DATA\n",
    )


@pytest.mark.parametrize("name", ["cut", "long", "none"])
def test_what_is_not_the_recording_is_not_kept(tmp_path: Path, source: str, name: str) -> None:
    mine, place = registry(tmp_path, f"{source}/{name}"), tmp_path / "place"
    status, said = called("one", "--registry", mine, "--to", place)
    assert status == 1 and "could not be fetched" in said and "127.0.0.1" in said
    assert [file for file in place.rglob("*") if file.is_file()] == []


def test_the_list_says_what_is_installed_and_how_the_rest_comes(tmp_path: Path, source: str) -> None:
    mine, place = registry(tmp_path, f"{source}/good"), tmp_path / "place"
    assert "download with: tcpsbed data one\n" in called("--registry", mine, "--to", place)[1]
    called("one", "--registry", mine, "--to", place)
    assert "      installed\n" in called("--registry", mine, "--to", place)[1]
    assert (
        "ask its owners: https://cirl.lcsr.jhu.edu/research/hmm/datasets/jigsaws_release/: fill in the form"
        in called("--to", place)[1]
    )


def test_a_file_of_the_users_is_kept(tmp_path: Path, source: str) -> None:
    mine, place = registry(tmp_path, f"{source}/good", "it.csv"), tmp_path / "place"
    place.mkdir()
    (place / "it.csv").write_text("mine")
    status, said = called("one", "--registry", mine, "--to", place)
    assert status == 1 and "not the recording that belongs here" in said
    assert (place / "it.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("deep/in/it.csv", "../it.csv"), "leaves the folder"),
        (("deep/in/it.csv", "/it.csv"), "leaves the folder"),
        (("http://", "file://"), "not an http address"),
        (("sha256 =", "sha1 ="), r"one.files.0.sha256 is missing; allowed: text, such as"),
        (('sha256 = "', 'sha256 = "x'), "one.files.0.sha256: found .*64 digits"),
        (("[one]", "[one"), "mine.toml"),
        (
            ("[one]", "two = 1\n[one]"),
            "mine.toml: two: found 1; allowed: a table with the keys `what`, `licence`, `source` and `files`",
        ),
        (('what = "w"', "what = 3"), 'one.what: found 3; allowed: text, such as what = "'),
        (('what = "w"', 'what = "\\u001b[2J"'), r"one.what: found the invisible character U\+001B"),
        (
            ("[[one.files]]", "[one.files]"),
            r"one.files: found one table; allowed: a list of tables, such as files = \[\{ path",
        ),
        (("bytes = ", "bytes = -"), "one.files.0.bytes: found -"),
        (("bytes = ", "bytes = 0.5 # "), "one.files.0.bytes: found 0.5; allowed: a whole number"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    mine = registry(tmp_path, "http://127.0.0.1:1/x")
    mine.write_text(mine.read_text().replace(*change))
    with pytest.raises(DataError, match=words):
        store.listed(mine)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "it is a device, a FIFO or a socket"),
        (Path.mkdir, "it is a folder"),
        (lambda file: file.symlink_to("/dev/null"), "it is a device, a FIFO or a socket"),
        (lambda file: file.write_bytes(b"#" * (5 << 20)), "5 MiB"),
        (lambda file: file.write_text("[a" + ".a" * 100 + "]"), "32 parts"),
    ],
)
def test_a_list_is_a_regular_file_of_bounded_size_and_depth(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    make(tmp_path / "list.toml")
    status, told = called("--registry", tmp_path / "list.toml")
    assert status == 2 and told.startswith(f"tcpsbed: {tmp_path / 'list.toml'}")
    assert said in told and "; allowed: " in told


def test_a_recording_in_its_place_is_a_regular_file(tmp_path: Path) -> None:
    mine = registry(tmp_path, "http://127.0.0.1:1/x", "it.csv")
    os.mkfifo(tmp_path / "it.csv")
    status, told = called("one", "--registry", mine, "--to", tmp_path)
    assert status == 1 and "it is a device, a FIFO or a socket" in told


def test_an_unknown_name_is_answered_with_what_there_is() -> None:
    status, said = called("song")
    assert status == 2 and "captures" in said and "all" in said


def test_what_is_given_out_on_request_says_how_to_ask(tmp_path: Path) -> None:
    status, said = called("suturing", "--to", tmp_path)
    assert status == 1 and "https://cirl.lcsr.jhu.edu" in said and "Suturing_D001.txt" in said
    rows = json.loads(called("--json", "--to", tmp_path)[1])
    assert all(not row["here"] and row["licence"] and row["how"] for row in rows)


def test_a_skipped_row_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "DATA", tmp_path)
    assert recordings.absent("captures") == "needs recordings: tcpsbed data captures"
    assert "fill in the form" in recordings.absent("suturing", "captures")
    for name in store.listed():
        assert recordings.absent(name).count(name) >= 1 or "put it at" in recordings.absent(name)


def test_every_recording_that_ships_in_the_list_is_pinned() -> None:
    for recording in store.listed().values():
        for file in recording.files:
            assert len(file.sha256) == 64 and file.bytes > 0
            assert file.url is None or any(len(part) == 40 for part in file.url.split("/")), (
                "a commit, not a branch"
            )


def test_the_folder_is_named_by_the_variable_or_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCPSBED_DATA", str(tmp_path))
    assert store.folder() == tmp_path
