"""Outputs that take nothing: one line that names what it was, status 2, and the result is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import environment, scenario

from tcpsbed import scenarios
from tcpsbed.errors import WorldError
from tcpsbed.worlds import virtual


def shell(folder: Path, line: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a line of a shell in which `tcpsbed` is the command; its own standard output is that of the line."""
    whole = f'tcpsbed() {{ "{sys.executable}" -m tcpsbed "$@"; }}; {line}'
    command, env = ["bash", "-c", whole], env or environment(folder)
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("to", "said"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
@pytest.mark.parametrize("words", ["run short.toml --out out", "show out", "docs", "run --help"])
def test_a_standard_output_that_takes_nothing_is_named(
    tmp_path: Path, words: str, to: str, said: str
) -> None:
    scenario(tmp_path)
    assert shell(tmp_path, "tcpsbed run short.toml --out out -q").returncode == 0
    done = shell(tmp_path, f"tcpsbed {words} {to}")
    allowed = "allowed: an output that is open and accepts data"
    assert done.stderr == f"tcpsbed: standard output: {said}; {allowed}\n"
    assert done.returncode == 2 and (tmp_path / "out/summary.json").exists()


def test_a_command_that_says_nothing_needs_no_outputs(tmp_path: Path) -> None:
    scenario(tmp_path)
    done = shell(tmp_path, "tcpsbed run short.toml --out out -q <&- >&- 2>&-")
    assert done.returncode == 0 and (tmp_path / "out/summary.json").exists()


@pytest.mark.parametrize("to", ["2>/dev/full", "2>&-"])
def test_a_standard_error_that_takes_nothing_changes_no_status(tmp_path: Path, to: str) -> None:
    scenario(tmp_path)
    for words, status in (("check short.toml", 0), ("check none.toml", 2), ("chek short.toml", 2)):
        assert shell(tmp_path, f"tcpsbed {words} {to}").returncode == status, words


def test_a_name_that_no_file_system_takes_has_a_remedy(tmp_path: Path) -> None:
    scenario(tmp_path)
    done = shell(tmp_path, f"tcpsbed run short.toml --out {'a' * 300}")
    assert "File name too long; allowed: a shorter name" in done.stderr and done.returncode == 2


def test_a_run_in_a_folder_whose_name_is_no_text_is_not_called_damaged(
    tmp_path: Path, shipped_scenarios: Path
) -> None:
    words = f"tcpsbed run {shipped_scenarios}/step.toml -q --out a && mv a $'a\\xff' && tcpsbed export $'a\\xff' --csv"
    done = shell(tmp_path, words, {**os.environ})
    assert done.stderr.startswith('tcpsbed: found "a\\udcff", which is not UTF-8 text; allowed: ')
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", ["--out $'a\\xff'", "--out=$'a\\xff'"])
def test_a_name_that_is_no_text_is_told_with_its_option(
    tmp_path: Path, shipped_scenarios: Path, words: str
) -> None:
    done = shell(tmp_path, f"tcpsbed run {shipped_scenarios}/step.toml -q {words}", {**os.environ})
    assert done.stderr.startswith(
        "tcpsbed: --out: a\\udcff: found the byte 0xFF, which is not UTF-8, in the path; allowed: "
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_a_capture_that_finds_no_room_has_a_remedy(tmp_path: Path, shipped_scenarios: Path) -> None:
    plan = scenarios.compile_plan(scenarios.load(shipped_scenarios / "step.toml"), tmp_path / "inputs")
    (tmp_path / "packets.pcapng").symlink_to("/dev/full")
    with pytest.raises(WorldError) as refused:
        virtual.run(plan, tmp_path, progress=None, pcapng=True)
    file = tmp_path / "packets.pcapng"
    assert str(refused.value) == (
        f"{file}: No space left on device; allowed: free space there, or a place elsewhere"
    )


def test_what_a_reader_does_not_want_is_no_failure(tmp_path: Path) -> None:
    done = shell(tmp_path, "tcpsbed docs scenario | head -1; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("\n") == 1


def test_a_reader_who_has_gone_changes_no_status_that_says_something(tmp_path: Path) -> None:
    code = "import time; from tcpsbed.cli import ends; ends.open_outputs(); print(1); time.sleep(0.5); ends.ended(3)"
    done = shell(
        tmp_path, f'PYTHONUNBUFFERED= "{sys.executable}" -c "{code}" | true; exit ${{PIPESTATUS[0]}}'
    )
    assert (done.returncode, done.stderr) == (3, "")


def test_a_thread_that_stays_does_not_keep_a_command_whose_output_is_full(tmp_path: Path) -> None:
    code = (
        "import sys, threading, time; from tcpsbed.cli import app, ends; ends.GRACE_S = 0.2;"
        "threading.Thread(target=time.sleep, args=(60,)).start(); sys.argv = ['tcpsbed', 'docs']; app.main()"
    )
    begun = time.monotonic()
    done = shell(tmp_path, f'"{sys.executable}" -c "{code}" >/dev/full')
    assert (
        done.returncode == 2
        and "still running 0.2 s after the end" in done.stderr
        and time.monotonic() - begun < 30
    )


def test_events_of_netns_that_find_no_room_name_their_file(tmp_path: Path) -> None:
    done = shell(tmp_path, "tcpsbed netns --delay '1 ms' --json /dev/full -- true", {**os.environ})
    if "namespace" in done.stderr:
        pytest.skip("no network namespaces here")
    assert done.stderr.startswith("tcpsbed: /dev/full: No space left on device; allowed: free space there")
    assert done.returncode == 2


@pytest.mark.parametrize("name", ["numpy", "typing", "json", "pathlib"])
def test_a_file_that_hides_a_module_is_named(tmp_path: Path, name: str) -> None:
    ends = '[components]\ntactile-operator = "a"\ntactile-teleoperator = "b"\n'
    scenario(tmp_path, f'{ends}[flows.kinematic]\nsource = {{ recording = "builtin:hand" }}\n')
    hides = tmp_path / f"lib/{name}.py"
    hides.parent.mkdir()
    hides.write_text("")
    done = shell(tmp_path, f"PYTHONPATH={hides.parent} tcpsbed run short.toml --out out")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"tcpsbed: {hides}: hides the module {name}, which tcpsbed imports")
