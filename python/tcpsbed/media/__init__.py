"""Pictures and sound: cameras, codecs, displays, and the time code in pictures.

```text
camera ─► picture code ─► encoder ═ network ═ decoder ─► code read, quality ─► display
```
The stages are hooks that the native loops give to threads of their own (`crates/tcps-run/src/real/worker.rs`).
"""
