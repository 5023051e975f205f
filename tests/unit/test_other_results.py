"""Folders of results that are no run: what commands for runs say of them, and what shows them."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import tcpsbed
from tcpsbed import results, shipped
from tcpsbed.cli.app import app
from tcpsbed.views.folder import OTHERS, PAGES


def typed(*words: str) -> Result:
    """A command in this process."""
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a result of each kind that is no run, named by it; those of `step` and `map` are true ones."""
    here = tmp_path_factory.mktemp("others")
    scenario = shipped.find("step")
    tcpsbed.step(scenario, runs=2, rtt="5 ms", out=here / "step")
    tcpsbed.map(scenario, cells="3x2", runs=3, out=here / "map")
    for kind, file in (("reproduction", "index.html"), ("rerun", "rerun.json"), ("study", "study.json")):
        with results.growing(here / kind, kind) as out:
            (out / file).write_text("{}")
    return here


@pytest.mark.parametrize("kind", ["step", "map", "reproduction", "rerun", "study"])
def test_commands_for_runs_say_what_a_folder_holds_and_what_shows_it(folders: Path, kind: str) -> None:
    folder, (what, _) = folders / kind, OTHERS[kind]
    for words in (
        ["compare", str(folder)],
        ["plot", str(folder), "--out", str(folders / "fig.pdf")],
        ["archive", str(folder), str(folders / "out.zip")],
        ["export", str(folder), "--csv"],
        ["studio", str(folder), "--no-browser"],
    ):
        done = typed(*words)
        said = f"{folder} holds {what}, not a run; allowed: {OTHERS[kind][1].format(folder)}"
        assert done.exit_code == 2 and said in done.stderr and done.stderr.count("\n") == 1, (
            words,
            done.stderr,
        )
    assert not (folders / "out.zip").exists()


def test_what_is_named_there_works(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "get", lambda: None)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for kind, page in PAGES.items():
        if not (folders / kind).is_dir():
            continue
        done = typed("open", str(folders / kind))
        assert done.exit_code == 0 and done.stdout.strip() == str(folders / kind / page)
        assert opened.pop() == (folders / kind / page).resolve().as_uri()
        assert ("tcpsbed open" in OTHERS[kind][1]) and not opened
    for kind in ("step", "map"):
        assert typed("show", str(folders / kind)).exit_code == 0
        tcpsbed.load(folders / kind).draw(folders / f"{kind}.svg")  # type: ignore[union-attr]
        assert (folders / f"{kind}.svg").is_file()


def test_a_result_without_its_page_says_what_writes_it(folders: Path) -> None:
    with results.growing(folders / "sweep", "sweep") as out:
        (out / "sweep.json").write_text("{}")
    done = typed("open", str(folders / "sweep"))
    assert done.exit_code == 2 and "has no sweep.html; allowed: the command that made" in done.stderr
