"""Every claim of the code and the test that proves it.

A comment that cites a source in the form ``[RFC 8289 §5]``, ``[Polachan 2022]``, ``[Gokhale 2017: header]`` or
``[model: wire size]`` claims that the code beside it does what the source says. This prints the table claim -> code -> test,
and fails where a claim in the code is cited by no test. A test may cite the claim itself or a part of it
(``[RFC 8289]`` is proved by a test of ``[RFC 8289 §5.3]``), never something wider.

What stands behind a colon means nothing by itself: each topic that any file cites must have its line in
``docs/protocols.md``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AUTHOR = r"(?:Al )?[A-Z][\w'’-]+(?:(?: and|,) [A-Z][\w'’-]+| et al\.)* \d{4}[a-z]?"
WORK = rf"RFC \d{{3,5}}|{AUTHOR}|Al-Mouhamed|draft-[\w-]+|arXiv:[\d.]+|IEEE 1918[\w.-]*|ITU-R BT\.\d+"
SECTION = r"(?: §\s?[\w.]+| (?:eq|fig|table|sec)\. ?[\w.]+)"
TOPIC = r": [\w' -]+"
CLAIM = re.compile(rf"\[((?:{WORK})(?:{SECTION}|{TOPIC})?|model{TOPIC})\]")
CITED = re.compile(rf"\[((?:{AUTHOR}|model|design){TOPIC})\]")
TEST_MODULE = re.compile(r"^\s*#\[cfg\((?:all\()?test\b")

EXPLAINED = Path("docs/protocols.md")

Place = tuple[Path, int]
Row = tuple[str, list[Place], list[Place]]


def comments_of_rust(text: str) -> Iterator[tuple[int, str, bool]]:
    """Comment lines as (line, text, whether in the test module, which STYLE puts at the end of a file)."""
    in_tests = False
    for number, line in enumerate(text.splitlines(), 1):
        in_tests = in_tests or bool(TEST_MODULE.match(line))
        _, mark, comment = line.partition("//")
        if mark:
            yield number, comment, in_tests


def comments_of_python(text: str) -> Iterator[tuple[int, str, bool]]:
    """Comments and docstrings as (line, text, False)."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                for offset, line in enumerate(str(first.value.value).splitlines()):
                    yield first.lineno + offset, line, False


def sources(root: Path) -> Iterator[tuple[Path, bool]]:
    """Files to read, and whether all that is in them is test."""
    for path in sorted(root.glob("crates/*/src/**/*.rs")):
        yield path, "tests" in (path.stem, *path.relative_to(root).parts[2:-1])
    for path in sorted(root.glob("crates/*/tests/**/*.rs")):
        yield path, True
    for path in sorted(root.glob("python/**/*.py")):
        yield path, False
    for path in sorted(root.glob("tests/**/*.py")):
        yield path, True


def normal(claim: str) -> str:
    """The same claim in one spelling."""
    return re.sub(r"§\s+", "§", claim).rstrip(".")


def collect(root: Path) -> tuple[dict[str, list[Place]], dict[str, list[Place]]]:
    """Citations in the code and citations in the tests, by claim."""
    code: dict[str, list[Place]] = defaultdict(list)
    tests: dict[str, list[Place]] = defaultdict(list)
    for path, all_test in sources(root):
        text = path.read_text(encoding="utf-8")
        read = comments_of_rust if path.suffix == ".rs" else comments_of_python
        for line, comment, in_tests in read(text):
            for match in CLAIM.finditer(comment):
                kind = tests if all_test or in_tests else code
                kind[normal(match[1])].append((path.relative_to(root), line))
    return code, tests


def proves(test: str, claim: str) -> bool:
    """Whether a test of `test` is a test of `claim`."""
    parts = (".", ":", " §", " eq", " fig", " table", " sec")
    return test == claim or any(test.startswith(claim + part) for part in parts)


def natural(text: str) -> list[int | str]:
    """A key that sorts 2.10 after 2.9."""
    return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", text)]


def table(code: dict[str, list[Place]], tests: dict[str, list[Place]]) -> list[Row]:
    """Rows of claim, places in the code, places in the tests, in order of the claims."""
    rows = []
    for claim in sorted(code, key=natural):
        proofs = [place for test in sorted(tests) if proves(test, claim) for place in tests[test]]
        rows.append((claim, code[claim], proofs))
    return rows


def explained(root: Path) -> set[str]:
    """The topics that docs/protocols.md has a line for, such as `Gokhale 2017: header`."""
    page = root / EXPLAINED
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    return set(re.findall(r"^\| ([^|]+: [^|]+?) \|", text, re.MULTILINE))


def unexplained(root: Path) -> list[tuple[str, Place]]:
    """Topics without a line in docs/protocols.md, with the first place that cites each."""
    known = explained(root)
    found: dict[str, Place] = {}
    for folder in ("crates", "python", "tests", "benches", "tools", "scenarios", "examples"):
        for path in sorted(root.glob(f"{folder}/**/*")):
            if path.suffix not in (".rs", ".py", ".toml", ".md", ".json", ".c", ".cc", ".sh"):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for match in CITED.finditer(line):
                    if match[1] not in known:
                        found.setdefault(match[1], (path.relative_to(root), number))
    return sorted(found.items(), key=lambda item: natural(item[0]))


def show(places: list[Place]) -> str:
    """Places in one line."""
    return ", ".join(f"{path}:{line}" for path, line in places) or "NO TEST"


def main() -> int:
    """Print the table; exit 1 where a claim has no test, or a topic no line that explains it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quiet", action="store_true", help="print only claims without a test")
    quiet = parser.parse_args().quiet
    rows = table(*collect(ROOT))
    without = [row for row in rows if not row[2]]
    for claim, places, proofs in without if quiet else rows:
        print(f"[{claim}]\n  code  {show(places)}\n  test  {show(proofs)}")
    print(f"{len(rows)} claims, {len(without)} of them without a test")
    unknown = unexplained(ROOT)
    for name, place in unknown:
        print(f"{show([place])}: {name} is not explained in {EXPLAINED}")
    return 1 if without or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
