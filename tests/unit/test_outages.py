"""The times in which links were down, in the summary and in one line of the terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import analysis_run

from tcpsbed.analysis import outages
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder

S = 1_000_000_000


def plan() -> dict[str, Any]:
    """Outages of both directions of l1, events that cut l2 twice, and that cut l3 and never bring it back."""
    both = [
        {"name": f"l1.{way}", "outages": [[2 * S, 2 * S + S // 5], [9 * S, 20 * S]]}
        for way in ("forward", "backward")
    ]
    events = [
        {"at_ns": at_s * S, "name": "mine", "action": {"kind": "link", "links": links} | more}
        for at_s, links, more in (
            (6, [2], {"up": True}),
            (1, [2], {"up": False}),
            (2, [2], {"up": False}),
            (3, [2], {"delay_ns": 5}),
            (8, [3], {"up": False}),
            (30, [2], {"up": False}),
        )
    ]
    stops = {"at_ns": S, "name": "stop", "action": {"kind": "flow", "flows": [0], "running": False}}
    links = [*both, {"name": "l2.forward"}, {"name": "l3.backward"}]
    return {"network": {"links": links}, "events": [stops, *events]}


def test_outages_are_told_by_link_with_begin_and_length_until_the_end_of_the_run() -> None:
    assert [tuple(one.values()) for one in outages.spans(plan(), 10 * S)] == [
        ("l2.forward", 1.0, 5.0),
        ("l1", 2.0, 0.2),
        ("l3.backward", 8.0, 2.0),
        ("l1", 9.0, 1.0),
    ]
    assert outages.spans({"network": {"links": [{"name": "l1.forward"}]}, "events": []}, S) == []
    assert outages.spans({}, S) == []


def test_an_outage_and_an_event_that_overlap_are_one_time_of_a_link() -> None:
    spans = [[2 * S, 4 * S], [5 * S, 6 * S], [9 * S, 20 * S]]
    event = {"name": "mine", "action": {"kind": "link", "links": [0]}}
    events = [
        event | {"at_ns": at_s * S, "action": event["action"] | {"up": up}}
        for at_s, up in ((3, False), (5, True))
    ]
    plan = {"network": {"links": [{"name": "l1.forward", "outages": spans}]}, "events": events}
    assert [tuple(one.values()) for one in outages.spans(plan, 10 * S)] == [
        ("l1.forward", 2.0, 4.0),
        ("l1.forward", 9.0, 1.0),
    ]


def test_thousands_of_links_that_close_together_are_told_up_to_a_number_in_little_time() -> None:
    spans = [[n * S, n * S + S // 2] for n in range(40)]
    links = [
        {"name": f"l{n}.{way}", "outages": spans} for n in range(1500) for way in ("forward", "backward")
    ]
    begun = time.process_time()
    found = outages.spans({"network": {"links": links}}, 60 * S)
    assert time.process_time() - begun < 1.0
    assert len(found) == outages.MOST and found[1500] == {"link": "l0", "from_s": 1.0, "length_s": 0.5}


def test_of_many_links_the_first_are_named(tmp_path: Path) -> None:
    run = open_folder(analysis_run.write(tmp_path))
    vars(run)["summary"] = run.summary | {
        "outages": [{"link": f"l{n}", "from_s": 1.0, "length_s": 0.5} for n in range(7)]
    }
    assert "; l3 at 1.000 s for 0.500 s; and 3 other links\n" in text.headline(run)


def test_the_terminal_names_them_in_one_line_and_none_where_there_were_none(tmp_path: Path) -> None:
    run = open_folder(analysis_run.write(tmp_path))
    assert "outages:" not in text.headline(run)
    down = outages.spans(plan(), 10 * S)
    vars(run)["summary"] = run.summary | {
        "outages": down + [down[1] | {"from_s": 10.0 + n} for n in range(4)]
    }
    (line,) = (line for line in text.overview(run).splitlines() if line.startswith("outages:"))
    assert line == (
        "outages: l2.forward at 1.000 s for 5.000 s; l1 at 2.000 s for 0.200 s, at 9.000 s for 1.000 s, at 10.000 s for "
        "0.200 s, at 11.000 s for 0.200 s and 2 more; l3.backward at 8.000 s for 2.000 s"
    )
