"""What the site adds to the pages of `docs`: pages and files beside that folder, colours, dark pictures, a diagram."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
BESIDE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(BESIDE))

import diagram  # noqa: E402  (beside this file)

from tcpsbed import palette  # noqa: E402

HOME = "README.md"
"""The page that a folder is opened with; `docs/index.md`, the list of all pages, is `pages.html`."""
OWN = {"assets/site.css": "style.css", "assets/iframe-worker.js": "iframe-worker.js", "api.md": "api.md"}
"""Files of the site by the file beside this one."""
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)")
PICTURE = re.compile(r"<picture>.*?src=\"(?P<file>[^\"]+)\".*?alt=\"(?P<alt>[^\"]*)\".*?</picture>", re.S)
IMAGE = re.compile(r"!\[(?P<alt>[^]]*)\]\((?P<file>[^)]+\.png)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.S | re.M)


def on_files(files: Files, *, config: Any) -> Files:
    """Adds what pages lead to outside of `docs`, and the files of the site itself."""
    index = files.src_uris["index.md"]
    index.dest_uri = index.url = "pages.html"
    for name in sorted(_outside()):
        file = File.generated(config, name, abs_src_path=str(ROOT / name))
        if name == HOME:
            file.dest_uri = file.url = "index.html"
        files.append(file)
    for name, source in OWN.items():
        files.append(File.generated(config, name, abs_src_path=str(BESIDE / source)))
    files.append(File.generated(config, "assets/palette.css", content=_palette()))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Leads links and pictures to where they are in the site, and nests lists as Markdown of Python does."""
    where = _home(page.file)
    if page.file.src_uri == HOME:
        page.meta["hide"] = ["navigation"]
    parts = FENCE.split(markdown)
    parts[::2] = [_prose(part, where) for part in parts[::2]]
    return "".join(diagram.drawn(part) if part.startswith("```mermaid\n") else part for part in parts)


@cache
def _outside() -> set[str]:
    """Files that pages lead to, as paths from the top, and pages among them that these lead to."""
    found = {HOME}
    waiting = [*(f"docs/{file.name}" for file in sorted((ROOT / "docs").glob("*.md"))), HOME]
    while waiting:
        name = waiting.pop()
        text = FENCE.sub("", (ROOT / name).read_text(encoding="utf-8"))
        for target in LINK.findall(text):
            led = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if led.startswith("docs/") or led in found or not (ROOT / led).is_file():
                continue
            found.add(led)
            if led.endswith(".md"):
                waiting.append(led)
    return found


def _home(file: File) -> str:
    """The folder of a page, from the top of the project."""
    return posixpath.dirname(file.src_uri) if file.src_uri in _outside() else "docs"


def _prose(text: str, where: str) -> str:
    text = PICTURE.sub(lambda found: f"![{found['alt']}]({found['file']})", text)
    text = LINK.sub(lambda found: _led(found[1], where), text)
    text = re.sub(r"\[([^]]*)\]\(directory:\)", r"\1", text)
    text = IMAGE.sub(lambda found: "".join(_shades(found["file"], found["alt"])), text)
    return re.sub(r"^ {2,3}(?=[-*] )", "    ", text, flags=re.M)


def _led(target: str, where: str) -> str:
    """The same place in the site; folders have no page."""
    path = posixpath.normpath(posixpath.join(where, target))
    if (ROOT / path).is_dir():
        return "directory:"
    return posixpath.relpath(path.removeprefix("docs/"), "" if where == "docs" else where or ".")


def _shades(file: str, alt: str) -> Iterator[str]:
    """A picture, and where there is one its dark variant, of which the page shows one."""
    dark = file.replace(".png", "-dark.png")
    if not (ROOT / "docs" / dark).is_file():
        yield f"![{alt}]({file})"
        return
    yield f"![{alt}]({file}#only-light)"
    yield f"![{alt}]({dark}#only-dark)"


def _palette() -> str:
    """The product's colours, as variables of the site's theme."""
    light = (palette.PAPER, palette.INK, palette.SOFT, palette.RULE, palette.PALETTE)
    dark = (palette.DARK_PAPER, palette.DARK_INK, palette.DARK_SOFT, palette.DARK_RULE, palette.ON_DARK)
    rules = []
    for scheme, (paper, ink, soft, rule, lines) in (("default", light), ("slate", dark)):
        names = {"paper": paper, "ink": ink, "soft": soft, "rule": rule}
        names |= {f"line-{number}": color for number, color in enumerate(lines)}
        said = "".join(f"  --{name}: {color};\n" for name, color in names.items())
        rules.append(f'[data-md-color-scheme="{scheme}"] {{\n{said}}}\n')
    return "".join(rules)
