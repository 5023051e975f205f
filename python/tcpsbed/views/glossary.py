"""Terms of the glossary (`tcpsbed docs glossary`) in a page: which of them a heading uses, and what they mean."""

from __future__ import annotations

import re
from functools import cache

from tcpsbed import shipped

_ENTRY = re.compile(r'^- <a id="([\w-]+)"></a>\*\*(.+?)\*\*: (.+(?:\n  .+)*)', re.M)
_POINTER = re.compile(r"(?<=[.])\s+\[[^]]+\]\([\w-]+[.]md[^)]*\)[^.]*[.]$")
_MARKUP = re.compile(r"\[([^]]+)\]\([^)]+\)|[`*]")


@cache
def entries() -> dict[str, tuple[str, str]]:
    """Each term with its anchor and its meaning, without markup and without pages to read on."""
    found = _ENTRY.findall(shipped.page("glossary"))
    return {_plain(name): (anchor, _plain(_POINTER.sub("", text))) for anchor, name, text in found}


def meanings() -> dict[str, str]:
    """What each term means, by its name in small letters."""
    return {name.casefold(): text for name, (_, text) in entries().items()}


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\1", " ".join(text.split()))


@cache
def anchor(title: str) -> str:
    """The anchor of the longest term that a heading begins with; empty without one."""
    words = title.casefold().split()
    known = {tuple(name.casefold().split()): anchor for name, (anchor, _) in entries().items()}
    return next((known[start] for n in range(len(words), 0, -1) if (start := tuple(words[:n])) in known), "")


def used(page: str) -> list[tuple[str, str, str]]:
    """Anchor, name and meaning of the terms that headings of a page link to."""
    return [(at, name, text) for name, (at, text) in entries().items() if f'href="#term-{at}"' in page]
