"""The `tcp` transport against the kernel's TCP over the same line: goodput and queueing delay without random loss.

```
virtual      our TCP, simulated line          namespaces   the kernel's TCP, the emulator between two network namespaces
```
`benches/tcp_against_kernel.py` has losses, more flows and 60 s too, as means over seeds. Without random loss one run says
it all: 8 s on 10 Mbit/s, 15 ms each way.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from again import in_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))
from tcp_against_kernel import BOUNDS, CONTROLS, QUEUES, STALL_MS, Case, run


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
