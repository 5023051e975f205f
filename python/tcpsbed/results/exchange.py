"""Replacing a folder: in one step if the kernel can, otherwise in steps that the next start completes.

```text
 DIR.unfinished-PID    whole     ─► is put in the place of DIR, if nothing of the user's came into DIR meanwhile
                       former    ─► was DIR: what is ours in it goes; it becomes DIR again where there is none
```
"""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tcpsbed.errors import ConfigError
from tcpsbed.results import marker
from tcpsbed.results.marker import FORMER, NAME

_AT_FDCWD, _EXCHANGE = -100, 2
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)


@cache
def _renameat2() -> Any:
    import ctypes

    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None


def swap(one: Path, other: Path) -> bool:
    """Exchanges two folders in one step; false where the kernel or the file system cannot."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    import ctypes

    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))


def install(fresh: Path, target: Path) -> None:
    """Puts a finished folder in the place of the target and removes of the former one what is ours.

    Raises
    ------
    ConfigError
        If something of the user's came into the target since: both stay where they are.
    """
    if target.exists() and (name := marker.foreign(target)) is not None:
        allowed = f"move {name} away; until then the new result is in {fresh}"
        raise ConfigError(
            f"holds {name}, which was created while it was written", file=target, allowed=allowed
        )
    if fresh.parent == target:
        _move_in(fresh, target)
        return
    if (former := marker.read(target)) is not None:
        replace(former, state=FORMER).write(target)
    if not target.exists():
        fresh.rename(target)
    elif swap(fresh, target):
        discard(fresh, target)
    else:
        aside = fresh.with_name(f"{fresh.name}-former")
        target.rename(aside)
        fresh.rename(target)
        discard(aside, target)


def discard(former: Path, target: Path) -> None:
    """Ends an exchange with what was in the target before."""
    if not target.exists():
        former.rename(target)
        return
    marker.remove(former)
    if former.exists():
        print(f"tcpsbed: {former} holds files that were created in {target} meanwhile", file=sys.stderr)


def _move_in(fresh: Path, target: Path) -> None:
    """For a target that must stay the same folder: a mount point, a working folder, or below a read-only one."""
    former, made = marker.read(target), marker.read(fresh)
    assert made is not None
    if former is not None and former.id != made.id:
        marker.clear(target, former)
    made.write(target)
    for entry in sorted(fresh.iterdir()):
        if entry.name.startswith(NAME):
            continue
        if os.path.lexists(target / entry.name):
            raise FileExistsError(
                errno.EEXIST, "was created while the result was moved in", str(target / entry.name)
            )
        entry.rename(target / entry.name)
    (fresh / NAME).unlink()
    fresh.rmdir()
