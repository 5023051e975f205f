"""The sentence that opens the page of a run says where samples were lost, and that the machine was late first."""

from __future__ import annotations

from typing import Any

import pytest

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
            f"up; none in the network; {DELAY}.",
        ),
        (
            "virtual",
            {"ms overload": 50, "l1.forward full": 2},
            f"{DELAY}; 62.5 % of video is lost, most at ms, which could not keep up.",
        ),
        ("real", {"ms unkeyed": 5}, f"{DELAY}; 62.5 % of video is lost, most at ms (unkeyed)."),
    ],
)
def test_it_says_where_samples_were_lost_and_first_that_the_machine_was_late(
    world: str, drops: dict[str, int], said: str
) -> None:
    assert told(world, 0.625, drops) == said


def test_datagrams_that_the_kernel_dropped_are_the_machines() -> None:
    said = told("real", 0.1, {}, nodes=[{"name": "a", "socket_drops": 7}, {"name": "b"}])
    assert said.startswith("This machine was too slow: 10.0 % of video is lost, most in receive buffers")
    assert told("real", 0.1, {}) == f"{DELAY}; 10.0 % of video is lost."
