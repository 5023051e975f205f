"""How a proxy did what it was set to, as a table, and whether that is good enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpsbed.analysis.delivered import Margin, beyond
from tcpsbed.analysis.units import NS_PER_MS
from tcpsbed.errors import counted
from tcpsbed.report import numbers, text
from tcpsbed.report.markup import Column, words


def broken(outcome: Mapping[str, Any], margin: Margin) -> list[str]:
    """What is beyond the margin, and what failed, in sentences; nothing if the run was good."""
    found = [sentence for row in outcome["doors"] for sentence in _row(row, margin)]
    drops = outcome["own"].get("socket_drops", 0)
    if drops:
        found.append(
            f"the kernel dropped {drops} datagrams before they came in: this machine was too slow for them"
        )
    return [*found, *outcome["errors"]]


def _row(row: Mapping[str, Any], margin: Margin) -> Iterator[str]:
    name = f"{row['door']} {row['way']}"
    yield from beyond(name, row, margin)
    left = row["packets"] - row["lost"] - row["unsent"]
    if not row["delivered"] and left > 0:
        yield f"{name}: of {counted(row['packets'], 'packet')} none came out: {left} were still under way at the end"
    if row["unreached"] and row["door"].endswith("/udp"):
        back = counted(row["unreached"], "packet")
        yield f"{name}: {back} came back from the target, and maybe more did not arrive: nobody listened at its port"
    elif row["unreached"]:
        yield f"{name}: the target did not take {counted(row['unreached'], 'connection')}: it refused, or did not answer"
    if row["refused"]:
        yield f"{name}: closed {row['refused']} connections at once: too many at a time"


def table(outcome: Mapping[str, Any]) -> str:
    """Every door and direction: what came in, what was set, what was delivered."""
    columns = [
        words("port"),
        words("direction"),
        Column("in"),
        Column("out"),
        Column("lost"),
        Column("set p50", "ms"),
        Column("p99", "ms"),
        Column("delivered p50", "ms"),
        Column("p99", "ms"),
        Column("later p50", "µs"),
        Column("p99", "µs"),
        Column("set", "Mbit/s"),
        Column("delivered", "Mbit/s"),
        words("lost by"),
    ]
    return text.table(columns, [_cells(row) for row in outcome["doors"]])


def _cells(row: Mapping[str, Any]) -> list[str]:
    pair = [row["door"], row["way"].replace("->", "→")]
    counts = [
        numbers.count(row["packets"]),
        numbers.count(row["delivered"]),
        numbers.percent(row["set_loss"]),
    ]
    if not row["delivered"]:
        return [*pair, *counts, *[numbers.NONE] * 8, _reasons(row)]
    spans = [
        f"{row[name][key] / NS_PER_MS:.3f}"
        for name in ("set_delay_ns", "delivered_delay_ns")
        for key in ("p50", "p99")
    ]
    late = [f"{row['error_ns'][key] / 1e3:.0f}" for key in ("p50", "p99")]
    rates = [
        numbers.NONE if row[name] is None else f"{row[name] / 1e6:.3f}"
        for name in ("set_rate_bps", "delivered_rate_bps")
    ]
    return [*pair, *counts, *spans, *late, *rates, _reasons(row)]


def _reasons(row: Mapping[str, Any]) -> str:
    """What packets were lost by, and connections that a port would not have."""
    unreached = "sent back" if row["door"].endswith("/udp") else "unreached connections"
    closed = {"refused connections": row["refused"], unreached: row["unreached"]}
    every = row["drops"] | {reason: number for reason, number in closed.items() if number}
    return ", ".join(f"{reason} {number}" for reason, number in every.items())


def told(outcome: Mapping[str, Any], margin: Margin) -> str:
    """The table and the verdict, for the terminal."""
    found = broken(outcome, margin)
    verdict = (
        "good: delivered as set" if not found else "\n".join(["NOT GOOD:", *(f"  {line}" for line in found)])
    )
    unread = outcome.get("own", {}).get("unread", 0)
    note = (
        f"\nnot read: the port of {counted(unread, 'packet')}: IPv6 extension headers, later fragments or encryption"
        if unread
        else ""
    )
    return f"{table(outcome)}\n{verdict}{note}"
