"""Modules beside code that a scenario names: whose they are, when they are loaded anew, and what is hashed of them."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tcpsbed import beside, hooks
from tcpsbed.beside import imported


def written(folder: Path, **sources: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in sources.items():
        place = folder / f"{name.replace('__', '/', 1)}.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    return folder


def load(file: Path) -> Any:
    return hooks.from_file(file)


def test_another_hook_of_the_folder_leaves_a_module_and_its_state(tmp_path: Path) -> None:
    written(tmp_path, a="import shared\nruns = shared.noted()", b="import other", other="")
    written(tmp_path, shared="seen = []\ndef noted():\n    seen.append(1)\n    return seen\n")
    one = load(tmp_path / "a.py")
    load(tmp_path / "b.py")
    assert load(tmp_path / "a.py") is one and one.runs == [1]


def test_modules_that_two_hooks_share_are_one(tmp_path: Path) -> None:
    written(tmp_path, a="import shared", b="import shared, a", shared="")
    one, two = load(tmp_path / "a.py"), load(tmp_path / "b.py")
    assert one.shared is two.shared and two.a is one


def test_what_changed_and_what_imports_it_is_loaded_anew_and_nothing_else(tmp_path: Path) -> None:
    """Also within the second and at the same size, by which Python tells whether bytes that it kept are old."""
    written(tmp_path, a="from middle import VALUE\nimport other", b="from last import VALUE", c="")
    written(tmp_path, middle="from last import VALUE", last="VALUE = 1", other="")
    one, two, three = (load(tmp_path / f"{name}.py") for name in "abc")
    written(tmp_path, last="VALUE = 2")
    assert load(tmp_path / "c.py") is three and load(tmp_path / "b.py").VALUE == 2
    new = load(tmp_path / "a.py")
    assert (one.VALUE, two.VALUE, new.VALUE) == (1, 1, 2) and new.other is one.other
    written(tmp_path, last="VALUE = 2")
    assert load(tmp_path / "a.py") is new, "it says the same"


def test_modules_of_packages_are_loaded_anew(tmp_path: Path) -> None:
    sources = {"pkg____init__": "", "pkg__deep": "from . import last", "pkg__last": "VALUE = 1"}
    written(tmp_path, a="import pkg.deep\nVALUE = pkg.deep.last.VALUE", **sources)
    assert load(tmp_path / "a.py").VALUE == 1
    written(tmp_path, pkg__last="VALUE = 2")
    assert load(tmp_path / "a.py").VALUE == 2


LATE = "import util\nNAME = util.NAME\n\n\ndef late():\n    import util\n    from util import NAME\n    import pkg.deep\n\n"
LATE += "    return util.NAME, NAME, pkg.deep.NAME\n"


@pytest.mark.parametrize("order", ["op arm", "arm op"])
def test_helpers_of_one_name_are_those_of_the_folder(tmp_path: Path, order: str) -> None:
    for name in ("op", "arm"):
        deep = "from util import NAME"
        written(tmp_path / name, code=LATE, util=f"NAME = {name!r}\nimport pkg.deep", pkg__deep=deep)
    path = [*sys.path]
    found = {name: load(tmp_path / name / "code.py") for name in order.split()}
    assert sys.path == path and "util" not in sys.modules
    for name, module in found.items():
        assert name == module.NAME and module.late() == (name, name, name)
        files = {tmp_path / name / file for file in ("util.py", "pkg/deep.py")}
        assert imported(tmp_path / name / "code.py") == files


def test_a_module_beside_the_program_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where somebody's script stands in another folder with a module of the same name."""
    written(tmp_path / "script", util="NAME = 'script'")
    written(tmp_path / "op", code="import util\nNAME = util.NAME", util="NAME = 'op'")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "script/main.py"))
    monkeypatch.syspath_prepend(tmp_path / "script")
    monkeypatch.setattr("tcpsbed.beside._PATH", frozenset(sys.path))
    assert load(tmp_path / "op/code.py").NAME == "op"


def test_a_folder_that_a_hook_adds_to_pythons_path_is_not_that_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    adds = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n"
    for name in ("op", "arm"):
        written(tmp_path / name, code=f"{adds}import util\nNAME = util.NAME", util=f"NAME = {name!r}")
    assert [load(tmp_path / name / "code.py").NAME for name in ("op", "arm")] == ["op", "arm"]


def test_what_python_has_goes_first_and_is_not_hashed(tmp_path: Path) -> None:
    hijacked = dict.fromkeys(("random", "json", "numpy"), "raise SystemExit")
    written(tmp_path, code="import random, json.decoder\nfrom numpy import array", **hijacked)
    assert load(tmp_path / "code.py").random.random() < 1
    assert imported(tmp_path / "code.py") == set()
    written(tmp_path, random="import random\nVALUE = random.random()", json="raise SystemExit")
    assert load(tmp_path / "random.py").VALUE < 1


def test_a_module_that_fails_is_tried_again(tmp_path: Path) -> None:
    written(tmp_path, code="import util", util="raise ValueError('boom')")
    with pytest.raises(ValueError, match="boom"):
        load(tmp_path / "code.py")
    written(tmp_path, util="VALUE = 1")
    assert load(tmp_path / "code.py").util.VALUE == 1


def test_an_old_module_is_not_put_back_and_late_imports_outlive_a_cleared_table(tmp_path: Path) -> None:
    late = "def late():\n    import util\n    return util.VALUE\n"
    written(tmp_path, code=late, util="VALUE = 1")
    assert load(tmp_path / "code.py").late() == 1
    written(tmp_path, util="VALUE = 2")
    code = hooks.safely(load, tmp_path / "code.py")
    assert code.late() == 2
    hooks.safely(sys.modules.clear)
    assert load(tmp_path / "code.py") is code and code.late() == 2


def test_folders_that_are_loaded_at_once_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread reads how many folders there are before any of them adds its own."""
    count, both = 8, threading.Barrier(8)

    class Waiting(beside._Folder):
        def __init__(self, *given: Any) -> None:
            with suppress(threading.BrokenBarrierError):
                both.wait(0.2)
            super().__init__(*given)

    monkeypatch.setattr(beside, "_Folder", Waiting)
    files = [
        written(tmp_path / str(n), a="import helper", helper=f"VALUE = {n}") / "a.py" for n in range(count)
    ]
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(lambda file: beside.module(file, lambda run, *rest: run(*rest)), files))
    assert [module.helper.VALUE for module in found] == list(range(count))


def test_the_order_of_places_and_finders_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was taken away comes back where it was, not before the standard library."""
    monkeypatch.setattr(sys, "path", ["first", *sys.path, "last"])
    path, finders, new = [*sys.path], [*sys.meta_path], type("New", (), {"find_spec": lambda *_: None})

    def changes() -> None:
        sys.path.remove("last")
        sys.path.remove("first")
        sys.path.insert(0, "new")
        sys.meta_path[:] = [new, *reversed(sys.meta_path[1:])]

    hooks.safely(changes)
    after, sys.meta_path[:] = [*sys.meta_path], finders
    assert sys.path == [*path, "new"] and after == [*finders, new]
