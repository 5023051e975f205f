"""What the studio's pages show: scenarios to start, runs, a sweep while it fills; and what a page may ask for."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import scenario, tcpsbed

from tcpsbed import run as run_here
from tcpsbed import shipped
from tcpsbed.campaign import results
from tcpsbed.campaign.filling import filling
from tcpsbed.studio import shelves
from tcpsbed.studio.gallery import Gallery, compared, drawing
from tcpsbed.studio.listening import Listening

client = pytest.importorskip("websockets.sync.client", reason="needs the package websockets")
OVER = ("--over", "delay_ms=1,4", "--over", 'label="a","b"')


def refused(folder: Path, *words: str) -> str:
    """What a command says that ends with bad input."""
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", *words], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


class Command:
    """`tcpsbed studio …` in a folder: its process and its address."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-m", "tcpsbed", "studio", *words, "--no-browser"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        found = re.match(r"studio: (http://127\.0\.0\.1:\d+)/(\?token=\S+)", line)
        assert found, line + self.process.stderr.read()
        self.base, self.token = found.groups()

    def viewer(self, token: str = "") -> Any:
        live = self.base.replace("http", "ws") + "/live"
        return client.connect(live + (token or self.token), max_size=None, max_queue=None)

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.base + path) as got:
            return str(got.read().decode())

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def until(viewer: Any, kind: str) -> dict[str, Any]:
    while True:
        told: dict[str, Any] = json.loads(viewer.recv(timeout=60))
        if told["k"] == kind:
            return told


def test_every_scenario_that_ships_is_on_one_shelf_with_a_line() -> None:
    found = shelves.shelves()
    cards = [card for shelf in found.values() for card in shelf]
    names = [card.name for card in cards]
    assert sorted(names) == sorted(name for name, file in shipped.listed().items() if file.suffix == ".toml")
    assert all(card.line and "](" not in card.line and "`" not in card.line for card in cards)
    first = next(iter(found.values()))[0]
    assert (first.name, first.startable) == ("quickstart", True)
    assert first.command == "tcpsbed init --from quickstart && tcpsbed run quickstart.toml"
    assert not next(card for card in cards if card.name == "console").startable


