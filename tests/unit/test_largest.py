"""Where most of a delay is: computed once, said in the terminal, the report and comparisons, with the key to change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.analysis import largest
from tcpsbed.analysis.ways import hops
from tcpsbed.cli.app import app
from tcpsbed.views import paths

CHAIN = """
name = "chain"
duration = "3 s"
[components]
tactile-operator = "a"
ms-com = "a"
ss-com = "b"
tactile-teleoperator = "b"
[flows.kinematic]
sample = "24 B"
[flows.haptic]
sample = "12 B"
[topology]
routers = ["r1", "r2"]
[links.in]
from = "a"
to = "r1"
delay = "1 ms"
[links.line]
from = "r1"
to = "r2"
rate = "1 Mbit/s"
delay = "4 ms"
queue = "20 packets"
[links.out]
from = "r2"
to = "b"
delay = "2 ms"
"""
BUSY = '[traffic.cbr]\non = "line.forward"\nrate = "600 kbit/s"\n'


def run(folder: Path, text: str = CHAIN, *sets: str) -> tcpsbed.Run:
    (folder / "chain.toml").write_text(text)
    return tcpsbed.run(folder / "chain.toml", out=folder / "run", set=sets)


def test_links_without_a_rate_are_listed_with_the_delay_of_the_scenario(tmp_path: Path) -> None:
    """The parts by link add up to those by cause; records know nothing of it."""
    split = run(tmp_path).summary["split"]["kinematic"]
    assert [hop["link"] for hop in split["hops"]] == ["in.forward", "line.forward", "out.forward"]
    by_cause = {part["part"]: part["mean_ms"] for part in split["parts"]}
    for cause in ("queueing", "serialisation", "propagation"):
        assert sum(hop[f"{cause}_ms"] for hop in split["hops"]) == pytest.approx(by_cause.get(cause, 0), 1e-6)
    assert split["hops"][2] == {
        "link": "out.forward",
        "packets": None,
        "queueing_ms": 0.0,
        "serialisation_ms": 0.0,
        "propagation_ms": 2.0,
        "radio_ms": 0.0,
    }


def test_a_way_that_others_account_for_is_left_as_it_is_told() -> None:
    way = [{"name": "in"}, {"name": "out", "delay_ns": 5}, {"name": "slow", "rate_bps": 1e6}]
    told = {"link": "in", "packets": 3, "propagation_ns": 7}
    assert [hop["link"] for hop in hops([told], [way])] == ["in", "out"]
    assert hops([], [way]) == []


@pytest.mark.parametrize(
    ("text", "sets", "wanted"),
    [
        (CHAIN, (), ("propagation", "line.forward", "links.line.delay", "4 ms")),
        (CHAIN + BUSY.replace("600", "999"), (), ("queueing", "line.forward", "links.line.rate", "1 Mbit/s")),
        (CHAIN, ('links.in.delay="9 ms"',), ("propagation", "in.forward", "links.in.delay", "9 ms")),
        (
            CHAIN,
            ('components.ss-com={ node = "b", cost = "6 ms" }', 'flows.kinematic.rate="50 Hz"'),
            ("working", "ss-com", "components.ss-com.cost", ""),
        ),
        (CHAIN, ('flows.kinematic.playout={ kind = "fixed", delay = "40 ms" }',), None),
    ],
)
def test_the_largest_part_has_a_place_and_a_key(
    tmp_path: Path, text: str, sets: tuple[str, ...], wanted: tuple[str, ...] | None
) -> None:
    one = run(tmp_path, text, *sets).summary["largest"]["kinematic"]
    if wanted is None:
        wanted = ("playout", "kinematic", "flows.kinematic.playout", "")
    assert tuple(one[key] for key in ("cause", "place", "key", "value")) == wanted
    assert one["share"] == pytest.approx(one["mean_ms"] / one["total_ms"]) and one["share"] > 0.3


def test_flows_that_share_packets_share_their_links(tmp_path: Path) -> None:
    """The packets of the channel are listed at its first flow."""
    shared = '[channels.session]\ntransport = "no-merge"\nflows = ["haptic", "audio"]\n[flows.audio]\nrate = "50 Hz"\n'
    found = run(tmp_path, CHAIN + shared + 'sample = "160 B"\ndirection = "backward"\n').summary
    assert found["split"]["audio"]["hops"] == [] and len(found["split"]["haptic"]["hops"]) == 3
    one = found["largest"]["audio"]
    assert (one["place"], one["key"]) == ("line.backward", "links.line.delay"), one


def test_the_key_of_one_direction_names_it(tmp_path: Path) -> None:
    one = run(tmp_path, CHAIN, 'links.line.forward.delay="8 ms"').summary["largest"]
    assert one["kinematic"]["key"] == "links.line.forward.delay"
    assert one["haptic"]["value"] == "4 ms"


def test_terminal_page_and_comparison_say_the_same(tmp_path: Path) -> None:
    said = (
        "kinematic: delay 7.816 ms at the median; 4.000 ms (51 %) of the mean time from source to sink is propagation over "
        "link line.forward (links.line.delay = 4 ms)."
    )
    made = run(tmp_path)
    assert paths.largest(made.summary)["kinematic"] == said
    done = CliRunner().invoke(
        app, ["run", str(tmp_path / "chain.toml"), "--out", str(tmp_path / "typed"), "--no-samples"]
    )
    assert said in done.output
    page = (tmp_path / "typed" / "report.html").read_text()
    assert f"<li>{said}</li>" in page
    assert '<b class="much">51 % of the delay of kinematic</b> is propagation over link line.forward' in page
    both = [str(tmp_path / "run"), str(tmp_path / "typed")]
    compared = CliRunner().invoke(app, ["compare", *both, "--page", str(tmp_path / "page.html")])
    assert f"A, {said}\nB, {said}\n" in compared.output
    assert f"<li>B, {said}</li>" in (tmp_path / "page.html").read_text()
    measured = CliRunner().invoke(
        app, ["latency", str(tmp_path / "chain.toml"), "--out", str(tmp_path / "echo"), "-q"]
    )
    assert "from source to sink is propagation over link line.forward" in measured.output


def test_a_flow_of_which_nothing_arrived_is_said_to_have_no_delay(tmp_path: Path) -> None:
    made = run(tmp_path, CHAIN, 'links.line.forward.loss="100 %"')
    assert "kinematic" not in made.summary["largest"]
    assert paths.largest(made.summary)["kinematic"] == (
        "kinematic: nothing arrived, so there is no delay to divide."
    )
    assert paths.largest({"flows": {"kinematic": {}}}) == {}, "an older summary does not know"


def test_what_sockets_cannot_separate_names_the_place() -> None:
    split = {"f": {"total_ns": 10e6, "parts_ns": {"unsplit": {"mean": 9e6}}, "components": [], "hops": []}}
    segments: list[dict[str, Any]] = [
        {"name": "a -> b", "mean_ns": 8e6},
        {"name": "b", "mean_ns": 2e6},
    ]
    flows = [{"name": "f", "path": {"segments": segments, "delay_mean_ns": 10e6}}, {"name": "none"}]
    found = largest.largest({"rows": {"flows": flows}}, split)
    assert list(found) == ["f"] and found["f"]["place"] == "a -> b" and found["f"]["cause"] == "unsplit"
    assert paths.where(found["f"]) == "in parts that sockets cannot separate, most of it from a → b"
    alone = largest.largest({"rows": {"flows": flows}}, {})["f"]
    assert (alone["cause"], alone["place"], alone["mean_ns"]) == ("", "a -> b", 8e6)
    assert json.dumps(found)
