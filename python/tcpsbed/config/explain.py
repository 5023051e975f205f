"""Turns what pydantic refuses into one message that names file, key, what was found and what is allowed."""

from __future__ import annotations

import difflib
import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tcpsbed.config.origin import Key, Origin
from tcpsbed.config.units import shown
from tcpsbed.errors import ConfigError, counted

_TYPES = {
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "dict_type": "a table",
    "list_type": "a list",
    "tuple_type": "a list",
    "float_parsing": "a number",
    "finite_number": "a finite number",
}


def explain(error: ValidationError, origin: Origin) -> ConfigError:
    """The first thing that is wrong."""
    details = error.errors(include_url=False)
    first = min(details, key=lambda detail: detail["type"] != "unknown")
    key = _key(first, origin.document)
    found, allowed = _sentences(first)
    return origin.error(key, found, allowed)


def _key(detail: ErrorDetails, document: dict[str, Any]) -> Key:
    """The key in the file: without the tags that unions put into the path, with the key that a table complains about."""
    key: list[str | int] = []
    here: Any = document
    for part in detail["loc"]:
        inside = isinstance(here, dict) and part in here
        if not inside and not (isinstance(here, list) and isinstance(part, int) and part < len(here)):
            continue
        key.append(part)
        here = here[part]
    context = detail.get("ctx", {})
    return (*key, context["key"]) if "key" in context else tuple(key)


def _sentences(detail: ErrorDetails) -> tuple[str, str]:
    context: dict[str, Any] = detail.get("ctx", {})
    found = f"found {shown(detail['input'])}"
    kind = detail["type"]
    if kind in ("refused", "unknown", "absent"):
        return context["found"], context["allowed"]
    if kind in ("literal_error", "union_tag_invalid"):
        if kind == "union_tag_invalid":
            found = f'found the kind "{context["tag"]}"'
        return found, _choice(
            str(context.get("tag", detail["input"])), context.get("expected") or context["expected_tags"]
        )
    if kind == "missing" and isinstance(detail["input"], list):
        return f"found {counted(len(detail['input']), 'value')}", "all values, as in tcpsbed docs scenario"
    if kind == "union_tag_not_found":
        return "found no kind", "a table with a kind"
    return found, _TYPES.get(kind) or _limit(kind, context) or detail["msg"]


def _limit(kind: str, context: dict[str, Any]) -> str | None:
    bounds = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}
    bounds |= {"greater_than": ("gt", "above"), "less_than": ("lt", "below")}
    if kind in bounds:
        name, words = bounds[kind]
        return f"a number {words} {context[name]}"
    if kind == "too_short":
        return f"at least {context['min_length']} of them"
    return f"{context['max_length']} entries" if kind == "too_long" else None


def _choice(value: str, expected: str) -> str:
    names = re.findall(r"'([^']*)'", expected)
    close = difflib.get_close_matches(value, names, 1, 0.6)
    listed = ", ".join(f'"{name}"' for name in names)
    return f'{listed} (did you mean "{close[0]}"?)' if close else listed
