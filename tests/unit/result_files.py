"""What tests of results share: a result, what is in a folder, and what must change nothing there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tcpsbed import results
from tcpsbed.errors import ConfigError


def listed(place: Path) -> dict[str, str]:
    """All files below a folder with their content."""
    return {
        str(file.relative_to(place)): file.read_text(errors="replace")
        for file in sorted(place.rglob("*"))
        if file.is_file() and "site" not in file.parts
    }


def names(place: Path) -> list[str]:
    """What is in a folder."""
    return sorted(file.name for file in place.iterdir())


def written(out: Path, content: str, kind: str = "run") -> None:
    """A result of two files."""
    with results.writing(out, kind) as place:
        (place.path / "summary.json").write_text(content)
        (place.path / "inputs").mkdir()
        (place.path / "inputs" / "flow.f64").write_text(content)


def grown(place: Path, content: str) -> None:
    """A command adds to a folder, as `sweep` does: its page anew, and a cell."""
    with results.growing(place, "sweep") as out:
        results.write_whole(out / "sweep.html", content)
        results.write_whole(out / f"cells/{content}.json", content)


@contextmanager
def refused(place: Path, said: str) -> Iterator[None]:
    """What is refused changes nothing below a folder."""
    before = listed(place)
    with pytest.raises(ConfigError, match=said):
        yield
    assert listed(place) == before
