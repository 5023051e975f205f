"""The `tcp` transport against the kernel's TCP over the same line: goodput and queueing delay without random loss.

```
virtual      our TCP, simulated line          namespaces   the kernel's TCP, the emulator between two network namespaces
```
`benches/tcp_against_kernel.py` has losses, more flows and 60 s too, as means over seeds. Without random loss one run says
it all: 8 s on 10 Mbit/s, 15 ms each way.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from again import in_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))
from tcp_against_kernel import BOUNDS, CONTROLS, QUEUES, STALL_MS, Case, cases, judged, run


@pytest.mark.slow
@pytest.mark.needs("root", "tun")
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("control", CONTROLS)
def test_goodput_and_queue_beside_those_of_the_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], control: str, queue: str
) -> None:
    case = Case("one", control, queue, 0.0, 8)
    theirs, disturbances = run(case, 1, "kernel-tcp", tmp_path)
    ours, _ = run(case, 1, "tcp", tmp_path)
    with capsys.disabled():
        print(f"\n{case}: ours {ours}, kernel {theirs}")
    with in_time(disturbances, STALL_MS):  # the emulator's queue changes by itself while a loop stalls
        assert ours.goodput == pytest.approx(theirs.goodput, rel=BOUNDS["goodput"])
        assert ours.p50 == pytest.approx(theirs.p50, rel=BOUNDS["p50"])
        assert ours.p95 == pytest.approx(theirs.p95, rel=BOUNDS["p95"])


@pytest.mark.beside
@pytest.mark.parametrize("control", CONTROLS)
def test_our_flow_fills_the_line(tmp_path: Path, control: str) -> None:
    """Without the kernel: what 1448 of 1526 bytes leave of 10 Mbit/s, less the start."""
    ours, _ = run(Case("one", control, "100 kB", 0.0, 8), 1, "tcp", tmp_path)
    assert 9.2 < ours.goodput < 9.5
    assert 70.0 < ours.p95 < 82.0


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ((9.2, 0.16), (9.21, 0.14), "within"),
        ((27.2, 20.4), (26.4, 21.6), "not decided"),
        ((44.0, 1.0), (30.0, 1.0), "outside"),
        ((33.5, 1.0), (30.0, 1.0), "not decided"),
    ],
)
def test_the_interval_of_the_difference_decides(
    ours: tuple[float, float], theirs: tuple[float, float], verdict: str
) -> None:
    assert judged("p95", ours, theirs, alone=False) == verdict
    assert judged("p95", ours, theirs, alone=True) == "not decided"
    assert judged("p95", (1.2, 0.0), (0.9, 0.0), alone=False) == "not judged", "less than a segment"


KINDS = {"one": "one", "two": "two", "one, beside 1 kHz": "haptic"}


def kept(page: str) -> Iterator[tuple[Case, str, str, bool]]:
    """The case, name and text of each value of the table, and whether its only run says nothing."""
    table = page.split("| flows | control | queue | loss | s |")[1].split("\n\n")[0]
    for row in table.splitlines()[2:]:
        flows, control, queue, loss, seconds, runs, *values = (
            cell.strip() for cell in row.strip("|").split("|")
        )
        case = Case(KINDS[flows], control, queue, float(loss.split()[0]) / 100, int(seconds))
        for name, text in zip(BOUNDS, values, strict=True):
            if text:
                yield case, name, text, runs == "1" and (case.loss > 0 or flows == "two")


def test_the_kept_table_is_judged_and_counted_as_it_says(root: Path) -> None:
    page = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    counts: Counter[str] = Counter()
    seen = set()
    for case, name, text, alone in kept(page):
        scale = 0.01 if name == "share" else 1.0
        sides = [
            [scale * float(x) for x in f"{side} ± 0".split(" ± ")[:2]]
            for side in text.rstrip(" ?").split(", ")
        ]
        found = judged(name, (sides[0][0], sides[0][1]), (sides[1][0], sides[1][1]), alone=alone)
        assert (found == "not decided") == text.endswith("?"), (case, name, text)
        counts[found] += 1
        seen.add(case)
    told = re.search(
        r"Of (\d+) values (\d+) are within .*?, (\d+) are not decided, (\d+) are not judged, and none", page
    )
    assert told is not None and counts["outside"] == 0
    verdicts = ("within", "not decided", "not judged")
    assert list(map(int, told.groups())) == [counts.total(), *(counts[verdict] for verdict in verdicts)]
    assert seen == set(cases([8, 60]))
