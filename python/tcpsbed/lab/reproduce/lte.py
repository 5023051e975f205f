"""Abdullah and Monnet 2023 over the LTE of ns-3: in its own virtual time, on the machine's clock, in two containers.

```
 leader ~~~ LTE: one mobile, one base station, packet gateway ~~~ follower        (scenarios/lte-ns3, lte-pingpong)
```
How long the way up takes depends on how often packets are sent: a mobile that is being granted room need not ask for
it. (Abdullah, Monnet 2023)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tcpsbed.errors import WorldError
from tcpsbed.lab.reproduce.packets import Delays, stop_and_wait, streamed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpsbed import Run
    from tcpsbed.lab.reproduce.study import Study

VIRTUAL, CLOCK, BOXES = "ns3-virtual", "ns3", "containers+ns3"
RATES_HZ = (10.3, 20.3, 50.3, 75.3, 100.3, 125.3, 150.3, 200.3, 300.3, 500.3, 1000.3, 2000.3)
"""Packets a second; the fraction lets them meet every place in a subframe."""
FEW_HZ = (50.3, 150.3, 1000.3)
CLOCK_HZ = (50.3, 100.3, 150.3, 200.3, 500.3, 1000.3)
LEFT_OUT = "a short sweep leaves out what takes the machine's clock"
NONE_BACK = "no packets came back"
PUBLISHED_TURN = 'components.tactile-teleoperator.delay="0.04 ms"'
AT_ONCE = 'components.tactile-teleoperator.delay="0 ms"'
"""On the machine's clock the follower takes the time that it takes."""


@dataclass(frozen=True)
class PingPong:
    """Means of packets that are each answered, in ms."""

    up: float
    turn: float
    down: float
    trip: float
    lost: int


def over_ns3(study: Study, count: int) -> None:
    """All runs over ns-3, or rows that name the missing requirement."""
    from tcpsbed.worlds import ns3_program

    if lack := ns3_program.missing():
        keys = [key for key in study.expected if key.startswith(("ns3-", "clock-", "boxes-"))]
        _cannot(study, keys, f"needs {lack}")
        return
    virtual(study, count)
    on_the_clock(study)
    in_boxes(study)
    rates(study)


def virtual(study: Study, count: int) -> None:
    """In ns-3's own time: what the air takes, without hosts around it."""
    settings = [f"flows.kinematic.stop='{count / 8} ms'"]
    d = study.run("lte-ns3", settings, stop_and_wait, world=VIRTUAL)
    study.compare("ns3-up", d.up.mean())
    study.compare("ns3-down", d.down.mean())
    study.compare("ns3-trip-mean", d.trip.mean())
    study.compare("ns3-trip-max", d.trip.max())
    study.compare("ns3-duration", (d.sent_s[-1] - d.sent_s[0]) * 4000 / (len(d.sent_s) - 1))
    study.compare("ns3-loss", float(count - len(d.up)) + (0.0 if d.in_order else 1.0))
    stream = ["flows.kinematic.transport.mode=stream", "duration='3 s'"]
    delays = study.run("lte-ns3", [*settings, *stream], streamed, world=VIRTUAL)
    study.compare("ns3-stream", delays.mean())
    study.compare("ns3-trip", study.run("lte-pingpong", [], ping_pong, world=VIRTUAL).trip)
    study.compare("ns3-trip-turn", study.run("lte-pingpong", [PUBLISHED_TURN], ping_pong, world=VIRTUAL).trip)


def on_the_clock(study: Study) -> None:
    """Processes on loopback, ns-3 between them in real time."""
    keys = ("clock-trip", "clock-up", "clock-down", "clock-turn")
    if _left_out(study, keys):
        return
    try:
        found = study.run("lte-pingpong", [AT_ONCE], ping_pong, world=CLOCK)
    except WorldError as error:
        _cannot(study, keys, str(error))
        return
    for key in keys:
        study.compare(key, getattr(found, key.removeprefix("clock-")))


