"""The emulator, with its self-check, for the user's own programs.

```text
 profile (links of a scenario) ─► Proxy   ports that forward packets through the network ───────┐
                               └► netns   a command in a network namespace behind the network ┴► recorded   a run folder
```
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpsbed.proxy.door import Door
    from tcpsbed.proxy.forwarding import forward
    from tcpsbed.proxy.profile import Profile, load, shipped
    from tcpsbed.proxy.proxy import Proxy

__all__ = ["Door", "Profile", "Proxy", "forward", "load", "shipped"]

_HOMES = {
    "Door": "door",
    "Profile": "profile",
    "load": "profile",
    "shipped": "profile",
    "Proxy": "proxy",
    "forward": "forwarding",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: pytest loads this package with every test run, for its plugin."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
