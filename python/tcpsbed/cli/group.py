"""Groups of commands: help in panels, and errors for unknown commands and options."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from tcpsbed.cli.colour import BOLD, paint
from tcpsbed.cli.failures import guarded
from tcpsbed.errors import ConfigError, printable
from tcpsbed.nearest import close_match, meant

PANELS = {
    "Run": "demo init check run studio latency sweep campaign search reproduce archive rerun calibrate",
    "Analyse": "runs open show compare plot report export check-qos",
    "Control loops": "step map tune bilateral predict",
    "Emulate": "proxy netns",
    "People": "console study",
    "Machine": "doctor image key data",
    "Learn and extend": "docs schema config plugins new",
}
"""Commands by the heading of the help that they stand below."""
EXAMPLES = {
    "archive": "runs/latest out.zip",
    "campaign": "campaign.toml",
    "compare": "runs/a runs/b",
    "config from-xlsx": "my.xlsx",
    "config link-from-csv": "measured.csv",
    "image": "root.tar",
    "key": "lab.key",
    "netns": "--profile lte -- ping 10.77.0.2",
    "new": "hook my_hook",
    "plot": "runs/latest --out fig.pdf",
    "rerun": "out.zip",
    "search": "my.toml --over 'links.l1.delay=0..50 ms' --until 'haptic.delay_ms.p99 > 30'",
    "study": "study.toml",
    "sweep": "my.toml --over 'links.l1.rate=1 Mbit/s,2 Mbit/s'",
    "tune": "--rtt '20 ms'",
}
"""What follows a command, for those that take more than one scenario or one folder of a run."""
VALUES = {
    "--cluster": "local:2",
    "--delay": "'10 ms'",
    "--duration": "'10 s'",
    "--out": "runs/a",
    "--over": "'links.l1.rate=1 Mbit/s,2 Mbit/s'",
    "--kind": "ccdf",
    "--profile": "lte",
    "--seed": "3",
    "--seeds": "20",
    "--set": "links.l1.delay='10 ms'",
    "--style": "acm",
    "--where": "transport=udp,dpm",
    "--world": "real",
    "--y": "haptic.delay_ms.p99",
}
"""Examples of what follows an option."""
_BOUNDS = {"ge": "of {} or more", "gt": "above {}", "le": "of {} or less", "lt": "below {}"}
"""How bounds of numbers are written, by the names that typer's types have for them."""
UsageError: Any = typer.BadParameter.__mro__[1]
"""What is wrong with the words of a command line: typer has it, and gives it no name."""


class Group(TyperGroup):
    """Commands with a common first word."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first word.

        Raises
        ------
        ConfigError
            If there is none.
        """
        word = args[0]
        if word in self.commands or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        options = [name for param in self.get_params(ctx) for name in param.opts if name[0] == "-"]
        allowed = ", ".join(self.commands) + meant(word, [*self.commands, *options])
        if word.endswith((".toml", ".xlsx")):
            allowed = f"a command before the file, such as tcpsbed run {word}"
        place = " ".join([*_words(ctx), "COMMAND"])
        raise ConfigError(f'found "{word}"', key=place, allowed=allowed)


class Commands(Group):
    """All commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands in panels, each with its whole first sentence."""
        wide = max(map(len, self.commands))
        for title, names in PANELS.items():
            told = [(name, self.commands[name]) for name in names.split() if name in self.commands]
            with formatter.section(paint(title, BOLD, sys.stdout)):
                formatter.write_dl([(name.ljust(wide), one.get_short_help_str(200)) for name, one in told])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs a command, and ends the process with its status."""
        run: Callable[..., Any] = super().main
        sys.exit(guarded(_refused)(lambda: run(*args, **kwargs | {"standalone_mode": False})) or 0)


def _refused(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return error.exit_code
        raise _told(error) from None


def _words(ctx: Any) -> list[str]:
    """The words of a command behind `tcpsbed`."""
    return str(ctx.command_path).split()[1:] if ctx else []


def _told(error: Any) -> ConfigError:
    """The error of a command's words, with the allowed ones."""
    ctx, kind, words = error.ctx, type(error).__name__, " ".join(_words(error.ctx))
    if kind == "NoSuchOption":
        options = [name for param in ctx.command.params for name in param.opts if name.startswith("-")]
        found = f'found "{error.option_name}", which is not an option of tcpsbed {words}'.rstrip()
        allowed = close_match(error.option_name, options)
        if "--set" in options:
            key = "a key of the scenario by --set KEY=VALUE, such as --set links.l1.delay='10 ms'"
            allowed = f"{key}; or an option: {allowed}"
        return ConfigError(found, allowed=allowed)
    if kind == "BadOptionUsage":
        value = VALUES.get(error.option_name, "VALUE")
        allowed = f"{error.option_name} {value}; tcpsbed {words or 'COMMAND'} --help explains it"
        return ConfigError("needs a value", key=error.option_name, allowed=allowed)
    param: Any = getattr(error, "param", None)
    name = error.param_hint if getattr(error, "param_hint", None) else param and param.opts[0]
    if getattr(param, "param_type_name", "") == "argument":
        name = param.metavar or param.name
    usage = " ".join(ctx.get_usage().split()[1:]) if ctx else "tcpsbed --help"
    usage = usage.translate({ord("{"): None, ord("}"): None}).replace("......", "...").replace("…...", "…")
    if kind == "MissingParameter":
        said = (getattr(param, "help", None) or "").rstrip(".")
        what = f" ({said[:1].lower()}{said[1:]})" if said else ""
        usual = "runs/latest" if name == "DIR" else "my.toml"
        allowed = f"tcpsbed {words} {EXAMPLES.get(words, usual)}"
        return ConfigError(f"found no {name}{what}", key=words, allowed=allowed)
    if name and hasattr(error.__cause__, "errors"):
        return _number(name, error.__cause__.errors()[0])
    found = printable(error.message.rstrip("."))
    found = re.sub(
        r"^Got unexpected extra arguments?(\(s\))? \(", "found more arguments than it takes (", found
    )
    found = found[:1].lower() + found[1:]
    if name:
        return ConfigError(found, key=f"{words}: {name}" if words else name)
    return ConfigError(found, key=words or None, allowed=usage)


def _number(name: str, wrong: dict[str, Any]) -> ConfigError:
    """The error of a number that an option does not take, of which typer's types say the kind and the bound."""
    bounds = wrong.get("ctx", {})
    whole = wrong["type"].startswith("int") or any(type(bounds.get(key)) is int for key in _BOUNDS)
    what = "a whole number" if whole else "a number"
    wrong_digits = "parsing" in wrong["type"] and whole
    said = [
        words.format(str(bounds[key]).removesuffix(".0")) for key, words in _BOUNDS.items() if key in bounds
    ]
    such = f"such as {20 if whole else 0.5}"
    allowed = f"{what} {said[0]}" if said else f"{what}{' in the digits 0 to 9' * wrong_digits}, {such}"
    return ConfigError(f'found "{printable(str(wrong["input"]))}"', key=name, allowed=allowed)
