"""The functions of Python, one file each; a command of `cli` prints what one of these returns.

```text
import tcpsbed ─► api ─► runs, campaign, lab        tcpsbed COMMAND ─► cli ─► api
```
"""
