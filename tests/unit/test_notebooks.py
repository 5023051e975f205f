"""The notebooks run with the public functions alone, and hold what comes out of them."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
from test_tools import tool

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))
PUBLIC = {"tcpsbed", "tcpsbed.drawing"}
"""What docs/python.md imports."""


@pytest.fixture(scope="module")
def notebooks(root: Path) -> ModuleType:
    pytest.importorskip("matplotlib")
    return tool(root, "notebooks")


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_holds_what_its_cells_print(file: Path, tmp_path: Path, notebooks: ModuleType) -> None:
    notebook = notebooks.read(file)
    came = notebooks.executed(notebook, tmp_path)
    held = [cell["outputs"] for cell in notebooks.code(notebook)]
    mend = "tools/notebooks.py --write"
    assert [notebooks.printed(one) for one in came] == [notebooks.printed(one) for one in held], mend
    kinds = [[list(one.get("data", {})) for one in outputs] for outputs in (*came, *held)]
    assert kinds[: len(came)] == kinds[len(came) :], mend
    assert sum("image/png" in data for cell in kinds[: len(came)] for data in cell) > 0


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_short_asks_one_question_and_answers_it(file: Path, notebooks: ModuleType) -> None:
    cells = notebooks.read(file)["cells"]
    told = [notebooks.text(cell) for cell in cells if cell["cell_type"] == "markdown"]
    code = "\n".join(notebooks.text(cell) for cell in notebooks.code({"cells": cells}))
    assert 8 <= len(cells) <= 14
    assert re.match(r"# [^\n]+\?\n\nFor ", told[0]) and told[-1].startswith("## Answer\n\n**")
    assert set(re.findall(r"^(?:import|from) (tcpsbed[\w.]*)", code, re.M)) <= PUBLIC
    assert max(len(line) for line in code.splitlines()) <= 110


def test_a_notebook_that_holds_something_else_is_named(
    tmp_path: Path, notebooks: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = {"cell_type": "code", "source": ["print(6 * 7)\n", "[6]"], "outputs": []}
    notebooks.write(tmp_path / "stale.ipynb", {"cells": [cell]}, [[]])
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr("sys.argv", ["notebooks.py"])
    with pytest.raises(SystemExit, match=r"^stale: stale; mend with"):
        notebooks.main()
    monkeypatch.setattr("sys.argv", ["notebooks.py", "--write"])
    notebooks.main()
    first, second = notebooks.code(notebooks.read(tmp_path / "stale.ipynb"))[0]["outputs"]
    assert first["text"] == ["42\n"] and second["data"] == {"text/plain": ["[6]"]}
    monkeypatch.setattr("sys.argv", ["notebooks.py"])
    notebooks.main()
