"""Many operators in virtual time, each with two nodes of two components, and one bottleneck for all of them.

benches/operators.py 900 many.toml     writes such a scenario
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from measure import Ended, Result, Row, tcpsbed

TITLE = "Many operators in virtual time, 100 Hz each, four components each, over one bottleneck"

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


def measure(quick: bool) -> Result:
    """What a sample costs with few and with many operators side by side, and the whole command with the most."""
    few, some, most = (30, 100, 300) if quick else (30, 900, 4_000)
    seconds = 2 if quick else 10
    told: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        for count in (some, few, most):  # the few between the others: what slows the machine slows all
            told[count] = _run(Path(place), count, seconds * most // count if count == few else seconds)[1]
        whole = _run(Path(place), most, seconds, capture=True)[0]
    cost_us = {count: found["sample_us"] for count, found in told.items()}
    rows = [
        Row(
            f"a sample with {count:,} operators",
            f"{cost_us[count]:.2f} µs",
            f"{cost_us[few]:.2f} µs with {few}",
            f"{cost_us[count] / cost_us[few]:.2f}",
            "2",
            cost_us[count] <= 2 * cost_us[few],
        )
        for count in (some, most)
    ]
    set_up_s = told[some]["set_up_s"]
    rows += [
        Row(f"set-up of {some:,}", f"{set_up_s:.2f} s", "", "", "2 s", set_up_s <= 2),
        Row(
            f"the whole command, {most:,} for {seconds} s",
            f"{whole.wall_s:.0f} s, {whole.peak_mb:.0f} MB",
            "",
            "",
            "60 s, 4096 MB",
            whole.wall_s <= 60 and whole.peak_mb <= 4096,
        ),
    ]
    return Result("operators", TITLE, rows, {str(count): found for count, found in told.items()})


def _run(
    place: Path, operators: int, seconds: float, *, capture: bool = False
) -> tuple[Ended, dict[str, float]]:
    """A run; with a capture of its packets, as short runs have, or without one, as long ones are."""
    file, out = place / f"{operators}.toml", place / str(operators)
    file.write_text(scenario(operators, seconds), encoding="utf-8")
    keys = {"measure.pcapng": '"auto"' if capture else '"off"'}
    ended = tcpsbed("run", file, "--quiet", "--yes", "--out", out, keys=keys)
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    simulate_s, samples = result["simulate_s"], operators * seconds * 100
    return ended, {"sample_us": simulate_s / samples * 1e6, "set_up_s": result["total_s"] - simulate_s}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    options.out.write_text(scenario(options.operators, options.seconds), encoding="utf-8")
