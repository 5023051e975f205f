"""Traces of links and video."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded

from tcpsbed.datasets import traces
from tcpsbed.errors import DataError


def written(tmp_path, text):
    (tmp_path / "x").write_text(text, errors="surrogateescape")
    return tmp_path / "x"


def test_a_trace_of_opportunities(tmp_path):
    times_ns = traces.mahimahi(written(tmp_path, "0\n0\n3\n10\n"))
    assert times_ns.tolist() == [0, 0, 3_000_000, 10_000_000] and times_ns.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no lines"),
        ("0\n", "a last time above 0"),
        ("1\n2.5\n", "x:2: found 2.5; allowed: a time in whole milliseconds, from 0 to 1e"),
        ("-1\n2\n", "x:1: found -1"),
        ("1.3e70\n", r"x:1: found 1.3e\+70; allowed: a time in whole milliseconds, from 0 to 1e\+12"),
        ("5\n3\n", "x:2: found the time 0.003 s after 0.005 s"),
        ("1\nx\n", "x:2: found 'x'"),
        ("1 2\n3 4\n", "found 2 values in a line; allowed: one time in ms per line"),
    ],
)
def test_a_trace_that_is_wrong(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        traces.mahimahi(written(tmp_path, text))
    with pytest.raises(DataError, match="no such file"):
        traces.mahimahi(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text", ["-2.0 800.0 1\n-1.9 81 0\n", "100\n11\n", "frame,bytes\n0,100\n1,11\n", "t bits\n0 800\n1 81\n"]
)
def test_frame_sizes_in_bits_or_bytes(tmp_path, text):
    assert traces.frame_sizes(written(tmp_path, text)).tolist() == [100, 11]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("0 80\n1 0\n", "x:2: found a frame of 0 bytes"),
        ("5\n-5\n", "x:2: found a frame of -5 bytes"),
        ("0 1e30\n", "at most 16 MB"),
        (
            "a,b\n1,2\n",
            "x:1: found a header with the columns 'a', 'b'; allowed: a header with a column named bytes",
        ),
        ("bytes\n", "no lines"),
        ("0 80\n1 x\n", "x:2: found 'x'"),
        (
            "0 80 # \udcb6\n",
            r"x cannot be read as text \(byte 0xb6 is not UTF-8\); allowed: a text file with rows",
        ),
    ],
)
def test_frame_sizes_that_are_wrong(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        traces.frame_sizes(written(tmp_path, text))
    with pytest.raises(DataError, match="no such file"):
        traces.frame_sizes(tmp_path / "nowhere")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    content=st.binary(max_size=200) | st.text(alphabet="0123456789 ,\n.-ebits", max_size=200).map(str.encode)
)
def test_no_content_makes_anything_but_numbers_or_a_message(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    for reader in (traces.mahimahi, traces.frame_sizes):
        try:
            assert len(reader(tmp_path / "x")) > 0
        except DataError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("name", "mean_mbps"), [("TMobile-LTE-short.down", 16.7), ("Verizon-LTE-short.up", 5.9)]
)
def test_the_recorded_links(name, mean_mbps):
    times_ns = traces.mahimahi(recorded(f"network/mahimahi/{name}"))
    assert 1500 * 8 * len(times_ns) / times_ns[-1] * 1e3 == pytest.approx(mean_mbps, abs=0.1)


def test_the_recorded_stream():
    sizes = traces.frame_sizes(recorded("video_traces/AsianCup_frame_trace_0"))
    assert sizes[0] == 18_743 and len(sizes) == 74_623
