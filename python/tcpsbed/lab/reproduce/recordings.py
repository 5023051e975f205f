"""Recordings that experiments take and that do not ship (see `tcpsbed.datasets.store`)."""

from __future__ import annotations

from tcpsbed.datasets import store

DATA = store.folder()
"""Where they lie."""


def absent(*names: str) -> str:
    """Why an item cannot be reproduced without recordings of these names: what to type, or whom to ask."""
    known = store.listed()
    lacking = [known[name] for name in names if known[name].missing(DATA)]
    return "needs recordings: " + "; ".join(store.how(recording, DATA) for recording in lacking)
