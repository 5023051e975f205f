"""`tcpsbed plugins`: everything that a scenario can name, with its source."""

from __future__ import annotations

import ast
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed import door
from tcpsbed.cli.failures import guarded
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import close_match

HELP = f"""List what a scenario can name: built in, of installed packages, and code of your own in a scenario.

\b
Examples:
  tcpsbed plugins
  tcpsbed plugins --kind transport
  tcpsbed plugins --scenario my.toml     with the files that it names

A package brings its own along by entry points: [project.entry-points."tcpsbed.hook"] with name = "module:Class", and the
same for each kind: {", ".join(door.KINDS)}.
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
    kinds = sorted({*door.KINDS, *(row["kind"] for row in rows)})
    if kind is not None and kind not in kinds:
        raise ConfigError(f'found "{kind}"', key="--kind", allowed=close_match(kind, kinds))
    chosen = [row for one in kinds if kind in (None, one) for row in rows if row["kind"] == one]
    if as_json:
        print(json.dumps(chosen, indent=1))
    else:
        ours = [
            row for row in chosen if kind is None and (row["kind"], row["source"]) == ("metric", BUILT_IN)
        ]
        print(_text([row for row in chosen if row not in ours]))
        if ours:
            print(f"and {len(ours)} built-in metrics: tcpsbed plugins --kind metric")
    for point in door.misnamed():
        allowed = close_match(point.group, [f"tcpsbed.{known}" for known in door.KINDS])
        package = f"package {point.dist.name}: " if point.dist else ""
        found = f'{package}found the entry point group "{point.group}", which tcpsbed does not read ({point.name})'
        print(f"tcpsbed: {ConfigError(found, allowed=allowed)}", file=sys.stderr)


def _built_in() -> list[Row]:
    from tcpsbed import _tcps
    from tcpsbed.analysis.metrics import page
    from tcpsbed.devices import DEVICES
    from tcpsbed.robots import ROBOTS
    from tcpsbed.scenarios.compile import builtins
    from tcpsbed.scenarios.model.place import KINDS
    from tcpsbed.studio.sinks import SINKS
    from tcpsbed.worlds import registry

    rooms = json.loads(_tcps.tables())
    docs = {(room, entry["name"]): entry["doc"] for room, entries in rooms.items() for entry in entries}
    docs |= {("predictor", name): docs["hook", name] for name in builtins.known()["predictors"]}
    docs |= {("component", name): text for name, text in KINDS.items()}
    docs |= {
        ("metric", key): f"{metric.meaning} ({metric.unit})" if metric.unit else metric.meaning
        for key, metric in page.listed()
    }
    in_python = {("robot", name): place for name, (place, _) in ROBOTS.items()}
    in_python |= {("device", name): place for name, (place, _) in DEVICES.items()}
    in_python |= {("sink", name): code.partition(":")[0] for name, code in SINKS.items()}
    docs |= registry.described() | {named: _begins(place) for named, place in in_python.items()}
    return [
        {"kind": kind, "name": name, "source": BUILT_IN, "doc": doc} for (kind, name), doc in docs.items()
    ]


def _begins(module: str) -> str:
    """The first line of a module's docstring, without importing it."""
    from tcpsbed.beside import parsed

    spec = find_spec(module)
    text = ast.get_docstring(parsed(Path(spec.origin))) if spec and spec.origin else ""
    return (text or "").partition("\n")[0].rpartition("`: ")[2].rstrip(".")


def _installed() -> list[Row]:
    found = []
    for kind in door.KINDS:
        for name, point in sorted(door.installed(kind).items()):
            source = f"package {point.dist.name}" if point.dist else "package"
            found.append({"kind": kind, "name": name, "source": source, "doc": point.value})
    return found


def _named(file: Path) -> list[Row]:
    """Code of the user's that a scenario names."""
    from tempfile import TemporaryDirectory

    from tcpsbed import scenarios
    from tcpsbed.scenarios.codes import codes
    from tcpsbed.scenarios.compile.metrics import metrics

    scenario = scenarios.load(file)
    with TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan = scenarios.compile_plan(scenario, folder)
    own = {
        (kind, code["symbol"], code["name"])
        for kind, code in codes(plan)
        if code["kind"] in ("python", "library") and not code["name"].startswith("tcpsbed.")
    }
    for _, code in metrics(scenario):
        place, _, symbol = code.rpartition(":")
        own.add(("metric", symbol, place))
    return [
        {"kind": kind, "name": name, "source": place, "doc": f"in {file}"}
        for kind, name, place in sorted(own)
    ]


def _text(rows: list[Row]) -> str:
    wide = {key: max((len(row[key]) for row in rows), default=0) for key in ("kind", "name", "source")}
    lines = ("  ".join([*(row[key].ljust(wide[key]) for key in wide), row["doc"]]).rstrip() for row in rows)
    return "\n".join(lines)
