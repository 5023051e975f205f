"""Compiles a scenario into a plan: everything numbered, in SI units, for both drivers (`crates/tcps-plan`)."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from tcpsbed import shipped
from tcpsbed._tcps import HELD
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile import builtins, limits, media, metrics, moments
from tcpsbed.scenarios.compile.boards import board
from tcpsbed.scenarios.compile.book import Book, Instance
from tcpsbed.scenarios.compile.chain import derive
from tcpsbed.scenarios.compile.channels import Channels
from tcpsbed.scenarios.compile.events import check_attacks, events
from tcpsbed.scenarios.compile.network import Network
from tcpsbed.scenarios.compile.phases import phase_ns
from tcpsbed.scenarios.compile.playout import playout
from tcpsbed.scenarios.compile.probes import probes, sync
from tcpsbed.scenarios.compile.robots import robot
from tcpsbed.scenarios.compile.routes import Need
from tcpsbed.scenarios.compile.routes import check as check_routes
from tcpsbed.scenarios.compile.signals import signals
from tcpsbed.scenarios.compile.sources import Sources, codec
from tcpsbed.scenarios.compile.stages import Stages
from tcpsbed.scenarios.compile.traffic import traffic
from tcpsbed.scenarios.model.place import Node
from tcpsbed.scenarios.model.scenario import Scenario


def compile_plan(scenario: Scenario, inputs_dir: str | Path, *, rehearsal: bool = False) -> dict[str, Any]:
    """The plan of a scenario.

    Parameters
    ----------
    inputs_dir
        The folder where tracks (`FLOW.f64`, rows of little-endian f64) and frames (`FLOW.frames`) are written.
    rehearsal
        Whether the user's code is loaded, to see that it can be; a run loads it anyway.

    Raises
    ------
    ConfigError
        If something in it does not exist or does not fit together.
    """
    if (base := scenario.base or "").lower().startswith("shipped:") and base not in shipped.BASES:
        raise scenario.error(("base",), f'found "{base}"', close_match(base, list(shipped.BASES)))
    if not scenario.folder.is_dir():
        found = f'found "{scenario.base}", but there is no such folder'
        raise scenario.error(("base",), found, f"a folder, looked for at {scenario.folder}")
    moments.check(scenario)
    for _, code in metrics.metrics(scenario):
        metrics.metric(scenario, code)
    book = Book(scenario, Path(inputs_dir), rehearsal=rehearsal)
    limits.check(book)
    for way in book.ways:
        way.path = derive(book, way)
        media.check(book, way)
    if not book.ways:
        raise scenario.error(("flows",), "found no flows", "one flow or more, such as [flows.kinematic]")
    network = Network(book)
    channels = Channels(book)
    flows = _flows(book, channels)
    limits.check_channels(book, len(channels.plan))
    background, recordings = traffic(book, network)
    plan = _head(book) | {
        "flows": flows,
        "channels": channels.plan,
        "network": _network(network, background) | {"recordings": recordings},
        "events": events(book, network, background),
        "probes": probes(book, flows),
        "sync": sync(book),
        "signals": signals(book),
    }
    check_routes(network, _needs(book, plan))
    check_attacks(book, network, plan)
    return plan


def compile_network(scenario: Scenario, inputs_dir: str | Path) -> dict[str, Any]:
    """The network of a scenario alone, with its background traffic; vertices are its nodes, then the rest.

    Raises
    ------
    ConfigError
        If something in it does not exist or does not fit together.
    """
    _, network, background, recordings = _between(scenario, inputs_dir)
    return _network(network, background) | {"recordings": recordings}


def compile_events(scenario: Scenario) -> list[dict[str, Any]]:
    """The events of a scenario alone, as its plan has them.

    Raises
    ------
    ConfigError
        If one is of something that does not exist, or cannot be.
    """
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        book, network, background, _ = _between(scenario, folder)
        return events(book, network, background)


def _between(
    scenario: Scenario, inputs_dir: str | Path
) -> tuple[Book, Network, list[dict[str, Any]], list[Any]]:
    """The network between nodes, with its background traffic and recordings."""
    book = Book(scenario, Path(inputs_dir))
    network = Network(book)
    return book, network, *traffic(book, network)


def check(scenario: Scenario) -> dict[str, Any]:
    """The plan of a scenario that a run would take, all code loaded once: raises what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan = compile_plan(scenario, folder, rehearsal=True)
        builtins.rehearse_plan(scenario, plan)
    return plan


