"""`summary.json` holds the known numbers of a run made by hand, and every key is documented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from analysis_run import plan, result, write

from tcpsbed.analysis import disturbances, facts, machine
from tcpsbed.scenarios.codes import codes
from tcpsbed.studio import freeze
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder

DOCS = Path(__file__).resolve().parents[2] / "docs" / "summary.md"
NAMED = {"flows", "echo", "queues", "cdf", "round_trip_ms"}
"""Keys under which the next keys are names of the scenario (where they are not lists)."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return content


def test_counts_and_delays_of_the_flow(summary: dict[str, Any]) -> None:
    flow = summary["flows"]["kinematic"]
    assert (flow["sent"], flow["delivered"], flow["lost"], flow["drops"]) == (
        4000,
        3960,
        40,
        {"l2.forward full": 40},
    )
    # Records end at 4.990 s: the 3991 samples sent up to 3.990 s are judged, the last 9 are in their grace time.
    assert flow["loss"] == pytest.approx(40 / 3991)
    assert (flow["delay_ms"]["min"], flow["delay_ms"]["mean"], flow["delay_ms"]["max"]) == (5.5, 5.5, 5.5)
    # [Gokhale 2017: jitters]
    assert flow["jitter_ms"]["step"] == {"mean": 0.0, "max": 0.0}
    assert flow["interarrival_ms"]["max"] == 2.0
    assert flow["rate_bps"] == pytest.approx(3960 * 24 * 8 / 4.99)
    assert flow["packets_per_s"] == pytest.approx(1000 / flow["interarrival_ms"]["mean"])
    assert flow["samples_per_packet"] == 1.0, "each sample came in a packet of its own"


# [Polachan 2022: echoes]
def test_the_means_along_the_path_add_up_to_the_delay(summary: dict[str, Any]) -> None:
    path = summary["path"]["kinematic"]
    assert [(part["what"], part["name"], part["latency_ms"]["mean"]) for part in path] == [
        ("link", "hand -> srv", 2.0),
        ("component", "srv", 0.5),
        ("link", "srv -> robot", 3.0),
    ]
    assert sum(part["share"] for part in path) == pytest.approx(1)


# [Polachan 2022: echoes]
def test_echoes_halve_the_link_and_not_the_component(summary: dict[str, Any]) -> None:
    echo = summary["echo"]["kinematic"]
    (component,), (link,) = echo["components"], echo["links"]
    assert (component["name"], component["latency_ms"]["mean"], component["halved"]) == ("srv", 0.5, False)
    assert (link["name"], link["latency_ms"]["mean"], link["halved"]) == ("srv -> robot", 3.0, True)
    assert link["round_trip_difference_ms"]["mean"] == 6.0
    assert [point["n"] for point in echo["points"]] == [67, 67, 66]
    assert echo["actuation_ms"] is None


def test_network_stages_and_clocks(summary: dict[str, Any]) -> None:
    (link,), (stage,), (clock,) = summary["network"], summary["stages"], summary["clocks"]
    assert link["loss"] == 0.01
    assert link["utilisation"] == pytest.approx(1.25 / summary["ran_s"])
    assert stage["core_share"] == pytest.approx(4000 * 1.3e-6 / summary["ran_s"])
    assert (clock["offset_ms"], clock["bound_ms"], clock["true_error_ms"]) == (0.04, 0.02, 0.04)
    assert summary["queues"][0]["bytes"]["mean"] == 150
    assert summary["assumed_free"] == ["srv: kinematics of kinematic"]


def test_a_gap_is_a_disturbance_with_its_place(folder: Path, summary: dict[str, Any]) -> None:
    assert summary["disturbances"] == [
        "node n1 stalled once, 3.20 ms at 2.500 s",
        "stalls touched 0.2 % of the samples of kinematic (of those that arrived)",
    ]
    series = json.loads((folder / "series.json").read_text())
    assert series["disturbed"] == [{"from_s": pytest.approx(2.4968), "to_s": 2.5, "why": "n1 stalled"}]
    assert sum(series["flows"]["kinematic"]["lost"]) == 40
    assert len(series["t_s"]) <= 400


