"""Quantities are read exactly, and refused without their unit."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed.scenarios import units
from tcpsbed.scenarios.fields import Refusal


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (units.duration_ns, "15 ms", 15_000_000),
        (units.duration_ns, "0.1 s", 100_000_000),  # exactly: 0.1 is no binary fraction
        (units.duration_ns, "1.5us", 1_500),
        (units.duration_ns, "2 µs", 2_000),
        (units.duration_ns, "1e-3 s", 1_000_000),
        (units.duration_ns, "2 h", 7_200_000_000_000),
        (units.offset_ns, "-1 ms", -1_000_000),
        (units.rate_bps, "1.5 Mbit/s", 1_500_000.0),
        (units.rate_bps, "0 bit/s", 0.0),
        (units.size_bytes, "15000 B", 15_000),
        (units.size_bytes, "1.5 kB", 1_500),
        (units.size_bytes, "1 KiB", 1_024),
        (units.frequency_hz, "1 kHz", 1_000.0),
        (units.frequency_hz, "1 MHz", 1e6),  # the fastest and the slowest
        (units.frequency_hz, "1e-6 Hz", 1e-6),
        (units.frequency_hz, "25 fps", 25.0),
        (units.packets, "20 packets", 20),
        (units.drift_ppb, "-50 ppm", -50_000),
        (units.share, "5 %", 0.05),
        (units.share, 0, 0.0),
    ],
)
def test_a_quantity_is_its_si_value(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (units.duration_ns, "15", 'found "15", a number without a unit'),
        (units.duration_ns, 15, "found 15, a number without a unit"),
        (units.duration_ns, True, "found true"),
        (units.duration_ns, "15 kbit/s", 'found "15 kbit/s", which is a bit rate'),
        (units.duration_ns, "15 parsec", 'found "15 parsec", with the unknown unit "parsec"'),
        (units.duration_ns, "-1 ms", 'found "-1 ms", which is negative'),
        (units.duration_ns, "1e30 s", 'found "1e30 s", which is too large'),
        (units.duration_ns, "nan s", 'found "nan s"'),
        (units.positive_rate_bps, "0 bit/s", 'found "0 bit/s", which is zero'),
        (units.size_bytes, "0.5 B", 'found "0.5 B", which is not a whole number of bytes'),
        (units.size_bytes, "5000 MB", 'found "5000 MB", which is too large'),
        (units.frequency_hz, "1.0001 MHz", 'found "1.0001 MHz", which is above 1 MHz'),
        (units.frequency_hz, "900 MHz", 'found "900 MHz", which is above 1 MHz'),
        (units.frequency_hz, "1e-30 Hz", 'found "1e-30 Hz", which is less than once in 11 days'),
        (units.period_ns, "1 ns", 'found "1 ns", which is below 1 us'),
        (units.sample_bytes, "60 MB", 'found "60 MB", which is above 16 MB'),
        (units.sample_bytes, "3000000000 B", 'found "3000000000 B", which is above 16 MB'),
        (units.packet_bytes, "70 kB", 'found "70 kB", which is above 65535 B'),
        (units.duration_ns, "1\n2", 'found "1\\n2", with the unknown unit "2"'),
        (units.share, "120 %", 'found "120 %", which is above 100 %'),
        (units.share, 0.5, "found 0.5, a share without a percent sign"),
        (units.share, 2, "found 2, a share without a percent sign"),
        (units.drift_ppb, "-1000000 ppm", 'found "-1000000 ppm", which is beyond 100000 ppm'),
        (units.drift_ppb, "100001 ppm", 'found "100001 ppm", which is beyond 100000 ppm'),
        (units.share, -0.1, "found -0.1, a share without a percent sign"),
    ],
)
def test_what_is_no_quantity_is_refused(read, value, found):
    with pytest.raises(Refusal) as error:
        read(value)
    assert error.value.context["found"] == found


@pytest.mark.parametrize(
    ("read", "value", "plain"),
    [
        (units.duration_ns, "٣ ms", "3 ms"),
        (units.rate_bps, "१.5 Mbit/s", "1.5 Mbit/s"),
        (units.share, "５ %", "5 %"),
        (units.size_bytes, "1٠0 B", "100 B"),
    ],
)
def test_digits_of_other_scripts_are_refused_with_the_plain_ones(read, value, plain):
    with pytest.raises(Refusal) as error:
        read(value)
    context = error.value.context
    assert context["found"] == f'found "{value}"' and context["allowed"] == f'the digits 0 to 9: "{plain}"'


@given(st.integers(0, 10**15))
def test_whole_nanoseconds_survive_any_unit_of_time(ns):
    """No rounding between the text and the value, up to the eleven days that the network takes."""
    whole, part = divmod(ns, 1_000_000)
    assert units.duration_ns(f"{whole}.{part:06} ms") == ns


@given(st.text())
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(Refusal):
        assert units.duration_ns(text) >= 0


def test_parameters_take_their_unit_into_their_name():
    table = {"horizon": "10 ms", "rate": "1 kbit/s", "gain": 0.5, "mode": "fast", "inner": {"mtu": "576 B"}}
    assert units.parameters(table) == {
        "horizon_ns": 10_000_000,
        "rate_bps": 1000,
        "gain": 0.5,
        "mode": "fast",
        "inner": {"mtu_bytes": 576},
    }
