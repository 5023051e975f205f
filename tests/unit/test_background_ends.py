"""Background traffic as datagrams: what becomes of the plan, what is refused, and one row of two ends."""

from __future__ import annotations

import pytest
from texts import loaded

from tcpsbed import scenarios
from tcpsbed.errors import WorldError
from tcpsbed.worlds import background, local, mininet_plan

TEXT = """
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
[topology]
routers = ["r"]
[links.a]
from = "left"
to = "r"
rate = "1 Mbit/s"
[links.b]
from = "r"
to = "right"
[traffic.cbr]
on = "a.forward"
rate = "100 kbit/s"
[real]
background = "datagrams"
"""


def plan(folder, text=TEXT, *changes):
    return scenarios.compile_plan(loaded(text, changes), folder)


def test_ends_of_traffic_are_nodes_behind_the_others_and_routers_move(tmp_path):
    compiled = plan(tmp_path)
    before = compiled["network"]
    background.stand_apart(compiled)
    network = compiled["network"]
    assert [node["name"] for node in compiled["nodes"]] == ["left", "right", "traffic@left", "traffic@r"]
    assert network["vertices"] == ["left", "right", "traffic@left", "traffic@r", "r"]
    assert [(link["from"], link["to"]) for link in network["links"]] == [
        (0, 4), (4, 0), (4, 1), (1, 4), (2, 0), (0, 2), (3, 4), (4, 3),
    ]  # fmt: skip
    (entry,) = network["traffic"]
    assert (entry["from"], entry["to"]) == (2, 3)
    assert before["vertices"] == ["left", "right", "r"], "what was compiled is as it was"
    assert background.of_the_network(compiled) == []


def test_events_leave_everything_as_it_is(tmp_path):
    compiled = plan(tmp_path, TEXT, "real.background='events'")
    before = dict(compiled)
    background.stand_apart(compiled)
    assert compiled == before
    assert background.of_the_network(compiled) == compiled["network"]["traffic"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[traffic.users]\non = 'a.forward'\nkind = 'bulk'\n", "kind: found connections of TCP"),
        ("[[events]]\nat = '1 s'\ntraffic = 'cbr'\nrunning = false\n", "a change of traffic"),
    ],
)
def test_what_datagrams_cannot_be_is_refused(tmp_path, more, words):
    compiled = plan(tmp_path, TEXT + more)
    with pytest.raises(WorldError, match=f'{words}.*real.background = "events"'):
        background.refuse(compiled)


SHORT = [
    ("traffic.cbr.packet='55 B'", r"traffic\.cbr\.a\.forward\.packet: found 55 B"),
    (
        "traffic.cbr={ on = 'a.forward', kind = 'replay', file = 'FOLDER/short.csv' }",
        r"traffic\.cbr\.a\.forward\.file: found a packet of 40 B",
    ),
]


@pytest.mark.parametrize(("change", "words"), SHORT)
def test_packets_shorter_than_a_datagram_are_refused_wherever_they_are_datagrams(tmp_path, change, words):
    (tmp_path / "short.csv").write_text("0.0,500\n0.1,40\n0.2,500\n")
    change = change.replace("FOLDER", str(tmp_path))
    compiled = plan(tmp_path, TEXT, change)
    with pytest.raises(WorldError, match=f'{words}.*allowed: 56 B or more.*real.background = "events"'):
        background.refuse(compiled)
    with pytest.raises(WorldError, match=f"{words}.*allowed: 56 B or more.*--world namespaces"):
        mininet_plan.refuse(compiled)
    background.refuse(plan(tmp_path, TEXT, change, "real.background='events'"))


def test_the_shortest_datagram_is_not_refused(tmp_path):
    compiled = plan(tmp_path, TEXT, "traffic.cbr.packet='56 B'")
    assert compiled["network"]["traffic"][0]["model"]["packet_bytes"] == background.LEAST_BYTES
    background.refuse(compiled)
    mininet_plan.refuse(compiled)


def test_a_hosting_without_ends_is_refused(tmp_path):
    compiled = plan(tmp_path)
    with pytest.raises(
        WorldError, match=r'world "process" has no sockets.*--world namespaces, containers or mininet'
    ):
        background.require(compiled, local.Processes)
    background.require(compiled, local.Namespaces)


def test_the_rows_of_two_ends_are_one():
    def row(packets, delivered):
        return {"name": "cbr", "packets": packets, "bytes": 100 * packets, "delivered_packets": delivered,
                "dropped_packets": packets}  # fmt: skip

    other = row(5, 5) | {"name": "other"}
    assert background.whole([row(10, 0), row(0, 8), other]) == [
        {"name": "cbr", "packets": 10, "bytes": 1000, "delivered_packets": 8, "dropped_packets": 2},
        other,
    ]
