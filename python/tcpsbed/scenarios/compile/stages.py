"""What happens to samples at each component: hooks where they run, costs, calibrated costs."""

from __future__ import annotations

from typing import Any

from tcpsbed import linear
from tcpsbed.scenarios.compile import boards, media, supervisors
from tcpsbed.scenarios.compile.book import Book, Instance, Way
from tcpsbed.scenarios.compile.chain import on_path
from tcpsbed.scenarios.compile.code import SUPERVISOR, code, not_isolated
from tcpsbed.scenarios.compile.kinds import own
from tcpsbed.scenarios.compile.plants import controller
from tcpsbed.scenarios.compile.robots import AXES
from tcpsbed.scenarios.compile.sources import codec, values_of
from tcpsbed.scenarios.compile.spans import dist
from tcpsbed.scenarios.model.code import Hook
from tcpsbed.scenarios.model.flow import Replayed
from tcpsbed.scenarios.origin import Key

_ORDER = (
    "capture", "decode", "kinematics", "inverse_kinematics", "predict", "sense", "feedback", "work", "code", "show"
)  # fmt: skip
_DIRECTIONS = {
    "kinematics": "forward",
    "inverse_kinematics": "forward",
    "sense": "backward",
    "feedback": "backward",
}
_USUAL_FLOWS = {
    "kinematics": ("kinematic",),
    "inverse_kinematics": ("kinematic",),
    "sense": ("haptic",),
    "feedback": ("haptic",),
    "predict": ("kinematic", "haptic"),
}
_USUAL_PLACES = {
    "kinematics": ["srv"],
    "inverse_kinematics": ["srv"],
    "predict": ["ss-ei", "ms-ei"],
    "work": ["srv"],
}
_BYTES = ("code", "decode", "work")
COMPENSATOR = "compensator"
"""The hook whose parameters name a linear system."""
_GIVES = {"arm3": 3, "glove": 6, "grip": 6, "imu_wrist": 6, "mouse": 6, "mouse_xy": 3}
"""How many values built-in hooks give, whatever they are given."""

Step = dict[str, Any]


