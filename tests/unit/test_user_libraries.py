"""Libraries of the user's that crash, end the process or cannot be loaded: they are named, and the run keeps what it has."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from user_code import SCENARIO, built, called, written

import tcpsbed
from tcpsbed import scenarios

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)")


@pytest.mark.parametrize(
    ("body", "sign"),
    [
        ("*(volatile int *)8 = 1; return 0;", "SIGSEGV"),
        ("abort();", "SIGABRT"),
        ("return deep(1);", "SIGSEGV"),
        # Unwinds what called it, which Rust does not let happen.
        ("pthread_exit(0);", "SIGABRT"),
    ],
)
def test_a_c_hook_that_crashes_is_named_with_its_signal(tmp_path, body, sign):
    source = "static int deep(int n) "
    source += "{ volatile char a[4096]; a[0] = n; return deep(n + a[0]) + a[0]; }\n"
    source += "int mine(void *s, const void *i, void *o) { (void)deep; " + body + " }\n"
    built(tmp_path, source)
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", "run", "mine.toml", "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == -getattr(signal, sign), done.stderr
    assert f"tcpsbed: hook mine of {tmp_path / 'libmine.so'} died of {sign}" in done.stderr


@pytest.mark.parametrize(
    "other",
    [
        "void *mine_init(const char *p) { abort(); }",
        "void *mine_init(const char *p) { return malloc(1); }\nvoid mine_free(void *s) { abort(); }",
    ],
    ids=["init", "free"],
)
def test_a_c_hook_that_crashes_outside_of_calls_is_named(tmp_path, other):
    built(tmp_path, f"int mine(void *s, const void *i, void *o) {{ return 1; }}\n{other}\n")
    done = called(tmp_path, "run", "mine.toml", "--out", "out", "--duration", "10 ms")
    assert done.returncode == -signal.SIGABRT, done.stderr
    assert f"tcpsbed: hook mine of {tmp_path / 'libmine.so'} died of SIGABRT" in done.stderr


@pytest.mark.parametrize("command", [("check",), ("run", "-q", "--out", "out")], ids=["check", "run"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit(0);", "ends the program that loads it (status 0): a constructor in it exits"),
        ('puts("+"); exit(3);', "ends the program that loads it (status 3): a constructor in it exits"),
        ("abort();", "dies of SIGABRT when it is loaded, in a constructor"),
        ("*(volatile int *)8 = 1;", "dies of SIGSEGV when it is loaded, in a constructor"),
    ],
)
def test_a_library_that_cannot_be_loaded_alive_is_refused(tmp_path, body, said, command):
    source = "int mine(void *s, const void *i, void *o) { return 1; }\n"
    built(tmp_path, source + f"__attribute__((constructor)) static void begin(void) {{ {body} }}\n")
    done = called(tmp_path, command[0], "mine.toml", *command[1:])
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert f'hooks.kinematics.run: found "./libmine.so", which {said}' in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_library_whose_constructor_never_returns_is_refused(tmp_path, monkeypatch):
    source = "int mine(void *s, const void *i, void *o) { return 1; }\n"
    built(tmp_path, source + "__attribute__((constructor)) static void begin(void) { for (;;); }\n")
    monkeypatch.setattr("tcpsbed.scenarios.compile.code.LOAD_S", 0.5)
    with pytest.raises(
        tcpsbed.ConfigError, match=r"is not loaded after 0\.5 s: a constructor in it does not"
    ):
        scenarios.check(scenarios.load(tmp_path / "mine.toml"))


def test_a_library_that_prints_when_it_is_loaded_is_none_of_these(tmp_path):
    source = "int mine(void *s, const void *i, void *o) { return 1; }\n__attribute__((constructor)) static void b(void) "
    built(tmp_path, source + '{ puts("here"); fputs("and here", stderr); }\n')
    assert called(tmp_path, "check", "mine.toml").returncode == 0
    written(tmp_path, "", name="./libmine.so:other")
    done = called(tmp_path, "check", "mine.toml")
    assert (
        done.returncode == 2 and 'found "other"; allowed: a function that libmine.so exports' in done.stderr
    )


@pytest.mark.parametrize("source", ["int mine = 3;", "int mine;", "const char mine[] = {1, 2};"])
def test_a_symbol_that_is_data_is_no_function(tmp_path, source):
    built(tmp_path, source)
    done = called(tmp_path, "check", "mine.toml")
    said = 'hooks.kinematics.run: found "mine", which is data; allowed: a function that libmine.so exports'
    assert done.returncode == 2 and said in done.stderr


def test_what_is_said_of_a_crash_comes_in_one_piece(tmp_path):
    built(tmp_path, "int mine(void *s, const void *i, void *o) { abort(); }\n")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tcpsbed", "run", "mine.toml", "-q", "--out", "out"]
    with ours:
        with theirs:
            subprocess.run(command, cwd=tmp_path, stderr=theirs, timeout=60)
        pieces = list(iter(lambda: ours.recv(1 << 16), b""))
    said = [p for p in pieces if b"died of SIGABRT" in p]
    assert said and said[0].startswith(b"\ntcpsbed: hook mine of ") and said[0].endswith(b"run ...\n"), pieces


@pytest.mark.parametrize(
    ("fork", "child", "said"),
    [
        ("fork()", "exit(0);", ""),
        ("fork()", "return 0;", "forked returned"),
        ("syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)", "return 0;", "forked returned"),
    ],
)
def test_a_process_that_a_c_hook_forks_is_none_of_therun(tmp_path, fork, child, said):
    source = "#include <signal.h>\n#include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
    source += f"int mine(void *s, const void *i, void *o) {{ if (!{fork}) {child} wait(0); return 1; }}\n"
    built(tmp_path, source)
    done = called(tmp_path, "run", "mine.toml", "--out", "out", "--duration", "3 ms")
    assert done.returncode == 0 and done.stdout.count("report: ") == 1
    assert said in done.stderr and bool(done.stderr) == bool(said)


@pytest.mark.parametrize(
    "body",
    ["ends(0);", "pthread_t own; pthread_create(&own, 0, ends, 0); pthread_join(own, 0);"],
    ids=["itself", "in a thread of its own"],
)
def test_a_c_hook_that_exits_is_named_and_is_no_success(tmp_path, body):
    source = 'static void *ends(void *p) { printf("my last words"); exit(0); }\n'
    built(tmp_path, source + f"int mine(void *s, const void *i, void *o) {{ {body} return 0; }}\n")
    done = called(tmp_path, "run", "mine.toml", "--out", "out")
    assert done.returncode == 1, done.stderr
    assert (
        f"tcpsbed: hook mine of {tmp_path / 'libmine.so'} ended the process with exit(): report"
        in done.stderr
    )
    assert "my last words" in done.stdout


@pytest.mark.parametrize(
    ("init", "body", "status"),
    [("_exit(0);", "", 0), ("", "_exit(0);", 0), ("", "for (int f = 0; f < 1000; f++) close(f);", 2)],
    ids=["init", "call", "files"],
)
def test_a_c_hook_that_ends_the_run_without_a_word_is_named(tmp_path, init, body, status):
    source = f"#include <unistd.h>\nvoid *mine_init(const char *p) {{ {init} return malloc(1); }}\n"
    built(tmp_path, source + f"int mine(void *s, const void *i, void *o) {{ {body} return 1; }}\n")
    former = tmp_path / "out"
    assert tcpsbed.run(SCENARIO, out=former, set=['duration="10 ms"']).summary["flows"]
    before = (former / "summary.json").read_bytes()
    done = called(tmp_path, "run", "mine.toml", "--out", "out")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    said = f"tcpsbed: the command ended early, with status {status} and without a message: libmine.so, which"
    assert said in done.stderr and (former / "summary.json").read_bytes() == before


@pytest.mark.parametrize(
    ("shipped", "hook", "command"),
    [
        ("step", "pi", ("step",)),
        ("step", "pi", ("check",)),
        ("edge-placement", "guess", ("predict", "place")),
    ],
    ids=["step", "check", "place"],
)
def test_every_command_names_a_library_that_ends_it(tmp_path, shipped_scenarios, shipped, hook, command):
    source = "#include <unistd.h>\nvoid *mine_init(const char *p) { _exit(0); }\n"
    built(tmp_path, source + "int mine(void *s, const void *i, void *o) { return 1; }\n")
    mine = ("--set", f"hooks.{hook}.run='{tmp_path}/libmine.so:mine'", "--set", f"hooks.{hook}.params={{}}")
    done = called(tmp_path, *command, str(shipped_scenarios / f"{shipped}.toml"), *mine)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "without a message: libmine.so, which" in done.stderr


@pytest.mark.realtime
@pytest.mark.beside
@pytest.mark.parametrize(
    ("command", "init", "body"),
    [
        (("run", "-q"), "_exit(0);", ""),
        (("calibrate",), "", "_exit(0);"),
        (("latency", "--max-time", "2 s"), "", "_exit(0);"),
    ],
    ids=["init", "calibrate", "latency"],
)
def test_a_library_that_ends_its_node_is_named(tmp_path, command, init, body):
    source = f"#include <unistd.h>\nvoid *mine_init(const char *p) {{ {init} return malloc(1); }}\n"
    built(tmp_path, source + f"int mine(void *s, const void *i, void *o) {{ {body} return 1; }}\n")
    world = () if command[0] == "calibrate" else ("--world", "real")
    done = called(tmp_path, command[0], "mine.toml", *command[1:], *world, "--out", "out")
    said = "tcpsbed: node a died (status 0): no message: libmine.so in it called _exit() or closed files"
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr


@pytest.mark.parametrize("world", ["virtual", "real"])
@pytest.mark.parametrize("sign", ["SIGALRM", "SIGUSR1"])
def test_a_signal_that_a_c_hook_asks_for_is_named(tmp_path, world, sign):
    built(
        tmp_path,
        f"#include <signal.h>\nint mine(void *s, const void *i, void *o) {{ raise({sign}); return 1; }}\n",
    )
    done = called(tmp_path, "run", "mine.toml", "-q", "--out", "out", "--world", world)
    assert done.returncode == 1 and done.stderr.count("tcpsbed: hook mine of") == 1, done.stderr
    assert f"hook mine of {tmp_path}/libmine.so ended the process by {sign}" in done.stderr


def test_a_run_with_a_library_ends_at_ctrl_c_with_what_it_has(tmp_path):
    source = "#include <fcntl.h>\n#include <unistd.h>\nint mine(void *s, const void *i, void *o) "
    built(tmp_path, source + '{ usleep(20000); creat("called", 0600); return 1; }\n')
    command = [sys.executable, "-m", "tcpsbed", "run", "mine.toml", "--out", "out", "-q"]
    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (tmp_path / "called").exists() and time.monotonic() < until:
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130 and "stopped early; what was recorded until then is in out" in said
    assert (tmp_path / "out/summary.json").exists()
