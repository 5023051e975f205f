"""`sweep.html`: a figure per flow and metric, with the first axis as x, the others as lines, and intervals across seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tcpsbed import results
from tcpsbed.analysis import metrics
from tcpsbed.campaign.grid import Axis
from tcpsbed.campaign.results import COLUMNS, Group, Row, cells_of, groups, headings, remark
from tcpsbed.campaign.survey import Survey
from tcpsbed.errors import counted
from tcpsbed.palette import PALETTE
from tcpsbed.views import charts, html, markup
from tcpsbed.views.charts import Chart, Line, Sheet
from tcpsbed.views.markup import Html
from tcpsbed.views.media import VARIANT
from tcpsbed.views.tables import Field

QUALITY = ("psnr_db", "ssim")
"""Metrics of pictures that are drawn over the bit rate."""


def write(survey: Survey, rows: Sequence[Row], failures: int) -> Path:
    """Writes the page into the sweep's folder."""
    page = survey.out / "sweep.html"
    results.write_whole(page, render(survey, rows, failures))
    return page


def render(survey: Survey, rows: Sequence[Row], failures: int) -> str:
    """The page as text."""
    sheet = Sheet()
    sections = [_flow(flow, found, survey.axes, sheet) for flow, found in groups(rows, survey.axes).items()]
    disturbed = len(
        {
            tuple(row[key] for key in ("seed", *(a.key for a in survey.axes)))
            for row in rows
            if row["disturbed"]
        }
    )
    body = _header(survey, failures, disturbed, remark(rows, survey.axes)) + "".join(sections)
    return html.document(
        f"{survey.file.stem} sweep · tcpsbed", body, sheet, {"events": [], "windows": [], "warmup": None}
    )


def _header(survey: Survey, failures: int, disturbed: int, same: str) -> Html:
    from tcpsbed import __version__

    count = len(survey.seeds)
    seeds = f"{count}: {survey.seeds[0]} to {survey.seeds[-1]}" if count > 1 else str(survey.seeds[0])
    shown = markup.facts(
        [
            ("scenario", str(survey.file)),
            ("world", survey.world),
            ("seeds, the same everywhere", seeds),
            ("tcpsbed", __version__),
        ]
        + [(axis.key, ", ".join(axis.values)) for axis in survey.axes]
        + [("set everywhere", ", ".join(survey.settings))]
    )
    banner = ""
    if failures:
        said = f"<strong>{counted(failures, 'cell')} failed</strong>, missing here; see the folder failed."
        banner = f'<div class="banner error">{said}</div>'
    if disturbed:
        said = f"<strong>{counted(disturbed, 'run')} disturbed</strong>: see the column; check before trusting the numbers."
        banner += f'<div class="banner warning">{said}</div>'
    note = "Points are means over seeds; whiskers are 95 % confidence intervals (Student's t)."
    note += f" Here {same}." if same else ""
    return Html(
        f'<header><p class="kind">sweep</p><h1>{markup.escaped(survey.file.stem)}</h1>{shown}{banner}'
        f'<p class="note">{note}</p></header>'
    )


def _flow(flow: str, found: Sequence[Group], axes: Sequence[Axis], sheet: Sheet) -> Html:
    drawn = [_figure(found, axes, column) for column in COLUMNS] + _quality(found)
    figures = Html(
        sheet.place(drawn)
        + (markup.note(f"{VARIANT}.") if any(c.title.startswith("SSIM") for c in drawn) else "")
    )
    table = markup.table(headings(axes), [[*group.values, *cells_of(group, found[0])] for group in found])
    return markup.section(f"flow-{flow}", flow, figures, table)


def _quality(found: Sequence[Group]) -> list[Chart]:
    """Quality of pictures over their bit rate, a point for each combination of values, where pictures were compared."""
    charts_ = []
    for column in QUALITY:
        metric = metrics.section("media").part(column)
        points = []
        for group in found:
            rate, quality = group.mean("coded_bps"), group.mean(column)
            if rate is not None and quality is not None:
                points.append((rate.mean / 1e6, quality.mean, quality.half))
        if not points:
            continue
        x, y, half = zip(*sorted(points, key=lambda point: point[0]), strict=True)
        line = Line(metric.title, list(y), PALETTE[0])
        title = f"{metric.title} over bit rate"
        shown = Chart(title, list(x), "Mbit/s", metric.axis, [line], over_time=False, whiskers=[half])
        charts_.append(shown)
    return charts_


def _figure(found: Sequence[Group], axes: Sequence[Axis], column: Field) -> Chart:
    first, others = axes[0], axes[1:]
    title = column.title[:1].upper() + column.title[1:]
    label, factor = (f"{title} (%)", 100.0) if column.metric.unit == "share" else (column.metric.axis, 1.0)
    numbers = first.numbers()
    x = dict(zip(first.values, numbers[0] if numbers else range(len(first.values)), strict=True))
    order = sorted(first.values, key=lambda value: x[value])
    lines, whiskers = [], []
    names = list(dict.fromkeys(group.values[1:] for group in found))
    paint = charts.colors(", ".join(name) for name in names)
    for number, name in enumerate(names):
        by_x = {group.values[0]: group.mean(column.name) for group in found if group.values[1:] == name}
        means = [by_x.get(value) for value in order]
        text = ", ".join(name)
        shown = ", ".join(f"{axis.key} = {value}" for axis, value in zip(others, name, strict=True)) or title
        values = [None if mean is None else mean.mean * factor for mean in means]
        lines.append(Line(shown, values, paint[text], dashed=number >= len(PALETTE)))
        whiskers.append([None if mean is None or mean.half is None else mean.half * factor for mean in means])
    unit = f" ({numbers[1]})" if numbers and numbers[1] else ""
    categories = () if numbers else tuple(order)
    return Chart(
        title,
        [x[value] for value in order],
        f"{first.key}{unit}",
        label,
        lines,
        over_time=False,
        whiskers=whiskers,
        categories=categories,
    )
