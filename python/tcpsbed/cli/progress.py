"""The progress bar of commands; see `tcpsbed.runs.progress`."""

from __future__ import annotations

from tcpsbed.runs.progress import Progress as Progress
