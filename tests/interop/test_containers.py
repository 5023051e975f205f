"""Nodes in containers: an image from a tar without a registry, the emulator between them, a fallback that says so."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from real_run import BOXED

import tcpsbed
from tcpsbed import _tcps
from tcpsbed.errors import DataError, WorldError
from tcpsbed.worlds import containers

PYTHON = "/usr/bin/python3.11"


def base(folder: Path) -> Path:
    """A root file system with nothing but this machine's own Python."""
    root = folder / "root"
    command = ["ldd", PYTHON, _tcps.__file__]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in [PYTHON, *(word for word in shown.split() if word.startswith("/") and ":" not in word)]:
        place = root / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, place)
    (root / "usr/bin/python3").symlink_to("python3.11")
    for name in ("proc", "sys", "dev", "tmp", "etc", "run"):
        (root / name).mkdir()
    library = root / "usr/lib/python3.11"
    skipped = shutil.ignore_patterns("test", "__pycache__", "config-*", "dist-packages", "idlelib", "tkinter")
    shutil.copytree(
        "/usr/lib/python3.11", library, ignore=skipped, symlinks=True, ignore_dangling_symlinks=True
    )
    with tarfile.open(folder / "base.tar", "w") as tar:
        tar.add(root, ".")
    return folder / "base.tar"


@pytest.fixture
def image(tmp_path, monkeypatch):
    """The image under a name of this test, gone afterwards."""
    if not Path(PYTHON).exists():
        pytest.skip(f"needs {PYTHON}")
    monkeypatch.setattr(containers, "IMAGE", "localhost/tcpsbed-test")
    yield containers.make_image(base(tmp_path))
    engine = containers.engine()
    assert engine is not None
    subprocess.run([*engine, "rmi", "-f", containers.image()], capture_output=True)


@pytest.mark.slow
@pytest.mark.needs("root", "tun", "containers")
def test_nodes_in_containers_talk_through_the_emulator(image, tmp_path, capsys):
    told = tcpsbed.run(BOXED, world="containers", out=tmp_path / "run").summary
    assert told["errors"] == []
    flow = told["flows"]["kinematic"]
    assert flow["delivered"] > 500 and flow["lost"] == 0
    assert 10 < flow["delay_ms"]["p50"] < 13
    assert {row["stamps"] for row in told["emulator"]} == {"after the read"}
    assert "namespaces" not in capsys.readouterr().err
    engine = containers.engine()
    assert engine is not None
    left = subprocess.run(
        [*engine, "ps", "-a", "--format", "{{.Image}}"], capture_output=True, text=True
    ).stdout
    assert "tcpsbed-test" not in left


@pytest.mark.slow
@pytest.mark.needs("root", "tun", "containers", "ns3")
def test_nodes_in_containers_talk_through_ns3(image, tmp_path, capsys):
    told = tcpsbed.run(BOXED, world="containers+ns3", out=tmp_path / "run").summary
    assert told["errors"] == []
    flow = told["flows"]["kinematic"]
    assert flow["delivered"] > 500 and flow["lost"] == 0
    assert 10 < flow["delay_ms"]["p50"] < 13
    assert any(node["name"] == "ns-3" for node in told["nodes"])
    assert "namespaces" not in capsys.readouterr().err


BUSY = """
[links.l2]
from = "r"
to = "right"
rate = "1 Mbit/s"
queue = "10 packets"
[topology]
routers = ["r"]
[traffic.cbr]
on = "l2.forward"
rate = "800 kbit/s"
packet = "500 B"
[traffic.poisson]
on = "right->left"
rate = "100 kbit/s"
packet = "200 B"
[real]
background = "datagrams"
"""


def carries_traffic(told) -> None:
    """600 packets of one entry share the slow link with 600 samples and 300 ms of what waits."""
    assert told["errors"] == []
    assert [link["name"] for link in told["network"]] == [
        "l1.forward",
        "l1.backward",
        "l2.forward",
        "l2.backward",
    ]
    cbr, poisson = told["traffic"]
    assert cbr["packets"] == 600 and cbr["delivered_packets"] + cbr["dropped_packets"] == 600
    assert cbr["delivered_packets"] > 500
    assert poisson["packets"] > 100 and poisson["dropped_packets"] == 0
    slow = next(link for link in told["network"] if link["name"] == "l2.forward")
    assert slow["packets"] > 1000
    assert told["flows"]["kinematic"]["delivered"] > 300


@pytest.mark.slow
@pytest.mark.needs("root", "tun", "containers")
def test_background_traffic_comes_from_containers_of_its_own(image, tmp_path, monkeypatch, capsys):
    seen = []
    launch = containers.Process
    monkeypatch.setattr(containers, "Process", lambda name, *more: seen.append(name) or launch(name, *more))
    scenario = BOXED.replace('to = "right"', 'to = "r"') + BUSY
    told = tcpsbed.run(scenario, world="containers", out=tmp_path / "run").summary
    assert seen == ["left", "right", "traffic@left", "traffic@right", "traffic@r"]
    assert "namespaces" not in capsys.readouterr().err
    carries_traffic(told)


@pytest.mark.needs("root", "tun")
def test_background_traffic_comes_from_namespaces_of_its_own(tmp_path):
    scenario = BOXED.replace('to = "right"', 'to = "r"') + BUSY
    carries_traffic(tcpsbed.run(scenario, world="namespaces", out=tmp_path / "run").summary)


@pytest.mark.needs("root", "tun", "ns3")
@pytest.mark.slow
@pytest.mark.parametrize("network", ["ns3", "ns3-tap"])
def test_background_traffic_of_others_passes_ns3(tmp_path, network):
    scenario = BOXED.replace('to = "right"', 'to = "r"') + BUSY
    carries_traffic(tcpsbed.run(scenario, world=f"namespaces+{network}", out=tmp_path / "run").summary)


@pytest.mark.beside
@pytest.mark.needs("root", "tun")
def test_without_an_engine_plain_namespaces_are_said_to_be_used(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(containers, "engine", lambda: None)
    told = tcpsbed.run(BOXED, world="containers", out=tmp_path / "run").summary
    assert told["errors"] == [] and told["flows"]["kinematic"]["delivered"] > 500
    assert (
        "containers are not available; used instead: plain network namespaces: no engine"
        in capsys.readouterr().err
    )
    assert any("plain network namespaces: no engine" in said for said in told["disturbances"])
    assert "fallback" in json.loads((tmp_path / "run" / "result.json").read_text())


@pytest.mark.beside
def test_without_an_engine_there_is_no_image(tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "engine", lambda: None)
    with pytest.raises(WorldError, match="apt-get install podman"):
        containers.make_image(tmp_path / "base.tar")


@pytest.mark.beside
def test_a_file_that_is_no_tar_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "engine", lambda: ("true",))
    (tmp_path / "base.tar").write_bytes(b"not a tar")
    with pytest.raises(DataError, match=r"base\.tar: found no tar"):
        containers.make_image(tmp_path / "base.tar")


@pytest.mark.beside
def test_the_package_is_added_to_what_was_there(tmp_path):
    with tarfile.open(tmp_path / "base.tar", "w") as tar:
        member = tarfile.TarInfo("etc/name")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"base"))
    containers._add_package(tmp_path / "base.tar", tmp_path / "whole.tar")
    with tarfile.open(tmp_path / "whole.tar") as tar:
        names = tar.getnames()
        kept = tar.extractfile("etc/name")
        assert kept is not None and kept.read() == b"base"
    assert "opt/tcpsbed/tcpsbed/worlds/containers.py" in names
    assert not any(name.endswith(".pyc") for name in names)
