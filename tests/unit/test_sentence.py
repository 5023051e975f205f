"""The sentence that opens the page of a run says where samples were lost, and that the machine was late first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpsbed import scenarios
from tcpsbed.analysis.records import KINDS
from tcpsbed.scenarios.compile import compile_plan
from tcpsbed.studio.collector import ROW, Collector
from tcpsbed.views.sentence import sentence


def summary(world: str, loss: float, drops: dict[str, int], **more: Any) -> dict[str, Any]:
    stages = [{"component": "ss", "flow": "video", "kind": kind} for kind in ("capture", "code")]
    flow = {"delay_ms": {"mean": 30.0, "p99": 50.0}, "loss": loss, "drops": drops}
    return {"world": world, "flows": {"video": flow}, "stages": stages} | more


def told(*given: Any, **more: Any) -> str:
    return "".join(words for _, words in sentence(summary(*given, **more)))


DELAY = "video takes 30.000 ms"


@pytest.mark.parametrize(
    ("world", "drops", "said"),
    [
        ("real", {"l1.forward loss": 5, "ss overload": 1}, f"{DELAY}; 62.5 % of video is lost, most at l1."),
        (
            "real",
            {"ss overload": 50},
            "This machine was too slow: 62.5 % of video is lost, most at the camera and encoder of ss, which could not keep "
            f"up; {DELAY}.",
        ),
        (
            "virtual",
            {"ms overload": 50, "l1.forward full": 2},
            f"{DELAY}; 62.5 % of video is lost, most at ms, which had no room in its queue.",
        ),
        ("real", {"ms unkeyed": 5}, f"{DELAY}; 62.5 % of video is lost, most at ms (unkeyed)."),
    ],
)
def test_it_says_where_samples_were_lost_and_first_that_the_machine_was_late(
    world: str, drops: dict[str, int], said: str
) -> None:
    assert told(world, 0.625, drops) == said


def test_datagrams_that_the_kernel_dropped_are_the_machines() -> None:
    nodes = [{"name": "a", "socket_drops": 7}, {"name": "b"}]
    for lost, is_most in ((14, True), (15, False), (5000, False)):
        given = summary("real", 0.1, {}, nodes=nodes)
        given["flows"]["video"]["lost"] = lost
        said = "".join(words for _, words in sentence(given))
        slow = f"This machine was too slow: 10.0 % of video is lost, most in receive buffers of the kernel at a; {DELAY}."
        assert said == (slow if is_most else f"{DELAY}; 10.0 % of video is lost.")
    assert told("real", 0.1, {}) == f"{DELAY}; 10.0 % of video is lost."


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
    said = f", most at the encoder of {name}, which could not keep up"
    assert (told["dropped"], told["slow"]) == (said, False), "a simulated clock has no stalls"
    stall = np.zeros(1, ROW)
    stall["kind"], stall["time"], stall["value"] = 1 + KINDS.index("gap"), 1_100_000_000, 5_000_000
    made.add(stall.tobytes(), 1.2, 0)
    assert made.lately()["flows"][number]["slow"]
    made.add(b"", 20.0, 0)
    assert made.lately()["flows"][number]["dropped"] == "", "long ago"
