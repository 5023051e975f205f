"""`mcap`: what `foxglove` shows, in a file for Foxglove's app and others that read MCAP."""

from __future__ import annotations

from tcpsbed.studio.sinks import File
from tcpsbed.studio.sinks.messages import LAYOUT, Told


class Mcap(Told):
    """Live data in an MCAP file. Target: the file."""

    name = "mcap"

    def __init__(self, target: str) -> None:
        super().__init__(target)
        from foxglove import open_mcap

        self.file = File(self.name, target)
        self.writer = open_mcap(self.file.part, context=self.context)
        self.where = f"{self.file.path}, layout {LAYOUT}"

    def end(self) -> None:
        """The file takes its place, whole."""
        self.writer.close()
        self.file.close()
