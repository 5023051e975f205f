"""Checks of a follower's supervisor: its place, and its parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from tcpsbed.scenarios.compile.book import Book, Instance, Way
from tcpsbed.scenarios.compile.code import SUPERVISOR
from tcpsbed.scenarios.compile.sources import codec
from tcpsbed.scenarios.model.code import Hook
from tcpsbed.scenarios.model.entries import Chosen, defaults
from tcpsbed.scenarios.model.flow import Replayed
from tcpsbed.scenarios.units import parameters

_SIDES = {"forward": "ss-", "backward": "ms-"}
"""Front of the kinds of components that stand before the robot, and before the operator's device."""
_LAST = {"forward": "feedback", "backward": "sense"}
"""The last kind of hook that makes values before a supervisor at its component; `feedback` is the operator's device."""
_CHANGES = ("decode", "kinematics", "inverse_kinematics", "predict", "sense", "feedback", "code")
"""Kinds of hooks that make other values of a sample's."""
_DEVICE = ("feedback", "backward")
"""The operator's device is no hook that changes what it is given."""


_BUILT_IN = {"kind": "builtin", "name": SUPERVISOR}
"""The supervisor as a plan has it, without its parameters."""
_LONGEST: dict[str, Callable[[dict[str, Any]], int]] = {
    "constant": lambda span: int(span["span_ns"]),
    "uniform": lambda span: int(span["high_ns"]),
    "empirical": lambda span: int(span["quantiles_ns"][-1]),
    "trace": lambda span: int(max(span["spans_ns"])),
    "histogram": lambda span: int(span["edges_ns"][-1]),
}
"""The longest span that a delay model gives; the others have none."""
_NEEDS = {"arm": 3}
"""How many values built-in robots take at least."""
_WAITS = {"fixed": "delay_ns", "hold": "period_ns", "overwrite": "longest_ns", "updateable": "period_ns"}
"""What a sample waits at most in a playout that shows the newest, or by a clock; in the others it may wait longer."""


def rank(hook: Hook, way: Way, order: Sequence[str]) -> float:
    """When a hook runs at its component: in the order of kinds, and a supervisor after every hook that changes values."""
    return order.index(_LAST[way.model.direction]) + 0.5 if hook.run == SUPERVISOR else order.index(hook.kind)


