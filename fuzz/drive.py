"""Fuzzes parsers that are Python: changes inputs at random and keeps those that reach new lines of the parsed modules.

drive.py --list                                    targets
drive.py --state TARGET                            a hash of the sources that a target runs
drive.py TARGET SECONDS RUNS LOCAL CORPUS CRASHES  one run, of any number of inputs where RUNS is -1; `fuzz/run.sh` calls it
                                                   as it calls libFuzzer

The folder `devices/` is named after the parsers that were first there; `devices/files.py` tries those of files that users
hand over. A target is a file in it: `target(data)` raises when something is wrong, `MODULES` are what it tries, and `JSON`
says whether inputs are JSON texts, whose values are changed as such now and then.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
MOST_BYTES = 4096
MOST_S = 10.0
"""Longest time for an input."""
MOST_MEMORY = 4 << 30
TOLD_S = 10.0
"""Time between two lines about how far it is."""
FOUND, INTERRUPTED, LACKS = 77, 72, 69
LEAVES = (None, True, False, 0, -1, 1, 0.5, 1e300, -1e9, 2**63, float("nan"), float("inf"), "", "x", [], {})
"""Values that JSON texts are given."""


def names() -> list[str]:
    """The targets."""
    return sorted(path.stem for path in (HERE / "devices").glob("*.py"))


def load(name: str) -> ModuleType:
    """A target; its packages may be missing (ImportError)."""
    spec = importlib.util.spec_from_file_location(name, HERE / "devices" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(module: ModuleType) -> list[str]:
    """The sources that a target tries."""
    return [str(importlib.import_module(name).__file__) for name in module.MODULES]


def state(module: ModuleType) -> str:
    """12 hexadecimal digits that change with those sources, and with the target."""
    digest = hashlib.sha256()
    for file in [str(module.__file__), *files(module)]:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:12]


class Cover:
    """Pairs of lines that have followed each other in some files."""

    def __init__(self, files: list[str]) -> None:
        self.files, self.seen, self.last = set(files), set[tuple[int, int, int]](), 0

    def call(self, frame: FrameType, event: str, arg: Any) -> Any:
        """As `sys.settrace` wants it."""
        return self.line if frame.f_code.co_filename in self.files else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Notes a line."""
        if event == "line":
            self.seen.add((id(frame.f_code), self.last, frame.f_lineno))
            self.last = frame.f_lineno
        return self.line


def changed(data: bytes, other: bytes, chance: random.Random, is_json: bool) -> bytes:
    """An input that is like another."""
    if is_json and chance.random() < 0.6:
        try:
            value = _altered(json.loads(data), chance)
            return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            pass
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        _change(out, other, chance)
    return bytes(out[:MOST_BYTES])


def _change(out: bytearray, other: bytes, chance: random.Random) -> None:
    at = chance.randint(0, len(out))
    match chance.randrange(7):
        case 0:
            del out[at:]
        case 1:
            out.insert(at, chance.randrange(256))
        case 2:
            out += other[chance.randint(0, len(other)) :]
        case 3:
            out[at:at] = chance.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00" * 8, b"\x80"))
        case 4:
            end = min(at + chance.randint(1, 24), len(out))
            out[at:at] = out[at:end]
        case _:
            if at < len(out):
                out[at] ^= 1 << chance.randrange(8)


