"""Code of the user's that raises, crashes or never returns: where it did is told, and Ctrl-C ends it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from real_run import children, gone
from user_code import called, written

import tcpsbed

RAISES = "class Mine:\n    def __call__(self, t_ns, index, x, other, y):\n        return helper()\n\n\n"
RAISES += 'def helper():\n    raise ValueError("boom")\n'


def test_a_hook_that_raises_is_told_with_file_and_line_and_how_often(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tcpsbed.run(written(tmp_path, RAISES), out=tmp_path / "out")
    said = json.dumps(run.summary)
    assert "ValueError: boom, at mine.py:7 in helper, called at mine.py:3 in __call__" in said
    assert [stage["failures"] for stage in run.summary["stages"] if stage["kind"] == "kinematics"] == [2000]


def test_a_transport_that_raises_is_told_with_file_and_line_and_how_often(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "class Mine:\n    def __init__(self, channel):\n        pass\n\n"
    code += "    def on_input(self, now_ns, kind, data, out):\n"
    code += '        raise ValueError("boom")\n'
    channel = '[channels.c]\nflows = ["kinematic"]\ntransport = "{}"\n'
    run = tcpsbed.run(written(tmp_path, code, channel), out=tmp_path / "out")
    assert any(
        "ValueError: boom, at mine.py:6 in on_input, " in error and error.endswith(" times")
        for error in run.summary["errors"]
    ), run.summary["errors"]


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_a_module_that_crashes_when_it_is_loaded_is_named(tmp_path, world):
    written(tmp_path, f"import os\n{RAISES}os.abort()\n")
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out", "--world", world)
    assert done.returncode in (-signal.SIGABRT, 2)
    assert f"hook {tmp_path}/mine.py:Mine died of SIGABRT" in done.stderr, done.stderr


def test_a_robot_whose_arrived_raises_is_told_with_file_and_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "class Mine:\n    def step(self, t_ns, command, sense):\n        return 0\n\n"
    code += '    def arrived(self):\n        raise ValueError("boom")\n'
    more = '[components.tactile-teleoperator]\nnode = "b"\nrobot = {{ run = "{}" }}\n'
    more += '[measure]\necho = {{ points = ["tactile-teleoperator.held"], period = "20 ms" }}\n'
    file = written(tmp_path, code, more)
    file.write_text(file.read_text().replace('tactile-teleoperator = "b"\n', ""))
    said = json.dumps(tcpsbed.run(file, out=tmp_path / "out").summary)
    assert "ValueError: boom, at mine.py:6 in arrived, once" in said


ENDLESS = {
    "catches everything": "while True:\n            try:\n                time.sleep(0.01)\n"
    "            except BaseException:\n                pass",
    "spins": "while True:\n            pass",
}


def _is_pending(pid: int, sign: signal.Signals) -> bool:
    """Whether a process has not yet taken a signal: a second one like it would be lost."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    waiting = next((line.split()[1] for line in lines if line.startswith("ShdPnd:")), "0")
    return bool(int(waiting, 16) >> (sign - 1) & 1)


