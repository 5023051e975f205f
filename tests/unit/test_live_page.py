"""The page of an operator and those who watch it, in a browser, beside a run that the test plays."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from browsing import becomes

pytest.importorskip("websockets", reason="needs the extra studio")

import tcpsbed
from tcpsbed.console.server import FACT, Console
from tcpsbed.media.line import FORCE, VARIABLE
from tcpsbed.studio import collector, freeze
from tcpsbed.studio.certificate import own_addresses
from tcpsbed.studio.collector import ROW
from tcpsbed.studio.feed import OVER, PLAN, ROWS, SCENARIO, TEXT
from tcpsbed.studio.listening import Listening, listening
from tcpsbed.studio.server import Studio, saved

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
pytestmark = [
    pytest.mark.slow,
]
OPEN = "[...document.querySelectorAll('.tour > li')].findIndex((one) => one.ariaCurrent || one.hasAttribute('aria-current'))"


@pytest.fixture(scope="module")
def run(shipped_scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("live") / "run"
    return tcpsbed.run(shipped_scenarios / "quickstart.toml", out=out, set=['duration="6 s"', 'warmup="0 s"'])


class Played:
    """The page of a run that has come to its fourth second."""

    def __init__(self, run: Any, folder: Path, where: Listening, supervisor: str | None = None) -> None:
        self.run, self.console = run, Console(folder)
        self.studio = Studio(where, run.folder, (), self.console)
        self.studio.start()
        self.tell(
            {"k": "shows", "operator": {"fps": 20, "supervisor": supervisor, "marks": False}, "tour": "demo"}
        )
        self.studio._take(SCENARIO, (run.folder / "scenario.toml").read_bytes(), 0.0)
        self.studio._take(PLAN, (run.folder / "plan.json").read_bytes(), 0.0)
        self.tell({"k": "steered", "by": True, "why": "", "saves": "scenario"})
        self.rows, self.sent_s = np.fromfile(run.folder / "records.bin", ROW), 0.0
        self.play(4.0)

    def tell(self, message: dict[str, Any]) -> None:
        self.studio._take(TEXT, json.dumps(message).encode(), 0.0)

    def play(self, until_s: float) -> None:
        """Rows until then."""
        here = (self.rows["time"] >= self.sent_s * 1e9) & (self.rows["time"] < until_s * 1e9)
        self.studio._take(ROWS, bytes(8) + self.rows[here].tobytes(), until_s)
        self.sent_s = until_s
        assert self.studio.collector is not None
        with self.studio.lock:
            self.studio.now = json.dumps(self.studio.collector.lately())
            self.studio.numbered += 1

    def break_off(self) -> None:
        """Every connection of words breaks, as where the network or a slow server gave up."""
        for viewer in [one for one in self.studio.numbers if not isinstance(one, str)]:
            viewer.socket.close()


@pytest.fixture
def played(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    made = Played(run, tmp_path, Listening())
    yield made
    made.studio.stop()


@pytest.fixture
def supervised(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    """The same with a supervisor at the robot."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    made = Played(run, tmp_path, Listening(), supervisor="ms-com")
    yield made
    made.studio.stop()


@pytest.fixture
def opened(opened: Callable[..., Any]) -> Callable[..., Any]:
    """Opens a page that shows where the time goes."""

    def open_page(address: str, **keys: Any) -> Any:
        page = opened(address, **keys)
        becomes(page, "document.querySelectorAll('#fall .bar i').length > 4")
        return page

    return open_page


