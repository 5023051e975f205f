"""Where the samples of a flow come from and where they go; recordings are written out as tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpsbed.config.compile.book import Book, Way
from tcpsbed.config.compile.files import column, existing
from tcpsbed.config.model.flow import Flow, Frames, Generated, Recording, RobotSource, Sizes
from tcpsbed.errors import DataError

_BYTES = {"f32": 4, "f64": 8}


def codec(flow: Flow) -> str:
    """How the values of a flow become bytes."""
    if flow.codec is not None:
        return flow.codec
    if isinstance(flow.source, Frames | Sizes):
        return "raw"
    generated = flow.source is None or isinstance(flow.source, Generated)
    return "raw" if generated and (flow.sample_bytes or 0) % 4 else "f32"


class Sources:
    """Compiles sources and sinks; each recording is read once."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._plans: dict[str, dict[str, Any]] = {}

    def source(self, way: Way) -> dict[str, Any]:
        """The source of a flow."""
        source = way.model.source
        if isinstance(source, RobotSource) or (
            source is None and way.id == "haptic" and way.path[0].model.robot
        ):
            return self._robot(way)
        if way.id not in self._plans:
            self._plans[way.id] = self._plan(way)
        return self._plans[way.id]

    def sink(self, way: Way, source: dict[str, Any]) -> dict[str, Any]:
        """The sink of a flow."""
        flow, last = way.model, way.path[-1]
        sink = flow.sink
        if sink is None:
            drives = flow.direction == "forward" and last.model.robot is not None and codec(flow) != "raw"
            sink = "robot" if drives else ("verify" if source["kind"] in ("frames", "sizes") else "count")
        if sink == "robot" and last.model.robot is None:
            raise self.book.scenario.error(
                (*way.key, "sink"), f'found "robot", but {last.id} has none', '"count" or "verify"'
            )
        if sink == "verify" and source["kind"] == "robot":
            raise self.book.scenario.error(
                (*way.key, "sink"), 'found "verify" of what a robot senses', '"count"'
            )
        return {"kind": sink}

    def _robot(self, way: Way) -> dict[str, Any]:
        first = way.path[0]
        if first.model.robot is None:
            allowed = "a flow from a tactile-teleoperator that has a robot"
            raise self.book.scenario.error(
                (*way.key, "source"), f'found "robot", but {first.id} has none', allowed
            )
        if codec(way.model) == "raw":
            raise self.book.scenario.error(
                (*way.key, "codec"), 'found "raw" for what a robot senses', '"f32" or "f64"'
            )
        return {"kind": "robot"}

    def _plan(self, way: Way) -> dict[str, Any]:
        source = way.model.source
        try:
            if isinstance(source, Recording):
                return self._values(way, source)
            if isinstance(source, Frames):
                return self._frames(way, source)
        except DataError as error:
            key = (*way.key, "source", *([error.key] if error.key else []))
            allowed = error.allowed or "a data file that can be read"
            raise self.book.scenario.error(key, error.found, allowed) from None
        if isinstance(source, Sizes):
            return self._sizes(way, source)
        return self._generated(way)

    def _generated(self, way: Way) -> dict[str, Any]:
        size = way.model.sample_bytes
        if size is None:
            raise self.book.scenario.error(
                (*way.key, "sample"), "found nothing", 'a size of a sample such as "24 B"'
            )
        unit = _BYTES.get(codec(way.model), 1)
        if size % unit:
            found = f'found "{size} B", which is no multiple of {unit} B'
            raise self.book.scenario.error(
                (*way.key, "sample"), found, f'a multiple of {unit} B, or codec = "raw"'
            )
        return {"kind": "generated", "bytes": size}

    def _values(self, way: Way, source: Recording) -> dict[str, Any]:
        self._check(way, "recording", source.recording)
        from tcpsbed.datasets import recordings

        values = recordings.open_values(source.spec(), way.model.rate_hz, self.book.scenario.folder)
        path = self._input(way, "f64")
        path.write_bytes(values.astype("<f8").tobytes())
        return {"kind": "values", "path": str(path), "columns": int(values.shape[1]), "repeat": source.repeat}

    def _frames(self, way: Way, source: Frames) -> dict[str, Any]:
        self._check(way, "frames", source.frames)
        from tcpsbed.datasets import frames

        spec = {"recording": source.frames} | dict(source.model_extra or {})
        data, offsets = frames.open_frames(spec, way.model.rate_hz, self.book.scenario.folder)
        path = self._input(way, "frames")
        path.write_bytes(data)
        return {"kind": "frames", "path": str(path), "offsets": [int(offset) for offset in offsets]}

    def _sizes(self, way: Way, source: Sizes) -> dict[str, Any]:
        key = (*way.key, "source")
        path = existing(self.book.scenario, (*key, "sizes"), source.sizes)
        _, values = column(self.book.scenario, key, path, source.column)
        factor = 8 if source.unit == "bit" else 1
        sizes = [round(value / factor) for value in values]
        if min(sizes) < 1 or max(sizes) >= 2**32:
            raise self.book.scenario.error(
                key, f"found a size of {min(sizes)} B in {path.name}", "sizes from 1 B to 4 GiB"
            )
        return {"kind": "sizes", "bytes": sizes}

    def _check(self, way: Way, kind: str, name: str) -> None:
        if not name.startswith("builtin:"):
            existing(self.book.scenario, (*way.key, "source", kind), name)

    def _input(self, way: Way, ending: str) -> Path:
        self.book.inputs.mkdir(parents=True, exist_ok=True)
        return (self.book.inputs / f"{way.id}.{ending}").resolve()
