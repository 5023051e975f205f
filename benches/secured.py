"""Secured channels over loopback: what `aead` adds to the latency of a sample, and what a flood of strangers costs.

Commands of 64 bytes go at 1 kHz from one node to another. Each asks for an answer when it leaves ss-com, so a round trip
has two messages that are sealed and opened. Windows without and with `aead` take turns. In a flood, a C program sends
random datagrams from a socket of its own to the port at which the commands arrive.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from measure import HERE, CannotMeasureError, Result, Row, compile_c, median, spread, summary_of, tcpsbed

TITLE = "Secured channels over loopback"
SCENARIO = HERE / "scenarios" / "secured.toml"
METHODS = ("none", "aead")
MOST_US, SHARE = 50, 0.1
"""What `aead` may add to a round trip: the larger of both."""
FLOOD_PER_S, FLOOD_S = 200_000, 5
REACHED = 0.95
"""Share of that rate which counts as that flood."""


def measure(quick: bool) -> Result:
    """Pairs of windows without a flood, then pairs with one."""
    pairs, seconds, floods = (2, 4, 1) if quick else (10, 8, 4)
    found: dict[str, list[dict[str, Any]]] = {
        f"{method}{more}": [] for more in ("", ", flood") for method in METHODS
    }
    for turn in range(pairs + floods):
        for method in METHODS[:: -1 if turn % 2 else 1]:
            if turn < pairs:
                found[method].append(window(method, seconds))
            else:
                found[f"{method}, flood"].append(window(method, FLOOD_S + 3, Flood()))
    rows = [added(key, found, f"{pairs} pairs of {seconds} s") for key in ("p50", "p99")]
    rows += [row for method in METHODS for row in under_flood(method, found)]
    return Result("secured", TITLE, rows, found)


class Flood(threading.Thread):
    """Sends its datagrams to the follower's port as soon as both nodes have theirs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.program = compile_c("flood")
        self.told: dict[str, float] = {}

    def run(self) -> None:
        """One flood."""
        until = time.monotonic() + 30
        while len(found := channel_ports()) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)
        words = [str(word) for word in (self.program, found[max(found)], FLOOD_PER_S, FLOOD_S)]
        self.told = json.loads(subprocess.run(words, capture_output=True, check=True, timeout=30).stdout)


def channel_ports() -> dict[int, int]:
    """By process, the port of the first UDP socket of a `tcpsbed node`, that of its channel; the follower's is the last."""
    ports = {}
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        words = line.split()
        ports[f"socket:[{words[9]}]"] = int(words[1].rpartition(":")[2], 16)
    found: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"tcpsbed\0node" not in (place / "cmdline").read_bytes():
                continue
            opened = sorted((place / "fd").iterdir(), key=lambda one: int(one.name))
            sockets = [ports[name] for one in opened if (name := one.readlink().name) in ports]
            found |= {int(place.name): sockets[0]} if sockets else {}
    return found


def window(method: str, seconds: float, flood: Flood | None = None) -> dict[str, Any]:
    """One run: its flow, its answers, the follower's node, and what was thrown at that."""
    keys = {"duration": f'"{seconds} s"'}
    if method != "none":
        keys["channels.session.security"] = f'"{method}"'
    if flood:
        flood.start()
    with tempfile.TemporaryDirectory() as place:
        tcpsbed("run", SCENARIO, "--world", "real", "--out", place, "--no-report", keys=keys)
        read = summary_of(Path(place))
    if flood:
        flood.join()
        if not flood.told:
            raise CannotMeasureError("the flood did not reach the port of a node")
    return {
        "flow": read["flows"]["kinematic"],
        "trip_ms": read["echo"]["kinematic"]["points"][0]["round_trip_ms"],
        "node": next(node for node in read["nodes"] if node["name"] == "ss"),
        "flood": flood.told if flood else None,
        "disturbances": read["disturbances"],
    }


def added(key: str, found: dict[str, list[dict[str, Any]]], what: str) -> Row:
    """What `aead` adds to a percentile of the round trip, pair by pair."""
    none_us, aead_us = ([1e3 * one["trip_ms"][key] for one in found[method]] for method in METHODS)
    more_us = [with_it - without for without, with_it in zip(none_us, aead_us, strict=True)]
    most_us = max(MOST_US, SHARE * median(none_us))
    sign, word = (-1, "less") if median(more_us) < 0 else (1, "more")
    return Row(
        f"round trip {key}, aead, {what}",
        f"{spread(aead_us, 1)} µs",
        f"none: {spread(none_us, 1)} µs",
        f"{spread([sign * one for one in more_us], 1)} µs {word}",
        f"{most_us:.0f} µs",
        median(more_us) <= most_us,
    )


def under_flood(method: str, found: dict[str, list[dict[str, Any]]]) -> list[Row]:
    """Commands lost during a flood, and what it does to a round trip."""
    flooded = found[f"{method}, flood"]
    flows = [one["flow"] for one in flooded]
    sent, lost = (sum(flow[key] for flow in flows) for key in ("sent", "lost"))
    rates = [one["flood"]["sent"] / one["flood"]["seconds"] for one in flooded]
    whole = min(rates) >= REACHED * FLOOD_PER_S
    strangers = sum(one["node"]["strangers"] for one in flooded)
    thrown = sum(one["flood"]["sent"] for one in flooded)
    calm_us, flood_us = (
        [1e3 * one["trip_ms"]["p99"] for one in windows] for windows in (found[method], flooded)
    )
    return [
        Row(
            f"commands lost, {method}, {spread([rate / 1e3 for rate in rates], 0)} thousand strangers' datagrams a second",
            f"{lost} of {sent}",
            f"{strangers / thrown:.1%} of the datagrams refused and counted by the node",
            "",
            "0",
            lost == 0 if whole else None,
        ),
        Row(
            f"round trip p99, {method}, flood",
            f"{spread(flood_us, 1)} µs",
            f"no flood: {spread(calm_us, 1)} µs",
            "",
            "",
        ),
    ]
