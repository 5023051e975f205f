"""Networks: links, queues, graphs, background traffic."""

from __future__ import annotations

import json
from functools import partial

import pytest
from config_tools import PAIR, ROOT, compiled, links

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import compile_plan, load
from tcpsbed.scenarios.compile.graphs import GRAPHS

LINE = (
    PAIR
    + '[topology]\nrouters = ["c"]\n[links.l1]\nfrom = "a"\nto = "b"\n[links.l2]\nfrom = "a"\nto = "c"\nduplex = "simplex"\n'
)


@pytest.fixture
def plan(tmp_path):
    return partial(compiled, tmp_path)


# [Gokhale 2017: dumbbell] The dumbbell: 1.5 Mbit/s and 5 ms on three hops, 15000 B, 86 B and 137 B on the wire.
def test_the_dumbbell_has_the_published_numbers(tmp_path):
    plan = compile_plan(load(ROOT / "scenarios" / "dumbbell-udp.toml"), tmp_path)
    bottleneck = links(plan)["l1.forward"]
    assert (bottleneck["rate_bps"], bottleneck["delay_ns"]) == (1.5e6, 5_000_000)
    assert bottleneck["queue"] == {"discipline": {"kind": "drop-tail"}, "limit_bytes": 15_000}
    assert (
        sum(link["delay_ns"] for name, link in links(plan).items() if name.endswith(".forward")) == 15_000_000
    )
    assert not any("rate_bps" in link for name, link in links(plan).items() if not name.startswith("l1."))
    wire = {
        flow["name"]: flow["source"]["bytes"] + channel["params"]["overhead_bytes"]
        for flow, channel in zip(plan["flows"], plan["channels"], strict=True)
    }
    assert wire == {"kinematic": 86, "haptic": 137}
    assert [(f["start_ns"], f["period_ns"]) for f in plan["flows"]] == [(500_000, 1_000_000), (0, 1_000_000)]
    traffic = plan["network"]["traffic"]
    assert [entry["name"] for entry in traffic] == [
        "cbr.forward",
        "cbr.backward",
        "vbr.forward",
        "vbr.backward",
    ]
    assert [entry["start_ns"] for entry in traffic] == [500_000_000, 500_000_000, 0, 0]
    assert {entry["model"]["packet_bytes"] for entry in traffic} == {50}


def test_links_are_full_half_or_simplex_and_differ_by_direction(plan):
    text = PAIR + (
        '[topology]\nrouters = ["hub"]\n'
        '[links.l1]\nfrom = "a"\nto = "hub"\nrate = "1 Mbit/s"\nbackward = { rate = "2 Mbit/s", loss = "1 %" }\n'
        '[links.l2]\nfrom = "hub"\nto = "b"\nrate = "3 Mbit/s"\nduplex = "half"\n'
        '[links.l3]\nfrom = "a"\nto = "b"\nduplex = "simplex"\ndelay = "9 ms"\n'
    )
    found = links(plan(text))
    assert list(found) == ["l1.forward", "l1.backward", "l2.forward", "l2.backward", "l3"]
    assert (found["l1.forward"]["rate_bps"], found["l1.backward"]["rate_bps"]) == (1e6, 2e6)
    assert found["l1.backward"]["loss"] == {"kind": "random", "p": 0.01}
    assert found["l2.forward"]["medium"] == found["l2.backward"]["medium"] == "l2"
    assert (found["l3"]["from"], found["l3"]["to"]) == ("a", "b")


def test_everything_that_a_link_can_do_reaches_the_plan(plan, tmp_path):
    (tmp_path / "lte.down").write_text("1\n1\n7\n")
    text = PAIR + (
        '[links.l1]\nfrom = "a"\nto = "b"\ntrace = "lte.down"\nduplicate = "1 %"\ncorrupt = "50 %"\n'
        'queue = { limit = "20 packets", discipline = "fq-codel", target = "3 ms" }\n'
        'loss = { kind = "gilbert-elliott", p = "1 %", r = "30 %" }\noutages = [["1 s", "2 s"]]\n'
        'jitter = { kind = "exponential", mean = "1 ms", reorder = true }\n'
    )
    link = links(plan(text))["l1.forward"]
    assert link["opportunities_ns"] == [1_000_000, 1_000_000, 7_000_000]
    assert (link["duplicate"], link["corrupt"], link["outages"]) == (
        0.01,
        0.5,
        [[1_000_000_000, 2_000_000_000]],
    )
    assert link["loss"] == {"kind": "gilbert-elliott", "p": 0.01, "r": 0.3, "loss_good": 0.0, "loss_bad": 1.0}
    assert link["jitter"] == {
        "delay": {"kind": "exponential", "mean_ns": 1_000_000, "shift_ns": 0},
        "reorder": True,
    }
    codel = {"target_ns": 3_000_000, "interval_ns": 100_000_000, "ecn": False}
    assert link["queue"] == {
        "limit_packets": 20,
        "discipline": {"kind": "fq-codel", "quantum_bytes": 1514, "flows": 1024} | codel,
    }