@pytest.mark.parametrize(
    ("world", "kind", "needed"),
    [
        ("virtual", "catches everything", 3),
        pytest.param("real", "spins", 2, marks=pytest.mark.slow),
        pytest.param("virtual", "spins", 2, marks=pytest.mark.slow),
        pytest.param("real", "catches everything", 3, marks=pytest.mark.slow),
    ],
)
def test_a_hook_that_never_returns_ends_at_the_third_ctrl_c(tmp_path, kind, needed, world):
    code = "import time\nfrom pathlib import Path\n\n\nclass Mine:\n    def __call__(self, t_ns, index, x, other, y):\n"
    code += f'        Path("{tmp_path}/called").touch()\n        {ENDLESS[kind]}\n'
    written(tmp_path, code)
    run = subprocess.Popen(
        [sys.executable, "-m", "tcpsbed", "run", "mine.toml", "--out", "out", "--world", world, "--quiet"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "called").exists() and time.monotonic() < until:
            time.sleep(0.1)
        for _ in range(
            needed
        ):  # one more would meet an interpreter that is ending, and takes signals no longer
            time.sleep(1.0)
            run.send_signal(signal.SIGINT)
            while _is_pending(run.pid, signal.SIGINT) and time.monotonic() < until:
                time.sleep(0.1)
        _, said = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 130, said
    assert "Traceback" not in said
    assert said.count("the run ends when the code that runs now returns") == (world == "virtual"), said
    if needed == 3 and world == "virtual":
        assert "hook " in said and "mine.py:Mine did not return" in said


@pytest.mark.realtime
@pytest.mark.beside
@pytest.mark.slow
@pytest.mark.parametrize("until", ["called", "loading"])
def test_nodes_of_a_run_that_was_killed_end_though_a_hook_never_returns(tmp_path, until):
    code = "from pathlib import Path\n\n\nclass Mine:\n    def __init__(self):\n"
    code += f'        Path("{tmp_path}/loading").touch()\n        while {until == "loading"}: pass\n'
    code += "    def __call__(self, t_ns, index, x, other, y):\n"
    code += f'        Path("{tmp_path}/called").touch()\n        while True: pass\n'
    written(tmp_path, code)
    command = [sys.executable, "-m", "tcpsbed", "run", "mine.toml", "--out", "out", "--world", "real", "-q"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as run:
        latest = time.monotonic() + 60
        while not (tmp_path / until).exists() and time.monotonic() < latest:
            time.sleep(0.1)
        nodes = children(run.pid)
        run.kill()
    assert nodes and gone(nodes)


EXITS = (
    "import os\n\n\nclass Mine:\n    def __call__(self, t_ns, index, x, other, y):\n        {}os._exit(0)\n"
)


def test_a_hook_that_ends_the_process_is_told_as_one_that_raises(tmp_path):
    written(tmp_path, EXITS.format(""))
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out")
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert [stage["failures"] for stage in summary["stages"] if stage["kind"] == "kinematics"] == [2000]
    assert "os._exit(0) would end the whole run: raise an error instead" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("call", ["os.execv('/bin/true', ['true'])", "os.execlp('true', 'true')"])
def test_a_hook_that_puts_another_program_in_the_place_of_the_run_is_told(tmp_path, call):
    written(tmp_path, EXITS.replace("os._exit(0)", call).format(""))
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out", "--duration", "10 ms")
    assert done.returncode == 1 and (tmp_path / "out/summary.json").exists()
    assert "would end the whole run: raise an error instead" in done.stderr


def test_a_module_that_ends_the_process_is_told(tmp_path):
    written(tmp_path, "import os\n\nMine = globals()['os']\nos._exit(0)\n")
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out")
    assert done.returncode == 2 and "os._exit(0) would end the whole run" in done.stderr


def test_a_process_that_a_hook_forks_ends_by_exit(tmp_path):
    code = "pid = os.fork()\n        if pid:\n            os.waitpid(pid, 0)\n            return 0\n        "
    written(tmp_path, EXITS.format(code))
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out", "--duration", "10 ms")
    assert (done.returncode, done.stderr) == (0, "")


FORKS = "import os\n\n\nclass Mine:\n    def __call__(self, t_ns, index, x, other, y):\n"
FORKS += "        if index in (3, 70):\n            os.fork()\n        return 0\n"


@pytest.mark.parametrize(("world", "times"), [("virtual", 2), ("real", 1)])
def test_a_process_that_a_hook_forks_and_gives_back_ends_and_the_run_goes_on(tmp_path, world, times):
    written(tmp_path, FORKS)
    done = called(tmp_path, "run", "mine.toml", "--out", "out", "--duration", "0.2 s", "--world", world)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("mine.py:Mine forked returned from the call and was stopped") == times
    assert done.stdout.count("report: ") == 1 and (tmp_path / "out/report.html").exists()
    sent = json.loads((tmp_path / "out/summary.json").read_text())["flows"]["kinematic"]["sent"]
    assert sent == 200 if world == "virtual" else sent > 100, "a fork takes more than a period"


def test_a_process_that_a_module_forks_when_it_is_loaded_ends(tmp_path):
    written(tmp_path, f"import os\nos.fork()\n{RAISES.replace('raise', 'return 0  # ')}")
    done = called(tmp_path, "run", "mine.toml", "--out", "out", "--duration", "10 ms")
    assert done.returncode == 0 and done.stdout.count("report: ") == 1, done.stderr
    assert "forked returned, and ends here" in done.stderr


def test_a_timer_that_a_hook_in_python_sets_is_named(tmp_path):
    code = "import signal\n\n\nclass Mine:\n    def __call__(self, t_ns, index, x, other, y):\n"
    code += "        signal.setitimer(signal.ITIMER_REAL, 1e-3)\n        while True:\n            pass\n"
    written(tmp_path, code)
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out")
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "mine.py:Mine ended the process by SIGALRM (a timer)" in done.stderr


def test_a_standard_output_that_a_hook_closes_is_told(tmp_path):
    code = "import sys\n\n\nclass Mine:\n    def __call__(self, t_ns, index, x, other, y):\n"
    written(tmp_path, code + "        sys.stdout.close()\n        return 0\n")
    done = called(tmp_path, "run", "mine.toml", "--out", "out", "--duration", "10 ms")
    assert done.returncode == 2 and (tmp_path / "out/summary.json").exists()
    assert done.stderr.startswith("tcpsbed: standard output was closed by code of the scenario"), done.stderr


STAYS = "import multiprocessing, threading, time\n\n\nclass Mine:\n    def __init__(self):\n"
STAYS += "        threading.Thread(target=time.sleep, args=(60,), name='mine').start()\n"
STAYS += "        multiprocessing.Process(target=time.sleep, args=(60,), name='ours').start()\n\n"
STAYS += "    def __call__(self, t_ns, index, x, other, y):\n        return 0\n"


def test_threads_and_processes_of_a_hook_do_not_keep_the_command_for_ever(tmp_path):
    written(tmp_path, STAYS)
    begun = time.monotonic()
    done = called(tmp_path, "run", "mine.toml", "--out", "out", "--duration", "10 ms")
    assert done.returncode == 0 and time.monotonic() - begun < 40
    assert "tcpsbed: thread mine, process ours: still running 5 s after the end" in done.stderr
    assert "report: out/report.html" in done.stdout and (tmp_path / "out/summary.json").exists()


@pytest.mark.parametrize("world", ["virtual", "real"])
@pytest.mark.parametrize("call", [0, 1], ids=["made", "called"])
def test_a_umask_that_a_hook_sets_hides_no_result(tmp_path, world, call):
    code = "import os\n\n\nclass Mine:\n    def __init__(self):\n        {}\n\n"
    code += "    def __call__(self, t_ns, index, x, other, y):\n        {}\n        return 0\n"
    hidden = "os.umask(0o777), os.chdir('/')"
    written(tmp_path, code.format(*((hidden, "pass") if call == 0 else ("pass", hidden))))
    done = called(tmp_path, "run", "mine.toml", "-q", "--duration", "10 ms", "--world", world)
    assert done.returncode == 0, done.stderr
    files = [file for file in (tmp_path / "runs/latest").iterdir() if file.is_file()]
    assert len(files) > 8 and all(file.stat().st_mode & 0o400 for file in files)


DAMAGE = {
    "modules": "import sys; sys.modules.clear(); sys.path.clear(); sys.meta_path.clear()",
    "builtins": "import builtins; vars(builtins).clear()",
    "streams": "import sys; sys.stdin = sys.stdout = sys.stderr = None",
    "limits": "import sys, numpy; sys.setrecursionlimit(400); numpy.seterr(all='raise')",
    "signals": "import signal; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)]",
}
DAMAGED = (
    "class Mine:\n    def __init__(self):\n        {}\n\n    def __call__(self, t_ns, index, x, other, y):\n"
)
DAMAGED += "        {}\n        return 0\n"


@pytest.mark.slow
@pytest.mark.parametrize("call", [0, 1], ids=["made", "called"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_hook_that_takes_away_what_python_stands_on_changes_nothing_else(tmp_path, kind, call):
    """In the calls after it the hook may fail by that, and is told."""
    written(tmp_path, DAMAGED.format(*((DAMAGE[kind], "pass") if call == 0 else ("pass", DAMAGE[kind]))))
    done = called(tmp_path, "run", "mine.toml", "--out", "out", "--duration", "3 ms")
    assert "Traceback" not in done.stderr and done.stdout.endswith("report: out/report.html\n"), done.stderr
    failed = "mine.py:Mine at tactile-operator" in done.stderr
    assert done.returncode == int(failed) and bool(done.stderr) == failed, done.stderr


@pytest.mark.parametrize("call", [0, 1], ids=["made", "called"])
def test_who_tells_of_errors_is_as_it_was_after_a_hook(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    takes = "import sys, threading; sys.excepthook = sys.unraisablehook = threading.excepthook = None"
    before = sys.excepthook, sys.unraisablehook, threading.excepthook
    file = written(tmp_path, DAMAGED.format(*((takes, "pass") if call == 0 else ("pass", takes))))
    tcpsbed.run(file, out=tmp_path / "out", set=['duration="3 ms"'])
    assert (sys.excepthook, sys.unraisablehook, threading.excepthook) == before


@pytest.mark.parametrize("name", ["json.dumps", "threading.current_thread"])
def test_what_fails_after_a_hook_has_replaced_it_is_told_in_one_message(tmp_path, name):
    written(tmp_path, DAMAGED.format("pass", f"import json, threading; {name} = None"))
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out", "--duration", "3 ms")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "'NoneType' object is not callable" in done.stderr and "mine.py:Mine" in done.stderr
    assert "may have changed the state of the interpreter; allowed: code that leaves" in done.stderr


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_a_hook_that_closes_the_files_of_the_run_is_named(tmp_path, world):
    closes = "import os; os.closerange(3, 1024); y[0] = 1"
    written(tmp_path, DAMAGED.replace("return 0", "return 1").format("pass", closes))
    done = called(
        tmp_path, "run", "mine.toml", "-q", "--out", "out", "--duration", "100 ms", "--world", world
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "Bad file descriptor" in done.stderr
    assert ("mine.py:Mine" if world == "virtual" else "node a") in done.stderr


def test_control_characters_of_an_error_are_escaped(tmp_path):
    written(tmp_path, RAISES.replace('"boom"', '"\\x1b[2Jboom\\nnext\\r"'))
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out")
    assert r"ValueError: \x1b[2Jboom\nnext\r" in done.stderr and "\x1b" not in done.stderr


def test_a_cell_that_dies_without_a_word_says_so(tmp_path):
    died = "import os, signal\n\n\nclass Mine:\n    def __call__(self, t_ns, index, x, other, y):\n"
    written(tmp_path, died + "        os.kill(os.getpid(), signal.SIGKILL)\n")
    done = called(tmp_path, "sweep", "mine.toml", "--over", "name=a,b", "--seeds", "1", "-q", "--out", "out")
    assert "ended by SIGKILL" in done.stderr, done.stderr
