"""Code named by one string: built-in, a function of a library, or a name of a Python module (design: hooks).

| string | what runs |
|---|---|
| `"zoh"` | a built-in, a robot of `tcpsbed.robots`, a device of `tcpsbed.devices` |
| `"./libmine.so:predict"` | a C function in a shared library |
| `"mymod:fast"`, `"./mymod.py:Zoh"` | a function or class in Python; the module may be a file beside the scenario |
| `"./hand.onnx"` | a learned model, run by onnxruntime |
"""

from __future__ import annotations

import ast
import importlib.util
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tcpsbed import door
from tcpsbed.beside import parsed
from tcpsbed.devices import DEVICES
from tcpsbed.errors import ConfigError, HookError
from tcpsbed.hooks import ISOLATE, find, from_file, from_name, kept_alive, told
from tcpsbed.inputs import LIBRARY
from tcpsbed.nearest import close_match
from tcpsbed.robots import ROBOTS
from tcpsbed.scenarios.compile import builtins
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.files import existing
from tcpsbed.scenarios.model.code import Isolate
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import parameters

LOAD_S = 30.0
"""Longest time that a library may take to be loaded."""
_LOAD = """
import ctypes, os, sys
DATA = (1, 5, 6)
class Symbol(ctypes.Structure):
    _fields_ = [("name", ctypes.c_uint32), ("info", ctypes.c_ubyte)]
def kind(address):
    found, symbol = (ctypes.c_void_p * 4)(), ctypes.POINTER(Symbol)()
    ask = getattr(ctypes.CDLL(None), "dladdr1", None)
    known = ask and ask(ctypes.c_void_p(address), found, ctypes.byref(symbol), 1)
    return "=" if known and symbol and symbol.contents.info & 15 in DATA else "+"
try:
    library = ctypes.CDLL(sys.argv[1])
    exported = sys.argv[2] and hasattr(library, sys.argv[2])
    told = kind(ctypes.addressof(ctypes.c_char.in_dll(library, sys.argv[2]))) if exported else "-"
except OSError as error:
    told = f"!{error}"
os.write(1, b"\\0" + told.encode(errors="replace"))
os._exit(0)
"""
"""Loads a library and says of a symbol: a function, data (the types of ELF), not exported, or what is wrong, after whatever
the library prints."""
_FORMS = 'code such as "./mine.py:Mine" or "./lib.so:function"'
SUPERVISOR = "supervisor"
"""The hook whose parameters may name further code: its emergency agent."""
_IN_PYTHON = {"robot": ROBOTS, "hook": DEVICES}
"""Built-in code in Python, by its kind."""
_ISOLATED = 'a class of yours in Python, such as run = "./mine.py:Mine", or a function in C, such as "./lib.so:function"'
_LEARNED = "tcpsbed.lab.control.learned:Learned"
"""The hook that runs a learned model."""


def not_isolated(scenario: Scenario, key: Key, what: str) -> ConfigError:
    """The error of a hook that cannot have a process of its own."""
    return scenario.error((*key, "isolate"), f'found "isolate" with the {what}', _ISOLATED)


def code(
    book: Book,
    key: Key,
    text: str,
    kind: str,
    params: dict[str, Any],
    stage: str = "work",
    isolate: Isolate | None = None,
) -> dict[str, Any]:
    """The code that a string names, checked so that it can be loaded.

    Parameters
    ----------
    key
        The key of the string, for messages.
    kind
        What it is for: `hook`, `robot`, `transport` or `controller`.
    stage
        What a hook does.
    isolate
        Limits of the process of its own in which a hook runs.
    """
    scenario = book.scenario
    if text.endswith(".onnx"):
        text, params = _learned(scenario, key, text, params)
    if kind == "hook" and text == SUPERVISOR and "agent" in params:
        params = params | {"agent": _agent(book, (*key[:-1], "params", "agent"), params["agent"])}
    text = builtins.resolved(kind, text)
    place, colon, symbol = text.rpartition(":")
    if not colon and text in _IN_PYTHON.get(kind, ()):
        module, symbol = _IN_PYTHON[kind][text]
        plan = {"kind": "python", "name": module, "symbol": symbol}
        params = door.located(find(module, symbol), params, scenario.folder)
    elif not colon:
        plan = _builtin(scenario, key, text, kind)
    elif LIBRARY.fullmatch(place):
        plan = _library(scenario, key, place, symbol)
    else:
        plan = _python(scenario, key, place, symbol)
    at = (*key[:-1], "params") if params else key
    if isolate is not None:
        if not colon:
            raise not_isolated(scenario, key[:-1], f'built-in hook "{text}"')
        limits = {"time_ns": isolate.time_ns, "memory_bytes": isolate.memory_bytes}
        params = params | {ISOLATE: limits}
    elif book.rehearsal and plan["kind"] == "python":
        builtins.by_table(scenario, at, plan["name"], plan["symbol"], params)
    if book.rehearsal or not colon:
        name = f"{plan['name']}:{plan['symbol']}" if "symbol" in plan else plan["name"]
        builtins.rehearse(scenario, at, kind, name, params, stage)
    return plan | {"params": parameters(params)}