# [design: hooks]
def test_what_disturbs_a_real_run_is_told(tmp_path: Path) -> None:
    late = {"p50": 60_000, "p99": 400_000}
    told = result() | {
        "interrupted": True,
        "nodes": [{"name": "n0", "missed_ticks": 3, "ring_overflows": 2, "late_ns": {"p99": 2_500_000}}],
        "emulator": [
            {"path": "n0 -> n1", "delivered": 100, "error_ns": late, "set_loss": 0.0, "delivered_loss": 0.02},
            {"path": "n1 -> n0", "delivered": 9, "set_rate_bps": 1e6, "delivered_rate_bps": 0.98e6},
            {"path": "n1 -> n2", "delivered": 9, "set_rate_bps": 1e6, "delivered_rate_bps": 0.995e6},
        ],
    }
    told["stages"][0]["cpu_ns"]["p99"] = 600_000
    write(tmp_path, world="real", told=told)
    found = "\n".join(json.loads((tmp_path / "summary.json").read_text())["disturbances"])
    for part in (
        "was stopped at 4.99",
        "skipped 3 ticks",
        "lost 2 rows",
        "late by 2.50 ms",
        "emulation error 0.060 ms (p50",
        "emulation error 0.400 ms (p99",
        "lost 2.00%, set 0.00%",
        "n1 -> n0: delivered 980.0 kbit/s, set 1000.0 kbit/s (margin 1%)",
        "took 0.60 ms (p99) of the 1 ms (1000 Hz) between samples of kinematic: give it a node of its own",
    ):
        assert part in found
    assert "n1 -> n2" not in found, "within the margin"


def test_packets_whose_port_cannot_be_read_are_told_in_summary_terminal_and_page(tmp_path: Path) -> None:
    told = result()
    told["nodes"].append({"name": "emulator", "cores": 1, "busy_s": 0.1, "unread": 1234})
    run = open_folder(write(tmp_path, world="namespaces", told=told))
    said = "node emulator could not read the port of 1234 packets: IPv6 extension headers, VLAN tags, later fragments"
    assert said in "\n".join(run.summary["disturbances"])
    assert f"DISTURBED: {said}" in " ".join(text.headline(run).split())
    assert said in freeze.write(tmp_path).read_text()


def test_the_stages_of_a_component_add_up_to_a_share_of_a_core(tmp_path: Path) -> None:
    told = result()
    stage = told["stages"][0] | {"calls": 1000, "cpu_ns": {"mean": 40_000.0}}
    told["stages"] = [stage, stage | {"flow": "haptic", "cpu_ns": {"mean": 10_000.0}}]
    write(tmp_path, world="real", told=told)
    found = json.loads((tmp_path / "summary.json").read_text())
    (component,) = found["components"]
    assert component["component"] == stage["component"]
    assert component["busy_s"] == pytest.approx(0.05)
    assert component["core_share"] == pytest.approx(0.05 / found["ran_s"])


# [design: hooks]
def test_a_periodic_hook_is_measured_by_its_own_period() -> None:
    made = plan()
    step = made["flows"][0]["path"][1]["steps"][0]
    told = result()
    told["stages"][0]["cpu_ns"]["p99"] = 600_000
    nothing = {"end_ns": 0, "nodes": [], "clocks": [], "flows": [], "echo": []}
    nothing |= dict.fromkeys(("torn_bytes", "strange_rows", "unordered_rows"), 0)

    def sentences() -> list[str]:
        return disturbances.disturbances(facts.scenario_info(made, world="real"), told, nothing)

    assert "of the 1 ms" in sentences()[0]
    step["period_ns"] = 10_000_000
    assert sentences() == []


def test_a_connection_that_never_stood_or_is_silent_at_the_end_marks_the_run() -> None:
    told = result()
    told["nodes"], told["stages"] = [], []
    nothing = {"end_ns": 0, "nodes": [], "clocks": [], "flows": [], "echo": []}
    nothing |= dict.fromkeys(("torn_bytes", "strange_rows", "unordered_rows"), 0)
    (endpoint,) = told["endpoints"]

    def sentences(**counted: int) -> list[str]:
        told["endpoints"] = [endpoint | counted]
        return disturbances.disturbances(facts.scenario_info(plan(), world="real"), told, nothing)

    assert sentences() == [], "a transport without connections"
    stood = {"connections": 1, "connections_lost": 0, "stalls": 1, "silent_at_end_ns": 0}
    assert sentences(**stood) == [], "a stall that ended is part of what was measured"
    assert sentences(**stood | {"connections": 0}) == ["channel c0 at n0 never had a connection"]
    assert sentences(**stood | {"silent_at_end_ns": 3_000_000_000}) == [
        "channel c0 at n0 had nothing acknowledged in the last 3.00 s of its connection"
    ]


