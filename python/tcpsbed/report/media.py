"""Sections about pictures and sound: from glass to glass, quality against bit rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.report import markup
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.markup import Column, Html, words
from tcpsbed.report.numbers import count, ms, place, rate, statistic

VARIANT = (
    "SSIM in plain windows of 8 x 8 that slide by 4: the Gaussian windows of Wang et al. (2004) give up to 0.04 less on "
    "coded pictures"
)
"""Which SSIM this is, wherever it is shown."""
REMARK = (
    "Age counts from glass to glass, and from mouth to ear. That of a picture is read from a code that was drawn into it "
    "when it was taken, that of sound from a mark that was laid over it: nothing of it assumed. PSNR and SSIM compare what "
    f"was shown with what was taken. {VARIANT}."
)


def columns() -> list[Column]:
    """The columns of the table of pictures and sound."""
    return [
        words("flow"),
        Column("shown"),
        Column("a second"),
        Column("coded", "B"),
        Column("bit rate"),
        *(Column(f"age {key}", "ms") for key in ("mean", "p50", "p99", "max")),
        Column("unread"),
        Column("PSNR", "dB"),
        Column("SSIM"),
    ]


def rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """A row for each flow of pictures or sound."""
    return [
        [
            place(name),
            count(found.get("shown")),
            _fixed(found.get("shown_per_s"), 1),
            count(found.get("coded_bytes")),
            rate(found.get("coded_bps")),
            *(ms(statistic(_age(found), key)) for key in ("mean", "p50", "p99", "max")),
            count(found.get("unread")),
            _fixed(found.get("psnr_db"), 2),
            _fixed(found.get("ssim"), 4),
        ]
        for name, found in (summary.get("media") or {}).items()
    ]


def media(run: RunFolder) -> Html:
    """Pictures and sound, where there are any."""
    found = rows(run.summary)
    table = markup.table(columns(), found) if found else ""
    return markup.section("media", "Pictures and sound", table, remark=REMARK if found else "")


def _age(found: Mapping[str, Any]) -> Any:
    return found.get("glass_to_glass_ms") or found.get("mouth_to_ear_ms")


def _fixed(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"
