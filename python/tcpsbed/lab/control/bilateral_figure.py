"""Figure of bilateral schemes: felt against true impedance, Z-width, and stability over delay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.drawing import keyed, saved, styled
from tcpsbed.lab.control import figure as drawing
from tcpsbed.lab.control.transparency import FREQUENCIES_HZ, REST_M_S, there
from tcpsbed.palette import PALETTE

if TYPE_CHECKING:
    from tcpsbed.lab.control.transparency import Measured

STILL_M_S = 1e-6
"""Slower than this is drawn as this: it is at rest."""


@styled()
def draw(found: Sequence[Measured], file: Path) -> Path:
    """Three panels: felt, Z-width, rest; a colour a scheme, thinner lines for longer round trips.

    Parameters
    ----------
    found
        Measures of settings.
    file
        The figure; the ending says which kind.
    """
    figure, first = drawing.plot("")
    figure.set_size_inches(13, 4.5)
    first.remove()
    felt, width, rest = figure.subplots(1, 3)
    schemes = list(dict.fromkeys(one.setting.scheme for one in found))
    longest = max(one.setting.rtt_ms for one in found) or 1
    for one in found:
        color = PALETTE[schemes.index(one.setting.scheme) % len(PALETTE)]
        thick = 2.0 - 1.5 * one.setting.rtt_ms / longest
        if one.stable:
            felt.plot(FREQUENCIES_HZ, one.wall, color=color, linewidth=thick)
            felt.plot(FREQUENCIES_HZ, one.free, color=color, linewidth=thick, linestyle=":")
            width.plot(FREQUENCIES_HZ, one.width, color=color, linewidth=thick)
    for scheme in schemes:
        mine = [one for one in found if one.setting.scheme == scheme]
        color = PALETTE[schemes.index(scheme) % len(PALETTE)]
        x, y = [one.setting.rtt_ms for one in mine], [max(one.rest_m_s, STILL_M_S) for one in mine]
        rest.plot(x, y, color=color, marker=".", label=scheme)
    true = [there(hz) for hz in FREQUENCIES_HZ]
    for axes in (felt, width):
        axes.plot(FREQUENCIES_HZ, true, color="black", linestyle="--", linewidth=1)
    rest.axhline(REST_M_S, color="black", linestyle="--", linewidth=1)
    _label(felt, "frequency, Hz", "felt |Z|, N s/m: wall, free dotted, true dashed")
    _label(width, "frequency, Hz", "Z-width, N s/m; true dashed")
    _label(rest, "RTT, ms", "speed while the hand stays, m/s; at rest below the dashes")
    width.set_yscale("symlog", linthresh=1.0)
    for axes in (felt, width):
        axes.set_xticks(FREQUENCIES_HZ, [f"{hz:g}" for hz in FREQUENCIES_HZ], minor=False)
        axes.minorticks_off()
    rest.set_xscale("linear")
    keyed(figure, rest)
    return saved(figure, file)


def _label(axes: Any, x: str, y: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y, fontsize=8)
    axes.grid(alpha=0.3)