def test_keys_that_sockets_do_not_heed_are_listed() -> None:
    made = plan()
    assert facts.scenario_info(made, world="real")["ignored"] == []
    made["nodes"][1] |= {"cores": 4, "scheduling": {"kind": "round_robin", "quantum_ns": 1}}
    made["flows"][0] |= {"priority": 3}
    assert facts.scenario_info(made, world="virtual")["ignored"] == []
    told = facts.scenario_info(made, world="real")["ignored"]
    assert [text.split(":")[0] for text in told] == [
        "nodes.n1.cores = 4",
        'nodes.n1.scheduling = "round-robin"',
        "flows.kinematic.priority = 3",
    ]


AIR = {"name": "air.forward", "radio": {"kind": "nr", "up": True, "given": ["kind", "lena"]}}


def test_settings_of_5g_lena_have_no_effect_in_other_worlds_and_are_untried_in_its_own() -> None:
    made = plan()
    made["network"]["links"] += [AIR, {"name": "air.backward", "radio": AIR["radio"] | {"up": False}}]
    for world in ("virtual", "namespaces"):
        told = facts.scenario_info(made, world=world)
        assert [text.split(":")[0] for text in told["ignored"]] == ["links.air.radio.lena"]
        assert told["untried"] == []
    for world in ("ns3-virtual", "ns3", "namespaces+ns3-tapbridge"):
        told = facts.scenario_info(made, world=world)
        assert told["ignored"] == [] and told["untried"] == [facts.LENA_UNTRIED]
    made["network"]["links"][-2] |= {"radio": AIR["radio"] | {"given": ["kind"]}}
    assert facts.scenario_info(made, world="virtual")["ignored"] == [], "nothing was said of it"
    assert facts.scenario_info(plan(), world="ns3-virtual")["untried"] == []


# [design: same on every machine]
def test_the_promise_depends_on_whose_code_ran() -> None:
    made = plan()
    assert "on any machine" in facts.scenario_info(made, world="virtual")["promise"]
    assert "similar" in facts.scenario_info(made, world="real")["promise"]
    made["flows"][0]["path"][1]["steps"][0]["run"]["kind"] = "python"
    assert "with these versions" in facts.scenario_info(made, world="virtual")["promise"]


@pytest.mark.parametrize("kind", ["queue", "traffic", "transport", "controller"])
def test_the_promise_knows_code_in_the_network_and_in_channels(kind: str) -> None:
    made, text = plan(), "/home/x/mine.py:Mine"
    code = {"kind": "python", "name": "/home/x/mine.py", "symbol": "Mine"}
    own: dict[str, Any] = {
        "queue": {"network": {"links": [{"name": "l", "queue": {"discipline": {"kind": text}}}]}},
        "traffic": {"network": {"traffic": [{"name": "t", "model": {"kind": text}}]}},
        "transport": {"channels": [{"transport": text, "params": {}}]},
        "controller": {"channels": [{"transport": "rtp", "params": {"congestion": code}}]},
    }
    assert list(codes(own[kind] | {"components": [], "flows": []})) == [(kind, code)]
    for key, value in own[kind].items():
        made[key] = made[key] | value if key == "network" else value
    assert "with these versions" in facts.scenario_info(made, world="virtual")["promise"]


def test_a_machine_knows_its_cores() -> None:
    found = machine.machine()
    assert found["cores"] >= 1
    assert found["python"].count(".") == 2


def _keys(content: Any, *, names: bool = False) -> Iterator[str]:
    if isinstance(content, list):
        for entry in content:
            yield from _keys(entry)
    elif isinstance(content, dict):
        for key, value in content.items():
            if not names:
                yield key
            yield from _keys(value, names=key in NAMED and not names and isinstance(value, dict))


def test_every_key_of_the_series_is_documented(folder: Path) -> None:
    documented = set(re.findall(r"`([a-z0-9_]+)`", DOCS.read_text().partition("## `series.json`")[2]))
    written = set(_keys(json.loads((folder / "series.json").read_text())))
    assert len(written) > 10
    assert written <= documented, sorted(written - documented)


def test_the_summary_is_strict_json(folder: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads((folder / "summary.json").read_text(), parse_constant=refuse)
    assert not list(folder.glob("*.part"))
