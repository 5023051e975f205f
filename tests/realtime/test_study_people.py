"""Studies in real time: scripts rate what they measure over the real WebSocket, and people do in a browser."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("websockets", reason="needs the package websockets")
pytest.importorskip("simplejpeg", reason="needs the package simplejpeg")

from tcpsbed.studio.site import FILES as SITE_FILES
from tcpsbed.studio.subject import Subject

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
ARTEFACTS = Path(os.environ.get("TCPSBED_ARTEFACTS", "target/artefacts"))
"""Where screenshots are kept."""
STUDY = """
scenario = "{scenario}"
duration = "1.5 s"
training = "1.5 s"
pairs = {pairs}
instructions = "Push against the wall."
[reference]
set = ['links.way.rate="100 Mbit/s"', 'links.way.delay="0.1 ms"']
[conditions.larch]
set = ['links.way.rate="100 Mbit/s"', 'links.way.delay="0.2 ms"']
[conditions.birch]
set = ['links.way.rate="100 Mbit/s"', 'links.way.delay="150 ms"']
"""
"""A delay that no grade can miss, beside hardly any."""
SECRETS = (
    "birch", "larch", "delays", "console-network", "a browser moves an arm", "links", "100 mbit", "0.1 ms", "0.2 ms",
    "150 ms", "10.2", "haptic", "kinematic", "tactile", "ss-embsys", "wifi-crowded", "5g-edge",
)  # fmt: skip
"""Names of conditions, study and scenario, links and their values, flows, components, presets: lower case."""


@contextmanager
def started(
    folder: Path, shipped_scenarios: Path, *more: str, pairs: str = "false"
) -> Iterator[subprocess.Popen[str]]:
    """The command, in a folder of its own; ended whatever happens."""
    (folder / "delays.toml").write_text(
        STUDY.format(scenario=shipped_scenarios / "console-network.toml", pairs=pairs)
    )
    command = [sys.executable, "-m", "tcpsbed", "study", "delays.toml", *more]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def rows_of(folder: Path) -> list[dict[str, str]]:
    """The ratings as a table."""
    with (folder / "ratings.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_grades_of_a_script_follow_the_delay_that_it_measures(tmp_path, shipped_scenarios):
    with started(tmp_path, shipped_scenarios, "--scripted", "1") as process:
        told, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert "The subjects were scripts" in told and "transparency" in told
    rows = {row["condition"]: row for row in rows_of(tmp_path / "studies" / "delays-scripted")}
    assert float(rows["birch"]["video_delay_ms"]) > max(140, float(rows["larch"]["video_delay_ms"]))
    assert int(rows["birch"]["overall"]) < int(rows["larch"]["overall"])
    assert "birch" not in errors and "larch" not in errors, "the terminal tells numbers"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_a_person_at_the_browser_goes_through_a_study(tmp_path, shipped_scenarios):
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    seen: list[str] = []
    with started(tmp_path, shipped_scenarios) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"study: subject 1: (http://127\.0\.0\.1:\d+/\?token=\S+)", line)
        assert found, line + process.communicate(timeout=60)[1]
        with api.sync_playwright() as playwright:
            answer(playwright, found[1], seen)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    rows = rows_of(tmp_path / "studies" / "delays")
    assert [(row["position"], row["transparency"], row["smoothness"], row["overall"]) for row in rows] == [
        ("1", "4", "3", "2"),
        ("2", "4", "3", "2"),
    ]
    told = "".join(seen)
    assert "How was it" in told and "overall" in told, "what it looks through is there"
    known = told.lower()
    found = [
        (secret, known[max(0, at - 40) : at + 40]) for secret in SECRETS if (at := known.find(secret)) >= 0
    ]
    assert not found, "the browser is told it"


def test_the_address_of_a_subject_leads_to_nothing_else(tmp_path, shipped_scenarios):
    """Neither the studio's files nor its WebSocket nor the undelayed picture, and what is there has no secret."""
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    with started(tmp_path, shipped_scenarios) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        here, token = address.split("/?")
        told = urlopen(address, timeout=10).read().decode()
        for path in SITE_FILES:
            try:
                told += urlopen(f"{here}{path}?{token}", timeout=10).read().decode()
                assert path in Subject.files
            except HTTPError as error:
                assert error.code == 404 and path not in Subject.files, path
        for path in ("report", "more.json", "all.json", "scenario.toml", "presets.json", "terms.json"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{here}/{path}?{token}", timeout=10)
        ws = here.replace("http", "ws")
        for path in ("live", "near"):
            with pytest.raises(InvalidStatus, match="404"):
                connect(f"{ws}/{path}?{token}")
        for path, origin in (("ws", None), ("pictures", None), ("ws", "http://elsewhere.example")):
            with pytest.raises(InvalidStatus, match="403"):
                connect(f"{ws}/{path}?{token if origin else 'token=wrong'}", origin=origin)  # type: ignore[arg-type]
        with connect(f"{ws}/ws?{token}") as line:
            line.send('{"k": "ping", "t": 1}')
            said = [json.loads(line.recv(20)) for _ in range(3)]
    assert {"control", "study", "pong"} == {one["k"] for one in said} and [] in [
        one.get("took") for one in said
    ]
    told = (told + json.dumps(said)).lower()
    assert [secret for secret in SECRETS if secret in told] == []


def text_of(frame: str | bytes) -> str:
    r"""A message as it is: written as Python does, a byte of a picture and two letters after it would read `\x10.2`."""
    return frame if isinstance(frame, str) else frame.decode("latin-1")


def answer(playwright: Any, address: str, seen: list[str]) -> None:
    """Goes through a study, keeping what the browser is told."""
    browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: seen.append(text_of(frame))))
    page.on("response", lambda got: seen.append(got.text() if got.status == 200 else got.url))
    page.goto(address)
    page.get_by_role("heading", name="Practice").wait_for(timeout=30_000)
    page.get_by_role("button", name="Begin").click()
    for number in (1, 2):
        present(page, number)
    page.get_by_role("heading", name="Thank you").wait_for(timeout=30_000)
    browser.close()


def present(page: Any, number: int) -> None:
    """Goes through a presentation and its questions."""
    page.get_by_role("heading", name=f"Presentation {number} of 2").wait_for(timeout=60_000)
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("heading", name="How was it?").wait_for(timeout=60_000)
    for tells in ("#glass", "#made", "#age", "#charts", "#steer", "#events", "#curve", "#took", "#trip"):
        assert page.locator(tells).count() == 0, f"{tells} would tell"
    for field, grade in enumerate((4, 3, 2)):
        page.locator("fieldset").nth(field).get_by_role("radio").nth(5 - grade).check()
    if number == 1:
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(ARTEFACTS / "study.png"))
    page.get_by_role("button", name="Save").click()
