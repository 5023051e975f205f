"""Runs `tcpsbed` in a process of its own with stand-ins for config, worlds and analysis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / "python"


def environment(folder: Path) -> dict[str, str]:
    """An environment in which every Python process of the test uses the stand-ins."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text("import tcpsbed, stand_in\nstand_in.install()\n")
    paths = [str(site), str(HERE), str(PYTHON), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "120"}


def tcpsbed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder and waits for it."""
    command = [sys.executable, "-m", "tcpsbed", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=120
    )


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts a command in a folder, in a process group of its own."""
    command = [sys.executable, "-m", "tcpsbed", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def scenario(folder: Path, text: str = 'name = "short"\nduration = "10 s"\n') -> Path:
    """A scenario file in the folder."""
    file = folder / "short.toml"
    file.write_text(text)
    return file
