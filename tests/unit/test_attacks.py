"""Attacks as events: what each does without security and with it, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from texts import TWO_NODES

import tcpsbed
from tcpsbed.errors import ConfigError, WorldError
from tcpsbed.worlds import fit

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "scenarios" / "attacks.toml"
METHODS = ("none", "aead", "hmac")
QUEUED = TWO_NODES.replace('"1 s"', '"3 s"').replace(
    'rate = "10 Mbit/s"', 'rate = "10 Mbit/s"\nqueue = "20000 B"'
)
PROPAGATION_MS = 5.0
HEADERS = 54
"""Bytes of UDP, IP and Ethernet around a datagram."""


def text(
    kind: str, more: str = "", *, transport: str = "udp", security: str = "none", at: str = "1 s"
) -> str:
    """A scenario of two nodes, and an attack of half a second on its commands."""
    sealed = "" if security == "none" else f'security = "{security}"\n'
    flow = "" if kind == "clock-lie" else 'flow = "kinematic", '
    attack = f'kind = "{kind}", link = "wan.forward", {flow}duration = "500 ms", {more}'.rstrip(", ")
    return f'{QUEUED}transport = "{transport}"\n{sealed}[[events]]\nat = "{at}"\nattack = {{ {attack} }}\n'


def ran(folder: Path, scenario: str) -> Any:
    """A run of a text in virtual time."""
    file = folder / "two.toml"
    file.write_text(scenario)
    return tcpsbed.run(file, out=folder / f"run-{len(list(folder.glob('run-*')))}")


def effect(folder: Path, scenario: str) -> dict[str, Any]:
    """What its only event did."""
    [found] = ran(folder, scenario).summary["effects"]
    result: dict[str, Any] = found
    return result


def refusal(folder: Path, scenario: str) -> str:
    """The message that refuses a scenario before it runs."""
    with pytest.raises(ConfigError) as error:
        ran(folder, scenario)
    assert not list(folder.glob("run-*"))
    return str(error.value)


@pytest.mark.parametrize("transport", ["udp", "repeat", "parity", "rtp", "smoothed-sctp", "dpm", "multipath"])
def test_forged_and_changed_commands_are_accepted_without_security_and_none_with_it(
    tmp_path: Path, transport: str
) -> None:
    for kind, more in (("forge", 'rate = "97 Hz"'), ("tamper", 'share = "10 %"')):
        found = effect(tmp_path, text(kind, more, transport=transport))
        assert found["kind"] == kind
        assert 0 < found["accepted"] <= found["sent"], (kind, found)
        for method in ("aead", "hmac", *["srtp"] * (transport == "rtp")):
            found = effect(tmp_path, text(kind, more, transport=transport, security=method))
            assert found["sent"] > 0, (kind, method)
            assert found["accepted"] == 0, (kind, method)


def test_changed_commands_over_tcp_are_accepted_without_tls_and_end_the_connection_with_it(
    tmp_path: Path,
) -> None:
    """The checksum of the segment is right in both."""
    tampering = [
        text("tamper", 'share = "1 %"', transport="tcp", security=method) for method in ("none", "tls")
    ]
    plain, secured = [ran(tmp_path, scenario).summary for scenario in tampering]
    changed, refused = plain["effects"][0], secured["effects"][0]
    assert changed["accepted"] == changed["sent"] > 0
    assert refused["sent"] > 0 and refused["accepted"] == 0
    a, b = sorted(secured["endpoints"], key=lambda end: str(end["side"]))
    assert b["refused_connections"] >= 1 and a["alerts"] >= 1
    assert a["secure_sessions"] == b["secure_sessions"] == b["refused_connections"] + 1
    assert secured["disturbances"] == [], "the scenario wants it so"
    said = " ".join(secured["as_set"])
    assert "at b ended" in said and "at a lost" in said and "re-established after 1.0" in said
    commands = secured["flows"]["kinematic"]
    [gone] = [commands["drops"][key] for key in commands["drops"] if key.endswith(" connection")]
    assert gone == a["lost_in_flight"] > 0
    # Besides: each sample that did not verify, and those that found the queue full.
    assert commands["lost"] <= gone + b["refused_connections"] + a["refused"]


SEGMENTS = (
    ("forge", 'rate = "10 Hz"'),
    ("reset", 'rate = "10 Hz"'),
    ("reset", 'segment = "fin", rate = "10 Hz"'),
)
"""Attacks on a connection: forged commands, RST, FIN."""


def _on_connection(folder: Path, method: str) -> Any:
    """A run with an attack of a second each 3 s."""
    sealed = "" if method == "none" else f'security = "{method}"\n'
    events = "".join(
        f'[[events]]\nat = "{1 + 3 * number} s"\nattack = {{ kind = "{kind}", link = "wan.forward", flow = "kinematic",'
        f' duration = "1 s", {more} }}\n'
        for number, (kind, more) in enumerate(SEGMENTS)
    )
    return ran(folder, QUEUED.replace('"3 s"', '"10 s"') + f'transport = "tcp"\n{sealed}' + events)


@pytest.mark.parametrize("method", ["none", "tls"])
def test_forged_segments_do_what_the_documentation_says(tmp_path: Path, method: str) -> None:
    summary = _on_connection(tmp_path, method).summary
    forged, reset, fin = summary["effects"]
    ends = {str(end["side"]): end for end in summary["endpoints"]}
    flow = summary["flows"]["kinematic"]
    assert bool(forged["accepted"]) == (method == "none")
    assert 0 < reset["accepted"] <= reset["sent"] and 0 < fin["accepted"] <= fin["sent"]
    assert ends["b"]["connections_lost"] >= reset["accepted"] + fin["accepted"]
    said = [f"{one['accepted']} of {one['sent']}" for one in (forged, reset, fin)]
    row = f"| {' | '.join(said)} | {ends['b']['connections_lost']} | {flow['lost']} of {flow['sent']} |"
    name = "`tcp`" if method == "none" else f"`tcp`, `{method}`"
    assert f"| {name} {row}\n" in (ROOT / "docs" / "security.md").read_text()


def test_old_segments_of_tcp_are_counted(tmp_path: Path) -> None:
    """Those that carry something; a copy of an acknowledgement is one more acknowledgement."""
    for method in ("none", "tls"):
        summary = ran(tmp_path, text("replay", 'after = "100 ms"', transport="tcp", security=method)).summary
        [found] = summary["effects"]
        b = next(end for end in summary["endpoints"] if end["side"] == "b")
        assert found["accepted"] == 0
        assert b["duplicates"] + b["malformed"] == found["sent"] > 0, method


@pytest.mark.parametrize(
    ("kind", "more", "counter", "what"),
    [
        ("tamper", 'share = "5 %"', "unverified", "that did not verify: forged, or damaged"),
        ("replay", 'after = "100 ms"', "replayed", "whose number it had received before"),
    ],
)
def test_what_somebody_does_to_packets_of_quic_with_tls_is_counted_and_said(
    tmp_path: Path, kind: str, more: str, counter: str, what: str
) -> None:
    summary = ran(tmp_path, text(kind, more, transport="quic", security="tls")).summary
    [found] = summary["effects"]
    a, b = sorted(summary["endpoints"], key=lambda end: str(end["side"]))
    assert found["sent"] > 0 and not found["accepted"]
    assert (b[counter], b["duplicates"], b["malformed"]) == (found["sent"], 0, 0)
    assert (a["secure_sessions"], b["secure_sessions"], b["connections_lost"]) == (1, 1, 0)
    counted = f"channel session@a-b at b refused {found['sent']} datagrams {what}"
    assert [text for text in summary["as_set"] if text.startswith("channel")] == [counted]
    assert summary["disturbances"] == []
    assert all(flow["lost"] == 0 for flow in summary["flows"].values()), "streams send it again"


@pytest.mark.parametrize("method", [*METHODS, "srtp"])
def test_replays_are_never_accepted_and_are_counted(tmp_path: Path, method: str) -> None:
    transport = "rtp" if method == "srtp" else "udp"
    run = ran(tmp_path, text("replay", 'after = "100 ms"', transport=transport, security=method))
    [found] = run.summary["effects"]
    sent = 501 if method == "srtp" else 500  # a report of RTCP is repeated, too
    assert found["sent"] == sent
    assert found["accepted"] == 0
    [side] = [one for one in run.summary["endpoints"] if one["side"] == "b"]
    counted = side["duplicates"] if method == "none" else side["replayed"]
    assert counted == sent


def test_a_replay_of_what_was_lost_is_accepted_once(tmp_path: Path) -> None:
    """A datagram that never came is genuine when it is brought later."""
    lossy = text("replay", 'after = "100 ms"', security="aead").replace("delay =", 'loss = "20 %"\ndelay =')
    run = ran(tmp_path, lossy)
    [found] = run.summary["effects"]
    lost = run.summary["flows"]["kinematic"]["lost"]
    assert 0 < found["accepted"] < lost
    assert found["accepted"] == pytest.approx(500 * 0.2 * 0.8, rel=0.4)


@pytest.mark.parametrize("method", ["none", "aead"])
def test_a_flood_costs_what_the_queue_says(tmp_path: Path, method: str) -> None:
    below = effect(tmp_path, text("flood", 'rate = "5 Mbit/s", size = "1000 B"', security=method))
    wire_ms = (1000 + HEADERS) * 8 / 10e6 * 1e3
    assert below["accepted"] == 0
    assert below["sent"] == pytest.approx(0.5 * 5e6 / ((1000 + HEADERS) * 8), abs=1)
    delays = below["delays"]["kinematic"]
    assert 0.5 * wire_ms < delays["added_p99_ms"] <= wire_ms + 0.3
    above = effect(tmp_path, text("flood", 'rate = "20 Mbit/s", size = "1000 B"', security=method))
    full_ms = 20_000 * 8 / 10e6 * 1e3
    delays = above["delays"]["kinematic"]
    assert full_ms - wire_ms < delays["p99_ms"] - PROPAGATION_MS < full_ms + wire_ms + 0.3
    assert above["delays"]["haptic"]["added_p99_ms"] == pytest.approx(0, abs=0.2), "the other direction"


@pytest.mark.parametrize(("transport", "method"), [("udp", "aead"), ("tcp", "tls"), ("quic", "tls")])
def test_a_flood_from_the_peers_address_costs_what_the_documentation_says(
    tmp_path: Path, transport: str, method: str
) -> None:
    head, *events = SHIPPED.read_text().split("[[events]]")
    [flood] = [event for event in events if '"flood"' in event]
    (tmp_path / "flood.toml").write_text(f'{head}[[events]]{flood}[measure]\nsync = "50 ms"\n')
    session = {"channels.session.transport": transport, "channels.session.security": method}
    summary = tcpsbed.run(tmp_path / "flood.toml", out=tmp_path / "run", set=session).summary
    [effect] = summary["effects"]
    added = effect["delays"]["kinematic"]
    lost = summary["flows"]["kinematic"]["lost"]
    row = f"| {lost} | {added['added_p50_ms']:.1f} / {added['added_p99_ms']:.1f} ms |"
    assert f"| `{transport}`, `{method}` {row}\n" in (ROOT / "docs" / "security.md").read_text()
    assert effect["accepted"] == 0


def test_a_lie_about_clocks_moves_the_estimate_without_security_and_is_refused_with_it(
    tmp_path: Path,
) -> None:
    for offset_ms in (8.0, -8.0):
        lie = text("clock-lie", f'offset = "{offset_ms:g} ms"')
        synchronised = '[measure]\nsync = "20 ms"\n'
        run = ran(tmp_path, lie + synchronised)
        [found] = run.summary["effects"]
        assert found["accepted"] == found["sent"] == 25
        [clock] = run.summary["clocks"]
        assert abs(clock["true_error_max_ms"]) > 3, "the estimate follows within a second or two"
        run = ran(tmp_path, lie.replace("transport", 'security = "aead"\ntransport') + synchronised)
        [found] = run.summary["effects"]
        assert (found["sent"], found["accepted"]) == (25, 0)
        [clock] = run.summary["clocks"]
        assert abs(clock["true_error_max_ms"]) < 0.2
        assert any("refused 25 datagrams outside channels" in line for line in run.summary["as_set"])
        assert run.summary["disturbances"] == []


def test_the_shipped_scenario_says_how_long_the_supervisor_took(tmp_path: Path) -> None:
    found: dict[str, dict[str, Any]] = {}
    for method in METHODS:
        settings = {} if method == "none" else {"channels.session.security": method}
        run = tcpsbed.run(SHIPPED, out=tmp_path / method, set=settings)
        found[method] = {one["name"]: one for one in run.summary["effects"]}
    kept = json.loads((ROOT / "docs" / "security-cost.json").read_text())["attacks"]
    assert {method: list(effects.values()) for method, effects in found.items()} == kept, (
        "the table of the page"
    )
    accepted = {m: [one["accepted"] for one in effects.values()] for m, effects in found.items()}
    assert accepted == {"none": [50, 0, 0, None, 40], "aead": [0, 0, 0, None, 0], "hmac": [0, 0, 0, None, 0]}
    for effects in found.values():
        cut = effects["commands are cut off"]
        assert cut["until_s"] == 9.0
        assert cut["hold_ms"] == pytest.approx(50 + PROPAGATION_MS, abs=4)
        assert cut["safe_stop_ms"] == pytest.approx(500 + PROPAGATION_MS, abs=4)
        assert effects["forged commands"]["safe_stop_ms"] is None


def test_an_attack_is_reproducible_and_changes_nothing_before_it(tmp_path: Path) -> None:
    def hashed(at: str, more: str = "") -> str:
        return str(ran(tmp_path, text("tamper", 'share = "10 %"', at=at) + more).summary["records_sha256"])

    once = hashed("1 s")
    assert hashed("1 s") == once
    assert hashed("1.001 s") != once
    late = ran(tmp_path, text("forge", at="2.9 s")).summary["flows"]["haptic"]
    calm = ran(tmp_path, QUEUED).summary
    assert calm["effects"] == []
    assert late == calm["flows"]["haptic"]


def test_links_may_duplicate_from_an_event_on(tmp_path: Path) -> None:
    event = '[[events]]\nat = "1 s"\nlink = "wan.forward"\nduplicate = "50 %"\n'
    run = ran(tmp_path, QUEUED + event)
    assert run.summary["flows"]["kinematic"]["duplicated"] == pytest.approx(1000, rel=0.1)
    assert run.summary["flows"]["haptic"]["duplicated"] == 0
    assert [event["name"] for event in run.summary["events"]] == ["link wan.forward duplicate 50 %"]
    assert run.summary["random"] is True


@pytest.mark.parametrize(
    ("kind", "more", "found", "allowed"),
    [
        ("forge", 'rate = "0 Hz"', "attack.rate", "frequency"),
        ("forge", "values = [nan]", "attack.values", "finite"),
        (
            "forge",
            f"values = {[0.5] * 5000}",
            "values: found 5000 values for the flow kinematic",
            "allowed: 16, as",
        ),
        (
            "forge",
            "values = [0.5]",
            "two.toml:",
            "values: found 1 value for the flow kinematic; allowed: 16, as many",
        ),
        ("forge", "values = []", "attack.values: found an empty list", "1 or more in the list"),
        ("replay", 'after = "0 s"', "attack.after", "time"),
        ("flood", 'rate = "9 Gbit/s"', "more than one datagram of 1000 B in a microsecond", "8 Gbit/s"),
        ("flood", 'rate = "1 Mbit/s", size = "70 kB"', "found 70000 B", "65507 B"),
        ("clock-lie", 'offset = "5 ms"', "no clocks are synchronised", "measure.sync"),
        ("clock-lie", 'offset = "0 ms"', "attack.offset: found 0", "10 ms"),
    ],
)
def test_what_an_attack_cannot_be_is_refused(
    tmp_path: Path, kind: str, more: str, found: str, allowed: str
) -> None:
    said = refusal(tmp_path, text(kind, more))
    assert found in said
    assert allowed in said


def test_places_where_nobody_can_attack_are_refused(tmp_path: Path) -> None:
    good = text("forge")
    both = refusal(tmp_path, good.replace('"wan.forward"', '"wan"'))
    assert 'found "wan", which is 2 directions; allowed: wan.forward or wan.backward' in both
    behind = good.replace('"wan.forward"', '"wan.backward"')
    line = behind[: behind.index("attack =")].count("\n") + 1
    told = 'found "wan.backward", which the flow kinematic does not pass; allowed: wan.forward'
    wrong = f"two.toml:{line}: events.0.attack.link: {told}"
    assert wrong in refusal(tmp_path, behind)
    checked = subprocess.run(
        [sys.executable, "-m", "tcpsbed", "check", "two.toml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert checked.returncode == 2 and wrong in checked.stderr
    assert 'found "wam"' in refusal(tmp_path, good.replace('"wan.forward"', '"wam"'))
    assert "kinematics" in refusal(tmp_path, good.replace('flow = "kinematic", ', 'flow = "kinematics", '))
    stream = refusal(tmp_path, text("forge", transport="quic"))
    assert 'found "forge" on the transport quic' in stream
    assert "transport of datagrams" in stream
    reset = refusal(tmp_path, text("reset"))
    assert 'found "reset" on the transport udp; allowed: tcp' in reset


def test_networks_that_do_not_know_attacks_refuse_them_by_the_table() -> None:
    [key] = [one for one in fit.KEYS if one.key == "events.*.attack"]
    assert key.by == fit.BUILT_IN
    plan: dict[str, Any] = {"network": {"links": [{"name": "wan.forward"}]}, "flows": []}
    plan["events"] = [{"name": "e", "action": {"kind": "attack"}}]
    for network in fit.NETWORKS:
        unfit = list(fit.unhonoured(network, plan, "--world virtual"))
        assert bool(unfit) == (network not in fit.BUILT_IN)
        if unfit:
            with pytest.raises(WorldError, match="found an attack"):
                fit.refuse(network, plan, unfit)


def test_the_pages_are_drawn_from_what_was_measured() -> None:
    done = subprocess.run(
        [sys.executable, "tools/security_cost.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("kind", "transport", "said"),
    [
        ("reset", "quic", 'kind: found "reset" on the transport quic; allowed: tcp'),
        ("reset", "udp", 'kind: found "reset" on the transport udp; allowed: tcp'),
        (
            "forge",
            "quic",
            'kind: found "forge" on the transport quic; allowed: tcp, or a built-in transport of datagrams',
        ),
    ],
)
def test_an_attack_that_a_transport_cannot_have_is_refused_with_its_line(
    tmp_path: Path, kind: str, transport: str, said: str
) -> None:
    found = refusal(tmp_path, text(kind, transport=transport))
    line = 1 + text(kind, transport=transport)[: -len("\n")].count("\n")
    assert f"two.toml:{line}: events" in found and said in found, found


def test_forged_values_that_no_sample_holds_are_refused(tmp_path: Path) -> None:
    scenario = text("forge", "values = [1.0, -1e39]")
    found = refusal(tmp_path, scenario)
    assert "values: found -1e+39; allowed: at most 3.402823e+38, or a flow with codec" in found, found


@pytest.mark.parametrize(
    ("before", "more", "values", "allowed"),
    [
        ("[flows.haptic]", 'codec = "raw"\n', [0.5], "none: its samples are bytes, no values"),
        (
            "[[events]]",
            '[hooks.kinematics]\nrun = "arm5"\nat = "tactile-operator"\n',
            [0.5] * 257,
            "at most 256",
        ),
    ],
)
def test_forged_values_of_a_flow_whose_samples_have_another_form_are_refused(
    tmp_path: Path, before: str, more: str, values: list[float], allowed: str
) -> None:
    scenario = text("forge", f"values = {values}").replace(before, more + before)
    assert f"allowed: {allowed}" in refusal(tmp_path, scenario)
