"""Our TCP against the kernel's over the same line: goodput, queueing delay, shares.

```
virtual      our TCP, simulated line          namespaces   the kernel's TCP, the emulator between two network namespaces
```
10 Mbit/s, 15 ms each way. Both worlds run the same scenario, whose flows write more than the line carries; loss is drawn
anew for each seed, so that means over seeds are compared. A value is `within` its bound or `outside` it if the whole 95 %
interval of the difference is; else it is `not decided`. The emulator needs root and `/dev/net/tun`, and a machine with
little else to do: disturbed runs are repeated, and counted.

    benches/tcp_against_kernel.py                              every case, 8 s and 60 s
    benches/tcp_against_kernel.py --seconds 8 --repeats 3      shorter
    benches/tcp_against_kernel.py --only cubic,100kB           some cases
    benches/tcp_against_kernel.py --ns3                        with ns-3's TCP as a second opinion (benches/ns3/tcp.cc)
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import compile_ns3, run_program, summary_of, tcpsbed

RATE_BPS = 10e6
LINE = """
name = "tcp-line"
duration = "{seconds} s"
seed = {seed}
[components]
ms-com = "left"
ss-com = "right"
[links.line]
from = "left"
to = "right"
rate = "10 Mbit/s"
delay = "15 ms"
queue = "{queue}"
[links.line.forward]
loss = "{loss_percent:g} %"
[measure]
queues = "5 ms"
"""
BULK = """[flows.{name}]
sample = "14000 B"
rate = "500 Hz"
codec = "raw"
direction = "forward"
start = "{start_ms} ms"
[flows.{name}.transport]
kind = "{kind}"
congestion = "{control}"
queue = "200 kB"
{more}
"""
HAPTIC = """[flows.haptic-beside]
sample = "64 B"
rate = "1 kHz"
codec = "raw"
direction = "forward"
"""
OURS = 'mtu = "1500 B"\nsend_buffer = "1 MB"\nreceive_buffer = "3 MB"\n'
QUEUES = ("30 kB", "100 kB")
LOSSES = (0.0, 0.001, 0.01)
CONTROLS = ("reno", "cubic")
KINDS = {"one": 1, "two": 2, "haptic": 1}
BOUNDS = {"goodput": 0.05, "p50": 0.10, "p95": 0.10, "share": 0.05}
"""Goodput and queueing delay: relative; share of the first flow: absolute."""
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
SEGMENT_MS = 1.3
"""A queue of less than a segment (1.22 ms) is no queue."""
TRIES = 3
STALL_MS = 12.0
"""A run whose loops stalled for longer is made again."""


@dataclass(frozen=True)
class Case:
    """What is on the line."""

    kind: str
    control: str
    queue: str
    loss: float
    seconds: int

    def __str__(self) -> str:
        return f"{self.kind},{self.control},{self.queue.replace(' ', '')},{self.loss:g},{self.seconds}s"


@dataclass
class Found:
    """What a run gives: Mbit/s and milliseconds."""

    goodput: float
    p50: float
    p95: float
    share: float


def cases(lengths: Iterable[int]) -> list[Case]:
    """Every case."""
    every = itertools.product(KINDS, CONTROLS, QUEUES, LOSSES, lengths)
    return [Case(*values) for values in every]


def scenario(case: Case, seed: int, kind: str) -> str:
    """The scenario of a case, its flows over transport `kind`."""
    text = LINE.format(seconds=case.seconds, seed=seed, queue=case.queue, loss_percent=100 * case.loss)
    for number in range(KINDS[case.kind]):
        more = OURS if kind == "tcp" else ""
        # Two flows that begin at once would be in step, and each seed the same.
        start_ms = 37 * seed * number % 100
        text += BULK.format(
            name=f"bulk{number}", kind=kind, control=case.control, start_ms=start_ms, more=more
        )
    return text + (HAPTIC if case.kind == "haptic" else "")


def run(case: Case, seed: int, kind: str, folder: Path) -> tuple[Found, list[str]]:
    """One run of a case, and what disturbed it."""
    world = "virtual" if kind == "tcp" else "namespaces"
    place = folder / f"{case}-{kind}-{seed}"
    place.mkdir()
    file = place / "scenario.toml"
    file.write_text(scenario(case, seed, kind))
    tcpsbed("run", file, "--world", world, "--out", str(place / "out"), "--no-report")
    told = summary_of(place / "out")
    return found(told, place / "out", case.seconds), told.get("disturbances", [])


def found(told: dict[str, Any], folder: Path, seconds: float) -> Found:
    """The figures of a run: what had been delivered when it ended, and the summary's queue."""
    from tcpsbed.analysis.records import KINDS, open_records, plan_of

    rows = open_records(folder / "records.bin")
    rows = rows[(rows["kind"] == 1 + KINDS.index("delivered")) & (rows["time"] <= seconds * 1e9)]
    names = [flow["name"] for flow in plan_of(folder)["flows"]]
    rates = [
        8e-6 * float(rows["size"][rows["flow"] == number].sum()) / seconds
        for number, name in enumerate(names)
        if name.startswith("bulk")
    ]
    queue = next(q for q in told["queues"] if q["link"] == "line.forward")["delay_ms"]
    total = sum(rates)
    return Found(total, queue["p50"], queue["p95"], rates[0] / total if total else math.nan)


def longest_stall_ms(disturbances: list[str]) -> float:
    """Longest stall of a loop of the run: the emulator's queue changes by itself meanwhile."""
    spans = [float(ms) for text in disturbances for ms in re.findall(r"up to ([\d.]+) ms", text)]
    return max(spans, default=0.0)


