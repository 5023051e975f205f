"""The typed face of the native module says what the binary has: the same names, the same parameters."""

from __future__ import annotations

import ast
import inspect

from tcpsbed import _tcps


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names of a function's parameters, without `self`."""
    given = function.args
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg != "self"]


def test_the_stub_and_the_binary_have_the_same_names(root):
    tree = ast.parse((root / "python" / "tcpsbed" / "_tcps.pyi").read_text())
    told = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    told |= {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert told == {name for name in dir(_tcps) if not name.startswith("_")}


def test_the_stub_and_the_binary_have_the_same_parameters(root):
    tree = ast.parse((root / "python" / "tcpsbed" / "_tcps.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found = list(inspect.signature(getattr(_tcps, node.name)).parameters)
            assert parameters(node) == found, node.name
        if isinstance(node, ast.ClassDef):
            if issubclass(getattr(_tcps, node.name), Exception):
                continue
            names = {f.name for f in node.body if isinstance(f, ast.FunctionDef)} - {"__init__"}
            assert names == {n for n in dir(getattr(_tcps, node.name)) if not n.startswith("_")}
