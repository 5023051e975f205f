"""Results of a study: table, csv, JSON and figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from tcpsbed.analysis import stats
from tcpsbed.analysis.stats import Test
from tcpsbed.drawing import canvas, keyed, styled
from tcpsbed.lab.study.ratings import GRADES, SCALES, Rating
from tcpsbed.lab.study.statistics import Comparison, Mean, Overall, comparisons, means, overall
from tcpsbed.results import files

SCRIPTED = "The subjects were scripts: nothing here is about people."

MEASURED = ("glass_to_glass_ms", "disturbances", "away", "run")
"""Last columns of `ratings.csv`."""


def told(ratings: Sequence[Rating], conditions: Sequence[str], *, scripted: bool) -> dict[str, Any]:
    """Everything as `results.json` has it."""
    return {
        "version": 2,
        "scripted": scripted,
        "subjects": len({rating.subject for rating in ratings}),
        "grades": {str(grade): text for grade, text in GRADES.items()},
        "means": [asdict(mean) for mean in means(ratings, conditions)],
        "tests": [asdict(pair) for pair in comparisons(ratings, conditions)],
        "overall": [asdict(one) for one in overall(ratings, conditions)],
        "correction": "Holm 1979, over all tests of the same name",
        "scipy": stats.available(),
    }


def write(folder: Path, ratings: Sequence[Rating], conditions: Sequence[str], *, scripted: bool) -> None:
    """Writes `results.json` and `ratings.csv`."""
    document = json.dumps(told(ratings, conditions, scripted=scripted), indent=1) + "\n"
    files.write_whole(folder / "results.json", document)
    flows = sorted({flow for rating in ratings for flow in rating.delay_ms})
    with (
        files.whole(folder / "ratings.csv") as part,
        part.open("w", encoding="utf-8", newline="") as file,
    ):
        rows = csv.writer(file)
        measured = [f"{flow}_delay_ms" for flow in flows]
        rows.writerow(["subject", "position", "condition", *SCALES, "at", *measured, *MEASURED])
        for r in ratings:
            rows.writerow(
                [r.subject, r.position, r.condition, *(r.grades[scale] for scale in SCALES), r.at]
                + [r.delay_ms.get(flow, "") for flow in flows]
                + ["" if r.glass_ms is None else r.glass_ms, r.disturbances, r.away, r.run]
            )


def table(ratings: Sequence[Rating], conditions: Sequence[str], *, scripted: bool) -> str:
    """Means and tests as text."""
    if not ratings:
        return "nobody has rated anything yet\n"
    lines = [SCRIPTED, ""] if scripted else []
    lines += _means(ratings, conditions)
    pairs = comparisons(ratings, conditions)
    if pairs:
        lines += ["", *_tests(pairs), *_overall(overall(ratings, conditions))]
        if not stats.available():
            lines.append(stats.REMEDY)
    disturbed = sum(rating.disturbances > 0 or rating.away > 0 for rating in ratings)
    if disturbed:
        lines += [
            "",
            f"{disturbed} of {len(ratings)} presentations were disturbed: see disturbances and away in ratings.csv",
        ]
    return "\n".join(lines) + "\n"


def _means(ratings: Sequence[Rating], conditions: Sequence[str]) -> list[str]:
    by = {(mean.condition, mean.scale): mean for mean in means(ratings, conditions)}
    width = max(len(name) for name in ("condition", *conditions))
    lines = [
        f"{'condition':{width}}  " + "".join(f"{scale:>18}" for scale in SCALES) + f"{'glass to glass':>18}"
    ]
    for name in conditions:
        cells = [_cell(by.get((name, scale))) for scale in SCALES]
        glass = [r.glass_ms for r in ratings if r.condition == name and r.glass_ms is not None]
        cells.append(f"{fmean(glass):.1f} ms" if glass else "-")
        lines.append(f"{name:{width}}  " + "".join(f"{cell:>18}" for cell in cells))
    return [*lines, "mean (standard deviation; ratings); 5 imperceptible … 1 very annoying"]


def _cell(mean: Mean | None) -> str:
    if mean is None:
        return "-"
    return f"{mean.mean:.2f} (" + ("" if mean.sd is None else f"{mean.sd:.2f}; ") + f"{mean.n})"


def _tests(pairs: Sequence[Comparison]) -> list[str]:
    width = max(len(f"{pair.first} - {pair.second}") for pair in pairs)
    head = f"{'difference of the means':>{width}}  {'':13}{'n':>4}{'d':>7}{'95 %':>9}{'bootstrap':>16}"
    head += f"{'t':>8}{'p':>9}{'p Holm':>9}{'g':>7}{'W':>8}{'p':>9}{'p Holm':>9}{'r':>7}"
    lines = ["paired t-tests and Wilcoxon's signed ranks, two-sided", head]
    for pair in pairs:
        half = "-" if pair.half is None else f"±{pair.half:.2f}"
        drawn = "-" if pair.bootstrap is None else "{:.2f} to {:.2f}".format(*pair.bootstrap)
        lines.append(
            f"{pair.first + ' - ' + pair.second:>{width}}  {pair.scale:13}{pair.n:4d}{pair.difference:7.2f}{half:>9}"
            f"{drawn:>16}{_test(pair.t, '.2f')}{_test(pair.wilcoxon, 'g')}"
        )
    return [
        *lines,
        "95 %: Student's t; bootstrap: 95 %, BCa; p Holm: corrected for all tests of the column (Holm 1979)",
        f"g: {stats.HEDGES_G} of the differences; W: the smaller sum of ranks; r: {stats.RANK_BISERIAL}",
    ]


def _test(test: Test | None, form: str) -> str:
    """Statistic, p, p of Holm and effect, in their columns."""
    if test is None:
        return f"{'-':>8}{'-':>9}{'-':>9}{'-':>7}"
    shown = "-" if test.statistic is None else f"{test.statistic:{form}}"
    return f"{shown:>8}{_p(test.p):>9}{_p(test.p_holm):>9}{test.effect:7.2f}"


def _overall(found: Sequence[Overall]) -> list[str]:
    """Friedman's test of each scale, where there is one."""
    if not any(one.friedman for one in found):
        return []
    lines = ["", f"all conditions (Friedman){'':8}{'n':>4}{'chi²':>8}{'p':>9}{'p Holm':>9}{'W':>7}"]
    lines += [f"{one.scale:33}{one.n:4d}{_test(one.friedman, '.2f')}" for one in found]
    return [*lines, f"W: {stats.KENDALLS_W}, from 0 (subjects disagree) to 1 (all rank alike)"]


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