QUEUES = {
    '{ discipline = "priority", classes = [["EF", 40], ["AF41"]] }': {
        "kind": "priority",
        "classes": [[46, 40], [34]],
    },
    '{ discipline = "gates", classes = [["EF"], []], gates = [["0.25 ms", [0]], ["0.75 ms", [0, 1]]] }': {
        "kind": "gates",
        "classes": [[46], []],
        "gates": [[250_000, [0]], [750_000, [0, 1]]],
    },
    '{ discipline = "round-robin", quantum = "500 B", flow_limits = { kinematic = "2 packets", "traffic.cbr" = "9 packets" } }': {  # noqa: E501
        "kind": "round-robin",
        "quantum_bytes": 500,
        "flow_limits": {"kinematic": 2, "traffic.cbr": 9},
    },
    '{ discipline = "red", min = "5 kB", max = "15 kB" }': {
        "kind": "red",
        "min_bytes": 5000,
        "max_bytes": 15000,
        "max_p": 0.1,
        "weight": 0.002,
        "ecn": False,
    },
    '{ discipline = "codel" }': {
        "kind": "codel",
        "target_ns": 5_000_000,
        "interval_ns": 100_000_000,
        "ecn": False,
    },
}


@pytest.mark.parametrize("text", QUEUES)
def test_each_queue_discipline_has_its_settings(plan, text):
    link = f'[links.l1]\nfrom = "a"\nto = "b"\nqueue = {text}\n[traffic.cbr]\non = "l1"\nrate = "1 kbit/s"\n'
    found = links(plan(PAIR + link))["l1.forward"]["queue"]["discipline"]
    assert json.loads(json.dumps(found)) == QUEUES[text]


def test_slots_and_a_measured_histogram_reach_the_plan(plan, tmp_path):
    (tmp_path / "delays.csv").write_text("from_us,count\n100,5\n200,0\n500,2\n900,0\n")
    text = PAIR + '[links.l1]\nfrom = "a"\nto = "b"\njitter = { histogram = "delays.csv", reorder = true }\n'
    link = links(plan(text + 'slots = { cycle = "2 ms", open = [["0 ms", "0.5 ms"]] }\n'))["l1.backward"]
    assert json.loads(json.dumps(link["slots"])) == {"cycle_ns": 2_000_000, "open": [[0, 500_000]]}
    edges_ns = [100_000, 200_000, 500_000, 900_000]
    delay = {"kind": "histogram", "edges_ns": edges_ns, "counts": [5, 0, 2]}
    assert link["jitter"] == {"delay": delay, "reorder": True}
    for wrong in (
        "from_us,count\n100,5\n200,3\n",
        "from_us,count\n100,5\n90,0\n",
        "from_us,count\n1,0\n",
        "from_us,count\n1,inf\n2,0\n",
    ):
        (tmp_path / "delays.csv").write_text(wrong)
        with pytest.raises(
            ConfigError, match=r"links\.l1\.jitter\.histogram: found delays\.csv, which is no"
        ):
            plan(text)


WRONG_WINDOWS = {
    'slots = { cycle = "2 ms", open = [["1 ms", "3 ms"]] }': (
        r"slots.open: found 1 ms to 3 ms; allowed: windows \[from, to\] in order and within the cycle"
    ),
    'outages = [["2 s", "3 s"], ["1 s", "4 s"]]': r"outages: found 1 s to 4 s; allowed: spans \[from, to\] in order",
    'rate = "8 Mbit/s"\ntrace = "lte.down"': "trace: found both rate and trace; allowed: only one of them",
    'medium = "hub"\ntrace = "lte.down"': (
        "trace: found both trace and medium; allowed: only one of these keys: queue.gates, slots, trace, radio, medium"
    ),
    'slots = { cycle = "2 ms", open = [["0 ms", "1 ms"]] }\nmedium = "hub"': "slots: found both slots and medium",
    'queue = { discipline = "gates", classes = [["EF"], []], gates = [["1 ms", [0]]] }': (
        r"queue.gates: found gates of the classes \[0\]; allowed: each of the classes 0 to 1"
    ),
    'queue = { discipline = "gates", classes = [["EF"], []], gates = [["1 ms"]] }': (
        r"queue.gates.0: found 1 value; allowed: all values, as in tcpsbed docs scenario"
    ),
    'queue = { discipline = "gates", classes = [["EF"], []] }': "queue.gates: found no open gate",
    'queue = { discipline = "drop-tail", gates = [["1 ms", [0]]] }': "queue.gates: unknown key of a drop-tail",
}


