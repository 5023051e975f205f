"""One of two programs on Cyclone DDS: `commands COUNT` writes and measures, `answers` writes back what it reads.

They know neither each other's address nor port: discovery is by multicast, as between nodes of ROS 2. What `commands` has
measured it prints as JSON: round trips in milliseconds, and the UDP ports that its participant has open.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import int64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

PERIOD_S = 0.02
FOUND_S = 30.0
"""Longest time that discovery may take."""
SILENT_S = 5


@dataclass
class Sample(IdlStruct, typename="tcpsbed.Sample"):
    """A number and when it was written, on the clock of who asks."""

    index: int64
    sent_ns: int64


def main() -> None:
    """Runs one side."""
    participant = DomainParticipant(0)
    commands, states = (Topic(participant, name, Sample) for name in ("command", "state"))
    if sys.argv[1] == "answers":
        answer(DataReader(participant, commands), DataWriter(participant, states))
    else:
        command(DataReader(participant, states), DataWriter(participant, commands), int(sys.argv[2]))


def answer(reader: DataReader, writer: DataWriter) -> None:
    """Writes back what comes, until somebody ends this program."""
    while True:
        for sample in reader.take_iter(timeout=duration(seconds=1)):
            writer.write(sample)


def command(reader: DataReader, writer: DataWriter, count: int) -> None:
    """Asks until somebody answers, then `count` times, and tells what came back."""
    begun = time.monotonic()
    while not reader.take(1):
        if time.monotonic() - begun > FOUND_S:
            sys.exit("nobody answered")
        writer.write(Sample(-1, 0))
        time.sleep(PERIOD_S)
    found_s = time.monotonic() - begun
    trips: dict[int, float] = {}
    for index in range(count):
        writer.write(Sample(index, time.monotonic_ns()))
        until = time.monotonic() + PERIOD_S
        while (left := until - time.monotonic()) > 0:
            take(reader, trips, left)
    quiet = time.monotonic() + SILENT_S
    while len(trips) < count and time.monotonic() < quiet:
        take(reader, trips, 0.1)
    print(json.dumps({"found_s": found_s, "trips_ms": list(trips.values()), "ports": ports()}))


def take(reader: DataReader, trips: dict[int, float], seconds: float) -> None:
    """Notes the answers that come within some time."""
    for sample in reader.take_iter(timeout=duration(seconds=seconds)):
        if sample.index >= 0:
            trips[sample.index] = (time.monotonic_ns() - sample.sent_ns) / 1e6


def ports() -> list[int]:
    """UDP ports that are open in this network namespace."""
    rows = Path("/proc/self/net/udp").read_text().splitlines()[1:]
    return sorted({int(row.split()[1].rpartition(":")[2], 16) for row in rows})


if __name__ == "__main__":
    main()
