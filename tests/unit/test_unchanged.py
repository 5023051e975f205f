"""What shipped scenarios leave in virtual time and what the command line says: the same as is stored beside this file.

`UNCHANGED=write pytest tests/unit/test_unchanged.py` stores both anew. A commit that does so changes nothing else, and lists
what has changed and why. Rows that are promised for one machine only may be others on another processor.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.analysis.facts import PROMISES
from tcpsbed.cli.app import app

STORED = Path(__file__).parent / "unchanged"
RECORDS = STORED / "records.json"
TEXTS = STORED / "help.txt"
WRITE = os.environ.get("UNCHANGED") == "write"
SHIPPED = Path(__file__).resolve().parents[2] / "scenarios"
SHORT = ('duration="3 s"', 'warmup="0.5 s"', 'measure.pcapng="off"')
LEFT_OUT = {
    "console-arm": "its pictures are drawn by a process that looks at the robot by the machine's clock",
    "demo": "its pictures are drawn by a process that looks at the robot by the machine's clock",
    "lte-crowd": "virtual time refuses its radio",
    "lte-ns3": "virtual time refuses its radio",
    "lte-pingpong": "virtual time refuses its radio",
}
HEAVY = (
    "console",
    "headset",
    "telerobot",
    "explore",
    "predictive-display",
    "almouhamed-frames",
    "polachan-demo",
)
"""Beginnings of names of scenarios with pictures or physics, of which a second takes one."""


def stored() -> dict[str, list[str]]:
    """By scenario the hash, and the processor where it holds only there."""
    found: dict[str, list[str]] = json.loads(RECORDS.read_text())
    return found


def processor() -> str:
    """Maker, family and model of this machine's processor."""
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    told = {key.strip(): value.strip() for key, _, value in lines}
    return " ".join(told.get(key, "?") for key in ("vendor_id", "cpu family", "model"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(file.stem, marks=pytest.mark.slow if file.stem.startswith(HEAVY) else ())
        for file in sorted(SHIPPED.glob("*.toml"))
        if file.stem not in LEFT_OUT
    ],
)
def test_the_rows_of_a_shipped_scenario_are_those_of_before(name: str, tmp_path: Path) -> None:
    run = tcpsbed.run(SHIPPED / f"{name}.toml", out=tmp_path / "run", set=list(SHORT))
    found = [run.summary["records_sha256"]]
    if run.summary["promise"] != PROMISES["anywhere"]:
        found.append(processor())
    if WRITE:
        RECORDS.write_text(json.dumps(dict(sorted((stored() | {name: found}).items())), indent=1) + "\n")
    before = stored()[name]
    if len(found) == 2 and found[0] != before[0] and found[1] != before[1]:
        pytest.skip(f"its rows are those of {before[1]}, and others on {found[1]}")
    assert found[0] == before[0]


def test_every_shipped_scenario_is_stored() -> None:
    assert set(stored()) == {file.stem for file in SHIPPED.glob("*.toml")} - set(LEFT_OUT)


def helps(command: object, words: list[str]) -> list[str]:
    """The help of a command and of those below it."""
    said = CliRunner().invoke(app, [*words, "--help"], terminal_width=80, color=False)
    assert said.exit_code == 0, words
    below = getattr(command, "commands", {})
    return [said.output, *(text for name in below for text in helps(below[name], [*words, name]))]


def test_the_help_of_every_command_is_that_of_before() -> None:
    said = "\n".join(helps(typer.main.get_command(app), []))
    if WRITE:
        TEXTS.write_text(said)
    assert said == TEXTS.read_text()
