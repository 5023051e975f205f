"""What a run, its commands and its page say of the attacks that its scenario asks for."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from test_attacks import SHIPPED, ran, text
from texts import TWO_NODES

import tcpsbed
from tcpsbed.analysis import attacks, protection, refusals
from tcpsbed.analysis.disturbances import BEYOND, as_set, disturbances
from tcpsbed.campaign.results import Group
from tcpsbed.cli.colour import RED, tables
from tcpsbed.views.sentence import sentence

ROOT = Path(__file__).resolve().parents[2]
FORGED = "kinematic accepted 50 of 50 forged datagrams (forged commands, from 2.000 s)"
AEAD = "channels.session.security=aead"


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-m", "tcpsbed", *map(str, words)]
    return subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The shipped scenario without security and with it, and what `run --strict` said."""
    folder = tmp_path_factory.mktemp("attacks")
    plain = command(folder, "run", str(SHIPPED), "--out", "plain", "--strict")
    secured = command(folder, "run", str(SHIPPED), "--out", "secured", "--strict", "--set", AEAD)
    return {"folder": folder, "plain": plain, "secured": secured}


def summary(runs: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((runs["folder"] / name / "summary.json").read_text())
    return found


def test_a_run_that_refused_all_of_an_attacker_is_calm_and_says_so_in_a_line(runs: dict[str, Any]) -> None:
    done, found = runs["secured"], summary(runs, "secured")
    assert (done.returncode, done.stderr) == (0, "")
    assert (found["disturbances"], found["attacked"], found["errors"]) == ([], [], [])
    assert found["as_set"][0] == "946 datagrams sent, none accepted"
    [line] = [line for line in done.stdout.splitlines() if line.startswith("attacks: ")]
    assert "refused 500 datagrams whose number it had received before" in line
    assert "node robot refused 40 datagrams outside channels" in line
    checked = command(runs["folder"], "check-qos", "secured", "--profile", "telehaptics")
    assert "proves nothing" not in checked.stdout + checked.stderr


def test_a_run_that_obeyed_an_attacker_says_so_first_and_fails_a_strict_caller(runs: dict[str, Any]) -> None:
    done, found = runs["plain"], summary(runs, "plain")
    assert done.returncode == 3 and f"ATTACKED, and --strict was given:\n  {FORGED}" in done.stderr
    assert done.stdout.splitlines()[1] == f"ATTACKED: {FORGED}"
    assert found["attacked"] == [
        FORGED,
        "the clock of robot accepted 40 of 40 lies about the clock (lies about the clock, from 10.000 s)",
    ]
    assert found["disturbances"] == [], "the step of the clock is a lie that the scenario told"
    assert "clock of operator seen by robot stepped by 8.920 ms beyond its bounds" in found["as_set"]
    assert sentence(found)[0] == ("bad", f"ATTACKED: {FORGED}")
    page = (runs["folder"] / "plain" / "report.html").read_text()
    assert f"ATTACKED: {FORGED}" in page and "this run accepted datagrams of an attacker" in page
    assert FORGED in command(runs["folder"], "show", "plain").stdout
    listed = command(runs["folder"], "runs", ".").stdout.splitlines()
    verdicts = {line.split()[-1].rpartition("/")[2]: line for line in listed if "virtual" in line}
    assert " ATTACKED " in verdicts["plain"] and " ok " in verdicts["secured"]


def test_what_was_accepted_is_in_the_colour_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpsbed.cli.colour.paint", lambda text, code, _: f"<{code}>{text}")
    assert tables(f"ATTACKED: {FORGED}\n").startswith(f"<{RED}>ATTACKED")
    assert tables("SUPERVISOR: it refused\n").startswith("<33>")


def test_only_what_goes_beyond_the_attacks_of_the_scenario_disturbs() -> None:
    effect = {
        "kind": "forge",
        "flow": "k",
        "channel": "c",
        "to": {"b": 50},
        "sent": 50,
        "accepted": 0,
        "name": "f",
    }
    lie = {
        "kind": "clock-lie",
        "flow": None,
        "channel": None,
        "to": {"b": 7},
        "sent": 7,
        "accepted": 0,
        "name": "l",
    }
    end = {"channel": "c", "side": "b", "secure_sessions": 1, "unverified": 30, "replayed": 25}
    result = {
        "world": "virtual",
        "endpoints": [end, end | {"side": "a", "replayed": 0}],
        "nodes": [{"name": "b", "asides_refused": 8}],
    }
    rows: dict[str, Any] = dict.fromkeys(("torn_bytes", "strange_rows", "unordered_rows"), 0)
    rows |= {"nodes": [], "clocks": [], "flows": [], "effects": [effect, lie]}
    info = {"world": "virtual", "flows": {}, "clocks": {}}
    refused = "refused 30 datagrams that did not verify: forged, or damaged"
    assert disturbances(info, result, rows) == [
        f"node b refused 1 datagram outside channels: neither answers to its echoes nor its clock exchanges{BEYOND}",
        f"channel c at b refused 5 datagrams whose number it had received before{BEYOND}",
        f"channel c at a {refused}",
    ]
    assert as_set(info, result, rows) == [
        "57 datagrams sent, none accepted",
        "node b refused 7 datagrams outside channels: neither answers to its echoes nor its clock exchanges",
        f"channel c at b {refused}",
        "channel c at b refused 20 datagrams whose number it had received before",
    ]
    calm = deepcopy(rows) | {"effects": []}
    assert len(disturbances(info, result, calm)) == 4 and as_set(info, result, calm) == []


@pytest.mark.parametrize(
    "transport", ["udp", "repeat", "parity", "rtp", "smoothed-sctp", "dpm", "multipath", "tcp"]
)
@pytest.mark.parametrize("kind", ["forge", "tamper", "replay"])
def test_genuine_samples_are_delivered_lost_or_in_flight_and_forged_ones_none_of_them(
    tmp_path: Path, transport: str, kind: str
) -> None:
    more = {"forge": 'rate = "97 Hz"', "tamper": 'share = "10 %"', "replay": 'after = "100 ms"'}[kind]
    found = ran(tmp_path, text(kind, more, transport=transport)).summary
    flow, [effect] = found["flows"]["kinematic"], found["effects"]
    assert flow["delivered"] + flow["lost"] + flow["in_flight"] == flow["sent"] == 3000
    assert flow["forged"] == (effect["accepted"] if kind == "forge" else 0)
    assert found["disturbances"] == []


@pytest.mark.parametrize("method", ["none", "aead"])
def test_genuine_commands_behind_forged_numbers_are_lost_for_that_reason(
    runs: dict[str, Any], method: str
) -> None:
    flow = summary(runs, "plain" if method == "none" else "secured")["flows"]["kinematic"]
    assert flow["delivered"] + flow["lost"] + flow["in_flight"] + flow["superseded"] == flow["sent"]
    behind = {key: n for key, n in flow["drops"].items() if key.endswith(" behind forged")}
    assert behind == ({"session@operator-robot behind forged": 49} if method == "none" else {})
    assert flow["lost"] == sum(flow["drops"].values())
    assert flow["duplicates_dropped"] == (500 if method == "none" else 0), "the replays alone"
    assert flow["forged"] == (50 if method == "none" else 0)


def test_values_of_forged_samples_are_in_no_delay_of_the_flow(tmp_path: Path) -> None:
    flow = ran(tmp_path, text("forge", 'rate = "500 Hz"')).summary["flows"]["kinematic"]
    assert flow["delay_ms"]["n"] == flow["delivered"] == flow["sent"] - flow["lost"] - flow["in_flight"]
    assert flow["lost"] == flow["drops"]["session@a-b behind forged"] > 100
    assert flow["payload_bytes"] == 64 * flow["delivered"]


def test_runs_are_compared_by_what_they_accepted(runs: dict[str, Any]) -> None:
    folder = runs["folder"]
    done = command(folder, "compare", "plain", "secured", "--page", "both.html")
    shown = done.stdout.split("effects.forged commands", 1)[1].split("\n\n")[0]
    rows = [line.split() for line in shown.splitlines()]
    assert ["accepted", "50", "0", "−50", "0.000"] in rows
    assert any(row[:4] == ["accepted", "share", "100.0", "%"] for row in rows), rows
    assert "Of forged commands 50 in A, 0 in B were accepted" in (folder / "both.html").read_text()
    some = tcpsbed.compare(
        folder / "plain", folder / "secured", metrics=["effects.forged commands.accepted_share"]
    )
    assert [row.values for row in some.rows if row.metric.name == "safe_stop_ms"] == []
    assert "attacked" in str(some.runs)
    every = command(folder, "compare", "plain", "secured", "--all").stdout
    assert "effects.replays" in every and "effects.flood" in every


def test_a_sweep_has_a_table_for_each_attack_and_a_campaign_knows_its_metrics(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(
        text("forge", 'rate = "97 Hz"').replace("[[events]]", '[[events]]\nname = "f"')
    )
    over = "channels.session.transport=udp,rtp"
    done = command(
        tmp_path, "sweep", "two.toml", "--over", over, "--seeds", "2", "--out", "all", "--yes", "-q"
    )
    assert done.returncode == 0, done.stderr
    shown = command(tmp_path, "show", "all").stdout
    of = shown.split("\neffects.f\n", 1)[1].splitlines()
    assert "accepted share" in of[0] and "delay" not in of[0]
    assert " 100.0 % " in of[2]
    shares = {
        row["accepted_share"] for row in tcpsbed.load(tmp_path / "all").rows if row["flow"] == "effects.f"
    }
    assert 1.0 in shares and min(shares) > 0.9
    grid = '[grid]\n"channels.session.transport" = ["udp", "rtp"]\n'
    campaign = f'scenario = "two.toml"\nseeds = 2\nmetrics = ["effects.{{}}.accepted_share"]\n{grid}'
    (tmp_path / "c.toml").write_text(campaign.format("f"))
    done = command(tmp_path, "campaign", "c.toml", "--out", "c", "--yes", "-q")
    assert done.returncode == 0, done.stderr
    (tmp_path / "d.toml").write_text(campaign.format("g"))
    done = command(tmp_path, "campaign", "d.toml", "--out", "d", "--yes", "-q")
    assert done.returncode == 2 and 'found "effects.g", which is not an event with a name' in done.stderr


def test_seeds_that_give_the_same_records_are_one_run_that_is_disturbed_once() -> None:
    row = {"records_sha256": "a", "disturbed": True}
    same = Group(("x",), "k", {1: row, 2: row})
    assert same.unchanged and same.disturbed == 1
    assert Group(("x",), "k", {1: row, 2: row | {"records_sha256": "b"}}).disturbed == 2


def outside(folder: Path, transport: str = "udp") -> Any:
    """Commands that no workspace allows are forged."""
    event = {
        "at": "2 s",
        "name": "far",
        "attack": {
            "kind": "forge",
            "link": "wan.forward",
            "flow": "kinematic",
            "rate": "50 Hz",
            "values": [5.0, 0, 0, 0, 0, 0],
            "duration": "1 s",
        },
    }
    return tcpsbed.run(SHIPPED, out=folder / "out", set={"events": [event], "duration": "4 s"})


def test_accepted_is_not_obeyed_where_a_supervisor_refuses(tmp_path: Path) -> None:
    found = outside(tmp_path).summary
    [effect] = found["effects"]
    assert (effect["accepted"], effect["refused"], effect["component"]) == (50, 50, "ss-com")
    assert found["attacked"][1:] == [
        "the supervisor at ss-com refused 50 commands of kinematic in the whole run: what was accepted entered ss-com, and"
        " not all of it was obeyed"
    ]


def test_a_supervisor_that_refuses_commands_is_no_error_of_the_run(tmp_path: Path) -> None:
    found = outside(tmp_path).summary
    assert found["errors"] == []
    assert found["supervisors"] == [
        "ss-com refused 50 commands of kinematic, the first because: value 0 is 5, outside the workspace -2 to 2"
    ]
    done = command(tmp_path, "show", "out")
    assert f"\nSUPERVISOR: {found['supervisors'][0]}\n" in done.stdout and "ERROR" not in done.stdout
    late = command(tmp_path, "run", str(SHIPPED), "--out", "tcp", "--set", "channels.session.transport=tcp")
    assert late.returncode == 0 and "ERROR" not in late.stdout + late.stderr
    assert "the limit is 950 ms (end_to_end_ms 1000 less clock_ms 50)" in late.stdout


def test_other_errors_of_hooks_remain_errors() -> None:
    other = ["hook ./a.py:B at ss-com (k): refused: x, once", "hook supervisor at ss-com (k): gone, 2 times"]
    told = {"errors": other, "stages": [{"component": "ss-com", "flow": "k"}]}
    assert refusals.split(told) == (other, [])


def test_each_channel_says_how_it_is_protected_and_where_its_key_is_from(
    runs: dict[str, Any], tmp_path: Path
) -> None:
    bare = "channel session@operator-robot: NOT PROTECTED: anybody on its network can send commands"
    sealed = "channel session@operator-robot: aead (aes-128-gcm), key from the seed (on sockets drawn for each run)"
    assert bare in runs["plain"].stdout.splitlines() and sealed in runs["secured"].stdout.splitlines()
    assert bare in command(runs["folder"], "show", "plain").stdout
    assert f"{bare}." in (runs["folder"] / "plain" / "report.html").read_text().replace("Channel", "channel")
    assert ran(tmp_path, TWO_NODES).summary["protection"] == [], "a virtual run without either is calm"
    command(tmp_path, "key", "lab.key")
    (tmp_path / "two.toml").write_text(f'{TWO_NODES}security = {{ kind = "hmac", key_file = "lab.key" }}\n')
    [said] = protection.sentences(
        tcpsbed.run(tmp_path / "two.toml", out=tmp_path / "hmac").summary["protection"]
    )
    assert said == "channel session@a-b: hmac (hmac-sha256-128), key from the seed (on sockets from lab.key)"
    plan = {"channels": [{"name": "c@a-b", "security": {"kind": "aead", "cipher": "aes-256-gcm"}}]}
    [said] = protection.sentences(protection.protection({"plan": plan, "world": "real"}))
    assert said == "channel c@a-b: aead (aes-256-gcm), key drawn for each run"


def test_the_page_says_by_how_much_security_changes_what_attacks_cost(runs: dict[str, Any]) -> None:
    both = [summary(runs, name)["effects"] for name in ("plain", "secured")]
    apart = [
        abs(one["delays"]["kinematic"][key] - other["delays"]["kinematic"][key])
        for one, other in zip(*both, strict=True)
        for key in ("added_p50_ms", "added_p99_ms")
        if one["delays"]["kinematic"][key] is not None
    ]
    assert 1.5 < max(apart) < 2.0
    assert "with it they differ by less than 2 ms" in (ROOT / "docs" / "security.md").read_text()
    replays = both[0][1]["delays"]["kinematic"]
    assert (round(replays["p50_ms"], 1), round(replays["p99_ms"], 1)) == (6.4, 6.4)


def test_nothing_is_said_of_attacks_where_there_are_none() -> None:
    link = {"kind": "link", "name": "cut", "sent": 0, "accepted": None, "flow": None}
    assert (attacks.sent([link]), attacks.accepted([link]), attacks.share(link)) == ([], [], None)
