"""Commands on pages: their blocks, what a page says that they print, a reader's files, and what cannot run here."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page
    for page in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), ROOT / "examples/ci/README.md")
}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
FILE = re.compile(
    r"(?:[Ss]ave\s+this\s+as|beside\s+it:|^)\s*`([\w.-]+\.\w+)`[^`]*?\n\n```\w+\n(.*?)^```$", re.S | re.M
)
SECURE = 'include = "scenarios/dumbbell-dpm.toml"\nduration = "2 s"\nchannels.session.security = "aead"\n'
READERS = {
    "docs/security.md": {"my.toml": SECURE},
    "": {"my.toml": 'include = "scenarios/quickstart.toml"\nduration = "2 s"\n'},
}
"""Files of the reader that a page names without showing them, by page; of the empty name: of all others."""
BESIDE = ("python", "head", "sleep", "wait")
"""Commands that run between those of tcpsbed."""
OFF = {
    r"^sudo ": "needs root and a laboratory of its own: tests/interop has it",
    r"--world hosts|--listen 0\.0\.0\.0|0\.0\.0\.0:|robot:|kiwi:": "needs other computers",
    r"tcp://|\$\(hostname\)": "needs a running scheduler of Dask",
    r"\bns3": "needs ns-3, and takes minutes: tests/interop/test_ns3*.py have it",
    r"^tcpsbed (console|studio|demo|study|open)\b(?!.*(--results|--scripted))": "waits for a browser: tests/interop has it",
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
    r"my\.xlsx(?!.*--xlsx)|to-xlsx": "needs a sheet that the reader has filled in: tests/unit/test_xlsx.py has one",
    r"--strict": "fails on a busy machine, as it shall",
    r"firmware|board\.toml --world real": "needs minutes on a quiet machine: tests/realtime has it",
    r"--seeds 1000|quality=20|step 0\.1' +--over|--trials 40|shard\.toml": "takes minutes on all cores",
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
        Lines that the page shows as their output; a line that ends with `…` is a beginning.
    """

    lines: tuple[str, ...]
    shown: tuple[str, ...]


def blocks(page: str) -> list[Block]:
    """The blocks of a page with commands, each with the output behind it."""
    fences = FENCE.findall(PAGES[page].read_text(encoding="utf-8"))
    found = []
    for number, (language, text) in enumerate(fences):
        if language != "sh":
            continue
        after = fences[number + 1 : number + 2]
        shown = after[0][1].splitlines() if after and after[0][0] == "text" else ()
        joined = re.sub(r"\\\n\s*", " ", text).splitlines()
        found.append(Block(tuple(line.strip() for line in joined if line.strip()), tuple(shown)))
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
    return next((why for pattern, why in OFF.items() if re.search(pattern, line)), None)


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


def script(block: Block) -> list[str]:
    """What of a block runs here, shortened where the page shows no output."""
    kept = [line for line in block.lines if line.split()[0] in ("tcpsbed", *BESIDE) and not off(line)]
    if not any(line.startswith("tcpsbed") for line in kept):
        return []
    return kept if block.shown else [shortened(line) for line in kept]


def shortened(line: str) -> str:
    """The same command for a second, which is enough to see that it runs."""
    brief = re.match(r"tcpsbed (run|sweep|calibrate) ", line) and "--duration" not in line
    return re.sub(r"(\s+#.*)?$", ' --duration "1 s"', line, count=1) if brief else line


def differs(line: str, said: list[str], *, exact: bool) -> bool:
    """Whether no line of the output is as the page shows it; numbers of the machine's clock are any."""
    wanted = plain(line.removesuffix("…"), exact=exact)
    others = (plain(one, exact=exact) for one in said)
    if line.endswith("…"):
        return not any(one.startswith(wanted) for one in others)
    return wanted not in others


def plain(line: str, *, exact: bool) -> str:
    """A line with one space for many, bars as one, and unless exact `#` for each number."""
    if not exact:
        line = re.sub(r"[−+-]?\d+(?:[.,:\u202f\u00a0 ]?\d+)*", "#", line)
    line = re.sub(r"[▏▎▍▌▋▊▉█]+", "█", re.sub(r"[─]+", "─", line))
    return " ".join(line.split())
