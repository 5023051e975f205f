"""Background traffic over TCP and QUIC, and video: what scenarios say becomes laws, users and driven links."""

from __future__ import annotations

import json
from functools import partial

import pytest
from config_tools import PAIR, compiled
from recorded import recorded

from tcpsbed.datasets import laws
from tcpsbed.errors import ConfigError, DataError

LINE = (
    PAIR
    + '[topology]\nrouters = ["r"]\n[links.l1]\nfrom = "a"\nto = "b"\nrate = "10 Mbit/s"\n[links.l2]\nfrom = "b"\nto = "r"\n'
)
QUIC = '[traffic.bulk]\non = "l1"\ntransport = "quic"\n'


@pytest.fixture
def plan(tmp_path):
    return partial(compiled, tmp_path)


def models(plan, text):
    """Models of the traffic that a scenario has, by name."""
    return {t["name"]: t["model"] for t in plan(LINE + text)["network"]["traffic"]}


def test_users_drive_the_link_in_their_own_direction(plan):
    found = models(plan, '[traffic.web]\non = "l1"\nutilisation = "90 %"\nusers = 7\ncongestion = "reno"\n')
    assert list(found) == ["web.forward", "web.backward"]
    assert [m["drive"] for m in found.values()] == [{"link": n, "utilisation": 0.9} for n in (0, 1)]
    forward = found["web.forward"]
    assert (forward["users"], forward["congestion"], forward["mtu_bytes"]) == (7, "reno", 1500)
    assert forward["connection_per_object"] is False
    assert set(forward["pages"]) == set(laws.PAGE)


# [3GPP TR 25.892 §A.2]
def test_the_3gpp_page_has_its_published_parameters(plan):
    text = (
        '[traffic.x]\nkind = "web"\npages = "builtin:3gpp-http"\nconnection = "object"\non = "l1.forward"\n'
    )
    model = models(plan, text)["x.l1.forward"]
    assert model["connection_per_object"] is True and "drive" not in model
    pages = model["pages"]
    assert pages["main"] == {"kind": "lognormal", "mu": 8.37, "sigma": 1.37, "min": 100, "max": 2_000_000}
    assert pages["object"] == {"kind": "lognormal", "mu": 6.17, "sigma": 2.36, "min": 50, "max": 2_000_000}
    assert pages["embedded"] == {"kind": "pareto", "scale": 2, "shape": 1.1, "max": 55, "less": 2}
    assert (pages["parse"]["mean"], pages["think"]["mean"]) == (0.13, 30)


def test_transfers_have_measured_sizes_and_bulk_has_none(plan, tmp_path):
    (tmp_path / "sizes.csv").write_text("cdf,bytes\n0.5,10\n0.75,10\n1,900\n")
    text = '[traffic.transfers]\nsizes = "sizes.csv"\npause = "2 s"\non = "a->b"\n'
    pages = models(plan, text)["transfers.a-b"]["pages"]
    assert pages["main"] == {"kind": "empirical", "values": [10, 900], "cumulative": [0.75, 1]}
    assert pages["think"] == {"kind": "exponential", "mean": 2}
    bulk = models(plan, '[traffic.bulk]\nconnections = 3\non = "l1.forward"\n')["bulk.l1.forward"]
    assert bulk["users"] == 3 and "pages" not in bulk


def test_users_over_quic_are_those_over_tcp_with_another_transport(plan):
    text = '[traffic.web]\non = "l1.forward"\n[traffic.bulk]\non = "l1"\ntransport = "quic"\ncongestion = "newreno"\n'
    found = [entry["model"] for entry in plan(LINE + text)["network"]["traffic"]]
    assert [model["transport"] for model in found] == ["tcp", "quic", "quic"]
    assert [model["congestion"] for model in found] == ["cubic", "reno", "reno"]


def test_video_is_cut_to_the_run_and_scaled_to_its_rate(plan, tmp_path):
    (tmp_path / "frames.csv").write_text("bytes\n" + "1000\n3000\n" * 5000)
    text = '[traffic.video]\nfile = "frames.csv"\nrate = "800 kbit/s"\non = "l1.forward"\n'
    model = models(plan, text)["video.l1.forward"]
    (frames,) = plan(LINE + text)["network"]["recordings"]
    assert len(frames) == 252 and model["loop_ns"] == 400_000_000_000
    wire = sum(size for _, size in frames[:250]) * 1278 / 1200 * 8 / 10
    assert wire == pytest.approx(800e3, rel=0.002)
    assert (frames[1][0], model["recording"], model["overhead_bytes"]) == (40_000_000, 0, 78)


