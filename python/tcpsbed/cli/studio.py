"""`tcpsbed studio`: a page that shows a run while it happens, and changes it; a run that is over; or what there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli import complete
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import AnyWhere, Duration, Out, Seed, Sets, Sinks
from tcpsbed.cli.page import PACE, CertificateFile, KeyFile, Listen, NoBrowser, Page, Port, listening
from tcpsbed.clocks import SIMULATED

if TYPE_CHECKING:
    from tcpsbed.studio.gallery import Gallery
    from tcpsbed.studio.sweep import SweepPage

HELP = """Watch a run in the browser while it happens, and change its links; or look at what there is.

\b
Examples:
  tcpsbed studio                  a start page: scenarios to start, runs to look at
  tcpsbed init --from quickstart && tcpsbed studio quickstart.toml --duration "2 min"
  tcpsbed studio my.toml --world namespaces --no-browser
  tcpsbed studio telehaptic-dumbbell.toml --world virtual --pace 0.1
  tcpsbed studio my.toml --sink openmetrics --sink mcap=run.mcap
  tcpsbed studio my.toml --listen 0.0.0.0 --port 8700
  tcpsbed studio runs/latest
  tcpsbed studio runs/sweep-my-1a2b3c4d

Of a scenario the page shows the path, where the time goes, delay, rate and queues over time, and sliders for the delay,
loss and rate of each link. Each change is an event of the run: its plan and report have it. In virtual time --pace says
how fast simulated time passes: 1 as on a clock, 0.1 in slow motion, max as fast as the machine can. After the run the
page shows all of it, from its summary; so does the page of the folder of a run. The page of a sweep fills cell by cell.
The address is on loopback and holds a token; a second one is to watch only. --listen 0.0.0.0 lets other machines in, over
TLS. Ctrl-C ends a run that goes on, the next one the page.
"""
What = Annotated[
    Path | None,
    typer.Argument(
        metavar="[SCENARIO|RUN|SWEEP]",
        help="A scenario, in TOML or .xlsx, or the folder of a run or a sweep.",
        show_default=False,
        autocompletion=complete.scenarios_and_runs,
    ),
]
Pace = Annotated[str | None, typer.Option("--pace", metavar="NUMBER", help=PACE)]
OVER = "The run is over: nothing of it can be changed."
SWEEP = "sweep.json"
OF_SCENARIOS = ("world", "out", "sets", "seed", "duration", "pace", "sinks")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("studio", help=HELP)(guarded(studio))


def studio(
    ctx: typer.Context,
    what: What = None,
    world: AnyWhere = "real",
    out: Out = None,
    port: Port = 0,
    listen: Listen = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    pace: Pace = None,
    sinks: Sinks = None,
    no_browser: NoBrowser = False,
) -> None:
    """Shows what there is; see HELP."""
    where = listening(listen, port, certificate, key)
    page = Page(where, browser=not no_browser, sinks=tuple(sinks or ()))
    if what is None:
        _refuse_options(ctx, "no scenario")
        _show_gallery(page)
        return
    if not _names_scenario(what):
        _refuse_options(ctx, "a folder")
        _show_sweep(what, page) if (what / SWEEP).is_file() else _show_run(what, page)
        return
    from tcpsbed.cli.run import perform

    perform(
        what,
        world=world,
        out=out,
        sets=sets,
        seed=seed,
        duration=duration,
        pace=pace or ("1" if world in SIMULATED else "max"),
        page=page,
        yes=True,
    )


def _names_scenario(what: Path) -> bool:
    """Whether it is a scenario, or would be one if it were there."""
    from tcpsbed import shipped

    if what.exists():
        return what.is_file()
    return what.suffix in complete.SCENARIO_ENDINGS or bool(shipped.remedy(what))


def _refuse_options(ctx: typer.Context, found: str) -> None:
    """Raises an error if an option was given that only a scenario takes."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if param.name in OF_SCENARIOS and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"found {found}: nothing runs; allowed: with a scenario, such as tcpsbed studio my.toml",
                param_hint=param.opts[0],
            )


def _show_gallery(page: Page) -> None:
    """Scenarios and runs."""
    from tcpsbed.cli.history import listed
    from tcpsbed.results import RUNS
    from tcpsbed.studio.gallery import Gallery

    def runs() -> list[dict[str, Any]]:
        rows = reversed(listed(RUNS))
        return [row | {"shown": row["verdict"] not in ("unfinished", "unreadable")} for row in rows]

    _serve(Gallery(page.listening, runs, str(RUNS)), page)


def _serve(site: Gallery | SweepPage, page: Page) -> None:
    """Serves until Ctrl-C."""
    site.start()
    try:
        page.announce(site)
        page.stay(site)
    finally:
        site.stop()


def _show_sweep(folder: Path, page: Page) -> None:
    """A sweep, also while it fills."""
    from tcpsbed.campaign.filling import filling
    from tcpsbed.studio.sweep import SweepPage

    _serve(SweepPage(page.listening, folder, filling(folder).look), page)


def _show_run(folder: Path, page: Page) -> None:
    """A run that is over."""
    from tcpsbed import documents
    from tcpsbed.analysis.records import plan_of
    from tcpsbed.cli.runs import opened
    from tcpsbed.studio.feed import Feed
    from tcpsbed.studio.whole import shown, whole

    with documents.trusted(folder):
        run = opened(folder)
        plan = plan_of(run.path)
        _ = whole(run.summary, shown(plan))  # damage is said here, not by the page's process
    with Feed(run.path, folder, listening=page.listening, why=OVER) as feed:
        page.announce(feed)
        feed.over(run.path)
        page.stay(feed)
