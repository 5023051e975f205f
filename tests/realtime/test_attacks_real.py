"""Attacks in the emulator, on sockets: the same commands as in virtual time are accepted, and none with keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from texts import TWO_NODES

import tcpsbed
from tcpsbed.errors import WorldError

SHIPPED = Path(__file__).resolve().parents[2] / "scenarios" / "attacks.toml"


def effects(folder: Path, **settings: str) -> dict[str, dict[str, Any]]:
    """What the attacks of the shipped scenario did on sockets."""
    given = {key.replace("__", "."): value for key, value in settings.items()}
    run = tcpsbed.run(SHIPPED, out=folder / "run", world="real", set=given)
    assert run.summary["errors"] == []
    caused = ("channel ", "clock of", "refused", "more than were sent")
    disturbances = run.summary["disturbances"]
    assert [said for said in disturbances if any(word in said for word in caused)] == [], "as set"
    flow = run.summary["flows"]["kinematic"]
    arrived = flow["delivered"] + flow["superseded"]
    assert flow["sent"] == arrived + flow["lost"] + flow["in_flight"], "genuine ones alone"
    assert flow["lost"] == sum(flow["drops"].values()), "all named"
    assert flow["forged"] == run.summary["effects"][0]["accepted"]
    return {one["name"]: one for one in run.summary["effects"]}


@pytest.mark.slow
@pytest.mark.beside
def test_without_security_forged_commands_and_lies_are_believed_on_sockets(tmp_path: Path) -> None:
    found = effects(tmp_path)
    assert found["forged commands"]["accepted"] == found["forged commands"]["sent"] == 50
    assert found["replays"]["sent"] == pytest.approx(500, abs=25)
    assert found["replays"]["accepted"] == 0
    assert found["flood"]["delays"]["kinematic"]["added_p50_ms"] > 20
    assert 45 < found["commands are cut off"]["hold_ms"] < 200
    assert found["lies about the clock"]["accepted"] > 30


@pytest.mark.beside
def test_with_keys_nothing_of_an_attacker_is_accepted_on_sockets(tmp_path: Path) -> None:
    found = effects(tmp_path, channels__session__security="aead")
    for name in ("forged commands", "replays", "lies about the clock"):
        assert found[name]["sent"] > 30, name
        assert found[name]["accepted"] == 0, name


TAMPERED = """
transport = "tcp"
security = "tls"
[[events]]
at = "1 s"
attack = { kind = "tamper", link = "wan.forward", flow = "kinematic", share = "10 %", duration = "100 ms" }
"""


@pytest.mark.beside
def test_changed_segments_end_a_connection_with_tls_and_both_sides_say_so_on_sockets(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(TWO_NODES.replace('"1 s"', '"4 s"') + TAMPERED)
    summary = tcpsbed.run(file, out=tmp_path / "run", world="real").summary
    assert summary["effects"][0]["sent"] > 0
    a, b = sorted(summary["endpoints"], key=lambda end: str(end["side"]))
    assert b["refused_connections"] >= 1 and a["alerts"] >= 1 and (a["malformed"], b["malformed"]) == (0, 0)
    assert b["secure_sessions"] >= 2, "they connected again"
    assert not summary["effects"][0]["accepted"]
    said = " ".join(summary["as_set"])
    assert "channel session@a-b at b ended" in said and "channel session@a-b at a lost" in said


@pytest.mark.needs("netns")
def test_namespaces_refuse_attacks_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(
        WorldError, match=r"attacks.toml:\d+: events.0: found an attack.*--world virtual or real"
    ):
        tcpsbed.run(SHIPPED, out=tmp_path / "run", world="namespaces")
    assert not (tmp_path / "run").exists()