class Stages:
    """The steps of every component on the path of every flow."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._used: set[str] = set()
        self._run: set[str] = set()
        """Components whose own code runs."""
        self.marked: dict[str, set[int]] = {}
        """Nodes at which hooks take marks of regions, by the name of the marks."""
        self._code: dict[str, dict[str, Any]] = {}
        self._guards = supervisors.Guards(book)
        self._interval_ns: dict[int, int] = {}
        """The period of the last periodic stage on the way of a flow, by its number."""
        self._check_names()

    def steps(self, way: Way, place: int, source: dict[str, Any]) -> list[Step]:
        """The steps at a place on a flow's path, in order; a replayed operator has already passed those of its
        component.
        """
        ranked: list[tuple[float, Step]] = [
            (_ORDER.index(step["kind"]), step) for step in media.steps(self.book, way, place)
        ]
        for rank, name, hook in self._ranked(way, place):
            self._used.add(name)
            self._guards.pass_by(name, hook, way, place)
            if not (place == 0 and isinstance(way.model.source, Replayed)):
                ranked.append((rank, self._hook(name, hook, way) | self._other(name, hook, way, place)))
                if hook.run == SUPERVISOR:
                    supervisors.check_values(self.book, name, hook, way, self._values(way, place, source))
                if hook.run == media.MARK:
                    marks = str(hook.params.get("name"))
                    self.marked.setdefault(marks, set()).add(way.path[place].node)
        instance = way.path[place]
        if instance.model.board is not None:
            return boards.no_steps(self.book, instance, [step for _, step in ranked])
        if (work := self._work(way, place)) != {"kind": "work"}:
            ranked.append((_ORDER.index("work"), work))
        steps = [step for _, step in sorted(ranked, key=lambda step: step[0])]
        steps = self._calibrated(instance, [self._at_interval(way, step) for step in steps])
        self._guards.take(way, instance, steps)
        return steps

    def _ranked(self, way: Way, place: int) -> list[tuple[float, str, Hook]]:
        """The hooks at a place on a flow's path in order, with their rank and name."""
        hooks = [
            (supervisors.rank(hook, way, _ORDER), name, hook)
            for name, hook in self.book.scenario.hooks.items()
            if way.id in self._flows(hook) and place in self._places(hook, way)
        ]
        return sorted(hooks, key=lambda ranked: ranked[0])

    def _values(self, way: Way, place: int, source: dict[str, Any]) -> tuple[int | None, str]:
        """Number of values of a sample at a place on a flow's path, if known before a run, and the key that determines
        it.
        """
        number, told = values_of(way, source), f"flows.{way.id}.source holds"
        if source["kind"] == "generated":
            told = f'flows.{way.id}.sample = "{way.model.sample_bytes} B" holds'
        for there in range(place + 1):
            for _, name, hook in self._ranked(way, there):
                if hook.kind not in ("work", "show") and hook.run != SUPERVISOR:
                    number, told = _GIVES.get(hook.run or ""), f"hooks.{name} ({hook.run}) gives"
            number = None if own(self.book, way.path[there]) else number
        return number, told

    def _at_interval(self, way: Way, step: Step) -> Step:
        """A step on a flow's path; a predictor of the user gets the interval of the samples that reach it."""
        interval_ns = self._interval_ns.get(way.number, round(1e9 / way.model.rate_hz))
        if "period_ns" in step:
            self._interval_ns[way.number] = step["period_ns"]
        if step["kind"] != "predict" or step["run"]["kind"] == "builtin":
            return step
        return step | {"run": step["run"] | {"interval_ns": interval_ns}}

    def finish(self) -> None:
        """The error of a hook that runs nowhere, and of a flow that reaches a robot past its supervisor."""
        self._guards.refuse_unguarded()
        self._guards.refuse_late()
        for name, hook in self.book.scenario.hooks.items():
            if name not in self._used:
                passed = sorted(
                    {c.id for way in self.book.ways if way.id in self._flows(hook) for c in way.path}
                )
                at = hook.at or _USUAL_PLACES.get(hook.kind, [])
                found = f"found a {hook.kind} hook that no flow passes" + (
                    f" at {' or '.join(at)}" if at else ""
                )
                allowed = f"at = one of {', '.join(passed)}" if passed else "a flow that it can handle"
                raise self.book.scenario.error(("hooks", name), found, allowed)
        for here in self.book.instances:
            if here.id not in self._run and here.model.board is None and own(self.book, here):
                found = f'found "{here.kind}", but no flow of values passes the component {here.id}'
                allowed = f'a flow with {here.id} on its path and with values, such as sample = "24 B" and codec = "f32"'
                raise self.book.scenario.error(("components", here.id, "kind"), found, allowed)

    def _check_names(self) -> None:
        names = list(dict.fromkeys(x for c in self.book.instances for x in (c.id, c.kind)))
        for name, hook in self.book.scenario.hooks.items():
            for at in hook.at or []:
                self.book.find(at, names, ("hooks", name, "at"), "a component")
            self.book.flows(hook.flow or [], ("hooks", name, "flow"))
            if (hook.run is None) != (hook.kind == "work"):
                found = "is missing" if hook.run is None else "found code"
                allowed = (
                    "a work hook without code: cost, delay"
                    if hook.kind == "work"
                    else 'code, such as run = "./mine.py:Mine"'
                )
                raise self.book.scenario.error(("hooks", name, "run"), found, allowed)
            if hook.period_ns is not None and hook.kind != "predict":
                raise self.book.scenario.error(
                    ("hooks", name, "period"), f"found a period of {hook.kind}", "a period of predict"
                )
            if hook.answers == "arrivals" and hook.period_ns is None:
                raise self.book.scenario.error(
                    ("hooks", name, "answers"), "found a stage that answers on arrival", "with a period"
                )

    def _flows(self, hook: Hook) -> list[str]:
        """The ids of the flows that a hook handles."""
        if hook.flow is not None:
            return hook.flow
        direction = _DIRECTIONS.get(hook.kind)
        fitting = [
            id
            for id, flow in self.book.scenario.flows.items()
            if direction in (None, flow.direction) and (hook.kind in _BYTES or codec(flow) != "raw")
        ]
        usual = [id for id in fitting if id in _USUAL_FLOWS.get(hook.kind, ())]
        return usual or fitting

    def _places(self, hook: Hook, way: Way) -> list[int]:
        """Places on a flow's path where a hook runs."""
        last = len(way.path) - 1
        if hook.at is not None:
            return on_path(way, hook.at)
        if hook.kind == "code":
            return list(range(last))
        if hook.kind == "decode":
            return list(range(1, last + 1))
        if hook.kind == "sense":
            return on_path(way, ["ss-embsys", "ss-embsys-app"])[:1] or [0]
        if hook.kind == "feedback":
            return on_path(way, ["ms-embsys", "ms-embsys-app"])[-1:] or [last]
        return on_path(way, _USUAL_PLACES[hook.kind])

    def _hook(self, name: str, hook: Hook, way: Way) -> Step:
        key: Key = ("hooks", name)
        step: Step = {"kind": hook.kind}
        if hook.run is not None:
            if name not in self._code:
                params = hook.params
                if hook.run == COMPENSATOR and "system" in params:
                    at, period_ns = (*key, "params", "system"), round(1e9 / way.model.rate_hz)
                    params = params | {"system": controller(self.book, at, params["system"], period_ns)}
                    if linear.shape(params["system"]) is not None:
                        if hook.isolate is not None:
                            raise not_isolated(self.book.scenario, key, f'built-in hook "{COMPENSATOR}"')
                        self._code[name] = self._of_axes(key, params, period_ns)
                if name not in self._code:
                    self._code[name] = code(
                        self.book, (*key, "run"), hook.run, "hook", params, hook.kind, hook.isolate
                    )
            step["run"] = self._code[name]
        if hook.period_ns is not None:
            step["period_ns"] = hook.period_ns
        if hook.answers == "arrivals":
            step["on_arrival"] = True
        return step | self._spans(key, hook)

    def _of_axes(self, key: Key, params: dict[str, Any], period_ns: int) -> dict[str, Any]:
        """The compensator with several axes."""
        if stray := sorted(params.keys() - {"system"}):
            allowed = "system alone: a controller of several axes holds every h at 1"
            raise self.book.scenario.error((*key, "params", stray[0]), f"found {stray[0]}", allowed)
        told = params | {"period_ns": period_ns}
        return {"kind": "python", "name": AXES, "symbol": "Compensator", "params": told}

    def _other(self, name: str, hook: Hook, way: Way, place: int) -> Step:
        """The other flows of a hook, which must pass its component."""
        told: list[int] = []
        for other in hook.other or []:
            key: Key = ("hooks", name, "other")
            here = [
                known
                for known in self.book.flows([other], key)
                if any(passed.number == way.path[place].number for passed in known.path)
            ]
            if not here:
                found = f'found "{other}", which does not pass {way.path[place].id}'
                raise self.book.scenario.error(key, found, f"a flow that passes {way.path[place].id}")
            told.append(next((known for known in here if known.session == way.session), here[0]).number)
        return {"other": told} if told else {}

    def _work(self, way: Way, place: int) -> Step:
        """What a component does by itself: it takes its time, and values of a flow pass its own code."""
        here = way.path[place]
        step = {"kind": "work"} | self._spans(("components", here.id), here.model)
        kind = own(self.book, here)
        if kind is None or codec(way.model) == "raw":
            return step
        self._run.add(here.id)
        if place == 0 and isinstance(way.model.source, Replayed):
            return step
        self._guards.refuse_code(way, here)
        return step | {"run": kind.run}

    def _spans(self, key: Key, table: Any) -> Step:
        spans = {"cost": table.cost, "delay": table.delay}
        return {
            name: dist(self.book.scenario, (*key, name), span)
            for name, span in spans.items()
            if span is not None
        }

    def _calibrated(self, instance: Instance, steps: list[Step]) -> list[Step]:
        """The steps; those without a cost get the measured one. Other measured cost at the component is a step `work`."""
        costs = {kind: self.book.calibration.get(f"{instance.id}.{kind}") for kind in _ORDER}
        kinds = [step["kind"] for step in steps]
        if costs["work"] and "work" not in kinds:
            after = sum(kind != "code" for kind in kinds)
            steps = [*steps[:after], {"kind": "work"}, *steps[after:]]
        return [
            step | {"cost": {"kind": "empirical", "quantiles_ns": costs[step["kind"]]}}
            if costs[step["kind"]] and "cost" not in step
            else step
            for step in steps
        ]
