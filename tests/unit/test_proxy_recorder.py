"""The record of an emulated network: its scenario, its events, and the profile that is saved with them."""

from __future__ import annotations

import json
import math
import tomllib
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tcpsbed import proxy, results, scenarios
from tcpsbed.analysis import metrics, outages
from tcpsbed.analysis.delivered import Margin
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError
from tcpsbed.proxy import saved, settings, verdict
from tcpsbed.proxy.changes import Changes
from tcpsbed.proxy.recorded import Recorder, recording
from tcpsbed.views import programs, sections, text
from tcpsbed.views.folder import RunFolder

MINE = """
[links.path]
rate = "2 Mbit/s"
delay = "15 ms"
backward = { rate = "16 Mbit/s" }

[traffic.neighbour]
on = "path"
rate = "400 kbit/s"
"""


class Stand:
    """In place of an emulated network at work."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def start_ns(self) -> int:
        return 0

    def event(self, line: dict[str, Any], network: dict[str, Any]) -> None:
        self.asked.append((line, network))

    def change(self, profile: proxy.Profile, event: int | None = None) -> None:
        self.asked.append((event, profile.network))


@contextmanager
def recorder(folder: Path, text: str = MINE, doors: tuple[str, ...] = ("7000/udp",)):
    (folder / "mine.toml").write_text(text)
    named = [(name, name.split("/")[1]) for name in doors]
    with (
        results.writing(folder / "out", "run") as place,
        recording(place, proxy.load(folder / "mine.toml"), named, "proxy") as found,
    ):
        yield found


def steer(found: Recorder, **event: Any) -> dict[str, Any]:
    """Asks for an event as a page does; the answer that the page gets."""
    stand = Stand()
    events = found.steering.event(**event)
    for one in found.steering.take(5):
        found._steer(stand, one)
    (line, network), *_ = stand.asked
    assert line["number"] == len(found.plan["events"]) - 1
    assert network == found.network
    return {"k": "asked", "actions": [one["action"] for one in events]}


def test_each_door_is_two_flows_between_the_sides_those_of_udp_first(tmp_path: Path) -> None:
    with recorder(tmp_path, doors=("0/udp", "0/udp", "80/tcp")) as found:
        flows = [(flow["name"], flow["path"][0]["component"]) for flow in found.plan["flows"]]
        assert flows == [
            ("0/udp (1) to far", 0),
            ("0/udp (1) to near", 1),
            ("0/udp (2) to far", 0),
            ("0/udp (2) to near", 1),
            ("80/tcp to far", 0),
            ("80/tcp to near", 1),
        ]
        assert found.plan["network"]["vertices"][:2] == ["near", "far"]
        assert scenarios.load(found.folder / "scenario.toml").measure.records == "packets"


def test_a_slider_changes_one_direction_and_the_saved_profile_has_it(tmp_path: Path) -> None:
    with recorder(tmp_path) as found:
        scenario = (found.folder / "scenario.toml").read_text()
        told = [
            steer(found, link="path.forward", delay="40 ms", by="viewer 2"),
            steer(found, link="path", loss="3 %", queue="9 packets"),
            steer(found, link="path.forward", jitter={"kind": "exponential", "mean": "2 ms"}),
            steer(found, traffic="neighbour", running=False),
            steer(found, link="path.backward", up=False),
        ]
        network = found.plan["network"]
        assert found.steering.by == {"link path.forward delay 40 ms (viewer 2)": "viewer 2"}
    text = saved.profile(scenario, told, network)
    assert text.startswith("# path.backward was cut, which a profile cannot say.\n") and "base" not in text
    file = tmp_path / "again.toml"
    file.write_text(text)
    (there, back), traffic = proxy.load(file).directions(), proxy.load(file).network["traffic"]
    assert (there["delay_ms"], back["delay_ms"], traffic) == (40, 15, [])
    assert [way["loss"] for way in (there, back)] == pytest.approx([0.03, 0.03])
    assert [way["rate_bps"] for way in (there, back)] == [2e6, 16e6]
    assert [way["queue"] for way in (there, back)] == ["9 packets", "9 packets"] and there["jitter_ms"] == 2


def test_a_profile_that_is_saved_after_its_file_changed_is_the_new_one(tmp_path: Path) -> None:
    with recorder(tmp_path) as found:
        begun = (found.folder / "scenario.toml").read_text()
        told = [steer(found, link="path", delay="40 ms")]
        (tmp_path / "mine.toml").write_text(MINE.replace("15 ms", "7 ms").replace("2 Mbit/s", "3 Mbit/s"))
        stand = Stand()
        happened = found.change(stand, proxy.load(tmp_path / "mine.toml"))
        assert stand.asked[0][0] == 1, "the number of the event"
        told += [{"k": "profile", "text": scenarios.dump(found.scenario)}, {"k": "asked"} | happened]
        names = {event["name"] for event in found.plan["events"][1:]}
        said = "path.forward rate 3.000 Mbit/s, delay 7 ms; path.backward delay 7 ms"
        assert (
            names == {f"profile mine read again: {said}"}
            and found.network["links"][0]["delay_ns"] == 7_000_000
        )
        table = tomllib.loads(saved.profile(begun, told, found.plan["network"]))["links"]["path"]
    assert table["delay"] == "7 ms" or table["forward"]["delay"] == "7 ms"


CLOSED = """
[links.path]
delay = "15 ms"
outages = [["1 s", "2 s"], ["5 s", "6 s"]]

