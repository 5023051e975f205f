"""`tcpsbed demo`: a demonstration with a guided tour in the browser."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode, urlsplit

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Duration, Out, overrides
from tcpsbed.cli.page import LOOK_S, NoBrowser, Port
from tcpsbed.clocks import REAL, VIRTUAL
from tcpsbed.errors import ConfigError

if TYPE_CHECKING:
    from tcpsbed.console.server import Console
    from tcpsbed.scenarios import Scenario
    from tcpsbed.worlds import Steering

HELP = """Show what delay does to force: a page with a robot, sliders and a guided tour.

\b
Examples:
  tcpsbed demo             push an arm into a wall with the pointer, over a link that you change
  tcpsbed demo network     a merging transport beside plain UDP, with a slider for the cross traffic

Needs no file. The first demonstration runs on the machine's clock and needs MuJoCo (pip install
'tcpsbed[robot,console]'); the second runs in virtual time, as fast as a clock, and needs 'tcpsbed[studio]'. Each change
is an event of the run. The address is on loopback and holds a token. Ctrl-C ends the demonstration.
"""
SCENARIOS = {"arm": "demo", "network": "demo-network"}
"""Shipped scenarios, by what the command is asked for."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo", help=HELP)(guarded(demo))


def demo(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[arm|network]", help="What is shown.", autocompletion=lambda: list(SCENARIOS)
        ),
    ] = "arm",
    out: Out = None,
    port: Port = 0,
    duration: Duration = None,
    no_browser: NoBrowser = False,
) -> None:
    """Runs and serves; see HELP."""
    from tcpsbed import scenarios, shipped
    from tcpsbed.media.packages import need
    from tcpsbed.nearest import close_match
    from tcpsbed.worlds import Steering

    if what not in SCENARIOS:
        raise ConfigError(f'found "{what}"', key="demo", allowed=close_match(what, SCENARIOS))
    need("websockets.sync.server", "tcpsbed demo", "console" if what == "arm" else "studio")
    scenario = scenarios.load(shipped.find(SCENARIOS[what]), overrides(None, None, duration))
    if what == "network":
        _show(scenario, VIRTUAL, Steering(scenario, pace=1.0), out, port, None, no_browser=no_browser)
        return
    _need_to_draw()
    with _console() as console:
        _show(scenario, REAL, Steering(scenario), out, port, console, no_browser=no_browser)


def _need_to_draw() -> None:
    """Refuses a machine without what draws the robot, before anything is started."""
    from tcpsbed.media.packages import need
    from tcpsbed.robots.scene import mujoco

    need("simplejpeg", "tcpsbed demo", "console")
    mujoco()


@contextmanager
def _console() -> Iterator[Console]:
    """A console whose folder the nodes of the run find."""
    from tcpsbed.console.server import Console
    from tcpsbed.media.line import VARIABLE

    with tempfile.TemporaryDirectory(prefix="tcpsbed-demo-") as folder:
        os.environ[VARIABLE] = folder
        served = Console(Path(folder))
        served.start()
        try:
            yield served
        finally:
            served.stop()
            del os.environ[VARIABLE]


def _show(
    scenario: Scenario,
    world: str,
    steering: Steering,
    out: Path | None,
    port: int,
    console: Console | None,
    *,
    no_browser: bool,
) -> None:
    """Runs a scenario with its page, until Ctrl-C."""
    from tcpsbed.cli.run import refuse_errors
    from tcpsbed.interrupts import interrupts
    from tcpsbed.runs import session
    from tcpsbed.studio import freeze
    from tcpsbed.studio.feed import Feed

    with ExitStack() as stays:
        with session.place(scenario, out) as place:
            feed = stays.enter_context(Feed(place.path, place.shown, steering=steering, port=port))
            address = _address(feed.address, scenario, console)
            print(f"demo: {address}", flush=True)
            if not no_browser:
                open_browser(address)
            live = feed if console is None else watching(feed, place.path, console.state)
            stopped = session.record(
                scenario, place, world=world, live=live, steering=steering, samples=False
            )
            page = freeze.write(place.path)
        summary = session.summary_of(place.shown)
        feed.over(place.shown)
        print(f"report: {place.told(page)}", flush=True)
        with nullcontext() if stopped else interrupts() as stop:
            if stop is not None:
                print("demo: the run is over; the page stays until Ctrl-C", file=sys.stderr, flush=True)
            while stop is not None and not stop.asked and feed.alive:
                time.sleep(LOOK_S)
    refuse_errors(summary)


def _address(studio: str, scenario: Scenario, console: Console | None) -> str:
    """The page with its tour, and with the console where there is one; what follows the # stays in the browser."""
    given = {"tour": scenario.name}
    if console is not None:
        at = urlsplit(studio)
        console.guests = {f"http://{name}:{at.port}" for name in ("127.0.0.1", "localhost")}
        given |= {"console": f"127.0.0.1:{console.port}", "key": console.token}
        given["fps"] = f"{scenario.flows['video'].rate_hz:g}"
    return f"{studio}#{urlencode(given, safe=':')}"


def open_browser(address: str) -> None:
    """Opens a page where there is a screen and a browser, else says what to do."""
    import webbrowser

    screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    try:
        if screen and webbrowser.get().open(address):
            return
        why = "no browser could be opened" if screen else "no screen found (DISPLAY is not set)"
    except webbrowser.Error:
        why = "no browser found (Debian: apt-get install chromium)"
    ports = " ".join(f"-L {port}:127.0.0.1:{port}" for port in _ports(address))
    print(
        f"demo: {why}; open the address above in a browser on this machine, or on yours after: ssh {ports} THIS-MACHINE",
        file=sys.stderr,
        flush=True,
    )


def _ports(address: str) -> list[int]:
    """The ports that a page's address names, its own first."""
    at = urlsplit(address)
    console = [part.rpartition(":")[2] for part in at.fragment.split("&") if part.startswith("console=")]
    return [int(at.port or 80), *map(int, console)]


def watching(
    feed: Callable[[bytes, float, str], None], folder: Path, tell: Callable[[dict[str, Any]], None]
) -> Callable[[bytes, float, str], None]:
    """`feed`, and the state of each supervisor for the page beside the picture.

    Parameters
    ----------
    feed
        Takes rows, the time of the run and where the time of samples went.
    folder
        The run's folder.
    tell
        Takes `{"k": "state", "of": component, "is": name, "t_s": time}` whenever a state changes.
    """
    import json

    import numpy as np

    from tcpsbed.analysis.records import FIELDS, KINDS

    row, kind = np.dtype(FIELDS), 1 + KINDS.index("state")
    names: list[str] = []

    def live(rows: bytes, now_s: float, split: str) -> None:
        feed(rows, now_s, split)
        found = np.frombuffer(rows, row)
        for one in found[found["kind"] == kind]:
            if not names:
                plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
                names.extend(component["name"] for component in plan["components"])
            if one["detail"] < len(STATES):
                told = {"k": "state", "of": names[one["point"]], "is": STATES[one["detail"]]}
                tell(told | {"t_s": float(one["time"]) / 1e9, "age_ms": float(one["value"]) / 1e6})

    return live


STATES = ("normal", "degraded", "hold", "safe stop", "recovering")
"""States of a supervisor by their number in a row."""
