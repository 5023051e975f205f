"""Finds Python code that a scenario names (hooks, robots, transports) and makes it callable from the native loops.

A class is plain Python: it is called with numpy views of arrays that are made once. A function is compiled by numba
and called by its address, without the interpreter.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import json
import locale
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from tcpsbed import beside, door
from tcpsbed._tcps import FORKED
from tcpsbed.errors import HookError, Refused, TcpsbedError, counted, one_line
from tcpsbed.interrupts import ENDING, REPEATED, as_interrupts
from tcpsbed.nearest import close_match

VALUES = 256
"""Most values a hook is given or may write."""
BYTES = 1 << 16
"""Most bytes a coding hook is given or may write."""
STATE = 64
"""Floats that a compiled hook keeps between calls."""
ISOLATE = "tcpsbed:isolate"
"""Key among the parameters of a hook with a process of its own: the limits of that process."""
T = TypeVar("T")
_HOST = ("tcpsbed.robots.host", "Hosted")
_CALL = "__call__(self, t_ns, index, x, other, y)"
_ISOLATED = ("tcpsbed.isolated", "Isolated")


_SHOWN_FRAMES = 3
_ENDINGS = ("_exit", "execv", "execve")
"""Functions of `os` after which nothing of this program runs any more; the other kinds of exec call these."""
_OURS = Path(__file__).resolve().parent
_BUILTINS = vars(builtins)
ran: set[str] = set()
"""Code of the user's that has run in this process."""


def told(error: BaseException) -> str:
    """What went wrong and where, in one line: `ValueError: boom, at mine.py:12 in helper, called at mine.py:30 in step`."""
    every = [(Path(f.f_code.co_filename), line, f.f_code.co_name) for f, line in walk_tb(error.__traceback__)]
    own = [frame for frame in every if not _is_between(frame[0])]
    if isinstance(error, TcpsbedError) and not own:
        return one_line(str(error))  # it says itself where
    frames = own or every
    places = [f"{_near(file)}:{line} in {name}" for file, line, name in reversed(frames[-_SHOWN_FRAMES:])]
    place = ", called at ".join(places)
    name, text = type(error).__name__, str(error)
    return one_line((f"{name}: {text}" if text else name) + (f", at {place}" if place else ""))


@contextmanager
def kept_alive(code: str = "code of the scenario") -> Iterator[None]:
    """Within it `_ENDINGS` raise in this process, so that user code cannot end the run silently.

    Processes that are forked meanwhile end by them as ever. The working folder is then as before, and so is the umask.
    """
    own, folder = os.getpid(), os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    before = {name: getattr(os, name) for name in _ENDINGS}

    def refused(name: str, first: Any, *more: Any) -> NoReturn:
        if os.getpid() != own:
            before[name](first, *more)
        raise RuntimeError(f"os.{name}({first!r}) would end the whole run: raise an error instead")

    for name in _ENDINGS:
        setattr(os, name, partial(refused, name))
    try:
        with shielded(code):
            yield
    finally:
        for name, end in before.items():
            setattr(os, name, end)
        os.fchdir(folder)
        os.close(folder)


@contextmanager
def shielded(code: str) -> Iterator[None]:
    """Within it code of the user's runs: a process that it forks ends here, and the umask is then as before."""
    own, mask = os.getpid(), os.umask(0o077)
    os.umask(mask)
    try:
        yield
    finally:
        if os.getpid() != own:
            os.write(2, f"tcpsbed: a process that {code} {FORKED}, and ends here\n".encode())
            os._exit(1)
        os.umask(mask)


def _noted() -> Callable[[], None]:
    """Saves the interpreter's state; the returned function restores what was removed or replaced since."""
    import numpy as np

    names, modules = dict(_BUILTINS), dict(sys.modules)
    path, finders, deepest = [*sys.path], [*sys.meta_path], sys.getrecursionlimit()
    streams, faults, language = (
        (sys.stdin, sys.stdout, sys.stderr),
        np.geterr(),
        locale.setlocale(locale.LC_ALL),
    )
    tellers = sys.excepthook, sys.unraisablehook, threading.excepthook
    first = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in ENDING if first}

    def put_back() -> None:
        _BUILTINS.update(names)  # before any of them is called
        gone = {name: module for name, module in modules.items() if name not in sys.modules}
        sys.modules.update({name: module for name, module in gone.items() if not beside.is_outdated(name)})
        sys.path[:] = [*path, *(one for one in sys.path if one not in path)]
        sys.meta_path[:] = [*finders, *(one for one in sys.meta_path if one not in finders)]
        sys.setrecursionlimit(max(deepest, sys.getrecursionlimit()))
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.excepthook, sys.unraisablehook, threading.excepthook = tellers
        np.seterr(**faults)
        locale.setlocale(locale.LC_ALL, language)
        for number, handler in handlers.items():
            if handler is not None and not _is_our_handler(number):
                signal.signal(number, handler)

    return put_back


