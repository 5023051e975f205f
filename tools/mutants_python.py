"""Mutants of Python for ``mutants.py``: what mutmut would change, and which unit tests run a line."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import math
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

LOCAL = Path(__file__).resolve().parent / "mutants.local"
TESTS = LOCAL / "tests.json"
"""The unit tests: `files` with their hashes, `took_s` and `fixtures` by test, `code`, the hash of the package."""
AT_ONCE = 20


def changes(text: str) -> Iterator[tuple[int, str, Callable[[str], str]]]:
    """What mutmut would change in functions of a source, but for texts: line, words, and from the old source to the new.

    Ends with a message where mutmut is not installed.
    """
    try:
        from libcst import Module, parse_module
        from libcst.metadata import MetadataWrapper, PositionProvider
        from mutmut.mutation import file_mutation, mutators
        from mutmut.mutation.pragma_handling import IgnoredCode
    except ImportError as missing:
        sys.exit(f"mutants: {missing.name} is missing; install it with: .venv/bin/pip install mutmut")

    operators = [
        (kind, how) for kind, how in mutators.mutation_operators if how is not mutators.operator_string
    ]
    wrapper = MetadataWrapper(parse_module(text), unsafe_skip_copy=True)
    visitor = file_mutation.MutationVisitor(operators, IgnoredCode(set(), set(), set()))
    module, places = wrapper.visit(visitor), wrapper.resolve(PositionProvider)
    for one in visitor.mutations:
        if one.contained_by_top_level_function is not None:
            words = [
                " ".join(Module([]).code_for_node(n).split()) for n in (one.original_node, one.mutated_node)
            ]

            def changed(_: str, one: Any = one) -> str:
                return str(module.deep_replace(one.original_node, one.mutated_node).code)

            yield places[one.original_node].start.line, "replace {} with {}".format(*words), changed


class Lines:
    """A plugin of pytest under coverage: which test, or fixture of several tests, runs each line; seconds of what passed."""

    def __init__(self) -> None:
        from coverage import Coverage

        self.switch: Any = Coverage.current().switch_context  # type: ignore[union-attr]
        self.fixtures: dict[str, list[str]] = {}
        self.took_s: dict[str, float] = defaultdict(float)

    def pytest_runtest_setup(self, item: Any) -> None:
        """Before its fixtures."""
        self.fixtures[item.nodeid] = item.fixturenames

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        """A fixture of one test counts as the test."""
        one = fixturedef.scope == "function"
        self.switch(request.node.nodeid if one else f"fixture {fixturedef.baseid} {fixturedef.argname}")

    def pytest_runtest_call(self, item: Any) -> None:
        """The test itself."""
        self.switch(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """What fails without mutants is not among the tests."""
        self.took_s[report.nodeid] += report.duration if report.passed else math.inf

    def pytest_unconfigure(self) -> None:
        """Adds to what earlier runs found."""
        tests = json.loads(TESTS.read_text(encoding="utf-8"))
        passed = {name: round(took, 3) for name, took in self.took_s.items() if took < math.inf}
        tests["took_s"] |= passed
        tests["fixtures"] |= {name: self.fixtures[name] for name in passed if name in self.fixtures}
        TESTS.write_text(json.dumps(tests), encoding="utf-8")


def pytest_configure(config: Any) -> None:
    """`-p mutants_python`. What the import of a module runs is no test's, though it may be in a test."""
    import tcpsbed

    for module in pkgutil.walk_packages(tcpsbed.__path__, "tcpsbed.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # of an extra
                importlib.import_module(module.name)
    config.pluginmanager.register(Lines())


def measured(root: Path, run: Callable[[list[str]], tuple[str, str, float]], marks: str) -> dict[str, Any]:
    """The unit tests of a tree; those with these marks are run whose files are not as they were.

    Ends with a message where none passes.
    """
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code = hash_of(sorted((root / "python" / "tcpsbed").rglob("*.py")))
        tests = json.loads(TESTS.read_text(encoding="utf-8")) if TESTS.exists() else {}
        if tests.get("code") != code:
            tests = {"code": code, "files": {}, "took_s": {}, "fixtures": {}}
            (LOCAL / "coverage").unlink(missing_ok=True)
        found = {f"tests/unit/{p.name}": hash_of([p]) for p in (root / "tests" / "unit").glob("test_*.py")}
        new = sorted(name for name, is_now in found.items() if tests["files"].get(name) != is_now)
        same = set(found) - set(new)
        tests["files"] = {name: tests["files"][name] for name in same}
        for kind in ("took_s", "fixtures"):
            tests[kind] = {test: of for test, of in tests[kind].items() if test.split("::")[0] in same}
        TESTS.write_text(json.dumps(tests), encoding="utf-8")
        settings = (
            f"[run]\nrelative_files = true\nsource = python/tcpsbed\ndata_file = {LOCAL / 'coverage'}\n"
        )
        (LOCAL / "coveragerc").write_text(settings, encoding="utf-8")
        coverage = f"{sys.executable} -m coverage run --append --rcfile={LOCAL / 'coveragerc'}".split()
        for at in range(0, len(new), AT_ONCE):  # what is interrupted goes on where it was
            print(f"which lines tests run: {at} of {len(new)} files", flush=True)
            some = new[at : at + AT_ONCE]
            outcome, by, _ = run(
                [*coverage, "-m", "pytest", "-q", "-p", "mutants_python", "-m", marks, *some]
            )
            tests = json.loads(TESTS.read_text(encoding="utf-8"))
            tests["files"] |= {name: found[name] for name in some}
            TESTS.write_text(json.dumps(tests), encoding="utf-8")
        if not tests["took_s"]:
            sys.exit(f"mutants: the unit tests did not run ({outcome}): {by}")
        return tests


def running(tests: dict[str, Any], file: str, line: int) -> list[str]:
    """The tests that run the statement of a line, file by file, the quickest first, together at most 240 s."""
    from coverage import CoverageData

    data = CoverageData(basename=str(LOCAL / "coverage"))
    data.read()
    lines = {at: {c for c in by if c} for at, by in data.contexts_by_lineno(file).items()}
    # A line of a statement that began above is in none; one that only the import runs, such as `def`, is in no test's.
    at_import = line in lines and not lines[line]
    near = [at for at, by in lines.items() if by and (at > line if at_import else at <= line)]
    contexts = lines[(min if at_import else max)(near)] if near else set()
    chosen = {test for test in contexts if test in tests["took_s"]}
    for one in (context.split() for context in contexts if context.startswith("fixture ")):
        chosen |= {
            test for test, names in tests["fixtures"].items() if one[-1] in names and test.startswith(one[1])
        }
    files: dict[str, list[str]] = {}
    for test in sorted(chosen):
        files.setdefault(test.split("::")[0], []).append(test)
    ordered = sorted(
        files.values(), key=lambda those: sum(tests["took_s"][test] for test in those) / len(those)
    )
    spent = 0.0
    kept: list[str] = []
    for test in (test for those in ordered for test in those):
        spent += tests["took_s"][test]
        if spent <= 240 or not kept:
            kept.append(test)
    return kept


def hash_of(files: Iterable[Path]) -> str:
    """Hash of the bytes of files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]
