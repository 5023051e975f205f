"""The main job in ten lines: run a teleoperation, say where the time went, draw it.

python quickstart.py ["3 s"]
"""

import sys

import tcpsbed
from tcpsbed import shipped

duration = sys.argv[1] if len(sys.argv) > 1 else "10 s"
scenario = shipped.find("quickstart")
run = tcpsbed.run(scenario, duration=duration)
print(run)
for part in run.summary.path["kinematic"]:
    print(f"{part.name:>24} {part.latency_ms.mean:8.3f} ms")
figure = run.folder / "delay.png"
run.plot.delay(["kinematic", "haptic"]).figure.savefig(figure, dpi=120)
print(f"figure: {figure}")
