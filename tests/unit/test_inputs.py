"""Files of the user's are read within bounds: none hangs, none fills the memory, each refusal names the file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_config_refusals import PLAIN

import tcpsbed
from tcpsbed import inputs, scenarios
from tcpsbed.datasets.recordings import open_values
from tcpsbed.errors import ConfigError, DataError, TcpsbedError

LIMIT_BYTES = 1500 << 20


def limited(folder: Path, *arguments: str, timeout_s: float = 20) -> subprocess.CompletedProcess[str]:
    """Python with little memory and little time: what hangs or swells fails the test."""
    command = f'ulimit -v {LIMIT_BYTES >> 10}; exec "$@"'
    return subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Ends what hangs."""

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


SCENARIOS = {
    "a device": (lambda path: path.symlink_to("/dev/zero"), "a device, a FIFO or a socket"),
    "a FIFO": (os.mkfifo, "a device, a FIFO or a socket"),
    "a folder": (Path.mkdir, "it is a folder"),
    "a circle of links": (lambda path: path.symlink_to(path), "symbolic links"),
    "100 MB of comments": (lambda path: path.write_bytes(b"#" * 99 + b"\n" * 10**8), "at most 4 MiB"),
    "a key of 50,000 parts": (
        lambda path: path.write_text("a" + ".a" * 50_000 + " = 1\n"),
        "32 parts on line 1",
    ),
    "a header of 50,000 parts": (
        lambda path: path.write_text("\n[a" + ".a" * 50_000 + "]\n"),
        "32 parts on line 2",
    ),
    "50,000 parts in quotes": (
        lambda path: path.write_text('"a"' + ' . "a"' * 50_000 + " = 1\n"),
        "32 parts",
    ),
    "a text of 4 MB that never ends": (
        lambda path: path.write_text('a = """\n' + '\\"""\n' * 800_000),
        "Unterminated string",
    ),
    "deep lists": (lambda path: path.write_text("a = " + "[" * 400 + "]" * 400 + "\n"), "at most 32 deep"),
    "deeper lists": (lambda path: path.write_text("a = " + "[" * 100_000 + "\n"), "at most 32 deep"),
    "deep tables": (
        lambda path: path.write_text("a = " + "{ a = " * 400 + "1" + "}" * 400 + "\n"),
        "at most 32 deep",
    ),
}


EACH = """
import sys
from tcpsbed.__main__ import main

for name in sys.argv[1:]:
    sys.argv = ["tcpsbed", "run", name]
    try:
        main()
    except SystemExit as ended:
        print(name, ended.code, flush=True)
"""


def test_a_scenario_is_a_regular_file_of_bounded_size_and_depth(tmp_path):
    """All of them one after the other, in one process with little memory."""
    for number, (make, _) in enumerate(SCENARIOS.values()):
        make(tmp_path / f"absurd{number}.toml")
    before = sorted(tmp_path.iterdir())
    files = [f"absurd{number}.toml" for number in range(len(SCENARIOS))]
    done = limited(tmp_path, "-c", EACH, *files, timeout_s=60)
    assert done.stdout.splitlines() == [f"{name} 2" for name in files], done.stderr
    told = done.stderr.splitlines()
    for name, (kind, (_, says)), line in zip(files, SCENARIOS.items(), told, strict=True):
        assert line.startswith(f"tcpsbed: {name}") and says in line and "; allowed: " in line, (kind, line)
    assert sorted(tmp_path.iterdir()) == before, "nothing was made"


def test_many_parts_in_a_text_or_a_comment_are_no_key():
    words = ".".join(["word"] * 100)
    text = f'# {words}\na = "{words}"\nb = \'{words}\'\nc = """\n{words}\n"""\n'
    assert inputs.toml(text)["a"] == words


def test_an_override_is_as_shallow(tmp_path):
    (tmp_path / "plain.toml").write_text(PLAIN)
    with pytest.raises(ConfigError, match="which is not a key"):
        scenarios.load(tmp_path / "plain.toml", ["a" + ".a" * 50_000 + "=1"])


