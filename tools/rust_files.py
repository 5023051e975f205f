"""Which Rust file of a crate uses which: paths in code outside tests, each led to the file that defines its item."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

UNREAD = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(?P<mark>\#*)".*?"(?P=mark)|\bb?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*"|'(?:\\[^']+|[^'\\])'""",
    re.S,
)
ITEM = re.compile(
    r"\b(?:(?:struct|enum|union|trait|type|fn|const|static)\s+(?:mut\s+)?|macro_rules!\s*)(\w+)"
)
INLINE = re.compile(r"(?<![\w:$.])(?:::)?\w+(?:::\w+)+")
USE = re.compile(r"(\bpub(?:\s*\([^)]*\))?\s+)?\buse\s+([^;]+);")


@dataclass
class Module:
    """A module that has a file."""

    path: tuple[str, ...]
    file: Path
    code: str
    items: set[str]
    """Names of what it defines."""
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Its names for what stands elsewhere in the crate."""
    handed_on: set[str] = field(default_factory=set)
    """Those of them that others may take from here (`pub use`)."""
    whole: list[tuple[str, ...]] = field(default_factory=list)
    """Modules all of whose names it has (`use module::*`)."""


def bare(text: str) -> str:
    """Code without comments, strings and what is compiled for tests only; every line keeps its number."""
    text = UNREAD.sub(lambda match: "\n" * match[0].count("\n"), text)
    while found := re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]", text):
        end = closed(text, found.end())
        text = text[: found.start()] + "\n" * text.count("\n", found.start(), end) + text[end:]
    return text


def closed(text: str, start: int) -> int:
    """The end of the item that starts here."""
    depth = 0
    for match in re.compile(r"[][(){};]").finditer(text, start):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if depth == 0 and match[0] in "};":
            return match.end()
    return len(text)


def leaves(tree: str, base: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Every path of a `use` tree, with the name by which it is known from there on."""
    found, part, depth, parts = [], "", 0, []
    for sign in tree + ",":
        depth += (sign == "{") - (sign == "}")
        if sign == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += sign
    for one in filter(None, parts):
        head, brace, rest = one.partition("{")
        path, _, alias = head.partition(" as ")
        steps = (*base, *(step.strip() for step in path.split("::") if step.strip()))
        if brace:
            found += leaves(rest.rpartition("}")[0], steps)
        else:
            steps = steps[:-1] if len(steps) > 1 and steps[-1] == "self" else steps
            found.append((steps, alias.strip() or steps[-1]))
    return found


def modules(base: Path) -> dict[tuple[str, ...], Module]:
    """The modules of a crate that stand in files of their own; those inside a file count as that file."""
    found: dict[tuple[str, ...], Module] = {}

    def walk(path: tuple[str, ...], file: Path) -> None:
        code = bare(file.read_text(encoding="utf-8"))
        found[path] = Module(
            path, file, code, set(ITEM.findall(code)) | set(re.findall(r"\bmod\s+(\w+)\s*\{", code))
        )
        folder = base.joinpath(*path)
        for name in re.findall(r"\bmod\s+(\w+)\s*;", code):
            inner = next((f for f in (folder / f"{name}.rs", folder / name / "mod.rs") if f.exists()), None)
            if inner:
                walk((*path, name), inner)

    walk((), base / "lib.rs")
    for module in found.values():
        for match in USE.finditer(module.code):
            for steps, name in leaves(match[2]):
                path = absolute(steps, module, found)
                if path and name == "*":
                    module.whole.append(path[:-1])
                elif path:
                    name = steps[-1] if name == "_" else name
                    module.names[name] = path
                    module.handed_on |= {name} if match[1] else set()
    return found


def absolute(
    steps: tuple[str, ...], module: Module, known: dict[tuple[str, ...], Module]
) -> tuple[str, ...] | None:
    """A path from the root of its crate; None where it leads out of the crate or to the file itself."""
    if steps[0] == "crate":
        return steps[1:]
    if steps[0] in ("self", "super"):
        ups = sum(step == "super" for step in steps)
        return module.path[: len(module.path) - ups] + tuple(s for s in steps if s not in ("self", "super"))
    if (*module.path, steps[0]) in known:
        return (*module.path, *steps)
    if steps[0] in module.names:
        return (*module.names[steps[0]], *steps[1:])
    return next(((*whole, *steps) for whole in module.whole if (*whole, steps[0]) in known), None)


def definer(
    path: tuple[str, ...],
    known: dict[tuple[str, ...], Module],
    asked: frozenset[tuple[str, ...]] = frozenset(),
) -> Module:
    """The module that defines what a path names; the last one on the way where that is not to be seen."""
    module = known[()]
    for at, step in enumerate(path):
        if (*module.path, step) in known:
            module = known[*module.path, step]
            continue
        if step not in module.items and path not in asked:
            if step in module.names:
                return definer((*module.names[step], *path[at + 1 :]), known, asked | {path})
            for whole in module.whole:
                there = definer((*whole, *path[at:]), known, asked | {path})
                if step in there.items:
                    return there
        break
    return module


def file_arrows(base: Path) -> dict[Path, dict[Path, int]]:
    """File -> file of the same crate that it uses -> one line where it does."""
    known = modules(base)
    arrows: dict[Path, dict[Path, int]] = defaultdict(dict)
    for module in known.values():
        arrows[module.file].update({})
        code = USE.sub(lambda match: "\n" * match[0].count("\n"), module.code)
        written: list[tuple[tuple[str, ...], int]] = []
        for match in INLINE.finditer(code):
            path = absolute(tuple(match[0].strip(":").split("::")), module, known)
            if path:
                written.append((path, code.count("\n", 0, match.start()) + 1))
        for name, path in module.names.items():
            # What is only handed on is used by those who take it; what leads to others is seen where it does.
            at = re.search(rf"\b{name}\b", code)
            if path not in known and (at or name not in module.handed_on):
                written.append((path, code.count("\n", 0, at.start()) + 1 if at else 1))
        for path in module.whole:
            written.append((path, 1))
        for path, line in written:
            target = definer(path, known).file
            if target != module.file:
                arrows[module.file].setdefault(target, line)
    return arrows


def circles(arrows: dict[Path, dict[Path, int]]) -> list[list[Path]]:
    """Groups of files that all lead to one another (strongly connected components of more than one file)."""
    found: list[list[Path]] = []
    number: dict[Path, int] = {}
    low: dict[Path, int] = {}
    open_: list[Path] = []

    def visit(file: Path) -> None:
        number[file] = low[file] = len(number)
        open_.append(file)
        for target in arrows.get(file, {}):
            if target not in number:
                visit(target)
                low[file] = min(low[file], low[target])
            elif target in open_:
                low[file] = min(low[file], number[target])
        if low[file] == number[file]:
            cut = open_.index(file)
            if len(open_) - cut > 1:
                found.append(sorted(open_[cut:]))
            del open_[cut:]

    for file in sorted(arrows):
        if file not in number:
            visit(file)
    return found
