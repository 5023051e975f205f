"""Where most of a delay is: computed once, said in the terminal, the report and comparisons, with the key to change."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.analysis import largest
from tcpsbed.analysis.ways import hops
from tcpsbed.cli.app import app
from tcpsbed.views import paths

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"
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


EVENT = '[[events]]\nat = "1 s"\nlink = "out.forward"\ndelay = "40 ms"\n'
HOOKS = '[hooks.work]\nat = ["ss-com"]\ncost = "9 ms"\n[hooks.sense]\nrun = "zoh"\ncost = "1 ms"\nflow = ["haptic"]\n'
LINE = ("propagation", "line.forward", "links.line.delay", "4 ms")


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


def test_a_link_that_events_slow_down_has_the_packets_from_before(tmp_path: Path) -> None:
    split = run(tmp_path, CHAIN + EVENT).summary["split"]["kinematic"]
    assert split["hops"][-1]["packets"] == 3000
    assert split["hops"][-1]["propagation_ms"] == pytest.approx((2000 * 40 + 1000 * 2) / 3000)


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
        *(
            (CHAIN, (f'flows.kinematic.transport="{transport}"', 'flows.kinematic.rate="50 Hz"'), LINE)
            for transport in ("tcp", "rtp")
        ),
        (
            CHAIN.replace("links.line", 'links."my line"'),
            (),
            (LINE[0], "my line.forward", 'links."my line".delay', "4 ms"),
        ),
        (CHAIN + EVENT, (), ("propagation", "out.forward", "links.out.delay", "2 ms, changed in the run")),
        (CHAIN + HOOKS, ('flows.kinematic.rate="50 Hz"',), ("working", "ss-com", "hooks.work.cost", "")),
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


PART = {
    "cause": "propagation",
    "place": "l",
    "mean_ms": 4.0,
    "share": 0.5,
    "total_ms": 8.0,
    "key": "",
    "value": "",
}


@pytest.mark.parametrize(
    ("flow", "part", "said"),
    [
        ({"delivered": 5, "delay_ms": {"p50": 0.0, "max": 0.0}}, None, "f: takes no time."),
        (
            {"delivered": 5, "delay_ms": {"p50": -40.0, "max": -39.0}},
            None,
            "f: delay −40.000 ms at the median.",
        ),
        (
            {"delivered": 0, "delay_ms": None},
            PART,
            "f: 4.000 ms (50 %) of the mean time from source to sink is propagation over link l.",
        ),
    ],
)
def test_a_sentence_says_only_what_is_known(flow: dict[str, Any], part: Any, said: str) -> None:
    assert paths.largest({"flows": {"f": flow}, "largest": {"f": part} if part else {}}) == {"f": said}


@pytest.mark.parametrize(("offset_ms", "known"), [(0, True), (4, True), (6, False), (-60, False)])
def test_a_part_that_may_be_clock_error_is_not_said(offset_ms: int, known: bool) -> None:
    """Delays on sockets are by the clocks of nodes."""
    nodes = [{"clock": {"offset_ns": ms * 1_000_000, "drift_ppb": 0}} for ms in (offset_ms, 0)]
    plan = {
        "duration_ns": 10**9,
        "nodes": nodes,
        "components": [{"name": name, "node": name} for name in (0, 1)],
        "flows": [{"name": "f", "path": [{"component": 0}, {"component": 1}]}],
    }
    total_ns = 10e6 + min(offset_ms, 0) * 1e6
    split = {
        "f": {"total_ns": total_ns, "parts_ns": {"unsplit": {"mean": 10e6}}, "components": [], "hops": []}
    }
    source = {"rows": {"flows": [{"name": "f"}]}, "plan": plan}
    assert bool(largest.largest(source, split)) is known


def test_links_of_a_flow_are_those_of_its_ways_or_else_count_by_packets() -> None:
    def hop(link: str, packets: int, ms: float) -> dict[str, Any]:
        return {"link": link, "packets": packets, "propagation_ns": ms * 1e6}

    parts = {"propagation": {"mean": 33e6}}
    split = {
        "own": {
            "total_ns": 40e6,
            "parts_ns": parts,
            "components": [],
            "hops": [hop("one", 9, 3), hop("back", 9, 9)],
        },
        "lists": {
            "total_ns": 40e6,
            "parts_ns": parts,
            "components": [],
            "hops": [hop("two", 7, 30), hop("one", 1, 50)],
        },
    }
    rows = {"flows": [{"name": "own"}]}
    ways = {"own": [[{"name": "one"}], [{"name": "two"}]]}
    found = largest.largest({"rows": rows, "ways": ways}, split)["own"]
    assert (found["place"], found["mean_ns"]) == ("two", pytest.approx(30e6))
    split["own"]["hops"] = [hop("all", 10, 5), hop("a", 5, 5), hop("b", 5, 5)]
    found = largest.largest({"rows": rows, "ways": {}}, split)["own"]
    assert (found["place"], found["mean_ns"]) == ("all", pytest.approx(16.5e6))


def test_the_key_fits_world_and_link() -> None:
    """Cores exist in simulated time only; a trace of one direction is named with it."""
    components = [{"name": "c", "node": 0}]
    ends = {"from": 0, "to": 0, "rate_bps": None}
    links = [{"name": "l.forward", "opportunities_ns": [1], **ends}, {"name": "l.backward", **ends}]
    plan = {
        "network": {"links": links, "vertices": ["a"]},
        "components": components,
        "nodes": [{"name": "a"}],
        "flows": [],
    }
    scenario = SimpleNamespace(links={"l": None}, nodes={}, components={"c": None}, hooks={})
    source = {"plan": plan, "scenario": scenario, "world": "virtual"}
    source |= largest._indexed(source, {})
    assert largest._key("waiting", "c", 1.0, "f", source) == ("c", "nodes.a.cores", "1")
    assert largest._key("waiting", "c", 1.0, "f", source | {"world": "real"}) == ("c", "", "")
    assert largest._key("queueing", "l.forward", 1.0, "f", source)[1] == "links.l.forward.trace"


def test_what_sockets_cannot_separate_has_no_place() -> None:
    split = {"f": {"total_ns": 10e6, "parts_ns": {"unsplit": {"mean": 9e6}}, "components": [], "hops": []}}
    segments: list[dict[str, Any]] = [
        {"name": "a -> b", "mean_ns": 8e6},
        {"name": "b", "mean_ns": 2e6},
    ]
    flows = [{"name": "f", "path": {"segments": segments, "delay_mean_ns": 10e6}}, {"name": "none"}]
    found = largest.largest({"rows": {"flows": flows}}, split)
    assert list(found) == ["f"] and found["f"]["place"] == "" and found["f"]["cause"] == "unsplit"
    assert paths.where(found["f"]) == "not split"
    alone = largest.largest({"rows": {"flows": flows}}, {})["f"]
    assert (alone["cause"], alone["place"], alone["mean_ns"]) == ("", "a -> b", 8e6)
    assert json.dumps(found)


@pytest.mark.parametrize(("delay", "said"), [("3.5 ms", ["3.500 ms"]), ("2 ms", [])])
def test_the_second_largest_part_is_told_where_it_is_nearly_as_large(
    tmp_path: Path, delay: str, said: list[str]
) -> None:
    done = run(tmp_path, CHAIN, f'links.out.delay="{delay}"')
    text = paths.largest(done.summary)["kinematic"]
    assert [part.partition(" (")[0] for part in text.split("; ")[2:]] == said
    assert len(done.summary["largest"]["kinematic"]["next"]) == len(said)


def test_a_queue_that_ignores_code_points_is_named_to_the_flow_that_has_the_highest(tmp_path: Path) -> None:
    """Classes serve it first, so that the sentence says so no more."""
    said = {}
    for queue in ("drop-tail", "priority"):
        served = (
            'links.l1.queue={ discipline = "priority", classes = [["EF"], ["CS5"], []], limit = "15 kB" }'
        )
        done = tcpsbed.run(QUICKSTART, out=tmp_path / queue, set=(served,) * (queue == "priority"))
        said[queue] = paths.largest(done.summary)
        assert done.summary["split"]["video"]["total_ms"] == pytest.approx(
            done.summary["flows"]["video"]["delay_ms"]["mean"]
        ), "of the same samples, without the warm-up"
    hint = "links.l1.queue ignores DSCP"
    assert hint in said["drop-tail"]["haptic"] and hint not in said["drop-tail"]["video"]
    assert hint not in "".join(said["priority"].values())
