"""Checks what tcpsbed guarantees about files, safety, numbers and packages, case by case.

Each case of ``cases.toml`` drives the installed command in a folder of its own, or runs the tests that prove it, and prints
one line: number, title, what was measured, and ok, FALSE, or why it was skipped; status 1 if any is FALSE.
``tools/cases.py 1.4`` repeats those whose number begins so, ``--list`` names all.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CARGO = re.compile(r"cargo:([\w-]+)(?::(\w+))? (\S+)")
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|errors|deselected)\b")
Done = subprocess.CompletedProcess
CAPTURED: dict[str, Any] = {"capture_output": True, "text": True}


class NotTrue(Exception):
    """A guarantee does not hold."""


class Skip(Exception):
    """Why a case could not be repeated here."""


def call(folder: Path, *words: str) -> Done[str]:
    """Runs ``tcpsbed`` in the folder."""
    return subprocess.run([sys.executable, "-m", "tcpsbed", *words], cwd=folder, **CAPTURED, timeout=120)


def holds(true: bool, otherwise: str) -> None:
    """Ends the case as FALSE where it is not true."""
    if not true:
        raise NotTrue(otherwise)


def refused(folder: Path, *words: str, says: str) -> str:
    """Runs a command that must end with 2, one message that says this, and no file more than before."""
    before, start = listing(folder), time.monotonic()
    done = call(folder, *words)
    told = done.stderr.strip()
    holds(done.returncode == 2 and says in told, f"status {done.returncode}: {told[-160:]}")
    holds("Traceback" not in told and listing(folder) == before, "a traceback, or files changed")
    return f"status 2, '{says}', {time.monotonic() - start:.1f} s, no file touched"


def listing(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes; what is no regular file has none."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() and p.stat().st_size < 1 << 24 else None
        for p in sorted(folder.rglob("*"))
    }


def quickstart(folder: Path) -> tuple[str, ...]:
    """A copy of the quickstart in the folder; the words that run a little of it."""
    done = call(folder, "init", "--from", "quickstart", "q.toml")
    holds(done.returncode == 0, done.stderr)
    return "run", "q.toml", "--duration", "0.6 s", "-q", "--no-report"


def into_folder_of_user(folder: Path) -> str:
    run = quickstart(folder)
    for name in ("seeds", "work"):
        (folder / name).mkdir()
        (folder / name / "mine.csv").write_text("1")
    for name in ("x.toml", "scenario.toml"):
        (folder / name).write_text('include = "q.toml"\n')
    for words in (
        (*run, "--out", "."),
        ("run", "scenario.toml", "--out", "."),
        ("sweep", "x.toml", "--over", "name=a,b", "--out", "."),
    ):
        told = refused(folder, *words, says="--out: holds")
    return f"run, sweep and run of scenario.toml: {told}"


def run_twice(folder: Path) -> str:
    run = quickstart(folder)
    for seed in ("1", "2"):
        done = call(folder, *run, "--out", "a", "--seed", seed)
        holds(done.returncode == 0, done.stderr[-160:])
    seed = json.loads((folder / "a" / "summary.json").read_text())["seed"]
    holds(seed == 2, f"seed {seed} is there")
    (folder / "a" / "mine.txt").write_text("mine")
    told = refused(folder, *run, "--out", "a", says="mine.txt")
    return f"the second is there whole; with a file of the user's: {told}"


def no_scenario(folder: Path) -> str:
    os.mkfifo(folder / "fifo.toml")
    (folder / "deep.toml").write_text(".".join("a" * 50_000) + " = 1\n")
    (folder / "big.toml").write_text("# comment\n" * 10_000_000)
    refused(folder, "check", "/dev/zero", says="a device")
    refused(folder, "check", "fifo.toml", says="a FIFO")
    refused(folder, "check", "deep.toml", says="more than 32 parts")
    return "device, FIFO, 50,000 parts, 100 MB: " + refused(folder, "check", "big.toml", says="at most 4 MiB")


def recording(folder: Path) -> str:
    quickstart(folder)
    for rows, says in (("0,1\n", "one row"), ("0,1\n0,2\n0,3\n", "")):
        (folder / "hand.csv").write_text("time,x\n" + rows)
        source = '[flows.kinematic.source]\nrecording = "hand.csv"\n'
        (folder / "r.toml").write_text('include = "q.toml"\n' + source)
        done = call(folder, "check", "r.toml")
        holds(done.returncode == 2 and says in done.stderr and "hand.csv" in done.stderr, done.stderr[-160:])
    return "one row, equal times: status 2, file named"


def check_in_shared_memory(folder: Path) -> str:
    memory = Path("/dev/shm")
    holds(call(folder, "init", "--from", "console-arm").returncode == 0, "no console-arm")
    before = {p.name for p in memory.iterdir()}
    done = call(folder, "check", "console-arm.toml")
    holds(done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-160:])
    holds(not [p for p in memory.glob("tcpsbed*") if p.name not in before], "something was left in /dev/shm")
    return "console-arm checked, nothing left in /dev/shm"


def each_part_once(_: Path) -> str:
    """The steps of ``.ci/run`` differ, and every mix of marks is in one part of the Python tests."""
    script = re.sub(r"^.*?\n\n", "", (ROOT / ".ci/run").read_text(), flags=re.S)
    steps = re.findall(r"^tools/timed\.sh '[^']+' \d+ (.+)$", script, re.M)
    holds(len(steps) == len(set(steps)) > 0, f"a step twice: {steps}")
    holds(
        {"make test", "tools/test_rest.sh"} <= set(steps) and "make test-all" not in steps, f"steps: {steps}"
    )
    text = (ROOT / "tools/python_tests.sh").read_text()
    clock = re.search(r"^clock='(.+)'$", text, re.M)
    assert clock, "tools/python_tests.sh names no tests of the machine's clock"
    parts = dict(re.findall(r"^(quick|long|alone)\)(.*?)(?=^\S+\)|\Z)", text, re.M | re.S))
    holds(
        clock is not None and set(parts) == {"quick", "long", "alone"},
        "tools/python_tests.sh has other parts",
    )
    counts = dict.fromkeys(parts, 0)
    for marks in itertools.product((False, True), repeat=4):
        names = dict(zip(("realtime", "interop", "beside", "slow"), marks, strict=True))
        if names["beside"] and not (names["realtime"] or names["interop"]):
            continue  # tests/conftest.py refuses it
        takers = [part for part, body in parts.items() if taken(body.replace("$clock", clock[1]), names)]
        holds(len(takers) == 1, f"a test with {names} is in {takers}")
        counts[takers[0]] += 1
    return f"{len(steps)} steps, each once; mixes of marks in each part of the Python tests: {counts}"


def taken(body: str, names: dict[str, bool]) -> bool:
    """Whether one of the selections in a part of the script takes a test with these marks."""
    selections = re.findall(r'(?:-m|^ *beside \w+) "([^"]+)"', body, re.M)
    return any(eval(one, {"__builtins__": {}}, names) for one in selections)


def lowest_rust(_: Path) -> str:
    words = ["cargo", "metadata", "--format-version=1", "--locked", "--offline"]
    done = subprocess.run(words, cwd=ROOT, **CAPTURED)
    holds(done.returncode == 0, done.stderr[-160:])
    asked = [p["rust_version"] for p in json.loads(done.stdout)["packages"] if p["rust_version"]]
    most = max([int(part) for part in version.split(".")[:2]] for version in asked)
    said = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    holds(most <= [int(part) for part in said.split(".")], f"a crate needs {most}, declared {said}")
    holds('"rich>=' in (ROOT / "pyproject.toml").read_text(), "rich is not declared")
    return f"declared {said}, most that a crate asks is {most[0]}.{most[1]}; rich declared"


def from_elsewhere(folder: Path) -> str:
    listed = call(folder, "init", "--list").stdout.splitlines()
    told = call(folder, "reproduce", "--list")
    holds(told.returncode == 0 and "gokhale2017" in told.stdout, told.stderr)
    holds(call(folder, "init", "--from", "console-arm").returncode == 0, "no console-arm")
    return f"{len(listed)} ship; {len(told.stdout.splitlines())} works can be reproduced; console-arm copied"


def spreadsheets(folder: Path) -> str:
    quickstart(folder)
    holds(call(folder, "init", "--xlsx", "a.xlsx").returncode == 0, "no template")
    holds(call(folder, "config", "to-xlsx", "q.toml", "--out", "q.xlsx").returncode == 0, "no export")
    done = [
        call(folder, "check", "q.xlsx"),
        call(folder, "run", "q.xlsx", "--duration", "0.6 s", "-q", "--out", "a"),
    ]
    holds(not any(d.returncode for d in done), done[0].stderr + done[1].stderr)
    return "template written; q.xlsx checked and run"


def reproduced(_: Path) -> str:
    rows = [row for of in kept().values() for row in of.values()]
    counted = [row.expected for row in rows if row.verdict == "reproduced"]
    holds(
        all((e.basis, e.reference) == ("outcome", "published") for e in counted),
        "not only printed values count",
    )
    holds(all(row.expected.basis for row in rows), "a row without a basis")
    holds(
        all(row.expected.fails for row in rows if row.expected.published is not None),
        "a row that cannot fail",
    )
    return f"{len(rows)} rows with a basis and with what would fail, {len(counted)} reproduced"


def kept() -> dict[str, dict[str, Any]]:
    """The kept rows of every work, by key, judged by today's tolerances."""
    import scoreboard
    from tcpsbed.lab.reproduce.works import WORKS

    return {work.name: {row.key: row for row in scoreboard.section(work)[0]} for work in WORKS}