[links.path.backward]
slots = { cycle = "4 s", open = [["0 s", "3.5 s"]] }
"""


def test_outages_are_events_of_a_kept_run_also_after_another_profile(tmp_path: Path) -> None:
    with recorder(tmp_path, CLOSED) as found:

        def told(end_s: float) -> list[tuple[float, str]]:
            source = {
                "plan": found.plan,
                "told": {},
                "rows": {"events": []},
                "duration_s": end_s,
                "ran_s": end_s,
            }
            return [(event["t_s"], event["name"]) for event in metrics.section("events").value(source)]

        assert told(5.5) == [
            (1, "outage of path begins"),
            (2, "outage of path ends"),
            (3.5, "slots of path.backward close"),
            (4, "slots of path.backward open"),
            (5, "outage of path begins"),
        ]
        (tmp_path / "mine.toml").write_text(CLOSED.replace('["5 s", "6 s"]', '["7 s", "8 s"]'))
        found.now_ns = lambda: 1_500_000_000
        happened = found.change(Stand(), proxy.load(tmp_path / "mine.toml"))
        assert happened["event"]["name"] == "profile mine read again: path outages changed"
        assert [name for _, name in told(100)].count("outage of path begins") == 2
        assert {at for at, name in told(100) if name.startswith("outage")} == {1, 2, 7, 8}
        seen = outages.Passing(happened["closing"], happened["at_ns"])
        assert [event["t_s"] for event in seen.due(7.1)] == [2, 3.5, 4, 7]
        assert not list(seen.due(7.2))
        (tmp_path / "mine.toml").write_text(CLOSED.replace('["7 s", "8 s"]', '["20 s", "21 s"]'))
        found.now_ns = lambda: 7_500_000_000
        happened = found.change(Stand(), proxy.load(tmp_path / "mine.toml"))
        seen = outages.Passing(happened["closing"], happened["at_ns"])
        assert (7.5, "outage of path ends") in [(event["t_s"], event["name"]) for event in seen.due(8)]


@pytest.mark.parametrize("opened", [[[0, 2]], [[0, 1], [1, 2]]], ids=["one slot", "two that meet"])
def test_slots_that_never_close_are_no_events(opened: list[list[int]]) -> None:
    slots = {"cycle_ns": 2 * 10**9, "open": [[begin * 10**9, end * 10**9] for begin, end in opened]}
    assert list(outages.until([{"name": "l", "slots": slots}], 10**10)) == []
    closing = [{"name": "l", "slots": slots | {"open": [[0, 10**9]]}}]
    late = outages.Passing(closing, 10**6 * 10**9)
    assert [event["t_s"] for event in late.due(10**6 + 2)][-2:] == [10**6 + 1, 10**6 + 2], "after any number"


@pytest.mark.parametrize(
    ("text", "named"),
    [(MINE.replace("links.path", "links.line").replace('"path"', '"line"'), "line.forward"), ("", "path.")],
)
def test_a_profile_with_other_links_is_not_taken_while_it_is_recorded(
    tmp_path: Path, text: str, named: str
) -> None:
    with recorder(tmp_path) as found:
        (tmp_path / "mine.toml").write_text(text)
        stand = Stand()
        with pytest.raises(ConfigError, match="the same names in the same order") as refused:
            found.change(stand, proxy.load(tmp_path / "mine.toml"))
        assert named in str(refused.value) and not stand.asked and not found.plan["events"]


@pytest.mark.parametrize("event", [{"flow": "x", "running": False}, {"component": "near", "alive": False}])
def test_the_users_own_programs_are_not_stopped(tmp_path: Path, event: dict[str, Any]) -> None:
    with recorder(tmp_path) as found, pytest.raises(ConfigError, match="your own programs are at the ends"):
        found.steering.event(**event)


def row(door: str, way: str, packets: int, delivered: int, **more: Any) -> dict[str, Any]:
    """What the native module tells of a door or a service in a direction."""
    delay = {"mean": 5e6, "p50": 5_000_000, "p99": 7_000_000, "p999": 7_000_000, "max": 7_000_000}
    told = dict.fromkeys(("copies", "unsent", "refused", "unreached", "bytes"), 0) | {
        "door": door,
        "way": way,
        "packets": packets,
        "delivered": delivered,
        "lost": packets - delivered,
        "inside": 0,
        "drops": {"loss": packets - delivered} if packets > delivered else {},
        "set_loss": 1 - delivered / max(packets, 1),
        "delivered_loss": 1 - delivered / max(packets, 1),
        "set_delay_ns": delay,
        "delivered_delay_ns": delay,
        "error_ns": dict.fromkeys(delay, 0),
        "set_rate_bps": None,
        "delivered_rate_bps": None,
    }
    return told | more


def outcome(doors: list[dict[str, Any]], services: list[dict[str, Any]]) -> dict[str, Any]:
    """How an emulated network went."""
    return {"doors": doors, "services": services, "links": [], "own": {}, "errors": [], "duration_s": 2.0}


def test_a_summary_has_the_rows_by_port_and_program_of_the_terminal(tmp_path: Path) -> None:
    ways = ("near -> far", "far -> near")
    ended = outcome(
        [row("ip", ways[0], 30, 27), row("ip", ways[1], 20, 20)],
        [
            row("udp :5004 camera", ways[0], 10, 9),
            row("udp :5004 camera", ways[1], 0, 0),
            row("tcp :8080 server", ways[0], 20, 18, unsent=2, copies=1, longest_repair_ns=212_000_000),
            row("tcp :8080 server", ways[1], 20, 20),
        ],
    )
    with recorder(tmp_path, doors=("ip/ip",)) as found:
        found.world, found.doors = "netns", [("ip", "ip")]
        part = metrics.section("emulator")
        result = found._result(ended, Margin())
        summed = part.value({"told": result})
    assert list(result["services"]["paths"]) == [path["path"] for path in summed if "part_of" in path]
    assert [(path["path"], path.get("part_of"), path["packets"], path["delivered"]) for path in summed] == [
        ("ip to far", None, 30, 27),
        ("ip to near", None, 20, 20),
        ("udp :5004 camera to far", "ip to far", 10, 9),
        ("tcp :8080 server to far", "ip to far", 20, 18),
        ("tcp :8080 server to near", "ip to near", 20, 20),
    ]
    assert summed[3]["lost_by"] == {"loss": 2, "not taken by the kernel": 2}
    assert summed[3]["longest_repair_ms"] == 212 and "longest_repair_ms" not in summed[4]
    assert {path["stamps"] for path in summed} == {"after the read"}
    lines = verdict.table(ended).splitlines()
    assert lines[0].split()[:4] == ["path", "in", "copies", "out"] and len(lines) == 2 + len(summed)
    for line, path in zip(lines[2:], summed, strict=True):
        assert line.startswith(path["path"]) and f" {path['delivered']} " in line
    assert "loss 2, not taken by the kernel 2" in lines[5]


def test_the_drawn_jitter_stands_beside_what_was_set_and_the_rate_with_headers_beside_the_payload() -> None:
    drawn = {
        "n": 900,
        "sd": 5.1e6,
        "mean": 5.05e6,
        "p50": 3_500_000,
        "p99": 23_000_000,
        "p999": 1,
        "max": 30_000_000,
    }
    link = {"packets": 900, "dropped_packets": 0, "busy_s": 0.0}
    links = [link | {"name": "path.forward", "jitter_ns": drawn}, link | {"name": "path.backward"}]
    rates = {"set_rate_bps": 9_500_000.0, "delivered_rate_bps": 9_500_000.0, "wire_rate_bps": 10_000_000.0}
    ended = outcome([row("ip", way, 900, 900, **rates) for way in ("near -> far", "far -> near")], [])
    network = proxy.load("direct", ['links.path.jitter={kind="exponential", mean="5 ms"}']).network
    source = {"plan": {"network": network}, "told": ended | {"links": links}, "ran_s": 2.0}
    there, back = metrics.section("network").value(source)
    assert there["jitter"] == "exponential, mean 5 ms" and there["jitter_ms"]["sd"] == pytest.approx(5.1)
    assert there["jitter_ms"]["n"] == 900 and "jitter" not in back and "jitter_ms" not in back
    lines = verdict.told(ended | {"links": links}, Margin(), network).splitlines()
    at = next(n for n, line in enumerate(lines) if "drawn mean ms" in line)
    assert " ".join(lines[at].split()) == "link set drawn mean ms sd ms p50 ms p99 ms max ms n", lines[at]
    assert lines[at + 2].split() == ["path.forward", "exponential,", "mean", "5", "ms", *DRAWN], lines[at + 2]
    assert "with headers" in lines[0] and " 9.500 Mbit/s   10.0 Mbit/s " in lines[2]


@pytest.mark.parametrize(
    ("error_ns", "verdict_", "shown"),
    [(1e5, "good", "good: delay; not shown: rate"), (9e5, "not good", "NOT GOOD")],
)
def test_a_record_keeps_the_verdict_and_what_was_measured_beside_the_network(
    tmp_path: Path, error_ns: float, verdict_: str, shown: str
) -> None:
    ended = outcome(
        [
            row("ip", way, 900, 900, error_ns={"p50": 0, "p99": error_ns, "max": error_ns})
            for way in ("near -> far", "far -> near")
        ],
        [],
    )
    tcp = [{"side": "near", "sent": 40, "retransmitted": 2}, {"side": "far", "sent": 0, "retransmitted": 0}]
    ended |= {"tcp": tcp, "late_ns": {"p50": 8e4, "p99": 4.5e6, "max": 16e6}}
    with recorder(tmp_path, doors=("ip/ip",)) as found:
        found.world, found.doors = "netns", [("ip", "ip")]
        told = found._result(ended, Margin())
    kept = metrics.section("programs").value({"told": told})
    assert (kept["verdict"], kept["margin_ms"], bool(kept["remedies"])) == (verdict_, 0.3, verdict_ != "good")
    assert kept["tcp"] == tcp and kept["late_ms"] == {"p50": 0.08, "p99": 4.5, "max": 16.0}
    assert [(one["what"], one["verdict"]) for one in kept["settings"]] == [
        ("delay", verdict_),
        ("rate", "not shown"),
    ]
    terminal = verdict.told(ended, Margin(), found.plan["network"])
    run = RunFolder(tmp_path)
    vars(run)["summary"] = {"world": "netns", "programs": kept, "disturbances": told["broken"]}
    said = [
        "TCP retransmitted: near 2 of 42 segments",
        "this machine: a program that sleeps 2 ms at a time woke 0.08 ms late at p50, 4.5 ms at p99, 16 ms at most;",
        shown,
        *programs.settings(kept),
        *kept["remedies"],
    ]
    for line in said:
        assert line in terminal and line in text.headline(run)
    for line in told["broken"]:  # of its worst path a setting says it
        assert line in text.headline(run) and (line in terminal) == line.startswith("ip to near: ")
    page = [line for _, line in sections.health(run.summary)]
    assert len(page) == 1 + 1 + 2 + len(kept["remedies"]) + 2 and page[-2] == f"{said[0]}."


def served(name: str, packets: int, busy_s: float = 0.0, **drops: int) -> dict[str, Any]:
    """What a link counted."""
    dropped = sum(drops.values())
    return {"name": name, "packets": packets, "busy_s": busy_s, "dropped_packets": dropped, "drops": drops}


def came(mbps: float, begin_s: float, end_s: float, **more: Any) -> dict[str, Any]:
    """A path whose packets came out in that time at that rate."""
    rates = dict.fromkeys(("set_rate_bps", "delivered_rate_bps", "wire_rate_bps"), mbps * 1e6)
    return row("0/udp", "near -> far", 900, 900, released_ns=[begin_s * 1e9, end_s * 1e9], **rates) | more


LINKS = [("there", 0, 1, 2e6), ("back", 1, 0, 2e6)]


@pytest.mark.parametrize(
    ("paths", "links", "counted", "found"),
    [
        # What a full queue refused has not used the link, what the loss took has; a flood of others has not, either.
        (
            [came(1.9, 1, 11)],
            LINKS,
            [served("there", 900, 11.0, full=700, loss=47)],
            ("good", "there 1.999 Mbit/s of 2.000 Mbit/s"),
        ),
        (
            [came(0.68, 1, 3)],
            LINKS,
            [served("there", 900, 11.0)],
            ("not shown", "used less on average: there 680.0 kbit/s of 2.000 Mbit/s"),
        ),
        # Two ports at the same time, and one after the other.
        ([came(1, 1, 4), came(1, 1, 4)], LINKS, [served("there", 900)], ("good", "there 2.000 Mbit/s of 2.000 Mbit/s")),
        (
            [came(1, 1, 4), came(1, 5, 8)],
            LINKS,
            [served("there", 900)],
            ("not shown", "used less on average: there 1.000 Mbit/s of 2.000 Mbit/s"),
        ),
        # A bottleneck behind a lossy link, and a way that no packet takes.
        (
            [came(0.96, 1, 11)],
            [("a", 0, 2, 9e6), ("b", 2, 1, 1e6), ("s", 0, 3, 1e5), ("t", 3, 4, 1e5), ("u", 4, 1, 1e5), ("back", 1, 0, 2e6)],
            [served("a", 900, loss=900), served("b", 900)],
            ("good", "b 960.0 kbit/s of 1.000 Mbit/s"),
        ),
        # Copies are made behind the line, and no link lets out more than its rate.
        (
            [came(0.93, 1, 11)],
            [("there", 0, 1, 1e6), ("back", 1, 0, 2e6)],
            [served("there", 900) | {"duplicated": 450}],
            ("not shown", "used less on average: there 620.0 kbit/s of 1.000 Mbit/s"),
        ),
        (
            [came(2.4, 1, 11)],
            LINKS,
            [served("there", 900)],
            ("not shown", "above its rate: there 2.400 Mbit/s of 2.000 Mbit/s"),
        ),
        # A stream has a line of its own.
        (
            [came(1.9, 1, 11, door="1/tcp")],
            LINKS,
            [],
            ("good", "1/tcp to far 1.900 Mbit/s of 2.000 Mbit/s"),
        ),
        ([row("ip", "near -> far", 9, 9)], LINKS, [], ("not shown", "packets came out for less than 1 s")),
    ],
)  # fmt: skip
def test_a_rate_is_shown_by_what_came_out_of_its_link(
    paths: list[dict[str, Any]],
    links: list[tuple[str, int, int, float]],
    counted: list[dict[str, Any]],
    found: tuple[str, str],
) -> None:
    of = [{"name": name, "from": here, "to": end, "rate_bps": rate} for name, here, end, rate in links]
    doors = [one for each in paths for one in (each, row(each["door"], "far -> near", 9, 9))]
    ended = outcome(doors, []) | {"links": counted, "duration_s": 12.0}
    assert said_of(ended, of, "rate") == found


def test_a_rate_that_was_changed_or_whose_way_is_not_known_is_not_shown() -> None:
    ended = outcome([came(1.9, 1, 11), row("0/udp", "far -> near", 9, 9)], [])
    links = path(rate_bps=2e6)
    (told,) = verdict.ending(ended, Margin(), {"links": links, "routing": "delay"})["settings"]
    assert told["verdict"] == "not shown" and "chosen by its routing or by dscp" in told["said"]
    marked = [*links, {"name": "gold.forward", "from": 0, "to": 1, "rate_bps": 1e6, "dscp": 46}]
    (told,) = verdict.ending(ended, Margin(), {"links": marked})["settings"]
    assert told["verdict"] == "not shown" and "chosen by its routing or by dscp" in told["said"]
    for door in ("0/udp", "0/tcp"):
        stream = [one | {"door": door} for one in ended["doors"]]
        changed = ended | {"doors": stream, "changed": {"path.forward": ["rate_bps"]}}
        judged, said = said_of(changed, links, "rate")
        assert judged == "not shown" and said.endswith("1.900 Mbit/s, rate changed in the run"), said


RATES = {"set_rate_bps": 19e6, "delivered_rate_bps": 19e6, "wire_rate_bps": 20e6, "released_ns": [0, 1e9]}


@pytest.mark.parametrize(
    ("more", "head", "said"),
    [
        (
            RATES | {"error_ns": {"p50": 16_000, "p99": 4_000_000, "max": 9_000_000}},
            "NOT GOOD: delay, jitter; good: rate, loss",
            [
                "delay not good: ip to far error of each packet 0.016 ms at p50 (margin 0.05 ms; delivered 5.000, set 5.000 "
                "ms), 4.000 ms at p99 (margin 0.3 ms; delivered 7.000, set 7.000 ms); of all packets 9.000 ms at most",
                "rate good: path.forward 20.0 Mbit/s of 20.0 Mbit/s",
                "loss good: ip to far lost 0.00 %, of these dropped by the network 0.00 % (margin 0.5%); path.forward "
                "0.222 % of 900 draws, set 1.00 % (95 % interval 0.444 % to 1.67 %; outside that interval); path.backward ",
                "jitter not good: ip to far error of each packet varies by 3.984 ms (p99 - p50; margin 0.3 ms; delivered "
                "2.000, set 2.000 ms)",
            ],
        ),
        (
            RATES | {"delivered_rate_bps": 17e6},
            "NOT GOOD: rate; good: delay, loss, jitter",
            ["rate not good: ip to far delivered 17.0 Mbit/s, released 19.0 Mbit/s (margin 1%)"],
        ),
        (
            RATES | {"delivered_loss": 0.02},
            "NOT GOOD: loss; good: delay, rate, jitter",
            ["loss not good: ip to far lost 2.00 %, of these dropped by the network 0.00 % (margin 0.5%); path.f"],
        ),
        (
            RATES | {"refused": 3},
            "NOT GOOD: for reasons other than the settings; good: delay, rate, loss, jitter",
            ["loss good: ", "ip to far: closed 3 connections: "],
        ),
        ({}, "good: delay, loss, jitter; not shown: rate", ["rate not shown: packets came out for less than 1 s"]),
        (
            {"delivered": 0, "inside": 900},
            "NOT GOOD: delivery; good: loss; not shown: delay, rate, jitter",
            [
                "delivery not good: ip to far delivered none of 900 packets: 900 were still in flight at the end",
                "ip to near: delivered none of 900 packets: 900 were",
            ],
        ),
        (
            {"delivered": 20},
            "good: loss; not shown: delay, rate, jitter",
            ["delay not shown: no path delivered 100 packets"],
        ),
    ],
)  # fmt: skip
def test_each_setting_is_judged_by_itself_and_the_verdict_names_those_that_are_not_good(
    more: dict[str, Any], head: str, said: list[str]
) -> None:
    ended = outcome([row("ip", way, 900, 900) | more for way in ("near -> far", "far -> near")], [])
    there, back = path(delay_ns=5, rate_bps=20e6, **losing(0.01), jitter={"x": 1})
    network = {"links": [there, back | {"rate_bps": 40e6}]}
    ended["links"] = [served(one["name"], 898, loss=2) for one in (there, back)]
    lines = verdict.told(ended, Margin(), network | {"traffic": []}).splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith(head))
    assert head.startswith("good") or lines[at] == head
    assert [line.split()[0] for line in lines[at + 1 : at + 5]] == ["delay", "rate", "loss", "jitter"]
    for one in said:
        assert any(line.startswith(f"  {one}") for line in lines), lines[at:]


def test_tcp_ports_have_no_jitter() -> None:
    """A connection ends at the port: what varies there was drawn by no link."""
    links, varies = path(jitter={"x": 1}), {"p50": 0, "p99": 9e5, "max": 9e5}
    streams = [row("1/tcp", way, 900, 900, error_ns=varies) for way in ("near -> far", "far -> near")]
    assert said_of(outcome(streams, []), links, "jitter") == (
        "not shown",
        "no packet came to the jitter of a link",
    )
    verdict_, said = said_of(outcome([*streams, *both()["doors"]], []), links, "jitter")
    assert verdict_ == "good" and said.startswith("ip to far "), said


def path(name: str = "path", **keys: Any) -> list[dict[str, Any]]:
    """Both directions of a link."""
    ways = (("forward", 0, 1), ("backward", 1, 0))
    return [{"name": f"{name}.{way}", "from": here, "to": end} | keys for way, here, end in ways]


def losing(share: float) -> dict[str, Any]:
    return {"loss": {"kind": "random", "p": share}}


def said_of(ended: dict[str, Any], links: list[dict[str, Any]], what: str) -> tuple[str, str]:
    """The verdict on a setting, and what is said."""
    (found,) = (
        one for one in verdict.ending(ended, Margin(), {"links": links})["settings"] if one["what"] == what
    )
    return found["verdict"], found["said"]


def both(*, packets: int = 900, delivered: int = 900, **more: Any) -> dict[str, Any]:
    ways = ("near -> far", "far -> near")
    return outcome([row("ip", way, packets, delivered, **more) for way in ways], [])


def test_what_was_changed_in_the_run_has_neither_its_first_value_nor_a_range() -> None:
    before = path(rate_bps=10e6, **losing(0.5), jitter={"delay": {"kind": "constant", "mean_ns": 5}})
    after = path(rate_bps=1e6, **losing(0.01), jitter={"delay": {"kind": "constant", "mean_ns": 9}})
    by_profile, by_event = Changes(), Changes()
    by_profile.profile({"links": before}, {"links": after})
    by_event.event(
        {"action": {"kind": "link", "links": [0], "rate_bps": 1e6, "loss": 0.01}}, {"links": before}
    )
    assert by_profile.found == {one["name"]: ["rate_bps", "loss", "jitter"] for one in before}
    assert by_event.found == {"path.forward": ["rate_bps", "loss"]}
    drawn = dict.fromkeys(("sd", "mean", "p50", "p99", "p999", "max"), 1) | {"n": 9}
    ended = both(packets=500, delivered=386, **RATES) | {"changed": by_profile.found}
    ended["links"] = [served(one["name"], 386, 1.0, loss=114) | {"jitter_ns": drawn} for one in before]
    told = verdict.told(ended, Margin(), {"links": before})
    assert told.count("changed in the run") == 2 + 1 + 2 + 1, (
        told
    )  # links of the table; rate; links of loss; jitter
    assert "50.0 %" not in told and "10.0 Mbit/s" not in told and "constant" not in told, told


def test_of_rates_that_are_not_good_the_farthest_of_those_with_both_is_named() -> None:
    rates = {"near -> far": (1e6, 1.5e6), "far -> near": (1e6, 0.9e6)}
    doors = [
        row("0/udp", way, 900, 900, set_rate_bps=a, delivered_rate_bps=b) for way, (a, b) in rates.items()
    ]
    idle = [row("1/udp", way, 9, 9) for way in rates]
    found = said_of(outcome([*doors, *idle], []), path(rate_bps=1e6), "rate")
    assert found == (
        "not good",
        "0/udp to far delivered 1.500 Mbit/s, released 1.000 Mbit/s (margin 1%)",
    )


BURSTS = {"kind": "gilbert-elliott", "p": 0.1, "r": 0.3, "loss_good": 0.0, "loss_bad": 1.0}


@pytest.mark.parametrize(
    ("links", "counted", "found"),
    [
        (  # what waits in a queue has met no loss yet
            path(**losing(0.1)),
            [served("path.forward", 2032, loss=231, full=400)],
            ("good", "path.forward 10.2 % of 2 263 draws, set 10.0 % (95 % interval 8.79 % to 11.3 %)"),
        ),
        (
            path(**losing(0.2)),
            [served("path.forward", 900)],
            ("not good", "0.00 % of 900 draws, set 20.0 % (95 % interval 17.4 % to 22.7 %; far outside that interval)"),
        ),
        (
            path(**losing(0.2)),
            [served("path.forward", 745, loss=155)],
            ("good", "17.2 % of 900 draws, set 20.0 % (95 % interval 17.4 % to 22.7 %; outside that interval)"),
        ),
        (  # in one of seven runs it takes none
            path(**losing(0.002)),
            [served("path.forward", 999, loss=1)],
            ("not shown", "path.forward 0.100 % of 1 000 draws, set 0.200 % (95 % interval 0.00 % to 0.500 %)"),
        ),
        (
            path(loss=BURSTS | {"p": 1e-4, "r": 0.5}),
            [served("path.forward", 30)],
            ("not shown", "path.forward 0.00 % of 30 draws, set 0.020 % in the long run of its bursts"),
        ),
        (
            [*path("a", **losing(1e-6)), *path("b", **losing(0.0))],
            [served("a.forward", 5000), served("b.forward", 5000)],
            ("not shown", "b.forward 0.00 % of 5 000 draws, set 0.00 % (95 % interval 0.00 % to 0.00 %)"),
        ),
        (
            path(**losing(0.0)),
            [served("path.forward", 5000)],
            ("good", "path.forward 0.00 % of 5 000 draws, set 0.00 % (95 % interval 0.00 % to 0.00 %)"),
        ),
        (path(**losing(1e-4)), [served("path.forward", 30)], ("not shown", "set 0.010 % (95 % interval 0.00 % to 0.00 %)")),
        (path(**losing(0.2)), [served("path.forward", 1)], ("not shown", "path.forward 1 draw: too few to tell")),
        (path(**losing(0.2)), [served("path.forward", 0, full=9)], ("not shown", "no packet came to the loss of a link")),
        (
            path(**losing(0.2)),
            [served("path.forward", 9), served("path.backward", 800, loss=200)],
            ("good", "path.forward 9 draws: too few to tell; path.backward 20.0 % of 1 000 draws, set 20.0 % (95 % "
             "interval 17.6 % to 22.5 %)"),
        ),
        (
            path(loss=BURSTS),
            [served("path.forward", 600, loss=300)],
            ("good", "path.forward 33.3 % of 900 draws, set 25.0 % in the long run of its bursts"),
        ),
        (
            [one for name in "abcdef" for one in path(name, **losing(0.2))],
            [served(f"{name}.forward", 800, loss=200) for name in "abcdef"],
            ("good", "; and 2 other links"),
        ),
    ],
)  # fmt: skip
def test_the_loss_of_each_link_is_told_by_its_own_draws(
    links: list[dict[str, Any]], counted: list[dict[str, Any]], found: tuple[str, str]
) -> None:
    judged, said = said_of(both() | {"links": counted}, links, "loss")
    assert judged == found[0] and said.endswith(found[1]), said


FAR = "path.forward: its loss took 0.00 % of 900 draws, set 20.0 %: chance does that in less than 1 of 10^9 runs"


def test_a_loss_that_chance_does_not_explain_is_a_fault_of_the_run() -> None:
    """The link did not do what was set: not good, said once, with what to do."""
    network = {"links": path(**losing(0.2))}
    ended = both() | {"links": [served("path.backward", 720, loss=180), served("path.forward", 900)]}
    assert verdict.judged(ended, Margin(), network) == (False, [FAR])
    told = verdict.ending(ended, Margin(), network)
    assert told["verdict"] == "not good" and told["remedies"] == [verdict.REMEDIES[settings.DRAWN]]
    lines = verdict.told(ended, Margin(), network).splitlines()
    assert "NOT GOOD: loss" in lines and FAR not in "".join(lines) and lines[-1].startswith("  → report it")
    assert sum("far outside" in line for line in lines) == 1
    many = [one for name in "abcdefg" for one in path(name, **losing(0.2))]
    found = both() | {"links": [*(served(f"{name}.forward", 800, loss=200) for name in "abcdef")]}
    found["links"] += [served("g.forward", 900)]
    assert "g.forward 0.00 % of 900 draws" in said_of(found, many, "loss")[1], "a fault is never left out"


@pytest.mark.parametrize(
    ("keys", "changed"),
    [
        ({"loss": {"kind": "gilbert-elliott", "p": 0.1, "r": 0.3, "loss_good": 0.0, "loss_bad": 1.0}}, {}),
        ({"loss": {"kind": "./mine.py:Mine", "p": 0.2}}, {}),
        (losing(0.2) | {"radio": {"kind": "nr", "block_error": 0.1}}, {}),
        (losing(0.2), {"path.forward": ["loss"]}),
        (losing(0.2), {"path.forward": []}),
    ],
    ids=["bursts", "code", "radio", "changed", "another network"],
)
def test_a_loss_that_no_binomial_law_describes_is_never_a_fault(
    keys: dict[str, Any], changed: dict[str, list[str]]
) -> None:
    """On a radio link blocks that are given up count, too; another network draws from the beginning again."""
    ended = both() | {"links": [served("path.forward", 900)], "changed": changed}
    assert verdict.judged(ended, Margin(), {"links": path(**keys)}) == (True, [])
    assert "far outside" not in said_of(ended, path(**keys), "loss")[1]


def test_each_link_of_a_network_that_took_the_place_of_another_is_noted() -> None:
    changes, before = Changes(), {"links": path(**losing(0.2)), "traffic": []}
    changes.profile(before, before)
    assert changes.found == {}
    changes.profile(before, before | {"traffic": [{"name": "neighbour"}]})
    assert changes.found == {"path.forward": [], "path.backward": []}


@pytest.mark.parametrize(("draws", "share"), [(100, 0.1), (5000, 0.01), (300, 0.5), (100_000, 1e-4)])
def test_what_chance_does_not_explain_has_both_tails_together_the_probability_that_is_said(
    draws: int, share: float
) -> None:
    low, high = settings.interval(draws, share, settings.NEVER / 2)
    hit, miss = Decimal(str(share)), 1 - Decimal(str(share))
    few, most = range(max(0, low - 60), high + 60), min(draws, high + 60)
    mass = {n: float(math.comb(draws, n) * hit**n * miss ** (draws - n)) for n in few if n <= most}
    outside = [n for n in mass if not low <= n <= high]
    assert sum(mass[n] for n in outside) <= settings.NEVER == 1e-9
    links = [one | losing(share) for one in path()[:1]]
    for taken, is_good in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        if taken >= 0:
            ended = both() | {"links": [served("path.forward", draws - taken, loss=taken)]}
            assert verdict.judged(ended, Margin(), {"links": links})[0] is is_good


@pytest.mark.parametrize(
    ("draws", "share"),
    [(20, 0.005), (100, 0.001), (1000, 0.05), (50, 0.98), (9, 0.5), (130, 0.4), (2000, 0.03), (1000, 0.999)],
)
def test_an_interval_leaves_out_what_is_rarer_than_2_5_percent(draws: int, share: float) -> None:
    low, high = settings.interval(draws, share)
    hit, miss = Decimal(str(share)), 1 - Decimal(str(share))
    mass = [float(math.comb(draws, n) * hit**n * miss ** (draws - n)) for n in range(draws + 1)]
    for rest, more in ((mass[:low], mass[: low + 1]), (mass[high + 1 :], mass[high:])):
        assert sum(rest) <= 0.025 < sum(more)


def test_of_losses_the_path_counts_that_is_farthest_from_what_the_network_dropped() -> None:
    ended = both()
    ended["doors"][1] |= {"delivered_loss": 0.02, "set_loss": 0.0}
    judged, said = said_of(ended, path(**losing(0.01)), "loss")
    assert judged == "not good" and said.startswith("ip to near lost 2.00 %")


def test_a_verdict_says_where_nothing_is_shown_and_where_no_setting_is_the_reason() -> None:
    few = {"links": path(rate_bps=1e6, delay_ns=5)}
    shown = verdict.told(both(packets=20, delivered=20), Margin(), few)
    assert "\ngood: nothing failed; not shown: delay, rate; time that packets wait" in shown
    back = verdict.told(both(unreached=3), Margin(), {"links": path(delay_ns=5)})
    assert "\nNOT GOOD: for reasons other than the settings; good: delay\n" in back
    late = verdict.told(
        both(error_ns={"p50": 0, "p99": 9e5, "max": 3e6}), Margin(), {"links": path(delay_ns=5)}
    )
    assert late.count("of all packets 3.000 ms at most") == 1
    assert late.count("0.900 ms ") == 2, late  # of the worst path in its setting, of the other as a reason


def test_a_normal_jitter_whose_draws_are_cut_says_so() -> None:
    drawn = dict.fromkeys(("sd", "mean", "p50", "p99", "p999", "max"), 1) | {"n": 9}
    part = metrics.section("network")
    for mean, cut in (("0 ms", " (draws below 0 are 0)"), ("20 ms", "")):
        law = f'links.path.jitter={{kind="normal", mean="{mean}", sd="5 ms"}}'
        source = {"plan": {"network": proxy.load("direct", [law]).network}, "ran_s": 2.0}
        link = {"name": "path.forward", "jitter_ns": drawn, "packets": 9, "dropped_packets": 0, "busy_s": 0.0}
        (found,) = part.value(source | {"told": outcome([], []) | {"links": [link]}})
        assert found["jitter"].endswith(f"sd 5 ms{cut}"), found


def test_only_what_a_link_sets_is_judged() -> None:
    ended = outcome([row("ip", way, 900, 900) for way in ("near -> far", "far -> near")], [])
    for keys, what in (({"delay_ns": 0}, []), ({"delay_ns": 5}, ["delay"]), ({"rate_bps": 1e6}, ["rate"])):
        network = {"links": [{"name": "path.forward"} | keys]}
        assert [one["what"] for one in verdict.ending(ended, Margin(), network)["settings"]] == what
    late = outcome([row("ip", "near -> far", 900, 900, error_ns={"p50": 0, "p99": 1, "max": 1})], [])
    strict = verdict.ending(late, Margin(p99_ms=1e-7), {"links": [{"name": "path.forward", "delay_ns": 5}]})
    assert strict["settings"][0]["verdict"] == "not good", strict
    nothing = outcome([row("ip", "near -> far", 0, 0)], [])
    assert (
        verdict.ending(nothing, Margin(), {"links": [{"name": "path.forward", "delay_ns": 5}]})["settings"]
        == []
    )


@pytest.mark.parametrize(
    ("more", "own", "says"),
    [
        (
            {"error_ns": {"p50": 60_000, "p99": 100_000, "max": 100_000}},
            {},
            "own (taskset for your programs), run as root (SCHED_FIFO)",
        ),
        (
            {"error_ns": {"p50": 0, "p99": 9e5, "max": 9e5}},
            {"privileges": ["SCHED_FIFO: yes"]},
            "your programs), or send less; --margin-ms",
        ),
        ({"set_rate_bps": 2e6, "delivered_rate_bps": 1.9e6}, {}, "set a lower --rate"),
        ({"delivered_loss": 0.1, "set_loss": 0.0}, {}, "the kernel refused packets"),
        ({"delivered": 0, "inside": 900}, {}, "run for longer than the delay of the network"),
        ({"unreached": 3}, {}, "check HOST:PORT"),
        ({"refused": 3}, {}, "no limit of connections"),
        ({}, {"socket_drops": 3}, "read its ports too late"),
    ],
)
def test_a_verdict_that_is_not_good_says_once_what_to_do(
    more: dict[str, Any], own: dict[str, Any], says: str
) -> None:
    doors = [row("0/udp", way, 900, 900) | more for way in ("near -> far", "far -> near")]
    ended = outcome(doors, []) | {"own": own}
    (remedy,) = verdict.remedies(ended, Margin(), {})
    lines = verdict.told(ended, Margin(), {}).splitlines()
    assert says in remedy and "{" not in remedy and lines[-1] == f"  → {remedy}"
    assert any(line.startswith("NOT GOOD:") for line in lines) and not verdict.remedies(
        outcome([row("0/udp", "near -> far", 9, 9)] * 2, []), Margin(), {}
    )


DRAWN = ["5.050", "5.100", "3.500", "23.000", "30.000", "900"]


def test_doors_of_one_name_are_told_apart_and_one_without_packets_has_no_delay() -> None:
    ways = ("near -> far", "far -> near")
    doors = [row("0/udp", way, packets, packets) for packets in (3, 0) for way in ways]
    doors[0]["unreached"], doors[0]["refused"] = 3, 1
    part = metrics.section("emulator")
    first, _, _, last = part.value({"told": {"emulator": verdict.paths(outcome(doors, []))}})
    assert (first["path"], last["path"]) == ("0/udp (1) to far", "0/udp (2) to near")
    assert first["lost_by"] == {"refused connections": 1, "sent back": 3}
    assert last["set_p50_ms"] is last["delivered_delay_ms"] is last["error_ms"] is None


def invoked(*words: str) -> Any:
    return CliRunner().invoke(app, ["proxy", "--delay", "1 ms", *words, "--duration", "0.1 s"])


def test_without_out_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoked("0=127.0.0.1:9").exit_code == 3
    assert not list(tmp_path.iterdir())


def test_a_record_through_which_nothing_passed_is_whole_and_says_so(tmp_path: Path) -> None:
    done = invoked("0=127.0.0.1:9", "--out", str(tmp_path / "out"))
    assert done.exit_code == 3 and done.stdout.endswith(f"report: {tmp_path / 'out' / 'report.html'}\n")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert "no packet arrived, so this run proves nothing" in summary["disturbances"]
    assert summary["world"] == "proxy" and summary["duration_s"] < 60


def test_a_folder_of_somebody_elses_is_refused_before_a_port_is_opened(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    done = invoked("192.0.2.1:0=127.0.0.1:9", "--out", str(tmp_path))
    assert done.exit_code == 2 and "holds thesis.tex" in done.stderr, done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_port_that_cannot_be_opened_leaves_no_folder(tmp_path: Path) -> None:
    done = invoked("192.0.2.1:0=127.0.0.1:9", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2 and "192.0.2.1:0" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--port", "8700"], ["--no-browser"]])
def test_what_is_said_of_a_page_needs_one(option: list[str]) -> None:
    done = invoked("0=127.0.0.1:9", *option)
    assert done.exit_code == 2 and "with --studio" in done.stderr
