"""Polachan et al. 2022 in Mininet, as they ran it: real processes in hosts, links of the kernel, datagrams of other hosts.

```text
usnet9 in Mininet ─► known delays (table II)   replay (table I, figure 11)   srv (figure 17)   buffers (figure 20)
a relayed link    ─► a far side by a measured profile (figure 12)
```
The scenarios are those of `polachan2022`, but for the delay of their links: in Mininet hosts and switches take time
themselves. Runs follow each other, since they share this machine's clock and cores. [PROTOCOLS 6.5]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.reproduce import polachan2022
from tcpsbed.reproduce.polachan2022 import CAPTURES, REPLAYS, SUTURING, Buffered, buffered, trips
from tcpsbed.reproduce.recordings import absent
from tcpsbed.worlds import registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpsbed.analysis import Run
    from tcpsbed.reproduce.study import Study

WORLD = "mininet"
AT_ONCE = "topology.link.delay='0 ms'"
"""Links of the kernel without a delay of their own."""
ENDS = ("S0", "S8")
"""Switches of the operator and of the robot."""


def reproduce(study: Study) -> None:
    """Runs all experiments, one after the other; where Mininet is not ready, every row says what it needs."""
    if lack := registry.named(WORLD).missing():
        for key in study.expected:
            study.cannot(key, f"Mininet is not ready here: it needs {lack}")
        return
    known_delays(study)
    replay(study)
    placement(study)
    buffers(study)
    polachan2022.far(study)


# [PROTOCOLS 6.1] [PROTOCOLS 6.5]
def known_delays(study: Study) -> None:
    """Table II: delays that are known, as the difference of two echo points."""
    blocks, rates = ((1, 3, 5, 10, 15), (0, 500, 750)) if study.full else ((15,), (0, 750))
    echoes = 500 if study.full else 100

    def run(case: tuple[int, int]) -> float:
        block_ms, kbps = case
        settings = [
            AT_ONCE,
            f"hooks.block.cost='{block_ms} ms'",
            f"traffic.background.rate='{kbps} kbit/s'",
            f"duration='{echoes / 50 + 1} s'",
            f"measure.echo.count={echoes}",
        ]
        return study.run("usnet9-latency", settings, latency_of_srv)

    found = study.each([(b, r) for b in blocks for r in rates], run)
    for (block_ms, kbps), mean in found.items():
        study.compare(f"table2-{block_ms}-{kbps}", mean)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for kbps in rates:
            axes.plot(blocks, [found[b, kbps] for b in blocks], "o-", label=f"{kbps} kbit/s")
        axes.set(xlabel="delay in srv (ms)", ylabel="found by echo points (ms)")
        axes.legend()

    study.figure("table2", "Table II in Mininet: known delays under other traffic", draw)


def latency_of_srv(run: Run) -> float:
    """What the echo points find for srv, in ms."""
    parts = run.summary["echo"]["kinematic"]["components"]
    return float(next(part["latency_ms"]["mean"] for part in parts if part["name"] == "srv"))


# [PROTOCOLS 6.1] [PROTOCOLS 6.5]
def replay(study: Study) -> None:
    """Table I and figure 11: a recorded operation while other hosts replay captures."""
    if not (SUTURING.exists() and CAPTURES.exists()):
        for case in REPLAYS:
            for what in ("min", "mean", "max"):
                study.cannot(f"table1-{case}-{what}", absent("the suturing recording and captures"))
        study.cannot("figure11", absent("the suturing recording and captures"))
        return
    seconds = 60 if study.full else 8
    found = study.each(
        REPLAYS if study.full else ("100-1x", "10-1x"),
        lambda case: study.run(
            "polachan-replay",
            [*polachan2022.replay_settings(study, case), AT_ONCE, f"duration='{seconds} s'"],
            half_trips,
        ),
    )
    for case, half in found.items():
        for what, value in (("min", half.min()), ("mean", half.mean()), ("max", half.max())):
            study.compare(f"table1-{case}-{what}", value)
    study.compare("figure11", 100.0 * float((found["10-1x"] > 1.0).mean()))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for case, half in found.items():
            axes.plot(np.sort(half), np.arange(1, len(half) + 1) / len(half), label=case)
        axes.set(xscale="log", xlabel="half a round trip (ms)", ylabel="share")
        axes.legend()

    study.figure("figure11", "Figure 11 in Mininet: latency with replayed traffic", draw)


def half_trips(run: Run) -> NDArray[np.float64]:
    """Half of what each command took to the exit of ss-com and back, in ms."""
    return trips(run, "ss-com.exit") / 2.0


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def placement(study: Study) -> None:
    """Figure 17: srv at the hosts of S0, S1, S5, S6 and S8; what stands on one host shares a loop there."""
    places = ("S0", "S1", "S5", "S6", "S8") if study.full else ("S0", "S5")
    seconds = 20 if study.full else 5

    def run(place: str) -> float:
        settings = [AT_ONCE, f"duration='{seconds} s'"]
        if place in ENDS:
            settings.append(f"components.srv.node='{'master' if place == 'S0' else 'slave'}'")
        else:
            settings.append(f"nodes.server.at='{place}'")
        return study.run("polachan-placement", settings, lambda run: float(trips(run, "ss-com.exit").mean()))

    found = study.each(places, run)
    ends = [found[place] for place in places if place in ENDS]
    middle = [found[place] for place in places if place not in ENDS]
    study.compare("figure17-order", max(middle) - min(ends))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.bar(places, [found[place] for place in places])
        axes.set(xlabel="srv at", ylabel="round trip to the exit of ss-com (ms)")

    study.figure("figure17", "Figure 17 in Mininet: where srv stands", draw)


# [PROTOCOLS 6.4] [PROTOCOLS 6.5]
def buffers(study: Study) -> None:
    """Figure 20: buffer size and transmit interval, and a small buffer for the telehaptic flow only."""
    sizes, intervals = ((2, 20, 100, 200), (10, 1)) if study.full else ((2, 100), (1,))
    deepest = max(sizes)
    remedy = (
        f"links.shared.queue={{ limit = '{deepest} packets', discipline = 'round-robin', "
        "flow_limits = { kinematic = '2 packets' } }"
    )
    cases = [(f"links.shared.queue='{size} packets'", ms) for size in sizes for ms in intervals]
    cases.append((remedy, 1))

    def run(case: tuple[str, int]) -> Buffered:
        queue, interval_ms = case
        settings = [queue, "links.shared.delay='0 ms'", f"duration='{20 if study.full else 7} s'"]
        settings.append(f"flows.kinematic.rate='{1000 / interval_ms} Hz'")
        return study.run("polachan-buffers", settings, buffered)

    found = study.each(cases, run)
    small, deep = (found[f"links.shared.queue='{size} packets'", 1] for size in (2, deepest))
    study.compare("figure20-deep", deep.delay / small.delay)
    study.compare("figure20-small", small.delay)
    study.compare("figure20-drops", small.loss)
    study.compare("figure20-remedy", found[remedy, 1].delay)
    study.compare("figure20-kept", found[remedy, 1].kept)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for ms in intervals:
            rows = [found[f"links.shared.queue='{size} packets'", ms] for size in sizes]
            left.plot(sizes, [row.delay for row in rows], "o-", label=f"every {ms} ms")
            right.plot(sizes, [row.loss for row in rows], "o-", label=f"every {ms} ms")
        left.set(xlabel="buffer (packets)", ylabel="mean delay (ms)", xscale="log", yscale="log")
        right.set(xlabel="buffer (packets)", ylabel="samples lost (%)", xscale="log")
        left.legend()

    study.figure("figure20", "Figure 20 in Mininet: buffers and transmit interval", draw)