def _altered(value: Any, chance: random.Random) -> Any:
    """A value with one thing in it changed."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        value = dict(value)
        match chance.randrange(6):
            case 0:
                del value[key]
            case 1:
                value[chance.choice(("k", "x", "func", "state", ""))] = value[key]
            case _:
                value[key] = _altered(value[key], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.85:
        value, at = list(value), chance.randrange(len(value))
        match chance.randrange(6):
            case 0:
                del value[at]
            case 1:
                value[at:at] = [value[at]] * chance.choice((1, 2, 300))
            case _:
                value[at] = _altered(value[at], chance)
        return value
    if isinstance(value, float | int) and chance.random() < 0.5:
        return value * chance.choice((-1, 0, 0.5, 2, 1e6))
    if isinstance(value, str) and chance.random() < 0.5:
        return value * chance.choice((0, 2, 40))
    return chance.choice(LEAVES)


class Fuzzer:
    """A target with the inputs that have shown something new.

    Parameters
    ----------
    target
        Raises when something is wrong.
    cover
        Of the files that it tries.
    seed
        Of the random changes.
    is_json
        Whether inputs are JSON texts.
    """

    def __init__(
        self, target: Callable[[bytes], None], cover: Cover, seed: int, is_json: bool = False
    ) -> None:
        self.target, self.cover, self.is_json = target, cover, is_json
        self.chance = random.Random(seed)
        self.kept: list[bytes] = []
        self.runs = 0

    def try_(self, data: bytes) -> bool:
        """Runs an input; whether it shows something new. What the target raises is let through."""
        before = len(self.cover.seen)
        self.runs += 1
        self.cover.last = 0
        signal.setitimer(signal.ITIMER_PROF, MOST_S)
        sys.settrace(self.cover.call)
        try:
            self.target(data)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
        return len(self.cover.seen) > before

    def next(self) -> bytes:
        """An input that is like those that are kept."""
        pick = self.chance.choice
        return changed(pick(self.kept), pick(self.kept), self.chance, self.is_json)


class TooLong(BaseException):
    """An input took for ever; what a target suppresses must not hide it."""


def too_long(signum: int, frame: FrameType | None) -> None:
    """Ends an input that takes for ever."""
    raise TooLong(f"an input took more than {MOST_S:g} s of processor time")


def run(name: str, seconds: float, most: int, local: Path, corpus: Path, crashes: Path) -> int:
    """Fuzzes a target for so long, or with so many inputs, but with all that are kept; its exit status."""
    try:
        module = load(name)
    except ImportError as error:
        print(f"needs a package: {error}", file=sys.stderr)
        return LACKS
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGPROF, too_long)
    for asked in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # a shell that runs this beside others has the first one ignored
        signal.signal(asked, signal.default_int_handler)
    fuzzer = Fuzzer(module.target, Cover(files(module)), time.time_ns(), getattr(module, "JSON", False))
    waiting = [path.read_bytes() for folder in (corpus, local) for path in sorted(folder.glob("*"))] or [b""]
    end, told = time.monotonic() + seconds, 0.0
    data = b""
    try:
        while waiting or (time.monotonic() < end and not 0 <= most <= fuzzer.runs):
            is_seed = bool(waiting)
            data = waiting.pop() if is_seed else fuzzer.next()
            if fuzzer.try_(data) or not fuzzer.kept:
                fuzzer.kept.append(data)
                if not is_seed:
                    (local / hashlib.sha1(data).hexdigest()).write_bytes(data)
            if time.monotonic() > told:
                told = time.monotonic() + TOLD_S
                _tell(fuzzer)
    except KeyboardInterrupt:
        _tell(fuzzer)
        return INTERRUPTED
    except (Exception, TooLong):
        traceback.print_exc()
        place = crashes / f"crash-{hashlib.sha1(data).hexdigest()}"
        place.write_bytes(data)
        print(f"input: {data[:400]!r}, kept in {place}", file=sys.stderr)
        _tell(fuzzer)
        return FOUND
    _tell(fuzzer)
    return 0


def _tell(fuzzer: Fuzzer) -> None:
    """In the words of libFuzzer."""
    print(f"#{fuzzer.runs} cov: {len(fuzzer.cover.seen)} corp: {len(fuzzer.kept)}")
    print(f"stat::number_of_executed_units: {fuzzer.runs}", flush=True)


def main(words: list[str]) -> int:
    """See the top of this file."""
    match words:
        case ["--list"]:
            print(*names(), sep="\n")
        case ["--state", name]:
            try:
                print(state(load(name)))
            except ImportError as error:
                print(f"needs a package: {error}", file=sys.stderr)
                return LACKS
        case [name, seconds, most, local, corpus, crashes]:
            return run(name, float(seconds), int(most), Path(local), Path(corpus), Path(crashes))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # threads of what is tried may still stand
