"""The driver of all worlds on the machine's clock: one process a node, real sockets, a network between them.

```
 this process ◄─ JSON lines ─► tcpsbed node (one per node) ┐
      ▲                 └────► what lies between them      ┴─ UDP between them, never through here
      └─ rings of rows in shared memory: what a killed node has recorded is kept
```
Where the nodes run and what lies between them is the world's (`contract`). Nodes in network namespaces have handed the
other end of their network device to the emulator before they say that they are ready.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tcpsbed import _tcps, config
from tcpsbed.clocks import REAL
from tcpsbed.errors import WorldError
from tcpsbed.worlds import background, firmware, memory, registry
from tcpsbed.worlds import rows as rows_
from tcpsbed.worlds.contract import Hosting, Job
from tcpsbed.worlds.process import Talk
from tcpsbed.worlds.rows import Drain

PREPARE_S = 60.0
"""Longest time a node may take to load its hooks and bind its sockets."""
END_S = 20.0
"""Longest time a node may take to report after its end."""
DRAIN_S = 0.05
"""Time between two looks at the rings."""
MOST_NODES = 500
"""Most nodes, each of which is a process of some 30 MB."""
STOPPED_S = 5.0
"""Time for which a node may not run while the run goes on; one that comes back sooner judges the gap itself."""


def run(
    plan: dict[str, Any],
    folder: Path,
    *,
    progress: Callable[[float], bool] | None,
    live: Callable[[bytes, float], None] | None = None,
    pcapng: bool = False,
    crowded: bool = False,
    world: str = REAL,
    scenario: config.Scenario | None = None,
) -> dict[str, Any]:
    """Runs a plan on real sockets; rows go to ``records.bin`` in the folder.

    A node's death, Ctrl-C or a false answer of ``progress`` ends the run for all; what was recorded is kept, also where
    the run ends with an error.

    Parameters
    ----------
    plan
        The compiled scenario.
    folder
        The run's folder.
    progress
        Called with the share done, 0 to 1, about twenty times a second.
    live
        Called with new rows (32 bytes each) and the run time in seconds.
    pcapng
        Whether the datagrams of all nodes are captured into ``packets.pcapng``.
    crowded
        Whether loops may spin though no core is spare.
    world
        A name that the registry knows.
    scenario
        What the plan was compiled from, for worlds that look into it.

    Returns
    -------
    dict
        What nodes and emulator tell about themselves (``result.json``).
    """
    # A world may settle where sockets are, and which firmware boards have.
    plan = plan | {"real": dict(plan["real"]), "components": copy.deepcopy(plan["components"])}
    with ExitStack() as stack:
        shared = stack.enter_context(memory.folder(folder))
        reserve = stack.enter_context(rows_.reserve(folder))
        hosting, processes = _launch(Job(plan, scenario, shared, folder), world, stack)
        ready = _prepare(hosting, processes, folder if pcapng else None)
        if not crowded:
            refuse_crowd(plan, ready)
        captures = hosting.captures(ready)
        drain = hosting.drain(ready)
        errors: list[str] = []
        interrupted = True
        try:
            _start(plan, processes, ready, hosting.lead_s)
            interrupted = _watch(plan, processes, drain, hosting.lead_s, progress, live, errors)
        except BaseException as error:
            errors.append(f"{type(error).__name__}: {error}")
            raise
        finally:
            rows_.noted(drain.finish, errors)
            for p in processes:
                p.end()
            reserve.unlink(missing_ok=True)
            rows, sha256 = rows_.merged(drain.parts, captures, folder, shared, errors)
            result = (
                _result(plan, processes, rows, sha256, errors, interrupted, drain.lost()) | hosting.told()
            )
            (folder / "result.json").write_text(json.dumps(result | {"world": world}), encoding="utf-8")
        return result


def refuse_crowd(plan: dict[str, Any], ready: list[dict[str, Any]]) -> None:
    """Refuses to spin where no core is spare: loops that spin take the cores away from each other.

    Parameters
    ----------
    plan
        The compiled scenario.
    ready
        The answers of the processes, each with its loops; the emulator is one more.

    Raises
    ------
    WorldError
        If as many loops would spin as there are cores, or more.
    """
    if plan["real"]["waiting"] != "hybrid":
        return
    cores = len(os.sched_getaffinity(0))
    spinning = sum(len(answer["loops"]) if "loops" in answer else 1 for answer in ready)
    if spinning >= cores:
        raise WorldError(
            f'real.waiting: found "hybrid" for {spinning} loops on {cores} cores, which leaves none spare; allowed: '
            f'"hybrid" on {spinning + 1} cores or more, "timer", or real.crowded = true to spin all the same'
        )


def _launch(job: Job, name: str, stack: ExitStack) -> tuple[Hosting, list[Talk]]:
    """Builds a world: the processes of the nodes in order, and that of the network where it has one."""
    if (count := len(job.plan["nodes"])) > MOST_NODES:
        allowed = f"at most {MOST_NODES}, or --world virtual"
        raise WorldError(f"nodes: found {count}, each a process of its own in world {name}", allowed=allowed)
    world = registry.resolve(name, job.plan)
    if lack := world.missing():
        raise registry.unready(world.name, lack)
    hosting = world.hosting(job)
    network = world.network(job, hosting)
    background.require(job.plan, hosting)
    _provide_boards(job.plan, hosting)
    for part in (hosting, network):
        part.refuse()
        stack.callback(part.teardown)
    processes = list(hosting.launch())
    between = network.impair()
    if addresses := hosting.addresses():
        job.plan["real"]["addresses"] = addresses
    if wrong := network.verify():
        raise WorldError(f"world {world.name} is not as it was set: {'; '.join(wrong)}")
    return hosting, processes if between is None else [*processes, between]


def _provide_boards(plan: dict[str, Any], hosting: Hosting) -> None:
    """Compiles the firmware of boards. Where nodes do not stand on this computer, a board has to be there already."""
    made = [
        component["name"]
        for component in plan["components"]
        if component.get("board") and component["board"]["attached"]["kind"] != "port"
    ]
    if made and not hosting.shares_files:
        raise WorldError(
            f"components.{made[0]}.board: found firmware that is started here, but nodes are elsewhere with "
            f'{hosting.name}; allowed: line = "/dev/ttyUSB0" (a board at that computer), or --world real'
        )
    firmware.provide(plan)


def _prepare(hosting: Hosting, processes: list[Talk], captures: Path | None) -> list[dict[str, Any]]:
    """The emulator comes first, because nodes hand their devices to it; answers are in the order of processes."""
    plan = hosting.job.plan
    count = len(plan["nodes"])
    nodes, emulator = processes[:count], processes[count:]
    taps = None if hosting.taps() is None else str(hosting.taps())
    for p in emulator:
        p.tell(op="prepare", plan=plan, node=None, ring=str(p.ring), taps=taps, **p.also)
    prepared = [p.hear("ready", PREPARE_S) for p in emulator]
    for id, p in enumerate(nodes):
        capture = None if captures is None else str(captures.absolute() / p.ring.name)
        p.tell(op="prepare", plan=plan, node=id, ring=str(p.ring), taps=taps, capture=capture)
    return [p.hear("ready", PREPARE_S) for p in nodes] + prepared


def _start(plan: dict[str, Any], processes: list[Talk], ready: list[dict[str, Any]], lead_s: float) -> None:
    count = len(plan["nodes"])
    listeners = {
        (n, int(c)): a
        for n in range(count)
        for loop in ready[n]["loops"]
        for c, a in loop["channels"].items()
    }
    asides = {n: [loop["aside"] for loop in ready[n]["loops"]] for n in range(count) if ready[n]["loops"]}
    # Every loop of a node sends from a socket of its own.
    senders = [(n, loop["aside"]) for n in range(count) for loop in ready[n]["loops"]]
    at_ns = _tcps.monotonic_ns() + int(lead_s * 1e9)
    gates = ready[count]["gates"] if len(ready) > count else []
    for n, p in enumerate(processes[:count]):
        if not gates:
            channels = {
                c: a for (m, c), a in listeners.items() if m == _other(plan, c, n) and _on(plan, c, n)
            }
            others = {m: a for m, a in asides.items() if m != n}
            known = [(m, a) for m, a in senders if m != n]
        else:
            channels = {
                g["channel"]: g["address"] for g in gates if g["node"] == n and g["channel"] is not None
            }
            stand_ins = {g["node"]: g["address"] for g in gates if g["node"] != n and g["channel"] is None}
            others = {m: [a] for m, a in stand_ins.items()}
            known = list(stand_ins.items())
        p.tell(op="start", at_ns=at_ns, channels=channels, asides=others, aside_senders=known)
    if len(processes) > count:
        keyed = {f"{n}:{c}": a for (n, c), a in listeners.items()}
        processes[count].tell(op="start", at_ns=at_ns, channels=keyed, asides=asides, aside_senders=senders)


def _on(plan: dict[str, Any], channel: int, node: int) -> bool:
    return node in (plan["channels"][channel]["a"], plan["channels"][channel]["b"])


def _other(plan: dict[str, Any], channel: int, node: int) -> int:
    ends = plan["channels"][channel]
    return int(ends["b"] if ends["a"] == node else ends["a"])


def _watch(
    plan: dict[str, Any],
    processes: list[Talk],
    drain: Drain,
    lead_s: float,
    progress: Callable[[float], bool] | None,
    live: Callable[[bytes, float], None] | None,
    errors: list[str],
) -> bool:
    """Drains rings until all have reported; the first failure stops the others. Tells whether the run was stopped."""
    duration_s = plan["duration_ns"] / 1e9
    stopped_at: float | None = None
    begun, interrupted = time.monotonic() + lead_s, False
    open_ = list(processes)
    try:
        while open_:
            time.sleep(DRAIN_S)
            rows = rows_.noted(drain.drain, errors) or b""
            now = time.monotonic()
            if live is not None:
                live(rows, now - begun)
            if progress is not None and stopped_at is None:
                interrupted = not progress(min(max((now - begun) / duration_s, 0.0), 1.0))
            open_ = [p for p in open_ if not (_finished(p, errors) or _stopped(p, drain.silent_s(), errors))]
            if (errors or interrupted or any(map(_is_maimed, processes))) and stopped_at is None:
                stopped_at = now
                for p in open_:
                    p.tell(op="stop")
            late = stopped_at + END_S if stopped_at else begun + duration_s + END_S
            if open_ and now > late:
                errors.extend(f"node {p.name}: no report {END_S:g} s after its end" for p in open_)
                break
    except KeyboardInterrupt:
        interrupted = True
        for p in open_:
            p.tell(op="stop")
        for p in open_:
            _wait(p, errors)
    return interrupted


def _stopped(p: Talk, silent_s: dict[str, float], errors: list[str]) -> bool:
    """Whether a node has not run for so long that it is given up: it is killed when the others have ended."""
    silence_s = silent_s.get(p.ring.name, 0.0)
    if silence_s <= STOPPED_S or p.report is not None:
        return False
    errors.append(
        f"node {p.name}: has not run for {silence_s:.1f} s: its process was stopped, a hook in its loop does not return, "
        "or one turn of it is more than this machine can do in real time"
    )
    return True


def _is_maimed(p: Talk) -> bool:
    """Whether a process has told that one of its loops died."""
    return any(report["interrupted"] for report in p.report or ())


def _finished(p: Talk, errors: list[str]) -> bool:
    if p.answers.empty():
        return False
    _wait(p, errors)
    return True


def _wait(p: Talk, errors: list[str]) -> None:
    try:
        p.report = p.hear("done", END_S)["reports"]
    except WorldError as error:
        errors.append(str(error))


def _result(
    plan: dict[str, Any],
    processes: list[Talk],
    rows: int,
    sha256: str,
    errors: list[str],
    interrupted: bool,
    lost: int,
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "simulate_s": plan["duration_ns"] / 1e9,
        "events": 0,
        "records": rows,
        "records_sha256": sha256,
        "interrupted": interrupted or bool(errors) or any(map(_is_maimed, processes)),
        "errors": errors,
    }
    if lost:
        errors.append(f"{lost} rows were lost because a ring was full")
    for key in ("links", "traffic", "endpoints", "stages", "nodes", "robots", "emulator", "clocks", "boards"):
        result[key] = [row for p in processes for report in p.report or [] for row in report[key]]
    result["links"] = background.links_of_the_scenario(result["links"])
    result["traffic"] = background.whole(result["traffic"])
    result["errors"] += [e for p in processes for report in p.report or [] for e in report["errors"]]
    result["events"] = sum(n.get("ticks", 0) for n in result["nodes"])
    return result
