"""Worlds by name: pairs of hosting and network, those that do not fit refused with the reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tcpsbed import scenarios, worlds
from tcpsbed.errors import WorldError
from tcpsbed.worlds import registry

TEXT = (
    'duration = "0.2 s"\n[components]\nms-com = "left"\nss-com = "right"\n[flows.kinematic]\n[flows.haptic]\n'
)
LINK = '[links.l1]\nfrom = "left"\nto = "right"\ndelay = "1 ms"\n'


def plan(links: bool = True, network: str = "gates") -> dict:
    return {"real": {"network": network}, "network": {"links": [{"name": "l1"}] if links else []}}


@pytest.mark.parametrize(
    ("name", "found", "pair"),
    [
        ("real", plan(), ("process", "emulator")),
        ("real", plan(links=False), ("process", "none")),
        ("real", plan(network="namespaces"), ("namespaces", "emulator")),
        ("namespaces", plan(), ("namespaces", "emulator")),
        ("process+none", plan(), ("process", "none")),
    ],
)
def test_a_name_stands_for_a_pair(name, found, pair):
    assert registry.parts(name, found) == pair
    world = registry.resolve(name, found)
    assert (world.hosting.name, world.network.name) == pair


def test_only_links_of_ours_take_events_while_they_run():
    names = "virtual", "ns3-virtual", "real", "hosts", "ns3"
    takes = [registry.takes_events(name, plan()) for name in names]
    assert takes == [True, False, True, False, False]
    assert not registry.takes_events("real", plan(links=False))


@pytest.mark.parametrize("name", ["virtual", *registry.PAIRS])
def test_every_named_world_can_be_imported_and_fits_together(name):
    registry.check(name)


def test_pairs_without_names_are_those_that_fit_together():
    found = registry.pairs()
    assert {"mininet+ovs", "containers+ns3-tap", "hosts+ns3", "process+none"} <= set(found)
    assert not {"namespaces+none", "process+ns3-tap", "mininet+emulator", "process+ns3"} & set(found)
    for name in found:
        registry.check(name)


def test_every_class_has_the_name_it_is_listed_under():
    for listed in (registry.HOSTINGS, registry.NETWORKS):
        for name, path in listed.items():
            assert registry._load(path).name == name
            assert registry._load(path).what


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("namespaces+none", r"no network between them; allowed: namespaces\+emulator"),
        ("namespace", "did you mean namespaces"),
        ("process+nothing", "process, namespaces"),
        ("", "HOSTING"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(name, reason):
    with pytest.raises(WorldError, match=reason):
        registry.check(name)


def test_the_command_refuses_before_it_makes_a_folder(tmp_path: Path):
    (tmp_path / "s.toml").write_text(TEXT)
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "run",
        "s.toml",
        "--world",
        "namespaces+none",
        "--out",
        "there",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "nodes of namespaces have no network" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "there").exists()


def test_links_that_nothing_emulates_are_named_in_the_summary(tmp_path: Path):
    import tcpsbed

    (tmp_path / "s.toml").write_text(TEXT + LINK)
    scenario = scenarios.load(tmp_path / "s.toml")
    summary = tcpsbed.run(scenario, world="process+none", out=tmp_path / "run").summary
    assert [text for text in summary["ignored"] if text.startswith("link l1: ")]
    assert summary["emulator"] == []
    assert summary["world"] == "process+none"


@pytest.mark.parametrize("command", [["sweep", "--over", "name=a,b"], ["latency"], ["step"], ["run"]])
@pytest.mark.parametrize(
    ("world", "words"), [("namespace", "did you mean"), ("mininet+none", "allowed: mininet")]
)
def test_every_command_refuses_a_world_that_cannot_be(
    tmp_path: Path, command: list[str], world: str, words: str
):
    from typer.testing import CliRunner

    from tcpsbed.cli.app import app

    (tmp_path / "s.toml").write_text(TEXT + LINK)
    name, *more = command
    done = CliRunner().invoke(app, [name, str(tmp_path / "s.toml"), *more, "--world", world])
    assert done.exit_code == 2 and words in done.stderr, done.output


@pytest.mark.parametrize("world", ["mininet", "ns3-virtual", "hosts+ns3"])
def test_a_world_that_is_not_ready_is_refused_before_anything_runs(monkeypatch, world: str):
    from tcpsbed.worlds import hosts, mininet, ns3

    for part in (hosts.Hosts, mininet.Hosts, ns3.Ns3):
        monkeypatch.setattr(part, "missing", classmethod(lambda cls: "a thing: apt-get install thing"))
    with pytest.raises(
        WorldError, match=rf"world {re.escape(world)} is not ready here.*apt-get install thing"
    ):
        registry.require(world)


def test_what_stands_between_hosts_needs_nothing_here(monkeypatch):
    from tcpsbed.worlds import hosts, ns3

    monkeypatch.setattr(hosts.Hosts, "missing", classmethod(lambda cls: None))
    monkeypatch.setattr(ns3.Ns3, "missing", classmethod(lambda cls: "ns-3"))
    registry.require("hosts+ns3")
    with pytest.raises(WorldError, match="needs ns-3"):
        registry.require("process+ns3")


def test_a_sweep_runs_in_any_world(tmp_path: Path):
    (tmp_path / "s.toml").write_text(TEXT + LINK)
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "sweep",
        "s.toml",
        "--over",
        "flows.haptic.rate=100 Hz,200 Hz",
    ]
    command += ["--seeds", "1", "--world", "process+none", "--out", "there", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    cells = [
        json.loads(file.read_text())["summary"] for file in (tmp_path / "there" / "cells").glob("*.json")
    ]
    assert [cell["world"] for cell in cells] == ["process+none"] * 2
    sent = sorted(cell["flows"]["haptic"]["sent"] for cell in cells)  # fewer where the machine stalls
    assert 0 < sent[0] <= 20 and sent[0] <= sent[1] <= 40


def test_more_nodes_than_a_computer_bears_as_processes_are_refused(tmp_path):
    many = "".join(f"[nodes.n{number}]\n" for number in range(499))
    (tmp_path / "s.toml").write_text(TEXT + many)
    with pytest.raises(
        WorldError, match=r"nodes: found 501 nodes, each a process in world real; allowed: at most 500"
    ):
        worlds.run(scenarios.load(tmp_path / "s.toml"), world="real", out=tmp_path / "out")
