"""What ns-3 is not told to do is refused before anything is started, with the remedy; needs no ns-3."""

from __future__ import annotations

import json

import pytest
from texts import loaded

import tcpsbed
from tcpsbed import _tcps, scenarios
from tcpsbed.clocks import NS3_VIRTUAL
from tcpsbed.errors import ConfigError, WorldError
from tcpsbed.runs import session
from tcpsbed.worlds import containers, firmware, fit, ns3, ns3_devices, ns3_program, registry, virtual
from tcpsbed.worlds.contract import Job
from tcpsbed.worlds.local import Namespaces

BASE = """
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
queue = "15000 B"
[links.b]
from = "r"
to = "right"
delay = "2 ms"
"""


def plan(tmp_path, text=BASE, *changes):
    return scenarios.compile_plan(loaded(text, changes), tmp_path)


def test_what_fits_is_handed_over_in_the_numbers_of_the_plan(tmp_path):
    compiled = plan(tmp_path, BASE, "links.b.loss='1 %'")
    ns3.refuse(compiled)
    links = [ns3._link(link) for link in compiled["network"]["links"]]
    assert links[0] == {"from": 0, "to": 2, "rate_bps": 1e6, "queue": {"limit_bytes": 15000}}
    assert links[2] == {"from": 2, "to": 1, "delay_ns": 2_000_000, "queue": {}, "loss": 0.01}


def test_routes_are_those_that_the_built_in_network_takes(tmp_path):
    routes = json.loads(_tcps.routes(json.dumps(plan(tmp_path))))
    assert routes[0][1] == 0 and routes[2][1] == 2 and routes[1][0] == 3 and routes[2][0] == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "links.b.jitter={ kind = 'uniform', low = '0 ms', high = '1 ms' }",
            [
                "links.b.forward.jitter: found jitter, which ns-3 does not support; allowed: no jitter, or --world"
            ],
        ),
        (
            "links.a.outages=[['1 s', '2 s']]",
            ["links.a.forward.outages: found outages", "no outages, or --world virtual or real"],
        ),
        ("links.a.queue={ limit = '20 packets', discipline = 'codel' }", ["codel queue", "drop-tail"]),
        (
            "links.b.loss={ kind = 'gilbert-elliott', p = '10 %', r = '50 %' }",
            ["bursts", 'a share, such as "1 %"'],
        ),
        (
            "traffic.cbr={ on = 'a.forward', rate = '8 kbit/s', packet = '33 B' }",
            [
                "traffic.cbr.a.forward.packet",
                "33 B",
                "34 B or more, which a packet needs in ns-3, or --world",
            ],
        ),
        (
            "traffic.bulk={ on = 'a' }",
            [
                "traffic.bulk",
                '.kind: found "bulk" (connections of TCP or QUIC), which ns-3',
                '"cbr", "poisson"',
            ],
        ),
        ("traffic.own={ on = 'a', kind = 'json:loads' }", ["traffic.own", "source of your own"]),
        ("events=[{ at = '1 s', link = 'a', rate = '2 Mbit/s' }]", ["events", "links"]),
        ("flows.kinematic.blocking_send=true", ["blocking_send", "false"]),
        (
            "links.a.medium='hub'",
            ["links.a.forward.loss", 'loss on the medium "hub"', "no `loss` on a medium, or --world"],
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path, change, words):
    changes = [change]
    if "medium" in change:
        changes.append("links.a.loss='1 %'")
    with pytest.raises(WorldError) as refused:
        ns3.refuse(plan(tmp_path, BASE, *changes))
    assert all(word in str(refused.value) for word in [*words, "allowed:"]), str(refused.value)


