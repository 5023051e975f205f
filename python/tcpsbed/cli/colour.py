"""Colour on terminals that support it, unless NO_COLOR is set."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

from tcpsbed.analysis.protection import UNPROTECTED
from tcpsbed.errors import printable

BOLD, RED, YELLOW = "1", "1;31", "33"


def paint(text: str, code: str, stream: TextIO | None) -> str:
    """The text in a colour where a stream shows one, else as it is."""
    if stream is None or stream.closed or not stream.isatty():
        return text
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def tables(text: str) -> str:
    """Tables for standard output with emphasised heads, errors and disturbances; what a file has in it moves no cursor."""
    text = printable(text)
    amiss = ((r"^(ERROR|ATTACKED|FAIL)\b.*", RED), (r"^(DISTURBED|SUPERVISOR)\b.*", YELLOW))
    marks = ((r"^.+(?=\n─)", BOLD), *amiss, (rf"^channel .*{UNPROTECTED}.*", YELLOW))
    for pattern, code in marks:
        text = re.sub(pattern, paint(r"\g<0>", code, sys.stdout), text, flags=re.M)
    return text
