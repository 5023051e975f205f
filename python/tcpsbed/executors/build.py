"""The build of tcpsbed: what the same inputs give the same results with."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def build(ns3: bool = False) -> str:
    """The versions of tcpsbed and of what a result may depend on, and a hash over its own files: one that was built or
    edited anew computes anew.
    """
    from tcpsbed import __version__, _tcps
    from tcpsbed.analysis import machine
    from tcpsbed.worlds import ns3_program

    root = Path(__file__).parents[1]
    roots = [root, ns3_program.sources()] if ns3 else [root]
    found = {file for folder in roots if folder is not None for file in folder.rglob("*")}
    files = sorted(file for file in {*found, Path(_tcps.__file__ or root)} if "__pycache__" not in file.parts)
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()]
    versions = f"{machine.installed()}{ns3_program.version() if ns3 else ''}"
    return f"{__version__} {hashlib.sha256(''.join([*hashes, versions]).encode()).hexdigest()}"
