"""The page's process; `feed.Feed` starts it."""

from __future__ import annotations

import sys
from pathlib import Path

from tcpsbed.studio.listening import Listening
from tcpsbed.studio.server import main

main(Listening.loaded(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
