"""Profiles of links and ports as they are written: read by the scenario's own reader, refused with the place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import proxy
from tcpsbed.cli import emulated
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError, WorldError
from tcpsbed.proxy import door, netns
from tcpsbed.proxy.profile import settings_of


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_profile_may_have_users_over_quic(tmp_path):
    text = '[links.path]\nrate = "2 Mbit/s"\n[traffic.bulk]\non = "path.backward"\ntransport = "quic"\n'
    found = proxy.load(written(tmp_path, text))
    assert found.network["traffic"][0]["model"]["transport"] == "quic"
    with proxy.Proxy(found, [door.parse("0=127.0.0.1:9/udp")]) as running:
        assert running.ports[0] > 0


def test_an_outage_may_last_from_the_first_moment_on():
    found = proxy.load("direct", ['links.path.outages=[["0 s", "1 s"], ["2 s", "3 s"]]'])
    assert [link["outages"] for link in found.network["links"]] == [[[0, 10**9], [2 * 10**9, 3 * 10**9]]] * 2
    with proxy.Proxy(found, [door.parse("0=127.0.0.1:9/udp")]) as running:
        assert running.ports[0] > 0


@pytest.mark.parametrize(
    "name", ["direct", "wifi", "transcontinental", "5g", "5g-edge", "5g-handover", "geostationary"]
)
def test_jitter_of_the_command_line_takes_the_place_of_that_of_the_profile(name):
    overrides = emulated.overrides_of(None, "9 ms", None, None, "4 ms")
    found = proxy.load(name, overrides)
    assert [one["jitter_ms"] for one in found.directions()] == [4.0, 4.0]
    assert [one["delay_ms"] for one in found.directions()] == [9.0, 9.0]
    assert found.name.endswith("delay 9 ms, jitter 4 ms"), found.name


def test_settings_of_a_link_hold_in_both_directions_unless_a_later_one_names_one():
    sets = ['links.air.delay="9 ms"', "links.air.jitter={ kind = 'exponential', mean = '4 ms' }"]
    found = proxy.load("lte", [*sets, 'links.air.backward.delay="1 ms"']).directions()
    assert [one["delay_ms"] for one in found] == [13.0, 1.0]
    assert [one["jitter_ms"] for one in found] == [9.0, 4.0], "with those of the grant"


@pytest.mark.parametrize("name", proxy.shipped())
def test_every_shipped_profile_leads_both_ways_and_says_where_it_is_from(name):
    found = proxy.load(name)
    assert found.network["vertices"][:2] == ["near", "far"]
    assert len(found.description) > 20
    with proxy.Proxy(found, [door.parse("0=127.0.0.1:9/udp")]) as running:
        assert running.ports[0] > 0


def test_the_shipped_ones_are_those_that_were_promised():
    wanted = {"lan", "wifi", "lte", "5g", "transcontinental", "satellite", "lossy-last-mile"}
    wanted |= {"5g-edge", "5g-handover", "wifi-crowded", "geostationary"}
    assert wanted <= set(proxy.shipped())


@pytest.mark.parametrize("name", [name for name in proxy.shipped() if name != "direct"])
def test_virtual_time_delivers_the_numbers_of_a_profile(tmp_path, name):
    text = f'include = ["{proxy.load(name).file}"]\nduration = "60 s"\nphases = "random"\n'
    text += '[components]\ntactile-operator = "near"\ntactile-teleoperator = "far"\n'
    text += "".join(f'[flows.{flow}]\nrate = "100 Hz"\nsample = "24 B"\n' for flow in ("kinematic", "haptic"))
    if name != "lte":  # whose links have ends
        text += '[links.path]\nfrom = "near"\nto = "far"\n'
    (tmp_path / "s.toml").write_text(text)
    run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "run")
    for flow, told in zip(("kinematic", "haptic"), proxy.load(name).directions(), strict=True):
        found = run.summary["flows"][flow]
        mean = told["delay_ms"] + told["jitter_ms"]
        assert told["delay_ms"] <= found["delay_ms"]["min"] < told["delay_ms"] + 1.0
        assert mean * 0.95 < found["delay_ms"]["mean"] < mean * 1.4 + 1.5
        assert found["loss"] == pytest.approx(told["loss"], rel=0.5, abs=0.002)
        if name == "5g-handover":
            assert 60 < found["delay_ms"]["max"] < 80


def test_a_profile_has_the_keys_of_a_scenarios_link(tmp_path):
    text = '[links.path]\nrate = "2 Mbit/s"\nloss = "1 %"\nbackward = { delay = "7 ms" }\n'
    forward, backward = proxy.load(written(tmp_path, text)).network["links"]
    assert (forward["rate_bps"], forward["from"], forward["to"]) == (2e6, 0, 1)
    assert forward["loss"] == {"kind": "random", "p": 0.01}
    assert backward["delay_ns"] == 7_000_000


def test_a_profile_is_a_piece_of_a_scenario(tmp_path):
    written(tmp_path, '[links.path]\ndelay = "7 ms"\n')
    (tmp_path / "s.toml").write_text(
        'include = ["mine.toml"]\nduration = "0.5 s"\n[components]\nms-com = "left"\nss-com = "right"\n[flows.kinematic]\n'
        '[links.path]\nfrom = "left"\nto = "right"\n'
    )
    run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "run")
    assert run.summary["flows"]["kinematic"]["delay_ms"]["min"] == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[links.path]\nrate = "2 Mbit"\n', "mine.toml:2: links.path.rate"),
        ('[links.path]\nspeed = "2 Mbit/s"\n', "mine.toml:2: links.path.speed"),
        ('duration = "5 s"\n[links.path]\n', "mine.toml:1: duration"),
        ('[links.path]\nfrom = "near"\nto = "there"\n', "mine.toml"),
        ("[links.path\n", "invalid TOML"),
        ("links = 3\n", "links"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, text, words):
    with pytest.raises(ConfigError, match=words):
        proxy.load(written(tmp_path, text))


def test_a_network_that_leads_one_way_only_is_refused(tmp_path):
    file = written(tmp_path, '[links.path]\nduplex = "simplex"\n')
    with pytest.raises(ConfigError, match="from far to near"):
        proxy.Proxy(proxy.load(file), [door.parse("0=127.0.0.1:9/udp")])


def test_an_unknown_profile_is_refused_with_the_names():
    with pytest.raises(DataError, match="did you mean lte"):
        proxy.load("ltee")


def test_an_override_cannot_make_a_way_around_the_profile():
    assert proxy.load("lan", ['links.path.delay="3 ms"']).network["links"][0]["delay_ns"] == 3_000_000
    with pytest.raises(ConfigError, match="grant, air"):
        proxy.load("lte", settings_of({"delay": "3 ms"}))


@pytest.mark.parametrize(
    ("text", "kind", "listen", "target"),
    [
        ("7000=127.0.0.1:7100/udp", "udp", ("127.0.0.1", 7000), ("127.0.0.1", 7100)),
        ("7000=127.0.0.1:7100", "udp", ("127.0.0.1", 7000), ("127.0.0.1", 7100)),
        ("0.0.0.0:0=10.0.0.2:80/tcp", "tcp", ("0.0.0.0", 0), ("10.0.0.2", 80)),
        ("[::1]:7000=[fd77::2]:7100/udp", "udp", ("::1", 7000), ("fd77::2", 7100)),
    ],
)
def test_ports_as_they_are_written(text, kind, listen, target):
    found = door.parse(text)
    assert (found.kind, found.listen, found.target) == (kind, listen, target)


@pytest.mark.parametrize(
    "text",
    [
        "7000",
        "7000=7100",
        "7000=127.0.0.1:7100/sctp",
        "x=127.0.0.1:1",
        "7000=127.0.0.1:70000",
        "7000=h:0",
        "",
    ],
)
def test_other_ports_are_refused(text):
    with pytest.raises(ConfigError, match="allowed"):
        door.parse(text)


def test_ports_of_the_far_side_lead_to_this_computer_or_further():
    assert netns.reach("7100/tcp") == door.Door("tcp", ("10.77.0.2", 7100), ("127.0.0.1", 7100))
    assert netns.reach("80=10.1.2.3:8080/tcp") == door.Door("tcp", ("10.77.0.2", 80), ("10.1.2.3", 8080))


def test_a_taken_port_is_refused_and_twice_the_same_too():
    with proxy.Proxy(proxy.load("direct"), [door.parse("0=127.0.0.1:9/udp")]) as first:
        taken = f"{first.ports[0]}=127.0.0.1:9/udp"
        with pytest.raises(WorldError, match="no UDP socket"):
            proxy.Proxy(proxy.load("direct"), [door.parse(taken)])
    with pytest.raises(ConfigError, match="twice"):
        proxy.Proxy(proxy.load("direct"), [door.parse("7000=127.0.0.1:9/udp")] * 2)


@pytest.mark.parametrize(
    ("name", "overrides", "said"),
    [
        ("direct", [], "direct"),
        (
            "direct",
            ['links.path.delay="20 ms"', "links.path.rate = '2 Mbit/s'"],
            "delay 20 ms, rate 2 Mbit/s",
        ),
        ("lossy-last-mile", ['links.path.delay="40 ms"'], "lossy-last-mile, delay 40 ms"),
        ("lte", ['links.air.delay="40 ms"'], "lte, links.air.delay 40 ms"),
    ],
)
def test_what_lies_between_is_said_with_what_was_set(name, overrides, said):
    assert proxy.load(name, overrides).name == said


def test_the_list_of_profiles_has_their_numbers():
    said = CliRunner().invoke(app, ["proxy", "--profile", "list"]).stdout
    rows = {line.split()[0]: re.split(r"\s{2,}", line) for line in said.partition("\n\n")[0].splitlines()}
    assert rows["5g-edge"][1:] == ["1.5 Mbit/s / 15 Mbit/s", "18 ms / 10 ms", "8 ms / 4 ms", "2 %", "–"]
    assert rows["direct"][1:] == ["–"] * 5
    assert rows["5g-handover"][5] == "60 ms every 10 s"
    assert set(proxy.shipped()) <= rows.keys()