# [RFC 9000 §14]
@pytest.mark.parametrize(
    "text, key, words",
    [
        ('[traffic.web]\non = "l2.forward"\nutilisation = "90 %"\n', "utilisation", "which has no rate"),
        ('[traffic.web]\non = "a->b"\nutilisation = "90 %"\n', "utilisation", "a link in `on`"),
        ('[traffic.web]\non = "l1"\nutilisation = 0\n', "utilisation", "above 0 %"),
        ('[traffic.web]\non = "l1"\nusers = 0\n', "users", "1"),
        ('[traffic.web]\non = "l1"\npages = "builtin:wap"\n', "pages", "builtin:3gpp-http"),
        ('[traffic.web]\non = "l1"\nmtu = "200 B"\n', "mtu", "300 B to 65507 B"),
        (
            '[traffic.web]\non = "l1"\npages = "no_law.json"\n',
            "toml:16: traffic.web.pages",
            "unknown variant `gauss`",
        ),
        ('[traffic.web]\non = "l1"\npages = "low.json"\n', "traffic.web.pages", "allowed: "),
        ('[traffic.bulk]\non = "l1"\nbuffer = "1 kB"\n', "buffer", "4096 B"),
        ('[traffic.bulk]\non = "l1"\ncongestion = "newreno"\n', "congestion", '"cubic", "reno", "none"'),
        ('[traffic.bulk]\non = "l1"\ntransport = "sctp"\n', "transport", '"tcp", "quic"'),
        (QUIC + 'congestion = "reno"\n', "congestion", 'transport = "quic" does not have; allowed: "cubic"'),
        (QUIC + 'congestion = "none"\n', "congestion", '"cubic", "newreno"'),
        (QUIC + 'buffer = "64 kB"\n', "buffer", "whose buffers are its own"),
        (QUIC + 'mtu = "1227 B"\n', "mtu", "1228 B to 65507 B"),
        ('[traffic.transfers]\non = "l1"\nsizes = "none.cdf"\n', "sizes", "no such file"),
        ('[traffic.video]\non = "l1"\nfile = "none.csv"\n', "file", "no such file"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(plan, tmp_path, text, key, words):
    for name, kind in (("no_law", "gauss"), ("low", "exponential")):
        page = {law: {"kind": kind, "mean": -1} for law in laws.PAGE}
        (tmp_path / f"{name}.json").write_text(json.dumps(page))
    with pytest.raises(ConfigError) as refused:
        plan(LINE + text)
    assert key in str(refused.value) and words in str(refused.value)


# [Mah 1997]
def test_a_folder_of_measured_distributions_is_a_page(tmp_path):
    for name in ("RequestLength", "ReplyLength", "ThinkTime"):
        (tmp_path / f"Http{name}.cdf").write_text("1 5 0.5\n7 5 1\n")
    (tmp_path / "HttpConnections.cdf").write_text("1 6 0.6\n4 4 1\n")
    page = laws.pages(str(tmp_path), tmp_path)
    assert page["main"] == page["object"] == {"kind": "empirical", "values": [1, 7], "cumulative": [0.5, 1]}
    assert page["embedded"]["values"] == [0, 3], "the first connection is the main object's"
    (tmp_path / "HttpThinkTime.cdf").unlink()
    with pytest.raises(DataError, match="HttpThinkTime"):
        laws.pages(str(tmp_path), tmp_path)


def test_distributions_that_are_none_are_refused_at_their_line(tmp_path):
    path = tmp_path / "x.cdf"
    for text, line in (("1 0.5\n0.5 1\n", 2), ("1 0.5\n2 0.4\n", 2), ("1 0.5\n2 0.9\n", 2), ("-1 1\n", 1)):
        path.write_text(text)
        with pytest.raises(DataError) as refused:
            laws.empirical(path)
        assert refused.value.line == line
    path.write_text("value;of;cdf\n1;0.5\n2;1\n")
    with pytest.raises(
        DataError, match=r"x\.cdf:2: found 2 values under 3 names; allowed: one name for each column"
    ):
        laws.empirical(path)
    path.write_text(json.dumps({"main": {}}))
    with pytest.raises(DataError, match="request"):
        laws.pages(str(path), tmp_path)


def test_the_distributions_of_mah_load_and_the_fit_has_their_quartiles():
    folder = recorded("web/mah_http")
    page, fit = laws.pages(str(folder), folder), laws.pages("builtin:web", folder)
    assert len(page["main"]["values"]) > 1000
    for name, within in (("request", 1.6), ("main", 1.3), ("think", 1.1)):
        values, shares = page[name]["values"], page[name]["cumulative"]
        measured = next(v for v, s in zip(values, shares, strict=True) if s >= 0.5)
        fitted = 2.718281828 ** fit[name]["mu"]
        assert 1 / within < fitted / measured < within, name