NR, LTE = "links.b.radio={ kind = 'nr' }", "links.b.radio={ kind = 'lte' }"
NOT_EVERYWHERE = {
    "links.*.jitter": "links.b.jitter={ kind = 'uniform', low = '0 ms', high = '1 ms' }",
    "links.*.duplicate": "links.b.duplicate='1 %'",
    "links.*.corrupt": "links.b.corrupt='1 %'",
    "links.*.outages": "links.a.outages=[['1 s', '2 s']]",
    "links.*.slots": "links.a.slots={ cycle = '2 ms', open = [['0 ms', '1 ms']] }",
    "links.*.trace": "links.b.trace='FOLDER/up'",
    "links.*.dscp": "links.a.dscp=46",
    "links.*.radio nr": NR,
    "links.*.radio lte, wifi": LTE,
    "links.*.duplex simplex": "links.c={ from = 'left', to = 'right', duplex = 'simplex' }",
    "links.*.loss in bursts, or code of your own": "links.b.loss={ kind = 'gilbert-elliott', p = '10 %', r = '50 %' }",
    "links.*.queue.discipline all but drop-tail": "links.a.queue={ limit = '20 packets', discipline = 'codel' }",
    "traffic.*.kind web, transfers, bulk": "traffic.bulk={ on = 'a' }",
    "traffic.*.kind code of your own": "traffic.own={ on = 'a', kind = 'json:loads' }",
    "events.*.link": "events=[{ at = '1 s', link = 'a', rate = '2 Mbit/s' }]",
    "events.*.reroute": "events=[{ at = '1 s', reroute = true }]",
    "events.*.traffic": "events=[{ at = '1 s', traffic = 'cbr', running = false }]",
    "events.*.attack": "events=[{ at = '1 s', attack = { kind = 'replay', link = 'b.forward', flow = 'kinematic', "
    "duration = '1 s' } }]",
    "flows.*.blocking_send true": "flows.kinematic.blocking_send=true",
}


@pytest.mark.parametrize("key", fit.KEYS, ids=lambda key: f"{key.key} {key.values}".strip())
def test_a_network_refuses_what_the_table_says_that_it_does_not_honour(tmp_path, key):
    (tmp_path / "up").write_text("1\n2\n")
    change = NOT_EVERYWHERE[f"{key.key} {key.values}".strip()].replace("FOLDER", str(tmp_path))
    text = BASE.replace('delay = "2 ms"', "") if "radio" in change else BASE
    more = ["traffic.cbr={ on = 'b.forward', rate = '8 kbit/s' }"] if "traffic = 'cbr'" in change else []
    compiled = plan(tmp_path, text, *more, change)
    refusing = {network for network in fit.NETWORKS if any(fit.unhonoured(network, compiled, "another"))}
    assert refusing == set(fit.NETWORKS) - set(key.by)


def test_what_only_virtual_time_honours_is_refused_on_a_clock(tmp_path):
    fit.refuse_on_clock(plan(tmp_path, BASE))
    with pytest.raises(WorldError) as refused:
        fit.refuse_on_clock(plan(tmp_path, BASE, "flows.kinematic.blocking_send=true"))
    message = "flows.kinematic.blocking_send: found true, which has no effect on a real clock"
    assert message in str(refused.value) and "allowed: false, or --world virtual" in str(refused.value)


@pytest.mark.parametrize("world", ["real", "ns3", "containers"])
def test_a_scenario_is_refused_before_anything_is_made_and_whatever_the_machine_lacks(
    tmp_path, monkeypatch, world
):
    monkeypatch.setattr(firmware, "provide", lambda plan: pytest.fail("firmware was compiled"))
    monkeypatch.setattr(ns3_program, "missing", lambda: "ns-3")
    monkeypatch.setattr(containers.Containers, "missing", classmethod(lambda _: "Docker"))
    file = tmp_path / "mine.toml"
    file.write_text(BASE.replace("[flows.kinematic]\n", "[flows.kinematic]\nblocking_send = true\n"))
    with pytest.raises(
        WorldError, match=r"mine\.toml:6: flows\.kinematic\.blocking_send: found true, which has no"
    ):
        tcpsbed.run(file, out=tmp_path / "run", world=world)


def test_what_a_network_does_not_honour_is_refused_before_firmware_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(firmware, "provide", lambda plan: pytest.fail("firmware was compiled"))
    monkeypatch.setattr(ns3_program, "missing", lambda: None)
    text = BASE.replace('delay = "2 ms"', 'jitter = { kind = "uniform", low = "0 ms", high = "1 ms" }')
    with pytest.raises(WorldError, match="found jitter, which ns-3 does not support"):
        tcpsbed.run(text, out=tmp_path / "run", world="ns3")


