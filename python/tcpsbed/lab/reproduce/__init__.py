"""Published experiments repeated: published values beside our results.

```text
data/expected/WORK.toml ─► published value, tolerance ─┐
WORKS: one module a paper ─► runs on all cores ─► ours ──┴─► rows, figures, page
```
"""
