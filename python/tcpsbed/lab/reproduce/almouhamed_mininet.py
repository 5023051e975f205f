"""Routes A, B and C of Al-Mouhamed et al. in Mininet: pictures by the kernel's TCP, hubs, and datagrams of other hosts.

```text
robot ── switches of the route ══ hub ══ client      frames over one connection, force and commands beside it
   └──── cross traffic, from a host of its own
```
The paper sent frames by TCP from two buffers, one of which is copied while the other is sent. Here a frame is offered every
40 ms, sooner than a line of 100 Mbit/s takes one, and the connection holds one that waits: what lies between frames at the
client is what the network gives them. Runs follow each other. (Al-Mouhamed, Toker, Iqbal)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed import worlds
from tcpsbed.lab.reproduce.almouhamed import BURSTS, BUSY, Seen, histograms, read
from tcpsbed.lab.reproduce.study import WHOLE

if TYPE_CHECKING:
    from tcpsbed.lab.reproduce.study import Study

WORLD = "mininet"
BY_TCP = (
    # A table is laid over the one below key by key; what is no table takes it away first.
    "flows.video.transport=false",
    "flows.video.transport={ kind = 'kernel-tcp', queue = '650 kB' }",
    "flows.video.rate='25 Hz'",
    "flows.haptic.rate='250 Hz'",
    "hooks.copy.cost='0 ms'",
    "hooks.hand-over.cost='0 ms'",
    "hooks.read.cost='0 ms'",
)
"""Frames by the kernel's TCP, force as often as the paper's robot gave it beside pictures, no shared processor."""


def reproduce(study: Study) -> None:
    """Runs the routes, calm, busy and in bursts; without Mininet, every row names the requirement."""
    if lack := worlds.named(WORLD).missing():
        for key in study.expected:
            study.cannot(key, f"Mininet is not ready here: it needs {lack}")
        return
    duration = f'duration="{60 if study.full else 10} s"'
    cases: dict[str, tuple[str, tuple[str, ...]]] = {
        "A": ("almouhamed", ()),
        "A, busy": ("almouhamed", BUSY),
        "C, bursts": ("almouhamed-c", BURSTS),
    }
    if study.full:
        cases |= {"B": ("almouhamed-b", ()), "C": ("almouhamed-c", ())}
    seen = study.each(
        cases,
        lambda name: study.run(
            cases[name][0], [duration, 'measure.pcapng="off"', *BY_TCP, *cases[name][1]], read
        ),
    )
    _compare(study, seen)
    for what in ("frames", "forces"):
        shown = {f"route {name}": getattr(seen[name], what) for name in sorted(seen)}
        title = f"In Mininet: time between {what} by route"
        study.figure(f"routes-{what}", title, histograms(shown, f"time between {what} (ms)"))


# Al-Mouhamed, Toker, Iqbal
def _compare(study: Study, seen: dict[str, Seen]) -> None:
    calm, busy, bursts = seen["A"], seen["A, busy"], seen["C, bursts"]
    study.compare("route-a", calm.frames.mean())
    study.compare("route-a-high", np.percentile(calm.frames, 95))
    study.compare("route-a-busy-frames", np.percentile(busy.frames, 99))
    study.compare("route-a-busy-force", np.percentile(busy.forces, 99))
    if study.full:
        study.compare("route-c-high", np.percentile(seen["C"].frames, 95))
        study.compare("route-c-tail", np.percentile(seen["C"].frames, 99))
    else:
        for key in ("route-c-high", "route-c-tail"):
            study.cannot(key, WHOLE)
    study.compare("route-c-bursts-low", np.percentile(bursts.frames, 5))
    study.compare("route-c-bursts-high", np.percentile(bursts.frames, 95))
    longer = [
        np.percentile(getattr(busy, what), 95) - np.percentile(getattr(calm, what), 95)
        for what in ("forces", "frames")
    ]
    study.compare("surge", longer[0] - longer[1])
