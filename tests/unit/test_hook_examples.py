"""The predictors that the documentation shows do what it says: nothing first, then the last sample holds."""

import ctypes
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from tcpsbed.library import In, Out
from tcpsbed.scenarios.model import entries

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "hooks"
OTHER = np.zeros(0)


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_class():
    hook, y = loaded("zoh").Zoh(), np.zeros(8)
    assert hook(0, 0, None, OTHER, y) == 0
    x = np.array([1.0, 2.0])
    assert hook(1, 0, x, OTHER, y) == 2
    x[:] = 99.0  # the view is used again for the next sample
    y[:] = 0.0
    assert hook(2, 0, None, OTHER, y) == 2 and y[:2].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_function(compiled):
    hold = loaded("fast").hold
    if compiled:
        hold = pytest.importorskip("numba").njit(hold)
    state, y = np.zeros(64), np.zeros(100)
    assert hold(0, 0, np.zeros(0), OTHER, state, y) == 0
    assert hold(1, 0, np.array([1.0, 2.0]), OTHER, state, y) == 2
    y[:] = 0.0
    assert hold(2, 0, np.zeros(0), OTHER, state, y) == 2 and y[:2].tolist() == [1.0, 2.0]
    assert hold(3, 0, np.arange(100.0), OTHER, state, y) == 63


@pytest.mark.needs("cc")
def test_the_c_function(tmp_path):
    import subprocess

    library = tmp_path / "libzoh.so"
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    header = ROOT / "python" / "tcpsbed" / "data"
    subprocess.run([*command, f"-I{header}", "-o", library, EXAMPLES / "zoh.c"], check=True)
    c = ctypes.CDLL(str(library))
    c.zoh_init.restype = ctypes.c_void_p
    state = ctypes.c_void_p(c.zoh_init(b"{}"))
    x, y = (ctypes.c_double * 3)(1.0, 2.0, 3.0), (ctypes.c_double * 2)()
    given, back = In(), Out(cap=2, y=ctypes.addressof(y))
    assert c.zoh(state, ctypes.byref(given), ctypes.byref(back)) == 1  # nothing before the first sample
    given = In(present=1, n=3, x=ctypes.addressof(x))
    assert c.zoh(state, ctypes.byref(given), ctypes.byref(back)) == 0
    x[0] = 99.0
    back.n = 0
    assert c.zoh(state, ctypes.byref(In()), ctypes.byref(back)) == 0
    assert back.n == 2 and list(y) == [1.0, 2.0]  # cut at the room there is
    c.zoh_free(state)


def test_the_page_shows_the_files_as_they_are():
    page = "".join(
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("hooks", "own-parts")
    )
    for name in ("hooks/zoh.py", "hooks/fast.py", "hooks/zoh.c", "own_component.py", "own_transport.py"):
        shown = re.search(rf"`examples/{re.escape(name)}`\n+```\w+\n(.*?)```", page, re.DOTALL)
        assert shown, name
        assert shown.group(1) == (ROOT / "examples" / name).read_text(encoding="utf-8"), name
    body = re.search(r"`crates/tcps-control/src/hooks/zoh.rs`\n+```rust\n(.*?)```", page, re.DOTALL)
    assert body and body.group(1) == (ROOT / "crates/tcps-control/src/hooks/zoh.rs").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("room", "page"),
    [("hook", "built-in-hooks"), ("robot", "scenario"), ("playout", "scenario"), ("transport", "transports")],
)
def test_parameters_of_built_in_code_are_documented(room, page):
    """Their tables are those of the native module."""
    assert entries.page(room) in (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
