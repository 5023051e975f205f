"""`tcpsbed check --no-code`: a stranger's scenario is read, and none of it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EVIL = (
    "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n\n\nclass Mine:\n    after = 'ms-com'\n"
)
SCENARIO = """\
duration = "1 s"
[components]
tactile-operator = { node = "home" }
ms-com = { node = "home" }
ss-com = { node = "away" }
tactile-teleoperator = { node = "away", robot = "./evil.so:robot" }
[flows.kinematic]
direction = "forward"
rate = "100 Hz"
sample = "24 B"
transport = { kind = "dpm", controller = "./evil.py:Mine" }
[hooks.one]
kind = "kinematics"
run = "evil:Mine"
at = "tactile-operator"
[hooks.two]
kind = "kinematics"
run = "zoh"
at = "tactile-operator"
[hosts.far]
address = "example.org"
options = ["-o", "ProxyCommand=touch ran"]
nodes = ["away"]
[measure]
metrics = ["./evil.py:Mine"]
"""


def read(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "evil.py").write_text(EVIL)
    (folder / "theirs.toml").write_text(text)
    command = [sys.executable, "-P", "-m", "tcpsbed", "check", "theirs.toml", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_everything_that_would_run_is_listed_and_nothing_runs(tmp_path: Path) -> None:
    done = read(tmp_path, SCENARIO, "--no-code")
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert {(line[0], line[1]) for line in listed} >= {
        ("components.tactile-teleoperator.robot", "./evil.so:robot"),
        ("flows.kinematic.transport.controller", "./evil.py:Mine"),
        ("hooks.one.run", "evil:Mine"),
        ("hosts.far.address", "example.org"),
        ("measure.metrics.0", "./evil.py:Mine"),
    }
    assert "ProxyCommand=touch ran  (option of ssh)" in done.stdout and "zoh" not in done.stdout
    assert not (tmp_path / "ran").exists()


CODE = {
    "tcpsbed.py:Mine": "tcpsbed.py",
    "tcpsbed.evil:Mine": "tcpsbed/evil.py",
    "tcpsbed.so:f": "",
    "memory:Mine": "memory.py",
    "builtin:Mine": "builtin.py",
    "sub/evil:Mine": "sub/evil.py",
    "./a:b.py:Mine": "a:b.py",
    "evil:Überall": "evil.py",
}
"""What a hook runs, and its file."""


def test_nothing_that_the_loader_takes_for_code_is_hidden(tmp_path: Path) -> None:
    text = SCENARIO
    for number, (run, file) in enumerate(CODE.items()):
        text += f'[hooks.n{number}]\nkind = "kinematics"\nrun = "{run}"\nat = "tactile-operator"\n'
        if file:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(EVIL)
    done = read(tmp_path, text, "--no-code")
    listed = dict(re.findall(r"^  hooks\.n(\d)\.run +(\S+)  \(", done.stdout, re.M))
    assert listed == {str(number): run for number, run in enumerate(CODE)}, done
    assert not list(tmp_path.rglob("ran"))


def test_the_same_check_without_the_option_runs_it(tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    read(tmp_path, SCENARIO.replace("./evil.so:robot", "spring"))
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "attempt",
    [
        "import evil",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import ctypes; ctypes.CDLL('./evil.so')",
        "import os; os.fork()",
        "import shutil, _struct; shutil.copy(_struct.__file__, 'evil_c.so'); import importlib.machinery as m\n"
        "m.ExtensionFileLoader('_struct', './evil_c.so').create_module(m.ModuleSpec('_struct', None, origin='./evil_c.so'))",
        "exec(compile('1', '/tmp/evil.py', 'exec'))",
    ],
)
def test_what_is_forbidden_is_refused_by_the_interpreter(tmp_path: Path, attempt: str) -> None:
    (tmp_path / "evil.py").write_text(EVIL)
    code = f"from tcpsbed.scenarios import unrun\nunrun.forbid()\n{attempt}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode and "ConfigError" in done.stderr, done
    assert not (tmp_path / "ran").exists()


def test_an_error_is_told_as_by_a_check(tmp_path: Path) -> None:
    done = read(tmp_path, SCENARIO.replace("100 Hz", "100 Hx"), "--no-code")
    assert done.returncode == 2 and "theirs.toml:9: flows.kinematic.rate" in done.stderr and not done.stdout


READING = """\
include = "../common/base.toml"
[components]
tactile-operator = "home"
tactile-teleoperator = "away"
[flows.kinematic]
source = { recording = "/etc/hosts" }
[channels.session]
flows = ["kinematic"]
security = { kind = "aead", key_file = "/nowhere/lab.key" }
[links.wan]
from = "home"
to = "away"
trace = "link.csv"
delay = "1 ms"
[traffic.replayed]
on = "wan.forward"
kind = "replay"
file = "near.csv"
"""


def test_every_file_outside_the_folder_that_a_run_would_open_is_listed_with_its_line(tmp_path: Path) -> None:
    """Also behind a link, one that is included, and a key file that is not there; none within the folder."""
    folder = tmp_path / "theirs"
    for made in (folder, tmp_path / "common"):
        made.mkdir()
    base = tmp_path / "common" / "base.toml"
    base.write_text('duration = "1 s"\n')
    (folder / "link.csv").symlink_to("/etc/hostname")
    (folder / "near.csv").write_text("0,100\n")
    done = read(folder, READING, "--no-code")
    assert (done.returncode, done.stderr) == (0, ""), done
    listed = done.stdout.partition("A run would open files outside the scenario's folder:\n")[2].splitlines()
    places = ["1: include", "6: flows.kinematic.source.recording", "9: channels.session.security.key_file"]
    files = [f"{base}  (included)", "/etc/hosts  (read)", "/nowhere/lab.key  (key)", "/etc/hostname  (read)"]
    assert listed == [
        f"  theirs.toml:{place}: {file}"
        for place, file in zip([*places, "13: links.wan.trace"], files, strict=True)
    ]
    assert (
        "(this computer, without ssh)"
        in read(folder, SCENARIO.replace("example.org", "localhost"), "--no-code").stdout
    )
    assert "would open no files outside" in read(folder, SCENARIO, "--no-code").stdout


@pytest.mark.parametrize("text", ["root:x:0:0:secret\n", "[secret]\na = 1\na = 2\n", "{ secret }"])
def test_no_text_of_an_included_file_that_is_no_scenario_is_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "shadow").write_text(text)
    for words in ([], ["--no-code"]):
        done = read(tmp_path, f'include = "{tmp_path}/shadow"\n', *words)
        assert done.returncode == 2 and "shadow:" in done.stderr and "invalid TOML" in done.stderr
        assert "secret" not in done.stderr + done.stdout
