"""The record of an emulated network between a user's own programs: the folder of a run.

```text
 profile, doors ─► scenario, plan ─► the network's loop ─► rings of rows ─► records.bin ─┐
                                          ▲                     └─► live page            ├─► analysis, as of every run
                                          └── events ◄── sliders, the profile's file     └── result.json
```
Each door is two flows between the nodes `near` and `far`: from its clients, and back to them. A packet is a sample: made
when it came in, delivered when it was handed on.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from tcpsbed import _tcps, scenarios
from tcpsbed.analysis import outages
from tcpsbed.analysis.delivered import Margin
from tcpsbed.analysis.metrics.network import drawn
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.proxy import door, verdict
from tcpsbed.proxy.profile import FAR, NEAR, Profile
from tcpsbed.proxy.seconds import Seconds
from tcpsbed.results import Place, marker
from tcpsbed.scenarios.compile import compile_plan
from tcpsbed.views import numbers
from tcpsbed.worlds import Steering, memory
from tcpsbed.worlds import rows as rows_
from tcpsbed.worlds.steering import Live

LONGEST_NS = 10**15
"""The longest run, and the plan's length while nobody knows when the network ends."""
QUEUES = "50 ms"
"""How often queues are sampled."""
_ENDS = ("flow", "component", "node")
"""Targets of events that are with the user's programs."""
_WAYS = ((NEAR, FAR), (FAR, NEAR))


class Running(Protocol):
    """An emulated network at work."""

    def start_ns(self) -> int | None:
        """When its time was 0 (CLOCK_MONOTONIC); `None` before that."""

    def event(self, line: dict[str, Any], network: dict[str, Any]) -> None:
        """Asks for an event, after which the network is this one."""

    def change(self, profile: Profile, event: int | None = None) -> None:
        """Puts another profile in the place of the present one."""


class _Links(Steering):
    """Events of links and background traffic: flows and components are the user's own programs."""

    def event(self, **event: Any) -> list[dict[str, Any]]:
        """As of every run."""
        if ends := [target for target in _ENDS if event.get(target) is not None]:
            found = f"found an event of a {ends[0]}, but your own programs are at the ends"
            raise ConfigError(found, key="event", allowed='link, traffic or reroute, such as link = "path"')
        return super().event(**event)


@contextmanager
def recording(
    place: Place, profile: Profile, doors: Sequence[tuple[str, str]], world: str, end_s: float = float("inf")
) -> Iterator[Recorder]:
    """The record of an emulated network in a place of its own.

    Parameters
    ----------
    place
        From `runs.session.place`.
    profile
        The first profile.
    doors
        Name and kind of each door, those of UDP first.
    world
        `proxy` or `netns`.
    end_s
        When it ends by itself.
    """
    with memory.folder(place.path) as shared, rows_.reserve(place.path) as reserve:
        marker.note(place.path, world=world)
        yield Recorder(place.path, shared, reserve, profile, doors, world, end_s)


