#!/usr/bin/env python3
"""What security costs and what attacks do: docs/security-cost.md, and the table of attacks in docs/security.md.

    tools/security_cost.py                   says whether they are stale; exit status 1 if they are
    tools/security_cost.py --write           draws them again
    tools/security_cost.py --run             runs what is in virtual time, keeps it, then draws them again
    tools/security_cost.py --take BENCH.txt  keeps the output of `cargo bench -p tcps-transport --bench security`, too

What was measured is kept in docs/security-cost.json: bytes from runs in virtual time, times from the benchmark with the
machine that it ran on.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tcpsbed
from tcpsbed.analysis import machine, stats
from tcpsbed.scenarios.model.entries import entries

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "security-cost.json"
PAGE = ROOT / "docs" / "security-cost.md"
SECURITY = ROOT / "docs" / "security.md"
ATTACKS = ROOT / "scenarios" / "attacks.toml"
METHODS = ("none", "hmac", "aead")
MEDIA = "srtp"
"""The method that `rtp` has beside them."""
STREAM = "tls"
"""The method of transports of streams, which have no other."""
STREAMS = [name for name, entry in entries("transport").items() if STREAM in entry["security"]]
SEEDS = 5
DURATION_S = 10
ROOM, FULL = "10 Mbit/s", "800 kbit/s"
TRANSPORTS = {
    "udp": ('"udp"', ROOM),
    "repeat": ('"repeat"', ROOM),
    "parity": ('"parity"', ROOM),
    "nack": ('"nack"', ROOM),
    "rtp": ('"rtp"', ROOM),
    "no-merge": ('"no-merge"', ROOM),
    "fixed-k, k = 4": ('{ kind = "fixed-k", k = 4 }', ROOM),
    "dpm, link with room": ('"dpm"', ROOM),
    "dpm, full link": ('"dpm"', FULL),
    **{name: (f'"{name}"', ROOM) for name in STREAMS},
}
"""The rows of the table of bytes: transport, and rate of the link."""
SCENARIO = """
name = "security-cost"
duration = "{duration} s"
phases = "random"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
sample = "24 B"
sink = "count"
[flows.haptic]
sample = "24 B"
source = "generated"
[links.wan]
from = "a"
to = "b"
delay = "5 ms"
rate = "{rate}"
queue = "15000 B"
[traffic.vbr]
kind = "vbr"
on = "wan"
rate = "200 kbit/s"
[channels.session]
flows = ["kinematic", "haptic"]
transport = {transport}
"""
HEAD = """# What security costs

For those who decide whether a channel can afford [security](security.md): bytes on the wire and processor time of a
sample, for each method and transport. Virtual time models the bytes and the handshake exactly. It models no processor
time, so the second part is measured on a machine.

```sh
tools/security_cost.py --run                        # the bytes and the attacks again, in virtual time
cargo bench -p tcps-transport --bench security      # the processor time of your machine
```

This page is generated: `tools/security_cost.py --write`.
"""


def bytes_a_sample(transport: str, rate: str, method: str, seed: int) -> tuple[float, float, float]:
    """Bytes on the wire of a sample, samples in a datagram, and the 99th percentile of the return path's delay in ms."""
    text = SCENARIO.format(duration=DURATION_S, rate=rate, transport=transport)
    if method != "none":
        text += f'security = "{method}"\n'
    with tempfile.TemporaryDirectory() as folder:
        run = tcpsbed.run(text, out=Path(folder) / "run", seed=seed, set=['measure.records="packets"'])
        summary = run.summary
    [channel] = summary["channels"]
    samples = sum(flow["sent"] for flow in summary["flows"].values())
    p99_ms = summary["flows"]["haptic"]["delay_ms"]["p99"]
    return channel["sent_bytes"] / samples, samples / channel["sent_packets"], p99_ms


def _methods(transport: str) -> tuple[str, ...]:
    if transport in STREAMS:
        return ("none", STREAM)
    return (*METHODS, MEDIA) if transport == "rtp" else METHODS


def spread(values: Sequence[float]) -> list[float]:
    """Mean, and half the width of its 95 % interval."""
    found = stats.interval(values)
    return [found.mean, found.half or 0.0]


