"""A scenario with many operators: each has two nodes with two components each, all of them one bottleneck in common."""

from __future__ import annotations

import argparse
from pathlib import Path

_OPERATOR = """\
{name}-hand = {{ kind = "tactile-operator", node = "{name}-home", session = "{name}" }}
{name}-com = {{ kind = "ms-com", node = "{name}-home", session = "{name}" }}
{name}-far = {{ kind = "ss-com", node = "{name}-away", session = "{name}" }}
{name}-tool = {{ kind = "tactile-teleoperator", node = "{name}-away", session = "{name}" }}
"""


def scenario(operators: int, seconds: float, rate_hz: int = 100) -> str:
    """Its text: a flow forward for each operator, over a bottleneck that all of them fill to four fifths."""
    names = [f"o{number}" for number in range(operators)]
    wire_bytes = 24 + 24 + 54
    bottleneck_bps = operators * rate_hz * wire_bytes * 8 / 0.8
    parts = [
        f'duration = "{seconds:g} s"',
        'phases = "random"',
        f"sessions = {names}".replace("'", '"'),
        "[topology]",
        'routers = ["left", "right"]',
        "[links.bottleneck]",
        'from = "left"',
        'to = "right"',
        f'rate = "{bottleneck_bps:.0f} bit/s"',
        'delay = "10 ms"',
        'queue = "1000 packets"',
        "[nodes]",
    ]
    for name in names:
        for place, router in (("home", "left"), ("away", "right")):
            parts.append(f'{name}-{place} = {{ at = "{router}", link = {{ delay = "1 ms" }} }}')
    parts.append("[components]")
    for name in names:
        parts += _OPERATOR.format(name=name).splitlines()
    parts.append("[flows]")
    for name in names:
        flow = f'direction = "forward", rate = "{rate_hz} Hz", sample = "24 B", session = "{name}"'
        parts.append(f"{name} = {{ {flow} }}")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    options.out.write_text(scenario(options.operators, options.seconds), encoding="utf-8")
