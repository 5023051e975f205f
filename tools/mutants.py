#!/usr/bin/env python3
"""Tests the tests: changes one place of the code at a time, and sees whether a test fails.

``tools/mutants.py transport --number 20``  draws 20 mutants of that part, and tests those not tested yet
``tools/mutants.py transport --again``      tests the part's survivors once more, after tests were added
``tools/mutants.py --ledger``               the table by part, and every survivor
``tools/mutants.py --write``                the same table in docs/checks.md

cargo-mutants lists the mutants of Rust (``cargo install cargo-mutants --locked``). mutmut makes those of Python
(``.venv/bin/pip install mutmut``); those of texts are left out. The draw follows the hash of the seed and of the mutant: a
larger sample holds the smaller one, and a change of other code moves neither. Mutants are tested in a copy of the tree in
target/mutants, one after another. A mutant meets the tests that reach it, the quickest first: in Rust those of its crate and
those of tcps-run in virtual time, then tests of Python; in Python the unit tests that run its line. The first that fails
ends the mutant; a test that runs several times as long as without it counts as failed. A test catches a mutant if it fails
twice, and passes without the mutant; others are left out and named. Where the mutant is alone in its build, failing twice
is enough.

A line a mutant goes into tools/mutants.local/ledger.jsonl, which is not committed: outcome, the test that caught it, and the
state (hash of the part's sources without tests). A draw notes which mutants are no longer in the code; the table leaves them
out, and says how many were tested in the part's state of now. tools/mutants.toml names survivors that are no mistake.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mutants_python
import mutants_rust

ROOT = Path(__file__).resolve().parent.parent
LEDGER = mutants_python.LOCAL / "ledger.jsonl"
PAGE = ROOT / "docs" / "checks.md"
MARKS = ("<!-- mutants -->\n", "<!-- /mutants -->\n")
COLUMNS = (
    "part",
    "mutants",
    "in the code of now",
    "did not compile",
    "no mistake",
    "caught at first",
    "caught now",
    "aim",
)
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED|^FAILED (\S+)|^ERROR (\S+)")
IN_VIRTUAL_TIME = ("--test", "virtual_time", "--test", "batch", "--test", "background")
NOT_HERE = "not realtime and not interop and not slow"
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", "-m", NOT_HERE]
SEEDED = {"SCHEDULES": "200", "PROPTEST_RNG_SEED": "1", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
"""Tests with random input have the same in each run, and what failed with one mutant is not tried with the next."""
MEMORY = 10 << 30
GONE = "gone"
"""Outcome of a mutant whose code is no longer there."""
BROKEN = 1, 101
"""Statuses of pytest and cargo where a test failed, or code did not compile; others are no answer without a mutant."""


@dataclass(frozen=True)
class Part:
    """A part of the code: globs of its files (with `!`: but not these), its crate, and the share that is to be caught."""

    files: tuple[str, ...]
    aim: float
    crate: str = ""
    own: tuple[str, ...] = ("--lib", "--tests")
    python: tuple[str, ...] = ()


SAFETY, SECURITY = "crates/tcps-control/src/safety/**/*.rs", "crates/tcps-transport/src/security/**/*.rs"
TLS = "crates/tcps-transport/src/tls/**/*.rs"
SUPERVISOR = ("--lib", "--test", "supervisor", "--test", "engagement")
ON_RUNS = (
    "test_native_runs",
    "test_boards",
    "test_media_runs",
    "test_split",
    "test_attacks",
    "test_hook_failures",
)
ON_NODE = (*ON_RUNS, "test_echo_moments", "test_playout", "test_user_code")
ON_PLAN = (
    *ON_RUNS,
    "test_native_checks",
    "test_config_plan",
    "test_config_refusals",
    "test_isolated",
    "test_metrics",
)
ON_ROWS = ("test_analysis_*", "test_native_runs", "test_metrics", "test_records")
PARTS = {
    "safety": Part((SAFETY,), 0.95, "tcps-control", SUPERVISOR),
    "security": Part((SECURITY, TLS), 0.95, "tcps-transport"),
    "net": Part(("crates/tcps-net/src/**/*.rs",), 0.95, "tcps-net"),
    "transport": Part(
        ("crates/tcps-transport/src/**/*.rs", "!" + SECURITY, "!" + TLS), 0.9, "tcps-transport"
    ),
    "control": Part(("crates/tcps-control/src/**/*.rs", "!" + SAFETY), 0.9, "tcps-control"),
    "node": Part(("crates/tcps-node/src/**/*.rs",), 0.9, "tcps-node", python=ON_NODE),
    "plan": Part(("crates/tcps-plan/src/**/*.rs",), 0.9, "tcps-plan", python=ON_PLAN),
    "analysis": Part(("crates/tcps-analysis/src/**/*.rs",), 0.9, "tcps-analysis", python=ON_ROWS),
    "python-scenarios": Part(("python/tcpsbed/scenarios/**/*.py",), 0.8),
    "python-campaign": Part(("python/tcpsbed/campaign/**/*.py",), 0.8),
    "python-views": Part(("python/tcpsbed/views/**/*.py",), 0.8),
    "python-analysis": Part(("python/tcpsbed/analysis/**/*.py",), 0.9),
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: its place, what it does, the line, from the old text to the new, its entry in Rust."""

    file: str
    line: int
    text: str
    code: str
    changed: Callable[[str], str]
    entry: dict[str, Any] = field(default_factory=dict)
    number: int = 0

    @property
    def key(self) -> str:
        """Its name, the same wherever its line is in the file."""
        return f"{self.file}: {self.text}: {self.code}" + f" #{self.number}" * bool(self.number)


