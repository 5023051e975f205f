"""The parts of a world: where nodes run (hosting), and the network between them (network).

```
 launch     hosting  node processes, one a node, started and waiting for their plan
 impair     network  what lies between them is built; a process that speaks the emulator's part, or none
 addresses  hosting  where each node's sockets are bound
 verify     network  what was built is looked at: what is not as it was set
 …          the real driver prepares, starts, watches and drains; it is the same in every world
 teardown   both     nothing is left behind, however the run ended
```
A node is always `tcpsbed node`, controlled by JSON lines; control never crosses the emulated network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tcpsbed import scenarios
from tcpsbed.errors import TcpsbedError
from tcpsbed.worlds.process import ControlChannel, Process
from tcpsbed.worlds.rows import Drain, RingDrain


@dataclass(frozen=True)
class Job:
    """What a world is to run.

    Attributes
    ----------
    plan
        The compiled scenario. Node `i` is `plan["nodes"][i]` and vertex `i` of `plan["network"]`.
    scenario
        The scenario itself, for what only some worlds want to know; `None` where only a plan is there.
    memory
        A folder in shared memory for this run: rings of rows, sockets for descriptors.
    folder
        The run's folder.
    """

    plan: dict[str, Any]
    scenario: scenarios.Scenario | None
    memory: Path
    folder: Path

    def ring(self, node: int) -> Path:
        """Name of the rings of a node."""
        return self.memory / f"node{node}"


class Hosting(ABC):
    """Where nodes run. One class per kind; nothing outside this process changes before `launch`."""

    name: ClassVar[str]
    """How it is called on the command line."""
    what: ClassVar[str]
    """What it is, as a phrase."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @classmethod
    def missing(cls) -> str | None:
        """What this machine lacks for it, with the command that adds it; `None` if nothing. Found by trying it."""
        return None

    def refuse(self) -> None:  # noqa: B027 - nothing to do is a good answer
        """Raises `ConfigError` or `WorldError` if the scenario asks for what it cannot do, with the remedy."""

    def refuse_between(self) -> None:  # noqa: B027 - nothing to do is a good answer
        """Raises `WorldError` if it has no place for what stands between nodes (`beside`)."""

    here: ClassVar[bool] = True
    """Whether what stands between nodes is on this computer."""
    datagrams: ClassVar[bool] = False
    """Whether background traffic can be datagrams of ends of its own, each hosted as a node is."""
    shares_files: ClassVar[bool] = True
    """Whether nodes see the files and processes of this computer."""
    lead_s: ClassVar[float] = 0.3
    """From the start message to the barrier."""

    @abstractmethod
    def launch(self) -> Sequence[ControlChannel]:
        """Starts a process a node, in the order of the plan."""

    def beside(self, name: str) -> ControlChannel:
        """Starts a process between the nodes that takes the emulator's part of the control protocol, on this computer
        unless the hosting has a better place.
        """
        return Process(name, self.job.memory / name)

    def simulator(self) -> str:
        """The file of ns-3's program on the computer of `beside`, compiled if missing.

        Raises
        ------
        WorldError
            If ns-3 or a compiler is missing.
        """
        from tcpsbed.worlds import ns3_program

        return str(ns3_program.built())

    def explained(self, error: TcpsbedError, name: str) -> TcpsbedError:
        """The error with which a process refused its plan, with the key that mends it if that is known."""
        return error

    def drain(self, ready: Sequence[Mapping[str, Any]]) -> Drain:
        """What moves the rows of all processes into the run's folder, given their answers when they were ready."""
        return RingDrain([Path(ring) for answer in ready for ring in answer["rings"]], self.job.folder)

    def captures(self, ready: Sequence[Mapping[str, Any]]) -> list[Path]:
        """Where the captures of all processes are when the rows have been drained, given the same answers; asked before
        `drain`.
        """
        return [Path(part) for answer in ready for part in answer.get("captures", ())]

    def told(self) -> dict[str, Any]:
        """What it knows about itself at the end of a run, for `result.json`."""
        return {}

    @classmethod
    def fallback(cls) -> str | None:
        """The substitute on this machine and its reason; `None` without a substitute."""
        return None

    def addresses(self) -> list[str]:
        """The IP address of each node's sockets; an empty list where the plan sets them (loopback, namespaces)."""
        return []

    def taps(self) -> Path | None:
        """The socket where nodes hand their network devices to the emulator; `None` if they have none."""
        return None

    def teardown(self) -> None:  # noqa: B027 - nothing to do is a good answer
        """Takes away what `launch` has made, also after half of it; a second time does nothing."""


class Network(ABC):
    """The network between nodes."""

    name: ClassVar[str]
    """How it is called on the command line."""
    what: ClassVar[str]
    """What it is, as a phrase."""

    def __init__(self, job: Job, hosting: Hosting) -> None:
        self.job, self.hosting = job, hosting

    @classmethod
    def missing(cls) -> str | None:
        """What this machine lacks for it, with the command that adds it; `None` if nothing. Found by trying it."""
        return None

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """`None` if it can connect the nodes of a hosting, else the reason, `; allowed: ` and the worlds that can."""
        return None

    def refuse(self) -> None:  # noqa: B027 - nothing to do is a good answer
        """Raises `ConfigError` or `WorldError` if the scenario asks for what it cannot do, with the remedy."""

    @abstractmethod
    def impair(self) -> ControlChannel | None:
        """Builds the network between the nodes. A process that it returns takes the emulator's part of the control
        protocol: it gets `prepare` without a node and answers with gates, or takes the nodes' devices at `taps`.
        """

    def verify(self) -> list[str]:
        """What is not as it was set, each as a sentence; an empty list lets the run start."""
        return []

    def teardown(self) -> None:  # noqa: B027 - nothing to do is a good answer
        """Takes away what `impair` has made, also after half of it; a second time does nothing."""
