"""Which settings of an emulated network were changed while it ran: by a profile that was read again, or by events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEYS = ("rate_bps", "delay_ns", "loss", "jitter")
"""Keys of a link in a plan that are judged."""
_ABSENT = {"delay_ns": 0, "loss": {"kind": "random", "p": 0.0}}
"""What a link has whose plan does not say it."""


class Changes:
    """`found`: of each link that was changed the keys that were, in the order of the changes; none of one that only drew
    from the beginning again, as part of a network that took the place of another.
    """

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def profile(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Notes what differs between a network and the one that took its place."""
        old, new = ({link["name"]: link for link in network["links"]} for network in (before, after))
        for name in (old | new) if before != after else ():
            self.found.setdefault(name, [])
            self._note(name, old.get(name, {}), new.get(name, {}))

    def event(self, line: Mapping[str, Any], network: Mapping[str, Any]) -> None:
        """Notes what an event, as a plan has it, sets to other values than those of the network before it."""
        given = {key: value for key, value in line["action"].items() if key in KEYS and value is not None}
        if "loss" in given:
            given["loss"] = {"kind": "random", "p": given["loss"]}
        for number in line["action"].get("links", ()):
            link = network["links"][number]
            self._note(link["name"], link, {**link, **given})

    def _note(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        known = self.found.get(name, [])
        before, after = ({**_ABSENT, **link} for link in (old, new))
        if keys := [key for key in KEYS if before.get(key) != after.get(key) and key not in known]:
            self.found[name] = known + keys