def measured_bytes() -> list[dict[str, Any]]:
    """The rows of the table of bytes."""
    rows = []
    for name, (transport, rate) in TRANSPORTS.items():
        row: dict[str, Any] = {"transport": name}
        for method in _methods(name):
            seeds = [bytes_a_sample(transport, rate, method, seed) for seed in range(1, SEEDS + 1)]
            row[method] = dict(
                zip(("bytes", "merged", "p99_ms"), map(spread, zip(*seeds, strict=True)), strict=True)
            )
        rows.append(row)
    return rows


def measured_attacks() -> dict[str, list[dict[str, Any]]]:
    """What the events of scenarios/attacks.toml did, by method."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for method in METHODS:
            settings = {} if method == "none" else {"channels.session.security": method}
            found[method] = tcpsbed.run(ATTACKS, out=Path(folder) / method, set=settings).summary["effects"]
    return found


def pages(kept: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Each file with what should be in it."""
    yield PAGE, "\n".join([HEAD, *_bytes(kept["bytes"]), *_times(kept["bench"], kept["machine"])]) + "\n"
    text = SECURITY.read_text(encoding="utf-8")
    table = "\n".join(_attacks(kept["attacks"]))
    yield (
        SECURITY,
        re.sub(
            r"(<!-- attacks -->\n).*?(<!-- /attacks -->)",
            lambda mark: f"{mark[1]}{table}\n{mark[2]}",
            text,
            flags=re.S,
        ),
    )


