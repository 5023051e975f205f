"""The JSON Schema is complete: it takes what the loader takes, names what the loader knows, refuses what it refuses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tcpsbed.config import schema
from tcpsbed.config.model.scenario import Scenario
from tcpsbed.config.model.table import Table

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = schema()
BLOCKS = re.findall(
    r"^```toml\n(.*?)^```", (ROOT / "docs/scenario.md").read_text(encoding="utf-8"), re.S | re.M
)
SHIPPED = sorted([*(ROOT / "scenarios").glob("*.toml"), ROOT / "python/tcpsbed/config/template.toml"])


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
    if t.__module__.startswith("tcpsbed.config.")
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
    assert found.get("additionalProperties") is (table.model_config.get("extra") == "allow")


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_what_ships_is_valid(validator: Any, file: Path) -> None:
    validator.validate(tomllib.loads(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_what_the_reference_shows_is_valid(validator: Any, number: int) -> None:
    """A part is valid as a file that includes the scenario under it."""
    include = 'include = "base.toml"\n' if BLOCKS[number].startswith("# part") else ""
    validator.validate(tomllib.loads(include + BLOCKS[number]))


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
        '[components]\nsrv = { node = "a", kind = "server" }\n',
        '[components]\nsrv = { node = "a", cost = { kind = "normal", mean = "1 ms", ds = "1 ms" } }\n',
        '[measure]\nrecords = "all"\n',
        "[[events]]\nat = 5\n",
    ],
)
def test_what_the_loader_refuses_for_its_form_is_invalid(validator: Any, text: str) -> None:
    assert not validator.is_valid(tomllib.loads(f'include = "base.toml"\n{text}'))


def test_a_file_that_includes_nothing_needs_components_and_flows(validator: Any) -> None:
    assert not validator.is_valid({"duration": "1 s"})
    assert validator.is_valid({"include": "base.toml"})


def test_the_schema_in_the_documentation_is_that_of_the_code() -> None:
    committed = json.loads((ROOT / "docs/scenario.schema.json").read_text(encoding="utf-8"))
    assert committed == SCHEMA, "write it again: tcpsbed schema > docs/scenario.schema.json"
