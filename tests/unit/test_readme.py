"""What README and tutorial show a newcomer works: their Python, their scenario, their links, their make targets."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tcpsbed import config

ROOT = Path(__file__).resolve().parents[2]
PAGES = [str(page.relative_to(ROOT)) for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])]


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M)


def test_ten_lines_of_python(root, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    (tmp_path / "scenarios").symlink_to(root / "scenarios")
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(root / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    told = capsys.readouterr().out
    assert re.search(r"force: \d+\.\d\d ms, 99 % under \d+\.\d\d ms", told)
    assert "ms-com -> srv" in told


def test_the_scenario_of_the_tutorial_is_valid(root, tmp_path):
    first, second = blocks(root / "docs" / "tutorial.md", "toml")[:2]
    (tmp_path / "mine.toml").write_text(first)
    (tmp_path / "worse.toml").write_text(second)
    scenario = config.load(tmp_path / "worse.toml")
    plan = config.compile_plan(scenario, tmp_path / "inputs")
    assert scenario.name == "worse"
    assert [node["name"] for node in plan["nodes"]] == ["home", "edge", "field"]


def test_the_other_files_of_the_tutorial_are_valid(root, tmp_path):
    first, _, costs, real, held = blocks(root / "docs" / "tutorial.md", "toml")
    hook, _ = blocks(root / "docs" / "tutorial.md", "python")
    (tmp_path / "mine.toml").write_text(first)
    (tmp_path / "predict.py").write_text(hook)
    for number, text in enumerate((costs, real, held)):
        path = tmp_path / f"{number}.toml"
        path.write_text(text if "include" in text else f'include = "mine.toml"\n{text}')
        config.check(config.load(path))


def test_the_notebook_of_the_tutorial_works(root, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    (tmp_path / "mine.toml").write_text(blocks(root / "docs" / "tutorial.md", "toml")[0])
    monkeypatch.chdir(tmp_path)
    _, code = blocks(root / "docs" / "tutorial.md", "python")
    exec(compile(code.replace("60 s", "2 s"), "tutorial.md", "exec"), {})
    assert "p999" in capsys.readouterr().out


def test_the_sweep_and_the_overrides_of_the_tutorial_name_keys_that_exist(root, tmp_path):
    """All `--set` and the first values of all `--over` of the tutorial that are meant to be right."""
    page = (root / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(blocks(root / "docs" / "tutorial.md", "toml")[0])
    over = [text.split(",")[0] for text in re.findall(r"--over '([^']+)'", page)]
    config.check(config.load(tmp_path / "mine.toml", over))
    sets = [text for text in re.findall(r"--set '([^']+)'", page) if '="600"' not in text]
    config.check(config.load(root / "scenarios" / "quickstart.toml", sets))
    assert len(over) == 2 and sets


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(root, page):
    path = root / page
    targets = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.needs("make")
def test_make_targets_of_the_readme_exist(root):
    told = subprocess.run(["make", "-s", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"\bmake (\w+)", (root / "README.md").read_text(encoding="utf-8"))) - {"gcc"}
    assert named <= set(re.findall(r"make (\S+)", told))
