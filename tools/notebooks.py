"""Runs the notebooks of examples/notebooks: tools/notebooks.py [--write] [NAME …]

Names those whose cells print, or show as a table, something else than they hold; with --write they get what came out. Needs
the extra `plot`, and no Jupyter: a cell is plain Python, its last expression and its figures are shown as in Jupyter.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

NOTEBOOKS = Path(__file__).resolve().parent.parent / "examples" / "notebooks"
Output = dict[str, Any]
"""As nbformat 4 has it: https://nbformat.readthedocs.io/en/latest/format_description.html"""


def read(file: Path) -> dict[str, Any]:
    """A notebook."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def text(cell: dict[str, Any]) -> str:
    """The source of a cell."""
    return "".join(cell["source"])


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Its cells of code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def printed(outputs: list[Output]) -> str:
    """What a cell printed, and the tables that it showed."""
    return "".join("".join(one.get("text") or one["data"].get("text/html", "")) for one in outputs)


def executed(notebook: dict[str, Any], folder: Path) -> list[list[Output]]:
    """The outputs of its cells of code, run in a folder; what a cell raises passes through."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        return [list(_outputs(text(cell), names, number)) for number, cell in enumerate(code(notebook), 1)]


def _outputs(source: str, names: dict[str, Any], number: int) -> Iterator[Output]:
    tree, last = ast.parse(source), None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = eval(compile(last, f"cell {number}", "eval"), names) if last else None
    if told.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": told.getvalue().splitlines(keepends=True)}
    if value is not None:
        data = {"text/plain": [repr(value)]} | dict(_rich(value))
        yield {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
    for figure in map(pyplot.figure, pyplot.get_fignums()):
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=100)
        data = {"image/png": _encoded(drawn.getvalue()), "text/plain": ["<Figure>"]}
        yield {"data": data, "metadata": {}, "output_type": "display_data"}
    pyplot.close("all")


def _rich(value: Any) -> Iterator[tuple[str, Any]]:
    """What Jupyter shows of a value beside its text."""
    if hasattr(value, "_repr_html_"):
        yield "text/html", value._repr_html_().splitlines(keepends=True)
    if hasattr(value, "_repr_png_"):
        yield "image/png", _encoded(value._repr_png_())


def _encoded(picture: bytes) -> str:
    return base64.b64encode(picture).decode() + "\n"


def write(file: Path, notebook: dict[str, Any], outputs: list[list[Output]]) -> None:
    """Writes a notebook with the outputs of its cells."""
    for number, (cell, came) in enumerate(zip(code(notebook), outputs, strict=True), 1):
        cell |= {"execution_count": number, "outputs": came}
    file.write_text(f"{json.dumps(notebook, indent=1, ensure_ascii=False)}\n", encoding="utf-8")


def main() -> None:
    """Runs all, or those that are named."""
    words = sys.argv[1:]
    names = [word for word in words if word != "--write"] or [file.stem for file in NOTEBOOKS.glob("*.ipynb")]
    stale = []
    for name in sorted(names):
        file = NOTEBOOKS / f"{name}.ipynb"
        notebook = read(file)
        with tempfile.TemporaryDirectory() as folder:
            outputs = executed(notebook, Path(folder))
        if "--write" in words:
            write(file, notebook, outputs)
        elif [printed(cell["outputs"]) for cell in code(notebook)] != [printed(one) for one in outputs]:
            stale.append(name)
        print(f"{name}: {len(outputs)} cells, {os.times().user:.1f} s of processor time so far")
    if stale:
        raise SystemExit(f"stale: {', '.join(stale)}; mend with: tools/notebooks.py --write")


if __name__ == "__main__":
    main()
