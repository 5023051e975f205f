"""How large should the buffer of the bottleneck be? A loop over sizes, three seeds each, and a figure.

python compare_buffers.py ["3 s"]

A small buffer drops, a large one delays: the classic of every access link. (`tcpsbed sweep` does the same on all cores
and with intervals; a loop is for what a grid cannot say.)
"""

import statistics
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

import tcpsbed
from tcpsbed import shipped

SCENARIO = shipped.find("dumbbell-udp")
SIZES_B = (1_000, 2_000, 5_000, 15_000)
SEEDS = (1, 2, 3)


def measured(size_b: int, seed: int, duration: str, folder: Path) -> tuple[float, float]:
    """Loss (%) and 99th percentile of the delay (ms) of the haptic flow, over a link that is too slow now and then."""
    changes = {
        "links.l1.queue": f"{size_b} B",
        "traffic.cbr.rate": "0 bit/s",
        "traffic.vbr": {"rate": "350 kbit/s", "vary": "piecewise", "spread": "80 %"},
    }
    run = tcpsbed.run(SCENARIO, duration=duration, set=changes, seed=seed, out=folder / f"{size_b}-{seed}")
    haptic = run.flows["haptic"]
    return 100 * haptic.loss, haptic.delay_ms.p99


def main() -> None:
    """Prints a table and leaves buffers.png."""
    duration = sys.argv[1] if len(sys.argv) > 1 else "20 s"
    with tempfile.TemporaryDirectory() as folder:
        rows = [[measured(size, seed, duration, Path(folder)) for seed in SEEDS] for size in SIZES_B]
    loss, delay = ([statistics.fmean(pair[i] for pair in row) for row in rows] for i in (0, 1))
    for size, lost, late in zip(SIZES_B, loss, delay, strict=True):
        print(f"{size:>7} B   loss {lost:6.2f} %   p99 {late:7.2f} ms")
    _, ax = pyplot.subplots(layout="constrained")
    ax.plot(delay, loss, "o-")
    for size, x, y in zip(SIZES_B, delay, loss, strict=True):
        ax.annotate(f"{size} B", (x, y), xytext=(5, 5), textcoords="offset points")
    ax.set(xlabel="haptic delay, p99 (ms)", ylabel="haptic loss (%)", title="Buffer of the bottleneck")
    ax.figure.savefig("buffers.png", dpi=120)
    print("figure: buffers.png")


if __name__ == "__main__":
    main()
