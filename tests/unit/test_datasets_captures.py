"""Captures: own bytes in every layout, damage of every kind, real files against what others read."""

import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded

from tcpsbed.datasets import captures, pcapng
from tcpsbed.datasets.packets import Bad
from tcpsbed.errors import DataError

PACKETS = [(5_000_000_000, 60), (5_000_001_000, 1514), (6_250_000_000, 98)]  # ns, bytes
ETHERNET, RAW = 1, 101


def a_pcap(packets=PACKETS, order="<", nanoseconds=False, link=ETHERNET, captured=40):
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65_535, link)
    for ns, size in packets:
        kept = min(size, captured)
        out += struct.pack(order + "IIII", ns // 10**9, ns % 10**9 // unit, kept, size) + bytes(kept)
    return out


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))


def a_pcapng(
    packets=PACKETS, order="<", link=ETHERNET, resolution=None, obsolete=False, captured=40, offset_s=None
):
    out = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    options, units = b"", 10**6
    if resolution is not None:
        options += struct.pack(order + "HHBxxx", 9, 1, resolution)
        units = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    if offset_s is not None:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    out += block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options + bytes(4))
    out += block(order, 4, b"names, of no interest")
    for ns, size in packets:
        stamp, kept = ns * units // 10**9, min(size, captured)
        front = struct.pack(order + "HH", 0, 7) if obsolete else struct.pack(order + "I", 0)
        body = front + struct.pack(order + "IIII", stamp >> 32, stamp & 0xFFFFFFFF, kept, size) + bytes(kept)
        out += block(order, 2 if obsolete else 6, body)
    return out


def read(tmp_path, content):
    path = tmp_path / "x.cap"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return captures.read(path)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_in_both_byte_orders_and_resolutions(tmp_path, order, nanoseconds):
    times_ns, wire_bytes = read(tmp_path, a_pcap(order=order, nanoseconds=nanoseconds))
    assert times_ns.tolist() == [0, 1_000, 1_250_000_000] and times_ns.dtype == np.int64
    assert wire_bytes.tolist() == [84, 1538, 122] and wire_bytes.dtype == np.int64


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolution", [None, 9, 6, 0x80 | 30])
def test_pcapng_in_both_byte_orders_and_any_resolution(tmp_path, order, resolution):
    times_ns, wire_bytes = read(tmp_path, a_pcapng(order=order, resolution=resolution))
    assert np.abs(times_ns - [0, 1_000, 1_250_000_000]).max() <= 1
    assert wire_bytes.tolist() == [84, 1538, 122]


@pytest.mark.parametrize("order", ["<", ">"])
def test_what_was_captured_of_each_packet_is_read_as_it_is(order):
    head = a_pcapng([], order=order)
    body = struct.pack(order + "IIIII", 0, 0, 0, 5, 1514) + b"hello"
    assert list(pcapng.frames(head + block(order, 6, body))) == [b"hello"]
    assert [len(frame) for frame in pcapng.frames(a_pcapng(order=order, obsolete=True))] == [40, 40, 40]
    with pytest.raises(Bad, match="less than 32"):
        list(pcapng.frames(head + block(order, 6, bytes(16))))


def test_pcapng_with_an_offset_obsolete_packets_and_two_sections(tmp_path):
    assert read(tmp_path, a_pcapng(offset_s=-3))[0].tolist() == [0, 1_000, 1_250_000_000]
    assert read(tmp_path, a_pcapng(obsolete=True))[1].tolist() == [84, 1538, 122]
    later = [(ns + 2 * 10**9, size) for ns, size in PACKETS]
    times_ns, wire_bytes = read(tmp_path, a_pcapng() + a_pcapng(later, order=">", link=RAW))
    assert times_ns.tolist() == [0, 1_000, 1_250_000_000, 2_000_000_000, 2_000_001_000, 3_250_000_000]
    assert wire_bytes.tolist() == [84, 1538, 122, 60, 1514, 98]


def test_only_an_ethernet_adds_preamble_check_and_gap(tmp_path):
    assert read(tmp_path, a_pcap(link=RAW))[1].tolist() == [60, 1514, 98]


def test_packets_out_of_order_are_put_in_order(tmp_path):
    times_ns, wire_bytes = read(tmp_path, a_pcap([PACKETS[2], PACKETS[0], PACKETS[1]], link=RAW))
    assert times_ns.tolist() == [0, 1_000, 1_250_000_000] and wire_bytes.tolist() == [60, 1514, 98]