@pytest.mark.parametrize("text", WRONG_WINDOWS)
def test_windows_that_cannot_work_are_refused(plan, tmp_path, text):
    (tmp_path / "lte.down").write_text("1\n7\n")
    with pytest.raises(ConfigError, match=WRONG_WINDOWS[text]):
        plan(PAIR + f'[links.l1]\nfrom = "a"\nto = "b"\n{text}\n')


# [Polachan 2022: settings] usnet9: nine switches, the edges of the published experiment; usnet24: 24 nodes and 43 links.
def test_the_graphs_that_ship_are_the_published_ones():
    nine = [
        (0, 1),
        (0, 5),
        (1, 2),
        (1, 5),
        (2, 3),
        (2, 4),
        (2, 6),
        (3, 4),
        (3, 6),
        (4, 7),
        (5, 6),
        (5, 8),
        (6, 7),
        (6, 8),
    ]
    assert [edge.name for edge in GRAPHS["usnet9"].edges] == [f"S{a}-S{b}" for a, b in nine]
    assert (len(GRAPHS["usnet24"].vertices), len(GRAPHS["usnet24"].edges)) == (24, 43)
    degrees = [sum(v in (e.a, e.b) for e in GRAPHS["usnet24"].edges) for v in GRAPHS["usnet24"].vertices]
    assert (min(degrees), max(degrees)) == (2, 5), "a backbone without leaves"


def test_edges_of_a_graph_have_common_settings_and_their_own(plan):
    text = PAIR + (
        '[nodes.a]\nat = "S0"\n[nodes.b]\nat = "S8"\nlink = { delay = "1 ms" }\n'
        '[topology]\ngraph = "usnet9"\nlink = { rate = "10 Mbit/s", delay = "2 ms" }\n'
        '[links.S0-S1]\ndelay = "7 ms"\n[links.S8-S5]\nforward = { rate = "1 Mbit/s" }\n'
    )
    found = links(plan(text))
    assert (found["S0-S1.forward"]["rate_bps"], found["S0-S1.forward"]["delay_ns"]) == (1e7, 7_000_000)
    assert found["S0-S5.forward"]["delay_ns"] == 2_000_000
    assert (found["S8-S5.forward"]["from"], found["S8-S5.forward"]["rate_bps"]) == ("S8", 1e6)
    assert found["S8-S5.backward"]["rate_bps"] == 1e7
    assert "rate_bps" not in found["a-S0.forward"]
    assert found["b-S8.backward"]["delay_ns"] == 1_000_000


def test_a_graphml_file_is_a_graph(plan, tmp_path):
    (tmp_path / "net.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" attr.name="label"/>'
        '<key id="d1" attr.name="LinkSpeedRaw"/><key id="d2" attr.name="delay"/><graph edgedefault="undirected">'
        '<node id="0"><data key="d0">St. Louis</data></node><node id="1"><data key="d0">New York</data></node>'
        '<edge source="0" target="1"><data key="d1">1000000.0</data><data key="d2">6 ms</data></edge></graph></graphml>'
    )
    text = (
        PAIR + '[nodes.a]\nat = "St. Louis"\n[nodes.b]\nat = "New York"\n[topology]\ngraph = "net.graphml"\n'
    )
    found = links(plan(text))["St. Louis-New York.forward"]
    assert (found["rate_bps"], found["delay_ns"]) == (1e6, 6_000_000)


def entries(plan: dict) -> dict[str, dict]:
    return {entry["name"]: entry for entry in plan["network"]["traffic"]}


