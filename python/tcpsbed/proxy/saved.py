"""A profile with the changes that somebody made while it was in force, as a file of its own."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tcpsbed.proxy.profile import KEYS
from tcpsbed.scenarios.dump import dump_document
from tcpsbed.scenarios.model.scenario import texts

_WAYS = ("forward", "backward")
_KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "rate_bps": ("rate", lambda bps: f"{bps:.0f} bit/s"),
    "delay_ns": ("delay", lambda ns: f"{ns / 1e6:.12g} ms"),
    "loss": ("loss", lambda share: f"{100 * share:.6g} %"),
    "jitter": ("jitter", lambda jitter: _spans(jitter["delay"]) | {"reorder": jitter["reorder"]}),
    "limit_bytes": ("queue", lambda limit: f"{limit} B"),
    "limit_packets": ("queue", lambda limit: f"{limit} packets"),
}
"""Keys of an event's action, each with the key of a link that it sets and how that is written."""


def profile(scenario: str, told: Iterable[Mapping[str, Any]], network: Mapping[str, Any]) -> str:
    """The network of a scenario's text as a profile.

    Parameters
    ----------
    scenario
        The text with which an emulated network began.
    told
        Messages of its page, in order: events that it took (`asked`), and the text of each profile that took the place of
        the one before (`profile`).
    network
        Of the plan, for the names of links and of background traffic.
    """
    document = _part(scenario)
    cut: set[str] = set()
    stopped: set[str] = set()
    for one in told:
        if one["k"] == "profile":
            document, stopped = _part(one["text"]), set()
        elif one["k"] == "asked" and "refused" not in one:
            for action in one["actions"]:
                names = [network["links"][number]["name"] for number in action.get("links", ())]
                _set(document, names, action)
                if action.get("up") is not None:
                    (cut.difference_update if action["up"] else cut.update)(names)
                entries = {
                    network["traffic"][number]["name"].split(".")[0] for number in action.get("traffic", ())
                }
                if entries:
                    (stopped.difference_update if action["running"] else stopped.update)(entries)
    traffic = {name: table for name, table in document.get("traffic", {}).items() if name not in stopped}
    notes = [f"# {name} was cut, which a profile cannot say.\n" for name in sorted(cut)]
    return "".join(notes) + dump_document(document | ({"traffic": traffic} if "traffic" in document else {}))


def _part(scenario: str) -> dict[str, Any]:
    """What a profile can have of a scenario; its folder only if it names files there."""
    found = tomllib.loads(scenario)
    part = {key: found[key] for key in KEYS if key in found and key != "base"}
    folder = Path(found["base"])
    return part | ({"base": str(folder)} if any((folder / text).is_file() for text in texts(part)) else {})


def _set(document: dict[str, Any], names: list[str], action: Mapping[str, Any]) -> None:
    """Gives links what an event gave them; both directions of one have it in common."""
    given = {name: write(action[key]) for key, (name, write) in _KEYS.items() if action.get(key) is not None}
    links = document.setdefault("links", {})
    for base, ways in _by_link(names).items():
        link = links.setdefault(base, {})
        table = link.setdefault(ways[0], {}) if len(ways) == 1 and ways[0] else link
        if "queue" in given and isinstance(table.get("queue"), dict):
            table["queue"] |= {"limit": given.pop("queue")}
        table.update(given)
        for way in ways if table is link else ():
            for key in given:
                link.get(way, {}).pop(key, None)


def _spans(model: Mapping[str, Any]) -> dict[str, Any]:
    """A delay model as a scenario has it."""
    return {
        key.removesuffix("_ns"): f"{value:.0f} ns" if key.endswith("_ns") else value
        for key, value in model.items()
    }


def _by_link(names: list[str]) -> dict[str, list[str]]:
    """Directions by the name of their link, empty for one that has none."""
    found: dict[str, list[str]] = {}
    for name in names:
        base, _, way = name.rpartition(".")
        base, way = (base, way) if way in _WAYS else (name, "")
        found.setdefault(base, []).append(way)
    return found
