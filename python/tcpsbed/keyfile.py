"""Files with pre-shared keys, which only their owner may read."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import stat
from pathlib import Path

from tcpsbed import inputs
from tcpsbed.errors import REMEDIES, DataError, counted
from tcpsbed.results.files import write_new

KEY_BYTES = 32
"""Length of a key; a file has it in hexadecimal digits."""
_ALLOWED = "a file that `tcpsbed key FILE` made: 64 hexadecimal digits, mode 0600"
_KEY = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


def fresh() -> str:
    """A new key in hexadecimal digits, drawn by the system."""
    return secrets.token_hex(KEY_BYTES)


def read(file: Path) -> str:
    """The key in a file, in hexadecimal digits.

    Raises
    ------
    DataError
        The file is absent, belongs to nobody alone, or holds no key.
    """
    told = inputs.regular(file, _ALLOWED, inputs.DOCUMENT_BYTES).stat()
    mode = stat.S_IMODE(told.st_mode)
    if told.st_uid not in (0, os.geteuid()):
        raise DataError("belongs to another user", file=file, allowed="a file of your own: tcpsbed key FILE")
    text = inputs.text(file, _ALLOWED).strip()
    if not _KEY.fullmatch(text):
        raise DataError(f"holds no key ({counted(len(text), 'character')})", file=file, allowed=_ALLOWED)
    if mode & 0o077:
        remedy = f"mode 0600: chmod 600 {shlex.quote(file.name)}"
        raise DataError(f"is open to other users (mode {mode:04o})", file=file, allowed=remedy)
    if len(set(bytes.fromhex(text))) == 1:
        found = f"holds a key of one repeated byte ({text[:2].lower()}), which everybody guesses"
        raise DataError(found, file=file, allowed=_ALLOWED)
    return text.lower()


def make(file: Path) -> None:
    """Makes a file with a new key.

    Raises
    ------
    DataError
        There is such a file already, or it cannot be made.
    """
    try:
        write_new(file, f"{fresh()}\n", 0o600)
    except FileExistsError:
        raise DataError("exists already", file=file, allowed="a name that is free") from None
    except OSError as error:
        allowed = REMEDIES.get(error.errno or 0, "a place to write")
        raise DataError(f"cannot be made ({error.strerror})", file=file, allowed=allowed) from None
