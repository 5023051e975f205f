"""Published experiments run again: what a paper says beside what comes out here.

```text
data/expected/WORK.toml ─► published value, tolerance ─┐
WORKS: one module a paper ─► runs on all cores ─► ours ──┴─► rows, figures, page
```
"""
