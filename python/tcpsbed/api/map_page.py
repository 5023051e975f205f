"""`map.html`: the mean overshoot over the round trip, at some of the losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpsbed import __version__
from tcpsbed.lab.control import verification
from tcpsbed.studio import freeze
from tcpsbed.views import markup
from tcpsbed.views.charts import Chart, Sheet

if TYPE_CHECKING:
    from tcpsbed.api.map import LoopMap


def render(done: LoopMap) -> str:
    """The page as text."""
    found, name, sentences = done.map, done.name, done.sentences
    sheet, grid = Sheet(), found.grid
    lines = {f"loss {100 * grid.loss[row]:.3g} %": found.mean["overshoot"][row] for row in found.told}
    chart = Chart("Mean overshoot", grid.rtt_ms, "RTT (ms)", "overshoot (% of the step)", lines)
    body = [
        markup.section("overshoot", "Overshoot", sheet.place([chart])),
        markup.section("limits", "Where the limit is", markup.listing([*sentences, *done.remarks])),
    ]
    if done.points:
        compared = freeze.table(verification.laid(done.points)) + markup.note(verification.AGREE)
        body.append(markup.section("packets", "Compared with packets", compared))
    facts = [
        ("scenario", name),
        ("runs per cell", found.bench.runs),
        ("cells", f"{len(grid.rtt_ms)} x {len(grid.loss)}"),
        ("good", found.bench.limits),
        ("tcpsbed", __version__),
    ]
    return freeze.page(
        f"{name} map", [("", f"{sentences[0][:1].upper()}{sentences[0][1:]}.")], facts, body, sheet
    )