class Guards:
    """Sees to it that nothing reaches a robot, or the operator's device, that its supervisor has not limited."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._passed: dict[int, str] = {}
        """The supervisor that samples have passed on the way of a flow, by its number."""
        self._behind: dict[int, tuple[list[list[float]], list[Instance]]] = {}
        """Within what it keeps them, and what they pass from there on."""
        self._taken: dict[int, list[tuple[str, int | None, int | None]]] = defaultdict(list)
        """What takes time from there on: what it is, how long at most, and the node whose core it takes."""

    def pass_by(self, name: str, hook: Hook, way: Way, place: int) -> None:
        """The next hook on a flow's path.

        Raises
        ------
        ConfigError
            It is a supervisor that guards nothing or a second one, or it may change what one has let pass.
        """
        guard = self._passed.get(way.number)
        if hook.run == SUPERVISOR:
            if guard is not None:
                found = f'found a second supervisor on the flow {way.id}, behind "{guard}"'
                raise self._book.scenario.error(
                    ("hooks", name), found, "one for a flow, the last before the robot"
                )
            if place == 0 and isinstance(way.model.source, Replayed):
                found = f"found a supervisor where the flow {way.id} is replayed from"
                raise self._book.scenario.error(("hooks", name), found, "at = a component behind that")
            check(self._book, name, hook, way, place)
            self._passed[way.number] = name
            self._behind[way.number] = hook.params.get("workspace") or [[-1e6, 1e6]], way.path[place:]
        elif guard is not None and hook.kind in _CHANGES and (hook.kind, way.model.direction) != _DEVICE:
            here = ", ".join(hook.at) if hook.at else f"every component that a {hook.kind} hook runs at"
            raise self._book.scenario.error(
                ("hooks", name),
                f'found a {hook.kind} hook behind the supervisor "{guard}" of the flow {way.id} (at {here}), '
                "which would not see what it changes",
                f'at = a component that samples pass before "{guard}"',
            )

    def take(self, way: Way, at: Instance, steps: Sequence[dict[str, Any]]) -> None:
        """The time that the steps at a component take, those from the supervisor on."""
        if way.number not in self._passed:
            return
        runs = [step.get("run", {}) for step in steps]
        first = [place for place, run in enumerate(runs) if run.items() >= _BUILT_IN.items()]
        for step in steps[first[0] if first else 0 :]:
            for what in ("cost", "delay"):
                if what in step:
                    self._spend(way, f"{what} of {step['kind']} at {at.id}", step[what], at.node, what)

    def _spend(self, way: Way, name: str, span: dict[str, Any], node: int, what: str) -> None:
        longest = _LONGEST.get(span["kind"])
        spent = (f"{name} ({span['kind']})", longest and longest(span), node if what == "cost" else None)
        self._taken[way.number].append(spent)

    def refuse_late(self) -> None:
        """Raises an error if the stages between a supervisor and its robot could make the robot hold too late."""
        for way in self._book.ways:
            for at in self._behind.get(way.number, ([], []))[1]:
                if at.model.board is not None and isinstance(at.model.cost, Chosen):
                    self._spend(way, f"cost of the board {at.id}", at.model.cost.plan, at.node, "delay")
            if way.number in self._passed:
                self._check_time(way, self._passed[way.number])

    def _check_time(self, way: Way, name: str) -> None:
        scenario, hook = self._book.scenario, self._book.scenario.hooks[name]
        period_ns = hook.period_ns or 0
        taken = self._taken[way.number] + _waits(way, period_ns)
        behind = f"behind the supervisor of the flow {way.id}"
        for what, longest, _ in taken:
            if longest is None:
                found = f"found {what} {behind}, which may take any time"
                allowed = "a longest time: a span, uniform, a trace, a histogram; playout fixed or overwrite, or none"
                raise scenario.error(("hooks", name), found, allowed)
        for node in {node for _, _, node in taken if node is not None}:
            cost = sum(longest or 0 for _, longest, there in taken if there == node)
            if cost >= period_ns:
                found = (
                    f"found {cost / 1e6:g} ms of work for a sample {behind} on {self._book.nodes[node]}, "
                    f"where one arrives every {period_ns / 1e6:g} ms: the backlog would grow"
                )
                allowed = f"less than its period, or a longer period, at most hold_ms = {_hold_ms(hook):g}"
                raise scenario.error(("hooks", name), found, allowed)
        total_ms = sum(longest or 0 for _, longest, _ in taken) / 1e6
        if total_ms > _hold_ms(hook):
            most = max(taken, key=lambda one: one[1] or 0)[0]
            found = (
                f"found {total_ms:g} ms {behind}, so that the robot would hold that much later (most: {most})"
            )
            raise scenario.error(("hooks", name), found, f"at most hold_ms, {_hold_ms(hook):g} ms")

    def refuse_code(self, way: Way, at: Instance) -> None:
        """The error of a component of the user's kind, whose code may change what a supervisor has let pass."""
        if guard := self._passed.get(way.number):
            found = (
                f'found the code of {at.kind} behind the supervisor "{guard}" of the flow {way.id}, '
                "which would not see what it changes"
            )
            allowed = f'hooks.{guard}.at = a component behind {at.id}, or an after that is before "{guard}"'
            raise self._book.scenario.error(("components", at.id, "kind"), found, allowed)

    def refuse_unguarded(self) -> None:
        """The error of a flow that reaches a robot past another's supervisor, and of a board that leaves its workspace."""
        for way in self._book.ways:
            limits, behind = self._behind.get(way.number, ([], []))
            for at in behind:
                self._check_board(way, at, limits)
        guarded = {way.path[-1].number: way for way in self._book.ways if way.number in self._passed}
        for way in self._book.ways:
            other = guarded.get(way.path[-1].number)
            if other is None or way.number in self._passed or not _guides(self._book, way):
                continue
            if way.model.direction == other.model.direction == "forward":
                name = self._passed[other.number]
                found = (
                    f"found the flow {way.name}, which reaches {way.path[-1].id} without passing the supervisor "
                    f'"{name}" of {other.name}'
                )
                allowed = "a supervisor on each flow that the robot follows, in each session"
                raise self._book.scenario.error(("hooks", name), found, allowed)

    def _check_board(self, way: Way, at: Instance, limits: list[list[float]]) -> None:
        """Checks that a board's safe values are in the workspace, too; those not given are 0."""
        if at.model.board is None:
            return
        safe = at.model.board.safe or ("zero" if at.kind.startswith("ms-") else "hold")
        given = [] if safe == "zero" else safe
        if not isinstance(given, list):
            return
        values = [*given, *[0.0] * (len(limits) - len(given))]
        for value, (low, high) in zip(
            values, limits * len(values) if len(limits) == 1 else limits, strict=False
        ):
            if not low <= value <= high:
                found = (
                    f'found {value:g}, outside the workspace of the supervisor "{self._passed[way.number]}"'
                )
                allowed = f'{low:g} to {high:g}, or safe = "hold"'
                raise self._book.scenario.error(("components", at.id, "board", "safe"), found, allowed)


