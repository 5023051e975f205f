"""The command line as a page: every command by its heading of the help, with its text, arguments and options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from tcpsbed.cli.app import app
from tcpsbed.cli.group import PANELS


def page() -> str:
    """The commands in the order of `tcpsbed --help`, as Markdown."""
    group = get_command(app)
    with group.make_context("tcpsbed", [], resilient_parsing=True) as context:
        told = [
            line
            for title, names in PANELS.items()
            for line in (f"## {title}", *_commands(group, names.split(), context))
        ]
    return "\n" + "\n\n".join(told) + "\n\n"


def _commands(group: Any, names: list[str], above: Any) -> Iterator[str]:
    for name in names:
        command = group.commands[name]
        with command.make_context(name, [], parent=above, resilient_parsing=True) as context:
            words = " ".join(context.command_path.split()[1:])
            yield f"### {words}"
            if below := getattr(command, "commands", {}):
                yield from _text(command.help)
                yield from _commands(command, list(below), context)
                continue
            usage = re.sub(r"[{}]", "", " ".join(command.get_usage(context).split()[1:]))
            yield f"```text\n{usage}\n```"
            yield from _text(command.help)
            records = [(param, param.get_help_record(context)) for param in command.get_params(context)]
            rows = [
                _row(param, *record) for param, record in records if record and "--help" not in param.opts
            ]
            if rows:
                yield "\n".join(["| argument, option | meaning |", "|---|---|", *rows])


def _text(said: str) -> Iterator[str]:
    """Paragraphs of a help, with its examples as they are typed."""
    for paragraph in said.strip().split("\n\n"):
        if not paragraph.startswith("\b"):
            yield _escaped(paragraph)
            continue
        head, *lines = paragraph.removeprefix("\b\n").splitlines()
        examples = [re.sub(r"(?<=\S) {2,}(?=[^#\s])", "   # ", line.strip()) for line in lines]
        yield "```sh\n" + "\n".join(examples) + "\n```" if head.startswith("Example") else paragraph[2:]


def _row(param: Any, name: str, meaning: str) -> str:
    name = re.sub(r" <(int|float)[^>]*>", " N", re.sub(r" <(str|path|list\[\w+\])>", "", name))
    name = re.sub(r"<(\w+\|.*)>", r"\1", name).replace("|", " or ")
    return f"| `{name}` | {_escaped(' '.join(meaning.split()))} |"


def _escaped(text: str) -> str:
    """As text: options as code, and nothing that Markdown would read as a mark."""
    text = text.replace("<=", "≤").replace(">=", "≥").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"(?<![\w`'-])(--?[a-z][\w-]*)(?![^`]*`)", r"`\1`", text)
    return re.sub(r"([|*\[\]])(?![^`]*`)", r"\\\1", text)