def test_the_working_folder_has_cards_of_its_scenarios_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('# A line about it\ninclude = "other.toml"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / "broken.toml").write_text("[")
    (tmp_path / "deep.toml").write_text(f"[flows]\na={'[' * 100_000}{']' * 100_000}")
    (card,) = shelves.beside()
    assert (card.name, card.line, card.command) == ("mine.toml", "A line about it", "tcpsbed run mine.toml")


@pytest.fixture
def gallery(tmp_path: Path, shipped_scenarios: Path) -> Iterator[Command]:
    text = (shipped_scenarios / "quickstart.toml").read_text()
    short = re.sub(
        r"(?m)^duration = .*$", 'duration = "1 s"', re.sub(r"(?m)^warmup = .*$", 'warmup = "0 s"', text)
    )
    (tmp_path / "mine.toml").write_text(short)
    made = Command(tmp_path)
    yield made
    assert made.end() == 0


def test_a_page_starts_a_run_and_looks_at_it_when_it_is_over(gallery: Command) -> None:
    with gallery.viewer() as viewer:
        shown = until(viewer, "shelves")["shelves"]
        assert [card["name"] for card in shown[0]["cards"]] == ["mine.toml"]
        assert until(viewer, "runs")["rows"] == []
        for wish in (
            {"k": "start", "id": "1", "card": "/etc/passwd", "world": "virtual"},
            {"k": "start", "id": "2", "card": "mine.toml", "world": "hosts"},
            {"k": "start", "id": "3", "card": "console", "world": "real"},
            {"k": "show", "id": "4", "folder": "/tmp"},
            {"k": "start", "id": "5", "card": "mine.toml", "world": "virtual"},
        ):
            viewer.send(json.dumps(wish))
        started = until(viewer, "started")
        assert started["id"] == "5", "what is not in the list is not answered"
        live = started["address"].replace("http", "ws").replace("/?", "/live?")
        with client.connect(live, max_size=None) as run:
            assert until(run, "plan")["plan"]["name"] == "quickstart"
            until(run, "over")
        good: list[dict[str, Any]] = []
        while not good:
            good = [row for row in until(viewer, "runs")["rows"] if row["verdict"] == "ok"]
        viewer.send(json.dumps({"k": "show", "id": "6", "folder": good[0]["folder"]}))
        answer = until(viewer, "started")
        address = answer.get("address", answer)
        with client.connect(address.replace("http", "ws").replace("/?", "/live?"), max_size=None) as run:
            assert until(run, "over")["report"].endswith("report.html")


def test_what_fails_to_start_is_told(gallery: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('flows = 7\nname = "wrong"\n')
    with gallery.viewer() as viewer:
        viewer.send(json.dumps({"k": "start", "id": "1", "card": "mine.toml", "world": "virtual"}))
        assert "mine.toml: components is missing" in until(viewer, "started")["refused"]


def test_the_start_page_needs_its_token(gallery: Command) -> None:
    assert "gallery.js" in gallery.get("/" + gallery.token)
    assert "WebSocket" in gallery.get("/gallery.js")
    for path in ("/", "/?token=x", "/nothing"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            gallery.get(path)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        gallery.get("/nothing" + gallery.token)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished sweep: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("swept")
    scenario(folder)
    done = tcpsbed(folder, "sweep", "short.toml", *OVER, "--seeds", "2", "--jobs", "2", "--out", "out")
    assert done.returncode == 0, done.stderr
    return folder / "out", done.stdout


def test_a_sweep_on_a_page_has_the_numbers_of_its_table(swept: tuple[Path, str]) -> None:
    folder, printed = swept
    told = filling(folder).look()
    assert (told["done"], told["all"], told["failed"], told["running"]) == (8, 8, 0, 0)
    assert told["page"] and not told["alive"]
    for flow in told["flows"].values():
        for values, line in zip(flow["values"], flow["lines"], strict=True):
            shown = [re.escape(cell) for cell in (*values, *line) if cell != "–"]
            assert re.search(r"\s+(?:–\s+)*".join(shown), printed), line
    assert len(told["head"]) == 2 + len(next(iter(told["flows"].values()))["lines"][0])
    assert len(told["metrics"]) == len(results.COLUMNS)


def test_a_sweep_fills_cell_by_cell(swept: tuple[Path, str], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(swept[0], folder)
    cells = json.loads((folder / "sweep.json").read_text())["cells"]
    kept = tmp_path / "kept"
    (folder / "cells").rename(kept)
    (folder / "cells").mkdir()
    (folder / "work" / f"{cells[0]}-{os.getpid()}").mkdir(parents=True)
    (folder / "failed").mkdir(exist_ok=True)
    (folder / "failed" / f"{cells[-1]}.txt").write_text("seed=2\nit broke\n")
    found = filling(folder)
    told = found.look()
    assert (told["done"], told["failed"], told["running"], told["flows"]) == (0, 1, 1, {})
    assert told["combinations"][0] == {"values": ("1", '"a"'), "done": 0, "failed": 0, "running": 1}
    assert told["failures"] == ["seed=2\nit broke"]
    for number, key in enumerate(cells, 1):
        shutil.copy(kept / f"{key}.json", folder / "cells")
        assert found.look()["done"] == number
    assert found.look()["flows"] == filling(swept[0]).look()["flows"]


def test_the_page_of_a_sweep(swept: tuple[Path, str]) -> None:
    made = Command(swept[0].parent, "out")
    try:
        with made.viewer() as viewer:
            assert until(viewer, "sweep")["done"] == 8
        assert "<title>" in made.get("/report" + made.token)
    finally:
        assert made.end() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing-here",), "nothing-here: no such folder"),
        (("nothing.toml",), "nothing.toml"),
        (("quickstart",), "tcpsbed init --from quickstart"),
        (("empty",), "has no summary.json"),
        (("empty", "--pace", "2"), "--pace: found a folder: nothing runs"),
        (("--seed", "2"), "--seed: found no scenario: nothing runs"),
        (("old",), "the same tcpsbed sweep again"),
    ],
)
def test_what_cannot_be_shown_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "old").mkdir()
    told = {"scenario": "a", "axes": [], "seeds": [1], "settings": [], "world": "virtual"}
    (tmp_path / "old" / "sweep.json").write_text(json.dumps(told))
    assert said in refused(tmp_path, "studio", *words, "--no-browser")


def test_an_unfinished_run_is_refused_with_the_command_that_recovers_it(tmp_path: Path) -> None:
    run = tmp_path / "mine.unfinished-4711"
    run.mkdir()
    (run / "plan.json").write_text("{}")
    assert f"tcpsbed report {run.name}" in refused(tmp_path, "studio", run.name, "--no-browser")


def test_a_run_with_a_page_ends_by_itself_where_no_terminal_is(
    tmp_path: Path, shipped_scenarios: Path
) -> None:
    words = ("--duration", "1 s", "--set", 'warmup="0 s"', "--studio", "--out", "run")
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", "run", str(shipped_scenarios / "quickstart.toml"), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"studio: http://127\.0\.0\.1:\d+/\?token=\S+\n", done.stdout)
    assert "report: run/report.html" in done.stdout and "Ctrl-C" not in done.stderr
    assert "over at once" in done.stderr and "--pace 1 runs it" in done.stderr
    assert "--live: found --studio too" in refused(tmp_path, "run", "x.toml", "--studio", "--live")


def test_a_run_that_is_over_at_once_is_refused_with_the_reason(
    tmp_path: Path, shipped_scenarios: Path
) -> None:
    quickstart = str(shipped_scenarios / "quickstart.toml")
    short = ("--duration", "10 ms", "--set", 'warmup="0 s"', "--out", "out")
    said = refused(tmp_path, "studio", quickstart, *short, "--no-browser")
    assert "too short to watch" in said and '--duration "10 s"' in said
    assert "too short to watch" in refused(tmp_path, "run", quickstart, *short, "--studio")
    assert not (tmp_path / "out").exists()


def test_two_runs_stand_side_by_side_and_cards_have_drawings(tmp_path: Path, shipped_scenarios: Path) -> None:
    card = next(card for cards in shelves.shelves().values() for card in cards if card.name == "demo-network")
    drawn = drawing(card)
    assert (len(drawn["places"]), drawn["nodes"], len(drawn["pairs"])) == (8, 4, 12)
    folders = []
    for seed in (1, 2):
        settings = ['duration="1 s"', 'warmup="0 s"', f"seed={seed}"]
        run = run_here(shipped_scenarios / "quickstart.toml", out=tmp_path / str(seed), set=settings)
        folders.append(run)
    found = compared(*(str(run.folder) for run in folders))
    assert [one["flow"] for one in found] == list(folders[0].summary["flows"])
    for one in found:
        flows = [run.summary["flows"][one["flow"]] for run in folders]
        assert one["numbers"]["mean (ms)"] == [flow["delay_ms"]["mean"] for flow in flows]
        assert one["numbers"]["loss"] == [flow["loss"] for flow in flows]


class Asker:
    """A viewer who keeps what it is told."""

    def __init__(self) -> None:
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()

    def send(self, text: str) -> None:
        self.told.put(json.loads(text, parse_constant=pytest.fail))


def test_a_run_that_has_gone_refuses_a_comparison_and_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows: dict[str, Any] = {"a": {"delay_ms": {"mean": None, "p50": 1.5}, "delivered": 7}}
    summary = {"version": 1, "name": "x", "world": "virtual", "seed": 1, "duration_s": 1.0}
    for name, found in (("one", flows), ("two", flows), ("odd", 7)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps(summary | {"flows": found}))
    names = [str(tmp_path / name) for name in ("one", "two", "odd", "gone")]
    monkeypatch.chdir(tmp_path)
    made, asker = (
        Gallery(Listening(), lambda: [{"folder": name, "shown": True} for name in names], "runs"),
        Asker(),
    )
    held = threading.Event()

    def looked(first: str, second: str) -> list[dict[str, Any]]:
        held.wait(10)
        return compared(first, second)

    monkeypatch.setattr("tcpsbed.studio.gallery.compared", looked)
    with closing(made.server.socket):
        made.hear(asker, {"k": "compare", "id": "1", "folders": names[:2]})
        assert len(made.all()) == 2 and asker.told.empty(), "others are answered meanwhile"
        held.set()
        answer = asker.told.get(timeout=10)
        assert (answer["k"], answer["id"], answer["folders"]) == ("compared", "1", names[:2])
        numbers = answer["flows"][0]["numbers"]
        assert numbers["mean (ms)"] == [None, None] and numbers["p50 (ms)"] == [1.5, 1.5]
        for other in names[2:]:
            made.hear(asker, {"k": "compare", "id": "2", "folders": [names[0], other]})
            answer = asker.told.get(timeout=10)
            assert answer["k"] == "compared" and other in answer["refused"]


def test_a_scenario_that_cannot_be_drawn_ends_no_drawing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped_scenarios: Path
) -> None:
    def broken(file: Path) -> Any:
        raise RecursionError

    file = tmp_path / "mine.toml"
    file.write_text((shipped_scenarios / "quickstart.toml").read_text())
    monkeypatch.chdir(tmp_path)
    made, asker = Gallery(Listening(), list, "runs"), Asker()
    with closing(made.server.socket):
        threading.Thread(target=made._draw, daemon=True).start()
        with monkeypatch.context() as patched:
            patched.setattr("tcpsbed.scenarios.load", broken)
            made.hear(asker, {"k": "draw", "card": "mine.toml"})
            assert asker.told.get(timeout=10)["places"] == []
        os.utime(file, ns=(0, 0))
        made.hear(asker, {"k": "draw", "card": "mine.toml"})
        assert len(asker.told.get(timeout=10)["places"]) == 5
        made.ended.set()


def test_without_a_websocket_all_of_it_can_be_asked_for(swept: tuple[Path, str]) -> None:
    made = Command(swept[0].parent, "out")
    try:
        (told,) = json.loads(made.get("/all.json" + made.token))
        assert told["k"] == "sweep" and told["done"] == 8
        with pytest.raises(urllib.error.HTTPError, match="403"):
            made.get("/all.json")
    finally:
        assert made.end() == 0
