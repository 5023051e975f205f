"""Commands on pages: their blocks, what a page says that they print, a reader's files, and what cannot run here."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page
    for page in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), ROOT / "examples/ci/README.md")
}
GALLERY = "docs/gallery.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
FILE = re.compile(
    r"(?:[Ss]ave\s+(?:this|it)\s+as|beside\s+it:|^)\s*`([\w.-]+\.\w+)`[^`]*?\n\n```\w+\n(.*?)^```$",
    re.S | re.M,
)
ADDED = re.compile(r"add\s+this\s+at\s+the\s+end\s+of\s+`([\w.-]+)`[^`]*?\n\n```\w+\n(.*?)^```$", re.S | re.M)
SECURE = 'include = "scenarios/dumbbell-dpm.toml"\nduration = "2 s"\nchannels.session.security = "aead"\n'
READERS = {
    "docs/security.md": {"my.toml": SECURE},
    "": {"my.toml": 'include = "scenarios/quickstart.toml"\nduration = "2 s"\n'},
}
"""Files of the reader that a page names without showing them, by page; of the empty name: of all others."""
HERE = re.compile(r"(tcpsbed|head|sleep|wait|python \w+\.py)\b")
"""Beginnings of commands that run: those of tcpsbed, and what a page puts between them."""
OFF = {
    r"^sudo ": "needs root and a laboratory of its own: tests/interop has it",
    r"--world hosts|--listen 0\.0\.0\.0|0\.0\.0\.0:|robot:|kiwi:": "needs other computers",
    r"tcp://|\$\(hostname\)": "needs a running scheduler of Dask",
    r"\bns3": "needs ns-3, and takes minutes: tests/interop/test_ns3*.py have it",
    r"^tcpsbed (console|studio|demo|study|open)\b(?!.*(--results|--scripted))": "waits for a browser: tests/realtime has it",
    r"study\.toml": "waits for a subject: tests/unit/test_study.py has it",
    r"^tcpsbed proxy(?!.*(--duration|--profile list))": "forwards until Ctrl-C: tests/unit/test_proxy*.py have it",
    r"--studio\b": "waits for a browser: tests/unit/test_studio*.py have it",
    r'^tcpsbed proxy .*--duration "1 min"': "a minute without packets ends with 3",
    r"^tcpsbed reproduce (?!--list)": "takes minutes to hours: tests/paper has it",
    r"^tcpsbed (doctor|data|image)\b": "tries this machine, or fetches files: tests/unit/test_doctor.py, test_data.py",
    r"coppeliasim|my_scenario": "needs a running CoppeliaSim: tests/unit/test_coppeliasim.py has a stand-in",
    r"my-console|^tcpsbed export first|hand\.csv|head\.csv": "needs a device or a recording of the reader's",
    r"iperf3|ros2|chromium|\./client|my_teleoperation": "runs programs that are not here",
    r"h264": "needs PyAV, which is under the GPL in part",
    r"day\.csv|5g\.toml|(mon|tues|wednes)day\.csv|hand\.onnx|map\.npy|Suturing_D001": "needs measurements of the reader's",
    r"^tcpsbed (check|run|config \S+) my\.xlsx|to-xlsx": "needs a filled sheet: tests/unit/test_xlsx.py has one",
    r"--strict": "fails on a busy machine, as it shall",
    r"firmware|board\.toml --world real": "needs minutes on a quiet machine: tests/realtime has it",
    r"--seeds 1000|quality=20|step 0\.1' +--over|--trials 40|shard\.toml|200x200|--runs 1000": "takes minutes on all cores",
    r"^tcpsbed (step|predict place) .*--world real": "takes a minute on the machine's clock: tests/realtime has it",
    r"rack\.|process\+\./mine|\./mine\.py": "needs code of the reader's: tests/unit/test_worlds_registry.py has such code",
}
"""Commands that run nowhere here, and why; the first that matches counts."""


@dataclass(frozen=True)
class Block:
    """Commands that are typed together.

    Attributes
    ----------
    lines
        A command each, as typed.
    shown
        Lines that the page shows as their output, of tables without the columns at their right.
    added
        What the page says before them to add to files: the name of each and the text at its end.
    """

    lines: tuple[str, ...]
    shown: tuple[str, ...]
    added: tuple[tuple[str, str], ...] = ()


def blocks(page: str) -> list[Block]:
    """The blocks of a page with commands, each with the output behind it."""
    text = PAGES[page].read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    found, so_far = [], 0
    for fence, after in itertools.zip_longest(fences, fences[1:]):
        if fence[1] != "sh":
            continue
        near = after and after[1] == "text" and "\n#" not in text[fence.end() : after.start()]
        near = near and not set("►◄") & set(after[2])  # a drawing
        shown = after[2].splitlines() if after and near else ()
        joined = re.sub(r"\\\n\s*", " ", fence[2]).splitlines()
        added = tuple(ADDED.findall(text[so_far : fence.start()]))
        found.append(Block(tuple(line.strip() for line in joined if line.strip()), tuple(shown), added))
        so_far = fence.end()
    return found


def commands(page: str) -> Iterator[str]:
    """The lines of a page that call tcpsbed."""
    for block in blocks(page):
        yield from (line for line in block.lines if re.match(r"(sudo )?tcpsbed ", line))


def calls(line: str) -> Iterator[list[str]]:
    """The words of each call of tcpsbed in a line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not set(word) <= set("&|;<>"):
            words.append(word)
            continue
        words = words[1:] if words[:1] == ["sudo"] else words
        if words[:1] == ["tcpsbed"]:
            yield words[1:]
        words = []


