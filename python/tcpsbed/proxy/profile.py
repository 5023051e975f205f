"""Profiles: the network between two programs, in the keys of a scenario.

```toml
description = "an LTE uplink and downlink"     # mine.toml

[links.path]                                   # any key of a scenario's link; without `from` and `to` it leads
rate = "20 Mbit/s"                             # from `near` (the clients' side) to `far` (the servers')
delay = "15 ms"
queue = "100 packets"
backward = { rate = "50 Mbit/s" }
```
`topology` and `traffic` are allowed too, so that a profile may be a whole network with background traffic between the
places `near` and `far`. A profile is a piece of a scenario: a scenario can include it and say where the link goes.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.load import override
from tcpsbed.scenarios.origin import Option, Origin, keys_of, place_of

NEAR, FAR = "near", "far"
KEYS = ("name", "description", "base", "seed", "links", "topology", "traffic")
"""Keys of a scenario that a profile may have, beside `include`."""
EULER = 0.5772156649015329
"""Euler's constant: the mean of Gumbel's law lies this many scales above its mode."""
TOML = " \"'"
"""What stands around a value of an override and is no part of it."""
STRAIGHT = "direct"
"""The profile that does nothing, for those who give settings on the command line."""


@dataclass(frozen=True)
class Profile:
    """The network between two programs.

    Attributes
    ----------
    name, description : str
        What it is called, with what was set over it (`lte, delay 40 ms`), and where its numbers come from.
    file : Path
        Where it was read from.
    network : dict
        As the native module takes it; vertex 0 is `near`, vertex 1 is `far`.
    seed : int
        Seed of everything random in it.
    origin : Origin
        Its tables as a scenario has them, with two nodes and nothing on them.
    """

    name: str
    description: str
    file: Path
    network: dict[str, Any]
    seed: int
    origin: Origin

    def left_out_of_streams(self) -> list[str]:
        """Settings that a TCP port cannot have: what ends here has delay and rate only. [design: kernel's TCP]"""
        keys = set().union(*(link.keys() for link in self.network["links"]))
        left = sorted(keys - {"name", "from", "to", "rate_bps", "delay_ns", "medium"})
        return [*left, *(["traffic"] if self.network["traffic"] else [])]

    def directions(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of the path from near to far, and back: least rate, delay, mean jitter (`None`: of another kind), loss, and
        the limit of its first queue as a scenario has it.
        """
        return self._sums(0, 1), self._sums(1, 0)

    def outage(self) -> tuple[float, float] | None:
        """The longest time in ms for which the slots of a link leave it closed in each cycle, and the cycle."""
        slots = [link["slots"] for link in self.network["links"] if "slots" in link]
        closed = [(one["cycle_ns"] - sum(b - a for a, b in one["open"]), one["cycle_ns"]) for one in slots]
        return max(((span / 1e6, cycle / 1e6) for span, cycle in closed), default=None)

    def _sums(self, here: int, end: int) -> dict[str, Any]:
        links = way(self.network["links"], here, end)
        jitters = [_mean_ms(link["jitter"]["delay"]) for link in links if "jitter" in link]
        return {
            "rate_bps": min((link["rate_bps"] for link in links if "rate_bps" in link), default=None),
            "delay_ms": sum(link.get("delay_ns", 0) for link in links) / 1e6,
            "jitter_ms": None if None in jitters else sum(filter(None, jitters)),
            "queue": next((_limit(link["queue"]) for link in links if "queue" in link), None),
            "loss": 1 - math.prod(1 - (lost(link.get("loss", {})) or 0.0) for link in links),
        }


def way(links: Sequence[Mapping[str, Any]], here: int, end: int) -> list[Mapping[str, Any]]:
    """The links from one vertex to another by the fewest links; none where no way leads there."""
    ways: dict[int, list[Mapping[str, Any]]] = {here: []}
    for vertex in (reached := [here]):
        for link in links:
            if link.get("from") == vertex and link["to"] not in ways:
                ways[link["to"]] = [*ways[vertex], link]
                reached.append(link["to"])
    return ways.get(end, [])


def _mean_ms(law: Mapping[str, Any]) -> float | None:
    """The mean of a law of delays, of those that shipped profiles have."""
    means = {
        "uniform": lambda: (law["low_ns"] + law["high_ns"]) / 2,
        "exponential": lambda: law["mean_ns"] + law["shift_ns"],
        "gumbel": lambda: law["mode_ns"] + EULER * law["scale_ns"],
    }
    return means[law["kind"]]() / 1e6 if law["kind"] in means else None


def _limit(queue: Mapping[str, Any]) -> str | None:
    """The limit of a queue as a scenario has it."""
    if "limit_packets" in queue:
        return f"{queue['limit_packets']} packets"
    return f"{queue['limit_bytes']} B" if "limit_bytes" in queue else None


def lost(loss: Mapping[str, Any]) -> float | None:
    """The share that a loss model of a plan takes in the long run; `None` of code of one's own."""
    if "r" not in loss:
        return loss.get("p")
    bad = loss["p"] / (loss["p"] + loss["r"]) if loss["p"] else 0.0
    return float(bad * loss["loss_bad"] + (1 - bad) * loss["loss_good"])


def shipped() -> list[str]:
    """Names of the profiles that come with tcpsbed."""
    entries = (entry.name for entry in (files("tcpsbed") / "data" / "links").iterdir())
    return sorted(name.removesuffix(".toml") for name in entries if name.endswith(".toml"))


def load(name: str | Path, overrides: Sequence[str] = ()) -> Profile:
    """A profile by its name, or from a file.

    Parameters
    ----------
    name : str or Path
        A shipped one, or a TOML file.
    overrides : sequence of str
        Texts such as `links.path.delay="30 ms"`.

    Raises
    ------
    ConfigError, DataError
        If anything in it is not as it should be.
    """
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return _read(path, overrides)
    if str(name) not in shipped():
        raise DataError(
            f'found no profile "{name}"',
            key="--profile",
            allowed=f"a TOML file, or {close_match(str(name), shipped())}",
        )
    with as_file(files("tcpsbed") / "data" / "links" / f"{name}.toml") as file:
        return _read(file, overrides)


def _read(path: Path, overrides: Sequence[str]) -> Profile:
    bare = scenarios.tables(path).document
    _refuse_new(bare, overrides)
    origin = scenarios.tables(path)
    for text in overrides:
        _both_ways(origin.document, text)
        override(origin, [text])
    for key in origin.document:
        if key not in KEYS:
            raise origin.error((key,), "found a key that does not describe a network", ", ".join(KEYS))
    stub: dict[str, Any] = {"nodes": {NEAR: {}, FAR: {}}, "components": {}, "flows": {}}
    origin.document = stub | {"name": path.stem} | origin.document | {"links": _led(origin.document)}
    scenario = scenarios.Scenario.of(origin)
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        network = scenarios.compile_network(scenario, folder)
    name = _named(scenario.name, overrides, nothing=_is_nothing(bare))
    return Profile(name, scenario.description, path, network, scenario.seed, origin)


def _is_nothing(document: dict[str, Any]) -> bool:
    """Whether a profile is the ground for settings alone."""
    return document.get("links", {}) in ({}, {"path": {}}) and not {"topology", "traffic"} & document.keys()


def _named(name: str, overrides: Sequence[str], *, nothing: bool) -> str:
    """The name of a profile, unless it is `nothing`, with the settings that override it."""
    pairs = [(text.partition("="), text.given if isinstance(text, Option) else "") for text in overrides]
    said = [
        f"{key.removeprefix('links.path.').strip()} {given or value.strip(TOML)}"
        for (key, _, value), given in pairs
    ]
    return ", ".join(said if said and nothing else [name, *said])


def settings_of(link: Mapping[str, str | float]) -> list[str]:
    """Settings of the link `path` as overrides: `{"delay": "20 ms"}` becomes `links.path.delay="20 ms"`."""
    return [f"links.path.{key}={json.dumps(value)}" for key, value in link.items()]


def _refuse_new(document: dict[str, Any], overrides: Sequence[str]) -> None:
    """An override changes a link of the profile; a new link would bypass it."""
    links = document.get("links", {"path": {}})
    names = list(links) if isinstance(links, dict) else []
    for text in overrides:
        parts = text.partition("=")[0].split(".")
        if parts[0] == "links" and len(parts) > 1 and parts[1].strip() not in names:
            if isinstance(text, Option):
                key, _, value = text.removeprefix("links.path.").partition("=")
                ways = (f"--set 'links.{name}.{key}={value}'" for name in names)
                found = 'found a profile without the link "path"'
                raise ConfigError(found, key=text.typed, allowed=", ".join(ways) or "a profile with links")
            raise ConfigError(
                f'found "{parts[1]}"', file=place_of(text), key="links", allowed=close_match(parts[1], names)
            )


def _both_ways(document: dict[str, Any], text: str) -> None:
    """An override of a link's key holds in both directions: what each has of its own under this key is dropped."""
    links = document.get("links")
    for _, key in keys_of(text):
        link = links.get(key[1]) if isinstance(links, dict) and key[0] == "links" and len(key) == 3 else None
        for way in ("forward", "backward"):
            own = link.get(way) if isinstance(link, dict) else None
            if isinstance(own, dict):
                own.pop(str(key[2]), None)


def _led(document: dict[str, Any]) -> dict[str, Any]:
    """The links, those without ends led from near to far; without any, a link that does nothing."""
    links = document.get("links", {})
    if not isinstance(links, dict):
        found: dict[str, Any] = links  # the scenario's model says what is wrong with it
        return found
    ends = {"from": NEAR, "to": FAR}
    named = "graph" in document.get("topology", {})
    return {
        name: ends | link
        if isinstance(link, dict) and not named and not {"from", "to"} & link.keys()
        else link
        for name, link in (links or {"path": {}}).items()
    }
