"""Every command of the README works as it is pasted, one after the other in an empty folder, and prints what is shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.beside
README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
SETUP = ("make", "pip", "source")
ENDLESS = {"proxy": 3}
"""What runs until Ctrl-C: here for 2 s, in which nothing passes the proxy."""
PAGES = ("demo",)
"""Whose page stays until Ctrl-C."""


def commands() -> list[list[str]]:
    """Those of code blocks and of the table; without words of set-up and commands that are named without arguments."""
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", README, re.S | re.M)).splitlines()
    cells = [
        span
        for line in README.splitlines()
        if line.startswith("| ")
        for span in re.findall(r"`(tcpsbed [^`]+)`", line)
    ]
    return [
        shlex.split(line, comments=True) for line in [*blocks, *cells] if line and not line.startswith(SETUP)
    ]


@pytest.mark.slow
def test_commands_work_as_pasted_and_print_what_is_shown(tmp_path: Path) -> None:
    told = ""
    for words in commands():
        assert words[0] == "tcpsbed"
        if words[1] in PAGES:
            continue
        more = ["--duration", "2 s"] if words[1] in ENDLESS else []
        done = subprocess.run(
            [sys.executable, "-m", *words, *more],
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "140"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == ENDLESS.get(words[1], 0), (words, done.stderr)
        told += done.stdout
    (shown,) = re.findall(r"^```text\n(.*?)^```", README, re.S | re.M)
    printed = {" ".join(line.split()) for line in told.splitlines()}
    assert [
        line for line in shown.splitlines() if line != "…" and " ".join(line.split()) not in printed
    ] == []
