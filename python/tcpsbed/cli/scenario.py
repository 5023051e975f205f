"""`tcpsbed check`, `init`, `schema`: everything about the scenario file itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Duration, File, Seed, Sets, overrides
from tcpsbed.errors import ConfigError, counted

CHECK = """Check a scenario without running it.

\b
Example:
  tcpsbed check my.toml --set 'links.l1.rate=1 Mbit/s'

Says what the scenario holds, or in one message which key of which file is wrong, what was found and what is allowed.
"""
INIT = """Write a commented scenario to start from.

\b
Example:
  tcpsbed init my.toml && tcpsbed run my.toml
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
    app.command("schema", help=SCHEMA)(guarded(schema))


def check(file: File, sets: Sets = None, seed: Seed = None, duration: Duration = None) -> None:
    """Validates a scenario."""
    from tcpsbed import config

    scenario = config.load(file, overrides(sets, seed, duration))
    plan = config.check(scenario)
    kinds = (("component", "components"), ("flow", "flows"), ("node", "nodes"))
    parts = [counted(len(plan.get(key, ())), word) for word, key in kinds]
    parts.append(counted(len((plan.get("network") or {}).get("links", ())), "link"))
    print(f"{file}: right. {', '.join(parts)}, {plan['duration_ns'] / 1e9:g} s, seed {plan['seed']}")


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")] = Path("scenario.toml"),
) -> None:
    """Writes a commented scenario."""
    from tcpsbed import config

    text = config.init_template()
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise ConfigError(
            "exists already", file=file, allowed="another name; nothing was overwritten"
        ) from None
    print(f"{file}: written. Next: tcpsbed run {file}")


def schema() -> None:
    """Prints the JSON Schema."""
    from tcpsbed import config

    print(json.dumps(config.schema(), indent=2))
