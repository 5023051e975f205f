"""Each mistake in a network (links, queues, graphs, traffic, routes) has one message, which says what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import CBR, FLOW, LINK, folder_of_files, refusal

from tcpsbed.errors import cut

CASES = {
    "router named like a node": (
        FLOW + '[topology]\nrouters = ["a"]\n',
        'bad.toml:6: topology.routers: found "a", which is the name of another node; allowed: another name, such as "a-2"',
    ),
    "route that does not exist": (
        LINK.replace('to = "b"', 'to = "n1"') + '[topology]\nrouters = ["n1"]\n',
        'bad.toml:4: flows.kinematic: found no route from "a" to "b"; allowed: links that join them (a reaches n1)',
    ),
    "way back that does not exist": (
        LINK + 'duplex = "simplex"\n[flows.haptic]\n',
        'bad.toml:9: flows.haptic: found no route from "b" to "a"; allowed: links that join them (b reaches nothing)',
    ),
    "traffic without a route": (
        LINK + '[topology]\nrouters = ["n1"]\n[traffic.cbr]\non = "a->n1"\nrate = "1 kbit/s"\n',
        'bad.toml:11: traffic.cbr.on: found no route from "a" to "n1"; allowed: links that join them (a reaches b)',
    ),
    "link to nowhere": (
        LINK.replace('to = "b"', 'to = "n1"'),
        'bad.toml:7: links.l1.to: found "n1"; allowed: a node or a router (topology.routers): a, b',
    ),
    "link without an end": (
        LINK.replace('to = "b"\n', ""),
        'bad.toml:5: links.l1.to is missing; allowed: a node or a router, such as to = "a"',
    ),
    "traffic on no link": (
        CBR.replace('"l1"', '"l2"') + 'rate = "1 kbit/s"\n',
        'bad.toml:9: traffic.cbr.on: found "l2" (did you mean l1?); allowed: "a->b", "all-to-all" or a link: '
        "l1, l1.forward, l1.backward",
    ),
    "traffic without a network": (
        FLOW + '[traffic.cbr]\non = "l1"\nrate = "1 kbit/s"\n',
        'bad.toml:5: traffic.cbr: found traffic, but there are no links; allowed: links, such as [links.l1] from = "a" '
        'to = "b", or topology.graph',
    ),
    "traffic of no kind": (
        LINK + '[traffic.x]\nkind = "cb"\non = "l1"\nrate = "1 kbit/s"\n',
        'bad.toml:8: traffic.x: found the kind "cb" (did you mean cbr?); allowed: "cbr", "poisson", "vbr", "replay", '
        '"video", "web", "transfers", "bulk", or code such as "./mine.py:Mine"',
    ),
    "queue without a unit": (
        LINK + "queue = 20\n",
        'bad.toml:8: links.l1.queue: found 20, a number without a unit; allowed: "20 packets", "20 B" or a table',
    ),
    "queue in seconds": (
        LINK + 'queue = "15 ms"\n',
        'bad.toml:8: links.l1.queue: found "15 ms", which is a span of time; allowed: "15000 B", "20 packets" or a table',
    ),
    "setting of another discipline": (
        LINK + 'queue = { limit = "15000 B", target = "5 ms" }\n',
        "bad.toml:8: links.l1.queue.target: unknown key of a drop-tail queue; allowed: limit, discipline",
    ),
    "priority without classes": (
        LINK + 'queue = { discipline = "priority" }\n',
        "bad.toml:8: links.l1.queue.classes: found 0 classes; "
        'allowed: 2 to 64 classes such as [["EF"], []]; the last one takes the rest',
    ),
    "unknown code point": (
        LINK + 'queue = { discipline = "priority", classes = [["EG"], []] }\n',
        'bad.toml:8: links.l1.queue.classes.0.0: found "EG"; '
        'allowed: a code point from 0 to 63 or a name such as "EF", "CS5", "AF41"',
    ),
    "thresholds of RED the wrong way round": (
        LINK + 'queue = { discipline = "red", min = "9 kB", max = "5 kB" }\n',
        "bad.toml:8: links.l1.queue.min: found a minimum that is not below the maximum; allowed: min below max",
    ),
    "new rate of a traced link": (
        LINK + 'trace = "plain.csv"\n[[events]]\nat = "1 s"\nlink = "l1"\nrate = "1 kbit/s"\n',
        "bad.toml:12: events.0.rate: found a new rate of a link that follows a trace; allowed: delay, loss, jitter, "
        "duplicate, queue, up",
    ),
    "code in an event": (
        LINK + '[[events]]\nat = "1 s"\nlink = "l1"\njitter = { kind = "./ends.py:Late" }\n',
        'bad.toml:11: events.0.jitter.kind: found "./ends.py:Late"; '
        "allowed: a built-in delay model: code is loaded before a run begins",
    ),
    "unknown graph": (
        FLOW + '[topology]\ngraph = "usnet8"\n',
        'bad.toml:6: topology.graph: found "usnet8", but there is no such file (did you mean usnet9?); '
        "allowed: usnet9, usnet24 or a GraphML file, looked for at {folder}/usnet8",
    ),
    "capture that is not there": (
        LINK + '[traffic.x]\non = "l1"\nfile = "no.pcap"\n',
        'bad.toml:10: traffic.x.file: found "no.pcap", but there is no such file; '
        "allowed: a file, looked for at {folder}/no.pcap",
    ),
    "capture that is none": (
        LINK + '[traffic.x]\non = "l1"\nfile = "plain.csv"\n',
        "bad.toml:10: traffic.x.file: found one column in plain.csv, line 1; allowed: two columns, "
        "time in s and bytes, such as 0.001,1500",
    ),
    "link trace that is none": (
        LINK + 'trace = "text.so"\n',
        "bad.toml:8: links.l1.trace: found 'text' in text.so, line 1; allowed: finite numbers, at most 1e+100, such as 1.5",
    ),
    "link trace whose name is no path": (
        LINK + f'trace = "{"x" * 300}"\n',
        f'bad.toml:8: links.l1.trace: found "{"x" * 300}", but there is no such file; '
        f"allowed: a file, looked for at {{folder}}/{'x' * 300}",
    ),
    "packet beyond all bounds": (
        CBR + 'rate = "1 kbit/s"\npacket = "70 kB"\n',
        'bad.toml:11: traffic.cbr.packet: found 70000 B; allowed: a size from 1 B to 65535 B, such as "500 B"',
    ),
    "traffic on nothing": (
        LINK + '[traffic.cbr]\non = []\nrate = "1 kbit/s"\n',
        "bad.toml:9: traffic.cbr.on: found an empty list; allowed: 1 or more in the list",
    ),
    "traffic on the second of two parallel links": (
        LINK + '[links.l2]\nfrom = "a"\nto = "b"\n[traffic.cbr]\non = "l2"\nrate = "1 kbit/s"\n',
        'bad.toml:12: traffic.cbr.on: found "l2.forward", and l1.forward joins the same two; '
        'allowed: "a->b", which takes the link that the route takes',
    ),
    "traffic from a place to itself": (
        LINK + '[traffic.cbr]\non = "a->a"\nrate = "1 kbit/s"\n',
        'bad.toml:9: traffic.cbr.on: found "a->a"; allowed: two different places, such as "a->b"',
    ),
    "traffic among one": (
        LINK + '[traffic.cbr]\non = "all-to-all"\namong = ["a"]\nrate = "1 kbit/s"\n',
        'bad.toml:10: traffic.cbr.among: found 1 place; allowed: two places or more, each once, such as ["a", "b"]',
    ),
    "traffic that stops before it starts": (
        CBR + 'rate = "1 kbit/s"\nstart = "3 s"\nstop = "3 s"\n',
        "bad.toml:12: traffic.cbr.stop: found 3 s, which is not after the start at 3 s; "
        "allowed: a time after 3 s, or an earlier start",
    ),
    "edge to itself": (
        FLOW + '[topology]\ngraph = "loop.graphml"\n',
        'bad.toml:6: topology.graph: found an edge from "A" to itself in loop.graphml; allowed: edges between two '
        "different nodes",
    ),
    "two edges between the same nodes": (
        FLOW + '[topology]\ngraph = "twice.graphml"\n',
        'bad.toml:6: topology.graph: found a second edge between "B" and "A" in twice.graphml; '
        "allowed: one edge between two nodes",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_network_that_cannot_be_has_one_message(tmp_path: Path, case: str) -> None:
    text, message = CASES[case]
    expected = f"{tmp_path}/" + message.replace("{folder}", str(tmp_path))
    assert refusal(folder_of_files(tmp_path), text) == cut(expected)
