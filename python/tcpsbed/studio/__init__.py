"""The studio: a page that shows a run while it happens, and changes it (docs/studio.md).

```text
run ── rows, non-blocking pipe ──► server, a process of its own: collector ──► snapshots, WebSocket ──► browser
    ◄── events, checked by the run ──                            ◄── events ──
```
A page never holds a run up: what its process does not take in time is counted and not shown.
"""