def in_boxes(study: Study) -> None:
    """The published set-up: the operator in a container behind the mobile, the robot in one behind the gateway."""
    from tcpsbed import worlds

    keys = [key for key in study.expected if key.startswith("boxes-")]
    world = worlds.named(BOXES)
    if lack := world.missing():
        _cannot(study, keys, f"needs {lack}")
        return
    # What stands in for containers where there is no engine is not the published set-up.
    if instead := world.hosting.fallback():
        _cannot(study, keys, f"needs containers; here are only {instead}")
        return
    if _left_out(study, keys):
        return
    stream = ["flows.kinematic.transport.mode=stream", "flows.kinematic.rate='1 kHz'"]
    span = ["flows.kinematic.stop='4 s'", "duration='6 s'"]
    try:
        d = study.run("lte-ns3", [], stop_and_wait, world=BOXES)
        delays = study.run("lte-ns3", [*stream, *span], streamed, world=BOXES)
    except WorldError as error:
        _cannot(study, keys, str(error))
        return
    if len(d.trip) < 2:
        _cannot(study, keys, NONE_BACK)
        return
    compare_boxes(study, d)
    study.compare("boxes-stream", delays.mean())


def compare_boxes(study: Study, d: Delays) -> None:
    """The rows of one packet at a time."""
    for name, values in (("up", d.up), ("down", d.down), ("trip", d.trip), ("turn", d.turn)):
        study.compare(f"boxes-{name}", values.mean())
    study.compare("boxes-duration", (d.sent_s[-1] - d.sent_s[0]) * 4000 / (len(d.sent_s) - 1))
    study.compare("boxes-loss", float(d.lost) + (0.0 if d.in_order else 1.0))


def _left_out(study: Study, keys: Sequence[str]) -> bool:
    """Whether the study does not take the machine's clock; adds its rows then."""
    if not study.full:
        _cannot(study, keys, LEFT_OUT)
    elif not study.clock:
        study.leave_out(keys)
    return not (study.full and study.clock)


def _cannot(study: Study, keys: Sequence[str], reason: str) -> None:
    for key in keys:
        study.cannot(key, reason)


def ping_pong(run: Run) -> PingPong:
    """Reads the echo commands of `scenarios/lte-pingpong.toml`.

    Raises
    ------
    WorldError
        If none came back.
    """
    (point,) = run.summary["echo"]["kinematic"]["points"]
    if point["n"] == 0:
        raise WorldError(NONE_BACK)
    up = run.summary["flows"]["kinematic"]["delay_ms"]["mean"]
    trip, down = point["round_trip_ms"]["mean"], point["return_ms"]["mean"]
    return PingPong(up, trip - up - down, down, trip, point["lost"])


def rates(study: Study) -> None:
    """Round trip, up and down over packets a second, where each packet is answered and none waits for another."""
    seconds = 10 if study.full else 4

    def at(world: str, rate_hz: float) -> PingPong:
        settings = [f"flows.kinematic.rate='{rate_hz} Hz'", f"duration='{seconds} s'"]
        settings += [AT_ONCE] if world == CLOCK else []
        return study.run("lte-pingpong", settings, ping_pong, world=world)

    found = study.each(RATES_HZ if study.full else FEW_HZ, partial(at, VIRTUAL))
    clock: dict[float, PingPong] = {}
    # One at a time: on the machine's clock two would disturb each other. A rate that it cannot keep up with has no cross.
    for rate_hz in CLOCK_HZ if study.full and study.clock else ():
        with suppress(WorldError):
            clock[rate_hz] = at(CLOCK, rate_hz)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for what, name in (("trip", "round trip"), ("up", "up"), ("down", "down")):
            (line,) = axes.plot(list(found), [getattr(p, what) for p in found.values()], "o-", label=name)
            real = [getattr(p, what) for p in clock.values()]
            axes.plot(list(clock), real, "x", color=line.get_color(), markersize=9)
        # One packet at a time: as many a second as there are round trips.
        axes.plot([1000 / 17.8493], [17.8493], "*", color="black", markersize=12, label="published")
        axes.set(xscale="log", xlabel="packets a second", ylabel="mean delay (ms)", ylim=(0, None))
        axes.legend(title="lines: ns-3's time; crosses: the machine's clock" if clock else None)

    title = "LTE of ns-3: delay over packets a second"
    where = "ns-3's virtual time" + (", and the machine's clock" if clock else "")
    study.figure("rates", title, draw, where)