def asked(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The events that pages have asked the run for."""
    return [json.loads(line)["event"] for line in capfd.readouterr().out.splitlines() if line.startswith("{")]


def test_an_outage_of_a_link_is_an_event_of_the_page(played: Played, opened: Callable[..., Any]) -> None:
    page = opened(played.studio.address)
    closed = [{"name": "l1.forward", "outages": [[4_500_000_000, 9_000_000_000]]}]
    played.tell({"k": "profile", "text": "", "closing": closed, "at_ns": 4_000_000_000})
    played.play(4.8)
    shown = "document.querySelector('#events').innerText"
    becomes(page, f"/4.50 s.*outage of l1.forward begins.*of the link/s.test({shown})")
    assert page.evaluate(f"{shown}.includes('ends')") is False


def test_the_longest_queue_is_said_to_be_exact_or_sampled(
    run: Any, played: Played, opened: Callable[..., Any]
) -> None:
    page = opened(played.studio.address)
    links = "document.querySelector('#path').textContent"
    heads = "[...document.querySelectorAll('#charts h3, #charts figcaption')].map((one) => one.textContent).join()"
    becomes(page, f"{heads}.includes('Queue, longest sampled') && !{links}.includes('longest queue')")
    played.play(6.1)
    played.studio._take(OVER, json.dumps(dict(run.summary)).encode(), 6.0)
    longest = max(link["max_queue_bytes"] for link in run.summary["network"])
    becomes(page, f"{links}.includes('longest queue {longest / 1e3:.1f} of ')")


def test_the_tour_of_those_who_watch_follows_and_their_controls_are_disabled(
    played: Played, opened: Callable[..., Any]
) -> None:
    operator = opened(played.studio.address)
    others = [opened(played.studio.address), opened(played.studio.watch)]
    operator.get_by_role("button", name="150 ms: it swings on").click()
    for page in others:
        becomes(page, f"{OPEN} === 2")
        assert page.evaluate(
            "document.querySelector('#beside fieldset').disabled && document.querySelector('#hand').disabled"
        )
        assert page.inner_text(".whose") == "Viewer 1 steers. The tour shows their step."
    assert not operator.is_visible(".whose") and operator.is_enabled(".tour button.main >> nth=2")
    operator.reload()
    becomes(operator, f"{OPEN} === 2")
    operator.get_by_role("button", name="Let go").click()
    becomes(others[0], "!document.querySelector('#beside fieldset').disabled")
    becomes(others[1], "/Nobody steers/.test(document.querySelector('.whose').textContent)")


def test_a_page_whose_connection_breaks_has_its_hand_again(
    played: Played, opened: Callable[..., Any]
) -> None:
    page = opened(played.studio.address)
    becomes(page, "document.querySelector('#reads').hidden")
    steers = played.studio.viewers.steers
    played.break_off()
    becomes(page, "/connecting again/.test(document.querySelector('#state-text').textContent)")
    becomes(page, "document.querySelector('#state-text').textContent === 'live'")
    becomes(page, "document.querySelector('#reads').hidden && !document.querySelector('#hand').disabled")
    assert played.studio.viewers.steers == steers == 1 and page.locator("#beside").count() == 1


def boxes(page: Any, *places: str) -> list[dict[str, float]]:
    """Where elements of a page are in its window, px."""
    found = [page.locator(place).bounding_box() for place in places]
    assert None not in found, found
    return found


@pytest.mark.parametrize("size", [(1280, 800), (1440, 900)])
def test_arm_force_curve_and_what_changes_the_link_are_in_one_view(
    supervised: Played, opened: Callable[..., Any], size: tuple[int, int]
) -> None:
    played = supervised
    played.console.newest.put(FACT, {"k": "near"})
    played.console.newest.put(FORCE, (1.0, 0.0, 0.0, math.nan))
    page = opened(played.studio.address)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    becomes(page, "!!document.querySelector('#curve')?.offsetHeight && !!document.querySelector('#near')")
    page.evaluate("scrollTo(0, 0)")
    places = (
        "#stage",
        ".crop",
        "#curve",
        "#slide-delay",
        "#slide-loss",
        "#cut",
        "#robot",
        ".tour .main >> nth=0",
    )
    found = boxes(page, *places)
    for place, box in zip(places, found, strict=True):
        assert box["y"] >= 0 and box["y"] + box["height"] <= size[1], (place, box)
    arm, slider = found[0], found[3]
    assert slider["x"] > arm["x"] + arm["width"], (
        "a hand that leaves the picture for the slider stays at the wall"
    )
    assert page.locator("#slide-delay").count() == 1
    for width in (390, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        stage, slider = boxes(page, "#stage", "#slide-delay")
        assert slider["x"] + slider["width"] <= width and slider["y"] > stage["y"]


SHADES = """(() => {
  const { data } = document.querySelector('#curve').getContext('2d').getImageData(30, 0, 450, 150);
  const shaded = (n) => Math.abs(data[n] - 89) < 4 && Math.abs(data[n - 3] - 176) < 9 && data[n - 2] < 9;
  return data.filter((_, n) => n % 4 === 3 && shaded(n)).length;
})()"""
"""How many points of the curve of force are shaded in the colour of a hold."""


def test_the_curve_of_force_marks_when_the_supervisor_held_the_robot(
    supervised: Played, opened: Callable[..., Any]
) -> None:
    played = supervised
    played.console.newest.put(FORCE, (1.0, 0.0, 0.0, math.nan))
    page = opened(played.studio.address)
    becomes(page, "!!document.querySelector('#curve')?.offsetHeight")
    assert page.evaluate(SHADES) == 0
    assert played.studio.collector is not None
    played.studio.collector.events.append(
        {"t_s": 4.0, "component": "ms-com", "state": "hold", "age_ms": 100.0}
    )
    played.play(4.1)
    becomes(page, f"{SHADES} > 500")
    assert "robot held by its supervisor" in page.inner_text("#pane .of-force")
    played.studio.collector.events.append(
        {"t_s": 4.2, "component": "ms-com", "state": "normal", "age_ms": 1.0}
    )
    played.play(4.3)
    becomes(page, f"{SHADES} === 0")  # 8 s later the span has left the curve


AWAY, BACK = (
    f"/the operator's hand {words}/.test(document.querySelector('#events').textContent)"
    for words in ("is away", r"was away \d+\.\d s")
)
HOLDS = "document.querySelector('#reads')?.hidden"
"""Whether the hand is this page's."""
ALARM = "document.querySelector('#alarm').hidden ? '' : document.querySelector('#alarm').textContent"


def test_an_absence_of_the_operator_is_an_event(played: Played, opened: Callable[..., Any]) -> None:
    watcher, operator = opened(played.studio.watch), opened(played.studio.address)
    becomes(operator, HOLDS)
    operator.goto("about:blank")
    becomes(watcher, AWAY)
    operator.goto(played.studio.address)
    becomes(watcher, f"{BACK} && !{AWAY}")
    becomes(operator, HOLDS)
    becomes(operator, BACK)


def test_a_robot_that_nobody_has_moved_yet_waits_and_one_that_was_stopped_is_an_alarm(
    supervised: Played, opened: Callable[..., Any]
) -> None:
    played = supervised

    def stopped() -> None:
        assert played.studio.collector is not None
        played.studio.collector.states["ms-com"] = "safe stop"
        played.play(played.sent_s + 0.1)

    watcher, operator = opened(played.studio.watch), opened(played.studio.address)
    becomes(operator, HOLDS)
    operator.goto("about:blank")
    becomes(watcher, AWAY)
    stopped()
    robot = (
        "[document.querySelector('#robot').textContent, document.querySelector('#robot').className].join()"
    )
    becomes(watcher, f"{robot} === 'waiting for a hand,'")
    assert watcher.evaluate(ALARM) == ""
    operator.goto(played.studio.address)
    becomes(operator, HOLDS)
    operator.locator("#stage").hover()
    becomes(operator, "seen.events > 0")
    stopped()
    becomes(watcher, f"{robot} === 'safe stop,bad' && /^safe stop: /.test({ALARM})")


def test_a_page_that_lags_says_so(played: Played, opened: Callable[..., Any]) -> None:
    hears = played.console._hear

    def slowly(message: Any, browser: Any) -> Any:
        time.sleep(0.9)
        return hears(message, browser)

    page = opened(played.studio.address)
    becomes(page, "seen.trip !== null")
    assert page.evaluate(ALARM) == ""
    played.console._hear = slowly  # type: ignore[method-assign]
    becomes(page, rf"/^This page lags \d+\.\d s behind/.test({ALARM})")
    played.console._hear = hears  # type: ignore[method-assign]
    becomes(page, f"({ALARM}) === ''")


def test_a_hand_that_nobody_moves_is_taken_at_the_picture(played: Played, opened: Callable[..., Any]) -> None:
    first, second = opened(played.studio.address), opened(played.studio.address)
    becomes(second, "/Viewer 1 moves the hand/.test(document.querySelector('#reads').textContent)")
    first.get_by_role("button", name="Let go").click()
    becomes(first, "/Nobody moves the hand/.test(document.querySelector('#reads').textContent)")
    first.get_by_role("button", name="Take the hand").click()
    becomes(first, "document.querySelector('#reads').hidden")
    second.get_by_role("button", name="Ask for the hand").click()
    becomes(first, "/Viewer 2 asks for control/.test(document.querySelector('#control').textContent)")
    becomes(second, "/You have asked for it/.test(document.querySelector('#reads').textContent)")


def test_a_page_that_stood_still_says_that_the_hand_was_lost(
    played: Played, opened: Callable[..., Any]
) -> None:
    page = opened(played.studio.address)
    becomes(page, "document.querySelector('#reads').hidden")
    page.evaluate("() => { const end = performance.now() + 3500; while (performance.now() < end); }")
    becomes(
        page,
        "/stalled for [34]\\.\\d s: the hand sent no commands/.test(document.querySelector('#alarm').textContent)",
    )
    becomes(page, "document.querySelector('#reads').hidden")
    assert not played.console.presence.look()


def test_the_tour_restores_the_line_as_it_was_and_sees_the_hand(
    played: Played, opened: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    page = opened(played.studio.address)
    becomes(
        page, "/not at the wall: move the pointer right/.test(document.querySelector('.where').textContent)"
    )
    page.evaluate("seen.forces = [{ size: 2, predicted: false, at: performance.now() + 1e5 }]")
    becomes(page, "document.querySelector('.where').textContent === 'The hand is at the wall.'")
    page.locator(".tour .head").nth(5).click()
    page.get_by_role("button", name="Clean the line, then cut it").click()
    page.get_by_role("button", name="Restore the line").click()
    becomes(page, "document.querySelectorAll('#events li').length >= 4")
    predictor, clean, cut, restored = asked(capfd)
    assert (predictor["running"], clean["delay"], clean["loss"]) == (False, "0 ms", "0 %")
    assert cut == {"link": "line", "up": False, "name": "line cut"}
    assert restored == {"link": "line", "up": True, "name": "line restored"}, (
        "delay and loss stay what they were"
    )


def test_the_button_whose_settings_are_in_force_is_pressed(
    played: Played, opened: Callable[..., Any]
) -> None:
    page = opened(played.studio.address)
    pressed = (
        "[...document.querySelectorAll('.tour .main')].map((one) => +(one.ariaPressed === 'true')).join('')"
    )
    assert page.evaluate(pressed) == "000000"
    told = iter(range(9))

    def ask(**event: Any) -> None:
        answer = {"id": f"{next(told)}", "by": 1, "asked_s": 4.0, "at_ns": 4_000_000_000, "actions": []}
        played.tell({"k": "asked", "event": event | {"name": "x", "by": "viewer 1"}, **answer})

    ask(link="line", delay="150 ms", loss="0 %", up=True)
    ask(flow="predictor", running=False)
    becomes(page, f"{pressed} === '001000'")
    ask(flow="predictor", running=True)
    becomes(page, f"{pressed} === '000010'")
    ask(link="line.forward", delay="20 ms")
    becomes(page, f"{pressed} === '000000'")
    page.reload()
    ask(link="line", delay="0 ms", loss="0 %", up=True)
    ask(flow="predictor", running=False)
    becomes(page, f"{pressed} === '100000'")
    ask(link="line", up=False)
    becomes(page, f"{pressed} === '000001'")


def test_no_step_of_the_tour_says_that_its_change_has_happened(
    played: Played, opened: Callable[..., Any]
) -> None:
    page = opened(played.studio.address)
    second, last = (page.locator(".tour li").nth(n).text_content() for n in (1, 5))
    assert "pull the hand out of the wall and push again" in second
    for said in (second, last):
        assert "The button " in said and " now " not in said and "again and" not in said


def test_the_latency_of_the_hand_has_no_number_before_there_is_one(
    played: Played, opened: Callable[..., Any]
) -> None:
    page = opened(played.studio.address)
    played.play(4.5)
    becomes(page, "document.querySelector('#clock').textContent.startsWith('4.5 s')")
    assert page.inner_text("#pane #took") == "–"


def test_a_chart_is_saved_as_the_eye_sees_it(
    played: Played, opened: Callable[..., Any], tmp_path: Path
) -> None:
    page = opened(played.studio.address)
    page.locator("#charts").scroll_into_view_if_needed()
    becomes(page, "document.querySelectorAll('#charts .readout b').length > 4")
    with page.expect_download() as download:
        page.evaluate(
            "() => { const figure = document.querySelector('#charts figure');"
            " figure.dispatchEvent(new KeyboardEvent('keydown', { key: '+' }));"
            " [...figure.querySelectorAll('.saves button')].find((one) => one.textContent === 'CSV').click(); }"
        )
    file = tmp_path / "chart.csv"
    download.value.save_as(file)
    times = [float(line.split(",")[0]) for line in file.read_text().splitlines()[1:]]
    assert 0.9 < times[0] < 1.2 and 2.8 < times[-1] < 3.1, times


def test_what_the_supervisor_did_is_in_the_list_of_events_once_and_in_plain_words(
    played: Played, opened: Callable[..., Any]
) -> None:
    name = json.loads((played.run.folder / "plan.json").read_text())["components"][0]["name"]
    plan = next(one for one in map(json.loads, played.studio.messages) if one["k"] == "plan")
    limits = {"hold_ms": 100, "stop_ms": 500, "recover_ms": 50, "engage": "near", "oldest_ms": 950}
    played.tell(plan | {"plan": plan["plan"] | {"supervisors": {name: limits}}})
    page = opened(played.studio.address)
    rows = played.rows[:3].copy()
    rows["kind"], rows["point"], rows["detail"] = collector.STATE, 0, (2, 3, 4)
    rows["time"] = 4_100_000_000, 4_500_000_000, 4_900_000_000
    rows["value"] = 104_000_000, 504_000_000, 2_000_000
    played.rows = np.concatenate([played.rows, rows])
    played.play(5.0)
    becomes(page, "document.querySelectorAll('#events li').length === 3")
    played.play(5.5)
    refused = "commands older than 950 ms are refused"
    assert page.locator("#events li").all_inner_texts() == [
        f"4.90 s\n{name}: recovering commands are back: the robot goes to the hand, slowly; newest good command 2 ms old",
        f"4.50 s\n{name}: safe stop no command accepted for 500 ms: the robot stays stopped until commands are good for "
        f"50 ms and the hand is near the robot; {refused}; newest good command 504 ms old",
        f"4.10 s\n{name}: hold no command accepted for 100 ms: the supervisor stops the robot; {refused}; "
        "newest good command 104 ms old",
    ]


def test_the_age_says_what_it_is(played: Played, opened: Callable[..., Any]) -> None:
    page = opened(played.studio.address)
    page.locator("#charts").scroll_into_view_if_needed()
    chart = page.locator("#charts figure", has_text="Age of the newest sample at its sink, max (ms)")
    assert (
        "its greatest value after the warm-up is age_ms.max of the summary"
        in chart.locator(".note").inner_text()
    )


def test_the_page_says_when_the_run_ends_and_that_it_has(played: Played, opened: Callable[..., Any]) -> None:
    page = opened(played.studio.address)
    becomes(page, "/ends by itself in 2 s/.test(document.querySelector('.ends').textContent)")
    played.play(6.0)
    summary = json.loads((played.run.folder / "summary.json").read_text())
    played.studio._take(OVER, json.dumps(summary).encode(), 6.0)
    becomes(page, "/has ended after 6 s/.test(document.querySelector('#ended')?.textContent ?? '')")
    assert page.inner_text("#ended code") == "tcpsbed demo" and page.locator("#beside").count() == 0


@pytest.mark.skipif(not own_addresses(), reason="needs an address other than loopback")
def test_the_scenario_is_saved_behind_a_self_made_certificate(
    run: Any, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography", reason="needs the extra studio")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    played = Played(run, tmp_path, listening("0.0.0.0", 0, None, None))
    page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
    try:
        with pytest.raises(sync_api.Error, match="ERR_CERT_AUTHORITY_INVALID"):
            page.goto(played.studio.address)
        page.click("#details-button")
        page.click("#proceed-link")
        becomes(page, "document.querySelector('#state-text')?.textContent === 'live'")
        with page.expect_download(timeout=15_000) as download:
            page.get_by_role("button", name="Save as scenario").click()
        assert download.value.failure() is None and download.value.suggested_filename == "steered.toml"
        download.value.save_as(tmp_path / "kept.toml")
        kept = saved((run.folder / "scenario.toml").read_text(), [])
        assert (tmp_path / "kept.toml").read_text() == kept
    finally:
        page.context.close()
        played.studio.stop()


def test_of_many_services_those_with_the_most_packets_are_drawn(
    run: Any, tmp_path: Path, opened: Callable[..., Any]
) -> None:
    copied = tmp_path / "run"
    shutil.copytree(run.folder, copied)
    paths = {
        f"udp :{port} to far": {"t_s": [0.5], "p50_ms": [1], "p99_ms": [2], "packets": [port], "lost": [0]}
        for port in range(1, 34)
    }
    series = json.loads((copied / "series.json").read_text())
    (copied / "series.json").write_text(json.dumps(series | {"services": {"span_s": 1.0, "paths": paths}}))
    page = opened(freeze.write(copied).as_uri())
    for title in ("Delay by service, p99 (ms)", "Packets lost by service (%)"):
        one = f"[...document.querySelectorAll('#charts figure')].find((one) => one.innerText.includes('{title}'))"
        becomes(page, f"!!{one}")
        labels = page.evaluate(f"{one}.plot.series.slice(1).map((line) => line.label)")
        assert labels == [f"udp :{port} to far" for port in range(26, 34)]
        said = page.evaluate(f"{one}.innerText")
        assert "The 8 services with the most packets; series.json has 25 others." in said


def test_a_run_that_is_over_shows_delay_and_loss_of_each_service(
    run: Any, tmp_path: Path, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the page that was live, and in the report: of every second, also where bins are wider."""
    copied = tmp_path / "run"
    shutil.copytree(run.folder, copied)
    curve = {
        "t_s": [0.5, 1.5, 1.501, 5.5],
        "p50_ms": [20, 10, 40, 30],
        "p99_ms": [25, 90, 60, 35],
        "packets": [10, 20, 10, 10],
        "lost": [0, 0, 0, 5],
    }
    silent = {"t_s": [2.0], "p50_ms": [None], "p99_ms": [None], "packets": [4], "lost": [4]}
    series = json.loads((copied / "series.json").read_text())
    services = {"span_s": 1.0, "paths": {"udp :5005 to far": curve, "icmp to far": silent}}
    (copied / "series.json").write_text(json.dumps(series | {"services": services}))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    made = Played(SimpleNamespace(folder=copied, summary=run.summary), tmp_path, Listening())
    try:
        live = opened(made.studio.address)
        made.play(6.1)
        made.studio._take(OVER, json.dumps(dict(run.summary)).encode(), 6.0)
        for find in (lambda: live, lambda: opened(freeze.write(copied).as_uri())):
            page = find()  # one after the other: a page behind another draws nothing
            figures = "[...document.querySelectorAll('#charts figure:not([hidden])')]"
            shown = f"{figures}.find((one) => one.querySelector('figcaption b')?.textContent === "
            becomes(page, f"!!{shown}'Delay of udp :5005 to far (ms)')")
            values = f"{shown}'Delay of udp :5005 to far (ms)').plot.data.slice(1).map((of) => of.filter((v) => v !== null))"
            becomes(page, f"JSON.stringify({values}) === '[[20,20,30],[25,90,35]]'")
            becomes(page, f"/p99 90/.test({shown}'Delay of udp :5005 to far (ms)').innerText)")
            lost = f"{shown}'Packets lost by service (%)').innerText"
            becomes(page, f"/udp :5005 to far 10.*icmp to far 100/s.test({lost})")
            assert page.evaluate(f"!{shown}'Delay of icmp to far (ms)')")
    finally:
        made.studio.stop()
