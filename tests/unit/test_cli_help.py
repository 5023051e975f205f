"""Help in panels, examples that are right, what a shell completes, runs in a folder, colour, and lines of long work."""

from __future__ import annotations

import io
import json
import re
import shlex
import time
import webbrowser
from pathlib import Path
from typing import Any

import pytest
import sample_run
import typer
from command import scenario, tcpsbed
from typer.testing import CliRunner

from tcpsbed.cli import colour, complete, reproduce
from tcpsbed.cli.app import COMMANDS, app
from tcpsbed.cli.emulated import Screen
from tcpsbed.cli.group import PANELS, Group
from tcpsbed.results import marker
from tcpsbed.runs import progress
from tcpsbed.worlds import registry


def every(command: Any = None, words: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """All commands by their words."""
    below = getattr(command or typer.main.get_command(app), "commands", {})
    found = {(*words, name): one for name, one in below.items()}
    return found | {
        key: value for words, one in found.items() for key, value in every(one, words).items() if key
    }


def test_every_command_stands_in_one_panel() -> None:
    named = [name for names in PANELS.values() for name in names.split()]
    assert sorted(named) == sorted(name for names in COMMANDS.values() for name in names)
    said = CliRunner().invoke(app, ["--help"], terminal_width=80).output
    assert [title for title in PANELS if f"\n{title}:\n" in said] == list(
        PANELS
    ) and "..." not in said.partition("Run:")[2]


@pytest.mark.parametrize("words", every(), ids=" ".join)
def test_help_begins_with_a_sentence_and_its_examples_are_right(words: tuple[str, ...]) -> None:
    said = every()[words].help or ""
    assert re.match(r"[A-Z][^\n]*\.$", said.partition("\n")[0]), said
    lines = [
        line.strip() for line in said.splitlines() if line.strip().startswith(("tcpsbed ", "sudo tcpsbed"))
    ]
    assert any(" ".join(words) in line for line in lines), said
    for line in lines:
        for part in re.split(r" (?:&&|\||>) ", re.split(r"\s{3,}", line.removeprefix("sudo "))[0]):
            if part.startswith("tcpsbed "):
                _parsed(shlex.split(part)[1:])


def _parsed(given: list[str]) -> None:
    """Raises what is wrong with the words of a command line, which is not run."""
    command = typer.main.get_command(app)
    while isinstance(command, Group):
        command, given = command.commands[given[0]], given[1:]
    command.make_context("tcpsbed", given)


def test_the_help_of_world_lists_its_values() -> None:
    said = " ".join(CliRunner().invoke(app, ["run", "--help"]).output.split())
    text = said.partition("Options:")[2].partition("--world")[2].partition("--out")[0]
    assert [name for name in registry.names() if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize(
    ("line", "among"),
    [
        ("tcpsbed swe", "sweep"),
        ("tcpsbed run my.toml --world na", "namespaces"),
        ("tcpsbed proxy --profile lt", "lte"),
        ("tcpsbed check-qos runs/a --profile tele", "telehaptics"),
        ("tcpsbed reproduce gok", "gokhale2017"),
        ("tcpsbed init --from quick", "quickstart"),
        ("tcpsbed docs sce", "scenario"),
        ("tcpsbed check m", "mine.toml"),
        ("tcpsbed show ru", "runs/a"),
        ("tcpsbed open runs/", "runs/a"),
        ("tcpsbed config to", "to-xlsx"),
    ],
)
def test_a_shell_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, among: str) -> None:
    sample_run.write(tmp_path / "runs/a")
    (tmp_path / "mine.toml").touch()
    monkeypatch.chdir(tmp_path)
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    asked = {"_TCPSBED_COMPLETE": "complete_bash", **words}
    said = CliRunner().invoke(app, [], env=asked, prog_name="tcpsbed").output.split()
    assert among in said and all(one.startswith(line.split()[-1]) for one in said)


def test_worlds_that_are_completed_are_worlds() -> None:
    for name in complete.worlds():
        registry.check(name)


def test_runs_of_a_folder_are_listed_with_their_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    empty = CliRunner().invoke(app, ["runs"])
    assert (empty.exit_code, empty.stdout) == (0, "") and "to make one: tcpsbed run FILE" in empty.stderr
    for name, change in (
        ("good", {}),
        ("late", {"disturbances": ["stalled"]}),
        ("bad", {"errors": ["no room"], "disturbances": ["stalled"]}),
    ):
        sample_run.write(Path("runs") / name, name="cut", world="virtual", seed=7)
        file = Path("runs") / name / "summary.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
    Path("runs/torn").mkdir()
    Path("runs/torn/summary.json").write_text("{")
    Path("runs/mine.unfinished-4711").mkdir()
    Path("runs/mine.unfinished-4711/plan.json").touch()
    written = sample_run.write(Path("runs/next.unfinished-4712"))
    marker.Marker("run", target=str(tmp_path / "runs/next")).write(written)
    Path("runs/other").mkdir()
    Path("runs/latest").symlink_to("good")
    found = json.loads(CliRunner().invoke(app, ["runs", "--json"]).stdout)
    verdicts = {Path(row["folder"]).name: row["verdict"] for row in found}
    assert verdicts == {
        "good": "ok",
        "late": "DISTURBED",
        "bad": "ERROR",
        "torn": "unreadable",
        "mine.unfinished-4711": "unfinished",
        "next.unfinished-4712": "unfinished",
    }
    said = CliRunner().invoke(app, ["runs", "runs/good"]).stdout.splitlines()
    assert len(said) == 3 and {"ok", "cut", "virtual", "7", "runs/good"} <= set(said[2].split())


def test_open_names_the_page_and_opens_it_where_there_is_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.get", lambda: None)
    monkeypatch.setattr("webbrowser.open", opened.append)
    sample_run.write(Path("runs/a"))
    lacking = CliRunner().invoke(app, ["open", "runs/a"])
    assert lacking.exit_code == 2 and "allowed: tcpsbed report runs/a writes it" in lacking.stderr
    Path("runs/a/report.html").touch()
    Path("runs/latest").symlink_to("a")
    assert CliRunner().invoke(app, ["open"]).stdout == "runs/latest/report.html\n"
    assert opened == [(tmp_path / "runs/a/report.html").as_uri()]


def test_open_says_the_path_where_there_is_no_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise webbrowser.Error

    monkeypatch.setattr("webbrowser.get", none)
    sample_run.write(tmp_path)
    (tmp_path / "report.html").touch()
    done = CliRunner().invoke(app, ["open", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path}/report.html\n") and "no browser" in done.stderr


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert colour.paint("x", colour.RED, Terminal()) == "\x1b[1;31mx\x1b[0m"
    assert colour.paint("x", colour.RED, io.StringIO()) == "x"
    monkeypatch.setattr("sys.stdout", Terminal())
    assert colour.tables("flow  loss\n────  ────\nERROR: a\n") == (
        "\x1b[1mflow  loss\x1b[0m\n────  ────\n\x1b[1;31mERROR: a\x1b[0m\n"
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert colour.tables("flow\n────\nDISTURBED: a\n") == "flow\n────\nDISTURBED: a\n"


def said_within(capsys: pytest.CaptureFixture[str], text: str, most_s: float = 20.0) -> bool:
    """Whether a text comes on standard error within a time."""
    end, said = time.monotonic() + most_s, ""
    while text not in said and time.monotonic() < end:
        time.sleep(0.01)
        said += capsys.readouterr().err
    return text in said


def test_long_work_says_a_line_now_and_then_without_news(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_S", 0.01)
    with progress.Progress("sweep") as bar:
        bar(0.5)
        assert said_within(capsys, "sweep 50 %")
        bar.clear()
        assert said_within(capsys, "sweep 50 %")
    capsys.readouterr()
    assert not said_within(capsys, "sweep", 0.05)
    with reproduce._alive("gokhale2017", False):
        assert said_within(capsys, "gokhale2017: 0 s\n")


def test_a_proxy_without_a_terminal_says_what_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tcpsbed.cli.emulated.LINE_S", 0.0)
    door = {"rate_pps": 100.0, "rate_bps": 1.2e6, "recent_lost": 3}
    with Screen(False, lambda _: "", lines=True) as screen:
        screen.draw("lte", {"t_s": 12.4, "doors": [door, door]})
    assert capsys.readouterr().err == "12 s: 200 packets/s, 2.400 Mbit/s, 6 lost/s\n"
    with Screen(False, lambda _: "") as screen:
        screen.draw("lte", {"t_s": 12.4, "doors": [door]})
    assert capsys.readouterr().err == ""


def test_a_command_without_words_shows_its_help(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path)
    assert done.returncode == 2 and "Usage: tcpsbed [OPTIONS] COMMAND" in done.stdout + done.stderr
    done = tcpsbed(tmp_path, "check", str(scenario(tmp_path)), "--help")
    assert done.returncode == 0 and "\x1b" not in done.stdout
