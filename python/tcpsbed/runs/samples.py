"""`samples.parquet`, written in a thread of its own: while a simulation runs, or beside the analysis."""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any

from tcpsbed.errors import REMEDIES


def load_libraries() -> None:
    """Loads what the writer needs, so that too little memory for it ends a run before it begins and not after it."""
    importlib.import_module("pyarrow.parquet")


class Samples:
    """The writer of a run's samples; a context, at whose end no thread is left.

    Parameters
    ----------
    folder
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._complete = Event()
        self._thread = ThreadPoolExecutor(1)
        self._written: Future[Path] | None = None

    def __enter__(self) -> Samples:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._complete.set()
        self._thread.shutdown()

    def follow(self, plan: dict[str, Any]) -> None:
        """Begins before the first row. Beside code of the user's, which may hold up all threads, it waits for the end."""
        from tcpsbed.scenarios.codes import is_ours

        if is_ours(plan):
            self._begin()

    def complete(self) -> None:
        """Says that all rows are there."""
        self._complete.set()
        if self._written is None:
            self._begin()

    def wait(self) -> None:
        """Returns when the file is written; one that does not fit on the disk is left out, and that is said."""
        assert self._written is not None
        try:
            self._written.result()
        except OSError as error:
            if error.errno not in REMEDIES:
                raise
            print(f"tcpsbed: {self._folder / 'samples.parquet'}: {error.strerror}: left out", file=sys.stderr)

    def _begin(self) -> None:
        self._written = self._thread.submit(self._write)

    def _write(self) -> Path:
        from tcpsbed.analysis import export

        records = self._folder / "records.bin"
        while not records.is_file() and not self._complete.wait(0.02):
            pass
        return export.to_parquet(self._folder, complete=self._complete)