def check(book: Book, name: str, hook: Hook, way: Way, place: int) -> None:
    """Refuses a supervisor on a flow's path that guards nothing, or lacks a required parameter.

    It needs a period, no longer than its threshold, and before a robot it must know where that begins.
    """
    if hook.period_ns is None:
        raise book.scenario.error(
            ("hooks", name, "period"), "is missing", 'the time between its ticks, such as "1 ms"'
        )
    if way.path[place].id not in _places(book, way):
        raise book.scenario.error(
            ("hooks", name),
            f"found a supervisor at {way.path[place].id} on the flow {way.id}",
            _allowed(book),
        )
    if own := {"period", "period_ms"} & set(hook.params):
        found = f"found {own.pop()} among the parameters"
        raise book.scenario.error(("hooks", name, "params"), found, 'period = "1 ms" of the hook itself')
    hold_ms = _hold_ms(hook)
    if isinstance(hold_ms, int | float) and 0 < hold_ms * 1e6 < hook.period_ns:
        raise book.scenario.error(
            ("hooks", name, "period"),
            f"found {hook.period_ns / 1e6:g} ms, longer than hold_ms = {hold_ms:g}",
            "a period of at most hold_ms, such as a tenth of it",
        )
    if way.path[-1].model.robot is not None and not {"measured", "start"} & set(hook.params):
        raise book.scenario.error(
            ("hooks", name, "params"),
            "measured or start is missing: where is the robot when the supervisor begins?",
            "measured = [0, 1] (indices of its position among the returned values) or start = [0.1, 0.2] "
            "(its initial position), a number for each value of a command",
        )
    back = [
        other
        for other in book.ways
        if other.model.direction == "backward"
        and codec(other.model) != "raw"
        and way.path[place] in other.path
    ]
    if "measured" in hook.params and hook.other is None and len(back) > 1:
        raise book.scenario.error(
            ("hooks", name, "other"),
            f"is missing where {', '.join(other.name for other in back)} return, and each may carry the measured position",
            f'the flow with the robot\'s position, such as other = "{back[0].id}"',
        )


def _hold_ms(hook: Hook) -> Any:
    """The threshold of a supervisor."""
    return (defaults("hook", SUPERVISOR) | parameters(hook.params))["hold_ms"]


def _waits(way: Way, period_ns: int) -> list[tuple[str, int | None, int | None]]:
    """The longest time that a sample may wait in the playout of a flow whose samples arrive every `period_ns`."""
    policy = way.model.playout
    if policy is None:
        return []
    given = defaults("playout", policy.kind) | parameters(policy.parameters())
    longest: int | None = given.get(_WAITS.get(policy.kind, ""))
    if policy.kind == "hold" and given["display"] != "burst" and (longest is None or longest > period_ns):
        longest = None
    return [(f"the playout {policy.kind}", longest, None)]


def check_values(book: Book, name: str, hook: Hook, way: Way, known: tuple[int | None, str]) -> None:
    """Refuses lists that do not fit the number of a command's values, if that is `known`."""
    number, told = known
    robot = way.path[-1].model.robot
    least = _NEEDS.get(robot.run, 0) if robot else 0
    for key in ("start", "measured", "workspace"):
        given = hook.params.get(key)
        if not isinstance(given, list) or (key == "workspace" and len(given) == 1):
            continue
        if number is None and len(given) < least:
            found = f"found {key} for {len(given)} values, but {way.path[-1].id} takes {least}"
            raise book.scenario.error(
                ("hooks", name, "params", key), found, f"{key} with {least} entries or more"
            )
        axes = len(given) if number is None else number - ("clutch" in hook.params)
        if len(given) == axes:
            continue
        clutch = ", one of them the clutch" * ("clutch" in hook.params)
        raise book.scenario.error(
            ("hooks", name, "params", key),
            f"found {key} for {len(given)} values, but {told} {number}{clutch}",
            f"{key} with {axes} entries" + ", or with one for all" * (key == "workspace"),
        )


def _guides(book: Book, way: Way) -> bool:
    """Whether a flow has values that a robot follows, or that come to the operator's hand."""
    hooks = book.scenario.hooks.values()
    decoded = any(hook.kind == "decode" and way.id in (hook.flow or [way.id]) for hook in hooks)
    return (codec(way.model) != "raw" or decoded) and (
        way.model.direction == "backward" or way.model.sink in (None, "robot")
    )


def _places(book: Book, way: Way) -> list[str]:
    """Components on a flow's path where a supervisor guards a robot that follows its values, or the operator's hand."""
    side = _SIDES[way.model.direction]
    return [at.id for at in way.path if at.kind.startswith(side)] if _guides(book, way) else []


def _allowed(book: Book) -> str:
    """Every possible place of a supervisor in a scenario, with the flow."""
    found = {way.id: _places(book, way) for way in book.ways}
    each = [f'flow = "{id}" with at = "{at}"' for id, places in found.items() for at in places]
    return "; ".join(each) or (
        'a flow whose values a robot follows, with at = "ss-com" or "ss-ei" among the components'
    )
