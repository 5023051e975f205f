"""A results folder while it is written: refused, locked, staged beside, exchanged."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tcpsbed.errors import REMEDIES, ConfigError
from tcpsbed.inputs import refuse_unseen
from tcpsbed.results import exchange, files, lock, marker, names
from tcpsbed.results.files import may_replace, refuse_dash
from tcpsbed.results.marker import FORMER, GROWING, WHOLE, WRITING, Marker

UNFINISHED = ".unfinished-"
LOCK = f"{marker.NAME}-lock"
INSIDE = f"{marker.NAME}-unfinished-"
ENDED = ("result.json", "*.rows")
"""What makes a run that failed worth to be recovered: it was recorded on the machine's clock."""
KILLED = ("records.bin", "*.rows")
"""The same of one whose process died."""


@dataclass
class Place:
    """Where a result is written, and where it will be.

    Attributes
    ----------
    path
        The folder to write into.
    target
        The folder that it becomes.
    keep
        Whether it is a result already, so that it is kept however the command ends.
    newest
        Whether `runs/latest` points to it when it is whole, if it is a run below `runs/`.
    """

    path: Path
    target: Path
    shown: Path
    """The target as the user named it."""
    keep: bool = False
    newest: bool = True

    @contextmanager
    def anew(self) -> Iterator[Path]:
        """A folder for the content of `path`: where that is a result already, it stays if the next one fails."""
        made = marker.read(self.path)
        fresh = self.path / marker.AGAIN if self.keep and made is not None else self.path
        if made is None or fresh == self.path:
            yield self.path
            return
        fresh.mkdir()
        made.write(fresh)
        try:
            yield fresh
            marker.clear(self.path, made)
            for name in made.ours(fresh):
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (fresh / name).rename(self.path / name)
        finally:
            marker.remove(fresh)

    def told(self, file: Path) -> Path:
        """Where a file of `path` will be, as the user named the folder."""
        return self.shown / file.relative_to(self.path)


@contextmanager
def writing(out: Path | str, kind: str, *, inputs: Iterable[Path] = ()) -> Iterator[Place]:
    """A folder to write a result into, which takes the place of `out` when it is whole.

    Where the work fails, or is stopped before there is a result (`Place.keep`), `out` stays as it was; what a run on the
    machine's clock has recorded until then is left beside it, for `tcpsbed report`. In virtual time it can be had again.

    Parameters
    ----------
    out
        New, empty, or a result of tcpsbed that nobody changed.
    kind
        What is written, such as `run`.
    inputs
        Files that the work reads, which must not be in `out`.

    Raises
    ------
    ConfigError
        If `out` holds something else, is a file or a link, or is being written by another process.
    """
    assert kind in marker.LAYOUT, "a result whose names nobody knows"
    shown, target = Path(out), target_of(Path(out))
    refuse_inputs(target, inputs)
    _refuse(target, kind)
    made = _parents(target)
    try:
        with lock.held(lock_of(target), target):
            tend(target, say=True)
            _refuse(target, kind)
            place = Place(_staging(target), target, shown)
            Marker(kind, target=str(target)).write(place.path)
            try:
                with files.named(shown):
                    yield place
            except BaseException:
                if place.keep or (_holds(place.path, *ENDED) and not any(marker.files(target))):
                    _finish(place)
                else:
                    _leave(place)
                raise
            _finish(place)
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()


@contextmanager
def growing(out: Path | str, kind: str, *, inputs: Iterable[Path] = ()) -> Iterator[Path]:
    """A folder that results are added to, command by command; it is ours from the first one on.

    What was written whole into it (`files.whole`) and changed by somebody since is theirs, and refused.

    Parameters, errors: as of `writing`.
    """
    target = target_of(Path(out))
    refuse_inputs(target, inputs)
    _refuse(target, kind)
    made = _parents(target)
    try:
        with lock.held(lock_of(target), target):
            _refuse(target, kind)
            theirs = target.is_dir() and marker.read(target) is None
            with _makes(target):
                target.mkdir(exist_ok=True)
            if marker.kind_of(target) != kind:  # not ours yet, or named for another kind and empty
                Marker(kind, GROWING).write(target)
            marker.sweep_parts(target)
            with files.enlisted(target):
                yield target
            if next(marker.files(target), None) is None:
                if theirs:
                    (target / marker.NAME).unlink()
                else:
                    marker.remove(target)
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()


@contextmanager
def tended(folder: Path, *, writes: Iterable[str], force: bool = False) -> Iterator[None]:
    """Holds a finished result while files are written into it, and puts them into its list.

    Parameters
    ----------
    folder
        With a marker; one without is left to the caller as it is.
    writes
        Names of the files.
    force
        Whether files may go that tcpsbed did not write.

    Raises
    ------
    ConfigError
        If another process holds it, or one of the files is there and tcpsbed did not write it.
    """
    names = list(writes)
    found = marker.read(folder)
    for name in names:
        if found is None or not (folder / name).exists() or not found.owns(folder, name):
            may_replace(folder / name, force=force)
    if found is None:
        yield
        return
    target = folder.resolve()
    with lock.held(lock_of(target), target):
        yield
        marker.add(target, *(name for name in names if (target / name).exists()))