def test_lte_needs_ns3_and_says_so(shipped_scenarios, tmp_path):
    with pytest.raises(ConfigError, match=r"radio: found LTE; allowed: .*, or a run over ns-3"):
        session.execute(
            scenarios.load(shipped_scenarios / "lte-pingpong.toml"), world="virtual", out=tmp_path / "run"
        )


AIR = BASE.replace('delay = "2 ms"', 'radio = { kind = "nr", slot = "0.25 ms", pattern = "DDSU" }')
"""The last link is a radio one."""


def test_a_link_of_kind_nr_is_one_of_5g_lena(tmp_path, monkeypatch):
    """[TS 38.211 §4.3.2] Slots of 0.25 ms are those of 60 kHz."""
    monkeypatch.setattr(ns3_program, "lena", lambda: None)
    compiled = plan(tmp_path, AIR, "links.b.radio.lena={ scheduler = 'ofdma-pf', distance_m = 100 }")
    up, down = (link["radio"] for link in ns3.foreign_of(compiled, [], "program")["network"]["links"][2:])
    assert (up["up"], down["up"]) == (True, False) and (up["other"], down["other"]) == (3, 2)
    told = {"kind": "nr", "pattern": "DDSU", "numerology": 2, "scheduler": "OfdmaPF", "harq": True}
    assert up == told | {
        "up": True,
        "other": 3,
        "bandwidth_mhz": 20.0,
        "carrier_ghz": 3.5,
        "distance_m": 100.0,
    }
    none = plan(tmp_path, AIR, "links.b.radio.retransmissions=0", "links.b.radio.slot='62.5 us'")
    assert [ns3._link(none["network"]["links"][2])["radio"][key] for key in ("harq", "numerology")] == [
        False,
        4,
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "links.b.rate='20 Mbit/s'",
            [".rate: found rate beside", "no `rate` (5G-LENA computes it from radio.lena), or"],
        ),
        ("links.b.delay='1 ms'", ["delay beside"]),
        ("links.b.queue='20 packets'", ["queue beside"]),
        ("links.b.loss='1 %'", ["loss beside"]),
        ("links.b.radio.grant='2 ms'", [".radio.grant: found grant", "no `grant` (5G-LENA computes it), or"]),
        ("links.b.radio.block_error=10 %", ["radio.block_error", "5G-LENA computes"]),
        ("links.b.radio.access='configured'", ['.radio.access: found "configured"', '"request", or']),
        ("links.b.radio.slot='0.3 ms'", ['.radio.slot: found "0.3 ms"', '"0.0625 ms"']),
        ("links.b.radio.retransmissions=2", [".radio.retransmissions: found 2", "3, 0, or"]),
    ],
)
def test_what_5g_lena_cannot_follow_is_refused_by_its_key(tmp_path, change, words):
    with pytest.raises(WorldError) as refused:
        ns3.refuse(plan(tmp_path, AIR, change))
    assert all(
        word in str(refused.value) for word in ["links.b.forward", *words, "--world virtual or real"]
    ), str(refused.value)


def test_without_5g_lena_the_message_says_how_to_have_it(tmp_path, monkeypatch):
    monkeypatch.setattr(ns3_program, "LENA", "ns3-that-is-not-there")
    with pytest.raises(
        WorldError, match=r"links\.b\.forward\.radio: found .*\"nr\".* 2\.3 to 3\.1.*PKG_CONFIG_PATH.*\"lte\""
    ):
        ns3.foreign_of(plan(tmp_path, AIR), [])
    ns3.foreign_of(plan(tmp_path, AIR), [], "the program of another computer, which says so itself")


