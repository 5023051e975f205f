"""`tcpsbed predict`: predictors on recorded motion, training, and placement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.group import Group
from tcpsbed.cli.options import MOST_SEED, Force, Quiet, may_draw
from tcpsbed.cli.place import HELP as PLACE_HELP
from tcpsbed.cli.place import place
from tcpsbed.errors import ConfigError
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.lab.control.prediction import Recorded, Score

HELP = """Replay recorded motion or force through predictors: errors, jumps and cost.

\b
Examples:
  tcpsbed predict compare
  tcpsbed predict compare motion.csv --columns x,y,z --rate "1 kHz" --horizons "5 ms,20 ms" --figure errors.svg

Without a recording it is the wrist of the built-in recording of a hand. Every sample updates the predictor, which then
guesses for each horizon ahead; errors are lengths over all columns, in the recording's unit, after the first 0.5 s. The
worst error is the jump when a sample comes after a gap as long as the horizon; blended in, it is spread over 3 ms.
The defaults of kalman_velocity, kalman_acceleration and operator were chosen on that very recording: compare on one of
your own. A learned model (`tcpsbed predict train`) is compared by the name of its file, such as hand.onnx.
"""

TRAIN_HELP = """Train a small network on recorded motion, and write it as an ONNX model that a `predict` hook runs.

\b
Examples:
  tcpsbed predict train hand.onnx --on builtin:hand
  tcpsbed predict train arm.onnx --on monday.csv --on tuesday.csv --columns x,y,z --test wednesday.csv

The model is compared with the Kalman filter of constant velocity on the recordings of --test, which it was not trained on;
without one, on its own, and the answer says so. In a scenario: run = "./hand.onnx". It needs the extra "learned".
"""

Columns = Annotated[
    str | None, typer.Option("--columns", metavar="NAME,...", help="Columns to use.", show_default=False)
]
Rate = Annotated[
    str | None,
    typer.Option("--rate", metavar="FREQUENCY", help="Sampling rate [default: 1 kHz].", show_default=False),
]
Horizons = Annotated[str, typer.Option("--horizons", metavar="TIME,...", help="How far ahead it guesses.")]
Json = Annotated[bool, typer.Option("--json", help="Print the scores as JSON, and nothing else.")]
AHEAD = "5 ms,10 ms,20 ms,50 ms"
"""Horizons, where none are given."""
RIVAL = "kalman_velocity"
"""What a learned model is to beat."""
MOST_EPOCHS = 100_000
AT_MS = 20.0
"""The horizon at which it is."""

GROUP_HELP = """Compare predictors at the edge, train one, and find the best place for it.

\b
Examples:
  tcpsbed predict compare
  tcpsbed predict place my.toml
"""
group = typer.Typer(
    cls=Group,
    help=GROUP_HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group.command("compare", help=HELP)(guarded(compare))
    group.command("train", help=TRAIN_HELP)(guarded(train))
    group.command("place", help=PLACE_HELP)(guarded(place))
    app.add_typer(group, name="predict")


def compare(
    recording: Annotated[
        str, typer.Argument(metavar="[RECORDING]", help="A recording of motion or force.")
    ] = "builtin:hand",
    columns: Columns = None,
    rate: Rate = None,
    horizons: Horizons = AHEAD,
    predictors: Annotated[
        str | None,
        typer.Option("--predictors", metavar="NAME,...", help="Which [default: all].", show_default=False),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the errors.", show_default=False)
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compares; see HELP."""
    from tcpsbed import _tcps
    from tcpsbed.lab.control import prediction, values

    may_draw(figure, force=force, reads=[recording])
    _refuse_for_hand([recording], columns, rate)
    ahead = _ahead_ms(horizons)
    names = values.parts(predictors) or _tcps.builtins()["predictors"]
    found = prediction.recorded(_spec(recording, columns), values.frequency_hz(rate or "1 kHz", "--rate"))
    scores = prediction.compare(found, ahead, names)
    if figure is not None:
        from tcpsbed.lab.control import figure as drawing

        drawing.errors(scores, found.name, figure)
    if as_json:
        print(json.dumps({"recording": found.name, "scores": [asdict(s) for s in scores]}, indent=1))
    else:
        print(_table(found, scores))
        if figure is not None:
            print(f"figure: {figure}")