def target_of(out: Path) -> Path:
    """The folder that a user named, absolute.

    Raises
    ------
    ConfigError
        If it is a link or no folder.
    """
    refuse_dash(out, "a folder, such as runs/a", "--out")
    refuse_unseen(out, "--out")
    if out.is_symlink():
        raise ConfigError(
            f"is a link to {out.readlink()}",
            file=out,
            key="--out",
            allowed="a folder that is no link, such as runs/a",
        )
    if out.exists() and not out.is_dir():
        allowed = "a folder, new or empty, such as runs/a"
        raise ConfigError("is a file", file=out, key="--out", allowed=allowed)
    return out.resolve()


def refuse_inputs(target: Path, inputs: Iterable[Path]) -> None:
    """Raises `ConfigError` if one of these files is in the folder."""
    for file in inputs:
        with suppress(OSError):
            if file.exists() and file.resolve().is_relative_to(target) and any(marker.files(target)):
                allowed = "another --out: that file is read by this command"
                deeper = file.resolve().parent != target
                found = f"is above {file}, which this command reads" if deeper else f"holds {file.name}"
                raise ConfigError(found, file=target, key="--out", allowed=allowed)


def _refuse(target: Path, kind: str) -> None:
    if target.is_dir():
        if not os.access(target, os.W_OK | os.X_OK | os.R_OK):
            raise ConfigError("cannot be written", file=target, key="--out", allowed="a folder of your own")
        marker.refuse_foreign(target, kind)


