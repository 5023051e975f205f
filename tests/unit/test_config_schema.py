"""The JSON Schema is complete: it takes what the loader takes, names what the loader knows, refuses what it refuses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tcpsbed.scenarios import schema
from tcpsbed.scenarios.model.entries import entries
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.model.table import Table

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = schema()
BLOCKS = re.findall(
    r"^```toml\n(.*?)^```", (ROOT / "docs/scenario.md").read_text(encoding="utf-8"), re.S | re.M
)
SHIPPED = sorted([*(ROOT / "scenarios").glob("*.toml"), ROOT / "python/tcpsbed/scenarios/template.toml"])


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    return jsonschema.Draft202012Validator(SCHEMA)


def tables(of: type[Table] = Table) -> set[type[Table]]:
    """All kinds of tables that there are."""
    return {table for sub in of.__subclasses__() for table in {sub} | tables(sub)}


def definitions(name: str) -> list[dict[str, Any]]:
    """The schema of a kind of table, without its shorthand."""
    found = SCHEMA if name == "Scenario" else SCHEMA["$defs"][name]
    return [one for one in found.get("anyOf", [found]) if "properties" in one] or [found]


# A table with nothing but its kind is written as a text; those of other files than scenarios are elsewhere.
TABLES = [
    t
    for t in tables()
    if t.__module__.startswith("tcpsbed.scenarios.")
    and not t.__name__.startswith("_")
    and set(t.keys()) - {"kind"}
]


@pytest.mark.parametrize("table", sorted(TABLES, key=lambda table: table.__name__))
def test_every_key_of_every_table_is_in_it_with_a_description(table: type[Table]) -> None:
    (found,) = definitions(table.__name__)
    keys = set(table.keys()) | ({"include"} if table is Scenario else set())
    assert set(found["properties"]) == keys
    for key, value in found["properties"].items():
        assert "description" in value or "$ref" in value or "const" in value, f"{table.__name__}.{key}"
    assert found.get("additionalProperties") is table.extra


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_what_ships_is_valid(validator: Any, file: Path) -> None:
    assert not list(validator.iter_errors(tomllib.loads(file.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_what_the_reference_shows_is_valid(validator: Any, number: int) -> None:
    """A part is valid as a file that includes the scenario under it."""
    include = 'include = "base.toml"\n' if BLOCKS[number].startswith("# excerpt") else ""
    assert not list(validator.iter_errors(tomllib.loads(include + BLOCKS[number])))


@pytest.mark.parametrize(
    "text",
    [
        'durations = "1 s"\n',
        'duration = "1"\n',
        "duration = 5\n",
        "seed = -1\n",
        '[flows.kinematic]\nrte = "1 kHz"\n',
        '[links.l1]\nrate = "1 Mbps"\n',
        '[links.l1]\nqueue = { limit = "1 kB", discipline = "codl" }\n',
        '[links.l1]\nqueue = { limit = "1 kB", discipline = "gates", gates = [["1 ms", [-1]]] }\n',
        '[components]\nsrv = { node = "a", kind = "server" }\n',
        '[components]\nsrv = { node = "a", cost = { kind = "normal", mean = "1 ms", ds = "1 ms" } }\n',
        '[measure]\nrecords = "all"\n',
        "[[events]]\nat = 5\n",
        '[flows.kinematic]\ntransport = { kind = "udp", mtu = "1200" }\n',
        '[flows.kinematic]\ntransport = { kind = "udp", mtv = "1200 B" }\n',
        '[flows.kinematic]\nplayout = { kind = "fixed", dealy = "20 ms" }\n',
        '[hooks.predict]\nrun = "linear"\nparams = { horizon = 10 }\n',
        '[hooks.code]\nrun = "quantise16"\nparams = { colour = 1 }\n',
        '[hooks.code]\nrun = "uniform"\nparams = { n = 0 }\n',
        '[components.a]\nrobot = { run = "wall_mass", params = { mass_kg = "1 kg" } }\n',
    ],
)
def test_what_the_loader_refuses_for_its_form_is_invalid(validator: Any, text: str) -> None:
    assert not validator.is_valid(tomllib.loads(f'include = "base.toml"\n{text}'))


@pytest.mark.parametrize(
    "room, by", [("transport", "kind"), ("playout", "kind"), ("hook", "run"), ("robot", "run")]
)
def test_defaults_of_every_table_of_parameters_are_valid_where_they_stand(
    validator: Any, room: str, by: str
) -> None:
    """The default of each parameter, as its table writes it, and no other key."""
    for name, entry in entries(room).items():
        found = {
            param["name"]: written(param) for param in entry["params"] if param["default"] not in ("", "-")
        }
        table = {by: name} | (found if by == "kind" else {"params": found})
        at: dict[str, Any] = {
            "playout": {"flows": {"force": {"playout": table}}},
            "hook": {"hooks": {"one": table}},
        }
        at |= {
            "transport": {"flows": {"force": {"transport": table}}},
            "robot": {"components": {"a": {"robot": table}}},
        }
        said = [error.message for error in validator.iter_errors({"include": "base.toml"} | at[room])]
        assert not said, f"{name}: {said}"


def written(param: dict[str, Any]) -> Any:
    """The default of a parameter in a scenario."""
    text = param["default"]
    if "choice" in param["unit"] or param["unit"] == "text":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_a_file_that_includes_nothing_needs_components_and_flows(validator: Any) -> None:
    assert not validator.is_valid({"duration": "1 s"})
    assert validator.is_valid({"include": "base.toml"})


def test_the_schema_in_the_documentation_is_that_of_the_code() -> None:
    committed = json.loads((ROOT / "docs/scenario.schema.json").read_text(encoding="utf-8"))
    assert committed == SCHEMA, "write it again: tools/tables.py --write"
