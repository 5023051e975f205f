"""Names a file on PYTHONPATH that hides a module of this program.

This module, and those before it, import only what is part of the interpreter: any other module may be hidden.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH120, PTH208

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

WRONG_INPUT = 2


def tell(kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None") -> None:
    """What Python calls for an error that nobody has handled: ends with one line where a shadowed module is its cause."""
    if isinstance(error, Exception) and (found := shadow(error)):
        file, name = found
        said = f"hides the module {name}, which tcpsbed imports, and led to {kind.__name__}: {error}"
        print(
            f"tcpsbed: {file}: {said}; allowed: another name for that file, or PYTHONPATH without its folder",
            file=sys.stderr,
        )
        raise SystemExit(WRONG_INPUT)
    sys.__excepthook__(kind, error, trace)


def shadow(error: BaseException) -> "tuple[str, str] | None":
    """The file of a module that took part in an error and hides another of its name, and that name."""
    library = os.path.dirname(os.__file__)
    places = sys.path[: sys.path.index(library)] if library in sys.path else []
    files = {*_files(error)}
    for number, place in enumerate(places):
        folder = os.path.abspath(place)
        for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            name, _, ending = entry.partition(".")
            file = os.path.join(folder, entry) if ending else os.path.join(folder, entry, "__init__.py")
            hidden = name in sys.stdlib_module_names or any(
                _has(later, name) for later in sys.path[number + 1 :]
            )
            if ending in ("", "py") and hidden and file in files:
                return file, name
    return None


def _has(place: str, name: str) -> bool:
    return any(os.path.exists(os.path.join(place, name + end)) for end in (".py", "/__init__.py"))


def _files(error: "BaseException | None") -> "Iterator[str]":
    """Files of the modules in an error's traceback, and of those that its message names."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        top = str(getattr(error, "name", None)).partition(".")[0]
        for module in (getattr(error, "obj", None), sys.modules.get(top)):
            yield str(getattr(module, "__file__", None))
        yield str(getattr(error, "path", None))
        trace = error.__traceback__
        while trace is not None:
            yield os.path.abspath(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        error = error.__cause__ or error.__context__
