"""The driver of all worlds on the machine's clock: one process per node, real sockets, a network between them.

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
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tcpsbed import _tcps, scenarios
from tcpsbed.clocks import REAL
from tcpsbed.errors import TcpsbedError, WorldError, needs_linux
from tcpsbed.processes import cores
from tcpsbed.worlds import acceptance, background, firmware, memory, registry, secrets
from tcpsbed.worlds import rows as rows_
from tcpsbed.worlds.contract import Hosting, Job
from tcpsbed.worlds.process import ControlChannel
from tcpsbed.worlds.rows import Drain
from tcpsbed.worlds.steering import Live, Progress, Steering

PREPARE_S = 60.0
"""Longest time a node may take to load its hooks and bind its sockets."""
END_S = 20.0
"""Longest time a node may take to report after its end."""
DRAIN_S = 0.05
"""Polling interval of the rings."""
STOPPED_S = 5.0
"""Time for which a node may not run while the run goes on; one that comes back sooner judges the gap itself."""


def run(
    plan: dict[str, Any],
    folder: Path,
    *,
    progress: Progress | None,
    live: Live | None = None,
    pcapng: bool = False,
    crowded: bool = False,
    world: str = REAL,
    scenario: scenarios.Scenario | None = None,
    steering: Steering | None = None,
) -> dict[str, Any]:
    """Runs a plan on real sockets; rows go to ``records.bin`` in the folder.

    A node's death, Ctrl-C or a false answer of ``progress`` ends the run for all; what was recorded is kept, also where
    the run ends with an error.

    Parameters
    ----------
    plan
        The compiled scenario; events that are asked for come to those that it has.
    progress, live, steering
        As of ``worlds.record``, about twenty times a second.
    pcapng
        Whether the datagrams of all nodes are captured into ``packets.pcapng``.
    crowded
        Whether loops may spin though no core is spare.
    scenario
        What the plan was compiled from, for worlds that look into it.

    Returns
    -------
    dict
        What nodes and emulator tell about themselves (``result.json``).
    """
    needs_linux(f"world {world}")
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
            interrupted = _watch(plan, processes, drain, hosting.lead_s, progress, live, steering, errors)
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
    usable = cores()
    spinning = sum(len(answer["loops"]) if "loops" in answer else 1 for answer in ready)
    if spinning >= usable:
        raise WorldError(
            f'found "hybrid" for {spinning} loops on {usable} cores, which leaves none spare',
            key="real.waiting",
            allowed=f'"hybrid" on {spinning + 1} cores or more, "timer", or real.crowded = true to spin all the same',
        )


def _launch(job: Job, name: str, stack: ExitStack) -> tuple[Hosting, list[ControlChannel]]:
    """Builds a world: the processes of the nodes in order, and that of the network where it has one."""
    world = registry.resolve(name, job.plan)
    hosting, network = acceptance.parts(job, world)
    if lack := world.missing():
        raise registry.unready(world.name, lack)
    for part in (hosting, network):
        stack.callback(part.teardown)
    firmware.provide(job.plan)
    processes = list(hosting.launch())
    between = network.impair()
    if addresses := hosting.addresses():
        job.plan["real"]["addresses"] = addresses
    if wrong := network.verify():
        raise WorldError(f"world {world.name} differs from its settings: {'; '.join(wrong)}")
    return hosting, processes if between is None else [*processes, between]


def _prepare(
    hosting: Hosting, processes: list[ControlChannel], captures: Path | None
) -> list[dict[str, Any]]:
    """The emulator comes first, because nodes hand their devices to it; answers are in the order of processes."""
    plan = hosting.job.plan
    count = len(plan["nodes"])
    nodes, emulator = processes[:count], processes[count:]
    taps = None if hosting.taps() is None else str(hosting.taps())
    for p in emulator:
        p.send(op="prepare", plan=plan, node=None, ring=str(p.ring), taps=taps, **p.also)
    prepared = [_ready(hosting, p) for p in emulator]
    keys = secrets.made(plan)
    for id, p in enumerate(nodes):
        own = {"secrets": secrets.of_node(plan, keys, id)} if keys else {}
        capture = None if captures is None else str(captures.absolute() / p.ring.name)
        p.send(op="prepare", plan=plan, node=id, ring=str(p.ring), taps=taps, capture=capture, **own)
    return [_ready(hosting, p) for p in nodes] + prepared


def _ready(hosting: Hosting, p: ControlChannel) -> dict[str, Any]:
    """What a process answers when it has taken its plan."""
    try:
        return p.receive("ready", PREPARE_S)
    except TcpsbedError as error:
        raise hosting.explained(error, p.name) from None


def _start(
    plan: dict[str, Any], processes: list[ControlChannel], ready: list[dict[str, Any]], lead_s: float
) -> None:
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
        p.send(op="start", at_ns=at_ns, channels=channels, asides=others, aside_senders=known)
    if len(processes) > count:
        keyed = {f"{n}:{c}": a for (n, c), a in listeners.items()}
        processes[count].send(op="start", at_ns=at_ns, channels=keyed, asides=asides, aside_senders=senders)


def _on(plan: dict[str, Any], channel: int, node: int) -> bool:
    return node in (plan["channels"][channel]["a"], plan["channels"][channel]["b"])


def _other(plan: dict[str, Any], channel: int, node: int) -> int:
    ends = plan["channels"][channel]
    return int(ends["b"] if ends["a"] == node else ends["a"])


def _watch(
    plan: dict[str, Any],
    processes: list[ControlChannel],
    drain: Drain,
    lead_s: float,
    progress: Progress | None,
    live: Live | None,
    steering: Steering | None,
    errors: list[str],
) -> bool:
    """Drains rings until all have reported; the first failure stops the others. Returns whether the run was stopped."""
    duration_s = plan["duration_ns"] / 1e9
    stopped_at: float | None = None
    begun, interrupted = time.monotonic() + lead_s, False
    open_ = list(processes)
    try:
        while open_:
            time.sleep(DRAIN_S) if steering is None else steering.wait(DRAIN_S)
            rows = rows_.noted(drain.drain, errors) or b""
            now = time.monotonic()
            if live is not None:
                live(rows, now - begun, "")
            if progress is not None and stopped_at is None:
                interrupted = not progress(min(max((now - begun) / duration_s, 0.0), 1.0))
            for event in () if steering is None else steering.take(round((now - begun) * 1e9)):
                _steer(plan, processes, event)
            open_ = [p for p in open_ if not (_finished(p, errors) or _stopped(p, drain.silent_s(), errors))]
            if (errors or interrupted or any(map(_is_maimed, processes))) and stopped_at is None:
                stopped_at = now
                for p in open_:
                    p.send(op="stop")
            late = stopped_at + END_S if stopped_at else begun + duration_s + END_S
            if open_ and now > late:
                errors.extend(f"node {p.name}: no report {END_S:g} s after its end" for p in open_)
                break
    except KeyboardInterrupt:
        interrupted = True
        for p in open_:
            p.send(op="stop")
        for p in open_:
            _wait(p, errors)
    return interrupted


def _steer(
    plan: dict[str, Any],
    processes: list[ControlChannel],
    event: dict[str, Any],
) -> None:
    """Passes an event to its node, or to the network between the nodes; the plan contains it from now on."""
    action = event["action"]
    whose = len(plan["nodes"])
    if action["kind"] == "flow":
        whose = plan["components"][plan["flows"][action["flow"]]["path"][0]["component"]]["node"]
    elif action["kind"] == "component":
        whose = plan["components"][action["component"]]["node"]
    elif action["kind"] == "clock":
        whose = action["node"]
    if whose == len(processes):
        return  # its network had no events before the run began
    processes[whose].send(op="event", number=len(plan["events"]), **event)
    plan["events"].append(event)


def _stopped(p: ControlChannel, silent_s: dict[str, float], errors: list[str]) -> bool:
    """Whether a node has not run for so long that it is given up: it is killed when the others have ended."""
    silence_s = silent_s.get(p.ring.name, 0.0)
    if silence_s <= STOPPED_S or p.report is not None:
        return False
    errors.append(
        f"node {p.name}: did not run for {silence_s:.1f} s: its process was stopped, a hook in its loop does not return, "
        "or one turn of the loop takes this machine longer than real time"
    )
    return True


def _is_maimed(p: ControlChannel) -> bool:
    """Whether a process has reported that one of its loops died."""
    return any(report["interrupted"] for report in p.report or ())


def _finished(p: ControlChannel, errors: list[str]) -> bool:
    if not p.answered():
        return False
    _wait(p, errors)
    return True


def _wait(p: ControlChannel, errors: list[str]) -> None:
    try:
        p.report = p.receive("done", END_S)["reports"]
    except TcpsbedError as error:
        errors.append(str(error))


def _result(
    plan: dict[str, Any],
    processes: list[ControlChannel],
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
    for key in (
        "links",
        "traffic",
        "endpoints",
        "stages",
        "nodes",
        "robots",
        "emulator",
        "clocks",
        "boards",
        "code",
    ):
        result[key] = [row for p in processes for report in p.report or [] for row in report[key]]
    result["legs"] = [leg for p in processes for report in p.report or [] for leg in report["split"]]
    result["links"] = background.links_of_the_scenario(result["links"])
    result["traffic"] = background.whole(result["traffic"])
    result["errors"] += [e for p in processes for e in p.refused]
    result["errors"] += [e for p in processes for report in p.report or [] for e in report["errors"]]
    result["events"] = sum(n.get("ticks", 0) for n in result["nodes"])
    return result