def numbered(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """Mutants with one name, such as two of a line, get numbers."""
    seen: Counter[str] = Counter()
    for mutant in mutants:
        yield Mutant(**{**vars(mutant), "number": seen[mutant.key]})
        seen[mutant.key] += 1


def drawn(keys: Iterable[str], seed: int) -> list[str]:
    """All keys in the order of this seed."""
    return sorted(keys, key=lambda key: hashlib.sha256(f"{seed} {key}".encode()).digest())


def sources(part: Part, root: Path) -> list[Path]:
    """The part's files of code."""
    found = {path for glob in part.files if not glob.startswith("!") for path in root.glob(glob)}
    found -= {path for glob in part.files if glob.startswith("!") for path in root.glob(glob[1:])}
    return sorted(path for path in found if path.name != "tests.rs")


def state(part: Part, root: Path) -> str:
    """Hash of the part's sources, without tests at their ends."""
    at_end = re.compile(r"\n#\[cfg\(test\)\]\nmod \w+ \{.*\Z", re.S)
    codes = [at_end.sub("", path.read_text(encoding="utf-8")) for path in sources(part, root)]
    return hashlib.sha256("\0".join(codes).encode()).hexdigest()[:12]


def of_rust(part: Part, root: Path) -> Iterator[Mutant]:
    """What cargo-mutants would change."""
    for entry, changed in mutants_rust.changes(root, part.crate, part.files):
        line = entry["span"]["start"]["line"]
        code = (root / entry["file"]).read_text(encoding="utf-8").splitlines()[line - 1].strip()
        yield Mutant(entry["file"], line, re.sub(r"^\S+: ", "", entry["name"]), code, changed, entry)


def of_python(part: Part, root: Path) -> Iterator[Mutant]:
    """What mutmut would change."""
    for path in sources(part, root):
        text = path.read_text(encoding="utf-8")
        for line, words, changed in mutants_python.changes(text):
            yield Mutant(
                str(path.relative_to(root)), line, words, text.splitlines()[line - 1].strip(), changed
            )


class Copy:
    """A copy of the tree in which this process tests mutants: the first that no other holds, as the tree is now."""

    is_mutated = False
    """Whether a mutant is in its code."""

    def __init__(self) -> None:
        for number in range(1, 100):
            self.root = ROOT / "target" / "mutants" / str(number)
            self.root.mkdir(parents=True, exist_ok=True)
            self.lock = self.root.with_suffix(".lock").open("w")
            with contextlib.suppress(OSError):
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        self.limit_s = 7200.0
        git = ["git", "ls-files", "-coz", "--exclude-standard"]
        listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
        names = set(listed.stdout.split("\0")) - {""} | {mutants_rust.MODULE}
        for name in names:
            old, new = ROOT / name, self.root / name
            same = (
                new.is_file()
                and not new.is_symlink()
                and old.is_file()
                and old.read_bytes() == new.read_bytes()
            )
            if old.exists() and not same:  # what is the same keeps its time, for incremental builds
                new.parent.mkdir(parents=True, exist_ok=True)
                new.unlink(missing_ok=True)
                shutil.copy(old, new, follow_symlinks=False)
        for path in (
            p for folder in ("crates", "python", "tests") for p in (self.root / folder).rglob("*.*")
        ):
            if (
                path.suffix in (".rs", ".py", ".txt", ".proptest-regressions")
                and not (ROOT / path.relative_to(self.root)).exists()
            ):
                path.unlink()

    def run(
        self,
        command: list[str],
        limit_s: float = 7200,
        more: Mapping[str, str] | None = None,
        stop: bool = False,
    ) -> tuple[str, str, float]:
        """`passed`, `failed` or `timeout`, the failed test (the last line), and seconds; `stop`: ends at a failed test.
        `more`: variables of the environment.

        A process that crashes, or in which no test could begin, failed where there is a mutant; without one this ends.
        """
        shared = ROOT.parent / "shared" / "data"
        environment = {
            **os.environ, "PYTHONPATH": f"{self.root}/python:{ROOT}/tools", **SEEDED, **(more or {}),
            **({"TCPSBED_DATA": str(shared)} if shared.is_dir() else {}),
        }  # fmt: skip
        process = subprocess.Popen(
            command, cwd=self.root, env=environment, text=True, errors="replace", start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )  # fmt: skip
        start, ended = time.monotonic(), threading.Event()

        def end() -> None:
            ended.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(limit_s, end)
        timer.start()
        by, last = "", ""
        try:
            for line in process.stdout or ():
                last = line.strip() or last
                if stop and (match := FAILED.match(line)):
                    by = next(name for name in match.groups() if name)
                    break
            status = 1 if by else process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        is_mutated = (
            self.is_mutated or (more or {}).get(mutants_rust.NUMBER, mutants_rust.NONE) != mutants_rust.NONE
        )
        if not by and not ended.is_set() and not is_mutated and status not in (0, *BROKEN):
            sys.exit(f"mutants: status {status} of {' '.join(command)}: {last}")
        outcome = "failed" if by else "timeout" if ended.is_set() else "failed" if status else "passed"
        return outcome, by or last[:200], time.monotonic() - start

    @contextlib.contextmanager
    def mutated(self, one: Mutant | None) -> Iterator[None]:
        """With a mutant in the code; with none, as it is."""
        if one is None:
            yield
            return
        file = self.root / one.file
        text = file.read_text(encoding="utf-8")
        try:
            file.write_text(one.changed(text), encoding="utf-8")
            self.is_mutated = True
            yield
        finally:
            self.is_mutated = False
            file.write_text(text, encoding="utf-8")

    def judge(self, chosen: list[str], one: Mutant | None) -> tuple[str, str, float]:
        """Outcome of a mutant of Python, or of the code as it is; the test that decided, and seconds."""
        (self.root / "chosen.txt").write_text("\n".join(chosen), encoding="utf-8")
        with self.mutated(one):
            outcome, by, took = self.run([*PYTEST, "@chosen.txt"], self.limit_s, stop=True)
        return (
            {"passed": "missed", "failed": "caught"}.get(outcome, outcome),
            by if outcome != "passed" else "",
            took,
        )


def rows() -> list[dict[str, Any]]:
    """The ledger."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    return [json.loads(line) for line in lines]


def note(row: dict[str, Any]) -> None:
    """Adds a line to the ledger, with its moment."""
    LEDGER.parent.mkdir(exist_ok=True)
    with LEDGER.open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(row | {"at": time.strftime("%FT%TZ", time.gmtime())}) + "\n")


def no_mistakes() -> dict[str, str]:
    """Survivors that are no mistake, with the reason."""
    judged = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))
    return {one["mutant"]: one["reason"] for one in judged["no_mistake"]}


def wilson(hits: int, number: int) -> tuple[float, float]:
    """The 95 % interval of a share, as a fraction [Wilson 1927]."""
    if number == 0:
        return 0.0, 1.0
    z2, share = 1.96**2, hits / number
    middle = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = math.sqrt(z2 * (share * (1 - share) / number + z2 / (4 * number**2))) / (1 + z2 / number)
    return max(0.0, middle - half), min(1.0, middle + half)


def counted(
    of_part: list[dict[str, Any]], judged: dict[str, str], is_now: str
) -> tuple[list[str], list[dict[str, Any]]]:
    """Cells of a part between its name and its aim, and the survivors. A mutant counts as it was first, and as it is now."""
    first = {row["mutant"]: row for row in reversed(of_part)}
    now = {key: row for key, row in {row["mutant"]: row for row in of_part}.items() if row["outcome"] != GONE}
    unviable = {key for key, row in now.items() if row["outcome"] == "unviable"}
    judged_here = {key for key, row in now.items() if row["outcome"] == "missed" and key in judged}
    counting = now.keys() - unviable - judged_here
    shares = []
    for rows_then in (first, now):
        hits = sum(rows_then[key]["outcome"] in ("caught", "timeout") for key in counting)
        low, high = wilson(hits, len(counting))
        share = 100 * hits / max(1, len(counting))
        shares.append(f"{hits} of {len(counting)}: {share:.0f} % ({100 * low:.0f} to {100 * high:.0f})")
    survivors = [now[key] for key in sorted(counting) if now[key]["outcome"] == "missed"]
    of_now = sum(row["state"] == is_now for row in now.values())
    return [*map(str, (len(now), of_now, len(unviable), len(judged_here))), *shares], survivors


def table(
    all_rows: list[dict[str, Any]], judged: dict[str, str], old: str = ""
) -> tuple[str, list[dict[str, Any]]]:
    """The table in Markdown, and all survivors; a part without rows keeps its line of the old table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    survivors: list[dict[str, Any]] = []
    for name, part in PARTS.items():
        of_part = [row for row in all_rows if row["part"] == name]
        kept = re.search(rf"^\| `{name}` \|.*$", old, re.M)
        if of_part:
            cells, missed = counted(of_part, judged, state(part, ROOT))
            survivors += missed
            lines.append(f"| `{name}` | {' | '.join(cells)} | {100 * part.aim:.0f} % |")
        elif kept:
            lines.append(kept[0])
    return "\n".join(lines) + "\n", survivors


def outcomes_of_rust(
    copy: Copy, part: Part, left: list[Mutant]
) -> Iterator[tuple[Mutant, tuple[str, str, float]]]:
    """Each mutant with its outcome, the test that decided, and seconds: those behind switches first."""
    steps = [[part.crate, *part.own], ["tcps-run", *IN_VIRTUAL_TIME]]
    files = [file for name in part.python for file in sorted(copy.root.glob(f"tests/unit/{name}.py"))]
    entries = {number: one.entry for number, one in enumerate(left)}
    with mutants_rust.placed(copy.root, part.crate, entries) as placed:
        print(f"{len(placed)} in one build", flush=True)
        built = mutants_rust.tests(copy.root, steps, files, PYTEST)
        if built is None:
            sys.exit(f"mutants: the tests of {part.crate} do not compile; see: cargo test --no-run")
        known = mutants_rust.measured(copy.root, built, copy.run)
        for number in sorted(placed):
            reaching = [test for test in known if number in test.reached]
            yield left[number], mutants_rust.judge(number, reaching, copy.run)
    for number in sorted(set(range(len(left))) - placed):
        with copy.mutated(left[number]):
            is_there = mutants_rust.tests(copy.root, steps, files, PYTEST) is not None
            outcome = mutants_rust.judge(None, known, copy.run) if is_there else ("unviable", "", 0.0)
        yield left[number], outcome


def outcomes_of_python(copy: Copy, left: list[Mutant]) -> Iterator[tuple[Mutant, tuple[str, str, float]]]:
    """Each mutant with its outcome, the test that decided, and seconds."""
    known = mutants_python.measured(copy.root, copy.run, NOT_HERE)
    for one in left:
        chosen = mutants_python.running(known, one.file, one.line)
        copy.limit_s = 60 + 3 * sum(known["took_s"][test] for test in chosen)
        yield one, tested(copy, one, chosen)


def tested(copy: Copy, one: Mutant, chosen: list[str]) -> tuple[str, str, float]:
    """Outcome of a mutant of Python in the copy, the test that decided, and seconds."""
    spent = 0.0
    while chosen:
        outcome, by, took = copy.judge(chosen, one)
        spent += took
        if outcome != "caught":
            return outcome, by, spent
        is_cut = "[" in by and not by.endswith("]")  # a name ends for us where it has a blank
        names = by if is_cut else (f"{by}[", f"{by}::")
        failed = [test for test in chosen if test == by or test.startswith(names)] or chosen
        again, as_it_is = (copy.judge(failed, code)[0] for code in (one, None))
        if (again, as_it_is) == ("caught", "missed"):
            return outcome, by, spent
        print(
            f"left out: {by} {'fails by chance' if again == 'missed' else 'fails without a mutant'}",
            flush=True,
        )
        chosen = [test for test in chosen if test not in failed]
    return "missed", "no test runs it", spent


def sample(name: str, number: int, seed: int, again: bool) -> None:
    """Draws mutants of a part, and tests those of which the ledger has nothing (`again`: those that survived)."""
    part, copy = PARTS[name], Copy()
    mutants = {one.key: one for one in numbered((of_rust if part.crate else of_python)(part, copy.root))}
    outcomes = {row["mutant"]: row["outcome"] for row in rows() if row["part"] == name}
    is_now = state(part, copy.root)
    for key in (key for key, outcome in outcomes.items() if key not in mutants and outcome != GONE):
        note({"part": name, "mutant": key, "outcome": GONE, "state": is_now})
    left = [key for key in drawn(mutants, seed)[:number] if outcomes.get(key, GONE) == GONE]
    if again:
        left = [key for key in mutants if outcomes.get(key) == "missed" and key not in no_mistakes()]
    print(f"{name}: {len(mutants)} mutants, {len(left)} to test", flush=True)
    if not left:
        return
    those = [mutants[key] for key in left]
    for one, (outcome, by, took) in (
        outcomes_of_rust(copy, part, those) if part.crate else outcomes_of_python(copy, those)
    ):
        row = {"part": name, "mutant": one.key, "line": one.line, "outcome": outcome, "by": by, "seed": seed}
        note(row | {"seconds": round(took, 1), "state": is_now})
        print(f"{outcome:8} {took:6.1f} s  {one.file}:{one.line}: {one.text}  [{by}]", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, if none is named: {', '.join(PARTS)}")
    parser.add_argument("--number", type=int, default=20, help="size of each part's sample (20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (1)")
    parser.add_argument("--again", action="store_true", help="test survivors once more, in place of a sample")
    parser.add_argument("--ledger", action="store_true", help="print table and survivors")
    parser.add_argument("--write", action="store_true", help="write the table into docs/checks.md")
    asked = parser.parse_args()
    if asked.number > mutants_rust.MOST:
        parser.error(f"--number: found {asked.number}; allowed: at most {mutants_rust.MOST}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs below it ends with it
    for name in asked.parts:
        if name not in PARTS:
            parser.error(f"{name!r} is no part; the parts are {', '.join(PARTS)}")
    if not (asked.ledger or asked.write):
        if importlib.util.find_spec("tcpsbed") is None:
            sys.exit(f"mutants: {sys.executable} has no tcpsbed; run: .venv/bin/python {' '.join(sys.argv)}")
        for name in asked.parts or PARTS:
            sample(name, asked.number, asked.seed, asked.again)
    head, old, tail = re.split("|".join(MARKS), PAGE.read_text(encoding="utf-8"))
    markdown, survivors = table(rows(), no_mistakes(), old)
    if asked.write:
        PAGE.write_text(head + MARKS[0] + markdown + MARKS[1] + tail, encoding="utf-8")
    print(markdown, *(f"{one['mutant']} (line {one['line']})" for one in survivors), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
