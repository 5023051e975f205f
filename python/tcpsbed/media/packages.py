"""Packages that only some codecs and displays need: asked for when they are used, with the remedy where they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from tcpsbed.errors import HookError


def need(module: str, for_what: str, extra: str) -> ModuleType:
    """A package, imported.

    Raises
    ------
    HookError
        If it is not there, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise HookError(
            f"{for_what} needs the package {module} ({error}); allowed: pip install 'tcpsbed[{extra}]', or another choice"
        ) from None
