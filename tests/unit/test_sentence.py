"""The sentence that opens the page of a run says where samples were lost, and that the machine was late first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import analysis_run
import numpy as np
import pytest

from tcpsbed import scenarios
from tcpsbed.analysis.records import KINDS
from tcpsbed.analysis.together import together
from tcpsbed.scenarios.compile import compile_plan
from tcpsbed.studio.collector import ROW, Collector
from tcpsbed.views import paths, text
from tcpsbed.views.folder import open_folder
from tcpsbed.views.sentence import causes, sentence


def summary(world: str, loss: float, drops: dict[str, int], **more: Any) -> dict[str, Any]:
    stages = [{"component": "ss", "flow": "video", "kind": kind} for kind in ("capture", "code")]
    flow = {"delay_ms": {"mean": 30.0, "p99": 50.0}, "loss": loss, "drops": drops}
    return {"world": world, "flows": {"video": flow}, "stages": stages} | more


def told(*given: Any, **more: Any) -> str:
    return "".join(words for _, words in sentence(summary(*given, **more)))


DELAY = "video takes 30.000 ms"
KERNEL = "the kernel at a dropped up to 7 datagrams of all flows (receive buffer full, or bad checksum)"


@pytest.mark.parametrize(
    ("world", "drops", "said"),
    [
        (
            "real",
            {"l1.forward loss": 5, "l1.forward full": 9, "ss overload": 1},
            f"{DELAY}; 62.5 % of video is lost: 14 packets by link l1, as set (full queue, loss); 1 packet by the machine: "
            "the camera and encoder of ss, which could not keep up.",
        ),
        (
            "virtual",
            {"l1.forward outage": 5, "l2.forward full": 9, "l3.forward full": 1, "ss overload": 1},
            f"{DELAY}; 62.5 % of video is lost: 15 packets by links l2, l1 and 1 other, as set (full queue, outage); 1 "
            "packet at the camera and encoder of ss, which could not keep up.",
        ),
        (
            "real",
            {"ss overload": 50},
            "This machine was too slow: 62.5 % of video is lost: 50 packets by the machine: the camera and encoder of "
            f"ss, which could not keep up; {DELAY}.",
        ),
        (
            "virtual",
            {"ms overload": 50, "l1.forward full": 2},
            f"{DELAY}; 62.5 % of video is lost: 50 packets at ms, which had no room in its queue; 2 packets by link l1, as "
            "set (full queue).",
        ),
        ("real", {"ms unkeyed": 5}, f"{DELAY}; 62.5 % of video is lost: 5 packets at ms (unkeyed)."),
    ],
)
def test_it_says_where_samples_were_lost_and_first_that_the_machine_was_late(
    world: str, drops: dict[str, int], said: str
) -> None:
    assert told(world, 0.625, drops) == said


def test_the_terminal_says_by_whom_the_packets_of_each_flow_were_dropped(tmp_path: Path) -> None:
    shown = text.overview(open_folder(analysis_run.write(tmp_path, world="real")))
    assert "\ndropped of kinematic: 40 packets by link l2, as set (full queue)\n" in shown


def test_links_and_machine_are_both_told_where_sockets_overflowed_too() -> None:
    given = summary("real", 0.1, {"l1.forward full": 9}, nodes=[{"name": "a", "socket_drops": 7}])
    for lost, said in (
        (20, [f"dropped of video: 9 packets by link l1, as set (full queue); {KERNEL}"]),
        (5, [f"dropped of video: 9 packets by link l1, as set (full queue); {KERNEL}"]),
        (9, ["dropped of video: 9 packets by link l1, as set (full queue)"]),
    ):  # fmt: skip
        given["flows"]["video"]["lost"] = lost
        assert causes(given) == said, "what links dropped explains it, or does not, or counts fragments"


def test_datagrams_that_the_kernel_dropped_are_the_machines() -> None:
    nodes = [{"name": "a", "socket_drops": 7}, {"name": "b"}]
    for lost, is_most in ((14, True), (15, False), (5000, False)):
        given = summary("real", 0.1, {}, nodes=nodes)
        given["flows"]["video"]["lost"] = lost
        said = "".join(words for _, words in sentence(given))
        slow = f"This machine was too slow: 10.0 % of video is lost: {KERNEL}; {DELAY}."
        assert said == (slow if is_most else f"{DELAY}; 10.0 % of video is lost.")
    assert told("real", 0.1, {}) == f"{DELAY}; 10.0 % of video is lost."


def test_datagrams_of_all_flows_weigh_no_more_than_what_a_flow_lost() -> None:
    nodes = [{"name": "a", "socket_drops": 50_000}]
    sockets = KERNEL.replace("7", "50000")
    given = summary("real", 0.1, {"l1.forward full": 30}, nodes=nodes)
    given["flows"]["video"]["lost"] = 40
    assert causes(given) == [f"dropped of video: 30 packets by link l1, as set (full queue); {sockets}"]
    assert "too slow" not in "".join(words for _, words in sentence(given)), "10 at most are the machine's"
    given["flows"]["video"]["lost"] = 61
    assert causes(given) == [f"dropped of video: {sockets}; 30 packets by link l1, as set (full queue)"]
    assert "too slow" in "".join(words for _, words in sentence(given))


def test_the_flows_that_lost_most_are_told_and_how_many_others_there_are() -> None:
    drops = {"l1.forward full": 3}
    flows = {f"f{number}": {"loss": number / 100, "drops": drops} for number in range(7)}
    *told, rest = causes({"world": "virtual", "flows": flows})
    assert [line.split()[2] for line in told] == ["f6:", "f5:", "f4:", "f3:"]
    assert rest == "and 2 other flows lost samples"
    few = dict(list(flows.items())[:5])
    assert len(causes({"world": "virtual", "flows": few})) == 4, "all are told"
    unknown = {name: {"loss": 0.5} for name in "abcde"}
    assert causes({"world": "virtual", "flows": unknown}) == [], "nothing is said of them, nor of others"
    told = causes({"world": "virtual", "flows": unknown | few})
    assert told[0].startswith("dropped of f4:") and told[4] == "and 5 other flows lost samples"
    told = causes({"world": "virtual", "flows": unknown | {"f1": flows["f1"]}})
    assert told[1:] == ["and 5 other flows lost samples, no cause known"]


def test_the_live_page_says_where_samples_are_lost_and_whether_the_machine_is_too_slow(
    shipped_scenarios: Path, tmp_path: Path
) -> None:
    plan = compile_plan(scenarios.load(shipped_scenarios / "quickstart.toml"), tmp_path)
    made = Collector(plan)
    number = next(n for n, flow in enumerate(plan["flows"]) if flow["name"] == "video")
    first = plan["flows"][number]["path"][0]
    first["steps"] = [{"kind": "code"}]
    name = plan["components"][first["component"]]["name"]
    rows = np.zeros(5, ROW)
    rows["kind"], rows["flow"], rows["time"] = 1 + KINDS.index("dropped"), number, 1_000_000_000
    rows["point"], rows["detail"] = [first["component"]] * 4 + [0], [9] * 4 + [3]
    made.add(rows.tobytes(), 1.0, 0)
    told = made.lately()["flows"][number]
    late, link = f"the encoder of {name}, which could not keep up", "1 packet by link access, as set (loss)"
    said = f": 4 packets at {late}; {link}"
    assert (told["dropped"], told["slow"]) == (said, False), "a simulated clock has no stalls"
    stall = np.zeros(1, ROW)
    stall["kind"], stall["time"], stall["value"] = 1 + KINDS.index("gap"), 1_100_000_000, 5_000_000
    made.add(stall.tobytes(), 1.2, 0)
    told = made.lately()["flows"][number]
    assert (told["dropped"], told["slow"]) == (f": 4 packets by the machine: {late}; {link}", True)
    made.add(b"", 20.0, 0)
    assert made.lately()["flows"][number]["dropped"] == "", "long ago"


@pytest.mark.parametrize(
    ("propagation_ms", "rest_ms", "said"),
    [
        (8.5, 4.0, "35 % of the delay of video is propagation over link l1, 30 % is waiting in the queue of link l1 (17 % "
                   "is not split: another part may be larger); nothing is lost."),
        (12.0, 4.0, "50 % of the delay of video is propagation over link l1; nothing is lost."),
        (8.5, 8.2, "35 % of the delay of video is propagation over link l1 (34 % is not split: another part may be larger); "
                   "nothing is lost."),
        (7.5, 1.0, "31 % of the delay of video is propagation over link l1, 30 % is waiting in the queue of link l1 (4 % is "
                   "not split: another part may be larger); nothing is lost."),
    ],
)  # fmt: skip
def test_what_is_not_split_may_make_another_part_the_largest(
    propagation_ms: float, rest_ms: float, said: str
) -> None:
    def one(cause: str, mean_ms: float) -> dict[str, Any]:
        return {"cause": cause, "place": "l1", "mean_ms": mean_ms, "total_ms": 24.0, "share": mean_ms / 24.0}

    second = (
        [one("unsplit", rest_ms) if rest_ms > 7.3 else one("queueing", 7.3)] if propagation_ms < 9 else []
    )
    found = {"video": one("propagation", propagation_ms) | {"next": second}}
    spans = {"propagation": propagation_ms, "queueing": 7.3, "unsplit": rest_ms}
    split = {"video": {"parts": [{"part": name, "mean_ms": ms} for name, ms in spans.items()]}}
    assert told("real", 0.0, {}, largest=found, split=split) == said


@pytest.mark.parametrize(
    ("elsewhere_ms", "rest_ms", "expected"), [(7.0, 2.0, 2.0), (7.0, 0.9, 0.0), (0.0, 7.0, 0.0)]
)
def test_the_same_cause_at_another_link_may_be_larger_too(
    elsewhere_ms: float, rest_ms: float, expected: float
) -> None:
    one = {"cause": "queueing", "place": "l1", "mean_ms": 8.0}
    spans = {"queueing": 8.0 + elsewhere_ms, "propagation": 0.5, "unsplit": rest_ms}
    split = {"parts": [{"part": name, "mean_ms": ms} for name, ms in spans.items()]}
    assert paths.unsplit_ms(split, beside=one) == expected


def test_drops_of_flows_that_a_link_cannot_tell_apart_are_told_together(
    shipped_scenarios: Path, tmp_path: Path
) -> None:
    file = shipped_scenarios / "quickstart.toml"
    shared = ['channels.session.flows=["kinematic", "audio", "video", "haptic"]']
    plain = compile_plan(scenarios.load(file, shared), tmp_path)
    secured = compile_plan(scenarios.load(file, [*shared, "channels.session.security='aead'"]), tmp_path)
    assert together(plain, "real") == together(secured, "virtual") == []
    (group,) = together(secured, "real")
    assert group == ["haptic", "audio", "video"]
    lost = {"sent": 900, "delivered": 500, "lost": 100, "loss": 0.1, "drops": {}}
    flows = dict.fromkeys(("kinematic", *group), lost)
    flows |= {"haptic": lost | {"drops": {"l1.backward full": 850}}}
    found = {"world": "real", "flows": flows, "drops_together": [group]}
    assert causes(found) == [
        "dropped of haptic, audio and video together: 850 packets by link l1, as set (full queue)",
        "and 1 other flow lost samples, no cause known",
    ]
