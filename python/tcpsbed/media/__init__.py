"""Pictures and sound: cameras, codecs, displays, and what a picture tells about its own way.

```text
camera ─► picture code ─► encoder ═ network ═ decoder ─► code read, quality ─► display
```
The stages are hooks that the native loops give to threads of their own (`crates/tcps-run/src/real/worker.rs`).
"""
