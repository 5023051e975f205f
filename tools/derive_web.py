"""Makes `python/tcpsbed/data/web.json` again: laws of web pages fitted to measured distributions (Mah 1997).

    python tools/derive_web.py FOLDER-WITH-THE-CDF-FILES

```text
request, main, object   lognormal with the mean and deviation of the logarithms of what was measured
embedded                Pareto less its scale, through the shares of pages with 0, at most 2 and at most 5 of them
think                   lognormal through the quartiles, up to 1000 s: longer pauses are no reading
```
Only these parameters are shipped, not the measured values.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "python" / "tcpsbed" / "data"
QUARTILE = 0.6745  # of the normal distribution


def column(folder: Path, name: str) -> np.ndarray:
    """Returns value, count and cumulative share of a file, values above 0."""
    table = np.loadtxt(folder / f"{name}.cdf")
    return table[table[:, 0] > 0]


def lognormal(table: np.ndarray) -> dict[str, float | str]:
    """Returns the lognormal law with the moments of the logarithms."""
    logs, counts = np.log(table[:, 0]), table[:, 1]
    mu = float((logs * counts).sum() / counts.sum())
    sigma = math.sqrt(float((counts * (logs - mu) ** 2).sum() / counts.sum()))
    return law(mu, sigma, float(table[0, 0]), float(table[-1, 0]))


def law(mu: float, sigma: float, least: float, most: float) -> dict[str, float | str]:
    """Returns a truncated lognormal law."""
    return {"kind": "lognormal", "mu": round(mu, 3), "sigma": round(sigma, 3), "min": least, "max": most}


def share_above(table: np.ndarray, value: float) -> float:
    """Returns the share of what is larger than a value."""
    return 1.0 - float(table[np.searchsorted(table[:, 0], value, side="right") - 1, 2])


def embedded(connections: np.ndarray) -> dict[str, float | str]:
    """Returns the Pareto law whose shares above 0, 2 and 5 come nearest, by the logarithms of the shares."""
    wanted = np.log([share_above(connections, n + 1) for n in (0, 2, 5)])
    scale, shape = np.meshgrid(np.arange(0.5, 5.0, 0.05), np.arange(0.8, 4.0, 0.01))
    wrong = sum(
        (shape * np.log(scale / (scale + n + 1)) - w) ** 2 for n, w in zip((0, 2, 5), wanted, strict=True)
    )
    best = np.unravel_index(np.argmin(wrong), wrong.shape)
    least = round(float(scale[best]), 2)
    most = float(connections[-1, 0]) + least
    return {
        "kind": "pareto",
        "scale": least,
        "shape": round(float(shape[best]), 2),
        "max": most,
        "less": least,
    }


def think(table: np.ndarray) -> dict[str, float | str]:
    """Returns the lognormal law through the quartiles."""
    low, middle, high = (float(table[np.searchsorted(table[:, 2], p), 0]) for p in (0.25, 0.5, 0.75))
    return law(math.log(middle), math.log(high / low) / (2 * QUARTILE), 1.0, 1000.0)


def main() -> None:
    """Reads the folder that is named and writes the laws."""
    folder = Path(sys.argv[1])
    reply = lognormal(column(folder, "HttpReplyLength"))
    laws = {
        "about": "Laws fitted to the distributions of Mah 1997 (tools/derive_web.py); bytes and seconds.",
        "request": lognormal(column(folder, "HttpRequestLength")),
        "main": reply,
        "embedded": embedded(column(folder, "HttpConnections")),
        "object": reply,
        "parse": {"kind": "constant", "value": 0.0},
        "think": think(column(folder, "HttpThinkTime")),
    }
    (DATA / "web.json").write_text(json.dumps(laws, indent=2) + "\n", encoding="utf-8")


main()
