"""Captured traffic as (time, bytes on the wire): to be replayed in the background of a teleoperation.

Bytes on the wire are the original length of a frame, and 24 B more where the link type is Ethernet: a capture
does not show preamble (8), frame check sequence (4) and the gap between frames (12), but the line is busy
with them. A csv has two columns, time in s and bytes on the wire, taken as they are.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tcpsbed import inputs
from tcpsbed.datasets import pcap, pcapng
from tcpsbed.datasets.formats import table
from tcpsbed.datasets.packets import ETHERNET, ETHERNET_EXTRA, Bad, Packet
from tcpsbed.errors import DataError

Times = NDArray[np.int64]
Sizes = NDArray[np.int64]

#: A larger packet is damage: the largest IP packet with every header below it fits.
MOST_BYTES = 1 << 20
#: Times further than this after the first are damage, in ns: a year.
MOST_SPAN_NS = 366 * 86_400 * 10**9


def read(path: Path) -> tuple[Times, Sizes]:
    """Return the packets of a capture in the order of time.

    Parameters
    ----------
    path
        A pcap or pcapng file, known by its first bytes, or a csv (time in s, bytes).

    Returns
    -------
    times_ns, wire_bytes
        Time after the first packet, and bytes on the wire; both int64, shape [n].

    Raises
    ------
    DataError
        No such file, a file of another kind, damage (with its byte offset), or no packets.
    """
    inputs.regular(path, "a pcap, pcapng or csv file")
    with path.open("rb") as file:
        magic = file.read(4)
    if magic in pcap.MAGIC:
        times, sizes = _arrays(path, pcap.read)
    elif magic == pcapng.MAGIC:
        times, sizes = _arrays(path, pcapng.read)
    else:
        times, sizes = _from_csv(path)
    return _ordered(path, times, sizes)


def _arrays(path: Path, reader: Callable[[bytes], list[Packet]]) -> tuple[Times, Sizes]:
    try:
        packets = reader(path.read_bytes())
        times = np.array([p.time_ns for p in packets], dtype=np.int64)
    except Bad as bad:
        raise DataError(
            f"found {bad.found} at byte {bad.offset}",
            file=path,
            allowed="a capture that is not damaged (try editcap)",
        ) from bad
    except OverflowError as error:
        raise DataError(
            "found a time beyond the year 2262", file=path, allowed="a capture with its own times"
        ) from error
    sizes = [p.original + (ETHERNET_EXTRA if p.link == ETHERNET else 0) for p in packets]
    return times, np.array(sizes, dtype=np.int64)


def _from_csv(path: Path) -> tuple[Times, Sizes]:
    try:
        track = table.read(path, time=0)
    except DataError as error:
        if error.line is not None:
            raise
        found = error.found if error.found.startswith("cannot") else "found no packets"
        allowed = "a pcap or pcapng file, or a csv file with time in s and bytes, such as 0.001,1500"
        raise DataError(found, file=path, allowed=allowed) from error
    if track.values.shape[1] < 1:
        raise DataError(
            "found one column",
            file=path,
            line=1,
            allowed="two columns, time in s and bytes, such as 0.001,1500",
        )
    sizes = track.values[:, 0]
    wrong = np.flatnonzero((sizes < 1) | (sizes != np.floor(sizes)) | (sizes > MOST_BYTES))
    if len(wrong):
        found = f"found {sizes[wrong[0]]:g} bytes in row {wrong[0] + 1}"
        raise DataError(found, file=path, allowed=f"whole bytes, 1 to {MOST_BYTES}")
    since = track.times_s - track.times_s[0]
    if since[-1] * 1e9 > MOST_SPAN_NS:
        raise DataError(f"found {since[-1]:g} s", file=path, allowed="times in s, within a year")
    return np.rint(since * 1e9).astype(np.int64), sizes.astype(np.int64)


def _ordered(path: Path, times: Times, sizes: Sizes) -> tuple[Times, Sizes]:
    times, sizes = times[sizes > 0], sizes[sizes > 0]
    if len(times) == 0:
        raise DataError("found no packets", file=path, allowed="a capture with at least one packet")
    if sizes.max() > MOST_BYTES:
        found = f"found a packet of {sizes.max()} bytes"
        raise DataError(found, file=path, allowed=f"at most {MOST_BYTES} bytes: the file is damaged")
    # Captures of several interfaces are not in order; packets of one moment keep theirs.
    order = np.argsort(times, kind="stable")
    times = times[order]
    if int(times[-1]) - int(times[0]) > MOST_SPAN_NS:
        raise DataError(
            "found packets more than a year apart", file=path, allowed="a capture that is not damaged"
        )
    return times - times[0], sizes[order]


def mix(
    files: Sequence[Path],
    offsets_s: Sequence[float] | None = None,
    speed: float = 1.0,
    loop: bool = False,
    target_rate_bps: float | None = None,
    duration_s: float | None = None,
) -> tuple[Times, Sizes]:
    """Return several captures merged into one.

    Parameters
    ----------
    files
        Captures.
    offsets_s
        When each begins, in s of the mix; absent: all at 0.
    speed
        Factor on time within the captures: 2 plays twice as fast.
    loop
        Repeats each capture until `duration_s`; a capture begins again one mean gap after its last packet.
    target_rate_bps
        What the mean rates of the captures, each over its own length, are to add up to; `speed` is set by it.
    duration_s
        Length of the mix; absent: until the last packet. A mix that loops needs it.

    Returns
    -------
    times_ns, wire_bytes
        As `read`; times count from the beginning of the mix.

    Raises
    ------
    DataError
        A file cannot be read; a parameter makes no sense.
    """
    offsets_s = [0.0] * len(files) if offsets_s is None else offsets_s
    _check_mix(files, offsets_s, speed, loop, target_rate_bps, duration_s)
    parts = [read(path) for path in files]
    if target_rate_bps is not None:
        speed = _speed_for(parts, target_rate_bps)
    moved = [
        _placed(times, sizes, offset_s, speed, duration_s if loop else None)
        for (times, sizes), offset_s in zip(parts, offsets_s, strict=True)
    ]
    times = np.concatenate([t for t, _ in moved])
    sizes = np.concatenate([s for _, s in moved])
    order = np.argsort(times, kind="stable")
    times, sizes = times[order], sizes[order]
    kept = len(times) if duration_s is None else int(np.searchsorted(times, round(duration_s * 1e9)))
    return times[:kept], sizes[:kept]


def _check_mix(
    files: Sequence[Path],
    offsets_s: Sequence[float],
    speed: float,
    loop: bool,
    target_rate_bps: float | None,
    duration_s: float | None,
) -> None:
    problems = [
        (not files, "files", "at least one"),
        (len(offsets_s) != len(files), "offsets", f"one for each of the {len(files)} files"),
        (not all(np.isfinite(o) and 0 <= o < 1e9 for o in offsets_s), "offsets", "0 s or more"),
        (not (np.isfinite(speed) and speed > 0), "speed", "above 0"),
        (target_rate_bps is not None and not 0 < target_rate_bps < np.inf, "target_rate", "above 0"),
        (duration_s is not None and not 0 < duration_s < 1e9, "duration", "above 0 s"),
        (loop and duration_s is None, "loop", "together with a duration"),
    ]
    for wrong, key, allowed in problems:
        if wrong:
            raise DataError("found no sense in it", key=key, allowed=allowed)


def _length_ns(times: Times) -> float:
    """Return how long a capture is: its span and one mean gap, 1 s for a single packet."""
    return float(times[-1]) * len(times) / (len(times) - 1) if times[-1] > 0 else 1e9


def _speed_for(parts: Sequence[tuple[Times, Sizes]], target_rate_bps: float) -> float:
    """Return the speed of replay at which the mean rates of the captures, each over its own length, sum to the target."""
    rate_bps = sum(8e9 * float(sizes.sum()) / _length_ns(times) for times, sizes in parts)
    return target_rate_bps / rate_bps


def _placed(
    times: Times, sizes: Sizes, offset_s: float, speed: float, until_s: float | None
) -> tuple[Times, Sizes]:
    """Return one capture at its place in the mix, repeated up to `until_s` if that is given."""
    rounds = 1
    length_ns = _length_ns(times)
    if until_s is not None:
        rounds = max(1, int(np.ceil((until_s - offset_s) * 1e9 * speed / length_ns)))
    starts = np.arange(rounds) * length_ns
    at = (starts[:, None] + times[None, :]).ravel() / speed + offset_s * 1e9
    return np.rint(at).astype(np.int64), np.tile(sizes, rounds)
