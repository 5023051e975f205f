"""What README and tutorial show a newcomer works: their Python, their scenario, their links, their make targets."""

from __future__ import annotations

import re
import struct
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

import tcpsbed
from tcpsbed import scenarios, shipped
from tcpsbed.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    str(page.relative_to(ROOT))
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob(".github/**/*.md")])
]


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M)


def test_a_newcomer_reads_at_most_150_lines(root):
    assert len((root / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_index_names_every_page_command_and_extra(root):
    index = (root / "docs" / "index.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\[([\w-]+)\]\(", index)) | set(re.findall(r"`([\w-]+)`", index))
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert {page.stem for page in (root / "docs").glob("*.md")} - {"index"} <= named
    assert set(get_command(app).commands) | set(extras) <= named


def test_the_site_has_every_page_in_one_place(root):
    nav = (root / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    named = re.findall(r": ([\w-]+\.md)$", nav, re.M)
    assert len(named) == len(set(named))
    assert {page.name for page in (root / "docs").glob("*.md")} <= set(named)


def test_the_short_answers_of_the_benchmarks_are_those_of_their_tables(root):
    answers, tables = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8").split("<!-- bench", 1)
    for said, measured in (
        (r"\[(\d+) times as fast as ns-3\]", r"first to last event.*?\| ([\d.]+) times faster \|"),
        (
            r"\[([\d.]+) times that of bare C\]",
            r"round trip p50, 1 kHz, timer, fifo.*?\| ([\d.]+) \| 1\.3 \|",
        ),
        (r"\[([\d.]+) µs at the median\]", r"delivered p50 over 10 ms, hybrid.*?\| ([\d.]+) \("),
        (r"and ([\d.]+) µs at p99", r"delivered p99 over 10 ms, hybrid.*?\| ([\d.]+) \("),
    ):
        short, whole = re.findall(said, answers), re.findall(measured, tables)
        assert len(short) == 1 and float(short[0]) in (float(whole[0]), round(float(whole[0]))), said


def test_the_page_of_scenarios_names_all_that_ship(root):
    page = (root / "docs" / "scenarios.md").read_text(encoding="utf-8")
    assert {file.stem for file in (root / "scenarios").glob("*.toml")} <= set(re.findall(r"`([\w-]+)`", page))


def test_ten_lines_of_python(root, tmp_path, monkeypatch, capsys):
    shipped.write("quickstart", tmp_path / "quickstart.toml")
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(root / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    told = capsys.readouterr().out
    assert re.search(r"force: \d+\.\d\d ms, 99 % under \d+\.\d\d ms", told)
    assert "ms-com -> srv" in told


def test_the_page_on_python_works(root, tmp_path, monkeypatch, capsys):
    for name in ("quickstart", "step"):
        shipped.write(name, tmp_path / f"{name}.toml")
    monkeypatch.chdir(tmp_path)
    told = {}
    for code in blocks(root / "docs" / "python.md", "python"):
        exec(compile(code, "python.md", "exec"), told)
    said = capsys.readouterr().out
    assert re.search(r"^loss \d\.\d\d% ± \d\.\d\d% over 3 seeds$", said, re.M)
    assert re.search(r"^True$", said, re.M) and "b'unit': b'ns'" in said
    assert "of the runs are good" in said and "rise-time index" in said
    assert set(re.findall(r"^\| `(\w+)` \|", (root / "docs" / "python.md").read_text(), re.M)) == {
        name for name in tcpsbed.__all__ if name.islower() and not name.startswith("_")
    }


def test_the_scenario_of_the_tutorial_is_valid(root, tmp_path):
    first, second = blocks(root / "docs" / "tutorial.md", "toml")[:2]
    (tmp_path / "mine.toml").write_text(first)
    (tmp_path / "worse.toml").write_text(second)
    scenario = scenarios.load(tmp_path / "worse.toml")
    plan = scenarios.compile_plan(scenario, tmp_path / "inputs")
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
        scenarios.check(scenarios.load(path))


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
    scenarios.check(scenarios.load(tmp_path / "mine.toml", over))
    sets = [text for text in re.findall(r"--set '([^']+)'", page) if '="600"' not in text]
    scenarios.check(scenarios.load(root / "scenarios" / "quickstart.toml", sets))
    assert len(over) == 2 and sets


def anchors(path: Path) -> set[str]:
    """What links can name behind `#` in a page: its headings in small letters, spaces as hyphens."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = [
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.+)$", text, re.M)
    ]
    named = [re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in headings]
    return {*named, *re.findall(r'<a (?:id|name)="([^"]+)"', text)}


def test_the_recording_is_as_wide_as_shown_small_and_moves(root):
    opens, pictures = (
        (root / "README.md").read_text(encoding="utf-8").split("\n## ", 1)[0],
        root / "docs" / "pictures",
    )
    for file, most, moves in (("demo.webp", 3_000_000, True), ("demo-still.webp", 200_000, False)):
        data = (pictures / file).read_bytes()
        chunks = [data.find(b"VP8X"), data.count(b"ANMF")]
        assert f"docs/pictures/{file}" in opens and 10_000 < len(data) <= most
        assert (chunks[1] > 80) is moves
        assert not moves or 1 + int.from_bytes(data[chunks[0] + 12 : chunks[0] + 15], "little") == 800


def test_pictures_are_1600_pixels_wide_small_and_shown(root):
    shown = "".join((root / page).read_text(encoding="utf-8") for page in PAGES)
    for file in set((root / "docs" / "pictures").iterdir()) - set(
        (root / "docs" / "pictures").glob("demo*.webp")
    ):
        data = file.read_bytes()
        assert struct.unpack(">I", data[16:20]) == (1600,), file.name
        assert len(data) <= 200_000 and (file.name in shown or file.stem.endswith("-dark")), file.name


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(root, page):
    path = root / page
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", text)
    targets += [(file, "") for file in re.findall(r"(?:src|srcset)=\"([^\"#:]+)\"", text)]
    pages = [((path.parent / target) if target else path, anchor) for target, anchor in targets]
    assert [str(file) for file, _ in pages if not file.exists()] == []
    assert [f"{file.name}#{anchor}" for file, anchor in pages if anchor and anchor not in anchors(file)] == []


@pytest.mark.needs("make")
def test_make_targets_of_the_readme_exist(root):
    told = subprocess.run(["make", "-s", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"\bmake (\w+)", (root / "README.md").read_text(encoding="utf-8"))) - {"gcc"}
    assert named <= set(re.findall(r"make (\S+)", told))


def test_the_page_of_the_python_api_has_every_public_name(root):
    page = (root / "tools" / "site" / "api.md").read_text(encoding="utf-8")
    assert set(tcpsbed.__all__) - {"__version__"} <= set(re.findall(r"^::: tcpsbed\.(\w+)$", page, re.M))
