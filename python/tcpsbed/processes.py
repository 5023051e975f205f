"""Processes that this program starts: they import no modules of the working folder, and none stays behind.

```text
 working folder/random.py   is not what `import random` finds in them (`python -P`)
 node killed                ─► what code of the user's forked in it has 5 s, then it ends by itself
```
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from tcpsbed.errors import ALL_REMEDIES

PYTHON = (sys.executable, "-P")
"""Python whose modules are not looked for in the working folder."""
OURS = (*PYTHON, "-m", "tcpsbed")
"""This program, before the words of a command."""
GRACE_S = 5.0
"""Time for what code of the user's has started to end by itself after us."""
_LOOK_S = 0.25


def cores() -> int:
    """Cores that this process may use; all cores on a system that does not report it (macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def talking(command: Sequence[str], **streams: Any) -> subprocess.Popen[str]:
    """A process in a session of its own that reads and writes lines of text; `streams` are those that are no pipes."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | streams
    return subprocess.Popen(list(command), **pipes, text=True, errors="replace", start_new_session=True)


def how_ended(status: int) -> str:
    """How a process ended, by its exit status as `subprocess` has it: "by SIGKILL", or "with status 3"."""
    if status >= 0:
        return f"with status {status}"
    known = {one.value: one.name for one in signal.Signals}
    return f"by {known.get(-status, f'signal {-status}')}"


def end_with_parent(parent: int) -> None:
    """Ends this process `GRACE_S` after that which started it, at the latest, whatever it does then; at once if it cannot.

    Parameters
    ----------
    parent
        That process, as it said itself: who asks here may be told another, where it has ended already.
    """
    try:
        threading.Thread(target=_outlived, args=(parent,), name="tcpsbed parent", daemon=True).start()
    except RuntimeError as error:  # no memory for a stack, or too many threads
        said = f"tcpsbed: found no room for a thread ({error}); allowed: {ALL_REMEDIES[errno.EAGAIN]}\n"
        os.write(2, said.encode())
        os._exit(2)  # an exception of a hook of `fork` would be ignored


def heirs_end() -> None:
    """Lets every process that Python forks in this one, or in its heirs, end with its parent."""
    forking = [os.getpid()]  # noted before: who forks may be gone when the child looks

    def note() -> None:
        forking[0] = os.getpid()

    os.register_at_fork(before=note, after_in_child=lambda: end_with_parent(forking[0]))


def _outlived(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    time.sleep(GRACE_S - 2 * _LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)
