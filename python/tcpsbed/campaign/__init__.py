"""Sweeps: a grid of scenarios times seeds on all cores, resumed after a kill, with intervals across seeds.

```text
axes × seeds ─► cells ─► one process each ─► OUT/cells/KEY.json ─► sweep.parquet, sweep.html
no axes      ─► seeds of a run              ─► RUN/seeds/cells   ─► across_seeds in RUN/summary.json
```
"""
