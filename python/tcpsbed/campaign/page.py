"""`sweep.html`: a figure per flow and metric, with the first axis as x, the others as lines, and intervals across seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tcpsbed import results
from tcpsbed.analysis import metrics
from tcpsbed.analysis.stats import Interval
from tcpsbed.campaign.results import COLUMNS, Group, Row, Shown, naming, remarks
from tcpsbed.campaign.survey import Survey
from tcpsbed.errors import counted
from tcpsbed.studio import freeze
from tcpsbed.views import markup, numbers
from tcpsbed.views.charts import Chart, Sheet
from tcpsbed.views.markup import Html
from tcpsbed.views.media import VARIANT
from tcpsbed.views.sentence import Said
from tcpsbed.views.tables import Field, field

MOST_NAMED = 40
"""Values of a factor that are listed."""
QUALITY = ("psnr_db", "ssim")
"""Metrics of pictures that are drawn over the bit rate."""


def write(survey: Survey, rows: Sequence[Row], failures: int) -> Path:
    """Writes the page into the sweep's folder."""
    page = survey.out / "sweep.html"
    results.write_whole(page, render(survey, rows, failures))
    return page


def render(survey: Survey, rows: Sequence[Row], failures: int) -> str:
    """The page as text."""
    from tcpsbed import __version__

    sheet, shown = Sheet(), survey.shown
    found = shown.groups(rows)
    drawn = [_flow(flow, of, shown, sheet) for flow, of in found.items()]
    keys = ("seed", *(axis.key for axis in survey.axes))
    disturbed = len({tuple(row[key] for key in keys) for row in rows if row["disturbed"]})
    count = len(survey.seeds)
    facts = [
        ("scenario", str(survey.file)),
        ("world", survey.world),
        (
            "seeds, the same everywhere",
            f"{count}: {survey.seeds[0]} to {survey.seeds[-1]}" if count > 1 else str(survey.seeds[0]),
        ),
        ("tcpsbed", __version__),
        *((axis.key, ", ".join(axis.values[:MOST_NAMED])) for axis in survey.axes),
        ("set everywhere", ", ".join(survey.settings)),
    ]
    above = [
        markup.banner(
            "bad",
            f"{counted(failures, 'cell')} failed",
            ["missing here; see the folder failed"] * bool(failures),
        ),
        markup.banner(
            "doubt",
            f"{counted(disturbed, 'run')} disturbed",
            ["see the column; check before trusting the numbers"] * bool(disturbed),
        ),
        markup.note("Points are means over seeds; whiskers are 95 % confidence intervals (Student's t)."),
        *map(markup.note, remarks(rows, shown)),
    ]
    return freeze.page(
        f"{survey.file.stem} {survey.kind}", _sentence(found, shown), facts, [*above, *drawn], sheet
    )


def _sentence(found: Mapping[str, Sequence[Group]], shown: Shown) -> Said:
    """Between which combinations the 99th percentile of a flow's delay differs most, if it does at all."""
    late = COLUMNS[1]
    spread = []
    for flow, of in found.items():
        means = [(mean.mean, group) for group in of if (mean := group.mean(late)) is not None]
        if len(means) > 1:
            least, most = min(means, key=lambda pair: pair[0]), max(means, key=lambda pair: pair[0])
            spread.append((most[0] - least[0], flow, least, most))
    if not spread:
        return [("", f"{counted(sum(map(len, found.values())), 'combination')} of values.")]
    _, flow, (low, first), (high, last) = max(spread, key=lambda one: one[0])
    apart = last.against(first, late)
    if apart is None or numbers.nothing(apart.mean, apart.half) or high == low:
        return [("", f"The {shown.title(late, flow)} of {flow} is not different between these values.")]
    named = naming(group.values for group in found[flow])
    where = [", ".join(_pairs(group.values, named, shown)) for group in (first, last)]
    change = f"from {late.shown(low)} to {late.shown(high)} {late.unit}"
    return [
        ("much", f"The {shown.title(late, flow)} of {flow} goes {change}"),
        ("", f", from {where[0]} to {where[1]}."),
    ]


def _pairs(values: tuple[str, ...], places: Sequence[int], shown: Shown) -> list[str]:
    """Keys and values at some places of a combination, as people read them."""
    return [f"{shown.called(shown.axes[place].key)} = {shown.called(values[place])}" for place in places]


def _flow(flow: str, found: Sequence[Group], shown: Shown, sheet: Sheet) -> Html:
    drawn = [_figure(flow, found, shown, column) for column in shown.of(flow).columns] + _quality(found)
    figures = Html(
        sheet.place(drawn)
        + (markup.note(f"{VARIANT}.") if any(c.title.startswith("SSIM") for c in drawn) else "")
    )
    lines = [[*shown.named(g), *line] for g, line in zip(found, shown.lines(found), strict=True)]
    table = markup.table(shown.headings(flow), lines)
    return markup.section(f"flow-{flow}", flow, figures, markup.block(table))


def _quality(found: Sequence[Group]) -> list[Chart]:
    """Quality of pictures over their bit rate, a point for each combination of values, where pictures were compared."""
    charts_ = []
    for column in QUALITY:
        metric = metrics.section("media").part(column)
        fields = [field(metrics.section("media").parts, name) for name in ("coded_bps", column)]
        points = []
        for group in found:
            rate, quality = map(group.mean, fields)
            if rate is not None and quality is not None:
                points.append((rate.mean / 1e6, quality.mean, quality.half))
        if not points:
            continue
        x, y, half = zip(*sorted(points, key=lambda point: point[0]), strict=True)
        title = f"{metric.title} over bit rate"
        charts_.append(Chart(title, x, "Mbit/s", metric.axis, {metric.title: y}, whiskers=[half]))
    return charts_


def _figure(flow: str, found: Sequence[Group], told: Shown, column: Field) -> Chart:
    first = told.axes[0]
    title = told.title(column, flow)
    title = title[:1].upper() + title[1:]
    label, factor = (f"{title} (%)", 100.0) if column.metric.unit == "share" else (column.metric.axis, 1.0)
    along = first.numbers()
    x = dict(zip(first.values, along[0] if along else range(len(first.values)), strict=True))
    order = sorted(first.values, key=lambda value: x[value])
    by_line: dict[str, dict[str, Interval | None]] = {}
    others = [place for place in naming(group.values for group in found) if place]
    for group in found:
        line = by_line.setdefault(", ".join(_pairs(group.values, others, told)) or title, {})
        line[group.values[0]] = group.mean(column)
    lines, whiskers = {}, []
    for shown, by_x in by_line.items():
        means = [by_x.get(value) for value in order]
        lines[shown] = [None if mean is None else mean.mean * factor for mean in means]
        whiskers.append([None if mean is None or mean.half is None else mean.half * factor for mean in means])
    unit = f" ({along[1]})" if along and along[1] else ""
    return Chart(
        title,
        [x[value] for value in order],
        f"{told.called(first.key)}{unit}",
        label,
        lines,
        whiskers=whiskers,
        categories=() if along else tuple(map(told.called, order)),
    )
