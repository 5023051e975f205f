"""Radio access as the plan has it: one table for each direction."""

from __future__ import annotations

from typing import Any

from tcpsbed.scenarios.model.radio import Lte, Nr, Wifi
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key

_OVER_NS3 = ("queue", "loss", "jitter", "duplicate", "corrupt", "outages", "rate_bps", "delay_ns")
"""What ns-3 decides by itself on a radio link."""


def radio(
    scenario: Scenario, key: Key, forward: dict[str, Any], backward: dict[str, Any], number: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The radio of both directions of a link whose first one has this number; empty for a wire."""
    found = forward.get("radio")
    if found != backward.get("radio"):
        raise scenario.error((*key, "radio"), "found it for one direction", "radio at the link itself")
    if found is None:
        return {}, {}
    if forward.get("duplex") in ("half", "simplex"):
        raise scenario.error((*key, "duplex"), f'found "{forward["duplex"]}" with a radio', '"full"')
    for name in () if isinstance(found, Nr) else _OVER_NS3:
        if name in forward or name in backward:
            said = name.partition("_")[0]
            raise scenario.error(
                (*key, said), f'found it with a radio of kind "{found.kind}"', f"a radio or {said}"
            )
    up, down = (_direction(found, first) for first in (True, False))
    return {"radio": up | {"other": number + 1}}, {"radio": down | {"other": number}}


def _direction(radio: Nr | Lte | Wifi, up: bool) -> dict[str, Any]:
    if isinstance(radio, Wifi):
        return {"kind": "wifi", "up": up, "distance_m": radio.distance_m}
    if isinstance(radio, Lte):
        return radio.model_dump() | {"up": up}
    access: dict[str, Any] = {"kind": "configured", "period_ns": radio.configured_ns}
    if radio.access == "request":
        access = {"kind": "request", "period_ns": radio.request_ns, "grant_ns": radio.grant_ns}
    names = ("kind", "slot_ns", "pattern", "processing_ns", "block_error", "again_ns", "retransmissions")
    given = sorted(f.alias or name for name, f in Nr.model_fields.items() if name in radio.model_fields_set)
    beside = {"given": given, "lena": radio.lena.model_dump()}
    return {name: getattr(radio, name) for name in names} | {"up": up, "access": access} | beside