def _parents(target: Path) -> list[Path]:
    """Makes the folders above; those that were made, the deepest first."""
    missing = [parent for parent in target.parents if not parent.exists()]
    above = target.parents[len(missing)]
    if not target.exists() and not os.access(above, os.W_OK | os.X_OK):
        raise ConfigError("cannot be written", file=above, key="--out", allowed="a folder of your own")
    with _makes(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    return missing


@contextmanager
def _makes(target: Path) -> Iterator[None]:
    """Names the target and a remedy where no folder can be made, as in /proc."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        allowed = REMEDIES.get(error.errno or 0, "a folder of your own, such as runs/a")
        found = f"cannot be made ({os.strerror(error.errno or 0)})"
        raise ConfigError(found, file=target, key="--out", allowed=allowed) from None


def _stays(target: Path) -> bool:
    """Whether a folder must stay the same one: mounted, below a read-only one, or the working folder."""
    with suppress(FileNotFoundError):
        if target.is_dir() and Path.cwd().is_relative_to(target):
            return True
    return _mounted(target) or not os.access(target.parent, os.W_OK | os.X_OK)


def _mounted(target: Path) -> bool:
    """Whether something is mounted at a folder, also a part of the same file system."""
    with suppress(OSError):
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return any(line.split()[4] == str(target) for line in lines)
    return target.is_mount()


def lock_of(target: Path) -> Path:
    """The lock file of a results folder."""
    if not os.access(target.parent, os.W_OK | os.X_OK) or _mounted(target):
        return target / LOCK
    return target.with_name(f".{target.name}{LOCK}")


def _staging(target: Path) -> Path:
    stem = target / INSIDE if _stays(target) else target.with_name(f"{target.name}{UNFINISHED}")
    for number in range(1000):
        folder = stem.with_name(f"{stem.name}{os.getpid()}{f'-{number}' if number else ''}")
        try:
            with _makes(target):
                folder.mkdir()
        except FileExistsError:
            continue
        if target.is_dir():
            folder.chmod(target.stat().st_mode & 0o7777)
        return folder
    raise ConfigError("found a thousand unfinished results beside it", file=target, allowed="another --out")


def _finish(place: Place) -> None:
    """The staged folder becomes the result; what it holds is on the disk before a former one goes."""
    made = marker.read(place.path)
    if made is None or not made.ours(place.path):
        _leave(place)
        return
    if any(marker.files(place.target)):
        for name in marker.files(place.path):
            _to_disk(place.path / name)
    try:
        with files.named(place.shown):
            made.listing(place.path).write(place.path)
    except OSError:
        if made.kind == marker.RUN:
            print(f"tcpsbed: {_unfinished(place.path)}", file=sys.stderr)
        raise
    exchange.install(place.path, place.target)
    if place.newest and made.kind == marker.RUN and place.target.parent == names.RUNS.resolve():
        names.link_latest(place.target)


def _to_disk(file: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _leave(place: Place) -> None:
    """The work failed: what a run on the machine's clock recorded stays; anything else goes, for it can be had again."""
    if _holds(place.path, *ENDED):
        print(f"tcpsbed: {_unfinished(place.path)}", file=sys.stderr)
        return
    marker.remove(place.path)
    marker.let_go(place.target)


def _holds(folder: Path, *patterns: str) -> bool:
    """Whether there is something in one of these files, or rows of the run in memory."""
    found = marker.read(folder)
    in_memory = found is not None and found.memory != "" and Path(found.memory).is_dir()
    return in_memory or any(file.stat().st_size for pattern in patterns for file in folder.glob(pattern))


def discard(folder: Path) -> None:
    """Removes a result that nobody needs any more, finished or not, as far as we wrote it; and an empty folder, whose
    writer was killed before it wrote anything.
    """
    found = marker.read(folder)
    if found is None or found.state != GROWING:
        marker.remove(folder)


def _unfinished(folder: Path) -> str:
    return f"{folder} holds an interrupted run; recover it with: tcpsbed report {folder}"


def leftovers(target: Path) -> list[Path]:
    """Folders of unfinished results that were to become this one, whose writer is gone if we hold the lock."""
    return [left for left, found in _left(target) if found is not None and found.state == WRITING]


def interrupted(folder: Path) -> list[str]:
    """A line for each run beside a folder that was interrupted and can be recovered; none while somebody writes there."""
    target = folder.resolve()
    if lock.is_held(lock_of(target)):
        return []
    found = [left for left in leftovers(target) if _holds(left, *KILLED)]
    shown = [(folder.parent / left.name, left) for left in found]
    return [_unfinished(near if near.is_dir() else left) for near, left in shown]


def interrupted_after(folder: Path) -> list[str]:
    """A line for the newest run beside a folder that began after that was whole, or at all, and did not end."""
    whole = folder / marker.NAME
    since_ns = whole.stat().st_mtime_ns if whole.is_file() else 0
    begun: dict[Path, int] = {}
    for left in folder.parent.glob(f"*{UNFINISHED}*"):
        made = marker.read(left)
        if made is None or made.state != WRITING:
            continue
        target = destination(left, made).resolve()
        if target != folder and not lock.is_held(lock_of(target)) and left.stat().st_mtime_ns > since_ns:
            begun[left] = left.stat().st_mtime_ns
    if not begun:
        return []
    newest = max(begun, key=lambda left: begun[left])
    shown = Path(os.path.relpath(newest))
    told = (
        _unfinished(shown) if _holds(newest, *KILLED) else f"{shown} holds nothing to recover; run it again"
    )
    return [f"the newest run did not finish: {told}"]


def _left(target: Path) -> list[tuple[Path, Marker | None]]:
    """Remains of exchanges with this folder, former ones last; without a marker if killed before it was written, or
    after.
    """
    beside = target.parent.glob(f"{_plain(target.name)}{UNFINISHED}*") if target.parent.is_dir() else []
    inside = target.glob(f"{INSIDE}*") if target.is_dir() else []
    found = [(left, marker.read(left)) for left in sorted([*beside, *inside]) if left.is_dir()]
    ours = [(left, of) for left, of in found if of is None or destination(left, of) == target]
    return sorted(ours, key=lambda one: one[1] is not None and one[1].state == FORMER)


def destination(left: Path, found: Marker) -> Path:
    """The folder that an unfinished one was to become, also where both were moved."""
    if left.name.startswith(INSIDE):
        return left.parent
    return left.with_name(Path(found.target).name) if found.target and UNFINISHED in left.name else left


def is_unfinished(folder: Path) -> bool:
    """Whether a folder holds a run that did not come to its end, or has one beside it."""
    found = marker.read(folder)
    if found is not None and found.state == WRITING:
        return True
    if not folder.is_dir() or (folder / "summary.json").is_file():
        return False
    return (folder / "plan.json").is_file() or bool(leftovers(folder.resolve()))


def _plain(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def tend(target: Path, *, say: bool) -> list[Path]:
    """Completes interrupted exchanges, removes worthless remains, and names (and returns) recoverable runs."""
    kept = []
    for left, found in _left(target):
        if found is not None and found.state == WHOLE:
            exchange.install(left, target)
        elif found is not None and found.state == FORMER:
            exchange.discard(left, target)
        elif found is not None and _holds(left, *KILLED):
            kept.append(left)
            if say:
                print(f"tcpsbed: {_unfinished(left)}", file=sys.stderr)
        else:
            marker.remove(left)
    return kept


def tend_all(above: Path) -> None:
    """Tends every result below a folder whose writer is gone."""
    named = {left.name.rpartition(UNFINISHED)[0] for left in above.glob(f"*{UNFINISHED}*")}
    named |= {left.name[1:].removesuffix(LOCK) for left in above.glob(f".*{LOCK}")}
    for target in (above.resolve() / name for name in sorted(named - {""})):
        with suppress(ConfigError, OSError), lock.held(lock_of(target), target):
            if not tend(target, say=True):
                marker.let_go(target)
    for left in above.glob(f"*/{LOCK}"):
        with suppress(ConfigError, OSError), lock.held(left, left.parent):
            pass  # it goes away with the lock


def rename_recovered(place: Path, target: Path) -> Path:
    """Names a recovered folder: like the target if that does not exist, otherwise with a new name beside it."""
    if not target.exists() or not any(marker.files(target)):
        exchange.install(place, target)
        return target
    for number in range(1, 1000):
        name = target.with_name(f"{target.name}-recovered{f'-{number}' if number > 1 else ''}")
        if not name.exists():
            place.rename(name)
            return name
    return place
