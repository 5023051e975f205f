"""Security of channels: what it costs, what it says, what it refuses, and where keys are and are not."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest
from texts import TWO_NODES

import tcpsbed
from tcpsbed import keyfile, scenarios
from tcpsbed.analysis.attacks import Excuses
from tcpsbed.analysis.disturbances import _connections, disturbances
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.scenarios.model.entries import entries
from tcpsbed.worlds import link, secrets

DOCS = Path(__file__).resolve().parents[2] / "docs"
OVER_UDP = f'{TWO_NODES}transport = "udp"\n'  # line 19 is the last one
METHODS = {
    "aead": 'security = "aead"\n',
    "chacha": 'security = { kind = "aead", cipher = "chacha20-poly1305", rekey_after = "100 packets" }\n',
    "hmac": 'security = { kind = "hmac", rekey_every = "100 ms" }\n',
}
OVER_RTP = OVER_UDP.replace('transport = "udp"', 'transport = "rtp"')
SRTP = {
    "aes-128-gcm": 'security = "srtp"\n',
    "aes-256-gcm": 'security = { kind = "srtp", cipher = "aes-256-gcm" }\n',
    "aes-128-cm-hmac-sha1-80": 'security = { kind = "srtp", cipher = "aes-128-cm-hmac-sha1-80" }\n',
}
TROUBLE = (
    "unverified",
    "refused_handshakes",
    "refused_connections",
    "expired_handshakes",
    "alerts",
    "unproven_alerts",
    "malformed",
)
"""What an end counts where something is wrong."""
MEASURED = '[measure]\nsync = "100 ms"\necho = { points = "all", period = "5 ms" }\npcapng = true\n'


def ran(folder: Path, text: str) -> tuple[Any, dict[str, Any]]:
    """A run of a text in virtual time, and its summary."""
    folder.mkdir(exist_ok=True)
    file = folder / "two.toml"
    file.write_text(text)
    run = tcpsbed.run(file, out=folder / "run")
    return run, run.summary


def refusal(folder: Path, text: str) -> str:
    """The message that refuses a scenario."""
    path = folder / "bad.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        scenarios.check(scenarios.load(path))
    return str(error.value).removeprefix(f"{folder}/")


def documented(row: str) -> list[int]:
    """The numbers of a row of the table of costs."""
    (line,) = [found for found in (DOCS / "security.md").read_text().splitlines() if found.startswith(row)]
    return [int(number) for number in re.findall(r"\d+", line.split("|", 2)[2])]


def test_tls_over_tcp_costs_what_the_documentation_says_and_repeats(tmp_path: Path) -> None:
    over = OVER_UDP.replace('transport = "udp"', 'transport = "tcp"')
    _, plain = ran(tmp_path / "plain", over)
    _, secured = ran(tmp_path / "secured", over + 'security = "tls"\n' + MEASURED)
    _, again = ran(tmp_path / "again", over + 'security = "tls"\n' + MEASURED)
    assert secured["records_sha256"] == again["records_sha256"], "keys of virtual time follow from the seed"
    for name, flow in secured["flows"].items():
        assert (flow["sent"], flow["lost"]) == (plain["flows"][name]["sent"], 0)
    [each] = documented("| each sample, `tls` over `tcp`")
    for end in secured["endpoints"]:
        [handshake] = documented(f"| handshake of `tls` over `tcp`, side {end['side']}")
        assert end["secure_sessions"] == 1
        assert not any(end[key] for key in TROUBLE)
        assert end["security_bytes"] == handshake + 1000 * each
        assert end["handshake_ns"] == pytest.approx(11e6, rel=0.1)
    assert all(node["asides_refused"] == 0 for node in secured["nodes"])
    assert all("alerts" not in end for end in plain["endpoints"])


def test_tls_in_quic_counts_as_the_other_methods_do(tmp_path: Path) -> None:
    over = OVER_UDP.replace('transport = "udp"', 'transport = "quic"')
    _, plain = ran(tmp_path / "plain", over)
    _, secured = ran(tmp_path / "secured", over + 'security = "tls"\n')
    for end in secured["endpoints"]:
        [handshake] = documented(f"| handshake of `tls` in `quic`, side {end['side']}")
        assert end["secure_sessions"] == 1
        assert end["security_bytes"] == pytest.approx(handshake, abs=20), (
            "parameters and padding follow from the seed"
        )
        assert not any(end[key] for key in TROUBLE)
        assert 10e6 <= end["handshake_ns"] < 13e6, "one round trip, as QUIC without it"
    assert all("secure_sessions" not in end for end in plain["endpoints"])
    assert [end["connections"] for end in (*plain["endpoints"], *secured["endpoints"])] == [1] * 4


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            'transport = "udp"\nsecurity = "tls"\n',
            'session.security: found "tls" at the transport udp; allowed: transport = "tcp" or "quic"; with udp: '
            '"aead" or "hmac"',
        ),
        (
            'transport = "kernel-tcp"\nsecurity = "tls"\n',
            'session.security: found "tls" at the transport kernel-tcp; allowed: transport = "tcp" or "quic"; with '
            "kernel-tcp: no security (kernel-tcp offers none)",
        ),
        (
            'transport = { kind = "quic", crypto = "tls" }\n',
            'session.transport.crypto: found "tls"; allowed: security = "tls" at the channel, in place of it',
        ),
        (
            'transport = "tcp"\nsecurity = { kind = "tls", cipher = "aes-128-gcm" }\n',
            'session.security: found "cipher", which is not a parameter of tls',
        ),
    ],
)
def test_tls_is_for_transports_of_streams_and_an_old_key_names_the_new_one(
    tmp_path: Path, lines: str, message: str
) -> None:
    said = refusal(tmp_path, OVER_UDP.replace('transport = "udp"\n', lines))
    assert message in said and said.startswith("bad.toml:")


@pytest.mark.parametrize("method", METHODS)
def test_every_sample_arrives_and_costs_what_the_documentation_says(tmp_path: Path, method: str) -> None:
    _, plain = ran(tmp_path / "plain", OVER_UDP)
    _, secured = ran(tmp_path / "secured", OVER_UDP + METHODS[method])
    for name, flow in secured["flows"].items():
        assert (flow["sent"], flow["lost"]) == (plain["flows"][name]["sent"], 0)
    each, _ = documented(f"| each datagram, `{'hmac' if method == 'hmac' else 'aead'}`")
    message, message_in_all = documented("| hello, answer")
    empty, empty_in_all = documented("| empty records")
    assert (message_in_all - message, empty_in_all - empty) == (54, 54)
    for end in secured["endpoints"]:
        assert (end["secure_sessions"], end["unverified"], end["replayed"], end["unkeyed"]) == (1, 0, 0, 0)
        assert end["handshake_ns"] > 10e6
        handshake = end["security_bytes"] - 1000 * each
        # Sent at 0, 0.5, 1.5, 3.5 and 7.5 ms, until what comes back is there after 10 ms.
        assert handshake in {5 * message + confirmations * empty for confirmations in (5, 6)}
        assert (end["key_changes"] > 15) == (method != "aead")
    assert all("secure_sessions" not in end for end in plain["endpoints"])


@pytest.mark.parametrize("cipher", SRTP)
def test_rtp_goes_as_srtp_and_costs_what_the_documentation_says(tmp_path: Path, cipher: str) -> None:
    capturing = "[measure]\npcapng = true\n"
    run, secured = ran(tmp_path / "secured", OVER_RTP + SRTP[cipher] + capturing)
    open_run, plain = ran(tmp_path / "plain", OVER_RTP + capturing)
    for name, flow in secured["flows"].items():
        assert (flow["sent"], flow["lost"]) == (plain["flows"][name]["sent"], 0)
    tag, report = documented(f'| `"{cipher}"`')[-2:]
    message, _ = documented("| hello, answer")
    empty, _ = documented("| empty records")
    for end in secured["endpoints"]:
        assert end["secure_sessions"] == 1 and end["reports"] >= 1
        assert [end[key] for key in ("malformed", "unverified", "replayed", "unkeyed")] == [0] * 4
        added = end["security_bytes"] - 1000 * tag - 5 * message
        handshakes = {added - reports * report for reports in range(1, 5)}
        assert handshakes & {5 * empty, 6 * empty}, added
    # Reports carry the names of sources.
    captures = [b"".join(f.read_bytes() for f in r.folder.rglob("*.pcapng")) for r in (run, open_run)]
    assert [b"session@a-b@a" in capture for capture in captures] == [False, True]


def test_the_same_seed_gives_the_same_rows_and_another_one_does_not_matter_to_samples(tmp_path: Path) -> None:
    runs = [ran(tmp_path / str(n), OVER_UDP + METHODS["aead"])[0] for n in range(2)]
    assert runs[0].summary["records_sha256"] == runs[1].summary["records_sha256"]


def test_clocks_and_echoes_are_sealed_where_a_channel_is(tmp_path: Path) -> None:
    secured, summary = ran(tmp_path / "secured", OVER_UDP + METHODS["aead"] + MEASURED)
    plain, open_summary = ran(tmp_path / "plain", OVER_UDP + MEASURED)
    starts = (b"\xecTCE\x01", b"\xccTCC\x01")  # of answers and clock exchanges
    captures = [b"".join(f.read_bytes() for f in run.folder.rglob("*.pcapng")) for run in (secured, plain)]
    assert [[start in capture for start in starts] for capture in captures] == [[False] * 2, [True] * 2]
    assert all(node["asides_refused"] == 0 for node in summary["nodes"])
    answered, expected = [[p["n"] for p in s["echo"]["kinematic"]["points"]] for s in (summary, open_summary)]
    assert len(answered) == len(expected) and min(answered) > 0.9 * min(expected) > 0
    errors = [s["clocks"][0]["true_error_max_ms"] for s in (summary, open_summary)]
    assert max(errors) < 0.2, "no exchange waits for keys"


REFUSED = {
    "no such method": (
        'security = "ead"\n',
        'bad.toml:20: channels.session.security: found "ead"',
    ),
    "no such cipher": (
        'security = { kind = "aead", cipher = "des" }\n',
        'bad.toml:20: channels.session.security.cipher: found "des"; allowed: "chacha20-poly1305", "aes-128-gcm", ',
    ),
    "a cipher of hmac": (
        'security = { kind = "hmac", cipher = "aes-128-gcm" }\n',
        'bad.toml:20: channels.session.security: found "cipher", which is not a parameter of hmac',
    ),
    "SRTP without RTP": (
        'security = "srtp"\n',
        'bad.toml:20: channels.session.security: found "srtp" at the transport udp; allowed: transport = "rtp"; with '
        'udp: "aead" or "hmac"',
    ),
    "a key file that others may read": (
        'security = { kind = "aead", key_file = "open.key" }\n',
        "bad.toml:20: channels.session.security.key_file: found open.key, which is open to other users (mode 0644); "
        "allowed: mode 0600: chmod 600 open.key",
    ),
    "half a key": (
        'security = { kind = "aead", key_file = "short.key" }\n',
        "bad.toml:20: channels.session.security.key_file: found short.key, which holds no key (32 characters); allowed: ",
    ),
    "a key of zeros": (
        'security = { kind = "aead", key_file = "zero.key" }\n',
        "bad.toml:20: channels.session.security.key_file: found zero.key, which holds a key of one repeated byte (00), "
        "which everybody guesses; allowed: ",
    ),
    "keys that change faster than packets overtake each other": (
        'security = { kind = "aead", rekey_after = "63 packets" }\n',
        'bad.toml:20: channels.session.security.rekey_after: found "63 packets"; allowed: ',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_has_one_message(tmp_path: Path, case: str) -> None:
    line, message = REFUSED[case]
    for name, mode, text in (
        ("open.key", 0o644, "ab" * 32),
        ("short.key", 0o644, "ab" * 16),  # a file of somebody else: no remedy makes it a key
        ("zero.key", 0o600, "0" * 64),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    assert refusal(tmp_path, OVER_UDP + line).startswith(message)


def test_srtp_takes_its_own_ciphers_and_no_change_of_keys(tmp_path: Path) -> None:
    start = "bad.toml:20: channels.session.security"
    said = refusal(tmp_path, OVER_RTP + 'security = { kind = "srtp", cipher = "chacha20-poly1305" }\n')
    assert said.startswith(
        f'{start}.cipher: found "chacha20-poly1305"; allowed: "aes-128-gcm", "aes-256-gcm", '
    )
    said = refusal(tmp_path, OVER_RTP + 'security = { kind = "srtp", rekey_after = "100 packets" }\n')
    assert said.startswith(f'{start}: found "rekey_after", which is not a parameter of srtp')


@pytest.mark.parametrize(
    ("transport", "offers"),
    [
        ('"quic"', 'a transport such as "udp"; with quic: "tls"'),
        ('"tcp"', 'a transport such as "udp"; with tcp: "tls"'),
        ('"kernel-tcp"', 'a transport such as "udp"; with kernel-tcp: no security (kernel-tcp offers none)'),
        ('{ kind = "udp", overhead = "66 B" }', "no overhead at the transport, or no security"),
    ],
)
def test_a_transport_that_cannot_have_it_says_what_it_offers(
    tmp_path: Path, transport: str, offers: str
) -> None:
    text = OVER_UDP.replace('transport = "udp"', f"transport = {transport}") + METHODS["aead"]
    assert f"allowed: {offers}" in refusal(tmp_path, text)


def test_a_key_file_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "lab.key"
    keyfile.make(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = keyfile.read(file)
    assert len(key) == 64 and key != keyfile.fresh()
    with pytest.raises(DataError, match="exists already"):
        keyfile.make(file)
    assert keyfile.read(file) == key


def test_keys_reach_the_nodes_of_their_channels_and_no_plan(tmp_path: Path) -> None:
    keyfile.make(tmp_path / "lab.key")
    file = tmp_path / "two.toml"
    file.write_text(OVER_UDP + 'security = { kind = "aead", key_file = "lab.key" }\n')
    plan = scenarios.compile_plan(scenarios.load(file), tmp_path)
    made = secrets.made(plan)
    key = keyfile.read(tmp_path / "lab.key")
    assert len({key, made["0"], made["asides"], secrets.made(plan)["0"]}) == 4, "each run has keys of its own"
    assert key not in str(plan)
    assert secrets.of_node(plan, made, 0) == made
    assert secrets.of_node(plan | {"nodes": [{}] * 3}, made, 2) == {"asides": made["asides"]}
    assert tmp_path / "lab.key" not in link.files_of(plan), "it is not copied to hosts"
    assert scenarios.load(file).files == [file], "nor into archives"
    (tmp_path / "lab.key").unlink()
    with pytest.raises(DataError, match="no such file"):
        secrets.made(plan)
    assert secrets.made({"channels": [{"a": 0, "b": 1}]}) == {}
    tls = {"a": 0, "b": 1, "transport": "quic", "security": {"kind": "tls"}}
    assert list(secrets.made({"channels": [{"a": 0, "b": 1}, tls]})) == ["1", "asides"]


def test_each_transport_names_methods_that_there_are() -> None:
    methods = set(entries("security"))
    offered = {name: entry["security"] for name, entry in entries("transport").items()}
    assert {method for found in offered.values() for method in found} == methods
    assert [name for name, found in offered.items() if "tls" in found] == ["tcp", "quic"]


def test_what_was_refused_is_said_at_each_side() -> None:
    quiet = dict.fromkeys((*TROUBLE, "unsealed", "replayed", "unkeyed"), 0)
    ends = [
        {"channel": "c", "side": "a", **quiet, "secure_sessions": 0},
        {
            "channel": "c",
            "side": "b",
            **quiet,
            "secure_sessions": 0,
            "refused_handshakes": 9,
            "unverified": 9,
        },
        {"channel": "d", "side": "b", **quiet, "secure_sessions": 0, "unsealed": 2, "unverified": 2},
        {
            "channel": "e",
            "side": "b",
            **quiet,
            "secure_sessions": 1,
            "unverified": 1,
            "replayed": 5,
            "unkeyed": 3,
        },
        {"channel": "f", "side": "b", **quiet, "secure_sessions": 1},
        {"channel": "h", "side": "a", **quiet, "secure_sessions": 2, "alerts": 1},
        {"channel": "h", "side": "b", **quiet, "secure_sessions": 2, "refused_connections": 1},
        {"channel": "i", "side": "a", **quiet, "secure_sessions": 0, "connections": 0, "unproven_alerts": 3},
        {"channel": "i", "side": "b", **quiet, "secure_sessions": 0, "unsealed": 1, "refused_connections": 1},
        {"channel": "j", "side": "a", **quiet, "secure_sessions": 1, "unproven_alerts": 1},
        {"channel": "k", "side": "a", **quiet, "secure_sessions": 1, "expired_handshakes": 2},
        {
            "channel": "k",
            "side": "b",
            **quiet,
            "secure_sessions": 1,
            "malformed": 7,
            "connections": 1,
            "connections_lost": 0,
        },
        {"channel": "l", "side": "b", **quiet, "secure_sessions": 1, "malformed": 7},
        {"channel": "g", "side": "b"},
    ]
    analysis: dict[str, Any] = {key: [] for key in ("nodes", "clocks", "echo", "flows")}
    analysis |= {"torn_bytes": 0, "strange_rows": 0, "unordered_rows": 0}
    info = {"world": "virtual", "clocks": {}, "flows": {}}
    none = "agreed on no keys with its other side:"
    assert disturbances(info, {"endpoints": ends}, analysis) == [
        f"channel c at a {none} the other side has another key, or no security, or did not answer, or somebody between them"
        " interfered",
        f"channel c at b {none} it refused 9 handshake messages that did not verify",
        f"channel d at b {none} it got 2 messages without security",
        "channel e at b refused 1 datagram that did not verify: forged, or damaged",
        "channel e at b refused 5 datagrams whose number it had received before",
        "channel e at b dropped 3 datagrams that no key could seal",
        "channel h at a lost 1 connection, ended by its other side",
        "channel h at b ended 1 connection of which a part did not verify: forged, or damaged",
        f"channel i at a {none} 3 handshakes ended with an alert, as a side with another key sends it, and anybody on the "
        "path can",
        f"channel i at b {none} it got 1 message without security",
        "channel j at a saw 1 handshake end with an alert, which anybody on the path can send",
        "channel k at a gave up 2 handshakes that took too long",
        "channel k at b refused 7 packets that did not fit its connection: late, of another one, damaged, or forged",
    ]


@pytest.mark.parametrize("transport", ["tcp", "quic"])
@pytest.mark.parametrize("offset", ["-20 s", "20 s"])
def test_a_connection_is_opened_when_the_run_begins_whatever_the_clock_of_its_node_shows(
    tmp_path: Path, transport: str, offset: str
) -> None:
    scenario = f'{TWO_NODES}transport = "{transport}"\nsecurity = "tls"\n[nodes.a]\nclock = {{ offset = "{offset}" }}\n'
    _, summary = ran(tmp_path, scenario)
    assert all(end["connections"] == 1 for end in summary["endpoints"])
    assert summary["flows"]["kinematic"]["delivered"] > 900


def test_a_lost_connection_says_when_with_how_many_samples_and_whether_another_stood() -> None:
    lost = {"connections": 2, "connections_lost": 1, "first_lost_ns": 2_000_000_000, "lost_in_flight": 3}
    ends = [
        {"channel": "c", "side": "a", **lost, "down_since_ns": None, "longest_down_ns": 1_012_000_000},
        {"channel": "c", "side": "b", **lost, "down_since_ns": 2_000_000_000, "lost_in_flight": 0},
        {
            "channel": "d",
            "side": "a",
            **lost,
            "connections_lost": 2,
            "lost_in_flight": 1,
            "down_since_ns": None,
            "longest_down_ns": 5_000_000_000,
        },
        {"channel": "d", "side": "b", "connections": 1, "connections_lost": 0},
    ]
    said = list(_connections({"endpoints": ends}, Excuses(())))
    assert [text for disturbs, text in said if disturbs] == [
        "channel c at a lost 1 connection, at 2.000 s, with 3 samples that had not been acknowledged; "
        "re-established after 1.012 s",
        "channel c at b lost 1 connection, at 2.000 s; down since 2.000 s",
        "channel d at a lost 2 connections, the first at 2.000 s, with 1 sample that had not been acknowledged; the longest "
        "gap was 5.000 s",
    ]
