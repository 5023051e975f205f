"""Which samples the stalls of a run touched, and the sentence that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_run import ROBOT_IN, plan, recorded, rows, write

from tcpsbed import _tcps
from tcpsbed.analysis import stalls
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder


def found(folder: Path, more: Any = None, warmup_ns: int = 0, made: Any = None) -> Any:
    """The stalls of the run by hand, with further rows."""
    every = recorded() if more is None else np.concatenate([recorded(), more])
    every = every[np.argsort(every["time"], kind="stable")]
    (folder / "records.bin").write_bytes(every.tobytes())
    made = made or plan()
    analysis = json.loads(_tcps.analyse(str(folder / "records.bin"), json.dumps(plan()), 0))
    return stalls.stalls(folder, made, warmup_ns, analysis)


def test_a_stall_touches_the_samples_that_were_in_flight_during_it(tmp_path: Path) -> None:
    """From 2496.8 to 2500 ms; a sample takes 5.5 ms: those made at 2492, and so on to 2499 ms."""
    told = found(tmp_path)
    assert (told["n"], told["longest_ms"]) == (1, 3.2)
    assert told["flows"] == {"kinematic": {"samples": 8, "share": 8 / 3960}}


def test_stalls_that_overlap_count_a_sample_once_and_the_warm_up_is_left_out(tmp_path: Path) -> None:
    within = rows("gap", [2499.5, 2499.8], value_ms=2.0, node=[0, 2])
    assert found(tmp_path, within)["flows"]["kinematic"]["samples"] == 8
    longer = rows("gap", 2520, value_ms=23.0, node=3)  # the emulator's
    assert found(tmp_path, longer)["flows"]["kinematic"]["samples"] == 8 + 20
    rest = found(tmp_path, warmup_ns=2_498_000_000)["flows"]["kinematic"]
    assert rest == {"samples": 2, "share": 2 / (1502 - 15)}, (
        "made at 2498 and later, as those that have delays"
    )


def test_stalls_beyond_those_that_the_analysis_lists_are_read_from_the_rows(tmp_path: Path) -> None:
    """Ten thousand are listed for each node, here before the first sample."""
    often = rows("gap", np.linspace(0.001, 0.0011, 10_000), value_ms=0.0005, node=1)
    told = found(tmp_path, often)
    assert (told["n"], told["flows"]["kinematic"]["samples"]) == (10_001, 8 + 1)


def test_many_flows_are_as_quick_as_few(tmp_path: Path) -> None:
    """The same rows and stalls, of 4 flows and of 4,000."""
    import time

    count = 300_000
    sent = np.sort(np.random.default_rng(1).uniform(0, 5000, count))
    stalled = rows("gap", np.linspace(1, 5000, 9000), value_ms=0.05, node=1)

    def took_s(flows: int) -> tuple[float, int]:
        made, one = plan(), plan()["flows"][0]
        made["flows"] = [one | {"name": f"f{number}"} for number in range(flows)]
        delivered = rows(
            "delivered", sent + 5, value_ms=5.0, flow=np.arange(count) % flows, point=ROBOT_IN, node=2
        )
        np.concatenate([delivered, stalled]).tofile(tmp_path / "records.bin")
        gaps = [{"t_s": row["time"] / 1e9, "length_ns": int(row["value"])} for row in stalled]
        analysis = {"nodes": [{"name": "n1", "gaps": 9000, "longest_gap_ns": 50_000, "first_gaps": gaps}]}
        begun = time.process_time()
        told = stalls.stalls(tmp_path, made, 0, analysis)
        return time.process_time() - begun, sum(flow["samples"] for flow in told["flows"].values())

    (few_s, few), (many_s, many) = took_s(4), took_s(4000)
    assert few == many > 0.9 * count and many_s < 4 * few_s + 0.1, (few_s, many_s)


def test_loops_that_a_flow_does_not_pass_touch_nothing_of_it(tmp_path: Path) -> None:
    elsewhere = plan()
    elsewhere["components"][1]["node"] = 2  # the stalled n1 has no component
    assert found(tmp_path, made=elsewhere)["flows"]["kinematic"]["samples"] == 0
    alone = plan()
    for component in alone["components"]:
        component["node"] = 0  # nothing crosses the emulator
    stalled = rows("gap", 1000, value_ms=9.0, node=3)
    assert found(tmp_path, stalled, made=alone)["flows"]["kinematic"]["samples"] == 0


@pytest.mark.parametrize(
    ("shares", "n", "said"),
    [
        (
            {"kinematic": 0.004},
            12,
            "12 stalls of at most 34.0 ms touched 0.4 % of the samples of kinematic (of those that arrived)",
        ),
        ({"kinematic": 0.0}, 1, "1 stall of 34.0 ms touched no sample"),
        (
            {"haptic": 0.00004, "video": 0.25},
            2,
            "2 stalls of at most 34.0 ms touched 25.0 % of the samples of video, 0.004 % of the samples of haptic"
            " (of those that arrived)",
        ),
        (
            {f"f{number}": 0.1 + number / 100 for number in range(6)},
            2,
            "2 stalls of at most 34.0 ms touched 15.0 % of the samples of f5, 14.0 % of the samples of f4, 13.0 % of the"
            " samples of f3, 12.0 % of the samples of f2, at most 11.0 % of 2 other flows (of those that arrived)",
        ),
    ],
)
def test_the_sentence_names_stalls_and_shares(shares: dict[str, float], n: int, said: str) -> None:
    flows = {name: {"samples": 1, "share": share} for name, share in shares.items()}
    assert stalls.sentence({"n": n, "longest_ms": 34.0, "flows": flows}) == said


def test_summary_and_terminal_say_it_once(tmp_path: Path) -> None:
    run = open_folder(write(tmp_path, world="real"))
    assert run.summary["stalls"]["flows"]["kinematic"]["samples"] == 8
    said = "DISTURBED: stalls touched 0.2 % of the samples of kinematic (of those that arrived)"
    assert text.everything(run).count("touched") == 2 and f"{said}\n" in text.everything(run)
