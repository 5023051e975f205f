"""Scenarios, examples and pages that come with the package, and copies of them for the user to change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import shorten

from tcpsbed.errors import ConfigError, one_line
from tcpsbed.nearest import close_match, distance, meant, nearest

DATA = Path(__file__).resolve().parent / "data"
SCENARIOS, EXAMPLES, DOCS = DATA / "scenarios", DATA / "examples", DATA / "docs"
"""In the source tree links to its folders of these names; in an installed package folders."""
POLICY = DATA / "SECURITY.md"
"""The threat model, a page beside those of `DOCS`."""
PLACES = (SCENARIOS, EXAMPLES, EXAMPLES / "hooks")
BASES = {
    "shipped:scenarios": SCENARIOS,
    "shipped:examples": EXAMPLES,
    "shipped:examples/hooks": EXAMPLES / "hooks",
}
"""Folders that a scenario's `base` may name wherever tcpsbed is installed."""

STARTS = {".py": "python", ".ipynb": "jupyter lab"}
"""What starts a file that is no scenario, by its ending."""
WIDTH = 120
"""Most letters of what a file is said to show."""
NAMED = re.compile(r'"((?:[\w.-]+/)*)([\w-]+\.(?:toml|csv|py))(?::\w+)?"')
"""A file that a scenario names: its folder, and itself."""


def listed() -> dict[str, Path]:
    """Scenarios by name, then notebooks and programs in Python by name with `.ipynb` and `.py`."""
    found = {file.stem: file for place in PLACES for file in sorted(place.glob("*.toml"))}
    others = [*sorted((EXAMPLES / "notebooks").glob("*.ipynb")), *sorted(EXAMPLES.glob("*.py"))]
    return found | {file.name: file for file in others}


def find(name: str) -> Path:
    """The file of a scenario or example.

    Raises
    ------
    ConfigError
        If there is none of this name.
    """
    return _of(name, listed(), "--from")


def scenario(name: str) -> Path:
    """The file of a scenario, which is no notebook and no program.

    Raises
    ------
    ConfigError
        If there is none of this name.
    """
    return _of(name, {known: file for known, file in listed().items() if file.suffix == ".toml"}, "name")


def _of(name: str, files: dict[str, Path], key: str) -> Path:
    if not isinstance(name, str) or name not in files:
        like = meant(name, files) if isinstance(name, str) and len(name) <= WIDTH else ""
        allowed = f"a name from tcpsbed init --list, such as quickstart{like}"
        raise ConfigError(f'found "{one_line(str(name)[:WIDTH])}"', key=key, allowed=allowed)
    return files[name].resolve()


def base_of(folder: Path) -> str | None:
    """The name in `BASES` of a folder; none if it does not come with the package."""
    return next((name for name, one in BASES.items() if one.resolve() == folder.resolve()), None)


def remedy(file: Path) -> str:
    """How to get a scenario that is not there, if one of its name ships; else empty."""
    ships = file.suffix in (".toml", "") and file.stem in listed()
    return f"tcpsbed init --from {file.stem}" if ships else ""


def summary(file: Path) -> str:
    """What a file shows: the first sentence of the comment or docstring that it begins with, or the title of a notebook."""
    if file.suffix == ".ipynb":
        title: str = json.loads(file.read_text(encoding="utf-8"))["cells"][0]["source"][0]
        return title.strip("# \n")
    head = re.match(r'"""[^"]*|(?:#.*\n)+', file.read_text(encoding="utf-8"))
    assert head is not None, f"{file} begins with a comment"
    text = re.sub(r"\s*\[[A-Z][^\]]* \d{4}\b[^\]]*\]|^(#|\"\"\") ?", "", head.group(), flags=re.M).split(
        "\n\n"
    )[0]
    first = re.split(r"[.:](?=\s+[A-Z]|$)", " ".join(text.split()), maxsplit=1)[0]
    return shorten(first, WIDTH, placeholder=" …")


def command(file: Path) -> str:
    """The command that starts a scenario or example: from its first comment, otherwise `tcpsbed run`."""
    if file.suffix in STARTS:
        return STARTS[file.suffix]
    said = re.search(
        r"^#.*`?tcpsbed (console|study|step|latency|bilateral)\b", file.read_text(encoding="utf-8"), re.M
    )
    return f"tcpsbed {said[1]}" if said else "tcpsbed run"


def copies(name: str, to: Path) -> dict[Path, str]:
    """What a copy of a scenario or example consists of: the files to write and their texts.

    Parameters
    ----------
    name
        As `listed` has it.
    to
        The file that is to hold it; the files that it names lie beside that one, whatever folders they came from.
    """
    written: dict[Path, str] = {}
    waiting = [(find(name), to)]
    while waiting:
        file, place = waiting.pop()
        if place in written:
            continue
        text = file.read_text(encoding="utf-8")
        for folder, other in NAMED.findall(text):
            if (file.parent / folder / other).is_file():
                text = text.replace(f'"{folder}{other}', f'"{folder if folder == "./" else ""}{other}')
                waiting.append((file.parent / folder / other, to.parent / other))
        written[place] = text
    return written


def write(name: str, to: Path) -> list[Path]:
    """Writes a copy of a scenario or example and of the files that it names; the files, the copy itself first.

    A file that is there already with the same text is kept.

    Raises
    ------
    ConfigError
        If there is none of this name, or a file with another text is there; nothing is written then.
    """
    files = copies(name, to)
    for file, text in files.items():
        if file.exists() and (file == to or file.read_bytes() != text.encode()):
            raise ConfigError("exists already", file=file, allowed="another name; nothing was written")
    for file, text in files.items():
        if not file.exists():
            with file.open("x", encoding="utf-8") as out:
                out.write(text)
    return list(files)


def page(name: str) -> str:
    """The text of a page of the documentation: by its name, with `.md` or without, or by a word in one of its headings,
    or in its code spans, such as names of hooks and robots.

    Raises
    ------
    ConfigError
        If there is none of this name.
    """
    known, wanted = pages(), name.removesuffix(".md").removeprefix("docs/")
    near = nearest(wanted, known) or ""
    mistyped = len(wanted) > 5 and distance(wanted, near) == 1
    found = wanted if wanted in known else None if mistyped else _about(wanted)
    if found is None:
        raise ConfigError(f'found "{name}"', key="docs: PAGE", allowed=close_match(wanted, known))
    return _text(found)


def _text(page: str) -> str:
    return (POLICY if page == POLICY.stem else DOCS / f"{page}.md").read_text(encoding="utf-8")


def _about(word: str) -> str | None:
    """The page with a word in a heading, in a line `run = "…"`, most often in code spans, or as a term."""
    quoted = re.escape(word)
    for pattern in (
        rf"^#.*\b{quoted}\b",
        rf"^(?:run|robot) = \"{quoted}\"|robot = \"{quoted}\"|^\| `{quoted}`",
        rf"`{quoted}`",
        rf"\*\*{quoted}\*\*",
    ):
        counts = {name: len(re.findall(pattern, _text(name), re.M | re.I)) for name in pages()}
        best = max(counts, key=lambda name: counts[name])
        if counts[best]:
            return best
    return None


def pages() -> dict[str, str]:
    """Pages of the documentation by name, with their titles."""
    files = [*sorted(DOCS.glob("*.md")), POLICY]
    return {file.stem: file.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ") for file in files}