def _is_our_handler(number: int) -> bool:
    """Whether a request to end is answered by us: also where it has come, and the next is answered otherwise."""
    now = signal.getsignal(number)
    repeated = number in REPEATED and now is signal.SIG_IGN
    return (
        repeated
        or now is signal.default_int_handler
        or getattr(now, "__module__", "") == as_interrupts.__module__
    )


def safely(call: Callable[..., T], *given: Any, **named: Any) -> T:
    """Calls user code and restores the interpreter's state afterwards. Code that ends the program fails instead.

    No context manager: those of Python itself need builtins that may be gone.
    """
    put_back = _noted()
    try:
        return call(*given, **named)
    except SystemExit as end:
        said = f"it ends the program: SystemExit({end.code!r})"
        raise RuntimeError(said).with_traceback(end.__traceback__) from None
    finally:
        put_back()


def _is_between(file: Path) -> bool:
    """Whether a source is a frame between the loops and the user's code, without information about either."""
    return file.is_relative_to(_OURS) or str(file).startswith("<frozen ")


def _near(file: Path) -> Path:
    """A file as seen from the working folder, if it is below it."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def find(module: str, name: str) -> Any:
    """The object ``name`` of a module, given by its name or by the path of its file.

    Raises
    ------
    HookError
        If the module cannot be imported or has no such name.
    """
    where = f"hook {module}:{name}"
    if not module.startswith("tcpsbed."):
        ran.add(f"{module}:{name}")
    try:
        with kept_alive(module):
            loaded = from_file(Path(module)) if module.endswith(".py") else from_name(module)
    except (Exception, SystemExit) as error:
        raise HookError(f"the module cannot be imported: {told(error)}", key=where) from error
    try:
        return getattr(loaded, name)
    except AttributeError:
        known = close_match(name, [n for n in vars(loaded) if not n.startswith("_")])
        raise HookError(f"the module has no such name; it has {known}", key=where) from None


def from_name(name: str) -> ModuleType:
    """The module of a name."""
    return safely(importlib.import_module, name)


def load_hook(
    module: str,
    name: str,
    params: str,
    bytes_in: bool,
    bytes_out: bool,
    most_bytes: int = BYTES,
    interval_ns: int | None = None,
) -> dict[str, Any]:
    """A hook as the native module wants it: a callable with its arrays, or an address with its state.

    A predictor whose class takes `interval_ns` is given the time between the samples that it is to be given.
    """
    given, end = json.loads(params) or {}, None
    if limits := given.pop(ISOLATE, None):
        hook = find(*_ISOLATED)(module, name, given, interval_ns, **limits)
        end = hook.end
    elif inspect.isclass(code := find(module, name)):
        hook = make_hook(module, name, params, interval_ns)
    else:
        return _compile(code, module, name, params, bytes_in, bytes_out)
    return {
        "call": hook.__call__,
        "allowance": getattr(hook, "on_allowance", None) if getattr(hook, "takes_allowance", True) else None,
        "end": end,
        "sample": hook.on_sample if getattr(hook, "takes_sample", False) else None,
        **_array("x", most_bytes if bytes_in else 0),
        **_array("other"),
        **_array("y", most_bytes if bytes_out else 0),
    }


def make_hook(module: str, name: str, params: str, interval_ns: int | None) -> Any:
    """An object of a hook's class, checked that it can be called.

    Raises
    ------
    HookError
        If it is no class, refuses its parameters, or has not the methods of a hook.
    """
    where, code = f"hook {module}:{name}", find(module, name)
    if not inspect.isclass(code):
        raise HookError(f"{where}: found {code!r:.80}", allowed=f"a class with {_CALL}")
    more = {"interval_ns": interval_ns} if interval_ns and _takes(code, "interval_ns") else {}
    hook = _instance(code, module, name, params, **more)
    has(hook, where, "__call__", "t_ns", "index", "x", "other", "y")
    if hasattr(hook, "on_allowance"):
        has(hook, where, "on_allowance", "bps")
    return hook


def load_robot(module: str, name: str, params: str) -> dict[str, Any]:
    """A robot: an object with ``step(t_ns, command, sense) -> values written`` and optionally ``arrived()``.

    At a node of the real world a class that says ``own_process = True`` is run by a process of its own, with a watchdog
    (`tcpsbed.robots.host`), whose parameters mean nothing elsewhere.
    """
    given = json.loads(params) or {}
    code = find(module, name)
    apart = getattr(code, "own_process", False)
    if apart and sys.argv[1:2] == ["node"]:
        robot = find(*_HOST)(module, name, given)
        more = {"close": robot.close}
    else:
        rest = find(_HOST[0], "Watchdog").of(given)[1] if apart else given
        robot, more = make_robot(module, name, rest), {}
    return {"robot": robot, **more, **_array("x"), **_array("y")}


def make(module: str, name: str, params: dict[str, Any]) -> Any:
    """An object of a class with its parameters.

    Raises
    ------
    HookError
        If there is no such class, or it refuses its parameters.
    """
    return _instance(find(module, name), module, name, json.dumps(params))


def make_robot(module: str, name: str, params: dict[str, Any]) -> Any:
    """A robot in this process.

    Raises
    ------
    HookError
        If there is no such class, or it refuses its parameters, or what it makes is no robot.
    """
    robot = make(module, name, params)
    has(robot, f"robot {module}:{name}", "step", "t_ns", "command", "sense")
    if not hasattr(robot, "arrived"):
        robot.arrived = lambda: True
    return robot


@dataclass(frozen=True)
class ChannelFlow:
    """A flow on a channel, for an endpoint in Python."""

    flow: int
    """Its number."""
    arrives: bool
    """Whether its samples arrive here; else they are sent from here."""
    name: str
    """Its name without the session."""
    period_ns: int
    """Time between its samples."""


@dataclass(frozen=True)
class Channel:
    """A channel, for an endpoint or a rate controller in Python."""

    name: str
    """Its name."""
    side: str
    """`a` or `b`."""
    seed: int
    """Seed of the run."""
    flows: tuple[ChannelFlow, ...]
    """The flows on it, both directions."""


def load_transport(
    module: str, name: str, params: str, channel: tuple[str, str, int, list[tuple[int, bool, str, int]]]
) -> Any:
    """An endpoint of a channel: an object with ``on_input(now_ns, kind, data, out)``."""
    endpoint = _instance(find(module, name), module, name, params, _described(channel))
    has(endpoint, f"transport {module}:{name}", "on_input", "now_ns", "kind", "data", "out")
    return endpoint


def load_controller(
    module: str, name: str, params: str, channel: tuple[str, str, int, list[tuple[int, bool, str, int]]]
) -> Any:
    """A rate controller of a channel: an object with ``on_feedback(now_ns, delay_ns, value, told) -> value``."""
    controller = _instance(find(module, name), module, name, params, _described(channel))
    has(controller, f"controller {module}:{name}", "on_feedback", "now_ns", "delay_ns", "value", "told")
    return controller


def load_queue(module: str, name: str, params: str, link: str, seed: int) -> Any:
    """A queue discipline of a link: an object with ``enqueue(now_ns, packet, dropped)`` and ``dequeue(now_ns, dropped)``."""
    queue = _instance(find(module, name), module, name, params, link, seed)
    has(queue, f"queue {module}:{name}", "enqueue", "now_ns", "packet", "dropped")
    has(queue, f"queue {module}:{name}", "dequeue", "now_ns", "dropped")
    return queue


def load_loss(module: str, name: str, params: str, link: str, seed: int) -> Any:
    """A loss model of a link: an object with ``lose(now_ns, packet) -> True or False``."""
    loss = _instance(find(module, name), module, name, params, link, seed)
    has(loss, f"loss {module}:{name}", "lose", "now_ns", "packet")
    return loss


def load_delay(module: str, name: str, params: str, link: str, seed: int) -> Any:
    """A delay model of a link: an object with ``delay(now_ns, packet) -> ns``."""
    delay = _instance(find(module, name), module, name, params, link, seed)
    has(delay, f"delay {module}:{name}", "delay", "now_ns", "packet")
    return delay


def load_source(module: str, name: str, params: str, entry: str, seed: int) -> Any:
    """A background source of a traffic entry: an object with ``next() -> (time since its start in ns, bytes) or None``."""
    source = _instance(find(module, name), module, name, params, entry, seed)
    has(source, f"source {module}:{name}", "next")
    return source


def _described(channel: tuple[str, str, int, list[tuple[int, bool, str, int]]]) -> Channel:
    label, side, seed, flows = channel
    return Channel(label, side, seed, tuple(ChannelFlow(*flow) for flow in flows))


def from_file(path: Path) -> ModuleType:
    """The module of a file, which may import others beside it; loaded anew if one of them was changed."""
    return beside.module(path, safely)


def has(code: Any, where: str, method: str, *takes: str) -> None:
    """Raises `HookError` where an object, or a class, has no method of this name, or one that cannot be called so."""
    call = getattr(code, method, None)
    if not callable(call):
        raise HookError(f"{where} has no method {method}", allowed=_written(method, *takes))
    try:
        signature = inspect.signature(call)
        signature.bind(*([code] if inspect.isclass(code) else ()), *takes)
    except ValueError:  # a method of C
        return
    except TypeError:
        found = f"{where}: {method}{signature} is called with {counted(len(takes), 'argument')}"
        raise HookError(found, allowed=_written(method, *takes)) from None


def _written(method: str, *takes: str) -> str:
    """How a method is to be written."""
    return f"def {method}({', '.join(('self', *takes))})"


def _takes(code: Any, name: str) -> bool:
    """Whether a class has a parameter of this name."""
    try:
        return name in inspect.signature(code).parameters
    except (TypeError, ValueError):  # a class of C
        return False


def _instance(code: Any, module: str, name: str, params: str, *before: Any, **more: Any) -> Any:
    given = json.loads(params) or {}
    for method in sorted(getattr(code, "__abstractmethods__", ())):
        takes = [*inspect.signature(getattr(code, method)).parameters][1:]
        raise HookError(f"{module}:{name} has no method {method}", allowed=_written(method, *takes))
    try:
        with shielded(f"{module}:{name}"):
            return safely(code, *before, **(more | door.complete(code, given)))
    except Refused as error:
        raise HookError(f"{module}:{name}: {error}") from error
    except TcpsbedError:
        raise
    except Exception as error:
        raise HookError(f"{module}:{name}({given}): {told(error)}") from error


def _array(name: str, most_bytes: int = 0) -> dict[str, Any]:
    import numpy as np

    array = np.zeros(most_bytes, np.uint8) if most_bytes else np.zeros(VALUES)
    return {name: array, f"{name}_address": array.ctypes.data, f"{name}_room": len(array)}


def _compile(
    code: Callable[..., Any], module: str, name: str, params: str, bytes_in: bool, bytes_out: bool
) -> dict[str, Any]:
    """Compiles ``f(t_ns, index, x, other, state, y) -> values written`` to a C function."""
    if not (inspect.isfunction(code) or hasattr(code, "signatures")):  # what numba has compiled has these
        found = f"hook {module}:{name}: found {code!r:.80}, neither a class nor a Python function"
        raise HookError(found, allowed=f"a class with {_CALL}, or a function def of Python")
    try:
        import numba
        import numpy as np
    except ImportError:
        raise HookError(
            f"hook {module}:{name} is a function, which numba compiles: pip install 'tcpsbed[numba]', "
            "or make it a class to run it as plain Python"
        ) from None
    if json.loads(params):
        raise HookError(f"hook {module}:{name}: a compiled function takes no parameters; use a class")
    types, carray = numba.types, numba.carray
    values, coded = types.CPointer(types.float64), types.CPointer(types.uint8)
    body = code if hasattr(code, "signatures") else numba.njit(code)
    i64 = types.int64
    signature = i64(
        i64, i64, coded if bytes_in else values, i64, values, i64, values, coded if bytes_out else values, i64
    )

    def entry(t_ns, index, x, n, other, n_other, state, y, room):  # type: ignore[no-untyped-def]
        return body(t_ns, index, carray(x, n), carray(other, n_other), carray(state, STATE), carray(y, room))

    try:
        compiled = numba.cfunc(signature)(entry)
    except Exception as error:
        text = str(error).strip().splitlines()
        raise HookError(
            f"hook {module}:{name}: numba cannot compile it: {text[-1] if text else error}"
        ) from error
    state = np.zeros(STATE)
    return {"address": compiled.address, "state": state.ctypes.data, "owner": (compiled, state)}
