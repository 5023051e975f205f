"""Delay and loss between two programs under test: the fixture `emulated_network`.

```python
def test_our_controller_tolerates_lte(emulated_network):
    server = start_server(port=7100)
    network = emulated_network(7100, profile="lte", loss="1 %")
    client = start_client(port=network.ports[0])
```
Works without root. Every network ends with its test. A network that did not deliver what was set raises a warning,
because the test then says nothing about the program.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tcpsbed.proxy import Proxy


class EmulationWarning(UserWarning):
    """An emulated network did not deliver what was set."""


@pytest.fixture
def emulated_network() -> Iterator[Callable[..., Proxy]]:
    """Creates emulated networks: `emulated_network(target, profile="direct", **settings)`.

    `target` is a port of this computer, `"HOST:PORT/udp"` or `"HOST:PORT/tcp"`, or a list of these; settings are keys of
    a link, such as `delay="20 ms"`, `loss="1 %"`, `rate="2 Mbit/s"`. Programs connect to `.ports[i]` on 127.0.0.1.
    """
    from tcpsbed.analysis.delivered import Margin
    from tcpsbed.proxy import Proxy, load, verdict
    from tcpsbed.proxy.door import parse
    from tcpsbed.proxy.profile import STRAIGHT, settings_of

    with ExitStack() as stack:
        made: list[Proxy] = []

        def make(
            target: int | str | list[int | str], *, profile: str = STRAIGHT, **settings: str | float
        ) -> Proxy:
            targets = target if isinstance(target, list) else [target]
            doors = [parse(f"0={one if isinstance(one, str) else f'127.0.0.1:{one}'}") for one in targets]
            made.append(stack.enter_context(Proxy(load(profile, settings_of(settings)), doors)))
            return made[-1]

        yield make
        for proxy in made:
            for line in verdict.broken(proxy.close(), Margin(), proxy.profile.network):
                warnings.warn(
                    f"emulated network {proxy.profile.name}: {line}", EmulationWarning, stacklevel=1
                )
