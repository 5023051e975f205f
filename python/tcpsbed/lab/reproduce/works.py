"""The works that can be reproduced: one module each, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tcpsbed.clocks import SIMULATED, VIRTUAL
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from tcpsbed.lab.reproduce.study import Study


@dataclass(frozen=True)
class Work:
    """A published work: its name, its reference, the module whose `reproduce(study)` runs it, and in which world."""

    name: str
    reference: str
    module: str
    world: str = VIRTUAL
    clock: bool = False
    """Whether parts of it take minutes of the machine's clock, in full."""

    @property
    def apart(self) -> str:
        """The part that is skipped if all works are run; empty: nothing."""
        if self.world not in SIMULATED:
            return "not part of all: on the machine's clock"
        return "in all without what takes minutes of the machine's clock" if self.clock else ""

    def reproduce(
        self,
        out: Path | None,
        *,
        full: bool = True,
        tell: Callable[[str], None] = lambda _: None,
        clock: bool = True,
        note: str = "",
        executor: Executor | None = None,
    ) -> Study:
        """Runs all its experiments; figures go to `out`, where they can be drawn.

        Cases in simulated time run on the `executor`, the rest in this process. Without `clock`, what takes minutes of the
        machine's clock is left out with a reason. A study that was stopped
        (Ctrl-C) has the rows that were done, and says so.
        """
        from tcpsbed.lab.reproduce.study import Study

        study = Study(self.name, out, full, tell, self.world, clock, note, executor)
        try:
            import_module(self.module).reproduce(study)
        except KeyboardInterrupt:
            study.stopped = True
            return study
        study.add_what_needs_hardware()
        return study


WORKS = (
    Work(
        "gokhale2017",
        "Gokhale, Nair, Chaudhuri: Congestion control for network-aware telehaptic communication. "
        "ACM TOMM 13(2), 2017",
        "tcpsbed.lab.reproduce.gokhale2017",
    ),
    Work(
        "almouhamed",
        "Al-Mouhamed, Toker, Iqbal: Evaluation of real-time delays for networked telerobotics",
        "tcpsbed.lab.reproduce.almouhamed",
    ),
    Work(
        "hudson2001",
        "Hudson et al.: Best-effort stream adaptations of a remote scanning-probe microscope, 2001",
        "tcpsbed.lab.reproduce.hudson2001",
    ),
    Work(
        "abdullah2023",
        "Abdullah, Monnet: RTP transmission of haptic data over an emulated LTE network. "
        "Int. J. Online Biomed. Eng. 19(7), 2023",
        "tcpsbed.lab.reproduce.abdullah2023",
        clock=True,
    ),
    Work(
        "polachan2022",
        "Polachan, Pal, Singh, Prabhakar, Kuipers: TCPSbed: a modular testbed for tactile internet-based cyber-physical "
        "systems. IEEE/ACM ToN 30(2), 2022",
        "tcpsbed.lab.reproduce.polachan2022",
        clock=True,
    ),
    Work(
        "polachan2022-edge",
        "Polachan, Pal, Singh, Prabhakar, Kuipers: TCPSbed. IEEE/ACM ToN 30(2), 2022: prediction at the edge and the step "
        "experiment (figures 5, 15, 16)",
        "tcpsbed.lab.reproduce.polachan2022_edge",
        clock=True,
    ),
    Work(
        "polachan2022-mininet",
        "Polachan, Pal, Singh, Prabhakar, Kuipers: TCPSbed. IEEE/ACM ToN 30(2), 2022, in Mininet: tables I and II, "
        "figures 11, 12, 17 and 20",
        "tcpsbed.lab.reproduce.polachan2022_mininet",
        "mininet",
    ),
    Work(
        "almouhamed-mininet",
        "Al-Mouhamed et al.: evaluation of real-time delays for networked telerobotics, in Mininet: routes A, B and C",
        "tcpsbed.lab.reproduce.almouhamed_mininet",
        "mininet",
    ),
    Work(
        "dpm-q",
        "our own controller (tcpsbed docs dpm-q), measured by its aims",
        "tcpsbed.lab.reproduce.dpm_q",
    ),
    Work("questions", "what the papers leave open, answered with figures", "tcpsbed.lab.reproduce.questions"),
)


IN_ALL = tuple(work for work in WORKS if work.world in SIMULATED)
"""The works of `tcpsbed reproduce all`, which leaves out what takes minutes of the machine's clock."""


def find(name: str) -> Work:
    """The work with this name."""
    for work in WORKS:
        if work.name == name:
            return work
    raise ConfigError(
        f'found "{name}"', key="reproduce: NAME", allowed=close_match(name, [work.name for work in WORKS])
    )
