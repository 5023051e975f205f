"""Styles of figures: widths of columns, sizes of letters, colours; and legends beside the data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tcpsbed import palette
from tcpsbed.palette import matplotlib

SERIF, SANS = "STIXGeneral", "DejaVu Sans"
"""Come with matplotlib, so that a figure is the same on every machine."""
MARKERS = "os^DvPX*"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))
"""Lines stay apart on grey paper, too."""


@dataclass(frozen=True)
class Style:
    """Look of a figure.

    Attributes
    ----------
    width_in, wide_in, height_in
        Size in inches: of one column, of both, and the height.
    letters_pt, line_pt
        Sizes of letters and lines.
    dpi
        Pixels an inch where a figure has any.
    """

    name: str
    width_in: float
    wide_in: float
    height_in: float
    letters_pt: float
    line_pt: float
    family: str = SANS
    dpi: int = 150
    colors: tuple[str, ...] = palette.PALETTE
    paper: str = palette.PAPER
    ink: str = palette.INK
    soft: str = palette.SOFT
    rule: str = palette.RULE
    component: str = palette.COMPONENT
    link: str = palette.LINK
    heat: str = "viridis"

    def color(self, number: int) -> str:
        """Of the line with this number."""
        return self.colors[number % len(self.colors)]

    @property
    def settings(self) -> dict[str, Any]:
        """What matplotlib calls it."""
        thin, near = max(0.5, 0.5 * self.line_pt), 0.4 * self.letters_pt
        return {
            "axes.axisbelow": True,
            "axes.edgecolor": self.soft,
            "axes.facecolor": self.paper,
            "axes.formatter.use_mathtext": True,
            "axes.grid": True,
            "axes.labelcolor": self.ink,
            "axes.linewidth": thin,
            "axes.prop_cycle": f"cycler('color', {list(self.colors)})",
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.h_pad": 0.5 * self.letters_pt / 72,
            "figure.constrained_layout.w_pad": 0.5 * self.letters_pt / 72,
            "figure.facecolor": self.paper,
            "font.family": self.family,
            "font.size": self.letters_pt,
            "axes.titlesize": self.letters_pt,
            "axes.labelpad": near,
            "axes.labelsize": self.letters_pt,
            "xtick.labelsize": 0.9 * self.letters_pt,
            "ytick.labelsize": 0.9 * self.letters_pt,
            "legend.fontsize": 0.9 * self.letters_pt,
            "legend.borderpad": 0.2,
            "legend.frameon": False,
            "legend.handlelength": 2.2,
            "grid.color": self.rule,
            "grid.linewidth": thin,
            "lines.linewidth": self.line_pt,
            "lines.markersize": 3 * self.line_pt,
            "mathtext.fontset": "stix" if self.family == SERIF else "dejavusans",
            "savefig.facecolor": self.paper,
            "text.color": self.ink,
            "xtick.color": self.soft,
            "ytick.color": self.soft,
            "xtick.labelcolor": self.ink,
            "ytick.labelcolor": self.ink,
            **{f"{letter}tick.major.{what}": near for letter in "xy" for what in ("pad", "size")},
            "xtick.major.width": thin,
            "ytick.major.width": thin,
        }


_ON_DARK = {
    "colors": palette.ON_DARK,
    "paper": palette.DARK_PAPER,
    "ink": palette.DARK_INK,
    "soft": palette.DARK_SOFT,
    "rule": palette.DARK_RULE,
    "component": palette.ON_DARK[0],
}
STYLES = {
    one.name: one
    for one in (
        Style("ieee", 3.5, 7.16, 2.3, 8, 1.0, SERIF, 300),
        Style("acm", 3.33, 7.0, 2.2, 8, 1.0, SERIF, 300),
        Style("slides", 10, 10, 5.6, 18, 2.5),
        Style("dark", 10, 10, 5.6, 18, 2.5, **_ON_DARK),  # type: ignore[arg-type]
        Style("page", 8, 8, 4.5, 9, 1.5),
    )
}
"""By name: one column of an IEEE or ACM paper, 16:9 slides on a light or a dark ground, and a page on a screen."""
PAGE = STYLES["page"]


@contextmanager
def styled(style: Style = PAGE) -> Iterator[None]:
    """What matplotlib makes inside has this style, whatever the user's matplotlibrc says."""
    whole = matplotlib()
    with whole.rc_context():
        whole.rcdefaults()
        whole.rcParams.update(style.settings)
        yield


STACKED = 0.8
"""Height of a panel below others, of that of a figure."""


def canvas(style: Style = PAGE, *, wide: bool = False, panels: int = 1) -> Any:
    """An empty figure; what is drawn on it must be drawn inside `styled`. Panels are beside each other where it is wide."""
    more = 0 if wide else STACKED * (panels - 1)
    size = (style.wide_in if wide else style.width_in, (1 + more) * style.height_in)
    figure = matplotlib("figure").Figure(figsize=size, layout="constrained")
    matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def keyed(figure: Any, axes: Any, title: str = "") -> None:
    """A legend above the axes, in as many columns as fit; none for a single line."""
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) < 2:
        return
    room = figure.get_figwidth() * figure.dpi
    for columns in range(min(len(handles), 6), 0, -1):
        legend = figure.legend(
            handles, labels, title=title or None, loc="outside upper center", ncols=columns,
            columnspacing=1.2, borderaxespad=0.1,
        )  # fmt: skip
        if columns == 1 or legend.get_window_extent().width <= room:
            return
        legend.remove()
