"""Programs that are compiled once: two runs at once, and what does not compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcpsbed.errors import WorldError
from tcpsbed.worlds import compiled

pytestmark = pytest.mark.needs("make")


def sources(folder: Path, recipe: str) -> Path:
    folder.mkdir()
    (folder / "Makefile").write_text(f"all:\n\t{recipe}\n")
    return folder


def test_of_two_runs_that_compile_at_once_the_first_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    place = sources(
        tmp_path / "src", f"@touch $(OUT)/second $(OUT)/second.o; mkdir {kept}; touch {kept}/first"
    )
    compiled.once(kept, place, "it", [], 30)
    compiled.once(kept, place, "it", ["no such target: not compiled again"], 30)
    assert [path.name for path in kept.iterdir()] == ["first"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "src"], "no half build"


def test_what_stands_in_its_place_or_does_not_compile_is_a_message(tmp_path: Path) -> None:
    place = sources(tmp_path / "src", "@touch $(OUT)/program; rm -r $(OUT)")
    with pytest.raises(WorldError, match="it is compiled, but cannot be stored there"):
        compiled.once(tmp_path / "gone", place, "it", [], 30)
    with pytest.raises(WorldError, match=r"it does not compile: .*nothing"):
        compiled.once(tmp_path / "none", place, "it", ["nothing"], 30)
    assert [path.name for path in tmp_path.iterdir()] == ["src"]


def test_a_state_changes_with_content_and_with_what_is_beside(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("x")
    one = compiled.state([file])
    assert one == compiled.state([file]) != compiled.state([file], "1.2")
    file.write_text("y")
    assert compiled.state([file]) != one
