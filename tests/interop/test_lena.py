"""5G-LENA, the module nr of users' own ns-3: found by pkg-config, compiled against declarations, told where it lacks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tcpsbed.doctor import programs
from tcpsbed.worlds import ns3_program

pytestmark = [pytest.mark.needs("ns3"), pytest.mark.beside, pytest.mark.slow]

FOUND = """\
includedir={headers}
Name: ns3-nr
Description: declared for a test
Version: 3.37
Requires: ns3-lte
Cflags: -I${{includedir}}
"""


@pytest.fixture
def declared(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ns-3 with 5G-LENA, as far as pkg-config and a compiler can tell; its folder of headers."""
    headers = tmp_path / "include"
    (headers / "ns3").mkdir(parents=True)
    for file in (root / "ns3" / "declared" / "ns3").iterdir():
        (headers / "ns3" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "ns3-nr.pc").write_text(FOUND.format(headers=headers))
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    return headers / "ns3"


def flags(root: Path) -> list[str]:
    """What the Makefile compiles with."""
    command = ["make", "-s", "-C", str(root / "ns3"), "flags"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout.split()


def test_what_is_written_for_it_compiles_against_its_signatures(root: Path, declared: Path):
    """Against declarations of our own: never run, and not against the module itself."""
    assert ns3_program.lena() is None
    found = flags(root)
    assert "-DTCPSBED_NR" in found
    source = root / "ns3" / "src" / "nr.cc"
    compiled = ["g++", *found, "-Werror", "-fsyntax-only", str(source)]
    done = subprocess.run(compiled, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_version_with_a_core_network_of_its_own_is_named_and_left_out(root: Path, declared: Path):
    (declared / "nr-epc-pgw-application.h").touch()
    assert "is later" in (ns3_program.lena() or "")
    assert "-DTCPSBED_NR" not in flags(root)
    (row,) = (row for row in programs.programs() if row.name == "5G-LENA (ns-3)")
    assert not row.there and "later than 3.1" in row.said and "2.3 to 3.1" in row.remedy


@pytest.mark.parametrize("version", ["3.36.1", "3-dev"])
def test_a_version_for_an_older_ns3_is_named_and_left_out(root: Path, declared: Path, version: str):
    file = declared.parents[1] / "ns3-nr.pc"
    file.write_text(file.read_text().replace("Version: 3.37", f"Version: {version}"))
    assert "is earlier than 2.3" in (ns3_program.lena() or "")
    assert "-DTCPSBED_NR" not in flags(root)
    (row,) = (row for row in programs.programs() if row.name == "5G-LENA (ns-3)")
    assert not row.there and f"earlier than 2.3, with ns-3 {version}" in row.said


def test_the_doctor_says_whether_it_is_there(declared: Path):
    (row,) = (row for row in programs.programs() if row.name == "5G-LENA (ns-3)")
    assert row.there and row.said == "module nr of ns-3 3.37"


@pytest.mark.skipif(ns3_program.lena() is None, reason="the ns-3 of this computer has 5G-LENA")
def test_a_program_without_it_says_so():
    """As that of another computer does, whose ns-3 the one with the scenario does not know."""
    radio = {"kind": "nr", "up": True, "other": 1}
    links = [
        {"from": 0, "to": 1, "radio": radio},
        {"from": 1, "to": 0, "radio": radio | {"up": False, "other": 0}},
    ]
    spec = {
        "vertices": 2,
        "links": links,
        "routes": [[None, 0], [1, None]],
        "traffic": [],
        "seed": 1,
        "end_ns": 1,
    }
    told = json.dumps({"network": spec}) + "\n"
    done = subprocess.run([ns3_program.built()], input=told, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "has no 5G-LENA (module nr)" in json.loads(done.stdout)["failed"]
