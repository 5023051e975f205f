"""Whether a world accepts a scenario: asked by a run before it starts anything, and by `tcpsbed check --world`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tcpsbed import scenarios
from tcpsbed.clocks import NS3_VIRTUAL, REAL, SIMULATED
from tcpsbed.errors import TcpsbedError, WorldError, needs_linux
from tcpsbed.scenarios.compile.channels import require_keys
from tcpsbed.worlds import background, fit, registry
from tcpsbed.worlds.between import Emulator
from tcpsbed.worlds.contract import Hosting, Job, Network
from tcpsbed.worlds.registry import World

MOST_NODES = 500
"""Most nodes, each of which is a process of some 30 MB."""


def check(scenario: scenarios.Scenario, plan: dict[str, Any], name: str) -> str:
    """Refuses what a run of a scenario in this world would refuse before it starts anything.

    Parameters
    ----------
    plan
        The compiled scenario.

    Returns
    -------
    str
        What this machine lacks for the world; empty if nothing.

    Raises
    ------
    TcpsbedError
        With file, line and remedy.
    """
    plan = plan | {"real": dict(plan["real"])}
    try:
        if name in SIMULATED:
            return _simulated(plan, name)
        world = registry.resolve(name, plan)
        nowhere = Path()  # nothing is started that would write there
        parts(Job(plan, scenario, nowhere, nowhere), world)
    except WorldError as error:
        raise placed(error, scenario) from None
    try:
        needs_linux(f"world {name}")
    except WorldError:
        return "Linux"
    return world.missing() or ""


def _simulated(plan: dict[str, Any], name: str) -> str:
    if name != NS3_VIRTUAL:
        return ""
    from tcpsbed.worlds import ns3

    ns3.refuse(plan)
    if lack := ns3.Ns3.missing():
        return lack
    ns3.require(plan)
    return ""


def parts(job: Job, world: World) -> tuple[Hosting, Network]:
    """Hosting and network of a world on the machine's clock, after all that they refuse.

    Raises
    ------
    TcpsbedError
        With the key and the remedy.
    """
    if (count := len(job.plan["nodes"])) > MOST_NODES:
        allowed = f"at most {MOST_NODES}, or --world virtual"
        raise WorldError(
            f"found {count} nodes, each a process in world {world.name}", key="nodes", allowed=allowed
        )
    fit.refuse_on_clock(job.plan)
    hosting = world.hosting(job)
    network = world.network(job, hosting)
    background.require(job.plan, hosting)
    hosting.refuse()
    network.refuse()
    _refuse_attacks(job.plan, world.name, hosting, network)
    _refuse_boards(job.plan, hosting)
    if job.scenario is not None:
        require_keys(job.scenario)
    return hosting, network


def _refuse_attacks(plan: dict[str, Any], name: str, hosting: Hosting, network: Network) -> None:
    """Only the emulator carries out attacks, and only on datagrams that pass its gates."""
    whole = hosting.taps() is not None
    if isinstance(network, Emulator) and not whole:
        return
    others = f"--world {'virtual' if name == REAL else 'virtual or real'}, or hosts+emulator"
    allowed = f'network = "gates" in [real], or {others}' if whole and name == REAL else others
    why = "whose emulator does not take IP packets apart" if whole else "where no emulator carries it out"
    for key, found in fit.attacks(plan):
        raise WorldError(f"found {found} in world {name}, {why}", key=key, allowed=allowed)


def _refuse_boards(plan: dict[str, Any], hosting: Hosting) -> None:
    """Firmware is started on this computer; if nodes are not there, a board must exist already."""
    made = [
        component["name"]
        for component in plan["components"]
        if component.get("board") and component["board"]["attached"]["kind"] != "port"
    ]
    if made and not hosting.shares_files:
        raise WorldError(
            f"found firmware that is started on this computer, but the nodes of {hosting.name} are elsewhere",
            key=f"components.{made[0]}.board",
            allowed='line = "/dev/ttyUSB0" (a board at that computer), or --world real',
        )


def placed(error: WorldError, scenario: scenarios.Scenario) -> TcpsbedError:
    """The error with file and line of its key, which a plan names by direction (links.wan.forward.loss), and of events by
    name.
    """
    if error.file:
        return error
    key: list[str | int] = []
    here: Any = scenario.document
    if named := re.fullmatch(r"events \((.*)\)", error.key or "", re.DOTALL):
        if (event := scenarios.named_events(scenario).get(named[1])) is None:
            return error
        key = ["events", event[0]]
    else:
        *parts, last = (error.key or "").split(".")
        for part in parts:
            if isinstance(here, dict) and part in here:
                key.append(part)
                here = here[part]
        if not here or here is scenario.document:
            return error
        key.append(last)
    told = scenario.error(tuple(key), error.found, "")
    return WorldError(error.found, file=told.file, line=told.line, key=told.key, allowed=error.allowed)
