"""`tcpsbed plugins`: all that a scenario can name, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.errors import ConfigError

HELP = """List what a scenario can name: built in, of installed packages, and code of your own in a scenario.

\b
Examples:
  tcpsbed plugins
  tcpsbed plugins --kind transport
  tcpsbed plugins --scenario my.toml     with the files that it names

A package brings its own along by entry points: [project.entry-points."tcpsbed.hook"] with name = "module:Class", and the
same for controller, robot, transport, hosting and network.
"""
BUILT_IN = "built in"

Row = dict[str, str]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("plugins", help=HELP)(guarded(plugins))


def plugins(
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Only this one.", show_default=False)
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option("--scenario", metavar="FILE", help="With what it names.", show_default=False),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, and nothing else.")
    ] = False,
) -> None:
    """Lists everything; see HELP."""
    rows = _built_in() + _installed() + (_named(scenario) if scenario else [])
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    if kind is not None and kind not in kinds:
        raise ConfigError(f'found "{kind}"', key="--kind", allowed=", ".join(kinds))
    chosen = [row for one in kinds if kind in (None, one) for row in rows if row["kind"] == one]
    print(json.dumps(chosen, indent=1) if as_json else _text(chosen))


def _built_in() -> list[Row]:
    from tcpsbed import _tcps
    from tcpsbed.config.compile import builtins
    from tcpsbed.worlds import registry

    rooms = json.loads(_tcps.tables())
    names = {kind.removesuffix("s"): found for kind, found in builtins.known().items()}
    names |= {room: [entry["name"] for entry in entries] for room, entries in rooms.items()}
    names |= {"hosting": list(registry.HOSTINGS), "network": list(registry.NETWORKS)}
    docs = {(room, entry["name"]): entry["doc"] for room, entries in rooms.items() for entry in entries}
    return [
        {"kind": kind, "name": name, "source": BUILT_IN, "doc": docs.get((kind, name), "")}
        for kind, found in sorted(names.items())
        for name in sorted(found)
    ]


def _installed() -> list[Row]:
    from tcpsbed import door

    found = []
    for kind in door.KINDS:
        for name, point in sorted(door.installed(kind).items()):
            source = f"package {point.dist.name}" if point.dist else "package"
            found.append({"kind": kind, "name": name, "source": source, "doc": point.value})
    return found


def _named(file: Path) -> list[Row]:
    """Code of the user's that a scenario names."""
    from tempfile import TemporaryDirectory

    from tcpsbed import config

    with TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan = config.compile_plan(config.load(file), folder)
    own = {
        (kind, code["symbol"], code["name"])
        for kind, code in _code(plan)
        if code["kind"] in ("python", "library") and not code["name"].startswith("tcpsbed.")
    }
    return [
        {"kind": kind, "name": name, "source": place, "doc": f"in {file}"}
        for kind, name, place in sorted(own)
    ]


def _code(plan: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and place of each piece of code in a plan."""
    for component in plan["components"]:
        if robot := component.get("robot"):
            yield "robot", robot["run"]
    for flow in plan["flows"]:
        steps = (step for visit in flow["path"] for step in visit["steps"])
        yield from (("hook", step["run"]) for step in steps if step.get("run"))
    for channel in plan["channels"]:
        place, colon, symbol = channel["transport"].rpartition(":")
        if colon:
            yield "transport", {"kind": "python", "name": place, "symbol": symbol}
        own = (value for value in channel["params"].values() if isinstance(value, dict))
        yield from (("controller", code) for code in own)

    named = [("queue", link["queue"]["discipline"]) for link in plan["network"]["links"] if "queue" in link]
    named += [("traffic", entry["model"]) for entry in plan["network"]["traffic"]]
    for kind, of in named:
        place, colon, symbol = of["kind"].rpartition(":")
        if colon:
            yield kind, {"kind": "python", "name": place, "symbol": symbol}


def _text(rows: list[Row]) -> str:
    wide = {key: max((len(row[key]) for row in rows), default=0) for key in ("kind", "name", "source")}
    lines = ("  ".join([*(row[key].ljust(wide[key]) for key in wide), row["doc"]]).rstrip() for row in rows)
    return "\n".join(lines)
