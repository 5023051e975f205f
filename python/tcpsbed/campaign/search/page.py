"""`search.html`: the result, a chart, and all points that ran."""

from __future__ import annotations

from collections.abc import Iterator

from tcpsbed.campaign.search.boundary import Boundary
from tcpsbed.campaign.search.contour import BoundaryCurve
from tcpsbed.campaign.search.optimum import Optimum
from tcpsbed.studio import freeze
from tcpsbed.views import markup
from tcpsbed.views.charts import Chart, Sheet


def render(found: Boundary | BoundaryCurve | Optimum) -> str:
    """The page as text."""
    from tcpsbed import __version__

    sheet, context = Sheet(), found.context
    head, *rest = found.sentences
    columns, lines = found.table
    facts = [
        ("scenario", context.name),
        ("world", context.world),
        ("seeds", f"at most {context.seeds}, from {context.first_seed}"),
        ("runs", context.runs),
        *((one.key, f"{one.between or ', '.join(one.values)}") for one in found.factors),
        ("tcpsbed", __version__),
    ]
    body = [
        markup.listing(rest),
        markup.section("figure", "Figure", sheet.place(_charts(found))),
        markup.section("points", "Points", markup.block(markup.table(columns, lines))),
    ]
    return freeze.page(f"{context.name} search", [("", head)], facts, body, sheet)


def _charts(found: Boundary | BoundaryCurve | Optimum) -> Iterator[Chart]:
    if isinstance(found, Boundary):
        yield from _along(found)
    elif isinstance(found, BoundaryCurve):
        yield from _curve(found)
    else:
        numbers = range(1, len(found.trials) + 1)
        means = [one.mean.mean for one in found.trials]
        halves = [one.mean.half for one in found.trials]
        yield Chart(
            "Points in their order", numbers, "point", found.metric.column.metric.axis, {"mean": means},
            whiskers=[halves],
        )  # fmt: skip


def _along(found: Boundary) -> Iterator[Chart]:
    known = sorted(found.line.known.items())
    x = [found.factor.numbers[place] for place, _ in known]
    lines = {
        "median": [votes.middle for _, votes in known],
        "least": [min(votes.values) for _, votes in known],
        "greatest": [max(votes.values) for _, votes in known],
        found.condition.text: [found.condition.limit] * len(x),
    }
    yield Chart("Metric over seeds", x, found.factor.label, found.condition.metric.column.metric.axis, lines)
    shares = [sum(votes.holding) / votes.seeds for _, votes in known]
    yield Chart("Share of seeds under which it holds", x, found.factor.label, "share", {"share": shares})


def _curve(found: BoundaryCurve) -> Iterator[Chart]:
    """Over the first factor the places at which the curve crosses its values."""
    first, second = found.factors
    places: dict[float, list[float]] = {}
    for one in found.crossings:
        if one.low[0] == one.high[0]:
            places.setdefault(one.at[0], []).append(one.at[1])
    x = sorted(places)
    most = max(map(len, places.values()), default=0)
    lines = {
        found.condition.text if not n else f"also at, {n + 1}": [
            sorted(places[at])[n] if n < len(places[at]) else None for at in x
        ]
        for n in range(most)
    }
    yield Chart("The curve", x, first.label, second.label, lines)
