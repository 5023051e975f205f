"""Profiles: what lies between two programs, in the keys of a scenario's network.

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
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from tcpsbed import config
from tcpsbed.config.model.table import close_match
from tcpsbed.errors import ConfigError, DataError

NEAR, FAR = "near", "far"
KEYS = ("name", "description", "base", "seed", "links", "topology", "traffic")
"""Keys of a scenario that a profile may have, beside `include`."""
STRAIGHT = "direct"
"""The profile that does nothing, for those who give settings on the command line."""


@dataclass(frozen=True)
class Profile:
    """What lies between two programs.

    Attributes
    ----------
    name, description : str
        What it is called, and where its numbers come from.
    file : Path
        Where it was read from.
    network : dict
        As the native module takes it; vertex 0 is `near`, vertex 1 is `far`.
    seed : int
        Seed of everything random in it.
    """

    name: str
    description: str
    file: Path
    network: dict[str, Any]
    seed: int

    def left_out_of_streams(self) -> list[str]:
        """Settings that a TCP port cannot have: what ends here has delay and rate only. [design: kernel's TCP]"""
        keys = set().union(*(link.keys() for link in self.network["links"]))
        left = sorted(keys - {"name", "from", "to", "rate_bps", "delay_ns", "medium"})
        return [*left, *(["traffic"] if self.network["traffic"] else [])]


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
    _refuse_new(config.tables(path).document, overrides)
    origin = config.tables(path, overrides)
    for key in origin.document:
        if key not in KEYS:
            raise origin.error((key,), "found a key that says nothing about a network", ", ".join(KEYS))
    stub: dict[str, Any] = {"nodes": {NEAR: {}, FAR: {}}, "components": {}, "flows": {}}
    origin.document = stub | {"name": path.stem} | origin.document | {"links": _led(origin.document)}
    scenario = config.build(origin)
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        network = config.compile_network(scenario, folder)
    return Profile(scenario.name, scenario.description, path, network, scenario.seed)


def settings_of(link: Mapping[str, str | float]) -> list[str]:
    """Settings of the link `path` as overrides: `{"delay": "20 ms"}` becomes `links.path.delay="20 ms"`."""
    return [f"links.path.{key}={json.dumps(value)}" for key, value in link.items()]


def _refuse_new(document: dict[str, Any], overrides: Sequence[str]) -> None:
    """An override changes a link of the profile; a new one would be a way around it."""
    links = document.get("links", {"path": {}})
    names = list(links) if isinstance(links, dict) else []
    for text in overrides:
        parts = text.partition("=")[0].split(".")
        if parts[0] == "links" and len(parts) > 1 and parts[1].strip() not in names:
            raise ConfigError(
                f'found "{parts[1]}"', file=f"--set {text}", key="links", allowed=close_match(parts[1], names)
            )


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