def off(line: str) -> str | None:
    """Why a command does not run here."""
    if line.startswith("tcpsbed netns") and not namespaces():
        return "needs network namespaces (unshare -rn)"
    return next((why for pattern, why in OFF.items() if re.search(pattern, line)), None)


@cache
def namespaces() -> bool:
    """Whether this machine lets its users make network namespaces."""
    made = shutil.which("unshare") and subprocess.run(["unshare", "-rn", "true"], capture_output=True)
    return bool(made) and made.returncode == 0


def prepared(page: str, folder: Path) -> Path:
    """A folder with what is in the reader's: shipped files, those that the page says to save, and those it only names."""
    for name in ("scenarios", "examples"):
        (folder / name).symlink_to(ROOT / name)
    if page == "examples/ci/README.md" or page == "docs/ci.md":
        (folder / "scenarios").unlink()
        shutil.copytree(ROOT / "examples/ci", folder, dirs_exist_ok=True)
    for name, text in READERS.get(page, READERS[""]).items():
        (folder / name).write_text(text)
    for name, text in FILE.findall(PAGES[page].read_text(encoding="utf-8")):
        (folder / name).write_text(text)
    return folder


def script(page: str, block: Block) -> list[str]:
    """What of a block runs here, shortened where the page shows no output; of the gallery what no other page has."""
    kept = [line for line in block.lines if HERE.match(line) and not off(line)]
    if page == GALLERY:
        kept = [line for line in kept if line not in elsewhere()]
    if not any(line.startswith("tcpsbed") for line in kept):
        return []
    return kept if block.shown else [shortened(line) for line in kept]


@cache
def elsewhere() -> set[str]:
    """The commands of all pages but the gallery, without comments."""
    return {
        re.sub(r"\s+#.*", "", line)
        for page in PAGES
        if page not in (GALLERY, "docs/cli.md")
        for line in commands(page)
    }


def shortened(line: str) -> str:
    """The same command for 3 s, which is enough to see that it runs."""
    brief = re.match(r"tcpsbed (run|sweep|calibrate) ", line) and "--duration" not in line
    return re.sub(r"(\s+#.*)?$", ' --duration "3 s"', line, count=1) if brief else line


def differs(line: str, said: list[str], *, exact: bool) -> bool:
    """Whether no line of the output begins as the page shows it; numbers of the machine's clock are any."""
    wanted = plain(line.removesuffix("…"), exact=exact)
    return not any(plain(one, exact=exact).startswith(wanted) for one in said)


def plain(line: str, *, exact: bool) -> str:
    """A line with one space for many, bars as one, names of folders without hash or date; unless exact, of a table's row
    what is before its numbers, and `#` for each other number.
    """
    line = re.sub(r"-([0-9a-f]{8}|\d{8}-\d{6})(?=/)", "-#", line)
    if not exact:
        line = re.sub(r"(?<=\S)  +[−+-]?\d.*", "", line)
        line = re.sub(r"[−+-]?\d+(?:[.,:\u202f\u00a0 ]?\d+)*", "#", line)
    line = re.sub(r"[▏▎▍▌▋▊▉█]+", "█", re.sub(r"[─]+", "─", line))
    return " ".join(line.split())
