"""`tcpsbed check`, `init`, `docs`, `schema`: everything about the scenario file itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed import results
from tcpsbed.cli import complete
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import INSECURE, WORLDS, Duration, File, Insecure, Seed, Sets, overrides
from tcpsbed.errors import ConfigError

CHECK = """Check a scenario without running it.

\b
Examples:
  tcpsbed check my.toml --set 'links.l1.rate=1 Mbit/s'
  tcpsbed check my.toml --world hosts     would a run on these computers accept it?
  tcpsbed check theirs.toml --no-code     what would it execute and read?

Says what the scenario holds, or in one message which key of which file is wrong, what was found and what is allowed. With
--world it also refuses what `run --world` refuses before it starts anything, and notes what this machine lacks for that
world. A scenario is a program: a check loads the code that it names. With --no-code nothing is imported or started; what
a run would execute is listed, and each file that it would read outside the scenario's folder.
"""
INIT = """Write a commented scenario to start from.

\b
Example:
  tcpsbed init my.toml && tcpsbed run my.toml
  tcpsbed init --list                         scenarios and examples that ship, and what each shows
  tcpsbed init --from console-arm             a copy of one, with the files that it names
  tcpsbed init --from quickstart mine.toml    the same under another name
  tcpsbed init --xlsx my.xlsx                 a blank spreadsheet with all sheets

A column of a sheet is a key of a scenario; its heading carries a note that says what it means. Fill in rows, then
`tcpsbed check my.xlsx` and `tcpsbed run my.xlsx`. Spreadsheets need openpyxl: pip install 'tcpsbed[xlsx]'.
"""
DOCS = """Print a page of the documentation.

\b
Examples:
  tcpsbed docs                  which pages there are
  tcpsbed docs scenario         every key of a scenario file

Name a page (safety), its file (safety.md), or a hook, a robot or a term: then the page about it is printed.
"""
SCHEMA = """Print the JSON Schema of scenario files.

\b
Example:
  tcpsbed schema > tcpsbed.schema.json

Editors complete and check a scenario by it: with the extension "Even Better TOML" of VS Code, or taplo, begin the file
with  #:schema ./tcpsbed.schema.json
"""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("check", help=CHECK)(guarded(check))
    app.command("init", help=INIT)(guarded(init))
    app.command("docs", help=DOCS)(guarded(docs))
    app.command("schema", help=SCHEMA)(guarded(schema))


def check(
    file: File,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    world: Annotated[
        str | None,
        typer.Option(
            "--world",
            metavar="WORLD",
            help=f"Check for this world, too: {WORLDS}, or HOSTING+NETWORK.",
            show_default=False,
            autocompletion=complete.worlds,
        ),
    ] = None,
    insecure: Insecure = False,
    no_code: Annotated[
        bool,
        typer.Option("--no-code", help="Import and start nothing; list what a run would execute and read."),
    ] = False,
) -> None:
    """Validates a scenario."""
    from tcpsbed import worlds
    from tcpsbed.cli import check

    every = overrides([*(sets or ()), *[INSECURE] * insecure], seed, duration)
    if not no_code:
        if world is not None:
            worlds.check(world)
        check.check(file, every, world)
        return
    if world is not None:
        allowed = "one of them: a check for a world loads the code of the scenario"
        raise ConfigError("found --no-code too", key="--world", allowed=allowed)
    check.read(file, every)


def init(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="File to write. [default: scenario.toml, or NAME.toml]", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Copy this one of those that ship.",
            show_default=False,
            autocompletion=complete.scenarios,
        ),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List the scenarios and examples that ship, with a line each.")
    ] = False,
    xlsx: Annotated[bool, typer.Option("--xlsx", help="Write a blank spreadsheet with all sheets.")] = False,
) -> None:
    """Writes a commented scenario, a copy of one that ships, or a blank spreadsheet."""
    from tcpsbed import shipped

    if file is not None:
        results.refuse_dash(file, "a file name, such as my.toml")
    if listing:
        _list({name: shipped.summary(file) for name, file in shipped.listed().items()})
    elif xlsx:
        if name is not None:
            allowed = f"--from {name} alone, then tcpsbed config to-xlsx"
            raise ConfigError("found --xlsx beside --from", key="--xlsx", allowed=allowed)
        _blank(file or Path("scenario.xlsx"))
    elif name is None:
        _template(file or Path("scenario.toml"))
    else:
        source = shipped.find(name)
        first, *others = shipped.write(name, file or Path(source.name))
        beside = f" with {', '.join(other.name for other in others)}" if others else ""
        print(f"{first}: written{beside}. Next: {shipped.command(source)} {first}")


def _blank(file: Path) -> None:
    from tcpsbed.scenarios import blank

    blank.write(file)
    print(f"{file}: written. Fill in its rows. Next: tcpsbed check {file}")


def _template(file: Path) -> None:
    from tcpsbed import scenarios

    text = scenarios.init_template()
    try:
        results.write_new(file, text)
    except FileExistsError:
        raise ConfigError(
            "exists already", file=file, allowed="another name; nothing was overwritten"
        ) from None
    print(f"{file}: written. Next: tcpsbed run {file}")


def _list(lines: dict[str, str]) -> None:
    width = max(map(len, lines))
    for name, text in lines.items():
        print(f"{name:{width}s}  {text}")


def docs(
    page: Annotated[
        str | None,
        typer.Argument(
            metavar="PAGE", help="One of the pages.", show_default=False, autocompletion=complete.pages
        ),
    ] = None,
) -> None:
    """Prints a page, or the list of them."""
    from tcpsbed import shipped

    if page is None:
        _list(shipped.pages())
    else:
        print(shipped.page(page), end="")


def schema() -> None:
    """Prints the JSON Schema."""
    from tcpsbed import scenarios

    print(json.dumps(scenarios.schema(), indent=2))