@styled()
def figure(ratings: Sequence[Rating], conditions: Sequence[str], title: str, *, scripted: bool) -> Any:
    """Draws means with their deviations, as a figure of matplotlib.

    Raises
    ------
    DataError
        If matplotlib is not there.
    """
    drawn = canvas()
    axes = drawn.add_subplot()
    by = {(mean.condition, mean.scale): mean for mean in means(ratings, conditions)}
    wide = 0.8 / len(conditions)
    for number, name in enumerate(conditions):
        known = [(place, by[name, scale]) for place, scale in enumerate(SCALES) if (name, scale) in by]
        axes.bar(
            [place + (number - (len(conditions) - 1) / 2) * wide for place, _ in known],
            [mean.mean for _, mean in known],
            wide * 0.92,
            yerr=[mean.sd or 0.0 for _, mean in known],
            capsize=3,
            label=name,
        )
    axes.set_xticks(range(len(SCALES)), list(SCALES))
    axes.set_ylim(0.5, 5.5)
    axes.set_yticks(list(GRADES), [f"{grade} {text}" for grade, text in GRADES.items()], fontsize=8)
    subjects = len({rating.subject for rating in ratings})
    axes.set_title(
        f"{title}: {subjects} {'scripts' if scripted else 'subjects'}, mean and deviation", fontsize=9
    )
    keyed(drawn, axes)
    return drawn
