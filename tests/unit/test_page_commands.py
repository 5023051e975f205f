"""Every command of every page: each is one that tcpsbed takes; those that can run here do, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import page_commands as pages
import pytest
from typer.main import get_command

from tcpsbed import scenarios, shipped
from tcpsbed.cli.app import app
from tcpsbed.lab.qos import profile as limits
from tcpsbed.lab.reproduce import works
from tcpsbed.proxy import profile
from tcpsbed.worlds import registry

WITH = [page for page in pages.PAGES if any(pages.commands(page))]
LINES = [(page, line) for page in WITH for line in pages.commands(page)]
LEFT_OUT = [(page, line, why) for page, line in LINES if page != "docs/cli.md" and (why := pages.off(line))]
COMMAND: Any = get_command(app)
LONGEST_S = 150
CLOCK = re.compile(r"--world (?!virtual)|tcpsbed (proxy|netns|calibrate)|--live")
"""Commands whose numbers are those of the machine's clock."""
CHANCE = re.compile(r"DISTURBED: |good: ")
"""What is said of a machine that was busy, or was not."""
NEW = re.compile(r"tcpsbed (run|latency|sweep|campaign|step|map|search|proxy|netns)\b")
"""Commands that measure anew; others print what an earlier one has measured."""
OVERRIDES = re.compile(r"--(?:set|over)\b(?!.*(?:\.csv|\.npy|coppelia|Suturing|h264|=\"600\"))")
"""Overrides that a scenario takes as they are: no files of the reader's, no simulator, no mistake that a page shows."""


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command of these words and its options as tcpsbed reads them."""
    command = COMMAND
    context = command.make_context("tcpsbed", list(words))
    while hasattr(command, "commands"):
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, list(words), parent=context)
    return context.command_path.removeprefix("tcpsbed "), context.params


@pytest.mark.parametrize("page, line", LINES)
def test_a_command_of_a_page_is_one(page: str, line: str) -> None:
    found = list(pages.calls(line))
    assert found, line
    for words in found:
        name, given = parsed(words)
        for file in re.findall(r"\b(?:scenarios|examples)/[\w/.-]+\.\w+", " ".join(words)):
            beside = pages.ROOT / ("examples/ci" if "ci" in (*Path(page).parts, Path(page).stem) else "")
            assert (beside / file).is_file(), file
        if name == "init" and given["name"]:
            shipped.find(given["name"])
        if name == "docs" and given["page"]:
            assert given["page"] in shipped.pages()
        if name == "reproduce" and given.get("work", "all") not in (None, "all"):
            works.find(given["work"])
        if (chosen := given.get("profile")) and not Path(chosen).suffix and chosen != "list":
            assert chosen in (limits.shipped() if name == "check-qos" else profile.shipped())
        if (world := given.get("world")) and "./" not in world and "+" not in world:
            assert world in registry.names()


@pytest.mark.parametrize("line", [line for _, line in LINES if OVERRIDES.search(line)])
def test_the_keys_that_a_command_sets_are_those_of_its_scenario(line: str) -> None:
    for words in pages.calls(line):
        _, given = parsed(words)
        file = given.get("file")
        if file is None or not (pages.ROOT / file).is_file():
            continue
        over = [
            re.sub(r"(?<==)([\d.]+)\.\.[\d.]+(.*?)( step .*)?$", r"\1\2", one)
            for one in given.get("over") or ()
        ]
        firsts = [one if "{" in one else one.split(",")[0] for one in over]
        scenarios.load(pages.ROOT / file, [*(given.get("sets") or ()), *firsts])


@pytest.mark.parametrize("page", list(pages.PAGES))
def test_an_option_in_a_sentence_is_one_of_its_command(page: str) -> None:
    """Inline code such as `tcpsbed run FILE --seeds 10`: the words may be placeholders, the options exist."""
    text = pages.FENCE.sub("", pages.PAGES[page].read_text(encoding="utf-8"))
    for words in (one.split() for one in re.findall(r"`(tcpsbed [^`]+)`", text)):
        command = COMMAND
        for word in words[1:]:
            command = getattr(command, "commands", {}).get(word, command)
        known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        known |= {"-h", "--help"}
        before = words[: words.index("--")] if "--" in words else words
        options = {word.split("=")[0] for word in before if re.match(r"--?[a-z]", word)}
        assert options <= known, " ".join(words)


def test_the_first_tutorial_needs_no_clone() -> None:
    """What it runs is what it has written, or `tcpsbed init`."""
    lines = list(pages.commands("docs/tutorial.md"))
    assert lines and not [line for line in lines if re.search(r"\b(scenarios|examples)/", line)]


def test_what_a_page_adds_to_a_file_is_there_for_the_commands_behind_it() -> None:
    *before, last = pages.blocks("docs/tutorial-controller.md")
    assert not any(block.added for block in before)
    ((name, text),) = last.added
    assert name == "compare.toml" and text.startswith("[zipped]\ntraffic.cbr.packet") and "`" not in text


def test_a_reason_names_tests_that_are_there() -> None:
    for why in pages.OFF.values():
        for named in re.findall(r"\btests/[\w/*.]*\w|\btest_[\w*]+\.py", why):
            assert list(pages.ROOT.glob(named if "/" in named else f"tests/unit/{named}")), named


@pytest.mark.slow
@pytest.mark.parametrize("page, line, why", LEFT_OUT)
def test_what_runs_nowhere_here(page: str, line: str, why: str) -> None:
    pytest.skip(f"{page}: {line}: {why}")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in WITH if page != "docs/cli.md"])
def test_the_commands_of_a_page_run_and_print_what_it_shows(page: str, tmp_path: Path) -> None:
    folder, wrong, so_far = pages.prepared(page, tmp_path), [], ""
    for block in pages.blocks(page):
        for name, text in block.added:
            with (folder / name).open("a") as file:
                file.write(text)
        if not (lines := pages.script(page, block)):
            continue
        whole = "\n".join(lines)
        strict = "" if re.search(r" &$|^wait$", whole, re.M) else "set -e\n"
        done = ran(f"set -o pipefail\n{strict}{whole}", folder)
        refused = any(re.match(r"tcpsbed: |FAIL", line) for line in block.shown)
        if (done.returncode != 0) != refused:
            wrong.append(f"{whole}\n  ended with {done.returncode}: {done.stdout[-600:]}")
            continue
        said, exact = done.stdout.splitlines(), not CLOCK.search(whole if NEW.search(whole) else so_far)
        so_far += whole
        shown = [line for line in block.shown if line.strip(" …") and not CHANCE.match(line)]
        missing = [line for line in shown if pages.differs(line, said, exact=exact)]
        if missing and not any(map(pages.off, block.lines)):
            wrong.append(f"{whole}\n  does not print:\n  " + "\n  ".join(missing))
    assert not wrong, "\n\n".join(wrong)


def ran(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a shell does there, with this interpreter's tcpsbed."""
    place = folder / ".bin"
    place.mkdir(exist_ok=True)
    for name, words in (("tcpsbed", "-m tcpsbed "), ("python", "")):
        (place / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
        (place / name).chmod(0o755)
    settings = os.environ | {
        "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(pages.ROOT / "python"),
        "MPLBACKEND": "Agg",
        "COLUMNS": "200",
    }
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_S * (script.count("\n") + 1),
    )
