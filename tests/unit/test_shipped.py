"""What ships: scenarios, examples and pages, copies of them, and messages that name only what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import scenarios, shipped
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError

runner = CliRunner()
PACKAGE = Path(tcpsbed.__file__).parent
PLANS = {"study"}
"""What ships and is no scenario."""


def test_the_package_leads_to_every_scenario_example_and_page_of_the_tree(root: Path) -> None:
    assert {file.stem for file in (root / "scenarios").glob("*.toml")} < set(shipped.listed())
    assert {file.name for file in (root / "examples").glob("*.py")} < set(shipped.listed())
    assert {file.name for file in (root / "examples" / "notebooks").iterdir()} < set(shipped.listed())
    assert set(shipped.pages()) == {file.stem for file in (root / "docs").glob("*.md")} | {"SECURITY"}
    assert shipped.page("SECURITY") == (root / "SECURITY.md").read_text(encoding="utf-8")


def test_the_list_says_in_a_line_what_each_shows() -> None:
    told = runner.invoke(app, ["init", "--list"]).stdout.splitlines()
    assert len(told) == len(shipped.listed()) > 60
    assert not [line for line in told if re.search(r"\b(include|name) =|\[[A-Z]", line)]
    assert all(15 < len(line.split(maxsplit=1)[1]) <= shipped.WIDTH for line in told), told


@pytest.mark.parametrize("name", [n for n in shipped.listed() if "." not in n and n not in PLANS])
def test_a_copy_is_whole_wherever_it_lies(name: str, tmp_path: Path) -> None:
    files = shipped.write(name, tmp_path / "mine.toml")
    assert files[0] == tmp_path / "mine.toml" and all(file.parent == tmp_path for file in files)
    scenarios.load(files[0])


def test_a_scenario_that_is_not_there_but_ships_can_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = runner.invoke(app, ["run", "scenarios/quickstart.toml"])
    assert missing.exit_code == 2 and "allowed: tcpsbed init --from quickstart, which" in missing.stderr
    assert "init --from" not in runner.invoke(app, ["run", "scenarios/mine.toml"]).stderr


def test_a_copy_of_a_plan_brings_its_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = runner.invoke(app, ["init", "--from", "study"]).stdout
    assert "console-network.toml" in told and told.endswith("Next: tcpsbed study study.toml\n")
    assert 'scenario = "console-network.toml"' in Path("study.toml").read_text(encoding="utf-8")


def test_a_copy_of_a_notebook_is_the_same_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = runner.invoke(app, ["init", "--from", "stability.ipynb"]).stdout
    assert told == "stability.ipynb: written. Next: jupyter lab stability.ipynb\n"
    assert Path("stability.ipynb").read_bytes() == shipped.find("stability.ipynb").read_bytes()


def test_nothing_that_is_there_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("console.toml").write_text("mine", encoding="utf-8")
    done = runner.invoke(app, ["init", "--from", "console-arm"])
    assert done.exit_code == 2 and "console.toml exists already" in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["console.toml"]
    assert Path("console.toml").read_text(encoding="utf-8") == "mine"
    done = runner.invoke(app, ["init", "--from", "consule"])
    assert done.exit_code == 2 and "did you mean console?" in done.stderr
    with pytest.raises(ConfigError, match="scenario"):
        shipped.page("scenary")


def _messages() -> list[tuple[str, str]]:
    found = []
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                found.append((f"{file.name}:{node.lineno}", node.value))
    return found


def test_no_message_names_a_file_of_the_tree_and_every_page_it_names_is_there() -> None:
    messages = _messages()
    tree = re.compile(r"\b(?:docs|scenarios|examples|benches|tools|tests)/[\w-]+\.\w+")
    assert [place for place, text in messages if tree.search(text)] == []
    named = {name for _, text in messages for name in re.findall(r"tcpsbed docs ([a-z][\w-]*)", text)}
    assert len(named) > 8 and named <= set(shipped.pages())
    started = {name for _, text in messages for name in re.findall(r"init --from ([a-z][\w-]*)", text)}
    assert started and started <= set(shipped.listed())


@pytest.mark.parametrize(
    ("word", "title"),
    [
        ("safety.md", "When the network fails"),
        ("docs/hooks.md", "Put your own code into a run"),
        ("supervisor", "When the network fails"),
        ("zoh", "Predict what is missing"),
        ("conveyor", "Steer a conveyor belt"),
        ("IPDV", "Glossary"),
        ("security", "Protect a channel"),
        ("SECURITY.md", "Security"),
        ("threat model", "Security"),
    ],
)
def test_a_page_is_found_by_its_file_or_by_what_it_is_about(word: str, title: str) -> None:
    assert shipped.page(word).startswith(f"# {title}")


def test_a_page_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"found \"scenaro\" \(did you mean scenario"):
        shipped.page("scenaro")