def train(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File to write, ending in .onnx.")],
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="RECORDING", help="Recording to train on [default: builtin:hand]."),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", metavar="RECORDING", help="What it is tried on.", show_default=False),
    ] = None,
    columns: Columns = None,
    rate: Rate = None,
    horizons: Horizons = AHEAD,
    window: Annotated[int, typer.Option("--window", min=3, max=1000, help="Samples it looks at.")] = 32,
    units: Annotated[int, typer.Option("--units", min=1, max=1000, help="Hidden units.")] = 32,
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, max=MOST_EPOCHS, help="Passes over the recordings.")
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Of the first weights.")] = 1,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Trains; see TRAIN_HELP."""
    from tcpsbed import results
    from tcpsbed.lab.control import prediction, training, values

    if model.suffix != prediction.MODEL:
        raise ConfigError(f'found "{model}"', key="MODEL", allowed=f"a name ending in {prediction.MODEL}")
    results.may_write(model, force=force, reads=[*(on or []), *(test or [])])
    ahead = tuple(sorted(_ahead_ms(horizons)))
    _refuse_for_hand([*(on or [prediction.HAND]), *(test or [])], columns, rate)
    hz = values.frequency_hz(rate or "1 kHz", "--rate")
    learned = [prediction.recorded(_spec(name, columns), hz) for name in on or [prediction.HAND]]
    tried = [prediction.recorded(_spec(name, columns), hz) for name in test or []]
    with Progress(f"training {model.name}", quiet=quiet or as_json) as bar:
        network = training.train(learned, training.Plan(window, units, ahead, epochs, seed), bar)
    network.save(model)
    found = [(one, prediction.compare(one, ahead, [RIVAL, str(model)])) for one in tried or learned]
    if as_json:
        entries = [{"recording": one.name, "scores": [asdict(s) for s in scores]} for one, scores in found]
        print(json.dumps({"model": str(model), "trained_on_it": not tried, "recordings": entries}, indent=1))
    elif not quiet:
        for one, scores in found:
            print(_table(one, scores))
            print(_verdict(scores, ahead, own=not tried))


def _ahead_ms(horizons: str) -> list[float]:
    """Horizons, in ms."""
    from tcpsbed.lab.control import values

    ahead = [values.positive_ns(text, "--horizons") / 1e6 for text in values.parts(horizons)]
    if not ahead:
        raise ConfigError("found no horizon", key="--horizons", allowed='spans such as "5 ms,20 ms"')
    return ahead


def _verdict(scores: Sequence[Score], ahead: Sequence[float], *, own: bool) -> str:
    """Whether the model is better than its rival, at the horizon nearest to 20 ms."""
    at = min(ahead, key=lambda ms: abs(ms - AT_MS))
    theirs, mine = (
        next(s.rms for s in scores if s.horizon_ms == at and (s.predictor == RIVAL) == rival)
        for rival in (True, False)
    )
    what = f"{mine:.3g} against {theirs:.3g} of {RIVAL} at {at:g} ms"
    said = f"the model {'is better' if mine < theirs else 'is NOT better'}: RMS {what}"
    return said + (", on what it was trained on: name another recording with --test\n" if own else "\n")


def _refuse_for_hand(recordings: Sequence[str], columns: str | None, rate: str | None) -> None:
    """The built-in recording has its columns and its rate; where all are that one, options for them would do nothing."""
    from tcpsbed.lab.control.prediction import HAND

    for option, given in (("--columns", columns), ("--rate", rate)):
        if given is not None and all(name == HAND for name in recordings):
            found = f'found "{given}" for the built-in recording, whose columns and rate are known'
            raise ConfigError(
                found,
                key=option,
                allowed=f"no {option}; or {option} with a recording of your own, such as mine.csv",
            )


def _spec(recording: str, columns: str | None) -> dict[str, Any]:
    from tcpsbed.lab.control import values

    spec: dict[str, Any] = {"recording": recording}
    if columns:
        spec["columns"] = [int(name) if name.isdigit() else name for name in values.parts(columns)]
    return spec


def _table(found: Recorded, scores: Sequence[Score]) -> str:
    from tcpsbed.views import text
    from tcpsbed.views.markup import Column, words

    ahead = sorted({score.horizon_ms for score in scores})
    columns = [words("predictor")]
    columns += [Column(f"{what} {ms:g} ms") for what in ("RMS", "worst") for ms in ahead]
    columns += [Column("update", "ns"), Column(f"guess {ahead[-1]:g} ms", "ns")]
    rows = []
    for name in dict.fromkeys(score.predictor for score in scores):
        mine = {score.horizon_ms: score for score in scores if score.predictor == name}
        last = mine[ahead[-1]]
        cells = [f"{mine[ms].rms:.3g}" for ms in ahead] + [f"{mine[ms].worst:.3g}" for ms in ahead]
        rows.append([name, *cells, f"{last.update_ns:.0f}", f"{last.predict_ns:.0f}"])
    length = len(found.values) * found.period_ms / 1e3
    return f"{found.name} · {length:.0f} s · {found.values.shape[1]} columns\n\n{text.table(columns, rows)}"
