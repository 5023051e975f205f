"""`tcpsbed new`: a file of the user's own, with a scenario and a test."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import close_match

HELP = """Write a short, working controller, queue, robot or the like for you to change: code, a scenario and a test.

\b
Example:
  tcpsbed new controller calm     writes calm.py, calm.toml, test_calm.py
  tcpsbed run calm.toml
  pytest test_calm.py             needs pytest

Nothing is overwritten.
"""
KINDS = {
    "component": ("own_component", "Smoother"),
    "controller": ("own_controller", "Patient"),
    "delay": ("own_delay", "Steps"),
    "hook": ("own_hook", "Scaled"),
    "loss": ("own_loss", "Fading"),
    "metric": ("own_metric", "Late"),
    "plant": ("own_plant", "Shaft"),
    "predictor": ("own_predictor", "Straight"),
    "queue": ("own_queue", "Shortest"),
    "robot": ("own_robot", "Drawer"),
    "traffic": ("own_traffic", "Bursts"),
    "transport": ("own_transport", "NoMerge"),
}
"""The example that a file of each kind begins as, and its class."""
TEST = '''"""{name} runs, and samples come through it."""

from pathlib import Path

import tcpsbed


def test_samples_come(tmp_path):
    run = tcpsbed.run(Path(__file__).with_name("{name}.toml"), out=tmp_path / "run")
    assert run.summary["errors"] == []
    assert all(flow["delivered"] > 0 for flow in run.flows.values())
'''


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("new", help=HELP)(guarded(new))


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(KINDS), show_default=False)],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of the files, as Python names them.", show_default=False)
    ],
) -> None:
    """Writes the files; see HELP."""
    if kind not in KINDS:
        raise ConfigError(f'found "{kind}"', key="KIND", allowed=close_match(kind, KINDS))
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        allowed = "small letters, digits and _, a letter first, such as my_rule"
        raise ConfigError(f'found "{name}"', key="NAME", allowed=allowed)
    if taken := _taken(name):
        raise ConfigError(f'found "{name}", {taken}', key="NAME", allowed=f"another name, such as my_{name}")
    files = _files(kind, name)
    for file in files:
        if file.exists():
            raise ConfigError("exists already", file=file, allowed="another name; nothing was written")
    for file, text in files.items():
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    print(f"{', '.join(map(str, files))}: written. Next: tcpsbed run {name}.toml")


def _taken(name: str) -> str | None:
    """Why a module of this name cannot be imported, or hides another from what is beside it."""
    if keyword.iskeyword(name) or keyword.iskeyword(_class(name)):
        return "a word of Python's own"
    if name in sys.stdlib_module_names:
        return "a module of Python's own"
    spec = importlib.util.find_spec(name)
    # A folder (None) hides no file, and a file that is there is told below.
    beside = (None, str(Path(f"{name}.py").resolve()))
    return None if spec is None or spec.origin in beside else "a module that is installed"


def _class(name: str) -> str:
    """The class in a file of this name."""
    return "".join(part.title() for part in name.split("_"))


def _files(kind: str, name: str) -> dict[Path, str]:
    """The files to write, with their texts."""
    from tcpsbed import shipped

    example, code = KINDS[kind]
    own = _class(name)

    def renamed(text: str) -> str:
        text = re.sub(r"\bexamples/(hooks/)?|(?<=\.) [^.]* in C: \w+\.c\.", "", text)
        text = re.sub(rf"(?<=class ){code}\b|(?<=:){code}\b", own, text)
        return text.replace(example.replace("_", "-"), name.replace("_", "-")).replace(example, name)

    copies = shipped.copies(example, Path(f"{name}.toml"))
    files = {Path(renamed(str(file))): renamed(text) for file, text in copies.items()}
    return dict(sorted(files.items())) | {Path(f"test_{name}.py"): TEST.format(name=name)}