def _head(book: Book) -> dict[str, Any]:
    scenario = book.scenario
    return {
        "name": scenario.name,
        "seed": scenario.seed,
        "duration_ns": scenario.duration_ns,
        "warmup_ns": scenario.warmup_ns,
        "records": scenario.measure.records,
        "sessions": book.sessions,
        "nodes": [
            _node(name, scenario.nodes.get(name, Node()), book.boundaries.get(name, {}))
            for name in book.nodes
        ],
        "components": [_component(book, instance) for instance in book.instances],
        "queue_probe_ns": scenario.measure.queues_ns,
        "real": scenario.real.model_dump(exclude={"crowded", "insecure"}),
    }


def _node(name: str, node: Node, boundary: dict[str, Any]) -> dict[str, Any]:
    measured = {kind: {"kind": "empirical", "quantiles_ns": ns} for kind, ns in boundary.items()}
    kind = node.scheduling.kind.replace("-", "_")
    quantum = {"quantum_ns": node.scheduling.round_robin_ns} if kind == "round_robin" else {}
    return {
        "name": name,
        "cores": node.cores,
        "scheduling": {"kind": kind} | quantum,
        "clock": node.clock.model_dump(),
        "interrupts": node.interrupts and node.interrupts.model_dump(),
    } | measured


def _component(book: Book, instance: Instance) -> dict[str, Any]:
    return {
        "name": instance.name,
        "kind": instance.kind,
        "session": instance.session,
        "node": instance.node,
        "robot": robot(book, instance),
        "board": board(book, instance),
    }


def _flows(book: Book, channels: Channels) -> list[dict[str, Any]]:
    sources, stages = Sources(book), Stages(book)
    plans = []
    for way in book.ways:
        flow = way.model
        source = sources.source(way)
        period_ns = round(1e9 / flow.rate_hz)
        plans.append(
            {
                "name": way.name,
                "session": way.session,
                "direction": flow.direction,
                "period_ns": period_ns,
                "start_ns": flow.start_ns + phase_ns(book.scenario, f"flow {way.name}", period_ns),
                "stop_ns": flow.stop_ns,
                "dscp": flow.dscp,
                "priority": flow.priority,
                "authority": flow.authority,
                "blocking_send": flow.blocking_send,
                "buffers": flow.buffers,
                "codec": codec(flow),
                "source": source,
                "sink": sources.sink(way, source),
                "playout": playout(book, way),
                "path": [
                    {
                        "component": here.number,
                        "steps": stages.steps(way, place, source),
                        "channel": channels.between(way, here.node, there.node),
                    }
                    for place, (here, there) in enumerate(
                        zip(way.path, [*way.path[1:], way.path[-1]], strict=True)
                    )
                ],
            }
        )
    stages.finish()
    media.check_marks(book, stages.marked)
    return plans


def _network(network: Network, background: list[dict[str, Any]]) -> dict[str, Any]:
    routing = network.book.scenario.topology.routing
    return {"vertices": network.vertices, "links": network.links, "routing": routing, "traffic": background}


def _needs(book: Book, plan: dict[str, Any]) -> list[Need]:
    """Every pair of vertices between which something must be able to travel."""
    needs: list[Need] = []
    for way in book.ways:
        nodes = [instance.node for instance in way.path]
        needs += [(a, b, way.key) for a, b in pairwise(nodes) if a != b]
    for probe in plan["probes"]:
        owners = {(point & ~HELD) if point & HELD else point // 2 for point in probe["points"]}
        needs += [(book.instances[c].node, probe["reply_to"], ("measure", "echo")) for c in sorted(owners)]
    for entry in plan["network"]["traffic"]:
        at = ("traffic", entry["name"].split(".")[0], "on")
        needs.append((entry["from"], entry["to"], at))
        if entry["model"]["kind"] == "users":
            needs.append((entry["to"], entry["from"], at))
    if plan["sync"] is not None:
        reference = plan["sync"]["reference"]
        for node in range(len(book.nodes)):
            needs += [(node, reference, ("measure", "sync")), (reference, node, ("measure", "sync"))]
    return needs
