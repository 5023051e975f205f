"""`tcpsbed plot`: what is drawn from run and sweep folders, what is in the files, and what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sample_run
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.analysis.stats import interval
from tcpsbed.cli import complete
from tcpsbed.cli.app import app
from tcpsbed.drawing import STYLES
from tcpsbed.errors import DataError
from tcpsbed.figures import KINDS, material, quantities

pytest.importorskip("matplotlib")

RATES, TRANSPORTS, SEEDS = ("500 kbit/s", "1 Mbit/s", "2 Mbit/s"), ("udp", '"no_merge"'), (1, 2, 3)


def summary(seed: int = 1) -> dict[str, Any]:
    """A run with the causes of the delay of each flow."""
    found = sample_run.summary(seed=seed)
    parts = [{"part": "queueing", "mean_ms": 5.0 + seed}, {"part": "propagation", "mean_ms": 7.0}]
    return found | {"split": {flow: {"parts": parts} for flow in found["flows"]}}


def sweep(folder: Path, seeds: tuple[int, ...] = SEEDS, **other: Any) -> Path:
    """A folder as a sweep leaves it: the delay falls with the rate, by another number for each seed."""
    (folder / "cells").mkdir(parents=True)
    axes = [
        {"key": "links.l1.rate", "values": RATES},
        {"key": "channels.session.transport", "values": TRANSPORTS},
    ]
    cells = [(rate, transport, seed) for rate in RATES for transport in TRANSPORTS for seed in seeds]
    told = {"scenario": "x.toml", "axes": axes, "seeds": seeds, "settings": [], "world": "virtual"}
    keys = [f"{folder.name}{number}" for number in range(len(cells))]
    (folder / "sweep.json").write_text(json.dumps(told | {"cells": keys} | other))
    for key, (rate, transport, seed) in zip(keys, cells, strict=True):
        found = summary(seed)
        late = 10.0 * (3 - RATES.index(rate)) + 5.0 * TRANSPORTS.index(transport) + 0.1 * seed
        found["flows"]["haptic"]["delay_ms"]["p99"] = late
        found["records_sha256"] = key
        (folder / "cells" / f"{key}.json").write_text(json.dumps({"seed": seed, "summary": found}))
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sweep `s` and runs `a` and `b`, in which commands run."""
    sweep(tmp_path / "s")
    for seed, name in enumerate("ab", 1):
        (sample_run.write(tmp_path / name) / "summary.json").write_text(json.dumps(summary(seed)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(*words: str) -> Any:
    return CliRunner().invoke(app, ["plot", *words])


LINES = ("s", "--x", "rate", "--y", "haptic.delay_ms.p99", "--by", "transport")


def test_lines_are_means_over_seeds_with_their_intervals(here: Path) -> None:
    drawn = tcpsbed.plot("s", x="links.l1.rate", y="haptic.delay_ms.p99", by="transport")
    axes = drawn.figure.axes[0]
    udp, merging = (line for line in axes.lines if line.get_label()[0] != "_")
    assert (udp.get_label(), merging.get_label()) == ("udp", "no_merge")
    assert list(udp.get_xdata()) == [0.5, 1, 2], "one unit, that of the largest"
    assert list(udp.get_ydata()) == pytest.approx([30.2, 20.2, 10.2])
    half = interval([30.1, 30.2, 30.3]).half
    band = axes.collections[0].get_paths()[0].get_extents()
    assert half and (band.y0, band.y1) == pytest.approx((10.2 - half, 30.2 + half))
    assert axes.get_xlabel() == "links.l1.rate (Mbit/s)" and axes.get_ylabel() == "haptic delay, p99 (ms)"


@pytest.mark.parametrize("style", STYLES)
def test_a_legend_covers_no_data(here: Path, style: str) -> None:
    labels = [f"udp={'long ' * 12}"]
    figure = tcpsbed.plot("s", y="haptic.delay_ms.p99", labels=labels, style=style).figure
    figure.canvas.draw()
    [legend], [axes] = figure.legends, figure.axes
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    assert figure.get_figwidth() == STYLES[style].width_in


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_what_it_is_made_for(here: Path, kind: str) -> None:
    folders = ["s"] if kind in ("lines", "heat") else ["a", "b"]
    drawn = tcpsbed.plot(*folders, kind=kind)
    assert drawn.save(f"{kind}.svg").stat().st_size > 1000
    axes = drawn.figure.axes[0]
    assert kind in ("waterfall", "box", "violin") or axes.get_xlabel()
    if kind == "time":
        with pytest.raises(DataError, match="too many points"):
            _ = drawn.latex
    else:
        assert drawn.latex.count(r"\\") >= 3


def test_a_box_and_a_waterfall_of_a_sweep_are_across_seeds(here: Path) -> None:
    drawn = tcpsbed.plot("s", kind="box", y="haptic.delay_ms.p99", where="rate=1 Mbit/s")
    assert "udp & 3 & $20.10$ & $20.15$ & $20.20$ & $20.25$ & $20.30$" in drawn.latex
    assert tcpsbed.plot("s", kind="waterfall", y="haptic").latex.count(r"\pm") > 6


def test_a_label_with_a_comma_is_chosen_in_quotes(here: Path) -> None:
    asked: Any = {"kind": "box", "y": "haptic.delay_ms.p99"}
    chosen = tcpsbed.plot("s", **asked, labels="1 Mbit/s=a,b", where='rate="a,b"')
    plain = tcpsbed.plot("s", **asked, where="rate=1 Mbit/s")
    assert chosen.panels[0].rows == plain.panels[0].rows


def test_what_is_drawn_is_chosen_by_the_names_of_the_figure_too(here: Path) -> None:
    names = ["links.l1.rate=bottleneck", "1 Mbit/s=slow", "udp=plain"]
    where = ["bottleneck=500 kbit/s,slow", "transport=plain"]
    (panel,) = tcpsbed.plot("s", y="haptic.delay_ms.p99", labels=names, where=where).panels
    assert len(panel.rows) == 2 and panel.head == ("bottleneck (Mbit/s)", "haptic delay, p99 (ms)"), (
        panel.head
    )


@pytest.mark.parametrize("ending", ["pdf", "svg", "png", "pgf"])
def test_a_file_has_its_origin_and_is_the_same_each_time(here: Path, ending: str) -> None:
    first, again = (said(*LINES, "--out", f"{name}.{ending}") for name in ("one", "two"))
    assert (first.exit_code, again.exit_code) == (0, 0), first.stderr
    content = Path(f"one.{ending}").read_bytes()
    assert content == Path(f"two.{ending}").read_bytes()
    told = content.decode("latin-1")
    command = "tcpsbed plot s --kind lines --y haptic.delay_ms.p99 --x rate --by transport --style ieee"
    version = f"tcpsbed {tcpsbed.__version__}"
    assert all(text in told for text in (command, "seeds 1 to 3", version))
    assert not re.search(r"CreationDate|dc:date|20[0-9]{2}-[01][0-9]-", told)
    assert ending != "pgf" or r"no\_merge" in told


def test_the_command_in_a_file_draws_it_again(here: Path) -> None:
    drawn = tcpsbed.plot("a", "b", kind="ccdf", y=["haptic.delay_ms"], labels="a=one two", log="x", wide=True)
    drawn.save("python.svg")
    words = ["a", "b", "--kind", "ccdf", "--y", "haptic.delay_ms", "--label", "a=one two"]
    assert said(*words, "--style", "ieee", "--wide", "--log", "x", "--out", "shell.svg").exit_code == 0
    assert Path("python.svg").read_bytes() == Path("shell.svg").read_bytes()


def test_latex_prints_the_numbers_alone_or_beside_the_figure(here: Path) -> None:
    alone = said(*LINES, "--latex", "--label", "udp=UDP & more")
    assert alone.exit_code == 0 and alone.stdout.startswith("% haptic delay")
    assert r"links.l1.rate (Mbit/s) & UDP \& more & no\_merge \\" in alone.stdout
    assert r"0.5 & $30.20 \pm 0.25$ & $35.20 \pm 0.25$ \\" in alone.stdout
    both = said(*LINES, "--latex", "--out", "f.png")
    assert both.stdout.endswith("\\end{tabular}\n") and "f.png" in both.stderr and Path("f.png").is_file()


def test_a_file_that_is_not_ours_stays(here: Path) -> None:
    Path("mine.pdf").write_text("mine")
    refused = said("a", "--out", "mine.pdf")
    assert refused.exit_code == 2 and "--force" in refused.stderr and Path("mine.pdf").read_text() == "mine"
    assert said("a", "--out", "mine.pdf", "--force").exit_code == 0
    assert said("b", "--out", "mine.pdf").exit_code == 0, "now it is ours"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "--out is missing; allowed: a file such as fig.pdf"),
        (["no", "--out", "f.pdf"], "no: no such folder; allowed: "),
        (["empty", "--out", "f.pdf"], "empty has no summary.json; allowed: "),
        (["bare", "--out", "f.pdf"], "bare has no finished cell; allowed: run the same"),
        (["a", "s", "--out", "f.pdf"], "found a sweep (s) beside a run (a); allowed: "),
        (["a", "a", "--out", "f.pdf"], "found a folder twice"),
        (["a", "--out", "f.jpg"], "--out: f.jpg: found the ending \".jpg\"; allowed: a file ending in .pdf"),
        (["a", "--y", "haptic.delay_ms.p98", "--out", "f.pdf"], "did you mean haptic.delay_ms.p95"),
        (["a", "--y", "haptik.delay_ms", "--out", "f.pdf"], "(did you mean haptic.delay_ms?)"),
        (["a", "--y", "haptic.latency_ms.p99", "--out", "f.pdf"], "(did you mean haptic.delay_ms.p99"),
        (["a", "--y", "haptic.delay_ms.p99", "--out", "f.pdf"], "lines need two or more; allowed: two runs"),
        (["a", "b", "--kind", "box", "--y", "haptic.loss", "--out", "f.pdf"], "found 1 value of haptic.loss at a"),
        (["a", "b", "--y", "haptic.snr_db", "--out", "f.pdf"], "haptic.snr_db has no value at run = a"),
        (["s", "--y", "haptic.rate_bps", "--y", "haptic.loss", "--y", "video.loss", "--out", "f.pdf"], "haptic.loss in"),
        (["a", "--kind", "cdf", "--y", "haptic.delay_ms.p99", "--out", "f.pdf"], "allowed: haptic.delay_ms, the whole"),
        (["a", "--kind", "waterfall", "--y", "hapti", "--out", "f.pdf"], "which is not a flow (did you mean haptic?)"),
        (["a", "--kind", "time", "--y", "haptic.ipdv_ms", "--out", "f.pdf"], "a keeps no curve of haptic.ipdv_ms"),
        (["a", "--kind", "heat", "--out", "f.pdf"], "a heat map needs two; allowed: "),
        (["a", "--kind", "pie", "--out", "f.pdf"], "--kind: found \"pie\"; allowed: lines, cdf"),
        (["a", "--style", "ieeee", "--out", "f.pdf"], "(did you mean ieee?)"),
        (["s", "--kind", "cdf", "--out", "f.pdf"], "whose cells keep no distributions; allowed: --y"),
        (["s", "--kind", "time", "--out", "f.pdf"], "whose cells keep no curves over time; allowed: "),
        (["s", "--x", "l1.rat", "--out", "f.pdf"], "(did you mean l1.rate?); allowed: links.l1.rate"),
        (["s", "--where", "links.l1.rate=", "--out", "f.pdf"], "tcpsbed: --where: found \"links.l1.rate=\"; allowed: KEY="),
        (
            [*LINES, "--label", "1 Mbit/s=X", "--label", "2 Mbit/s=X", "--out", "f.pdf"],
            '--label: found "X" for 1 Mbit/s and for 2 Mbit/s; allowed: a label for each',
        ),
        (
            [*LINES, "--label", "1 Mbit/s=2 Mbit/s", "--out", "f.pdf"],
            '--label: found "2 Mbit/s" for 1 Mbit/s and for 2 Mbit/s; allowed: a label for each',
        ),
        (
            [*LINES, "--label", "rate=k", "--label", "transport=k", "--out", "f.pdf"],
            '--label: found "k" for links.l1.rate and for channels.session.transport; allowed: a label for each',
        ),
        (
            [*LINES, "--label", "1 Mbit/s=a,b", "--where", "rate=a,b", "--out", "f.pdf"],
            """; a value with a comma in quotes: --where 'rate="a,b"'""",
        ),
        (["s", "--where", "rate=7", "--out", "f.pdf"], "--where: found \"7\"; allowed: 500 kbit/s"),
        (["s", "--y", "haptic.reordered", "--log", "y", "--out", "f.pdf"], "found 0 or less on the y axis"),
        (["s", "--y", "haptic.delay_ms", "--out", "f.pdf"], "such as haptic.delay_ms.p99"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_with_a_remedy(here: Path, words: list[str], message: str) -> None:
    Path("empty").mkdir()
    Path("bare/cells").mkdir(parents=True)
    Path("bare/sweep.json").write_bytes(Path("s/sweep.json").read_bytes())
    done = said(*words)
    assert done.exit_code == 2 and message in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and not Path("f.pdf").exists()


def test_a_number_that_is_not_finite_is_refused_and_some_absent_ones_are_named(here: Path) -> None:
    def spoil(*seeds: int) -> None:
        for file in Path("s/cells").glob("*.json"):
            content = json.loads(file.read_text())
            if content["seed"] in seeds:
                content["summary"]["flows"]["haptic"]["delay_ms"]["p99"] = float("nan")
                file.write_text(json.dumps(content))

    spoil(1)
    some = said(*LINES, "--out", "f.pdf")
    assert some.exit_code == 0 and "has no value in 1 of 3 seeds at links.l1.rate = 500 kbit/s" in some.stderr
    spoil(*SEEDS)
    none = said(*LINES, "--out", "f.pdf")
    assert none.exit_code == 2 and "haptic.delay_ms.p99 has no value at links.l1.rate = " in none.stderr
    curve = json.loads(Path("a/series.json").read_text())
    curve["cdf"]["haptic"]["delay_ms"] = [float("nan")] * len(curve["cdf"]["haptic"]["p"])
    Path("a/series.json").write_text(json.dumps(curve))
    assert said("a", "--y", "haptic.delay_ms", "--out", "g.pdf").exit_code == 2


def test_missing_cells_are_named(here: Path) -> None:
    next(Path("s/cells").glob("*.json")).unlink()
    done = said(*LINES, "--out", "f.pdf")
    assert done.exit_code == 0 and "s: UNFINISHED: 17 of 18 cells of this sweep have a result" in done.stderr
    assert b"17 of 18 cells" in Path("f.pdf").read_bytes()


def test_sweeps_that_differ_in_their_seeds_are_one_and_others_a_factor(here: Path) -> None:
    sweep(here / "more", seeds=(4, 5))
    sweep(here / "other", settings=["flows.haptic.rate=500 Hz"])
    together, apart = (material.read([here / "s", here / name]) for name in ("more", "other"))
    assert len(together.factors) == 2 and {one.seed for one in together.runs} == {1, 2, 3, 4, 5}
    assert [one.key for one in apart.factors] == ["links.l1.rate", "channels.session.transport", "sweep"]
    tcpsbed.plot("s", "other", x="sweep", y="haptic.loss", by="rate", where="transport=udp")


def test_a_factor_is_named_by_its_label_and_the_end_of_several_is_refused(here: Path) -> None:
    called = (*LINES[3:], "--label", "links.l1.rate=bottleneck", "--latex")
    one, other = (said("s", "--x", name, *called).stdout for name in ("rate", "bottleneck"))
    body = r"(?s)\\begin.*"
    assert re.search(body, one)[0] == re.search(body, other)[0] and "bottleneck (Mbit/s)" in one
    sweep(here / "t", axes=[{"key": "traffic.a.packet", "values": ["5 B", "6 B", "7 B"]},
                            {"key": "traffic.b.packet", "values": ["5 B", "6 B"]}])  # fmt: skip
    refused = said("t", "--x", "packet", "--y", "haptic.loss", "--out", "f.pdf")
    message = '--x: found "packet", the end of several factors; allowed: traffic.a.packet, traffic.b.packet'
    assert refused.exit_code == 2 and message in refused.stderr


def test_a_metric_of_any_part_of_the_summary_has_a_path(here: Path) -> None:
    whole = summary()
    for path in ("haptic.loss", "flows.haptic.loss", "haptic.jitter_ms.rfc3550", "wall.simulate_s"):
        assert quantities.quantity(path, whole).number(whole) is not None, path
    whole["metrics"] = [{"name": "effort", "of": "haptic", "value": 2.5, "unit": "J", "meaning": ""}]
    own = quantities.quantity("metrics.effort.haptic.value", whole)
    assert (own.number(whole), own.unit, own.title) == (2.5, "J", "effort.haptic")


def test_without_matplotlib_the_table_is_there_and_the_figure_names_the_package(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert said(*LINES, "--latex").exit_code == 0
    refused = said(*LINES, "--out", "f.pdf")
    assert refused.exit_code == 2 and "pip install 'tcpsbed[plot]'" in refused.stderr


def test_folders_of_runs_and_of_sweeps_are_completed(here: Path) -> None:
    assert complete.result_folders("") == ["a", "b", "s"]


def test_lines_of_metrics_with_different_units_get_a_panel_each(here: Path) -> None:
    drawn = tcpsbed.plot("s", x="rate", y=["haptic.delay_ms.p99", "haptic.loss"], by="transport")
    upper, lower = drawn.figure.axes
    assert "ms" in upper.get_ylabel() and upper.get_xlabel() == "" and lower.get_xlabel()
    assert upper.get_position().y0 > lower.get_position().y0 and len(drawn.figure.legends) == 1
    assert drawn.latex.count("tabular}") == 4
    left, right = tcpsbed.plot(
        "s", x="rate", y=["haptic.delay_ms.p99", "haptic.loss"], by="transport", wide=True
    ).figure.axes
    assert left.get_position().x0 < right.get_position().x0
    with pytest.raises(DataError, match="metrics of one unit; lines also one metric of each unit"):
        tcpsbed.plot("s", y=["haptic.delay_ms.p99", "haptic.delay_ms.mean", "haptic.loss"])


def test_a_figure_of_a_campaign_has_its_labels(here: Path) -> None:
    sweep(here / "c", labels={"links.l1.rate": "bottleneck"})
    assert (
        "bottleneck"
        in tcpsbed.plot("c", x="rate", y="haptic.loss", by="transport").figure.axes[0].get_xlabel()
    )


def test_a_value_is_chosen_by_its_label_too(here: Path) -> None:
    for name, labels in (("c", {TRANSPORTS[0]: "mine"}), ("d", {})):
        sweep(here / name, labels=labels)
    asked = {"x": "rate", "y": "haptic.loss", "by": "transport"}
    mine, written = (
        tcpsbed.plot(of, where=f"transport={value}", **asked).panels[0].rows  # type: ignore[arg-type]
        for of, value in (("c", "mine"), ("d", TRANSPORTS[0]))
    )
    assert mine == written


def test_labels_that_are_values_of_others_win(here: Path) -> None:
    asked = {"x": "rate", "y": "haptic.delay_ms.p99", "by": "transport"}
    swapped = tcpsbed.plot("s", labels=["udp=no_merge", "no_merge=udp"], where="transport=udp", **asked)  # type: ignore[arg-type]
    plain = tcpsbed.plot("s", where="transport=no_merge", **asked)  # type: ignore[arg-type]
    (one,), (other,) = swapped.panels, plain.panels
    assert [row[-1] for row in one.rows] == [row[-1] for row in other.rows]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["pdf", "svg", "png", "pgf"])
def test_no_room_for_a_figure_is_one_line(here: Path, ending: str) -> None:
    words = ("plot", "s", "--y", "haptic.delay_ms.p99", "--out", f"fig.{ending}")
    limited = ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", sys.executable, "-m", "tcpsbed", *words]
    env = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1"
    }  # it would cut byte code, too, for every process after this one
    done = subprocess.run(limited, cwd=here, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"tcpsbed: fig.{ending}: File too large; allowed: ")
    assert not list(here.glob("*fig*"))


def test_factors_that_were_zipped_are_one_axis(here: Path) -> None:
    content = json.loads(Path("s/sweep.json").read_text())
    content["axes"].append({"key": "traffic.cbr.rate", "values": ["100 kbit/s", "200 kbit/s", "300 kbit/s"]})
    rates = dict(zip(RATES, content["axes"][-1]["values"], strict=True))
    content["points"] = [(rate, one, rates[rate]) for rate in RATES for one in TRANSPORTS]
    Path("s/sweep.json").write_text(json.dumps(content))
    for options in ({"x": "links.l1.rate", "by": "transport"}, {"by": "transport"}, {"x": "cbr.rate"}):
        drawn = tcpsbed.plot("s", y="haptic.delay_ms.p99", **options)  # type: ignore[arg-type]
        [panel] = drawn.panels
        assert len(panel.head) == 1 + len(TRANSPORTS) and len(panel.rows) == len(RATES)
        assert sum("changes with" in note for note in drawn.notes) == 1


def test_values_that_no_run_has_together_are_refused(here: Path) -> None:
    content = json.loads(Path("s/sweep.json").read_text())
    content["axes"].append(
        {"key": "traffic.cbr.packet", "values": [f"{50 + n} B" for n in range(len(TRANSPORTS))]}
    )
    follows = dict(zip(TRANSPORTS, content["axes"][-1]["values"], strict=True))
    content["points"] = [(rate, one, follows[one]) for rate in RATES for one in TRANSPORTS]
    Path("s/sweep.json").write_text(json.dumps(content))
    where = ["cbr.packet=50 B", f"transport={TRANSPORTS[-1]}"]
    with pytest.raises(
        DataError, match=r"which no run has beside the values before it; allowed: .*transport="
    ):
        tcpsbed.plot("s", y="haptic.delay_ms.p99", where=where)


def test_of_factors_that_were_zipped_with_each_other_only_what_was_run_is_drawn(here: Path) -> None:
    content = json.loads(Path("s/sweep.json").read_text())
    follows = {one: f"{50 + 10 * number} B" for number, one in enumerate(TRANSPORTS)}
    content["axes"].append({"key": "traffic.cbr.packet", "values": list(follows.values())})
    content["points"] = [(rate, one, follows[one]) for rate in RATES for one in TRANSPORTS]
    Path("s/sweep.json").write_text(json.dumps(content))
    for by in ((), ("transport",), ("cbr.packet",)):
        drawn = tcpsbed.plot("s", x="links.l1.rate", y="haptic.delay_ms.p99", by=by)
        [panel] = drawn.panels
        called = follows.values() if by == ("cbr.packet",) else [one.strip('"') for one in TRANSPORTS]
        assert set(panel.head[1:]) == set(called), "nothing that was not run"
        [note] = [note for note in drawn.notes if "changes with" in note]
        pair = ("transport", "packet") if by == ("cbr.packet",) else ("packet", "transport")
        assert note.split(" changes with ")[0].endswith(pair[0]) and note.endswith(pair[1]), note


@pytest.mark.parametrize(
    "old, new", [("transport", "Transport"), ("channels.session.transport", "Transport")]
)
def test_a_name_for_a_factor_is_taken_by_its_end_too(here: Path, old: str, new: str) -> None:
    drawn = tcpsbed.plot("s", y="haptic.delay_ms.p99", by="transport", labels=f"{old}={new}")
    assert drawn.panels[0].legend == new


def test_a_name_for_what_is_not_there_is_refused(here: Path) -> None:
    with pytest.raises(DataError, match='--label: found "trnsport"'):
        tcpsbed.plot("s", y="haptic.delay_ms.p99", labels="trnsport=T")
