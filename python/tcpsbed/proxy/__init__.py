"""The emulator and its measurement for programs that are not ours.

```text
 profile (links of a scenario) ─► Proxy   ports that hand on, with what the network does to packets
                               └► netns   a command in a network namespace behind the network
```
"""

from __future__ import annotations

from tcpsbed.proxy.door import Door
from tcpsbed.proxy.profile import Profile, load, shipped
from tcpsbed.proxy.proxy import Proxy

__all__ = ["Door", "Profile", "Proxy", "load", "shipped"]
