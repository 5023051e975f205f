"""The scenario that `init` writes names everything there is, and every block of it works when it is uncommented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tcpsbed
from tcpsbed.scenarios import check, init_template, load, schema
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder

TEXT = init_template()


def blocks() -> list[str]:
    """Commented-out tables, each up to the next empty line, as TOML."""
    found = re.findall(r"^# \[+[a-z]+[^\n]*(?:\n# [^\n]*)*", TEXT, re.M)
    return [re.sub(r"^# ", "", block, flags=re.M) for block in found]


@pytest.mark.parametrize("key", list(schema()["properties"]))
def test_every_key_at_the_top_is_in_it(key: str) -> None:
    assert re.search(rf"^(# )?(\[+{key}\b|{key} = )", TEXT, re.M), key


def test_there_are_blocks() -> None:
    assert len(blocks()) >= 7


@pytest.mark.parametrize("block", blocks())
def test_a_block_works_uncommented(tmp_path: Path, block: str) -> None:
    path = tmp_path / "with.toml"
    path.write_text(f"{TEXT}\n{block}\n")
    check(load(path))


def test_single_keys_work_uncommented(tmp_path: Path) -> None:
    """Keys of tables that are there already, in their places; files that it names are made up."""
    text = re.sub(
        r"^# ((?:name|description|sessions|scheduling|clock|transport|loss|jitter|sync|records) = )",
        r"\1",
        TEXT,
        flags=re.M,
    )
    assert text != TEXT
    path = tmp_path / "with.toml"
    path.write_text(text)
    check(load(path))


@pytest.mark.parametrize(("speed", "follows"), [("10", True), ("1", False)])
def test_the_supervisor_of_the_template_follows_the_generated_motion(
    tmp_path: Path, speed: str, follows: bool
) -> None:
    """Its state is normal nearly always, and nothing warns; too slow a one is named with its remedy."""
    [block] = [block for block in blocks() if "supervisor" in block]
    path = tmp_path / "with.toml"
    path.write_text(f"{TEXT}\n{block}\n".replace("speed = 10,", f"speed = {speed},"))
    run = tcpsbed.run(
        path, out=tmp_path / "out", set=['duration="4 s"', "events=[]", "measure.echo.period='1 s'"]
    )
    [watched] = run.summary["states"]
    assert (watched["spent_s"].get("normal", 0) > 3.6) == follows
    said = text.overview(open_folder(run.folder))
    assert ("WARNING: ss-com (kinematic): its limits kept the follower" in said) != follows
    assert ("Raise speed" in said) != follows
