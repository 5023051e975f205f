"""One table of metrics: what is in it is in the summary, in its documentation, in tables, on the page and in limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import analysis_run
import pytest

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics import Metric
from tcpsbed.analysis.metrics.page import drawn
from tcpsbed.campaign.survey import numbers
from tcpsbed.lab.qos import check, profile
from tcpsbed.studio import freeze
from tcpsbed.views import text
from tcpsbed.views.compare import compare
from tcpsbed.views.folder import RunFolder, open_folder


def every(table: tuple[Metric, ...], path: str = "") -> Iterator[tuple[str, Metric]]:
    for metric in table:
        yield f"{path}{metric.key}", metric
        yield from every(metric.parts, f"{path}{metric.key}.")


def test_units_are_those_that_keys_name() -> None:
    units = {"ms": "ms", "ns": "ns", "bps": "bit/s", "s": "s", "db": "dB", "ppm": "ppm", "bytes": "B"}
    for path, metric in every(metrics.SUMMARY):
        ending = metric.key.rpartition("_")[2] if "_" in metric.key else ""
        if ending in units and not metric.parts and not metric.key.endswith("per_s"):
            assert metric.unit == units[ending], path


def test_the_documentation_is_that_of_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "summary.md").read_text(encoding="utf-8")
    assert drawn(page) == page, "stale: tools/tables.py --write"
    assert all(metric.meaning for _, metric in every(metrics.SUMMARY))


def test_a_metric_is_taken_computed_or_left_out() -> None:
    table = (
        Metric("sent"),
        Metric("delay_ms", unit="ms"),
        Metric("twice", of=lambda source: 2 * source["sent"]),
        Metric("links", parts=(Metric("name"),)),
        Metric("by_name", parts=(Metric("name"),), each="flow"),
        Metric("absent"),
    )
    source: dict[str, Any] = {
        "sent": 2,
        "delay_ns": {"n": 3, "mean": 2e6},
        "links": [{"name": "l1", "more": 1}],
        "by_name": {"haptic": [{"name": "a"}], "video": {"name": "b"}},
    }
    assert metrics.made(table, source) == {
        "sent": 2,
        "delay_ms": {"n": 3, "mean": 2.0},
        "twice": 4,
        "links": [{"name": "l1"}],
        "by_name": {"haptic": [{"name": "a"}], "video": {"name": "b"}},
    }


def told(metric: Metric) -> Any:
    """Something that a run could have of a metric."""
    if metric.parts:
        found = {part.key: told(part) for part in metric.parts}
        return [found] if metric.each == metrics.LIST else {"named": found} if metric.each else found
    of = {"dict[str, dict[str, int]]": {"named": {"named": 7}}, "dict[str, str]": {"named": "words"}}
    if metric.each or metric.type.startswith("dict["):
        return of.get(metric.type, {"named": 7})
    if metric.type.startswith("list["):
        return {"list[str]": ["words"], "list[list[str]]": [["words"]]}.get(metric.type, [7])
    number = 7 if metric.unit or metric.type in ("int", "float") else metric.type == "bool" or "words"
    return number if metric.shown == ("",) or not metric.unit else dict.fromkeys(metric.shown, number)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run that has all there is."""
    summary = {part.key: told(part) for part in metrics.SUMMARY} | {"version": metrics.VERSION}
    for key in ("path", "points"):
        summary[key] = {"named": [summary[key]["named"]]}
    for part in metrics.SUMMARY[-8:]:
        summary[part.key] = [f"a word of {part.key}"]
    summary["across_seeds"] |= {"seeds": [1, 2], "unchanged": False, "failed": [], "disturbed": []}
    summary["versions"] = {"tcpsbed": "1"}
    summary["machine"] = {"cpu": "one"}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    return open_folder(tmp_path)


def test_every_metric_is_on_the_page(run: RunFolder) -> None:
    page = freeze.render(run)
    drawn = {"seeds", "unchanged", "failed", "disturbed", "causes"}  # in sentences, as are programs, stalls
    for path, metric in every(metrics.SUMMARY):
        if (
            metric.parts
            or not metric.shown
            or metric.key in drawn
            or path.startswith(("programs.", "stalls."))
        ):
            continue
        assert f">{escape(metric.title)}" in page or f">a word of {path}<" in page, path


def test_one_entry_is_in_the_summary_the_documentation_the_terminal_the_page_and_in_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Metric(
        "half_lost", "half of the lost", "count", lambda flow: flow["lost"] / 2, label="half the lost"
    )
    flows = metrics.section("flows")
    table = [replace(part, parts=(*part.parts, mine)) if part is flows else part for part in metrics.SUMMARY]
    monkeypatch.setattr(metrics, "SUMMARY", tuple(table))

    folder = analysis_run.write(tmp_path)
    run = open_folder(folder)
    assert run.summary["flows"]["kinematic"]["half_lost"] == 20
    page = (Path(__file__).parents[2] / "docs" / "summary.md").read_text(encoding="utf-8")
    assert "| `half_lost` | count | half of the lost |\n" in drawn(page)
    assert "half the lost" in text.overview(run) and "half the lost" in text.everything(run)
    assert 'title="half of the lost">half the lost</th>' in freeze.render(run)
    assert re.search(r"half the lost +20 +20 +0 +1\.000\n", str(compare(folder, folder)))
    assert numbers(run.summary["flows"]["kinematic"])["half_lost"] == 20
    limit = profile.read("[flows.kinematic]\nhalf_lost = { most = 19 }", tmp_path / "mine.toml")
    (verdict,) = check.check(run.summary, limit)
    assert (verdict.found, verdict.unit, verdict.passed) == (20, "count", False)