def test_links_of_one_base_station_say_the_same_of_it(tmp_path):
    twice = BASE.replace('rate = "1 Mbit/s"\nqueue = "15000 B"', 'radio = { kind = "lte" }')
    twice = twice.replace(
        'from = "r"\nto = "right"\ndelay = "2 ms"', 'from = "right"\nto = "r"\nradio = { kind = "lte" }'
    )
    ns3.refuse(plan(tmp_path, twice, "links.b.radio.distance_m=90"))
    with pytest.raises(WorldError, match=r"links\.b\.forward\.radio.*settings of the base.*links\.a"):
        ns3.refuse(plan(tmp_path, twice, "links.b.radio.scheduler='rr'"))
    with pytest.raises(WorldError, match=r"LTE and Wi-Fi.*radio links of one kind"):
        ns3.refuse(plan(tmp_path, twice, "links.b.radio={ kind = 'wifi' }"))


def test_two_places_behind_one_base_station_are_refused(tmp_path):
    lte = BASE.replace('rate = "1 Mbit/s"\nqueue = "15000 B"', 'radio = { kind = "lte" }')
    lte = lte.replace('delay = "2 ms"', 'radio = { kind = "lte" }')
    with pytest.raises(WorldError, match="LTE links to 2 base stations"):
        ns3.refuse(plan(tmp_path, lte))


def test_without_ns3_the_message_has_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(ns3_program, "MODULES", ("ns3-that-is-not-there",))
    with pytest.raises(WorldError, match="apt-get install libns3-dev libgsl-dev"):
        ns3.foreign_of(plan(tmp_path), [])
    monkeypatch.setenv(ns3_program.SOURCES, str(tmp_path))
    assert "TCPSBED_NS3" in (ns3_program.missing() or "")


@pytest.mark.parametrize("kind", ["events", "datagrams"])
def test_in_its_own_time_ns3_makes_all_background_traffic(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(ns3_program, "built", lambda: tmp_path / "network")
    changes = ["traffic.cbr={ on = 'a.forward', rate = '100 kbit/s' }", f"real.background='{kind}'"]
    told = json.loads(virtual._foreign(plan(tmp_path, BASE, *changes), NS3_VIRTUAL) or "")
    assert [entry["name"] for entry in told["network"]["traffic"]] == ["cbr.a.forward"]


@pytest.mark.parametrize("hosting", ["process", "hosts", "mininet"])
def test_only_nodes_in_namespaces_have_devices_that_ns3_can_hold(hosting):
    with pytest.raises(WorldError, match=r"no devices of their own; allowed: namespaces\+ns3-tap, or ns3"):
        registry.check(f"{hosting}+ns3-tap")
    registry.check("containers+ns3-tapbridge")


def test_background_packets_that_would_grow_on_devices_are_refused(tmp_path):
    compiled = plan(tmp_path, BASE, "traffic.cbr={ on = 'a.forward', rate = '8 kbit/s', packet = '57 B' }")
    ns3.refuse(compiled)
    job = Job(compiled, None, tmp_path, tmp_path)
    network = ns3_devices.Descriptor(job, Namespaces(job))
    with pytest.raises(WorldError, match=r"traffic\.cbr.*57 B.*58 B or more.*namespaces\+ns3"):
        network.refuse()


def test_routers_of_ns3_know_no_ipv6(tmp_path):
    compiled = plan(tmp_path, BASE, "real.ipv6=true")
    job = Job(compiled, None, tmp_path, tmp_path)
    network = ns3_devices.Descriptor(job, Namespaces(job))
    with pytest.raises(WorldError, match=r"real\.ipv6: found true.*namespaces\+ns3"):
        network.refuse()


def test_a_run_refuses_a_key_at_its_file_and_line(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(
        BASE.replace('delay = "2 ms"', 'loss = { kind = "gilbert-elliott", p = "1 %", r = "9 %" }')
    )
    with pytest.raises(WorldError, match=r"my\.toml:16: links\.b\.loss: found loss in bursts, which ns-3"):
        session.execute(scenarios.load(path), world=NS3_VIRTUAL, out=tmp_path / "run")
    with pytest.raises(WorldError, match=r"--set links\.a\.jitter.*links\.a\.jitter: "):
        jitter = "links.a.jitter={ kind = 'uniform', low = '0 ms', high = '1 ms' }"
        changed = scenarios.load(path, ["links.b.loss=0", jitter])
        session.execute(changed, world=NS3_VIRTUAL, out=tmp_path / "run")
