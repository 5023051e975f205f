"""The cell between processes: the newest values, whole, whoever writes meanwhile."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed.errors import HookError
from tcpsbed.robots.cell import SLOTS, Cell

FLOATS = st.lists(st.floats(allow_nan=False), max_size=6)
WRITER = """
import sys
import numpy as np
from tcpsbed.robots.cell import Cell
cell = Cell.open(sys.argv[1])
for i in range(100_000):
    cell.write(i, np.full(50, float(i)))
"""


@given(st.lists(FLOATS, min_size=1, max_size=3 * SLOTS))
def test_a_reader_gets_what_was_written_last(tmp_path_factory, rounds):
    path = tmp_path_factory.mktemp("cell") / "cell"
    cell, reader = Cell.create(path, 6), Cell.open(path)
    assert reader.read() is None
    for i, values in enumerate(rounds, 1):
        cell.write(-i, np.array(values))
        sequence, t_ns, read = reader.read()
        assert (sequence, t_ns, read.tolist()) == (i, -i, values)


def test_no_reading_mixes_two_writings(tmp_path):
    path = tmp_path / "cell"
    cell = Cell.create(path, 50)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) as child:
        seen = 0
        while child.poll() is None:
            read = cell.read()
            if read is not None:
                sequence, t_ns, values = read
                assert sequence == t_ns + 1 and (values == t_ns).all()
                seen = sequence
    assert child.returncode == 0 and seen > 0


def test_a_file_that_is_no_cell_is_refused(tmp_path):
    with pytest.raises(HookError, match=r"cannot be read.*allowed: the file that a running robot"):
        Cell.open(tmp_path / "absent")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(HookError, match="holds no state of a robot"):
        Cell.open(tmp_path / "text")


@pytest.mark.parametrize("size", [5, 264, 328])
def test_a_file_of_the_users_is_not_published_over(tmp_path, size):
    """Also one whose size is that of a cell."""
    mine = tmp_path / "thesis.tex"
    mine.write_bytes(bytes(i % 251 for i in range(size)))
    before = mine.read_bytes()
    with pytest.raises(HookError, match="holds no state of a robot"):
        Cell.create(mine, 6)
    assert mine.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    Cell.create(tmp_path / "live", 6)
    Cell.create(tmp_path / "live", 9)
