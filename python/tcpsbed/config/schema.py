"""The JSON Schema of scenario files, for editors that complete and check them."""

from __future__ import annotations

from typing import Any

from tcpsbed.config.model.scenario import Scenario


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file."""
    found = _plain(Scenario.model_json_schema(by_alias=True, mode="validation"))
    files = {"type": "array", "items": {"type": "string"}}
    include = {"description": "Files that this one is laid over.", "anyOf": [{"type": "string"}, files]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of tcpsbed",
        "description": "A teleoperation over a network, and what is measured.",
        **{key: value for key, value in found.items() if key not in ("title", "description", "properties")},
        "anyOf": [{"required": ["include"]}, {"required": ["components", "flows"]}],
        "properties": {"include": include, **found["properties"]},
    }


def _plain(schema: Any) -> Any:
    """The schema without discriminators, which JSON Schema does not know (any of the tables may fit), and without
    keys that must be there: an included file, a name or a shorthand may say them.
    """
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    names, left_out = {"oneOf": "anyOf"}, ["discriminator"]
    if isinstance(schema.get("required"), list):  # not the key of a table that is called so
        left_out.append("required")
    return {names.get(key, key): _plain(value) for key, value in schema.items() if key not in left_out}
