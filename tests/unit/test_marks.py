"""Code points of channels, and marks of congestion in place of drops: in virtual time, through the emulator, in captures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marks_run import fields, run


def dropped(summary: dict[str, Any]) -> int:
    found: int = summary["network"][0]["dropped_packets"]
    return found


# [RFC 3168 §5] [RFC 6040 §4.2]
def test_a_queue_marks_what_it_would_drop_and_tcp_slows_down(tmp_path: Path) -> None:
    marks = run(tmp_path).summary
    drops = run(tmp_path, "links.l.queue.ecn=false").summary
    assert dropped(marks) == 0 < dropped(drops)
    assert marks["network"][0]["marked"] > 10 and "marked" not in drops["network"][0]
    assert [s["endpoints"][0]["retransmits"] for s in (marks, drops)] == [0, dropped(drops)]
    silent = run(tmp_path, 'links.l.queue.target="5 s"').summary
    most = [s["network"][0]["max_queue_bytes"] for s in (marks, silent)]
    assert most[0] < most[1] / 2, "an answer to marks keeps the queue short"


def test_packets_carry_the_code_point_of_their_channel_and_whether_they_may_be_marked(tmp_path: Path) -> None:
    run(tmp_path)
    found = fields(tmp_path)
    assert set(found) == {34 << 2, 34 << 2 | 2} and found[34 << 2 | 2] > 100
    run(tmp_path, "channels.one.transport.ecn=false")
    assert set(fields(tmp_path)) == {34 << 2}
