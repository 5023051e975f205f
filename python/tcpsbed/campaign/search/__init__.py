"""Searches: where a condition begins to hold along one factor or two, and which values are best.

```text
 bisection, curve ─► points of a grid ─► Ground: cells of a campaign, one folder, one set of workers ─► Votes of the seeds ─┐
   ▲                                                                                                                      │
   └──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
 optimum (optuna) ─► points ─► Ground ─► means over seeds
```
"""
