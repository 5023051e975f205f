"""Archives: a run or a sweep with all that it takes to run again, as one zip; and the run again, with a verdict.

```text
DIR ─► results_in ─► inputs ─► packing ─► out.zip     scenario, code, results, versions, hashes, RO-Crate
                                            │
          verdicts ◄─ verify ◄─ reading ◄───┘         on any machine
```
"""
