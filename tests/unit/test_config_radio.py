"""Radio links of a scenario: one table for both directions, each with its side of the access."""

from __future__ import annotations

import pytest
from texts import loaded

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError

NR = """
[components]
ms-com = "mobile"
ss-com = "fixed"
[flows.kinematic]
[links.air]
from = "mobile"
to = "fixed"
rate = "80 Mbit/s"
radio = { kind = "nr", slot = "0.25 ms", pattern = "DDSU", access = "configured", configured = "1 ms" }
"""


def links(tmp_path, *changes):
    return scenarios.compile_plan(loaded(NR, changes), tmp_path)["network"]["links"]


def test_both_directions_have_their_side(tmp_path):
    up, down = (link["radio"] for link in links(tmp_path))
    assert (up["up"], down["up"]) == (True, False)
    assert up["access"] == {"kind": "configured", "period_ns": 1_000_000}
    assert (up["slot_ns"], up["pattern"]) == (250_000, "DDSU")


def test_lte_and_wifi_are_handed_to_ns3_whole(tmp_path):
    radio = 'radio = { kind = "lte", scheduler = "rr", distance_m = 200 }'
    text = "\n".join(radio if line.startswith("radio") else line for line in NR.splitlines())
    with pytest.raises(ConfigError, match=r"links\.air\.rate"):
        scenarios.compile_plan(loaded(text, []), tmp_path)
    text = text.replace('rate = "80 Mbit/s"\n', "")
    lte = scenarios.compile_plan(loaded(text, []), tmp_path)["network"]["links"]
    assert lte[0]["radio"] | {"up": False, "other": 0} == lte[1]["radio"]
    assert lte[0]["radio"]["resource_blocks"] == 25


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("links.air.duplex='half'", "duplex"),
        ("links.air.medium='hub'", "radio"),
        ("links.air.forward={ radio = { kind = 'nr' } }", "radio"),
        ("links.air.radio={ kind = 'nr', pattern = 'DXU' }", "pattern"),
        (
            "links.air.radio={ kind = 'nr', pattern = 'DDD' }",
            'radio.pattern: found "DDD", without an uplink slot',
        ),
        (
            "links.air.radio={ kind = 'nr', pattern = 'DDX' }",
            'radio.pattern: found "DDX"; allowed: letters D (downlink), U',
        ),
        ("links.air.radio={ kind = 'nr', access = 'configured', configured = '0.7 ms' }", "configured"),
        ("links.air.radio={ kind = 'six' }", "radio"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_key(tmp_path, change, key):
    with pytest.raises(ConfigError) as refused:
        links(tmp_path, change)
    assert f"links.air.{key}" in str(refused.value) or f"radio.{key}" in str(refused.value), str(
        refused.value
    )
