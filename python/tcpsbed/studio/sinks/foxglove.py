"""`foxglove`: a run in Foxglove's app while it happens, by its WebSocket."""

from __future__ import annotations

from tcpsbed.errors import ConfigError
from tcpsbed.studio.sinks import port_of
from tcpsbed.studio.sinks.messages import LAYOUT, Told

PORT = 8765
"""As the app expects it."""
MOST_BACKLOG = 1024
"""Messages that wait for an app; the oldest go first."""


class Foxglove(Told):
    """Live data for Foxglove's app. Target: a port of 127.0.0.1, 8765 without one."""

    name = "foxglove"

    def __init__(self, target: str) -> None:
        super().__init__(target)
        from foxglove import start_server

        port = port_of(self.name, target, PORT)
        try:
            self.server = start_server(
                name="tcpsbed",
                host="127.0.0.1",
                port=port,
                context=self.context,
                message_backlog_size=MOST_BACKLOG,
            )
        except (OSError, RuntimeError) as error:
            allowed = "another port, such as foxglove=0"
            raise ConfigError(f"port {port}: {error}", key="--sink foxglove", allowed=allowed) from None
        self.port: int = self.server.port
        self.where = f"ws://127.0.0.1:{self.port}, layout {LAYOUT}"
