"""`tcpsbed run`: a scenario in a world, then tables and a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli.apart import apart
from tcpsbed.cli.check import ELSEWHERE
from tcpsbed.cli.colour import tables
from tcpsbed.cli.failures import DISTURBED, FAILED, guarded
from tcpsbed.cli.options import (
    INSECURE,
    AnyWhere,
    Duration,
    File,
    Insecure,
    Out,
    Quiet,
    Seed,
    Sets,
    Yes,
    agreed,
    overrides,
)
from tcpsbed.cli.page import (
    AT_ONCE,
    PACE,
    CertificateFile,
    KeyFile,
    Listen,
    OnPage,
    Page,
    listening,
    refuse_unwatchable,
    refuse_without,
    speed_of,
)
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import counted, one_line
from tcpsbed.runs import MOST_SEEDS
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.campaign.survey import Survey
    from tcpsbed.results import Place
    from tcpsbed.runs.given import Given
    from tcpsbed.scenarios import Scenario
    from tcpsbed.studio.feed import Feed
    from tcpsbed.views.folder import RunFolder
    from tcpsbed.worlds import Steering

HELP = """Run a scenario and report where the time went.

\b
Examples:
  tcpsbed init --from quickstart && tcpsbed run quickstart.toml
  tcpsbed run my.toml --set 'traffic.cbr.rate="310 kbit/s"' --seed 7
  tcpsbed run my.toml --seeds 10
  tcpsbed run my.toml --world real --live --duration "30 s"
  tcpsbed run my.toml --studio --pace 1
  sudo tcpsbed run my.toml --world namespaces
  tcpsbed run my.toml --out here --json > summary.json

Leaves a folder with scenario.toml, summary.json, series.json, records.bin, samples.parquet and report.html. Ctrl-C
ends a run early and keeps what it recorded.

A seed fixes everything random in a run. --seeds 10 runs nine more seeds and prints the mean delay and loss of each flow
over all seeds, with 95 % intervals; everything else describes the first seed. If the second seed gives the same records,
nothing is random, and the other seeds are skipped.

--studio prints the address of a page that shows the run while it happens, and changes its links, and a second one to
watch only (tcpsbed docs studio).
After the run it shows all of it, on a terminal until Ctrl-C; where standard output is a file or a pipe, the command ends
with the run. In virtual time a run is over at once: --pace 1 runs it as on a clock.
"""


AsJson = Annotated[
    bool, typer.Option("--json", help="Print summary.json on standard output, and nothing else.")
]
Seeds = Annotated[
    int,
    typer.Option(
        "--seeds", min=1, max=MOST_SEEDS, help="Seeds to run, counted from the scenario's, for intervals."
    ),
]
ShownLive = Annotated[bool, typer.Option("--live", help="Show a running real session in the terminal.")]
Pace = Annotated[str, typer.Option("--pace", metavar="NUMBER", help=PACE)]
NoReport = Annotated[bool, typer.Option("--no-report", help="Leave report.html out.")]
NoSamples = Annotated[
    bool,
    typer.Option("--no-samples", help="Do not write samples.parquet; `tcpsbed export` can write it later."),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="End with status 3 if the run, or one of further seeds, was disturbed, or if the run accepted datagrams of an"
        " attack.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run", help=HELP)(guarded(run))


def run(
    file: File,
    world: AnyWhere = "virtual",
    out: Out = None,
    as_json: AsJson = False,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    seeds: Seeds = 1,
    live: ShownLive = False,
    studio: OnPage = False,
    listen: Listen = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    pace: Pace = "max",
    no_report: NoReport = False,
    no_samples: NoSamples = False,
    yes: Yes = False,
    strict: Strict = False,
    insecure: Insecure = False,
    quiet: Quiet = False,
) -> None:
    """Runs a scenario; see HELP."""
    if live and studio:
        raise typer.BadParameter("found --studio too; allowed: one of them", param_hint="--live")
    if not studio:
        refuse_without({"--listen": listen, "--certificate": certificate, "--key": key})
        page = None
    else:
        page = Page(listening(listen, 0, certificate, key), stays=sys.stdout.isatty())
    perform(
        file,
        world=world,
        out=out,
        as_json=as_json,
        sets=[*(sets or ()), *[INSECURE] * insecure],
        seed=seed,
        duration=duration,
        seeds=seeds,
        live=live,
        page=page,
        pace=pace,
        report=not no_report,
        samples=not no_samples,
        yes=yes,
        strict=strict,
        quiet=quiet,
    )


def perform(
    file: Path,
    *,
    world: str,
    out: Path | None,
    sets: list[str] | None,
    seed: int | None,
    duration: str | None,
    pace: str,
    page: Page | None,
    as_json: bool = False,
    seeds: int = 1,
    live: bool = False,
    report: bool = True,
    samples: bool = True,
    yes: bool = False,
    strict: bool = False,
    quiet: bool = False,
) -> None:
    """Runs a scenario, on a `page` if there is one, and prints what came out; the rest are the options of `run`."""
    from tcpsbed import worlds
    from tcpsbed.results import RUNS
    from tcpsbed.runs import forecast, session
    from tcpsbed.runs.given import given
    from tcpsbed.scenarios.compile.channels import absent_keys
    from tcpsbed.views.folder import open_folder

    worlds.check(world)
    if live and world in SIMULATED:
        raise typer.BadParameter(
            "needs another --world, such as real: a virtual run is over before it can be watched",
            param_hint="--live",
        )
    speed, silent, failed = speed_of(pace, world), quiet or as_json, 0
    with _not_begun(), given(file, set=sets or (), duration=duration, seed=seed) as asked:
        scenario = asked.scenario
        if not silent and world in SIMULATED:
            for name in absent_keys(scenario):
                print(f"tcpsbed: note: key file {name} is not here: {ELSEWHERE}", file=sys.stderr)
        if page is not None:
            refuse_unwatchable(scenario.duration_ns / 1e9, speed)
            if speed is None and world in SIMULATED and not (quiet or as_json):
                print(AT_ONCE, file=sys.stderr)
        if not (yes and silent):  # nobody wants to know
            found = forecast.ask(
                file, overrides(sets, seed, duration), scenario, world, out or RUNS, runs=seeds
            )
            agreed(found, "a run" if seeds == 1 else f"{seeds} runs", yes)
    steering = worlds.Steering(scenario, pace=speed) if page or speed else None
    with ExitStack() as stays:
        with session.place(scenario, out) as place:
            survey = _further(asked, seeds, world, place)
            feed = None
            if page is not None and steering is not None:
                _apart(scenario, world)
                feed = stays.enter_context(page.feed(place, steering, aside=as_json))
            stopped = watched(
                scenario, world, place, live=live, feed=feed, steering=steering, quiet=silent, samples=samples
            )
            try:
                failed = _spread(survey, place, quiet=silent) if survey and not stopped else 0
            finally:
                written = _report(place.path) if report else None
            opened = open_folder(place.path)
            _ = opened.series, opened.scenario
        if feed is not None:
            feed.over(place.shown)
        _tell(opened, place, written, as_json=as_json, quiet=quiet)
        if feed is not None and page is not None and page.stays:
            page.stay(feed)
    if stopped:
        raise KeyboardInterrupt(f"stopped early; what was recorded until then is in {place.shown}")
    refuse_errors(opened.summary, told=not (quiet or as_json) and sys.stdout.isatty() and sys.stderr.isatty())
    if failed:
        print(f"tcpsbed: {failed} of {seeds} seeds failed", file=sys.stderr)
        raise typer.Exit(FAILED)
    if strict:
        _refuse_disturbed(opened.summary)


@contextmanager
def _not_begun() -> Iterator[None]:
    """Prints that nothing was recorded if the user stops before the run."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped before the run began: nothing was recorded") from None


