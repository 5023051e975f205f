"""Archives: what is in them, that they run elsewhere with the same records, and what is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcpsbed
from tcpsbed import campaign
from tcpsbed.analysis.facts import PROMISES
from tcpsbed.archive import inputs_of, packing, reading, results_in, verify
from tcpsbed.archive.content import ABOUT, CRATE, Cell
from tcpsbed.campaign import file as files
from tcpsbed.cli import rerun
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.results import lock
from tcpsbed.results.folder import lock_of

SCENARIO = """
include = ["../common/base.toml"]

[flows.kinematic.source]
recording = "../data/hand.csv"

[hooks.own]
kind = "predict"
run = "./own.py:Own"
at = "ss-com"
"""
BASE = """
duration = "1 s"
[components]
tactile-operator = "a"
ms-com = "a"
ss-com = "b"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "100 Hz"
[links.l1]
from = "a"
to = "b"
rate = "10 Mbit/s"
jitter = { kind = "normal", mean = "3 ms", sd = "1 ms" }
"""
OWN = """
import numpy as np

from gain import GAIN


class Own:
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = x * GAIN
        return len(x)
"""


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`tcpsbed` in a folder."""
    paths = os.pathsep.join(
        filter(None, (str(Path(tcpsbed.__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
    return subprocess.run(
        [sys.executable, "-m", "tcpsbed", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )


def project(folder: Path) -> Path:
    """A scenario that includes a file above it, plays a recording beside, and has code that imports a module."""
    rows = "".join(f"{n / 100},{n % 7},{n % 5}\n" for n in range(200))
    files = {
        "study/main.toml": SCENARIO,
        "study/own.py": OWN,
        "study/gain.py": "GAIN = 2.0\n",
        "study/secret.txt": "nobody named this",
        "common/base.toml": BASE,
        "data/hand.csv": f"time,x,y\n{rows}",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "study" / "main.toml"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project, its sweep `out`, and the archive `out.zip`."""
    folder = tmp_path_factory.mktemp("swept")
    file = project(folder / "project")
    words = ("--over", "links.l1.rate=1 Mbit/s,2 Mbit/s", "--seeds", "2", "--jobs", "2", "--out", "out", "-q")
    done = command(folder, "sweep", str(file), *words)
    assert done.returncode == 0, done.stderr
    packing.pack(folder / "out", folder / "out.zip", licence="CC-BY-4.0")
    return folder


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run `out` of built-in code only, and its archive `out.zip`."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "main.toml").write_text(BASE)
    tcpsbed.run(folder / "main.toml", out=folder / "out", set=["seed=7"])
    packing.pack(folder / "out", folder / "out.zip")
    return folder


def test_it_holds_what_the_scenario_names_in_its_layout_and_nothing_else(swept: Path) -> None:
    with zipfile.ZipFile(swept / "out.zip") as archive:
        names = archive.namelist()
        own = archive.read("scenario/study/own.py")
    assert sorted(name for name in names if name.startswith("scenario/")) == [
        "scenario/common/base.toml",
        "scenario/data/hand.csv",
        "scenario/study/gain.py",
        "scenario/study/main.toml",
        "scenario/study/own.py",
    ]
    assert own.decode() == OWN
    assert sum(name.startswith("results/cells/") for name in names) == 4
    assert "results/sweep.parquet" in names


def test_the_same_input_gives_the_same_bytes(swept: Path, tmp_path: Path) -> None:
    packing.pack(swept / "out", tmp_path / "again.zip", licence="CC-BY-4.0")
    assert (tmp_path / "again.zip").read_bytes() == (swept / "out.zip").read_bytes()


def test_it_says_what_ran_where_and_with_what(swept: Path) -> None:
    with reading.opened(swept / "out.zip") as archive:
        told = archive.content
    assert {(cell.seed, cell.world) for cell in told.cells} == {(1, "virtual"), (2, "virtual")}
    assert all(len(cell.records_sha256) == 64 for cell in told.cells)
    assert told.command == (
        "tcpsbed sweep scenario/study/main.toml --over 'links.l1.rate=1 Mbit/s,2 Mbit/s' --seeds 2 --world virtual"
    )
    assert told.packages["numpy"] and told.packages["python"]
    assert told.versions[0]["tcpsbed"] and told.machines[0]["cpu"]
    assert str(swept) not in told.text()


def test_the_crate_has_what_ro_crate_1_1_demands(swept: Path) -> None:
    """Descriptor, root data set, an entity for every part, no reference without an entity, flat entities."""
    with zipfile.ZipFile(swept / "out.zip") as archive:
        crate = json.loads(archive.read(CRATE))
        names = set(archive.namelist())
        sizes = {name: archive.getinfo(name).file_size for name in names}
        read = {name: archive.read(name) for name in names}
    assert crate["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities = {entity["@id"]: entity for entity in crate["@graph"]}
    assert len(entities) == len(crate["@graph"])
    descriptor, root = entities[CRATE], entities["./"]
    assert descriptor["@type"] == "CreativeWork" and descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["@type"] == "Dataset" and entities[root["license"]["@id"]]["name"] == "CC-BY-4.0"
    assert root["name"] and root["description"] and len(root["datePublished"]) == len("2026-11-27")
    parts = {unquote(part["@id"]) for part in root["hasPart"]}
    assert parts == names - {CRATE}
    for name in parts - {ABOUT}:
        entity = next(one for one in crate["@graph"] if unquote(one["@id"]) == name)
        assert entity["@type"] == "File" and entity["contentSize"] == str(sizes[name])
        assert entity["sha256"] == hashlib.sha256(read[name]).hexdigest()
    for entity in crate["@graph"]:
        assert "@id" in entity and "@type" in entity
        for value in entity.values():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    assert list(one) == ["@id"], "entities are flat"
                    assert one["@id"] in entities or one["@id"].startswith("https://")


def test_a_known_recording_has_its_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tcpsbed.archive import crate
    from tcpsbed.datasets import store

    file = project(tmp_path / "project")
    sha256 = hashlib.sha256((tmp_path / "project" / "data" / "hand.csv").read_bytes()).hexdigest()
    known = store.Recording(
        "hand", "a hand", "CC-BY-4.0", "https://example.org", "", (store.File("hand.csv", None, 1, sha256),)
    )
    monkeypatch.setattr(store, "listed", lambda: {"hand": known})
    tcpsbed.run(file, out=tmp_path / "out")
    packing.pack(tmp_path / "out", tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        found = json.loads(archive.read(CRATE))["@graph"]
    licences = {one["@id"]: one.get("license") for one in found if one["@type"] == "File"}
    assert licences["scenario/data/hand.csv"] == "CC-BY-4.0" and licences["scenario/study/own.py"] is None
    assert next(one for one in found if one["@id"] == "./")["license"] == crate.NOT_STATED


def test_a_sweep_runs_again_where_nothing_of_it_is_left(swept: Path, tmp_path: Path) -> None:
    shutil.copy(swept / "out.zip", tmp_path)
    moved = swept / "project"
    moved.rename(swept / "gone")
    try:
        done = command(tmp_path, "rerun", "out.zip", "--json", "--out", "kept", "--jobs", "2")
    finally:
        (swept / "gone").rename(moved)
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)
    assert [one["verdict"] for one in verdicts] == ["same records"] * 4
    assert len({one["records_sha256"] for one in verdicts}) == 4
    assert "a scenario is a program" in done.stderr and "own.py" in done.stderr
    assert json.loads((tmp_path / "kept" / "rerun.json").read_text()) == verdicts
    assert (tmp_path / "kept" / "scenario" / "study" / "own.py").read_text() == OWN
    again = command(
        tmp_path,
        "run",
        "kept/scenario/study/main.toml",
        "--set",
        "links.l1.rate=1 Mbit/s",
        "-q",
        "--out",
        "r",
    )
    assert again.returncode == 0, again.stderr
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert summary["records_sha256"] == verdicts[0]["records_sha256"]


def test_a_run_with_overrides_and_seeds_runs_again(tmp_path: Path) -> None:
    file = project(tmp_path / "project")
    done = command(
        tmp_path,
        "run",
        str(file),
        "--seed",
        "5",
        "--seeds",
        "2",
        "--duration",
        "500 ms",
        "--out",
        "out",
        "-q",
    )
    assert done.returncode == 0, done.stderr
    assert command(tmp_path, "archive", "out", "out.zip").returncode == 0
    done = command(tmp_path, "rerun", "out.zip")
    assert done.returncode == 0 and "2 runs: 2 agree, 0 DIFFER" in done.stdout, done.stdout + done.stderr


def rewritten(
    archive: Path, out: Path, change: dict[str, bytes | None], about: dict[str, object] | None = None
) -> Path:
    """An archive with other members, whose list fits them."""
    with zipfile.ZipFile(archive) as old:
        members: dict[str, bytes] = {name: old.read(name) for name in old.namelist()}
    told = json.loads(members.pop(ABOUT)) | (about or {})
    for name, content in change.items():
        members.pop(name, None)
        if content is not None:
            members[name] = content
    told["files"] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in members.items()
    }
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
        new.writestr(ABOUT, json.dumps(told))
    return out


def test_another_result_is_told_and_ends_with_1(ran: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(ran / "out.zip") as archive:
        text = archive.read("scenario/scenario.toml")
    other = rewritten(
        ran / "out.zip",
        tmp_path / "other.zip",
        {"scenario/scenario.toml": text.replace(b"10 Mbit/s", b"9 Mbit/s")},
    )
    done = command(tmp_path, "rerun", str(other))
    assert done.returncode == 1 and "DIFFERENT records" in done.stdout, done.stdout + done.stderr
    broken = rewritten(
        ran / "out.zip", tmp_path / "broken.zip", {"scenario/scenario.toml": b"nonsense = 1\n"}
    )
    done = command(tmp_path, "rerun", str(broken))
    assert done.returncode == 1 and "failed: tcpsbed: " in done.stdout and "Traceback" not in done.stderr


def test_without_out_nothing_stays(ran: Path, tmp_path: Path) -> None:
    done = command(tmp_path, "rerun", str(ran / "out.zip"), "-q")
    assert done.returncode == 0 and not list(tmp_path.iterdir()) and done.stdout == ""


def cell(seed: int, world: str = "virtual", promise: str = PROMISES["anywhere"], sha256: str = "ab") -> Cell:
    return Cell(f"results/{seed}.json", (f"seed={seed}",), seed, world, sha256, promise)


def summary(mean: float, sha256: str = "ab") -> dict[str, object]:
    flow = {"delay_ms": {"mean": mean, "p99": 2 * mean}, "loss": 0.0}
    return {"records_sha256": sha256, "flows": {"haptic": flow}, "disturbances": []}


@pytest.mark.parametrize(
    ("promise", "mean", "passed", "said"),
    [
        ("anywhere", 10.0, False, "DIFFERENT records"),
        ("machine", 10.05, True, "another processor may give; haptic delay_ms.mean differs by 0.50%"),
        ("machine", 10.2, False, "DIFFERENT: haptic delay_ms.mean differs by 1.96%"),
    ],
)
def test_other_records_in_simulated_time(promise: str, mean: float, passed: bool, said: str) -> None:
    """[design: same on every machine] Only code of the user's may give other rows, and nearly the same metrics."""
    one = cell(1, promise=PROMISES[promise])
    (verdict,) = verify.verdicts({one: summary(10.0)}, {one: summary(mean, "cd")})
    assert verdict.passed is passed and said in verdict.said


@pytest.mark.parametrize(
    ("new", "passed", "said"),
    [
        ([10.1, 10.4, 9.8], True, "3 intervals overlap"),
        (
            [12.1, 12.4, 11.8],
            False,
            "DIFFERENT: haptic delay_ms.mean was 10 ± 0.62, is 12.1 ± 0.75, and 1 more",
        ),
    ],
)
def test_on_a_clock_intervals_over_seeds_are_compared(new: list[float], passed: bool, said: str) -> None:
    cells = [cell(seed, "real", PROMISES["none"]) for seed in (1, 2, 3)]
    old = dict(zip(cells, map(summary, (10.0, 10.25, 9.75)), strict=True))
    found = verify.verdicts(old, dict(zip(cells, (summary(one, "cd") for one in new), strict=True)))
    assert [(one.passed, one.said) for one in found] == [(passed, said)] * 3


def test_one_seed_on_a_clock_proves_nothing() -> None:
    one = cell(1, "real", PROMISES["none"])
    (verdict,) = verify.verdicts({one: summary(10.0)}, {one: summary(10.0, "cd")})
    assert verdict.passed is None and verdict.said.startswith("not judged, one seed has no interval")


def test_a_run_on_sockets_is_not_judged_by_one_seed(ran: Path, tmp_path: Path) -> None:
    with reading.opened(ran / "out.zip") as archive:
        first = archive.content.cells[0]
    real = vars(replace(first, world="real", promise=PROMISES["none"]))
    file = rewritten(ran / "out.zip", tmp_path / "real.zip", {}, {"cells": [real]})
    done = command(tmp_path, "rerun", str(file), "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    assert json.loads(done.stdout)[0]["passed"] is None


def test_nothing_is_overwritten(ran: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        packing.pack(ran / "out", tmp_path / "mine.zip")
    shutil.copy(ran / "out.zip", tmp_path / "ours.zip")
    packing.pack(ran / "out", tmp_path / "new.zip")
    with pytest.raises(ConfigError, match="an archive replaces nothing"):
        packing.pack(ran / "out", tmp_path / "new.zip")
    assert (tmp_path / "mine.zip").read_text() == "mine"
    with pytest.raises(ConfigError, match="is in the folder that it holds"):
        packing.pack(ran / "out", ran / "out" / "x.zip")
    with pytest.raises(ConfigError, match=r"x\.tar.*allowed: such as .*x\.zip"):
        packing.pack(ran / "out", tmp_path / "x.tar")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "theirs").write_text("theirs")
    done = command(tmp_path, "rerun", str(ran / "out.zip"), "--out", "full")
    assert done.returncode == 2 and "theirs" in done.stderr and len(done.stderr.splitlines()) == 1


def test_results_that_were_changed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "main.toml").write_text(BASE)
    tcpsbed.run(tmp_path / "main.toml", out=tmp_path / "out")
    text = (tmp_path / "out" / "summary.json").read_text()
    (tmp_path / "out" / "summary.json").write_text(text.replace('"seed": 1', '"seed": 2'))
    with pytest.raises(DataError, match=r"holds summary\.json, which was .*changed since tcpsbed wrote it"):
        packing.pack(tmp_path / "out", tmp_path / "out.zip")
    assert not (tmp_path / "out.zip").exists()


def test_a_failed_cell_is_told_and_the_others_are_packed(tmp_path: Path) -> None:
    (tmp_path / "main.toml").write_text(BASE)
    (tmp_path / "die.py").write_text("class Die:\n def __call__(self, *rest): raise OSError('dead')\n")
    (tmp_path / "main.toml").write_text(BASE + '[hooks.h]\nkind = "predict"\nrun = "zoh"\nat = "ss-com"\n')
    words = ("--over", "hooks.h.run=zoh,./die.py:Die", "--seeds", "2", "--out", "out", "-q")
    assert command(tmp_path, "sweep", "main.toml", *words).returncode == 1
    done = command(tmp_path, "archive", "out", "out.zip")
    assert done.returncode == 0 and "out: INCOMPLETE: 2 cells of 4 failed" in done.stderr
    assert "(2 runs, 1 input file, " in done.stdout
    elsewhere = command(tmp_path.parent, "archive", str(tmp_path / "out"), str(tmp_path / "b.zip"))
    assert elsewhere.returncode == 2 and "found main.toml, which is not there" in elsewhere.stderr


def test_a_folder_that_is_being_written_is_refused(ran: Path, tmp_path: Path) -> None:
    with lock.held(lock_of((ran / "out").resolve()), ran / "out"):
        done = command(tmp_path, "archive", str(ran / "out"), "out.zip")
    assert done.returncode == 2 and "is being written" in done.stderr


def test_parts_of_models_and_folders_of_data_come_along_and_outputs_do_not(tmp_path: Path) -> None:
    """A mesh in the folder of meshes, an included model and its mesh, all of a data set; no file that a run writes."""
    files = {
        "arm.xml": '<mujoco><compiler meshdir="meshes"/><include file="hand.xml"/><mesh file="arm.stl"/></mujoco>',
        "hand.xml": '<mujoco><mesh file="hand.stl"/></mujoco>',
        "meshes/arm.stl": "",
        "meshes/hand.stl": "",
        "meshes/other.stl": "",
        "arm.urdf": '<robot><mesh filename="package://meshes/arm.stl"/></robot>',
        "set/meta/info.json": "{}",
        "set/data/one.parquet": "",
        "written.npy": "from an earlier run",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    names = {
        "robot": {"run": "mujoco", "params": {"model": "arm.xml", "archive": "written.npy"}},
        "recording": "set",
    }
    named = [tmp_path / "arm.xml", tmp_path / "written.npy"]
    scenario = SimpleNamespace(folder=tmp_path, document=names, files=named)
    found = {file.relative_to(tmp_path).as_posix() for file in inputs_of.files_of(scenario)}
    models = {"arm.xml", "hand.xml", "meshes/arm.stl", "meshes/hand.stl"}
    assert found == models | {"set/meta/info.json", "set/data/one.parquet"}
    assert {file.name for file in inputs_of._parts(tmp_path / "arm.urdf")} == {"arm.stl"}


def test_packages_that_code_needs_have_their_versions(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import os\nimport scipy.stats\nfrom numpy import array\nimport beside\n"
    )
    scenario = SimpleNamespace(document={"run": "hypothesis.strategies:Own", "other": "C:not a module"})
    found = inputs_of.packages(scenario, [tmp_path / "own.py"])
    assert found == {name: metadata.version(name) for name in ("hypothesis", "numpy", "scipy")}


def test_a_key_is_in_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab.key").write_text("0123456789abcdef" * 4)
    Path("lab.key").chmod(0o600)
    channel = '[channels.all]\nflows = ["kinematic"]\nsecurity = { kind = "aead", key_file = "lab.key" }\n'
    Path("s.toml").write_text(BASE.replace("[links.l1]", f"{channel}[links.l1]"))
    tcpsbed.run("s.toml", out="out")
    with pytest.raises(ConfigError, match=r"names the key lab\.key; allowed: a run with keys of its own"):
        packing.pack(Path("out"), Path("a.zip"))
    assert not Path("a.zip").exists()


def test_a_world_of_code_is_refused(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = results_in.found_in(ran / "out")
    cells = {replace(one, world="./mine.py:Mine+emulator"): summary for one, summary in found.cells.items()}
    monkeypatch.setattr(results_in, "found_in", lambda _: replace(found, cells=cells))
    with pytest.raises(
        ConfigError, match=r"the world \./mine\.py:Mine\+emulator, which is code outside the scenario"
    ):
        packing.pack(ran / "out", tmp_path / "out.zip")


def test_a_whole_path_is_refused_and_nothing_left(tmp_path: Path) -> None:
    file = project(tmp_path / "project")
    file.write_text(SCENARIO.replace("../data", str(tmp_path / "project" / "data")))
    tcpsbed.run(file, out=tmp_path / "out")
    with pytest.raises(ConfigError, match=r"data/hand\.csv, a path that another machine does not have"):
        packing.pack(tmp_path / "out", tmp_path / "out.zip")
    assert not (tmp_path / "out.zip").exists()


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    file = project(tmp_path / "project")
    tcpsbed.run(file, out=tmp_path / "out")
    (tmp_path / "project" / "data" / "hand.csv").unlink()
    with pytest.raises(ConfigError, match=r"hand\.csv"):
        packing.pack(tmp_path / "out", tmp_path / "out.zip")


def test_inputs_that_changed_after_the_run_are_told(tmp_path: Path) -> None:
    file = project(tmp_path / "project")
    tcpsbed.run(file, out=tmp_path / "out")
    (tmp_path / "project" / "study" / "gain.py").write_text("GAIN = None\n")
    done = command(tmp_path, "archive", "out", "out.zip")
    assert done.returncode == 0 and "gain.py was changed after these results were written" in done.stderr
    done = command(tmp_path, "rerun", "out.zip")
    assert done.returncode == 1 and "failed: hook scenario/study/own.py:Own" in done.stdout, done.stdout


@pytest.mark.parametrize("there", ["nothing", "a file", "an empty folder"])
def test_what_is_no_result_is_one_message(tmp_path: Path, there: str) -> None:
    if there == "a file":
        (tmp_path / "x").write_text("x")
    elif there == "an empty folder":
        (tmp_path / "x").mkdir()
    done = command(tmp_path, "archive", "x", "x.zip")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "allowed: " in done.stderr
    assert not (tmp_path / "x.zip").exists()


def hostile(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Zips that tcpsbed does not write, with a part of the message that refuses each."""
    good = archive.read_bytes()
    with zipfile.ZipFile(archive) as old:
        members = {name: old.read(name) for name in old.namelist()}

    def zipped(*more: tuple[zipfile.ZipInfo | str, bytes], leave: tuple[str, ...] = ()) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as new:
            for name, content in members.items():
                if name not in leave:
                    new.writestr(name, content)
            for name_, content in more:
                new.writestr(name_, content)
        return out.getvalue()

    for name in (
        "../evil",
        "/etc/evil",
        "scenario/../../evil",
        "scenario\\..\\evil",
        "C:/evil",
        "scenario//evil",
    ):
        yield "which is no path within the archive", zipped((name, b"x"))
    link = zipfile.ZipInfo("scenario/link")
    link.external_attr = 0o120777 << 16
    yield "which is a link or a device", zipped((link, b"/etc/passwd"))
    yield "which its archive.json does not list", zipped(("scenario/more", b"x"))
    yield 'holds "scenario/x" as a file and as a folder', zipped(("scenario/x", b"x"), ("scenario/x/y", b"x"))
    yield 'does not hold "README.md"', zipped(leave=("README.md",))
    yield "it has no archive.json", zipped(leave=(ABOUT,))
    yield "is no zip file, or its end is missing", good[: len(good) // 2]
    yield "is no zip file, or its end is missing", b"PK\x03\x04" + b"\0" * 100
    for about in (b"{}", b"[]"):
        yield "is not an archive of tcpsbed", zipped((ABOUT, about), leave=(ABOUT,))
    yield "broken archive.json", zipped((ABOUT, b"{" * 100_000), leave=(ABOUT,))
    told = json.loads(members[ABOUT])
    newer = json.dumps(told | {"version": 99}).encode()
    yield "version: found 99; allowed: 1", zipped((ABOUT, newer), leave=(ABOUT,))
    for key in ("cells", "files", "scenario", "packages"):
        yield "damaged archive.json", zipped((ABOUT, json.dumps(told | {key: 7}).encode()), leave=(ABOUT,))
    outside = json.dumps(told | {"scenario": "../x.toml"}).encode()
    yield "damaged archive.json", zipped((ABOUT, outside), leave=(ABOUT,))


def test_hostile_zips_are_refused_with_one_line(ran: Path, tmp_path: Path) -> None:
    cases = list(hostile(ran / "out.zip"))
    assert len(cases) > 18
    for number, (said, content) in enumerate(cases):
        file = tmp_path / f"{number}.zip"
        file.write_bytes(content)
        with pytest.raises(DataError) as error, reading.opened(file):
            pass
        assert said in str(error.value) and "\n" not in str(error.value), (said, str(error.value))
    done = command(tmp_path, "rerun", "0.zip")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and not done.stdout
    assert not (tmp_path.parent / "evil").exists()


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_is_more_than_a_message(ran: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Bytes of an archive that were changed, or cut off: refused with one line, or as they were."""
    raw = bytearray((ran / "out.zip").read_bytes())
    ends = len(raw) - 1200  # the list of members
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(ends, len(raw) - 1) | st.integers(0, len(raw) - 1))] = data.draw(
            st.integers(0, 255)
        )
    file, folder = tmp_path / "damaged.zip", tmp_path / "unpacked"
    file.write_bytes(raw[: data.draw(st.just(len(raw)) | st.integers(0, len(raw)))])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        with reading.opened(file) as archive:
            archive.unpack(folder)
    except DataError as error:
        assert "\n" not in str(error)
        return
    with zipfile.ZipFile(ran / "out.zip") as whole:
        for name in set(whole.namelist()) - {ABOUT}:
            assert (folder / name).read_bytes() == whole.read(name)


def test_a_name_twice_is_refused(ran: Path, tmp_path: Path) -> None:
    file = tmp_path / "twice.zip"
    shutil.copy(ran / "out.zip", file)
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("README.md", "another")
    with pytest.raises(DataError, match=r'holds "README\.md" twice'), reading.opened(file):
        pass


def test_a_bomb_is_refused_before_it_is_unpacked(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the bytes that its list says; one that says less is cut where it says, and refused by its hash."""
    big = rewritten(ran / "out.zip", tmp_path / "big.zip", {"scenario/zeros": bytes(5_000_000)})
    monkeypatch.setattr(reading, "MOST_BYTES", 4_000_000)
    with pytest.raises(DataError, match=r"holds 50\d+ bytes, unpacked"), reading.opened(big):
        pass
    monkeypatch.setattr(reading, "MOST_MEMBERS", 3)
    with pytest.raises(DataError, match="holds 7 files"), reading.opened(big):
        pass


def test_a_changed_member_is_named(ran: Path, tmp_path: Path) -> None:
    """By its hash; and, where only its bytes in the zip were damaged, by the checksum of the zip."""
    for name in ("results/summary.json", "scenario/scenario.toml"):
        with zipfile.ZipFile(ran / "out.zip") as old:
            members = {one: old.read(one) for one in old.namelist()}
        members[name] = members[name].replace(b"quick", b"quack").replace(b"1", b"2")
        file = tmp_path / "changed.zip"
        with zipfile.ZipFile(file, "w") as new:
            for one, content in members.items():
                new.writestr(one, content)
        with (
            pytest.raises(DataError, match=f"holds another {name} than was archived"),
            reading.opened(file) as found,
        ):
            (tmp_path / name).mkdir(parents=True)
            found.unpack(tmp_path / name)
    raw = bytearray((ran / "out.zip").read_bytes())
    with zipfile.ZipFile(ran / "out.zip") as old:
        info = old.getinfo("results/summary.json")
    middle = info.header_offset + 100 + info.compress_size // 2
    raw[middle] ^= 0xFF
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(raw)
    done = command(tmp_path, "rerun", str(damaged))
    assert done.returncode == 2 and "damaged or truncated results/summary.json" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) < 3 and not done.stdout


PLAN = """# three loads, as in our paper
scenario = "main.toml"
seeds = 2
baseline = { links.l1.rate = "2 Mbit/s" }
[grid]
links.l1.rate = ["1 Mbit/s", "2 Mbit/s"]
[labels]
links.l1.rate = "bottleneck"
"""


@pytest.mark.slow
def test_a_campaign_comes_with_its_own_file(tmp_path: Path) -> None:
    """With labels, baseline and comments; its command makes it again."""
    file = project(tmp_path / "project")
    plan = file.with_name("plan.toml")
    plan.write_text(PLAN)
    done = command(tmp_path, "campaign", str(plan), "--jobs", "2", "--out", "out", "-q")
    assert done.returncode == 0, done.stderr
    told = command(tmp_path, "archive", "out", "out.zip")
    assert "made by: tcpsbed campaign scenario/study/plan.toml\n" in told.stdout, told.stdout + told.stderr
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "there")
    assert (tmp_path / "there/scenario/study/plan.toml").read_text() == PLAN
    again = command(tmp_path / "there", "campaign", "scenario/study/plan.toml", "--out", "again", "-q")
    assert again.returncode == 0, again.stderr
    first, second = (file.read_bytes() for file in sorted(tmp_path.rglob("sweep.parquet"))[:2])
    assert first == second
    plan.unlink()
    told = command(tmp_path, "archive", "out", "later.zip")
    assert told.returncode == 2 and "plan.toml, which is not there" in told.stderr


def test_a_campaign_that_was_made_in_python_gets_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project(tmp_path / "project")
    grid = {"links.l1.rate": ["1 Mbit/s", "2 Mbit/s"]}
    plan = {
        "scenario": "project/study/main.toml",
        "seeds": 1,
        "grid": grid,
        "labels": {"links.l1.rate": "rate"},
    }
    campaign.run(plan, out="out", jobs=2)
    packed = packing.pack(Path("out"), Path("out.zip"))
    assert packed.content.command == "tcpsbed campaign scenario/study/campaign.toml"
    with zipfile.ZipFile("out.zip") as archive:
        archive.extractall(tmp_path / "there")
    survey = files.load(tmp_path / "there/scenario/study/campaign.toml")
    assert survey.design.labels == plan["labels"] and survey.axes[0].values == ("1 Mbit/s", "2 Mbit/s")


@pytest.mark.parametrize("title", ["a\x1b[31mb", "a\nb", "a\u202eb"])
def test_a_title_that_cannot_be_seen_is_refused(ran: Path, tmp_path: Path, title: str) -> None:
    with pytest.raises(ConfigError, match=r"--title: found the invisible character U\+"):
        packing.pack(ran / "out", tmp_path / "a.zip", title=title)
    assert not list(tmp_path.iterdir())


def test_runs_that_never_ran_do_not_differ(capsys: pytest.CaptureFixture[str]) -> None:
    first = [cell(1), cell(2), cell(3)]
    before = {one: summary(1.0) for one in first}
    again = dict(
        zip(first, ("no space left", {**summary(1.0), "errors": ["died"]}, summary(1.0)), strict=True)
    )
    found = verify.verdicts(before, again)
    assert [(one.passed, one.ran) for one in found] == [(False, False), (False, False), (True, True)]
    assert rerun._counted(found) == "3 runs: 1 agree, 0 DIFFER, 0 not judged, 2 failed"


def test_a_warning_of_versions_is_told_once(ran: Path, tmp_path: Path) -> None:
    """Runs that differ in packages alone have the same versions of tcpsbed."""
    with reading.opened(ran / "out.zip") as archive:
        content = archive.content
    other = [{"tcpsbed": "0.0.9", "numpy": "1"}, {"tcpsbed": "0.0.9", "numpy": "2"}]
    lines = list(rerun._warnings(replace(content, versions=other)))
    assert sum("made with tcpsbed 0.0.9" in line for line in lines) == 1
