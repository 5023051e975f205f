"""What a world refuses of a scenario before it starts anything, said by `tcpsbed check --world` and by a run alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from texts import TWO_NODES
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import keyfile
from tcpsbed.cli.app import app
from tcpsbed.errors import TcpsbedError
from tcpsbed.worlds import local

HOSTS = '[hosts.a]\naddress = "localhost"\nnodes = ["a"]\n[hosts.b]\naddress = "localhost"\nnodes = ["b"]\n'
FAR = HOSTS.replace("nodes", 'data = "10.9.9.1"\nnodes')
MIDDLE = '[hosts.middle]\naddress = "localhost"\nrole = "network"\n'
ATTACK = """[[events]]
at = "0.1 s"
attack = { kind = "replay", link = "wan.forward", flow = "kinematic", duration = "0.5 s" }
"""
CUT = '[[events]]\nat = "0.1 s"\nname = "cut"\nlink = "wan"\nup = false\n'
TRAFFIC = '[traffic.cbr]\non = "wan.forward"\nrate = "10 kbit/s"\n'
NEEDS_EMULATOR = (
    "hosts",
    "process+none",
    "namespaces",
    "containers",
    "namespaces+ns3",
    "ns3",
    "ns3-virtual",
    "mininet",
)


def written(folder: Path, *more: str) -> Path:
    """A scenario of two nodes `a` and `b`, and a link between them."""
    file = folder / "two.toml"
    file.write_text(TWO_NODES + "".join(more))
    return file


def told(file: Path, *words: str) -> tuple[int, str, str]:
    """Status and outputs of `tcpsbed check`."""
    done = CliRunner().invoke(app, ["check", str(file), *words])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("world", NEEDS_EMULATOR)
def test_attacks_are_refused_with_file_and_line_where_no_emulator_carries_them_out(
    tmp_path: Path, world: str
) -> None:
    file = written(tmp_path, HOSTS, ATTACK)
    line = file.read_text().splitlines().index("[[events]]") + 1
    status, _, said = told(file, "--world", world)
    assert status == 2 and f"two.toml:{line}: events.0: found an attack" in said, said
    assert "--world virtual or real" in said


@pytest.mark.parametrize("world", ["virtual", "real", "hosts+emulator"])
def test_attacks_are_accepted_where_the_emulator_carries_them_out(tmp_path: Path, world: str) -> None:
    status, out, said = told(written(tmp_path, HOSTS, MIDDLE, ATTACK), "--world", world)
    assert status == 0 and f"valid in world {world}" in out, said


def test_a_run_refuses_in_the_same_words_and_leaves_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, ATTACK)
    _, _, said = told(file, "--world", "process+none")
    with pytest.raises(TcpsbedError) as error:
        tcpsbed.run(file, out=tmp_path / "run", world="process+none")
    assert str(error.value) in said and not (tmp_path / "run").exists()
    said = told(file, "--world", "real", "--set", 'real.network="namespaces"')[2]
    assert 'network = "gates"' in said and "take IP packets apart" in said


def test_what_changes_links_has_no_effect_where_nothing_emulates_them(tmp_path: Path) -> None:
    """No effect, no outage and no event is told of, and the terminal says which were set."""
    closed = TWO_NODES.replace('rate = "10 Mbit/s"', 'rate = "10 Mbit/s"\noutages = [["0.5 s", "0.6 s"]]')
    file = written(tmp_path)
    file.write_text(closed + TRAFFIC + CUT)
    done = CliRunner().invoke(
        app, ["run", str(file), "--world", "process+none", "--out", str(tmp_path / "r")]
    )
    assert done.exit_code == 0, done.output
    summary = tcpsbed.Run(tmp_path / "r").summary
    assert (summary["effects"], summary["outages"], summary["events"]) == ([], [], [])
    assert summary["flows"]["kinematic"]["lost"] == 0
    ignored = ["link wan: ", 'event "cut": ', "traffic cbr: "]
    assert [text[: len(begin)] for text, begin in zip(summary["ignored"], ignored, strict=True)] == ignored
    assert "outages" not in done.output
    for text in summary["ignored"]:
        assert f"without effect in this world: {text}" in done.output
    virtual = tcpsbed.run(file, out=tmp_path / "v").summary
    assert virtual["ignored"] == [] and len(virtual["outages"]) == 1 and len(virtual["effects"]) == 1


def test_channels_between_hosts_need_security_unless_all_their_addresses_are_loopback(tmp_path: Path) -> None:
    assert told(written(tmp_path, HOSTS), "--world", "hosts")[0] == 0
    far = written(tmp_path, FAR)
    status, _, said = told(far, "--world", "hosts")
    assert status == 2 and "found no security on session" in said and "--insecure" in said
    assert told(far, "--world", "hosts", "--insecure")[0] == 0
    assert told(far, "--world", "hosts", "--set", "channels.session.security=aead")[0] == 0
    assert told(far)[0] == 0, "no world was asked for"
    one = HOSTS.split("[hosts.b]")[0].replace('"a"', '"a", "b"').replace("nodes", 'data = "10.9.9.1"\nnodes')
    assert told(written(tmp_path, one), "--world", "hosts")[0] == 0, "both nodes are on one host"


@pytest.mark.parametrize(
    ("more", "world", "words"),
    [
        ("", "hosts", "found no hosts"),
        (HOSTS.replace('"localhost"', '"lab"'), "hosts", 'hosts.a.data: found "lab"'),
        (HOSTS, "hosts+emulator", 'found 0 hosts with role = "network"'),
        (HOSTS, "hosts+ns3", 'found 0 hosts with role = "network"'),
        ('[real]\nbackground = "datagrams"\n', "real", 'found "datagrams"'),
        ("", "nowhere", 'found "nowhere"'),
    ],
)
def test_a_check_for_a_world_refuses_what_its_run_would(
    tmp_path: Path, more: str, world: str, words: str
) -> None:
    status, out, said = told(written(tmp_path, more), "--world", world)
    assert (status, out) == (2, "") and words in said, said


def test_what_the_machine_lacks_is_a_note_of_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.Namespaces, "missing", classmethod(lambda cls: "root: sudo tcpsbed …"))
    status, out, said = told(written(tmp_path), "--world", "namespaces")
    assert status == 0 and "valid in world namespaces" in out
    assert "note: world namespaces is not ready here: it needs root" in said


def test_a_check_for_a_world_is_none_without_code(tmp_path: Path) -> None:
    status, _, said = told(written(tmp_path), "--world", "real", "--no-code")
    assert status == 2 and "--world: found --no-code too" in said


KEYED = TWO_NODES + 'security = { kind = "aead", key_file = "lab.key" }\n'


def test_a_key_file_that_is_elsewhere_is_needed_on_sockets_only(tmp_path: Path) -> None:
    """In virtual time keys follow from the seed."""
    file = tmp_path / "two.toml"
    file.write_text(KEYED)
    note = "note: key file lab.key is not here: a run on sockets needs it"
    status, out, said = told(file)
    assert status == 0 and "valid" in out and note in said
    done = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "r")])
    assert done.exit_code == 0 and note in done.stderr
    line = KEYED.splitlines().index('security = { kind = "aead", key_file = "lab.key" }') + 1
    refusal = f"two.toml:{line}: channels.session.security.key_file: found lab.key, which cannot be read"
    status, _, said = told(file, "--world", "real")
    assert status == 2 and refusal in said
    done = CliRunner().invoke(app, ["run", str(file), "--world", "real", "--out", str(tmp_path / "s")])
    assert done.exit_code == 2 and refusal in done.stderr and not (tmp_path / "s").exists()


def test_a_key_file_that_is_here_and_wrong_is_refused_everywhere(tmp_path: Path) -> None:
    file, key = tmp_path / "two.toml", tmp_path / "lab.key"
    file.write_text(KEYED)
    keyfile.make(key)
    assert told(file)[::2] == (0, "")
    key.chmod(0o644)
    assert "open to other users" in told(file)[2]
    key.chmod(0o600)
    key.write_text("short\n")
    assert "holds no key" in told(file)[2]
    key.unlink()
    key.mkdir()
    assert "it is a folder" in told(file)[2]


def test_a_method_of_no_kind_is_refused_with_the_methods(tmp_path: Path) -> None:
    said = told(written(tmp_path), "--set", "channels.session.security=true")[2]
    assert 'found true; allowed: "aead", "hmac", "srtp", "tls", or a table with the key kind' in said
