"""Optional packages of codecs and displays: imported on use, with a remedy if they are missing."""

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
            f"{for_what} needs the package {module} ({error})",
            allowed=f"pip install 'tcpsbed[{extra}]', or another choice",
        ) from None