def repeated(case: Case, kind: str, repeats: int, folder: Path) -> tuple[list[Found], int]:
    """Runs of a case with several seeds; the kernel's again if they were disturbed. How many still were."""
    results, disturbed = [], 0
    for seed in range(1, repeats + 1):
        tries: list[tuple[float, Found]] = []
        while len(tries) < TRIES and (not tries or tries[-1][0] > STALL_MS):
            with tempfile.TemporaryDirectory(dir=folder) as place:
                result, troubles = run(case, seed, kind, Path(place))
            tries.append((longest_stall_ms(troubles), result))
        stall_ms, result = min(tries, key=lambda t: t[0])
        disturbed += stall_ms > STALL_MS
        results.append(result)
    return results, disturbed


def mean(values: list[float]) -> tuple[float, float]:
    """Mean, and half its interval of 95 %."""
    if len(values) < 2:
        return statistics.fmean(values), 0.0
    return statistics.fmean(values), STUDENT.get(len(values), 2.1) * statistics.stdev(values) / math.sqrt(
        len(values)
    )


def verdict(name: str, ours: list[float], theirs: list[float], is_drawn: bool) -> tuple[float, str]:
    """Difference of the means, and what is `judged`; one run of something that `is_drawn` says nothing."""
    one, other = mean(ours), mean(theirs)
    scale = 1.0 if name == "share" else other[0]
    difference = (one[0] - other[0]) / scale if scale else math.inf
    return difference, judged(name, one, other, alone=is_drawn and min(len(ours), len(theirs)) < 2)


def judged(name: str, ours: tuple[float, float], theirs: tuple[float, float], *, alone: bool) -> str:
    """Whether the interval of the difference of two means is `within` the bound, `outside`, or on both sides of it.

    Means come with half their intervals. One run `alone` has none, so that nothing is decided.
    """
    (a, half_a), (b, half_b) = ours, theirs
    if name in ("p50", "p95") and max(a, b) < SEGMENT_MS:
        return "not judged"
    bound, off, half = BOUNDS[name] * (1.0 if name == "share" else b), abs(a - b), math.hypot(half_a, half_b)
    if alone or off - half <= bound < off + half:
        return "not decided"
    return "within" if off + half <= bound else "outside"


def line(case: Case, ours: list[Found], theirs: list[Found], disturbed: int) -> tuple[str, dict[str, str]]:
    """The line of a case in the table."""
    cells, verdicts = [], {}
    names = ("goodput", "p50", "p95") + (("share",) if case.kind == "two" else ())
    for name in names:
        a, b = ([getattr(f, name) for f in side] for side in (ours, theirs))
        difference, holds = verdict(name, a, b, case.loss > 0 or case.kind == "two")
        verdicts[name] = holds
        (m, h), (n, g) = mean(a), mean(b)
        change = f"{difference:+.1%}" if name != "share" else f"{100 * difference:+.1f} points"
        cells.append(f"{m:.2f}±{h:.2f} {n:.2f}±{g:.2f} {change} {holds}")
    cells += [""] * (len(BOUNDS) - len(cells))
    return f"| {case} | " + " | ".join(cells) + f" | {disturbed or ''} |", verdicts


HEAD = """\
| case | goodput Mbit/s: ours, other, difference | p50 ms | p95 ms | share of the first | disturbed |
|---|---|---|---|---|---|"""


def second_opinion(case: Case, repeats: int) -> list[Found]:
    """The same case in ns-3."""
    program = compile_ns3("tcp")
    control = {"reno": "TcpLinuxReno", "cubic": "TcpCubic"}[case.control]
    queue_bytes = case.queue.replace(" kB", "000")
    results = []
    for seed in range(1, repeats + 1):
        arguments = [
            control,
            queue_bytes,
            str(case.loss),
            str(case.seconds),
            str(KINDS[case.kind]),
            str(seed),
        ]
        told = run_program([str(program), *arguments]).json()
        results.append(Found(**told))
    return results


def main() -> int:
    """Prints the table; 1 if a value is outside its bound."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, nargs="+", default=[8, 60])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="parts of a case's name, all of which must be in it")
    parser.add_argument("--ns3", action="store_true", help="against ns-3 in place of the kernel")
    parser.add_argument("--json", type=Path, help="file for everything that was measured")
    options = parser.parse_args()
    parts = [part for part in options.only.split(",") if part]
    chosen = [c for c in cases(options.seconds) if all(p in str(c).split(",") for p in parts)]
    if options.ns3:
        chosen = [case for case in chosen if case.kind != "haptic"]  # its program has no such flow
    print(HEAD)
    everything: dict[str, Any] = {}
    missed = 0
    with tempfile.TemporaryDirectory() as place:
        for case in chosen:
            ours, _ = repeated(case, "tcp", options.repeats, Path(place))
            if options.ns3:
                theirs, disturbed = second_opinion(case, options.repeats), 0
            else:
                theirs, disturbed = repeated(case, "kernel-tcp", options.repeats, Path(place))
            text, verdicts = line(case, ours, theirs, disturbed)
            missed += sum(v == "outside" for v in verdicts.values())
            print(text, flush=True)
            everything[str(case)] = {
                "ours": [asdict(f) for f in ours],
                "theirs": [asdict(f) for f in theirs],
                "verdicts": verdicts,
                "disturbed": disturbed,
            }
            if options.json:
                options.json.write_text(json.dumps(everything, indent=1))
    print(f"{missed} values are outside their bounds")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
