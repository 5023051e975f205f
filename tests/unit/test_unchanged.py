"""What shipped scenarios leave in virtual time and what the command line says: the same as is stored beside this file.

`UNCHANGED=write pytest tests/unit/test_unchanged.py` stores both anew. A commit that does so changes nothing else, and lists
what has changed and why.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tcpsbed import config, worlds
from tcpsbed.cli.app import app

STORED = Path(__file__).parent / "unchanged"
RECORDS = STORED / "records.json"
TEXTS = STORED / "help.txt"
WRITE = os.environ.get("UNCHANGED") == "write"
SHIPPED = Path(__file__).resolve().parents[2] / "scenarios"
SHORT = ('duration="3 s"', 'warmup="0.5 s"', 'measure.pcapng="off"')
LEFT_OUT = {
    "console-arm": "its pictures are drawn by a process that looks at the robot by the machine's clock",
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


def stored() -> dict[str, str]:
    """Hashes by scenario."""
    found: dict[str, str] = json.loads(RECORDS.read_text())
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(file.stem, marks=pytest.mark.slow if file.stem.startswith(HEAVY) else ())
        for file in sorted(SHIPPED.glob("*.toml"))
        if file.stem not in LEFT_OUT
    ],
)
def test_the_rows_of_a_shipped_scenario_are_those_of_before(name: str, tmp_path: Path) -> None:
    worlds.run(config.load(SHIPPED / f"{name}.toml", list(SHORT)), world="virtual", out=tmp_path / "run")
    found = json.loads((tmp_path / "run" / "result.json").read_text())["records_sha256"]
    if WRITE:
        RECORDS.write_text(json.dumps(dict(sorted((stored() | {name: found}).items())), indent=1) + "\n")
    assert found == stored()[name]


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
