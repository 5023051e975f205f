"""`tcpsbed new`: a file of the user's own, with a scenario and a test."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed import results
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
    "device": ("own_device", "Pointer"),
    "hook": ("own_hook", "Scaled"),
    "hosting": ("own_hosting", "Pinned"),
    "loss": ("own_loss", "Fading"),
    "metric": ("own_metric", "Slowest"),
    "network": ("own_network", "Alone"),
    "plant": ("own_plant", "Shaft"),
    "predictor": ("own_predictor", "Straight"),
    "queue": ("own_queue", "Shortest"),
    "robot": ("own_robot", "Drawer"),
    "sink": ("own_sink", "Percentiles"),
    "traffic": ("own_traffic", "Bursts"),
    "transport": ("own_transport", "NoMerge"),
}
"""The example that a file of each kind begins as, and its class."""
WORLDS = {"hosting": "{code}+emulator", "network": "process+{code}"}
"""The world in which code that is no part of a scenario is used."""
TEST = '''"""{name} runs, and samples come through it."""

from pathlib import Path

import tcpsbed


def test_samples_come(tmp_path):
    scenario = Path(__file__).with_name("{name}.toml")
    run = tcpsbed.run(scenario, out=tmp_path / "run", world={world})
    assert run.summary["errors"] == []
    assert all(flow["delivered"] > 0 for flow in run.flows.values())
'''
SINK_TEST = '''"""{name} takes what a run sends it."""

from {name} import {own}


def test_it_takes_numbers(tmp_path):
    sink = {own}(str(tmp_path / "out"))
    sink.take({{"t_s": 1.0, "flows": [{{"name": "haptic", "p99_ms": 12.5}}]}})
    sink.end()
    assert "12.5" in (tmp_path / "out").read_text()
'''


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("new", help=HELP)(guarded(new))


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(KINDS), show_default=False)],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the files and, in Python, of the module.", show_default=False
        ),
    ],
) -> None:
    """Writes the files; see HELP."""
    if kind not in KINDS:
        raise ConfigError(f'found "{kind}"', key="new: KIND", allowed=close_match(kind, KINDS))
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        allowed = "lowercase letters, digits and _, starting with a letter, such as my_rule"
        raise ConfigError(f'found "{name}"', key="new: NAME", allowed=allowed)
    if taken := _taken(name):
        raise ConfigError(
            f'found "{name}", {taken}', key="new: NAME", allowed=f"another name, such as my_{name}"
        )
    files = _files(kind, name)
    for file in files:
        if os.path.lexists(file):
            raise ConfigError("exists already", file=file, allowed="another name; nothing was written")
    with ExitStack() as undo:
        for file, text in files.items():
            results.write_new(file, text)
            undo.callback(file.unlink, missing_ok=True)
        undo.pop_all()
    code = f"{name}.py:{_class(name)}"
    command = f"tcpsbed run {name}.toml"
    if kind in WORLDS:
        command += f" --world {WORLDS[kind].format(code=f'./{code}')}"
    if kind == "sink":
        command = f"tcpsbed studio {name}.toml --sink ./{code}"
    print(f"{', '.join(map(str, files))}: written. Next: {command}")


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
    beside = f"{{scenario.with_suffix('.py')}}:{own}"
    world = f'f"{WORLDS[kind].format(code=beside)}"' if kind in WORLDS else '"virtual"'
    test = (SINK_TEST if kind == "sink" else TEST).format(name=name, own=own, world=world)
    return dict(sorted(files.items())) | {Path(f"test_{name}.py"): test}