def varying_background(folder: Path) -> str:
    for name in ("dumbbell-dpm", "dumbbell-phases"):
        holds(call(folder, "init", "--from", name).returncode == 0, f"no {name}")
        told = "".join(file.read_text() for file in folder.glob("*.toml"))
        holds('vary = "per-packet"' in told and '"constant"' not in told, f"{name} does not vary")
    return "dumbbell-dpm and dumbbell-phases vary by the packet"


def no_smoltcp(_: Path) -> str:
    files = [ROOT / "Cargo.lock", *ROOT.glob("crates/*/Cargo.toml")]
    found = [str(file.relative_to(ROOT)) for file in files if "smoltcp" in file.read_text()]
    holds(not found, f"smoltcp in {', '.join(found)}")
    return f"in none of {len(files)} manifests"


def verdicts(wanted: dict[str, dict[str, list[str]]]) -> str:
    """Judges kept results; what is wanted: by work and verdict the rows."""
    found, count = kept(), 0
    for work, by_verdict in wanted.items():
        for verdict, keys in by_verdict.items():
            for key in keys:
                got = found[work][key].verdict if key in found[work] else "no row"
                holds(got == verdict, f"{work}.{key} is {got}, not {verdict}")
                count += 1
    return f"{count} kept rows have the verdict that is said"


