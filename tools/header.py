"""The C interface of hooks as a page: the comments of its header as text, its declarations as they are."""

from __future__ import annotations

import re
from pathlib import Path

HEADER = Path(__file__).resolve().parents[1] / "crates/tcps-control/include/tcps_hook.h"


def page() -> str:
    """Each comment that begins a part, followed by the declarations of that part, as Markdown."""
    text = HEADER.read_text(encoding="utf-8")
    first, body = text.split("*/", 1)
    declared = body[body.index("/* What a hook returns") : body.index("#if defined(__STDC_VERSION__)")]
    parts = [_comment(re.sub(r"^.*SPDX.*$", "", first, flags=re.M))]
    for part in declared.strip().split("\n\n"):
        comment, code = re.fullmatch(r"(?:/\*(.*?)\*/\n)?(.*)", part, re.S).groups()  # type: ignore[union-attr]
        named = re.findall(r"^} (\w+);|\b(TCPS_\w+) =", code, re.M)
        if named:
            parts.append("## " + ", ".join(map("".join, named)))
        if comment:
            parts.append(_comment(comment))
        parts.append(f"```c\n{code.strip()}\n```")
    return "\n" + "\n\n".join(parts) + "\n\n"


def _comment(text: str) -> str:
    """The text of a comment: what is indented in it is code, in which a second column is a comment."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in text.removeprefix("/*").strip("\n ").splitlines()]
    parts = re.split(
        r"((?:^ {4}.*\n)+)", "\n".join(line.rstrip() for line in lines).strip() + "\n", flags=re.M
    )
    parts[::2] = [re.sub(r"^ +", "", part, flags=re.M) for part in parts[::2]]
    parts[1::2] = [f"```c\n{_code(part)}\n```\n" for part in parts[1::2]]
    return "".join(parts).strip()


def _code(text: str) -> str:
    text = re.sub(r"^ {4}", "", text.rstrip(), flags=re.M)
    return re.sub(r"; {2,}(.+(?:\n {30,}.+)*)", lambda said: f";   /* {said[1]} */", text)
