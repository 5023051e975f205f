"""The name probably meant by an unknown one: a synonym of the field, or the nearest by typing errors."""

from __future__ import annotations

import re
from collections.abc import Iterable

SYNONYMS = {
    "delay": "latency lag owd one_way_delay propagation propagation_delay rtt ping",
    "rate": "bandwidth bw capacity speed bitrate bit_rate throughput goodput fps framerate frame_rate frequency freq hz",
    "loss": "plr per loss_rate loss_ratio packet_loss packet_loss_rate drop drops drop_rate error_rate",
    "queue": "buffer buffers buffer_size queue_size queue_length queue_limit qlen",
    "jitter": "delay_variation pdv ipdv delay_jitter",
    "duration": "time length runtime run_time sim_time seconds timeout stop_time",
    "warmup": "warm_up transient ramp_up",
    "seed": "seeds random_seed rng_seed rng",
    "seeds": "seed runs repetitions repeat repeats replications trials",
    "out": "output output_dir output_folder outdir dir directory folder dest",
    "to": "dst dest destination target sink receiver out output",
    "from": "src source origin sender template example",
    "sample": "size bytes payload packet_size message_size sample_size",
    "transport": "protocol proto",
    "kind": "type model class",
    "discipline": "kind type aqm qdisc",
    "set": "override param define option config",
    "duplicate": "dup duplication duplicates",
    "reorder": "reordering",
    "corrupt": "corruption damage bit_errors ber",
    "at": "node where place",
    "node": "host computer machine",
    "links": "link edges edge network",
    "nodes": "node hosts machines computers",
    "flows": "flow streams stream",
    "components": "component stages",
    "traffic": "background cross_traffic background_traffic",
    "drop-tail": "fifo tail-drop taildrop pfifo bfifo",
    "fq-codel": "fq sfq cake",
    "round-robin": "drr wrr wfq",
    "gilbert-elliott": "ge gilbert gemodel burst bursty markov",
    "random": "bernoulli iid independent uniform",
    "normal": "gaussian gauss",
    "constant": "fixed deterministic static",
    "zoh": "hold last",
    "poisson": "exponential",
    "virtual": "sim simulation simulated simulator offline",
    "real": "live loopback localhost realtime real-time sockets",
    "namespaces": "netns namespace",
    "containers": "docker podman container",
    "hosts": "ssh remote distributed",
    "ns3": "ns-3",
    "lte": "4g",
    "5g": "nr",
    "wifi": "wlan 802.11",
    "satellite": "geo leo starlink",
    "lan": "ethernet",
    "srv": "server edge_server",
    "bit/s": "bps",
    "kbit/s": "kbps kbit",
    "Mbit/s": "mbps mbit mb/s",
    "Gbit/s": "gbps gbit",
    "B": "byte bytes",
    "ms": "msec msecs millisecond milliseconds",
    "us": "usec usecs microsecond microseconds",
    "s": "sec secs second seconds",
    "min": "minute minutes",
    "%": "percent pct",
    "packets": "pkt pkts",
    "Hz": "hertz",
    "run": "start simulate exec execute launch play",
    "check": "validate lint verify",
    "sweep": "grid batch",
    "campaign": "factorial doe experiment",
    "proxy": "emulate netem shape",
    "runs": "ls list history results",
    "open": "view browse browser",
    "report": "html page",
    "compare": "diff",
    "calibrate": "measure",
    "latency": "ping owd",
    "doctor": "diagnose info",
    "docs": "help man manual",
    "data": "download datasets fetch",
    "reproduce": "replicate paper",
    "plugins": "extensions kinds",
    "init": "create template",
    "world": "backend mode",
    "delay_ms": "delay latency owd",
    "jitter_ms": "jitter ipdv pdv",
    "kinematic": "motion position command commands",
    "haptic": "force feedback",
    "audio": "sound",
    "video": "picture pictures camera",
}
"""By a name of ours, what else it is called. RFC 7679 (one-way delay), RFC 7680 (loss), RFC 3393 (IPDV), tc-netem(8)."""


NOTES = {
    "rtt": "it is one way: half of the RTT",
    "ping": "it is one way: half of the RTT",
    "fps": 'such as "30 Hz"',
    "plr": 'such as "1 %"',
    "mb/s": "1 MB/s is 8 Mbit/s",
}
"""What changes with the name."""


def distance(one: str, other: str) -> int:
    """Insertions, deletions, changes and swaps of neighbours between two words, each letter touched once (Damerau 1964)."""
    before: list[int] = []
    last, row = before, list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = last, row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b)))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                row[-1] = min(row[-1], before[j - 2] + 1)
    return row[-1]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name probably meant by a word, or `None`."""
    return next(iter(nearest_all(word, known)), None)


def nearest_all(word: str, known: Iterable[str]) -> list[str]:
    """The known names that are equally near to a word; a third of its letters may be wrong."""
    names = list(known)
    plain = _plain(word)
    if same := [name for name in names if _plain(name) == plain]:
        return same
    if same := [name for name in names if plain in map(_plain, SYNONYMS.get(name.lstrip("-"), "").split())]:
        return same
    size = {name: max(len(plain), len(_plain(name))) for name in names}
    far = {name: distance(plain, _plain(name)) for name in names if size[name] > 1}
    near = [name for name in far if far[name] <= max(1, size[name] // 3)]
    if near:
        least = min(far[name] for name in near)
        return [name for name in near if far[name] == least]
    begun = [name for name in names if len(plain) > 2 and _plain(name).startswith(plain)]
    if len(begun) == 1:
        return begun
    within = [name for name in names if len(_plain(name)) > 2 and plain.startswith(_plain(name))]
    return sorted(within, key=len)[-1:]


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


def meant(word: str, known: Iterable[str]) -> str:
    """The nearest names as the end of a message; empty where none is near."""
    found = " or ".join(nearest_all(word, known)[:3])
    note = NOTES.get(word.lower()) if found else None
    return f" (did you mean {found}?{f' {note}' if note else ''})" if found else ""


def close_match(word: str, known: Iterable[str]) -> str:
    """The known names as a text, and the one that was probably meant."""
    names = list(known)
    return (", ".join(names) or "none") + (meant(word, names) if len(names) > 1 else "")
