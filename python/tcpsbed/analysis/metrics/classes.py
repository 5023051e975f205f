"""The module `analysis/typed.py` from the table of metrics: a class for each part of the summary."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics.metric import LIST, Metric

FILE = Path(__file__).parents[1] / "typed.py"
HEAD = '''"""The parts of `summary.json` as types; made from the table of metrics, which is the place to change them."""

from __future__ import annotations

from typing import Any

from tcpsbed.analysis.parts import Distribution, Part
'''
WIDTH = 110


def module() -> str:
    """The text of the module."""
    named: dict[int, str] = {}
    whole = _class("Summary", "Content of `summary.json`", metrics.SUMMARY, named)
    return "\n\n".join([HEAD, *whole])


def _class(name: str, meaning: str, parts: Sequence[Metric], named: dict[int, str]) -> Iterator[str]:
    """A class, behind those of its parts."""
    lines = [f"class {name}(Part):", *_docstring(meaning), ""]
    for part in parts:
        if part.parts and id(part.parts) not in named:
            named[id(part.parts)] = inner = f"{'' if name == 'Summary' else name}{_noun(part)}"
            yield from _class(inner, part.meaning, part.parts, named)
        key = f"{part.key}_" if keyword.iskeyword(part.key) else part.key
        lines += [f"    {key}: {_type(part, named)}", *_docstring(part.meaning, part.unit)]
    yield "\n".join(lines) + "\n"


def _noun(part: Metric) -> str:
    """The name of the class of a part: `Flow` of `flows`."""
    words = part.key.removesuffix("_ms").split("_")
    if part.each and words[-1].endswith("s"):
        words[-1] = words[-1][:-1]
    return "".join(word.capitalize() for word in words)


def _type(part: Metric, named: dict[int, str]) -> str:
    if part.parts:
        one = named[id(part.parts)]
    elif part.shown not in ((), ("",)):
        one = "Distribution"
    else:
        one = {"": part.type, "count": "int"}.get(part.unit, "float")
    if part.each == LIST or part.listed:
        one = f"list[{one}]"
    return f"dict[str, {one}]" if part.each not in ("", LIST) else one


def _docstring(meaning: str, unit: str = "") -> list[str]:
    """What something means, with its unit."""
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", meaning)
    unit = {"load": "share of the time", "count": ""}.get(unit, unit)
    text = f"{text[:1].upper()}{text[1:]}{f' ({unit})' if unit else ''}."
    if len(text) <= WIDTH - len('    """"""'):
        return [f'    """{text}"""']
    wrapped = textwrap.wrap(f'"""{text}', WIDTH - len('    """"""'), break_on_hyphens=False)
    return [f"    {line}" for line in [*wrapped, '"""']]