def test_files_that_include_the_next_one_twice_are_not_read_a_million_times(tmp_path):
    for n in range(25):
        (tmp_path / f"{n}.toml").write_text(f'include = ["{n + 1}.toml", "{n + 1}.toml"]\n')
    (tmp_path / "25.toml").write_text(PLAIN)
    with pytest.raises(ConfigError, match=r"include: found more than 100 files.*allowed: each file once"):
        scenarios.load(tmp_path / "0.toml")


OTHERS = {
    "a recording": ("flows.kinematic.source={{ recording = '{0}' }}", "source"),
    "frames": ("flows.kinematic.source={{ frames = '{0}', frame = '100 B' }}", "source"),
    "a graph": ("topology.graph='{0}'", "topology.graph"),
    "a capture": ("traffic.t={{ kind = 'replay', file = '{0}', path = 'a->b' }}", "traffic.t"),
    "a trace": ("links.l={{ from = 'a', to = 'b', trace = '{0}' }}", "links.l"),
    "a calibration": ("calibration='{0}'", "calibration"),
    "code": ("hooks.kinematics={{ run = '{0}:x', at = 'tactile-operator' }}", "hooks.kinematics"),
    "a model": ("hooks.kinematics={{ run = '{0}.onnx', at = 'tactile-operator' }}", "hooks.kinematics"),
    "an include": ("include='{0}'", "include"),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("kind", ["device", "fifo", "folder", "circle"])
def test_a_file_that_a_scenario_names_is_a_regular_one(tmp_path, what, kind):
    (tmp_path / "plain.toml").write_text(PLAIN)
    for name in ("odd", "odd.onnx"):
        path = tmp_path / name
        {
            "device": lambda path: path.symlink_to("/dev/zero"),
            "fifo": os.mkfifo,
            "folder": Path.mkdir,
            "circle": lambda path: path.symlink_to(path),
        }[kind](path)
    setting, key = OTHERS[what]
    if what == "an include":
        (tmp_path / "plain.toml").write_text('include = "odd"\n' + PLAIN)
    with within(20), pytest.raises(ConfigError) as told:
        scenarios.check(
            scenarios.load(tmp_path / "plain.toml", [] if what == "an include" else [setting.format("odd")])
        )
    assert key in str(told.value) and "; allowed: " in str(told.value)


def _spreadsheet(path: Path, sheet: str, strings: bytes = b"") -> None:
    """The smallest workbook, with one sheet and texts that cells share."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
            f'<Override PartName="/xl/s.xml" ContentType="{kinds}.worksheet+xml"/>'
            f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kinds}.sharedStrings+xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" Type="{office}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook {space} xmlns:r="{office}"><sheets>'
            '<sheet name="scenario" sheetId="1" r:id="s"/></sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="s" Type="{office}/worksheet" Target="s.xml"/>'
            "</Relationships>",
        )
        archive.writestr("xl/sharedStrings.xml", f"<sst {space}>".encode() + strings + b"</sst>")
        archive.writestr("xl/s.xml", f"<worksheet {space}><sheetData>{sheet}</sheetData></worksheet>")


def _cells(count: int) -> str:
    return "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c></row>' for n in range(1, count + 1))


BOOKS = {
    "many rows": (lambda path: _spreadsheet(path, _cells(600_000)), "it unpacks to"),
    "rows in bounds of size": (lambda path: _spreadsheet(path, "<row/>" * 400_000), "at most 262144 cells"),
    "a row far away": (
        lambda path: _spreadsheet(path, '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
        "at most 262144 cells",
    ),
    "shared strings": (
        lambda path: _spreadsheet(path, "", b"<si><t>" + b"a" * (1 << 28) + b"</t></si>"),
        "it unpacks to 256 MiB",
    ),
    "entities": (lambda path: _spreadsheet(path, "&a;"), "cannot be read"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOOKS)
def test_a_spreadsheet_that_swells_is_refused_within_little_memory(tmp_path, kind):
    pytest.importorskip("openpyxl")
    make, says = BOOKS[kind]
    make(tmp_path / "bomb.xlsx")
    done = limited(tmp_path, "-m", "tcpsbed", "config", "from-xlsx", "bomb.xlsx")
    assert done.returncode == 2 and says in done.stderr and "bomb.xlsx" in done.stderr, done.stderr


def test_a_small_parquet_of_many_equal_values_is_refused(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = 4_000_000
    table = pa.table({"timestamp": pa.array([0.0] * rows), "action": pa.array([1.0] * rows)})
    pq.write_table(table, tmp_path / "e.parquet", compression="zstd")
    assert (tmp_path / "e.parquet").stat().st_size < 100_000
    monkeypatch.setattr(inputs, "DATA_BYTES", 32 << 20)
    with pytest.raises(DataError, match=r"e\.parquet: found more values than fit; allowed: .* 32 MiB"):
        open_values({"recording": str(tmp_path / "e.parquet")}, 10.0, tmp_path)


def test_a_height_map_that_claims_to_be_huge_is_refused(tmp_path):
    np = pytest.importorskip("numpy")
    from tcpsbed.robots.sample import Sample

    np.savez_compressed(tmp_path / "map.npz", np.zeros((4000, 4000)))
    with (tmp_path / "map.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}
        )
    for name in ("map.npz", "map.npy", ".", "/dev/zero"):
        with pytest.raises(TcpsbedError, match=r"cannot be read.*allowed: a height map"):
            Sample.read(str(tmp_path / name), 1.0)


HIDDEN = {
    "ESC": "\x1b[2J",
    "NUL": "\0",
    "bell": "\a",
    "C1": "\x9b",
    "a bidi mark": "\u202e",
    "an isolate": "\u2066",
}


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize(
    "setting",
    [
        "name={}",
        "description={}",
        "flows.{}.rate='1 Hz'",
        "links.{}.from='a'",
        "topology.routers=[{}]",
        "nodes.{}.cores=1",
    ],
)
def test_letters_that_no_terminal_may_be_given_are_refused(tmp_path, name, setting):
    import json

    (tmp_path / "plain.toml").write_text(PLAIN)
    text = json.dumps("x" + HIDDEN[name])
    key, _, value = setting.format(text).partition("=")
    table, _, last = key.rpartition(".") if not key.startswith(("flows", "links", "nodes")) else ("", "", key)
    (tmp_path / "hidden.toml").write_text(
        f'include = "plain.toml"\n{(table + "." if table else "") + last} = {value}\n'
    )
    with pytest.raises(
        ConfigError, match=r"hidden.toml:2: .*invisible character U\+.*allowed: text that can be seen"
    ) as told:
        scenarios.load(tmp_path / "hidden.toml")
    assert str(told.value).isprintable()


@pytest.mark.parametrize("name", ["a\u200f", "a\x1b[31m", os.fsdecode(b"a\xff")])
def test_a_path_that_no_terminal_may_be_given_is_refused_before_anything_runs(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    for file in (tmp_path / "plain.toml", folder / "plain.toml"):
        file.write_text(PLAIN)
    said = r"found the (invisible character U\+.*|byte 0xFF, which is not UTF-8,) in the path; allowed: a file and folders"
    with pytest.raises(ConfigError, match=f"plain.toml: {said}") as told:
        scenarios.load(folder / "plain.toml")
    assert str(told.value).isprintable()
    with pytest.raises(ConfigError, match=f"--out: .*out: {said}"):
        tcpsbed.run(tmp_path / "plain.toml", out=folder / "out")
    assert [file.name for file in folder.iterdir()] == ["plain.toml"]
    readable = tmp_path / "\U0001f469\u200d\U0001f467 \u00e9"
    folder.rename(readable)
    scenarios.load(readable / "plain.toml")


@pytest.mark.parametrize("name", ["edge\n", "a" * 101, "\u00e9", "a b", ""])
def test_a_name_is_a_short_word(tmp_path, name):
    import json

    (tmp_path / "plain.toml").write_text(PLAIN + f"[nodes.{json.dumps(name)}]\n")
    with pytest.raises(ConfigError, match="allowed: "):
        scenarios.load(tmp_path / "plain.toml")


def test_what_a_command_line_says_wrong_is_told_without_its_escapes(tmp_path):
    (tmp_path / "plain.toml").write_text(PLAIN)
    with pytest.raises(ConfigError) as told:
        scenarios.load(tmp_path / "plain.toml", ["bad\x1b[31m\u202e=1"])
    assert str(told.value).isprintable()