class Recorder:
    """Rows, events and results of an emulated network; see `recording`."""

    def __init__(
        self,
        folder: Path,
        shared: Path,
        reserve: Path,
        profile: Profile,
        doors: Sequence[tuple[str, str]],
        world: str,
        end_s: float,
    ) -> None:
        self.folder, self.shared, self.reserve, self.world = folder, shared, reserve, world
        self.doors, self.streams = doors, any(kind == "tcp" for _, kind in doors)
        self.begun, self.begun_ns = time.perf_counter(), 0
        self.profile, self.rates = profile, [("1 kHz", "64 B")] * (2 * len(doors))
        self.duration = f"{min(round(end_s * 1e9), LONGEST_NS) if end_s != float('inf') else LONGEST_NS} ns"
        self.grace: dict[str, str] = {}
        self.scenario = self._scenario(profile)
        self.plan = compile_plan(self.scenario, folder / "inputs")
        for flow, name in zip(self.plan["flows"], self.names(), strict=True):
            flow |= {"name": name, "period_ns": 0}
        self.network: dict[str, Any] = copy.deepcopy(profile.network)
        """As it is by now."""
        self.steering = _Links(self.scenario)
        self.drain: rows_.RingDrain | None = None
        self.errors: list[str] = []
        self.seconds = Seconds()
        self._write()

    @property
    def settings(self) -> dict[str, Any]:
        """As the native module takes them."""
        return {
            "plan": self.plan,
            "ring": str(self.shared / "emulator"),
            "streams": str(self.shared / "streams"),
        }

    def names(self) -> list[str]:
        """Names of the flows, by door and side that they lead to."""
        return door.flows([name for name, _ in self.doors])

    def _scenario(self, profile: Profile) -> scenarios.Scenario:
        """The profile with two flows a door: in a scenario each has the mean rate and size of its packets."""
        flows = {
            re.sub(r"\W+", "-", name).rstrip("-"): {
                "direction": "backward" if number % 2 else "forward",
                "rate": rate,
                "sample": size,
                "path": list(_WAYS[number % 2]),
            }
            for number, (name, (rate, size)) in enumerate(zip(self.names(), self.rates, strict=True))
        }
        document = profile.origin.document | {
            "name": profile.name,
            "duration": self.duration,
            "components": {NEAR: {"kind": "ms-com", "node": NEAR}, FAR: {"kind": "ss-com", "node": FAR}},
            "flows": flows,
            "measure": {"queues": QUEUES, "records": "packets"} | self.grace,
        }
        return scenarios.Scenario.of(replace(profile.origin, document=document))

    def _write(self) -> None:
        (self.folder / "scenario.toml").write_text(scenarios.dump(self.scenario), encoding="utf-8")
        (self.folder / "plan.json").write_text(json.dumps(self.plan), encoding="utf-8")

    def now_ns(self) -> int:
        """The network's time."""
        return _tcps.monotonic_ns() - self.begun_ns

    def turn(self, running: Running, live: Live | None) -> None:
        """Passes on events that were asked for, and moves new rows to the folder and to the page."""
        if self.drain is None and (start_ns := running.start_ns()) is not None:
            self.begun_ns = start_ns
            self._open()
        if self.drain is None:
            return
        for event in self.steering.take(self.now_ns()):
            try:
                self._steer(running, event)
            except TcpsbedError as error:  # a network that has just ended takes no more
                self.errors.append(f"event {event['name']}: {error}")
        rows = rows_.noted(self.drain.drain, self.errors) or b""
        if live is not None:
            live(rows, self.now_ns() / 1e9, "")

    def _open(self) -> None:
        """Begins to empty the rings, which the network has made."""
        rings = [self.shared / "emulator", *([self.shared / "streams"] if self.streams else [])]
        self.drain = rows_.RingDrain(rings, self.folder)

    def _steer(self, running: Running, event: dict[str, Any]) -> None:
        network, action = copy.deepcopy(self.network), event["action"]
        for link in (network["links"][number] for number in action.get("links", ())):
            link |= {key: action[key] for key in ("rate_bps", "delay_ns") if action.get(key) is not None}
            if action.get("loss") is not None:
                link["loss"] = {"kind": "random", "p": action["loss"]}
        running.event({"number": len(self.plan["events"]), **event}, network)
        self.network = network
        self.plan["events"].append(event)

    def change(self, running: Running, profile: Profile) -> dict[str, Any]:
        """Puts another profile in the place of the present one, as an event of the record; what a page is told of it.

        Raises
        ------
        ConfigError
            If it has other links or other background traffic than the record has names for, or cannot be.
        """
        before, after = (_names(one) for one in (self.plan["network"], profile.network))
        if before != after:
            found = f"found {after}, but its record began with {before}"
            allowed = "the same names in the same order; for others end this command and start it again"
            raise ConfigError(found, file=profile.file, allowed=allowed)
        at_ns, name = self.now_ns(), f"profile {profile.name} read again"
        if said := _said(self.network["links"], profile.network["links"]):
            name += f": {said}"
        running.change(profile, len(self.plan["events"]))
        actions = _changes(self.network, profile.network)
        self.plan["events"] += [{"at_ns": at_ns, "name": name, "action": action} for action in actions]
        links = self.plan["network"]["links"]
        closing = outages.changed(links, profile.network["links"], at_ns)
        for link, closes in zip(links, closing, strict=True):
            link.pop("slots", None)
            link |= closes
        self.profile, self.network = profile, copy.deepcopy(profile.network)
        self.scenario = self.steering.scenario = self._scenario(profile)
        told = {"at_ns": at_ns, "asked_s": at_ns / 1e9, "event": {"name": name}, "actions": actions}
        return told | {
            "closing": [{key: link[key] for key in ("name", *outages.KEYS) if key in link} for link in links]
        }

    def finish(self, outcome: Mapping[str, Any], margin: Margin) -> scenarios.Scenario:
        """Leaves plan, records and result of a network that has ended; the scenario, for the analysis."""
        if self.drain is None and (self.shared / "emulator").exists():
            self._open()  # it was over before anybody looked
        if self.drain is not None:
            rows_.noted(self.drain.finish, self.errors)
        self.reserve.unlink(missing_ok=True)
        parts = [] if self.drain is None else self.drain.parts
        rows, sha256 = rows_.merged(parts, [], self.folder, self.shared, self.errors)
        doors, spent_s = outcome["doors"], min(outcome["duration_s"], LONGEST_NS / 1e9)
        self.plan["duration_ns"] = round(spent_s * 1e9)
        self.duration = f"{self.plan['duration_ns']} ns"
        self.rates = [_mean(row, spent_s) for row in doors]
        if not any(row["inside"] for row in doors):
            self.grace = {"grace": "0 s"}  # the fate of every packet is known
        self.scenario = self._scenario(self.profile)
        self._write()
        if self.drain is not None and (lost := self.drain.lost()):
            self.errors.append(f"{lost} rows were lost because a ring was full")
        result = self._result(outcome, margin) | {"records": rows, "records_sha256": sha256}
        result["total_s"] = time.perf_counter() - self.begun
        (self.folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
        return self.scenario

    def _result(self, outcome: Mapping[str, Any], margin: Margin) -> dict[str, Any]:
        """What a run on sockets tells about itself."""
        report, doors = outcome.get("report") or {}, outcome["doors"]
        names = self.names()
        stamps = dict(
            zip(names, (_stamps(self.world, kind) for _, kind in self.doors for _ in _WAYS), strict=True)
        )
        ends = [
            {"flow": name, "ends": True, "samples": row["delivered"], "total_ns": 0.0}
            | {"parts_ns": {}, "components": [], "hops": []}
            for name, row in zip(names, doors, strict=True)
            if row["delivered"]
        ]
        keys = ("traffic", "endpoints", "stages", "nodes", "robots", "clocks", "boards", "code")
        return {key: report.get(key, []) for key in keys} | {
            "simulate_s": outcome["duration_s"],
            "world": self.world,
            "interrupted": False,
            "links": outcome["links"],
            "changed": outcome.get("changed", {}),
            "legs": [*report.get("split", []), *ends],
            "emulator": [
                path | {"stamps": stamps[path.get("part_of", path["path"])]}
                for path in verdict.paths(outcome)
            ],
            "events": sum(node.get("ticks", 0) for node in report.get("nodes", ())),
            "asked_by": self.steering.by,
            "broken": verdict.judged(outcome, margin, self.plan["network"])[1],
            "programs": verdict.ending(outcome, margin, self.plan["network"]),
            "services": self.seconds.over(outcome),
            "errors": [*outcome["errors"], *self.errors],
        }


def _names(network: Mapping[str, Any]) -> str:
    """What rows and events count in: links, with their ends, and entries of background traffic."""
    places = network["vertices"]
    ends = (f"{one['name']} from {places[one['from']]} to {places[one['to']]}" for one in network["links"])
    return ", ".join([*ends, *(f"traffic {entry['name']}" for entry in network["traffic"])])


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Actions of events that say what differs, as far as an event can; at least one."""
    found = []
    for number, (old, new) in enumerate(zip(before["links"], after["links"], strict=True)):
        changed = {
            key: new[key] for key in ("rate_bps", "delay_ns") if key in new and old.get(key) != new[key]
        }
        if old.get("loss") != new.get("loss") and "r" not in (loss := new.get("loss") or {"p": 0.0}):
            changed |= {"loss": loss["p"]} if "p" in loss else {}
        if changed:
            found.append({"kind": "link", "links": [number]} | changed)
    return found or [{"kind": "link", "links": []}]


def _said(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> str:
    """What differs, in words: `path.forward delay 7.000 ms, queue changed`."""
    found: dict[str, list[str]] = {}
    for old, new in zip(before, after, strict=True):
        keys = [key for key in _KEYS if old.get(key) != new.get(key)]
        words = ", ".join(f"{_KEYS[key][0]} {_KEYS[key][1](new.get(key))}" for key in keys)
        if words:
            found.setdefault(words, []).append(new["name"])
    return "; ".join(f"{' and '.join(outages.names(links))} {words}" for words, links in found.items())


def _loss(loss: Mapping[str, Any] | None) -> str:
    """An independent loss, or none; of another only that it is another."""
    return (
        "changed"
        if loss and ("r" in loss or "p" not in loss)
        else numbers.percent((loss or {}).get("p", 0.0))
    )


_KEYS: dict[str, tuple[str, Callable[[Any], str]]] = (
    {
        "rate_bps": ("rate", lambda bps: numbers.rate(bps) if bps else "unlimited"),
        "delay_ns": ("delay", lambda ns: f"{(ns or 0) / 1e6:g} ms"),
        "loss": ("loss", _loss),
        "jitter": ("jitter", lambda jitter: drawn(jitter) if jitter else "none"),
    }
    | {
        key: (key, lambda _: "changed")
        for key in ("queue", "duplicate", "corrupt", "outages", "slots", "medium", "radio")
    }
    | {"opportunities_ns": ("trace", lambda _: "changed")}
)
"""Keys of a link whose change is told: how each is called, and its value in words."""


def _mean(row: Mapping[str, Any], spent_s: float) -> tuple[str, str]:
    """Rate and size of the packets that came, as a flow of a scenario has them."""
    if not row["packets"] or spent_s <= 0:
        return "1 Hz", "64 B"
    return (
        f"{max(row['packets'] / spent_s, 0.001):.6g} Hz",
        f"{max(round(row['bytes'] / row['packets']), 1)} B",
    )


def _stamps(world: str, kind: str) -> str:
    return "kernel" if kind == "udp" and world == "proxy" else "after the read"
