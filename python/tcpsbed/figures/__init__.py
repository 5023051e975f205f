"""Figures for papers from finished runs and sweeps: `tcpsbed plot`.

```text
run folders, sweep folders ─► Material (runs by factors) ─► Picture (numbers) ─► drawing ─► fig.pdf
                              quantities (metrics by path)                   └► a table in LaTeX
```
"""

from __future__ import annotations

from tcpsbed.figures.plot import KINDS, Drawn, plot

__all__ = ["KINDS", "Drawn", "plot"]
