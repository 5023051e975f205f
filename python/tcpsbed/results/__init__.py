"""Results on disk: which folders and files may be written, how they are replaced, and remains of dead runs.

```text
 DIR                      a result, whole: `.tcpsbed` in it lists the files that tcpsbed wrote
 DIR.unfinished-PID       the next one while it is written; in one step it takes the place of DIR
 .DIR.tcpsbed-lock        held while somebody writes
```
Nothing that is not in the list is ever removed. While a result is written it has no list yet: there only files go that have
names which tcpsbed gives (`marker.LAYOUT`). Where something of the user's came into DIR meanwhile, both stay and the user is
told.
"""

from __future__ import annotations

from tcpsbed.results.files import mark, may_write, named, refuse_dash, streamed, whole, write_new, write_whole
from tcpsbed.results.folder import (
    Place,
    discard,
    growing,
    interrupted,
    interrupted_after,
    is_unfinished,
    tend_all,
    tended,
    writing,
)
from tcpsbed.results.marker import CELL, RUN, kind_of
from tcpsbed.results.names import RUNS, fresh

__all__ = [
    "CELL",
    "RUN",
    "RUNS",
    "Place",
    "discard",
    "fresh",
    "growing",
    "interrupted",
    "interrupted_after",
    "is_unfinished",
    "kind_of",
    "mark",
    "may_write",
    "named",
    "refuse_dash",
    "streamed",
    "tend_all",
    "tended",
    "whole",
    "write_new",
    "write_whole",
    "writing",
]
