"""Readings of what Gokhale 2017 leaves open: what "no trend" means, how VBR varies, how large cross packets are.

```text
trend (4) x variation of the VBR (3) x cross packet (50, 137, 500 B) ─► largest haptic delay, loss at R_cbr 400
```
The default of `trend` is the one reading that holds the published 29.738 ms of table I anywhere: where each packet draws a
rate between 320 and 480 kbit/s, which is 395 on the average. Beside 400 on the average none does. (Gokhale 2017)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpsbed.lab.reproduce import dumbbell
from tcpsbed.lab.reproduce.dumbbell import Case
from tcpsbed.lab.reproduce.study import named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed.lab.reproduce.study import Study

TRENDS = ("ends", "slope", "strict", "ignored")
VARIATIONS = ("per-packet", "piecewise", "size")
SIZES_B = (50, 137, 500)
DURATION_S = 20.0
Cell = tuple[str, str, int]
CHOSEN = ("ends", "per-packet", 50)
"""The one of them that keeps the limit, for which it was chosen."""


def compare(study: Study) -> None:
    """Runs every combination; the rows are the one that was chosen, and of the others the one with the least delay."""
    cells = [(t, v, s) for t in TRENDS for v in VARIATIONS for s in SIZES_B]

    def run(cell: Cell) -> tuple[float, float]:
        seen = dumbbell.run(study, case(*cell))
        return seen.peak("haptic"), seen.loss("haptic")

    found = study.each(cells, run)
    study.compare("reading-ends", found[CHOSEN][0])
    others = {named(cell): found[cell][0] for cell in cells if cell != CHOSEN}
    least = min(others, key=lambda name: others[name])
    told = f'{least} B; the others up to {max(others.values()):.1f} ms (figure "readings")'
    study.compare("reading-others", others[least], told)

    def draw(figure: Figure) -> None:
        figure.set_size_inches(14, 3.2)
        axes = figure.subplots()
        axes.axis("off")
        columns = [(v, s) for v in VARIATIONS for s in SIZES_B]
        texts = [["{:.1f} ms, {:.1f} %".format(*found[t, v, s]) for v, s in columns] for t in TRENDS]
        heads = [f"{v}, {s} B" for v, s in columns]
        axes.table(texts, rowLabels=list(TRENDS), colLabels=heads, loc="center").scale(1.0, 1.6)

    title = f"Published rule, R_cbr 400, {DURATION_S:g} s: largest haptic delay and loss by reading"
    study.figure("readings", title, draw)


def case(trend: str, vary: str, size_b: int) -> Case:
    """The run of one combination."""
    packets = [f'traffic.{name}.packet="{size_b} B"' for name in ("cbr", "vbr")]
    return Case("dpm", 400.0, DURATION_S, f"trend = '{trend}'", (*packets, f"traffic.vbr.vary='{vary}'"))