def test_traffic_flows_on_links_pairs_and_everywhere(plan):
    text = LINE + '[traffic.cbr]\nrate = "1 kbit/s"\non = '
    assert list(entries(plan(text + '"l1"\n'))) == ["cbr.forward", "cbr.backward"]
    assert list(entries(plan(text + '"l1.backward"\n'))) == ["cbr.l1.backward"]
    assert list(entries(plan(text + '["l1", "l2"]\n'))) == ["cbr.l1.forward", "cbr.l1.backward", "cbr.l2"]
    assert list(entries(plan(text + '"b->a"\n'))) == ["cbr.b-a"]
    assert list(entries(plan(text + '"all-to-all"\n'))) == ["cbr.a-b", "cbr.b-a"]
    assert entries(plan(text + '"l1"\n', "traffic.cbr.rate=0 kbit/s")) == {}, "no rate, no traffic"


def test_traffic_models_are_those_of_the_protocols(plan):
    """[Gokhale 2017: dumbbell] VBR about its mean: 400 kbit/s in [320, 480]."""
    text = LINE + '[traffic.vbr]\non = "l2"\nrate = "400 kbit/s"\npacket = "50 B"\n'
    found = {
        vary: plan(text, f"traffic.vbr.vary={vary}")["network"]["traffic"][0]["model"]
        for vary in ("size", "per-packet")
    }
    assert {vary: model["vary"] for vary, model in found.items()} == {vary: vary for vary in found}
    assert found["size"] | {"vary": ""} == {
        "kind": "vbr",
        "rate_bps": 400_000,
        "packet_bytes": 50,
        "spread": 0.2,
        "vary": "",
        "piecewise_ns": 100_000_000,
    }
    for written in ('traffic.vbr.vary={ piecewise = "20 ms" }', 'traffic.vbr.piecewise="20 ms"'):
        model = plan(text, written)["network"]["traffic"][0]["model"]
        assert (model["vary"], model["piecewise_ns"]) == ("piecewise", 20_000_000)
    poisson = plan(text, "traffic.vbr.kind=poisson", "traffic.vbr.size=exponential")["network"]["traffic"][0]
    assert poisson["model"] == {
        "kind": "poisson",
        "rate_bps": 400_000,
        "packet_bytes": 50,
        "size": "exponential",
    }


def test_captures_play_side_by_side_sped_up_and_scaled_to_a_rate(plan, tmp_path):
    (tmp_path / "one.csv").write_text("time,bytes\n5.0,100\n5.5,300\n6.0,100\n")
    (tmp_path / "two.csv").write_text("time,bytes\n0.0,250\n")
    text = LINE + '[traffic.mix]\non = "l2"\nfile = ["one.csv", { file = "two.csv", offset = "250 ms" }]\n'
    one, two = entries(plan(text))["mix.l2.1"], entries(plan(text))["mix.l2.2"]

    def played(found, entry):
        return found["network"]["recordings"][entry["model"]["recording"]]

    assert (one["start_ns"], two["start_ns"]) == (0, 250_000_000)
    assert played(plan(text), one) == [[0, 100], [500_000_000, 300], [1_000_000_000, 100]]
    assert one["model"]["loop_ns"] == 1_500_000_000, "a round ends a mean gap after its last packet"
    fast = plan(text, "traffic.mix.speed=2.0", "traffic.mix.loop=false")
    quick = entries(fast)["mix.l2.1"]
    assert (played(fast, quick)[-1], "loop_ns" in quick["model"]) == ([500_000_000, 100], False)
    scaled = plan(text, "traffic.mix.rate=56 kbit/s")
    bits = [8e9 * sum(size for _, size in played(scaled, e)) for e in scaled["network"]["traffic"]]
    loops_ns = [e["model"]["loop_ns"] for e in scaled["network"]["traffic"]]
    rates = [sent / loop_ns for sent, loop_ns in zip(bits, loops_ns, strict=True)]
    assert sum(rates) == pytest.approx(56_000, rel=1e-6)


def test_all_pairs_share_what_they_play(plan, tmp_path):
    (tmp_path / "one.csv").write_text("time,bytes\n0.0,100\n0.5,300\n")
    both_ways = LINE.replace('duplex = "simplex"\n', "")
    found = plan(both_ways + '[traffic.mix]\non = "all-to-all"\namong = ["a", "b", "c"]\nfile = "one.csv"\n')[
        "network"
    ]
    assert [entry["model"]["recording"] for entry in found["traffic"]] == [0] * 6
    assert found["recordings"] == [[[0, 100], [500_000_000, 300]]]
