"""The main job in ten lines: run a teleoperation, say where the time went, draw it.

python examples/quickstart.py ["3 s"]
"""

import sys
from pathlib import Path

import tcpsbed

duration = sys.argv[1] if len(sys.argv) > 1 else "10 s"
scenario = Path(__file__).parents[1] / "scenarios" / "quickstart.toml"
run = tcpsbed.run(scenario, set=[f'duration="{duration}"'])
print(run)
for part in run.summary["path"]["kinematic"]:
    print(f"{part['name']:>24} {part['latency_ms']['mean']:8.3f} ms")
figure = run.folder / "delay.png"
run.plot.delay(["kinematic", "haptic"]).figure.savefig(figure, dpi=120)
print(f"figure: {figure}")
