"""How commands fail: one message on standard error, an exit status, never a traceback."""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, ParamSpec, TypeVar

from tcpsbed.cli.colour import RED, paint
from tcpsbed.errors import ALL_REMEDIES, TcpsbedError, printable

P = ParamSpec("P")
T = TypeVar("T")

FAILED = 1
"""Exit status of work that ended with errors; what it recorded is kept."""
DISTURBED = 3
"""Exit status where numbers are there and prove nothing: a host was lost, a run disturbed (docs/exit-status.md)."""
WRONG_INPUT = 2
"""Exit status after bad input: the message says what to change."""
OUTPUT = "standard output"
NO_THREAD = "can't start new thread"
"""What threading says where a stack finds no room."""
UNMAPPED = "failed to map segment"
"""What the dynamic linker says of a library for which there is no memory."""
MORE_MEMORY = "a higher limit (ulimit -v unlimited), fewer programs beside this one, or a shorter run"
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def guarded(command: Callable[P, T]) -> Callable[P, T]:
    """The command, with its failures printed as messages."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except TcpsbedError as error:
            fail(str(error), WRONG_INPUT)
        except KeyboardInterrupt as stop:
            fail(str(stop) or "stopped", INTERRUPTED)
        except BrokenPipeError:
            _to_nowhere()
            sys.exit(0)
        except UnicodeError as error:
            fail(_no_text() or f"found a name or a file that is not UTF-8 text ({error})", WRONG_INPUT)
        except ValueError:
            if sys.stdout is None or not sys.stdout.closed:
                raise
            fail(f"{OUTPUT} was closed by code of the scenario; its output is lost", WRONG_INPUT)
        except RuntimeError as error:
            if str(error) == NO_THREAD:
                fail(f"found too little memory ({error}); allowed: {MORE_MEMORY}", WRONG_INPUT)
            if not str(error).startswith("Symlink loop"):  # of pathlib before Python 3.13
                raise
            fail(f"found a link that leads to itself ({error}); allowed: a file or folder", WRONG_INPUT)
        except (MemoryError, ImportError) as error:
            if isinstance(error, ImportError) and UNMAPPED not in str(error):
                raise
            why = next((line for line in str(error).splitlines() if UNMAPPED in line), "")
            fail(f"found too little memory{why and f' ({why})'}; allowed: {MORE_MEMORY}", WRONG_INPUT)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            remedy = ALL_REMEDIES.get(error.errno or 0)
            if error.filename == OUTPUT:
                _to_nowhere()
                remedy = "an output that is open and accepts data"
            if not place:
                refuse_broken(error)
                remedy = remedy or _no_folder()
            fail(
                f"{place}{error.strerror or error}" + (f"; allowed: {remedy}" if remedy else ""), WRONG_INPUT
            )

    return run


def _no_folder() -> str | None:
    """What to do where the working directory has been removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "a working directory that is there: cd to another one"
    return None


def _no_text() -> str | None:
    """Which word of the command line is no UTF-8 text, and the option that it belongs to."""
    for before, word in itertools.pairwise(sys.argv):
        option, _, value = word.rpartition("=") if word.startswith("-") else (before, "", word)
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            place = f"{option}: " if option.startswith("-") else ""
            return (
                f'{place}found "{value}", which is not UTF-8 text; allowed: a name in UTF-8, such as runs/a'
            )
    return None


def refuse_broken(error: BaseException) -> None:
    """Ends with a message if user code ran in this process before an internal error."""
    hooks = sys.modules.get("tcpsbed.hooks")
    if hooks is not None and hooks.ran and isinstance(error, Exception):
        fail(
            f"failed with {hooks.told(error)}, after {', '.join(sorted(hooks.ran))} had run in this process, which may have "
            "changed the state of the interpreter; allowed: code that leaves modules, open files and limits as they were",
            FAILED,
        )


def _to_nowhere() -> None:
    """What is still to be written to standard output goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, status: int) -> NoReturn:
    """Prints one message on standard error and ends with this status."""
    print(f"{paint('tcpsbed:', RED, sys.stderr)} {printable(message)}", file=sys.stderr)
    sys.exit(status)
