"""The module `model/keys.py` from the tables: their keys as parameters, for completion and checkers of types."""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from tcpsbed.scenarios.model.code import Channel, Hook
from tcpsbed.scenarios.model.flow import Flow
from tcpsbed.scenarios.model.link import Link, Queue, Topology
from tcpsbed.scenarios.model.measure import Event, Measure
from tcpsbed.scenarios.model.place import Node
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.model.table import Table

FILE = Path(__file__).parent / "model" / "keys.py"
TABLES: tuple[type[Table], ...] = (
    *(Channel, Event, Flow, Hook, Link, Measure, Node, Queue, Scenario, Topology),
)
"""The tables that `tcpsbed` shows."""
HEAD = '''"""The keys of tables as parameters; made from the tables, which are the place to change them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

# fmt: off
'''
WIDTH = 110 - len('    """"""')


def module() -> str:
    """The text of the module."""
    return "\n\n".join([HEAD, *map(_class, TABLES)])


def _class(table: type[Table]) -> str:
    lines = [f"class {table.__name__}Keys(TypedDict, total=False):", f'    """Of `{table.__name__}`."""', ""]
    for name, field in table.model_fields.items():
        key = field.alias or name
        lines.append(f"    {key}{'_' * keyword.iskeyword(key)}: {_type(field.annotation)}")
        lines += _docstring(table.text(name))
    return "\n".join(lines) + "\n"


def _type(annotation: Any) -> str:
    """The type of a value where that is a plain one; others have several ways to be written."""
    inner = [one for one in get_args(annotation) if one is not type(None)]
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(_quoted, inner))}]"
    if annotation in (str, int, bool):
        return str(annotation.__name__)
    if get_origin(annotation) is not Annotated and len(inner) == 1 and type(None) in get_args(annotation):
        found = _type(inner[0])
        return found if found == "Any" else f"{found} | None"
    return "Any"


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _docstring(text: str) -> Iterator[str]:
    """What a key is."""
    if not text:
        return
    if len(text) <= WIDTH:
        yield f'    """{text}"""'
        return
    for line in textwrap.wrap(f'"""{text}', WIDTH, break_on_hyphens=False):
        yield f"    {line}"
    yield '    """'
