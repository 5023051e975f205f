"""The commands of `tcpsbed`, and the shared parts of their help."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

from tcpsbed import inputs
from tcpsbed.cli import ends
from tcpsbed.cli.group import Commands

EPILOG = """\b
A first session:
  tcpsbed init my.toml                        write a commented scenario
  tcpsbed check my.toml                       is it right?
  tcpsbed run my.toml                         in virtual time, seconds for minutes
  tcpsbed run my.toml --world real --live     on real sockets
  tcpsbed latency my.toml                     component by component
  tcpsbed sweep my.toml --over 'links.l1.rate=1 Mbit/s,2 Mbit/s' --seeds 10
  tcpsbed proxy --profile lte 7000=127.0.0.1:7100   a network between your own programs
  tcpsbed reproduce --list                    published experiments, run again
  tcpsbed data                                recordings that they take
  tcpsbed doctor                              what this machine can do
  tcpsbed step step.toml                      how a control loop behaves over the network
  tcpsbed docs glossary                       what the words of tables and reports mean
"""

COMMANDS = {
    "run": ["run"],
    "scenario": ["check", "init", "docs", "schema"],
    "new": ["new"],
    "plugins": ["plugins"],
    "latency": ["latency"],
    "sweep": ["sweep"],
    "campaign": ["campaign"],
    "search": ["search"],
    "step": ["step"],
    "stability": ["map"],
    "tune": ["tune"],
    "bilateral": ["bilateral"],
    "predict": ["predict"],
    "check_qos": ["check-qos"],
    "history": ["runs", "open"],
    "plot": ["plot"],
    "runs": ["show", "compare", "report", "export"],
    "calibrate": ["calibrate"],
    "proxy": ["proxy"],
    "netns": ["netns"],
    "doctor": ["doctor"],
    "image": ["image"],
    "key": ["key"],
    "xlsx": ["config"],
    "reproduce": ["reproduce"],
    "archive": ["archive"],
    "rerun": ["rerun"],
    "data": ["data"],
    "studio": ["studio"],
    "demo": ["demo"],
    "console": ["console"],
    "study": ["study"],
}
"""Files of this folder, and the commands that each adds."""


def version(show: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True)) -> None:
    """A testbed for teleoperation over networks: one scenario, in virtual time or on real sockets."""
    if show:
        from tcpsbed import __version__

        typer.echo(__version__)
        raise typer.Exit


def commands(first: str = "") -> typer.Typer:
    """The command line; where its first word is a command, only the file of that is loaded."""
    made = typer.Typer(
        name="tcpsbed",
        cls=Commands,
        help="A testbed for teleoperation over networks: one scenario, in virtual time or on real sockets.",
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    made.callback(invoke_without_command=True)(version)
    for file in [file for file, adds in COMMANDS.items() if first in adds] or COMMANDS:
        import_module(f"tcpsbed.cli.{file}").register(made)
    return made


def __getattr__(name: str) -> Any:
    """`app`, the command line with all commands, is made when it is first used."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault("app", commands())


def at_home(words: Sequence[str]) -> list[str]:
    """The words of a command line with `~` expanded in front of a word and of an option's value (`--out=~/x`), which a shell
    leaves as it is in quotes; behind `--` are commands of the user.

    Examples
    --------
    >>> at_home(["run", "--out=~/a", "--", "~/b"])[2:]
    ['--', '~/b']
    """
    own = words.index("--") if "--" in words else len(words)
    return [*map(_at_home, words[:own]), *words[own:]]


def _at_home(word: str) -> str:
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{option}{equals}{inputs.at_home(value)}"


def main() -> None:
    """Runs the command line."""
    # Help and refusals are written outside of commands.
    ends.run(lambda: commands(*sys.argv[1:2])(args=at_home(sys.argv[1:]), prog_name="tcpsbed"))
