"""`tcpsbed map`: the stability map of a control loop. [PROTOCOLS 6.2]"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import File, Quiet, Seed, Sets, overrides
from tcpsbed.cli.progress import Progress
from tcpsbed.errors import ConfigError

if TYPE_CHECKING:
    from tcpsbed.control.loop import Loop
    from tcpsbed.control.stability import StabilityMap

HELP = """Draw how much delay and loss a control loop bears, out of hundreds of runs in every cell of a grid.

\b
Examples:
  tcpsbed map scenarios/step.toml
  tcpsbed map scenarios/step.toml --rtt "0 ms..60 ms" --loss 0..40% --bursts 5 --gain 0.2:0.05 --figure map.svg
  tcpsbed map scenarios/step.toml --reliability 95% --rise 50

Step, gains and period are those of the scenario; delay and loss are those of the grid, not of its network. The loop is
computed from its difference equations, without packets: 10^9 ticks take seconds.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("map", help=HELP)(guarded(stability_map))


def stability_map(
    file: File,
    rtt: Annotated[str, typer.Option("--rtt", metavar="LOW..HIGH", help="Round trips.")] = "0 ms..50 ms",
    loss: Annotated[str, typer.Option("--loss", metavar="LOW..HIGH", help="Losses each way.")] = "0..60%",
    cells: Annotated[str, typer.Option("--cells", metavar="NxM", help="Round trips times losses.")] = "50x50",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs in each cell.")] = 200,
    bursts: Annotated[
        float, typer.Option("--bursts", min=1, help="Mean length of a loss, in packets.")
    ] = 1.0,
    jitter: Annotated[
        str | None,
        typer.Option("--jitter", metavar="TIME", help="Mean extra delay, exponential.", show_default=False),
    ] = None,
    gain: Annotated[
        str | None,
        typer.Option("--gain", metavar="KP:KI", help="Other gains, Ki per ms.", show_default=False),
    ] = None,
    period: Annotated[
        str | None, typer.Option("--period", metavar="TIME", help="Another period.", show_default=False)
    ] = None,
    overshoot: Annotated[float, typer.Option("--overshoot", help="Highest good overshoot, %.")] = 20.0,
    rise: Annotated[
        float, typer.Option("--rise", help="Longest good rise time, ms.", show_default=False)
    ] = float("inf"),
    reliability: Annotated[
        str | None,
        typer.Option(
            "--reliability",
            metavar="SHARE",
            help="Share of runs that must be good [default: the mean overshoot counts].",
            show_default=False,
        ),
    ] = None,
    on_command: Annotated[
        bool, typer.Option("--on-command", help="The far side answers commands, not at its own ticks.")
    ] = False,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Both sides tick together, not as two computers do.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the map.", show_default=False)
    ] = None,
    sets: Sets = None,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the map as JSON, and nothing else.")] = False,
    quiet: Quiet = False,
) -> None:
    """Draws the map; see HELP."""
    from tcpsbed import config
    from tcpsbed.control import stability, values
    from tcpsbed.control.batch import Bench
    from tcpsbed.control.verdict import Limits

    scenario = config.load(file, overrides(sets, seed))
    loop = _loop(scenario)
    columns, rows = _size(cells)
    kp, ki = values.gains(gain, "--gain") if gain else _known_gains(loop)
    grid = stability.Grid(
        [ns / 1e6 for ns in values.span(rtt, columns, values.duration_ns, "--rtt")],
        values.span(loss, rows, values.share, "--loss"),
        values.positive_ns(period, "--period") / 1e6 if period else loop.period_ms,
        kp,
        ki,
        bursts,
        values.duration_ns(jitter, "--jitter") / 1e6 if jitter else 0.0,
        phases=not aligned,
    )
    bench = Bench(
        loop.step,
        runs,
        scenario.duration_ns / 1e6,
        scenario.seed,
        Limits(rise, overshoot),
        "commands" if on_command else "ticks",
    )
    share = values.share(reliability, "--reliability") if reliability else None
    bar = Progress(f"{scenario.name}, {runs} runs a cell", quiet=quiet or as_json)
    try:
        found = stability.compute(grid, bench, bar)
    finally:
        bar.clear()
    _tell(found, scenario.name, share, figure, as_json=as_json, quiet=quiet)


def _loop(scenario: Any) -> Loop:
    import tempfile

    from tcpsbed import config
    from tcpsbed.control.loop import loops

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        return loops(config.compile_plan(scenario, Path(folder)))[0]


def _known_gains(loop: Loop) -> tuple[float, float]:
    if loop.kp is None or loop.ki_per_ms is None:
        raise ConfigError(
            "found no hook that runs pi", key="--gain", allowed='Kp and Ki per ms, such as "0.2:0.09"'
        )
    return loop.kp, loop.ki_per_ms


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    if not (columns.isdigit() and rows.isdigit() and 2 <= int(columns) <= 1000 and 2 <= int(rows) <= 1000):
        raise ConfigError(f'found "{text}"', key="--cells", allowed='2 to 1000 each way, such as "50x50"')
    return int(columns), int(rows)


def _tell(
    found: StabilityMap,
    name: str,
    reliability: float | None,
    file: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    rows = sorted({round(share * (len(found.grid.loss) - 1)) for share in (0, 0.25, 0.5, 0.75, 1)})
    sentences = [found.sentence(row, reliability) for row in rows]
    if file is not None:
        from tcpsbed.control import figure

        figure.stability(found, f"{name} · {sentences[0]}", file)
    if as_json:
        from tcpsbed.control.table import plain

        tables = {key: table.tolist() for key, table in (*found.mean.items(), ("good", found.good))}
        content = {"grid": asdict(found.grid), "bench": asdict(found.bench), "sentences": sentences}
        print(json.dumps(plain(content | tables)))
    elif not quiet:
        print(*sentences, sep="\n")
        if file is not None:
            print(f"figure: {file}")
