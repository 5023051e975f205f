"""What the scenario's own attacks did: what was accepted of them, and what a run refused because of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcpsbed.errors import counted

Found = Mapping[str, Any]

NOUNS = {
    "forge": "forged datagrams",
    "replay": "replayed datagrams",
    "tamper": "changed datagrams",
    "flood": "random datagrams",
    "reset": "forged ends of its connection",
    "clock-lie": "lies about the clock",
}
"""What an attacker sends, by the kind of its attack."""


def of(effects: Iterable[Found]) -> list[Found]:
    """The attacks among the effects of events."""
    return [effect for effect in effects if effect["kind"] in NOUNS]


def accepted(effects: Iterable[Found], stages: Sequence[Found] = ()) -> list[str]:
    """A sentence for each attack of which something was accepted; and what supervisors there refused."""
    found = [effect for effect in of(effects) if effect["accepted"]]
    said = [_accepted(effect) for effect in found]
    places = dict.fromkeys((str(effect["component"]), effect["flow"]) for effect in found)
    watched = ((place, refused(*place, stages)) for place in places)
    return said + [
        f"the supervisor at {component} refused {counted(n, 'command')} of {flow} in the whole run: what was accepted"
        f" entered {component}, and not all of it was obeyed"
        for (component, flow), n in watched
        if n
    ]


def _accepted(effect: Found) -> str:
    """`kinematic accepted 50 of 50 forged datagrams (forged commands, from 2.000 s)`."""
    kind, noun, when = (
        effect["kind"],
        NOUNS[effect["kind"]],
        f"{effect['name']}, from {effect['from_s']:.3f} s",
    )
    if kind == "reset":
        lost = counted(effect["accepted"], "connection")
        where = f"channel {effect['channel']}" if effect.get("channel") else effect["flow"]
        return f"{where} lost {lost} by {effect['sent']:,} {noun} ({when})"
    where = effect["flow"] or f"the clock of {effect.get('node') or 'its nodes'}"
    return f"{where} accepted {effect['accepted']:,} of {effect['sent']:,} {noun} ({when})"


def refused(component: str, flow: str, stages: Iterable[Found]) -> int | None:
    """Commands that a supervisor at a component refused; none where there is none."""
    there = [
        one for one in stages if one.get("watch") and (one["component"], one["flow"]) == (component, flow)
    ]
    return sum(one["failures"] for one in there) if there else None


def sent(effects: Iterable[Found]) -> list[str]:
    """How many datagrams all attacks sent, and how many of them were accepted, in a line; nothing without attacks."""
    found = of(effects)
    if not sum(effect["sent"] for effect in found):
        return []
    known = [effect for effect in found if effect["accepted"] is not None]
    # Of a reset connections are counted, not datagrams.
    told = sum(effect["accepted"] for effect in known if effect["kind"] != "reset")
    ends = sum(effect["accepted"] for effect in known if effect["kind"] == "reset")
    n = sum(effect["sent"] for effect in found)
    said = f"{n:,} datagram{'' if n == 1 else 's'} sent, {f'{told:,}' if told else 'none'} accepted"
    said += f", {counted(ends, 'connection')} lost by them" if ends else ""
    unknown = [effect["name"] for effect in found if effect["accepted"] is None and effect["sent"]]
    return [said + (f" (unknown of {', '.join(unknown)})" if unknown else "")]


def share(effect: Found) -> float | None:
    """Of the datagrams of an attack those that were accepted; none where that is not known."""
    known = effect["kind"] in NOUNS and effect["kind"] != "reset" and effect["accepted"] is not None
    return effect["accepted"] / effect["sent"] if known and effect["sent"] else None


class Excuses:
    """What the datagrams of the scenario's own attacks can explain, each once.

    Parameters
    ----------
    effects
        Those of the run's events.
    ends
        Endpoints of channels, which say what they refused.
    """

    def __init__(self, effects: Iterable[Found], ends: Iterable[Found] = ()) -> None:
        found = of(effects)
        self._refused: Counter[tuple[str, str]] = Counter()
        self._outside: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._changed: Counter[str] = Counter()
        self._accepted: set[str] = set()
        for effect in found:
            for node, n in (effect.get("to") or {}).items():
                if effect["kind"] == "clock-lie":
                    self._outside[node] += n
                elif effect.get("channel"):
                    self._refused[effect["channel"], node] += n
            if effect["kind"] == "reset" and effect.get("channel"):
                self._ended[effect["channel"]] += effect["accepted"] or 0
            if effect["kind"] == "tamper":
                self._changed[effect["flow"]] += effect["sent"]
            if effect["kind"] in ("forge", "replay", "tamper") and effect["accepted"]:
                self._accepted.add(effect["flow"])
        for end in ends:
            place = end["channel"], end["side"]
            self._ended[end["channel"]] += min(end.get("refused_connections") or 0, self._refused[place])

    def refused(self, end: Found, n: int) -> tuple[int, int]:
        """Of so many datagrams that a side of a channel refused, those of attacks, and the others."""
        return self._take(self._refused, (end["channel"], end["side"]), n)

    def outside(self, node: str, n: int) -> tuple[int, int]:
        """The same of datagrams outside channels that a node refused."""
        return self._take(self._outside, node, n)

    def changed(self, flow: str, n: int) -> tuple[int, int]:
        """The same of samples of which a bit was changed."""
        return self._take(self._changed, flow, n)

    def ends(self, end: Found) -> bool:
        """Whether attacks ended all connections that a side of a channel lost."""
        return 0 < (end.get("connections_lost") or 0) <= self._ended[end["channel"]]

    def accepts(self, flow: str) -> bool:
        """Whether a flow accepted something of an attacker, behind which copies may be new again."""
        return flow in self._accepted

    @staticmethod
    def _take(left: Counter[Any], key: Any, n: int) -> tuple[int, int]:
        taken = min(n, left[key])
        left[key] -= taken
        return taken, n - taken
