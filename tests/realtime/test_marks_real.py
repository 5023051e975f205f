"""Marks of congestion through the emulator: set by its queue, carried by sockets, answered by TCP, written to captures."""

from __future__ import annotations

from pathlib import Path

import pytest
from marks_run import fields, run


# [RFC 3168 §5] [RFC 6040 §4.2]
@pytest.mark.beside
def test_the_emulator_marks_what_it_would_drop(tmp_path: Path) -> None:
    summary = run(tmp_path, world="real").summary
    assert summary["network"][0]["dropped_packets"] == 0
    marks = {byte & 3 for byte in fields(tmp_path)}
    assert marks == {0, 2, 3}, "what may be marked leaves, and some of it comes marked"
