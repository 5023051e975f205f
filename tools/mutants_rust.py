"""Mutants of Rust for ``mutants.py``: what cargo-mutants would change, all in one build, and tests that reach a mutant.

Each mutant stands behind a switch (``switches``): the code is built once, and each test runs in a process that is told
the number of its mutant. A first run of every test, as the code is, finds the mutants that it reaches. What has no place at
a switch (constants, bodies whose type is not named, what the compiler refuses there) is built alone, and meets every test.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SWITCHES = Path(__file__).resolve().parent / "switches"
MODULE = "python/tcpsbed/_tcps.abi3.so"
BUILT = {
    "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_DEV_OPT_LEVEL": "1", "RUSTFLAGS": "--cap-lints=allow"
}  # fmt: skip
NUMBER, REACHED = "TCPSBED_MUTANT", "TCPSBED_MUTANTS_REACHED"
MOST = 4096
"""Mutants in a build, as in switches/mutant.rs."""
NONE = "none"
"""In place of a number: as the code is, at the same cost."""
Run = Callable[..., tuple[str, str, float]]
"""Of a command, its limit in seconds, variables: `passed`, `failed` or `timeout`, the failed test, and seconds."""


def changes(
    root: Path, crate: str, globs: Iterable[str]
) -> Iterator[tuple[dict[str, Any], Callable[[str], str]]]:
    """What cargo-mutants would change in files of a crate: its entry, and from the old source to the new."""
    if not shutil.which("cargo-mutants"):
        sys.exit("mutants: cargo-mutants is missing; install it with: cargo install cargo-mutants --locked")
    chosen = ["-e" + glob[1:] if glob.startswith("!") else "-f" + glob for glob in globs]
    command = ["cargo", "mutants", "--list", "--json", "-p", crate, *chosen]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"mutants: cargo mutants --list failed: {listed.stderr.strip()[-300:]}")
    for one in json.loads(listed.stdout):
        first, last = (one["span"][end] for end in ("start", "end"))

        def changed(text: str, one: Any = one, first: Any = first, last: Any = last) -> str:
            lines = text.splitlines(keepends=True)
            head = "".join(lines[: first["line"] - 1]) + lines[first["line"] - 1][: first["column"] - 1]
            tail = lines[last["line"] - 1][last["column"] - 1 :] + "".join(lines[last["line"] :])
            return f"{head}{one['replacement']}{tail}"

        yield one, changed


@dataclass
class Test:
    """A test in a process of its own: seconds that it took as the code is, and the mutants that it reached."""

    name: str
    command: list[str]
    took_s: float = 0.0
    reached: set[int] = field(default_factory=set)


@contextlib.contextmanager
def placed(root: Path, crate: str, entries: dict[int, dict[str, Any]]) -> Iterator[set[int]]:
    """With mutants behind switches in the tree: the numbers of those that compile there."""
    core = root / "crates" / "tcps-core" / "src"
    touched = {core / "lib.rs", *(root / entry["file"] for entry in entries.values())}
    originals = {path: path.read_text(encoding="utf-8") for path in touched}
    target = {**os.environ, "CARGO_TARGET_DIR": str(root.parent / "switches")}
    command = ["cargo", "run", "--quiet", "--release", "--manifest-path", str(SWITCHES / "Cargo.toml")]
    kept = dict(entries)
    try:
        shutil.copy(SWITCHES / "mutant.rs", core / "mutant.rs")
        refused = {-1}
        while refused:
            for path, text in originals.items():
                path.write_text(text + "pub mod mutant;\n" * (path.parent == core), encoding="utf-8")
            wanted = [entry | {"id": number, "diff": ""} for number, entry in kept.items()]
            told = subprocess.run(
                command, cwd=root, env=target, input=json.dumps(wanted), capture_output=True, text=True
            )
            if told.returncode:
                sys.exit(f"mutants: switches failed: {told.stderr.strip()[-300:]}")
            refused = set(json.loads(told.stdout)) or not_compiling(root, crate)
            kept = {number: entry for number, entry in kept.items() if number not in refused}
        yield set(kept)
    finally:
        (core / "mutant.rs").unlink(missing_ok=True)
        for path, text in originals.items():
            path.write_text(text, encoding="utf-8")


def building(root: Path) -> dict[str, str]:
    """Variables of the environment of cargo."""
    return {**os.environ, **BUILT, "CARGO_TARGET_DIR": str(root / "target"), "PYO3_PYTHON": sys.executable}


def not_compiling(root: Path, crate: str) -> set[int]:
    """The mutants behind switches at which the compiler finds errors, or the nearest before them.

    Ends with a message where there is none.
    """
    command = ["cargo", "check", "--quiet", "--message-format=json", "-p", crate, "--lib", "--tests"]
    told = subprocess.run(command, cwd=root, env=building(root), capture_output=True, text=True)
    refused: set[int] = set()
    for line in told.stdout.splitlines():
        message = json.loads(line).get("message") or {}
        if message.get("level") != "error" or not message["spans"]:
            continue
        here: set[int] = set()
        near: set[int] = set()
        for span in message["spans"]:
            places = ranges((root / span["file_name"]).read_bytes())
            begin, end = span["byte_start"], span["byte_end"]
            here |= {number for number, (first, last) in places.items() if first < end and begin < last}
            ahead = sorted(places, key=lambda n: (places[n][0] > begin, abs(places[n][0] - begin)))
            near |= set(ahead[:1])
        here = here or near
        if not here:
            sys.exit(f"mutants: {message['rendered']}")
        refused |= here
    return refused


def ranges(text: bytes) -> dict[int, tuple[int, int]]:
    """The bytes of a source that each mutant changed."""
    ends = {int(end[1]): end.end() for end in re.finditer(rb"/\*(\d+)>\*/", text)}
    return {int(at[1]): (at.start(), ends[int(at[1])]) for at in re.finditer(rb"/\*<(\d+)\*/", text)}


def tests(root: Path, steps: list[list[str]], files: list[Path], pytest: list[str]) -> list[Test] | None:
    """Builds the tests of crates (`steps`: arguments of ``cargo test``) and of Python; none where one does not compile."""
    found: list[Test] = []
    environment = building(root)
    for words in steps:
        command = ["cargo", "test", "--quiet", "--no-run", "--message-format=json", "-p", *words]
        built = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
        if built.returncode:
            refuse(built)
            return None
        for line in built.stdout.splitlines():
            made = json.loads(line)
            if not (made.get("executable") and made.get("profile", {}).get("test")):
                continue
            listed = subprocess.run(
                [made["executable"], "--list", "--format", "terse"], capture_output=True, text=True
            )
            names = [
                line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")
            ]
            found += [Test(name, [made["executable"], "--exact", name, "--test-threads=1"]) for name in names]
    if files:
        command = ["cargo", "build", "--quiet", "--message-format=json", "-p", "tcps-py"]
        built = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
        if built.returncode:
            refuse(built)
            return None
        shutil.copy(root / "target" / "debug" / "lib_tcps.so", root / MODULE)
        found += [Test(file.stem, [*pytest, str(file)]) for file in files]
    return found


def refuse(built: subprocess.CompletedProcess[str]) -> None:
    """Ends with a message where something else failed than a source that the compiler refuses."""
    told = [json.loads(line).get("message") or {} for line in built.stdout.splitlines()]
    if not any(message.get("level") == "error" and message["spans"] for message in told):
        sys.exit(f"mutants: cargo failed: {built.stderr.strip()[-300:]}")


def measured(root: Path, found: list[Test], run: Run) -> list[Test]:
    """Runs each test as the code is: those that pass, the quickest first, those of Python last."""
    passed = []
    for test in found:
        reached = root / "reached.txt"
        reached.unlink(missing_ok=True)
        more = {REACHED: str(reached), NUMBER: NONE}
        outcome, by, test.took_s = run(test.command, 1800, more, stop=True)
        if outcome == "passed":
            test.reached = {int(line) for line in reached.read_text().split()} if reached.exists() else set()
            passed.append(test)
        else:
            print(f"left out: {test.name} fails without a mutant ({by})", flush=True)
    return sorted(passed, key=lambda test: (test.command[0] == sys.executable, test.took_s))


def judge(number: int | None, those: Iterable[Test], run: Run) -> tuple[str, str, float]:
    """Outcome of a mutant behind its switch, or alone in its build; the test that decided, and seconds.

    A test decides that fails with the mutant, passes without, and fails with it again: others fail by chance, and are told.
    Of a mutant alone in its build it fails twice.
    """
    alone = ((NONE, False),) * 2
    turns = alone if number is None else ((str(number), False), (NONE, True), (str(number), False))
    spent, by = 0.0, "no test reaches it"
    for test in those:
        by = ""
        outcomes = []
        for which, expected in turns:
            outcome, _, took = run(test.command, 20 + 5 * test.took_s, {NUMBER: which}, stop=True)
            spent += took
            outcomes.append(outcome)
            if (outcome == "passed") != expected:
                break
        else:
            return "caught" if outcome == "failed" else outcome, test.name, spent
        if len(outcomes) > 1:
            print(f"left out: {test.name} fails by chance: {', '.join(outcomes)}", flush=True)
    return "missed", by, spent
