"""How channels are protected, and where their keys are from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tcpsbed.clocks import BETWEEN, SIMULATED

Found = Mapping[str, Any]

NONE = "none"
UNPROTECTED = "NOT PROTECTED: anybody on its network can send commands"
"""Of a channel without `security`."""
CIPHERS = {"aead": "aes-128-gcm", "srtp": "aes-128-gcm", "hmac": "hmac-sha256-128", "tls": "aes-256-gcm"}
"""What a method uses unless the scenario says otherwise."""


def protection(source: Found) -> list[dict[str, str]]:
    """How each channel of a run is protected; nothing of a virtual run without security and attacks."""
    plan, scenario, real = source.get("plan") or {}, source.get("scenario"), source["world"] not in SIMULATED
    channels = plan.get("channels") or ()
    attacked = any(event["action"]["kind"] == "attack" for event in plan.get("events") or ())
    secured = any(one.get("security") for one in channels)
    if source["world"] in BETWEEN or not (real or attacked or secured):
        return []
    return [_protected(one, scenario, real=real) for one in channels]


def _protected(channel: Found, scenario: Any, *, real: bool) -> dict[str, str]:
    name, found = str(channel["name"]), channel.get("security")
    if not found:
        return {"channel": name, "method": NONE, "cipher": "", "key": ""}
    kind, file = str(found["kind"]), _key_file(scenario, name)
    key = f"from {file}" if file else "drawn for each run"
    simulated = f"from the seed (on sockets {key})"
    return {
        "channel": name,
        "method": kind,
        "cipher": str(found.get("cipher") or CIPHERS.get(kind, "")),
        "key": key if real else simulated,
    }


def _key_file(scenario: Any, channel: str) -> str:
    """The file with a channel's key, as the scenario writes it."""
    channels = getattr(scenario, "channels", None) or {}
    security = getattr(channels.get(channel.partition("@")[0]), "security", None)
    return str(security.parameters().get("key_file") or "") if security is not None else ""


def sentences(found: Iterable[Found]) -> Iterator[str]:
    """A line a channel: `channel session@a-b: aead (aes-128-gcm), key from lab.key`."""
    for one in found:
        how = f"{one['method']} ({one['cipher']}), key {one['key']}" if one["method"] != NONE else UNPROTECTED
        yield f"channel {one['channel']}: {how}"
