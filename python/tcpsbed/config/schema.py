"""The JSON Schema of scenario files, for editors that complete and check them."""

from __future__ import annotations

from typing import Any

from tcpsbed.config.model.scenario import Scenario


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file."""
    found = _plain(Scenario.model_json_schema(by_alias=True, mode="validation"))
    files = {"type": "array", "items": {"type": "string"}}
    include = {"description": "Files that this one is laid over.", "anyOf": [{"type": "string"}, files]}
    _relax_kinds(found["$defs"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of tcpsbed",
        "description": "A teleoperation over a network, and what is measured.",
        **{key: value for key, value in found.items() if key not in ("title", "description", "properties")},
        "properties": {"include": include, **found["properties"]},
    }


def _relax_kinds(definitions: dict[str, Any]) -> None:
    """What a name or a shorthand can say need not stand in the table."""
    by_name = {"Component": ("kind",), "Hook": ("kind",), "Flow": ("direction", "rate")}
    by_name |= dict.fromkeys(("Cbr", "Poisson", "Vbr", "Replay"), ("kind",))
    for name, keys in by_name.items():
        for table in definitions[name].get("anyOf", [definitions[name]]):
            if "required" in table:
                table["required"] = [key for key in table["required"] if key not in keys]


def _plain(schema: Any) -> Any:
    """The schema without discriminators, which JSON Schema does not know: any of the tables may fit."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    names = {"oneOf": "anyOf"}
    return {names.get(key, key): _plain(value) for key, value in schema.items() if key != "discriminator"}