def _bytes(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Bytes on the wire\n"
    yield (
        "Of one sample of 24 B at 1 kHz in each direction, with all headers on Ethernet, reports and handshakes included:\n"
        f"mean of {SEEDS} runs of {DURATION_S} s in virtual time with its 95 % interval over seeds (± below 0.05 is left "
        f"out). The link with\nroom has {ROOM}, the full one {FULL}; both have 200 kbit/s of background traffic.\n"
    )
    yield (
        "| transport | none: B | samples a datagram | hmac: B | aead: B | srtp: B | tls: B | added by aead or tls "
        "| samples a datagram, with it |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        dearest = STREAM if STREAM in row else "aead"
        sizes = [_shown(row[m]["bytes"], 1) if m in row else "" for m in (*METHODS, MEDIA, STREAM)]
        before, after = (_shown(row[method]["merged"], 2) for method in ("none", dearest))
        added = f"{(row[dearest]['bytes'][0] / row['none']['bytes'][0] - 1) * 100:+.0f} %"
        yield f"| {row['transport']} | {sizes[0]} | {before} | {' | '.join(sizes[1:])} | {added} | {after} |"
    yield (
        "\n`hmac` and `aead` add the same 24 B to each datagram. So a transport that merges pays for one tag per packet, "
        "not per\nsample. Without security the telehaptic transports (from `no-merge` on) count the headers that the papers "
        "count, 16 B\nless than what is sent. With security the true size counts: of the 40 B that a datagram grows, 24 B "
        "are security.\n\n`srtp` adds 16 B to each RTP packet and 20 B to each report.\n"
    )
    [full] = [row for row in rows if row["transport"] == "dpm, full link"]
    before, after = (_shown(full[method]["p99_ms"], 1) for method in ("none", "aead"))
    yield (
        "On the full link DPM merges more samples where packets are larger. The 99th percentile of the delay of the return "
        f"path\nwas {before} ms without security and {after} ms with `aead`.\n"
    )
    yield (
        "`tls` adds 22 B to each sample of `tcp`. Packets of `quic` have a tag of 16 B with `tls` and without: only the "
        "handshake\nis longer.\n"
    )


def _times(bench: dict[str, Any], where: dict[str, Any]) -> Iterator[str]:
    size, rounds = bench["sample_bytes"], bench["rounds"]
    yield "## Processor time\n"
    yield (
        f"Measured on {where['cores']} cores of {where['cpu']}{' (virtual machine)' if where.get('virtual') else ''}: "
        f"median of {rounds} rounds and its 95 % interval.\nMethods and transports take turns within each round. In a "
        "run in virtual time a cost is an input, not a result: use\n[`cost`](scenario.md#costs-and-delays) with the "
        "times of your machine.\n"
    )
    yield "To seal a payload at one side, and to verify and open it at the other (SRTP: behind a header of 12 B):\n"
    yield "| method | payload | seal: µs | open: µs | together: µs |\n|---|---|---|---|---|"
    for one in bench["records"]:
        spans = " | ".join(_us(one[key]) for key in ("seal_ns", "open_ns", "both_ns"))
        yield f"| {one['method']} | {one['bytes']} B | {spans} |"
    yield from map(_interrupted, filter(_is_interrupted, bench["records"]))
    yield (
        f"\nOf a sample of {size} B, through both endpoints of a channel. With a method: what it adds, round by round. A "
        "transport that\nmerges seals less often. `tls` in `quic` takes the place of a null cipher that sums up its bytes.\n"
    )
    added = " | ".join(f"{method} adds: µs" for method in (*METHODS[1:], MEDIA, STREAM))
    yield f"| transport | none: µs | {added} |\n|---|---|---|---|---|---|"
    for one in bench["transports"]:
        name = "fixed-k, k = 4" if one["transport"] == "fixed-k" else one["transport"]
        found = [one.get(f"{method}_ns") for method in (*METHODS, MEDIA, STREAM)]
        spans = " | ".join("" if span is None else _us(span) for span in found)
        yield f"| {name} | {spans} |"


def _is_interrupted(one: dict[str, Any]) -> bool:
    """Whether both together took longer, in most rounds, than each alone does."""
    return bool(one["both_ns"][1] > 1.05 * (one["seal_ns"][0] + one["open_ns"][0]))


def _interrupted(one: dict[str, Any]) -> str:
    """A remark on a row whose parts do not add up."""
    alone = (one["seal_ns"][0] + one["open_ns"][0]) / 1e3
    return (
        f"\n{one['method']}, {one['bytes']} B: a round of 1000 payloads takes {alone:.1f} ms, longer than those of "
        "other rows. In\nmost rounds one half took longer, as where other programs of the machine interrupt it, but in each "
        "half fewer than half\nof the rounds did. So the median of both together contains this, and those of the halves do "
        f"not: they add up to\n{alone:.2f} µs."
    )


def _attacks(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    yield "| event | sent | accepted: none | hmac | aead | delay added, p50 / p99 | `hold` after | `safe stop` after |"
    yield "|---|---|---|---|---|---|---|---|"
    for at, one in enumerate(found["none"]):
        accepted = [found[method][at]["accepted"] for method in METHODS]
        cells = ["" if value is None else f"{value}" for value in accepted]
        delays = one["delays"]["kinematic"]
        both = [delays[f"added_{p}_ms"] for p in ("p50", "p99")]
        added = (
            "too few samples arrive"
            if None in both
            else f"{' / '.join(f'{ms:.1f}'.replace('-0.0', '0.0') for ms in both)} ms"
        )
        times = ["never" if one[key] is None else f"{one[key]:.1f} ms" for key in ("hold_ms", "safe_stop_ms")]
        yield f"| {one['name']} | {one['sent'] or ''} | {' | '.join(cells)} | {added} | {' | '.join(times)} |"


def _shown(found: Sequence[float], digits: int) -> str:
    value, half = found
    spread = f" ± {half:.{digits}f}" if half >= 0.5 * 10**-digits else ""
    return f"{value:.{digits}f}{spread}"


def _us(found: Sequence[float]) -> str:
    value, low, high = (ns / 1e3 for ns in found)
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def main() -> int:
    """Runs, keeps and draws what is asked for."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    words = sys.argv[1:]
    if "--run" in words:
        kept |= {"bytes": measured_bytes(), "attacks": measured_attacks()}
    if "--take" in words:
        output = Path(words[words.index("--take") + 1]).read_text(encoding="utf-8")
        of = machine.machine()
        kept |= {
            "bench": json.loads(output.strip().splitlines()[-1]),
            "machine": {key: of[key] for key in ("cpu", "cores", "virtual") if key in of},
        }
    if "--run" in words or "--take" in words:
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    stale = [
        (file, right) for file, right in pages(kept) if not file.exists() or file.read_text("utf-8") != right
    ]
    for file, right in stale:
        if words:
            file.write_text(right, encoding="utf-8")
        else:
            print(f"{file.name} is stale: tools/security_cost.py --write", file=sys.stderr)
    return int(bool(stale) and not words)


if __name__ == "__main__":
    sys.exit(main())
