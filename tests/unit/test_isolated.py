"""Hooks in a process of their own (`isolate`), in virtual time: an accident there is named, and the run goes on."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import failing_run
import numpy as np
import pytest
import user_code

import tcpsbed
from tcpsbed import isolated as apart
from tcpsbed import scenarios, shipped, watched
from tcpsbed.analysis import signals
from tcpsbed.errors import ConfigError, HookError
from tcpsbed.isolated import Isolated

HEADER = Path(tcpsbed.__file__).parent / "data" / "tcps_hook.h"
EXAMPLE = Path(__file__).parents[2] / "examples" / "hooks" / "own_predictor.toml"


def isolated(file: Path, name: str, params: dict[str, int] | None = None, ms: int = 5_000) -> Isolated:
    return Isolated(str(file), name, params or {}, None, time_ns=ms * 1_000_000, memory_bytes=10**9)


@pytest.mark.parametrize("name", failing_run.ACCIDENTS)
def test_an_accident_is_named_and_the_follower_stops_safely(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(failing_run.MARK, str(tmp_path))
    file = failing_run.scenario(tmp_path, name, more=failing_run.ISOLATED)
    run = tcpsbed.run(file, out=tmp_path / "out")
    found = json.loads((run.folder / "summary.json").read_text())
    failing_run.stands_still(run.folder, found)
    error, *heirs = found["errors"]
    assert len(heirs) == (name == "Spins") and all(
        re.search(r"its child \d+ \(.+\) was ended$", one) for one in heirs
    )
    assert failing_run.ACCIDENTS[name] in error and f"failing.py:{name} at ms-com" in error
    [stage] = [stage for stage in found["stages"] if stage["kind"] == "kinematics"]
    before = stage["calls"] - stage["failures"]
    assert stage["calls"] == 1000 and 300 <= before < 330, "the hog dies a little later"
    assert signals.read(run.folder, "ss-com.exit", "kinematic").values.shape[0] > 900, "the run goes on"
    assert f"ended its process at {before / 1000:.3f} s" in error
    assert failing_run.left(tmp_path) == []


def test_a_hook_that_is_well_gives_the_same_records_in_a_process_of_its_own(tmp_path: Path) -> None:
    shared = tcpsbed.run(EXAMPLE, out=tmp_path / "shared")
    apart = tcpsbed.run(EXAMPLE, out=tmp_path / "apart", set={"hooks.predict.isolate": True})
    assert apart.summary["errors"] == []
    assert apart.summary["records_sha256"] == shared.summary["records_sha256"]


def test_values_bytes_and_the_allowed_rate_cross_to_the_process_and_back(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, offset): self.offset, self.bps = offset, 0\n"
        "    def on_allowance(self, bps): self.bps = -1 if bps is None else bps\n"
        "    def __call__(self, t_ns, index, x, other, y):\n"
        "        y[0] = self.offset + len(other) if x is None else x.sum()\n"
        "        y[1] = self.bps\n"
        "        return 2 if index else 0\n"
    )
    hook, y, other = isolated(tmp_path / "mine.py", "Mine", {"offset": 5}), np.zeros(9), np.arange(3.0)
    assert hook(0, 0, None, other, y) == 0
    hook.on_allowance(64e3)
    assert hook(0, 1, None, other, y) == 2 and y[:3].tolist() == [8, 64e3, 0]
    coded = np.zeros(1 << 20, np.uint8)
    hook.on_allowance(7.0)
    assert hook(0, 1, coded + 1, other, y) == 2 and y[0] == 1 << 20
    assert hook(0, 1, np.full(4, 3.0), other[:0], coded) == 2 and coded[:2].tolist() == [12, 7]


def test_what_a_hook_gives_that_is_no_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def __call__(self, t_ns, index, x, other, y): pass\n")
    hook = isolated(tmp_path / "mine.py", "Mine")
    with pytest.raises(HookError, match=r"__call__\(\) returned None; allowed: how many"):
        hook(0, 0, None, np.zeros(0), np.zeros(4))


@pytest.mark.parametrize(
    "text, told",
    [
        ("import os\nos.abort()\nclass Mine: pass", "SIGABRT ended its process while it was loaded"),
        ("import os\nos._exit(3)\nclass Mine: pass", "os._exit(3) would end the whole run"),
        ("class Mine:\n    def __init__(self): 1 / 0", "ZeroDivisionError"),
        ("class Mine: pass", "has no method __call__"),
        ("def Mine(t_ns, index, x, other, state, y): return 0", "a class with __call__"),
    ],
)
def test_a_hook_that_cannot_be_made_is_refused_by_the_check(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    file = failing_run.scenario(tmp_path, "Raises", more=failing_run.ISOLATED)
    file.write_text(file.read_text().replace(f"{failing_run.HERE / 'failing.py'}:Raises", "./mine.py:Mine"))
    with pytest.raises(ConfigError) as error:
        scenarios.check(scenarios.load(file))
    assert told in str(error.value)


@pytest.mark.parametrize(
    "run, isolate, told",
    [
        ("arm5", "true", 'hooks.model.isolate: found "isolate" with the built-in hook "arm5"'),
        ("./mine.py:Mine", "3", "found 3; allowed: true, or limits such as"),
        ("./mine.py:Mine", '{ time = "0 ms" }', "hooks.model.isolate.time"),
        ("./mine.py:Mine", '{ memory = "5 ms" }', "hooks.model.isolate.memory"),
        ("./mine.py:Mine", '{ tme = "5 ms" }', "time"),
    ],
)
def test_isolation_that_makes_no_sense_is_refused(tmp_path: Path, run: str, isolate: str, told: str) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def __call__(self, t_ns, index, x, other, y): return 0\n"
    )
    file = failing_run.scenario(tmp_path, "Raises", more=f"isolate = {isolate}")
    file.write_text(file.read_text().replace(f"{failing_run.HERE / 'failing.py'}:Raises", run))
    with pytest.raises(ConfigError) as error:
        scenarios.check(scenarios.load(file))
    assert told in str(error.value)


def test_a_compensator_is_built_in_also_with_several_axes() -> None:
    each = {"kind": "state-space", "a": [[-50, 0], [5, -50]], "b": [[50, 0], [0, 50]], "c": [[1, 0], [0, 1]]}
    more = {"hooks.pi.isolate": True}
    with pytest.raises(
        ConfigError, match=r'hooks\.pi\.isolate: found "isolate" with the built-in hook "compen'
    ):
        tcpsbed.step(shipped.find("step"), plant=each, controller=each, runs=1, set=more)


STRAY = {
    "sizes that cannot be": "struct.pack('<qq', 3, -5)",
    "zeros": "bytes(24)",
    "a few bytes": "b'abcde'",
    "an answer to the former call": "struct.pack('<qqqd', sys._getframe(1).f_locals['call'] - 1, 1, 8, 7.0)",
    "a length that does not fit": "struct.pack('<qqqd', sys._getframe(1).f_locals['call'], 2, 8, 7.0)",
    "more values than there is room for": "struct.pack('<qqq', sys._getframe(1).f_locals['call'], 1 << 57, 1 << 60)",
    "an endless cause": "struct.pack('<qqq', sys._getframe(1).f_locals['call'], -1, 1 << 60)",
}
"""What a hook writes to the socket of its process, whose number is the last word of the command."""


@pytest.mark.parametrize("stray", STRAY)
def test_what_a_hook_writes_to_the_socket_of_its_process_is_no_answer(tmp_path: Path, stray: str) -> None:
    """The first failure is the last: no later sample is given what belongs to another."""
    hook = called(
        tmp_path,
        "import os, struct, sys\n"
        "class Mine:\n"
        "    def __call__(self, t_ns, index, x, other, y):\n"
        f"        if index == 2: os.write(int(sys.argv[-1]), {STRAY[stray]})\n"
        "        y[0] = index\n"
        "        return 1\n",
    )
    told = "stray bytes on its socket ended its process at 0.002 s"
    for index in (2, 3, 4):
        y = np.zeros(1)
        with pytest.raises(HookError, match=told):
            hook(1_000_000 * index, index, None, np.zeros(0), y)
        assert y[0] == 0
    assert hook.end() == []


def test_what_it_writes_there_while_it_is_loaded_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, sys\n"
        "os.write(int(sys.argv[-1]), bytes(24))\n"
        "class Mine:\n"
        "    def __call__(self, t_ns, index, x, other, y): return 0\n"
    )
    with pytest.raises(HookError, match=r"mine\.py:Mine: stray bytes on its socket$"):
        isolated(tmp_path / "mine.py", "Mine")


def test_a_cause_of_any_length_is_told_in_part(tmp_path: Path) -> None:
    hook = called(
        tmp_path,
        "class Mine:\n"
        "    def __call__(self, t_ns, index, x, other, y):\n"
        "        if index == 2: raise ValueError('é' * 100_000)\n"
        "        return 1\n",
    )
    with pytest.raises(HookError, match=r"ValueError: é.* ended its process at 0\.000 s") as error:
        hook(0, 2, None, np.zeros(0), np.zeros(1))
    assert len(str(error.value)) < 10_000


ESCAPES = {
    "a session of its own": "self.child = subprocess.Popen(['sleep', '60'], start_new_session=True).pid",
    "a second fork": (
        "self.child = int(subprocess.run(['sh', '-c', 'setsid sleep 60 > /dev/null 2>&1 & echo $!'], "
        "capture_output=True).stdout)"
    ),
}


@pytest.mark.parametrize("accident", ["", "os.abort()", "time.sleep(60)"], ids=["none", "abort", "hang"])
@pytest.mark.parametrize("how", ESCAPES)
def test_what_a_hook_has_started_elsewhere_is_ended_and_named(
    tmp_path: Path, how: str, accident: str
) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, subprocess, time\n"
        "class Mine:\n"
        "    def __call__(self, t_ns, index, x, other, y):\n"
        f"        if index == 1: {ESCAPES[how]}\n"
        f"        if index == 2: {accident or 'pass'}\n"
        "        y[0] = self.child\n"
        "        return 1\n"
    )
    hook, y = isolated(tmp_path / "mine.py", "Mine", ms=1000), np.zeros(1)
    hook(0, 1, None, np.zeros(0), y)
    child = int(y[0])
    until = time.monotonic() + 20
    while "sleep" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        if accident:
            with pytest.raises(HookError):
                hook(0, 2, None, np.zeros(0), y)
        began = time.monotonic()
        assert hook.end() == [f"its child {child} (sleep) was ended"]
        assert time.monotonic() - began < 5 and not Path(f"/proc/{child}").exists()
        assert hook.end() == []
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def called(folder: Path, text: str) -> Any:
    """The class `Mine` of this code as an isolated hook, after its first call."""
    (folder / "mine.py").write_text(text)
    hook = isolated(folder / "mine.py", "Mine")
    assert hook(0, 1, None, np.zeros(0), np.zeros(1)) == 1
    return hook


def test_a_child_that_ends_with_its_hook_is_not_named(tmp_path: Path) -> None:
    """Such as the tracker of shared memory, which Python starts."""
    hook = called(
        tmp_path,
        "import subprocess\n"
        "class Mine:\n"
        "    def __call__(self, t_ns, index, x, other, y):\n"
        "        self.child = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\n"
        "        return 1\n",
    )
    assert hook.end() == []


def test_a_hook_that_takes_too_long_to_load_is_refused_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("import time\ntime.sleep(60)\n")
    pages = Path(__file__).parents[2] / "docs"
    assert f"**Loading** may take {apart.READY_S:g} s" in (pages / "hooks.md").read_text()
    assert f"has {watched.HEIRS_S:g} s to end by itself" in (pages / "hooks.md").read_text()
    assert f"{watched.HEIRS_S:g} s after it they are ended" in (pages / "exit-status.md").read_text()
    monkeypatch.setattr(apart, "READY_S", 0.5)
    with pytest.raises(HookError, match=r"mine\.py:Mine is not loaded after 0\.5 s"):
        isolated(tmp_path / "mine.py", "Mine")


def test_a_process_that_does_not_end_is_ended_and_named(tmp_path: Path) -> None:
    hook = called(
        tmp_path,
        "import threading, time\n"
        "class Mine:\n"
        "    def __init__(self): threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    def __call__(self, t_ns, index, x, other, y): return 1\n",
    )
    assert hook.end() == ["its process was still running 1 s after its last call, and was ended"]


def test_a_watcher_that_was_ended_leaves_what_nobody_knows(tmp_path: Path) -> None:
    hook = called(tmp_path, "class Mine:\n    def __call__(self, t_ns, index, x, other, y): return 1\n")
    hook._process._watcher.kill()
    assert hook.end() == ["its watcher was ended: what it had started may live on"]


def test_a_heap_that_a_function_in_c_has_damaged_is_an_accident_also_after_the_last_sample(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The C library finds it when the function's state is freed, at the end of the process."""
    user_code.built(
        tmp_path,
        f'#include "{HEADER}"\n'
        "void *mine_init(const char *params) { return malloc(64) + 16; }\n"
        "void mine_free(void *state) { free(state); }\n"
        "int mine(void *state, const tcps_in *in, tcps_out *out) { return 0; }\n",
    )
    more = {"hooks.kinematics.isolate": True}
    run = tcpsbed.run(tmp_path / "mine.toml", set=more, out=tmp_path / "out")
    [error] = run.summary["errors"]
    assert re.fullmatch(
        r"hook .*libmine\.so:mine at tactile-operator \(kinematic\): SIGABRT \(last line on standard error: "
        r"(.*)\) ended its process after its last call",
        error,
    )
    assert "free(): invalid" in error and "free(): invalid" in capfd.readouterr().err
    assert run.flows["kinematic"].delivered > 1900


def test_nothing_that_a_hook_has_started_is_left_and_a_copy_of_it_answers_nobody(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, subprocess\n"
        "class Mine:\n"
        "    def __call__(self, t_ns, index, x, other, y):\n"
        "        if index == 1:\n"
        "            self.child = subprocess.Popen(['sleep', '60'])\n"
        "        own = os.getpid()\n"
        "        if index == 2:\n"
        "            os.fork()\n"
        "        y[:2] = self.child.pid, own == os.getpid()\n"
        "        return 2\n"
    )
    hook, y = isolated(tmp_path / "mine.py", "Mine"), np.zeros(2)
    for index in range(1, 6):
        assert hook(0, index, None, np.zeros(0), y) == 2 and y[1] == 1
    status = Path(f"/proc/{int(y[0])}/status")
    assert "sleep" in status.read_text()
    until, said = time.monotonic() + 20, ""
    while "a process that an isolated hook forked returned, and ends here" not in said:
        assert time.monotonic() < until
        time.sleep(0.05)
        said += capfd.readouterr().err
    del hook
    gc.collect()
    while status.exists() and "zombie" not in status.read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
