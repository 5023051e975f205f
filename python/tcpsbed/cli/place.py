"""`tcpsbed predict place`: the best place for an edge component. [Polachan 2022]"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.apart import apart
from tcpsbed.cli.options import AnyWhere, Duration, File, Force, Quiet, Seed, Sets, may_draw, overrides
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.lab.control.placement import Comparison, Placed

HELP = """Run a scenario with its edge predictor at several places: error, age and delay with it there, and without it.

\b
Examples:
  tcpsbed init --from edge-placement           writes edge-placement.toml
  tcpsbed predict place edge-placement.toml --values 0,1,2 --figure places.svg
  tcpsbed predict place polachan-gripper-hold.toml --world real --duration "10 s"
  tcpsbed predict place my.toml --places edge,field --set 'hooks.guess.run="kalman_velocity"'

The edge component is the ss-ei or ms-ei at which a predict hook runs; compared are its host (the node of the component
that it serves), one hop before it, and where the scenario has it. The error is between the values that stand at the next
component and those that were meant at that moment. The way to there, and what the edge itself takes of it, are measured
at the echo points; in virtual time a hook takes what hooks.NAME.cost or a calibration says.
"""


OfHook = Annotated[
    str | None,
    typer.Option("--hook", metavar="NAME", help="The predict hook [default: the only one at an edge]."),
]
Places = Annotated[
    str | None,
    typer.Option("--places", metavar="NODE,...", help="Nodes or routers to compare.", show_default=False),
]
Counted = Annotated[
    str | None,
    typer.Option("--values", metavar="N,...", help="Which values count [default: all].", show_default=False),
]
Figure = Annotated[
    Path | None,
    typer.Option(
        "--figure", metavar="FILE", help="Draw received values, errors and ages.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the places as JSON, and nothing else.")]


def place(
    file: File,
    hook: OfHook = None,
    places: Places = None,
    counted: Counted = None,
    world: AnyWhere = "virtual",
    figure: Figure = None,
    force: Force = False,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compares places; see HELP."""
    from tcpsbed import scenarios, worlds
    from tcpsbed.lab.control import placement, values

    worlds.check(world)
    may_draw(figure, force=force, reads=[file])
    given = overrides(sets, seed, duration)
    if world in SIMULATED:
        apart(scenarios.load(file, given))
    with Progress(f"places of {file.stem}, {world}", quiet=quiet or as_json) as bar:
        found = placement.compare(
            file,
            given,
            hook=hook,
            nodes=values.parts(places),
            chosen=_numbers(values.parts(counted)),
            world=world,
            progress=bar,
        )
    if figure is not None:
        from tcpsbed.lab.control import placement_figure

        placement_figure.draw(found, f"{file.stem} · {world}", figure)
    if as_json:
        print(json.dumps(_document(found, world), indent=1))
    elif not quiet:
        print(_table(found, f"{file.stem} · {world}"), *_remarks(found, world), sep="\n")
        if figure is not None:
            print(f"figure: {figure}")


def _numbers(texts: list[str]) -> list[int]:
    if not all(text.isascii() and text.isdigit() for text in texts):
        raise ConfigError(f'found "{", ".join(texts)}"', key="--values", allowed='numbers such as "0,1,2"')
    return [int(text) for text in texts]


def _document(found: Comparison, world: str) -> object:
    from tcpsbed.lab.control.table import plain

    edge, best = found.edge, found.best
    head = {"world": world, "hook": edge.hook, "component": edge.component, "flow": edge.flow}
    places = [one.to_json() for one in found.places]
    return plain(head | {"next": edge.next, "best": best and best.place, "places": places})


def _table(found: Comparison, head: str) -> str:
    from tcpsbed.views import text
    from tcpsbed.views.markup import Column, words
    from tcpsbed.views.numbers import NONE

    edge = found.edge
    columns = [words(edge.component), words("node"), Column("RMS error"), Column("worst")]
    columns += [Column("age", "ms"), Column("max", "ms"), Column(f"to {edge.next} p50", "ms")]
    columns += [Column("p99", "ms"), Column("of it own", "ms"), Column("last mile", "packets/s")]

    def number(value: float, form: str) -> str:
        return format(value, form) if math.isfinite(value) else NONE

    rows = [
        [
            one.place,
            one.node or "",
            *(number(value, ".3g") for value in (one.rms, one.worst)),
            *(number(value, ".2f") for value in (one.age_ms, one.age_max_ms, one.delay_ms, one.delay_p99_ms)),
            number(one.own_ms, ".3f"),
            f"{one.packets_per_s:.0f}",
        ]
        for one in found.places
    ]
    what = f"{head} · {edge.flow} · hooks.{edge.hook} at {edge.component}, which serves {edge.next}"
    return f"{what}\n\n{text.table(columns, rows)}"


def _remarks(found: Comparison, world: str) -> Iterator[str]:
    from tcpsbed.lab.control.placement import WITHOUT

    best, without = found.best, found.places[0]
    if best is None:
        yield f"no sample reached {found.edge.next} at any place"
    elif best.place == WITHOUT:
        yield "without the predictor the error is smallest"
    else:
        against = f", {without.rms:.3g} without" if math.isfinite(without.rms) else ""
        yield f"the error is smallest {best.place} ({best.node}): {best.rms:.3g}{against}"
    if world in SIMULATED and not found.edge.charged:
        yield f"the predictor takes no time here: hooks.{found.edge.hook}.cost is not given"
    yield from (text for one in found.places for text in _warnings(one))


def _warnings(one: Placed) -> Iterator[str]:
    where = one.place if one.node is None else f"{one.place} ({one.node})"
    if one.disturbed:
        yield f"DISTURBED: {where}: {one.disturbed[0]}" + (
            f", and {len(one.disturbed) - 1} more" if len(one.disturbed) > 1 else ""
        )
