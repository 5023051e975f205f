"""The scenarios of docs/ranking.md: each transport after a paper differs from no merging where it should."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "rank_transports.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("rank_transports", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def one(tool: ModuleType) -> Callable[[str, str], Any]:
    """The row of a transport in a scenario, run once however many tests look at it."""
    return cache(lambda scenario, name: tool.one(scenario, name, 6.0))


def share(row: Any, flow: str) -> float:
    """99th percentile of the delay of a frame."""
    return float(row.frames[flow][0])


DIFFERENCES: list[tuple[str, str, str, Callable[[Any, Any], bool]]] = [
    ("hoip", "calm", "no-merge", lambda own, none: share(own, "audio") > 1.5 * share(none, "audio")),
    ("merge-span, 8 ms", "calm", "no-merge", lambda own, none: own.rate_kbps < 0.7 * none.rate_kbps),
    ("alphan, 1.4 Mbit/s", "calm", "udp", lambda own, none: share(own, "video") > share(none, "video") + 5),
    ("visual-haptic, 1.1 Mbit/s", "calm", "udp", lambda own, none: own.rate_kbps < 0.95 * none.rate_kbps),
    ("loss-triggered", "lossy", "no-merge", lambda own, none: own.rate_kbps < 0.8 * none.rate_kbps),
    ("nack", "lossy", "udp", lambda own, none: own.lost < 0.1 * none.lost),
    ("coarse-copy", "lossy", "udp", lambda own, none: own.lost < 0.5 * none.lost),
    (
        "irtp",
        "lossy",
        "udp",
        lambda own, none: own.rate_kbps < 0.7 * none.rate_kbps and own.lost < none.lost / 5,
    ),
    ("smoothed-sctp, 20 ms", "jitter", "udp", lambda own, none: own.snr_db > none.snr_db + 10),
    ("nafcah", "calm", "no-merge", lambda own, none: 90 < own.rate_kbps - none.rate_kbps < 110),
    (
        "etp",
        "busy",
        "no-merge",
        lambda own, none: own.late < 0.1 * none.late and own.rate_kbps < 0.8 * none.rate_kbps,
    ),
    (
        "napas, weber",
        "congested",
        "no-merge, weber",
        lambda own, none: own.delay_ms[1] > none.delay_ms[1] + 1 and own.rate_kbps < none.rate_kbps,
    ),
    (
        "pahcp",
        "busy",
        "no-merge",
        lambda own, none: own.late < 0.1 * none.late and own.snr_db > none.snr_db + 10,
    ),
    (
        "admux",
        "busy",
        "no-merge",
        lambda own, none: own.late < 0.6 * none.late and own.frames["video"][1] > none.frames["video"][1],
    ),
    (
        "scream, 10 ms",
        "busy",
        "no-merge",
        lambda own, none: own.late < 0.3 * none.late and own.lost < none.lost,
    ),
    ("gcc, 10 ms", "busy", "no-merge", lambda own, none: own.late < 0.1 * none.late and own.lost < none.lost),
    ("udp, weber", "calm", "udp", lambda own, none: own.rate_kbps < 0.7 * none.rate_kbps and own.lost == 0.0),
]


# [model: approximations]
@pytest.mark.parametrize(
    ("name", "scenario", "other", "differs"), DIFFERENCES, ids=[d[0] for d in DIFFERENCES]
)
def test_a_transport_differs_from_no_merging(
    one: Callable[[str, str], Any], name: str, scenario: str, other: str, differs: Callable[[Any, Any], bool]
) -> None:
    own, none = one(scenario, name), one(scenario, other)
    assert differs(own, none), (own, none)


# [RFC 8298]
def test_the_published_target_of_scream_is_ten_times_too_large(one: Callable[[str, str], Any]) -> None:
    published, short = (one("busy", f"scream, {target} ms") for target in (100, 10))
    assert published.late > 0.5 and short.late < 0.3 * published.late


# [model: several paths] several paths
def test_two_ways_lose_less_than_one_and_a_split_loads_each_by_half(tool: ModuleType) -> None:
    one, both, split = (tool.two_ways(way, 6.0) for way in tool.WAYS)
    assert one.lost > 0.02
    assert both.lost < one.lost**2 * 3, "independent losses: the square of one"
    assert 0.4 < split.rate_kbps / one.rate_kbps < 0.6, "half of it goes over the first link"
    assert abs(split.lost - one.lost) < 0.02


# [Gokhale 2017: QoS limits]
def test_merging_keeps_the_limit_where_no_merging_does_not(one: Callable[[str, str], Any]) -> None:
    merged, plain = (one("congested", name) for name in ("fixed-k, k = 4", "no-merge"))
    assert merged.late == 0.0 and plain.late > 0.5
    assert merged.snr_db > plain.snr_db + 10


def test_every_transport_has_its_row_on_the_page(tool: ModuleType) -> None:
    page = tool.PAGE.read_text(encoding="utf-8")
    assert [name for name in tool.candidates() if page.count(f"| {name} |") != len(tool.SCENARIOS)] == []


def test_what_is_ours_after_a_paper_is_called_so(tool: ModuleType) -> None:
    page = (TOOL.parents[1] / "docs" / "transports.md").read_text(encoding="utf-8")
    rows = page[: page.index("Where the texts are silent")].split("what a test checks |")[1:]
    named = {line.split("`")[1] for part in rows for line in part.splitlines() if line.startswith("| `")}
    assert named == set(tool.AFTER)