def _refuse_disturbed(summary: Mapping[str, Any]) -> None:
    seeds = summary["across_seeds"]["disturbed"]
    found = [*summary["disturbances"], *([f"seeds {', '.join(map(str, seeds))}"] if seeds else [])]
    if attacked := summary.get("attacked"):
        print("tcpsbed: ATTACKED, and --strict was given:", *attacked, sep="\n  ", file=sys.stderr)
    if found:
        print("tcpsbed: DISTURBED, and --strict was given:", *found, sep="\n  ", file=sys.stderr)
    if attacked or found:
        raise typer.Exit(DISTURBED)


def _further(asked: Given, seeds: int, world: str, place: Place) -> Survey | None:
    """The runs under the other seeds, if there are any."""
    if seeds < 2:
        return None
    from tcpsbed.api.seeds import further

    return further(asked, seeds, world, place)


def _spread(survey: Survey, place: Place, *, quiet: bool) -> int:
    """Runs the other seeds with a bar and the messages of those that fail; the number of failures."""
    from tcpsbed.api.seeds import spread
    from tcpsbed.cli.sweep import run_cells

    label = f"{len(survey.seeds)} further seeds"
    return len(run_cells(lambda told: spread(survey, place, None, told), label, quiet=quiet))


def watched(
    scenario: Scenario,
    world: str,
    place: Place,
    *,
    live: bool = False,
    feed: Feed | None = None,
    steering: Steering | None = None,
    quiet: bool = False,
    samples: bool = True,
) -> bool:
    """Runs a scenario with its page and a progress bar or the live view; returns whether the user stopped it."""
    from tcpsbed.cli.live import LiveView
    from tcpsbed.runs import session

    _apart(scenario, world)
    with (
        LiveView(place.path) if live else nullcontext(feed) as view,
        Progress(f"{scenario.name}, {world}", quiet=quiet or live) as bar,
    ):
        return session.record(
            scenario, place, world=world, progress=bar, live=view, steering=steering, samples=samples
        )


def _apart(scenario: Scenario, world: str) -> None:
    if world in SIMULATED:
        apart(scenario)


def _report(folder: Path) -> Path:
    from tcpsbed.studio import freeze

    return freeze.write(folder)


def _tell(opened: RunFolder, place: Place, report: Path | None, *, as_json: bool, quiet: bool) -> None:
    from tcpsbed.views import text

    if as_json:
        print(json.dumps(opened.summary, indent=1))
    elif not quiet:
        print(tables(text.overview(opened)))
        print("Glossary: tcpsbed docs glossary")
        print(f"report: {place.told(report)}" if report else f"run: {place.shown}")
    for sentence in opened.summary.get("untried") or ():
        print(f"tcpsbed: {sentence}", file=sys.stderr)


def refuse_errors(summary: Mapping[str, Any], *, told: bool = False) -> None:
    """Ends with a status and the errors of a run that had some; `told`: this screen has them already, above its tables."""
    if errors := summary.get("errors"):
        if told:
            print(f"tcpsbed: {counted(len(errors), 'error')} of the run, see above", file=sys.stderr)
        else:
            print(*(f"tcpsbed: {one_line(error)}" for error in errors), sep="\n", file=sys.stderr)
        raise typer.Exit(DISTURBED if any(host["lost"] for host in summary.get("hosts", ())) else FAILED)
