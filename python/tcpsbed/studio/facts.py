"""Facts for a page that do not depend on its run: shipped profiles of links, and terms of the glossary."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tcpsbed.proxy import profile
from tcpsbed.views import glossary

NOT_SET = ("slots", "duplicate", "medium")
"""What a profile's link may have and an event cannot change."""


@cache
def presets() -> str:
    """The shipped profiles as JSON: what events can set of each direction, what they cannot, and its source."""
    return json.dumps([_preset(name) for name in profile.shipped() if name != profile.STRAIGHT])


def _preset(name: str) -> dict[str, Any]:
    found = profile.load(name)
    forward, backward = found.directions()
    keys = {key.removesuffix("_ns") for link in found.network["links"] for key in link}
    bursts = any("r" in link.get("loss", {}) for link in found.network["links"])
    return {
        "name": name,
        "about": found.description,
        "forward": forward,
        "backward": backward,
        "not_set": [key for key in NOT_SET if key in keys] + ["loss in bursts"] * bursts,
    }


@cache
def terms() -> str:
    """Each term of the glossary with its meaning, as JSON."""
    return json.dumps(glossary.meanings())


FACTS = {"/presets.json": presets, "/terms.json": terms}
"""By address."""