def own(book: Book, key: Key, text: str, kind: str, params: dict[str, Any]) -> dict[str, Any]:
    """A `queue` discipline, `loss` or `delay` model or background `source` of the user's, as a plan names it."""
    found = code(book, key, text, kind, params)
    params_plan: dict[str, Any] = found["params"]
    return {"kind": f"{found['name']}:{found['symbol']}"} | params_plan


def _builtin(scenario: Scenario, key: Key, text: str, kind: str) -> dict[str, Any]:
    return {"kind": "builtin", "name": builtins.check(scenario, key, text, kind, f"; or {_FORMS}")}


def _agent(book: Book, key: Key, agent: Any) -> dict[str, Any]:
    """A supervisor's agent as code like any other."""
    table = {"run": agent} if isinstance(agent, str) else agent
    if not isinstance(table, dict) or not isinstance(table.get("run"), str) or set(table) - {"run", "params"}:
        raise book.scenario.error(key, f"found {agent}", f'{_FORMS}, or {{ run = "…", params = {{…}} }}')
    return code(book, key, table["run"], "hook", table.get("params", {}), "predict")


def _learned(scenario: Scenario, key: Key, text: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The hook that runs a learned model, with the model's file among its parameters."""
    path = existing(scenario, key, text)
    return _LEARNED, params | {"model": str(path)}


def _library(scenario: Scenario, key: Key, place: str, symbol: str) -> dict[str, Any]:
    path = existing(scenario, key, place)
    wrong, exported = _tried(str(path), path.stat().st_mtime_ns, symbol)
    if wrong:
        raise scenario.error(key, f'found "{place}", which {wrong}', "a shared library")
    if exported != "+":
        found = f'found "{symbol}"' + (", which is data" if exported == "=" else "")
        raise scenario.error(key, found, f"a function that {path.name} exports")
    return {"kind": "library", "name": str(path), "symbol": symbol}


@cache
def _tried(library: str, _changed_ns: int, symbol: str) -> tuple[str, str]:
    """Loads a library in a process of its own: its error, and its description of a symbol, as in `_LOAD`.

    Its constructors run there first, where they can neither end this process nor keep it.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LOAD, library, symbol],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LOAD_S,
        )
    except subprocess.TimeoutExpired:
        return f"is not loaded after {LOAD_S:g} s: a constructor in it does not return", ""
    _, end, told = done.stdout.decode(errors="replace").rpartition("\0")
    if not end and done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"dies of {name} when it is loaded, in a constructor", ""
    if not end:
        return f"ends the program that loads it (status {done.returncode}): a constructor in it exits", ""
    return (f"cannot be loaded ({told[1:]})", "") if told.startswith("!") else ("", told)


def _python(scenario: Scenario, key: Key, place: str, symbol: str) -> dict[str, Any]:
    near = beside(scenario.folder, place)
    if place.endswith(".py") and near is None:
        existing(scenario, key, place)
    source = near or _installed(scenario, key, place)
    names = _names(source) if source else []
    if symbol not in names and not _imports(scenario, key, place, near, symbol):
        raise scenario.error(key, f'found "{symbol}"', f"a name in {place}: {close_match(symbol, names)}")
    return {"kind": "python", "name": str(near) if near else place, "symbol": symbol}


def loaded(scenario: Scenario, key: Key, text: str) -> tuple[str, Any]:
    """The module of `module:Name` as the plan has it, and the object of that name."""
    place, _, symbol = text.rpartition(":")
    module = _python(scenario, key, place, symbol)["name"]
    try:
        return module, find(module, symbol)
    except HookError as error:
        raise scenario.error(key, f'found "{text}": {error.found}', "a module that can be imported") from None


def beside(folder: Path, place: str) -> Path | None:
    """The file of a module beside the scenario."""
    if not place.strip("."):
        return None
    stem = folder / (place if place.endswith(".py") else place.replace(".", "/"))
    for path in (stem, stem.with_name(stem.name + ".py"), stem / "__init__.py"):
        if path.is_file():
            return path.resolve()
    return None


def _installed(scenario: Scenario, key: Key, module: str) -> Path | None:
    """The source of an installed module, if it has one."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        allowed = f"a module that can be imported, or a file {module}.py in {scenario.folder}"
        raise scenario.error(key, f'found "{module}", which is not a module', allowed)
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def _names(source: Path) -> list[str]:
    """The names that a source defines at its top level."""
    names: list[str] = []
    for node in parsed(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names += [alias.asname or alias.name for alias in node.names]
    return names


def _imports(scenario: Scenario, key: Key, place: str, beside: Path | None, symbol: str) -> bool:
    """Whether the module has the name once it is imported (it may make it up, or be compiled)."""
    try:
        with kept_alive():
            module = from_name(place) if beside is None else from_file(beside)
    except (Exception, SystemExit) as error:  # the user's code may fail in any way
        raise _failed(scenario, key, place, error) from None
    return hasattr(module, symbol)


def _failed(scenario: Scenario, key: Key, place: str, error: BaseException) -> ConfigError:
    return scenario.error(
        key,
        f'found "{place}", which fails ({told(error)})',
        "a module that can be imported",
    )
