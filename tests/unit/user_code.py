"""What tests of users' code share: a scenario with a hook of theirs, in Python or in C, and the command that runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCENARIO = """
duration = "2 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "1 kHz"
sample = "24 B"
[links.l]
from = "a"
to = "b"
"""
HOOK = '[hooks.kinematics]\nrun = "{}"\nat = "tactile-operator"\n'


def written(folder: Path, code: str, what: str = HOOK, name: str = "./mine.py:Mine") -> Path:
    (folder / "mine.py").write_text(code)
    (folder / "mine.toml").write_text(SCENARIO + what.format(name))
    return folder / "mine.toml"


def built(folder: Path, source: str) -> None:
    """A scenario whose hook is the C function `mine`."""
    (folder / "mine.c").write_text("#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n" + source)
    command = ["cc", "-O0", "-shared", "-fPIC", "-pthread", "-o", "libmine.so", "mine.c"]
    subprocess.run(command, cwd=folder, check=True)
    written(folder, "", name="./libmine.so:mine")


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "tcpsbed", *words]
    return subprocess.run(whole, cwd=folder, capture_output=True, text=True, timeout=60)