@pytest.mark.parametrize(
    "text", ["0.5,100\n0.75,1500\n", "t_s,frame_bytes,ip_proto\n0.5,100,6\n0.75,1500,17\n"]
)
def test_csv_of_time_and_bytes(tmp_path, text):
    times_ns, wire_bytes = read(tmp_path, text)
    assert times_ns.tolist() == [0, 250_000_000] and wire_bytes.tolist() == [100, 1500]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no packets"),
        (b"GIF89a", "no packets"),
        (a_pcap([]), "no packets"),
        (a_pcap()[:20], "the file ends within its header at byte 20"),
        (a_pcap()[:24] + b"\xff" * 40, "at byte 24"),
        (a_pcap([(0, 2**31)]), "a packet of 2147483672 bytes"),
        (a_pcapng([]), "no packets"),
        (a_pcapng()[:8] + b"abcd" + a_pcapng()[12:], "a section without a byte order at byte 8"),
        (a_pcapng() + struct.pack("<III", 6, 13, 0), "a block of 13 bytes at byte"),
        (a_pcapng()[:-1] + b"\x01", "another length"),
        (a_pcapng()[:28] + block("<", 6, bytes(40)), "a packet of interface 0; the section has 0"),
        (a_pcapng() + block("<", 6, bytes(8)), "a packet block of less"),
        (a_pcapng() + block("<", 1, bytes(4)), "an interface of less"),
        (a_pcapng(resolution=0) + a_pcapng([(0, 60)], offset_s=2**62), "2262"),
        (b"0,100\n1,0\n", "0 bytes in row 2"),
        (b"0,100\n1,99.5\n", "99.5 bytes in row 2"),
        (b"0\n1\n", "one column"),
        (b"1,100\n0,100\n", r"x\.cap:2: found the time 0 s after 1 s"),
        (b"0,100\n1e15,100\n", "within a year"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, content)


def test_a_capture_that_was_cut_off_is_read_to_its_last_whole_packet(tmp_path):
    for whole in (a_pcap(link=RAW), a_pcapng(link=RAW)):
        assert read(tmp_path, whole[:-20])[1].tolist() == [60, 1514]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_no_damage_makes_anything_but_packets_or_a_message(tmp_path, data):
    whole = data.draw(
        st.sampled_from([a_pcap(), a_pcap(order=">"), a_pcapng(), a_pcapng(order=">", resolution=9)])
    )
    content = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content += data.draw(st.binary(max_size=40))
    try:
        times_ns, wire_bytes = read(tmp_path, bytes(content))
    except DataError as error:
        assert str(error)
    else:
        assert len(times_ns) == len(wire_bytes) > 0 and times_ns[0] == 0
        assert (np.diff(times_ns) >= 0).all() and wire_bytes.min() > 0


# Mixes


def files(tmp_path):
    (tmp_path / "a.csv").write_text("0,100\n1,200\n2,300\n")
    (tmp_path / "b.csv").write_text("0,10\n0.5,20\n")
    return [tmp_path / "a.csv", tmp_path / "b.csv"]


def test_a_mix_puts_captures_at_their_offsets(tmp_path):
    times_ns, sizes = captures.mix(files(tmp_path), [0.0, 0.75])
    assert (times_ns / 1e9).tolist() == [0, 0.75, 1, 1.25, 2] and sizes.tolist() == [100, 10, 200, 20, 300]


def test_speed_divides_time_within_a_capture_not_its_offset(tmp_path):
    times_ns, _ = captures.mix(files(tmp_path)[:1], [1.0], speed=4.0)
    assert (times_ns / 1e9).tolist() == [1.0, 1.25, 1.5]


def test_a_loop_repeats_after_one_mean_gap(tmp_path):
    times_ns, sizes = captures.mix(files(tmp_path)[:1], loop=True, duration_s=7.0)
    assert (times_ns / 1e9).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert sizes.tolist() == [100, 200, 300, 100, 200, 300, 100]


def test_a_duration_cuts(tmp_path):
    assert captures.mix(files(tmp_path)[:1], duration_s=1.5)[1].tolist() == [100, 200]
    assert captures.mix(files(tmp_path), [0.0, 9.0], duration_s=1.5)[1].tolist() == [100, 200]


@given(st.floats(1e3, 1e9))
def test_a_target_rate_is_met_whatever_the_speed(rate_bps):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        named = files(Path(folder))
        duration_s = 2_000 * 8 * 600 / rate_bps
        _, sizes = captures.mix(named, speed=9.0, loop=True, target_rate_bps=rate_bps, duration_s=duration_s)
    assert sizes.sum() * 8 / duration_s == pytest.approx(rate_bps, rel=0.01)


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"speed": 0.0}, "speed"),
        ({"offsets_s": [0.0]}, "offsets"),
        ({"offsets_s": [0.0, -1.0]}, "offsets"),
        ({"target_rate_bps": 0.0}, "target_rate"),
        ({"duration_s": -1.0}, "duration"),
        ({"loop": True}, "loop"),
    ],
)
def test_a_mix_without_sense(tmp_path, more, key):
    with pytest.raises(DataError, match=key):
        captures.mix(files(tmp_path), **more)
    with pytest.raises(DataError, match="files"):
        captures.mix([])


def test_a_file_that_is_absent(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        captures.read(tmp_path / "x.pcap")


@pytest.mark.parametrize(
    "name",
    [
        "443-firefox.pcap",
        "netflix.pcap",
        "reddit.pcap",
        "tcpreplay_test.pcap",
        "teams.pcap",
        "telegram_videocall.pcapng",
        "vnc.pcap",
        "wa_video.pcap",
    ],
)
def test_real_captures_against_what_another_program_read_in_them(name):
    times_ns, wire_bytes = captures.read(recorded(f"network/pcap/{name}"))
    derived = recorded(f"network/pcap/derived/{name.split('.')[0]}.csv")
    known = np.loadtxt(derived, delimiter=",", skiprows=1)
    assert np.array_equal(wire_bytes - 24, known[:, 1])
    assert np.abs(times_ns / 1e9 - known[:, 0]).max() < 1e-6
