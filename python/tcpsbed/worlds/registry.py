"""The worlds by name: a world is a pair of hosting and network, one line each; common pairs have names of their own.

```
 tcpsbed run my.toml --world mininet          a named pair
 tcpsbed run my.toml --world hosts+emulator   any pair: HOSTING+NETWORK
 tcpsbed run my.toml --world ./mine.py:Mine+emulator   a hosting of your own
```
A class is imported when its world is asked for.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import door, hooks
from tcpsbed.clocks import BETWEEN, NS3_VIRTUAL, REAL, SIMULATED, VIRTUAL
from tcpsbed.errors import ConfigError, WorldError
from tcpsbed.nearest import close_match, meant
from tcpsbed.worlds.contract import Hosting, Network

HOSTINGS: dict[str, str] = {
    "process": "tcpsbed.worlds.local:Processes",
    "namespaces": "tcpsbed.worlds.local:Namespaces",
    "mininet": "tcpsbed.worlds.mininet:Hosts",
    "containers": "tcpsbed.worlds.containers:Containers",
    "hosts": "tcpsbed.worlds.hosts:Hosts",
}
"""Where nodes can run: name and class."""

NETWORKS: dict[str, str] = {
    "none": "tcpsbed.worlds.between:Direct",
    "emulator": "tcpsbed.worlds.between:Emulator",
    "ns3": "tcpsbed.worlds.ns3:Ns3",
    "ns3-tap": "tcpsbed.worlds.ns3_devices:Descriptor",
    "ns3-tapbridge": "tcpsbed.worlds.ns3_devices:Bridge",
    "mininet": "tcpsbed.worlds.mininet:Switches",
    "ovs": "tcpsbed.worlds.mininet:OpenVSwitch",
    "ovs-user": "tcpsbed.worlds.mininet:UserSpace",
}
"""What can lie between them: name and class."""

PAIRS: dict[str, tuple[str, str]] = {
    "namespaces": ("namespaces", "emulator"),
    "hosts": ("hosts", "none"),
    "ns3": ("process", "ns3"),
    "mininet": ("mininet", "mininet"),
    "containers": ("containers", "emulator"),
}
"""Pairs with names of their own, beside `virtual` (no pair: simulated) and `real` (see `resolve`)."""

ALONE: dict[str, str] = {
    VIRTUAL: "simulated clock and network",
    NS3_VIRTUAL: "simulated clock, the network by ns-3",
    REAL: "processes on loopback, with the emulator where the scenario has links",
}
"""What the worlds are that are no pair."""


@dataclass(frozen=True)
class World:
    """A pair of hosting and network."""

    name: str
    hosting: type[Hosting]
    network: type[Network]

    def missing(self) -> str | None:
        """What this machine lacks for it; `None` if it is ready."""
        return self.hosting.missing() or (self.network.missing() if self.hosting.here else None)


def names() -> list[str]:
    """What `--world` takes, without the pairs that have no name."""
    return [*SIMULATED, REAL, *PAIRS]


def described() -> dict[tuple[str, str], str]:
    """What every built-in hosting, network and named world is, by kind and name."""
    hostings = {name: _load(code).what for name, code in HOSTINGS.items()}
    networks = {name: _load(code).what for name, code in NETWORKS.items()}
    worlds = ALONE | {name: f"{hostings[of]}; {networks[by]}" for name, (of, by) in PAIRS.items()}
    kinds = {"hosting": hostings, "network": networks, "world": worlds}
    return {(kind, name): what for kind, found in kinds.items() for name, what in found.items()}


def pairs() -> list[str]:
    """Every pair of hosting and network that fits together and has no name of its own, as `--world` takes it."""
    return [
        f"{hosting}+{network}"
        for hosting in HOSTINGS
        for network in NETWORKS
        if (hosting, network) not in PAIRS.values() and _load(NETWORKS[network]).unfit(hosting) is None
    ]


def check(name: str) -> None:
    """Raises `WorldError` if there is no such world, or it is a pair that does not fit together."""
    if not isinstance(name, str):
        raise ConfigError(f"found {type(name).__name__}", key="world", allowed='a text, such as "virtual"')
    if name not in (*SIMULATED, REAL):
        _world(name, *_pair(name))


def require(name: str) -> None:
    """Raises `WorldError` as `check` does, and where this machine lacks something for the world: with what mends it.

    What a scenario asks of the world is looked at when it runs.
    """
    check(name)
    if name in (VIRTUAL, REAL):
        return
    ns3 = _load(NETWORKS["ns3"])
    lack = ns3.missing() if name == NS3_VIRTUAL else named(name).missing()
    if lack:
        raise unready(name, lack)


def unready(name: str, lack: str) -> WorldError:
    """The message for a world that this machine cannot provide."""
    return WorldError(f"world {name} is not ready here: it needs {lack}")


def parts(name: str, plan: Mapping[str, Any]) -> tuple[str, str]:
    """Hosting and network of a world for a plan: `real` is processes, or namespaces with `real.network`, and the
    emulator if the scenario has links. A user's own programs have no hosting.

    Raises
    ------
    WorldError
        If there is no such world.
    """
    if name in BETWEEN:
        return "", "emulator"
    if name != REAL:
        return _pair(name)
    if plan["real"]["network"] == "namespaces":
        return _pair("namespaces")
    return "process", "emulator" if plan["network"]["links"] else "none"


def has_network(name: str, plan: Mapping[str, Any]) -> bool:
    """Whether something carries out what a plan says of links between the nodes of a world."""
    return name in SIMULATED or parts(name, plan)[1] != "none"


def takes_events(name: str, plan: Mapping[str, Any]) -> bool:
    """Whether what lies between the nodes of a world takes events that are asked for while it runs."""
    return name == VIRTUAL or (name != NS3_VIRTUAL and parts(name, plan)[1] == "emulator")


def resolve(name: str, plan: Mapping[str, Any]) -> World:
    """The classes of a world for a plan.

    Raises
    ------
    WorldError
        If there is no such world, or hosting and network do not fit together: with the reason and the remedy.
    """
    return _world(name, *parts(name, plan))


def named(name: str) -> World:
    """The classes of a named pair, or of HOSTING+NETWORK.

    Raises
    ------
    WorldError
        As `resolve`.
    """
    return _world(name, *_pair(name))


def _world(name: str, hosting: str, network: str) -> World:
    world = World(
        name,
        _own(_place(HOSTINGS, "hosting", hosting), Hosting),
        _own(_place(NETWORKS, "network", network), Network),
    )
    if reason := world.network.unfit(hosting):
        raise WorldError(f'found "{name}": {reason}', key="--world")
    return world


def _pair(name: str) -> tuple[str, str]:
    hosting, plus, network = name.partition("+")
    if not plus and name in PAIRS:
        return PAIRS[name]
    if not plus:
        allowed = f"{close_match(name, names())}, or HOSTING+NETWORK, such as hosts+emulator ({_choices()})"
        raise WorldError(f'found "{name}"', key="--world", allowed=allowed)
    if not (_place(HOSTINGS, "hosting", hosting) and _place(NETWORKS, "network", network)):
        allowed = f"HOSTING+NETWORK, such as hosts+emulator ({_choices()}){meant(name, pairs())}"
        raise WorldError(f'found "{name}"', key="--world", allowed=allowed)
    return hosting, network


def _place(table: dict[str, str], kind: str, name: str) -> str:
    """The place of a class: built in, of an installed package, or the user's code itself; empty if there is none."""
    code = table.get(name) or door.named(kind, name)
    return code if ":" in code else ""


def _choices() -> str:
    return f"HOSTING: {', '.join(HOSTINGS)}; NETWORK: {', '.join(NETWORKS)}; both: or code such as ./mine.py:Mine"


def _own(code: str, base: Any) -> Any:
    """The class of a hosting or a network, which may be a user's."""
    module, _, name = code.rpartition(":")
    if module.startswith("tcpsbed."):
        return _load(code)
    found = hooks.find(str(Path(module).resolve()) if module.endswith(".py") else module, name)
    if not (inspect.isclass(found) and issubclass(found, base)) or inspect.isabstract(found):
        methods = ", ".join(f"{method}(self)" for method in sorted(base.__abstractmethods__))
        allowed = f"class {name}({base.__name__}) with {methods}, {base.__name__} of {base.__module__}"
        raise WorldError(
            f'found "{code}", which is no {base.__name__.lower()}', key="--world", allowed=allowed
        )
    return found


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