def ignoring_sigint(_: Path) -> str:
    nodes = ("tests/unit/test_native_runs.py", "tests/unit/test_interrupts.py", "tests/realtime/test_kill.py")
    return of_python(nodes, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))


def of_rust(crate: str, target: str | None, name: str) -> str:
    """Runs tests of a crate; how many passed."""
    words = [
        "cargo",
        "test",
        "--offline",
        "-q",
        "-p",
        crate,
        *(["--test", target] if target else ["--lib"]),
        name,
    ]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"PYO3_PYTHON": sys.executable}, **CAPTURED, timeout=900
    )
    passed = sum(map(int, re.findall(r"(\d+) passed", done.stdout)))
    holds(done.returncode == 0 < passed, f"{name}: {(done.stdout + done.stderr)[-160:]}")
    return f"{passed} passed (Rust)"


def of_python(words: tuple[str, ...], **more: Any) -> str:
    """Runs pytest; how many passed and were skipped."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=ROOT, **CAPTURED, timeout=900, **more)
    counts = COUNT.findall(done.stdout.strip().rpartition("\n")[2])
    failed = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.M) or [(done.stdout + done.stderr)[-200:]]
    holds(done.returncode == 0, " | ".join(failed)[:240])
    if "passed" not in [what for _, what in counts]:
        raise Skip("; ".join(re.findall(r"^SKIPPED \[\d+\] \S+ (.*)", done.stdout, re.M))[:200])
    return ", ".join(f"{n} {what}" for n, what in counts)


def tests(nodes: list[str]) -> str:
    """Runs tests of Rust (``cargo:CRATE:TEST NAME``) and of Python."""
    rust = [found.groups() for node in nodes if (found := CARGO.fullmatch(node))]
    python = tuple(node for node in nodes if not CARGO.fullmatch(node))
    return "; ".join([of_rust(*one) for one in rust] + ([of_python(python)] if python else []))


def measured(case: dict[str, Any], folder: Path) -> str:
    """What came of a case."""
    if "skipped" in case:
        raise Skip(case["skipped"])
    if "does" in case:
        return str(globals()[case["does"]](folder))
    if "verdicts" in case:
        return verdicts(case["verdicts"])
    if "tests" in case:
        return tests(case["tests"])
    quickstart(folder)
    (folder / "n.toml").write_text('include = "q.toml"\n' + case.get("file", ""))
    return refused(folder, *case["refused"], says=case["says"])


def repeat(case: dict[str, Any]) -> bool:
    """Repeats one case and prints its line; whether it is not FALSE."""
    with tempfile.TemporaryDirectory(prefix="cases-") as name:
        try:
            told, verdict = measured(case, Path(name)), "ok"
        except Skip as reason:
            told, verdict = str(reason), "skipped"
        except (NotTrue, subprocess.TimeoutExpired) as why:
            told, verdict = " ".join(str(why).split()), "FALSE"
    print(f"{case['number']:7} {case['title']}: {told}: {verdict}", flush=True)
    return verdict != "FALSE"


def main() -> int:
    """Repeats what was asked for."""
    parser = argparse.ArgumentParser(description="Checks what tcpsbed guarantees, case by case.")
    parser.add_argument("number", nargs="*", default=[""], help="what numbers begin with (default: all)")
    parser.add_argument("--list", action="store_true", help="only list them")
    asked = parser.parse_args()
    cases = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["case"]
    chosen = [c for c in cases if c["number"].startswith(tuple(asked.number))]
    if asked.list:
        print("\n".join(f"{c['number']:7} {c['title']}" for c in chosen))
        return 0
    return int(False in [repeat(case) for case in chosen])


if __name__ == "__main__":
    sys.exit(main())
