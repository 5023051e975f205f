"""Sources and sinks of flows; recordings are written as tracks."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from tcpsbed.datasets import builtin
from tcpsbed.errors import counted
from tcpsbed.scenarios.compile.book import Book, Way
from tcpsbed.scenarios.compile.files import existing, read
from tcpsbed.scenarios.compile.media import media
from tcpsbed.scenarios.model.flow import Flow, Frames, Generated, Recording, Replayed, RobotSource, Sizes

_BYTES = {"f32": 4, "f64": 8}


def codec(flow: Flow) -> str:
    """How the values of a flow become bytes."""
    if flow.codec is not None:
        return flow.codec
    if isinstance(flow.source, Frames | Sizes) or flow.picture is not None or flow.sound is not None:
        return "raw"
    generated = flow.source is None or isinstance(flow.source, Generated)
    return "raw" if generated and (flow.sample_bytes or 0) % 4 else "f32"


def values_of(way: Way, source: dict[str, Any]) -> int | None:
    """How many values a sample of a source holds; `None` where it holds none, or that is not known before a run."""
    if source["kind"] == "values":
        return int(source["columns"])
    unit = _BYTES.get(codec(way.model))
    return source["bytes"] // unit if source["kind"] == "generated" and unit else None


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
        if codec(way.model) == "raw" and not self._coded(way):
            raise self.book.scenario.error(
                (*way.key, "codec"),
                'found "raw" for what a robot senses',
                f'"f32" or "f64", or a hook of kind "code" at {first.id} that makes bytes of it',
            )
        self._check_sensed(way)
        return {"kind": "robot"}

    def _check_sensed(self, way: Way) -> None:
        """Refuses a sample size that holds no whole number of sensed values; the size is the most of them that are sent."""
        size, unit = self._given(way), _BYTES.get(codec(way.model))
        if size is None or unit is None:
            return
        self._check_whole(
            way,
            size,
            unit,
            f'{unit} B for each value that the robot senses, such as "{3 * unit} B" for three',
        )
        forces = [
            hook.params.get("count", 3)
            for hook in self.book.scenario.hooks.values()
            if (hook.kind, hook.run) == ("sense", "force") and way.id in (hook.flow or [way.id])
        ]
        if forces and isinstance(forces[-1], int) and size != forces[-1] * unit:
            self._differs(way, f'a hook "force" that gives {forces[-1]} values', forces[-1] * unit)

    def _given(self, way: Way) -> int | None:
        """The size of a sample, if the scenario gives it, and not for another source that `--set` has replaced."""
        scenario = self.book.scenario
        if "sample" not in scenario.document.get("flows", {}).get(way.id, {}):
            return None
        sample, source = (scenario.overridden((*way.key, key)) for key in ("sample", "source"))
        return way.model.sample_bytes if sample or not source else None

    def _check_whole(self, way: Way, size: int, unit: int, allowed: str = "") -> None:
        if size % unit:
            found = f'found "{size} B", which is not a multiple of {unit} B'
            allowed = allowed or f'a multiple of {unit} B, such as "{3 * unit} B", or codec = "raw"'
            raise self.book.scenario.error((*way.key, "sample"), found, allowed)

    def _differs(self, way: Way, source: str, size: int | None = None) -> None:
        """Refuses a size of a sample beside what decides it."""
        own = "" if size is None else f', or sample = "{size} B"'
        found = f'found "{way.model.sample_bytes} B" beside {source}'
        raise self.book.scenario.error((*way.key, "sample"), found, f"no sample{own}")

    def _coded(self, way: Way) -> bool:
        """Whether a hook at the robot makes bytes of what it senses."""
        here = {way.path[0].id, way.path[0].kind}
        return any(
            hook.kind == "code" and here & set(hook.at or here) and way.id in (hook.flow or [way.id])
            for hook in self.book.scenario.hooks.values()
        )

    def _plan(self, way: Way) -> dict[str, Any]:
        source = way.model.source
        if media(way):
            return {"kind": "generated", "bytes": 0}  # a tick; the capture makes a frame of it
        if isinstance(source, Recording):
            return self._values(way, "recording", source.recording, source.spec(), source.repeat)
        if isinstance(source, Replayed):
            spec = {"recording": source.operator, "format": "csv"}
            return self._values(way, "operator", source.operator, spec, source.repeat)
        if isinstance(source, Frames | Sizes) and self._given(way) is not None:
            self._differs(way, "a source that has the size of each frame")
        if isinstance(source, Frames):
            return self._frames(way, source)
        return self._sizes(way, source) if isinstance(source, Sizes) else self._generated(way)

    def _generated(self, way: Way) -> dict[str, Any]:
        size = way.model.sample_bytes
        if size is None:
            raise self.book.scenario.error(
                (*way.key, "sample"), "is missing", 'a size of a sample such as "24 B"'
            )
        self._check_whole(way, size, _BYTES.get(codec(way.model), 1))
        return {"kind": "generated", "bytes": size}

    def _values(self, way: Way, kind: str, name: str, spec: dict[str, Any], repeat: str) -> dict[str, Any]:
        self._check(way, kind, name)
        columns, values = self._first(spec) or self._all(way, spec)
        unit = _BYTES.get(codec(way.model))
        if unit is not None and self._given(way) not in (None, columns * unit):
            self._differs(way, f"a source of {counted(columns, 'value')} a sample", columns * unit)
        path = self._input(way, "f64")
        path.write_bytes(values)
        return {"kind": "values", "path": str(path), "columns": columns, "repeat": repeat}

    def _first(self, spec: dict[str, Any]) -> tuple[int, bytes] | None:
        """Columns and first row of what ships, which is all that a check needs of it."""
        row = builtin.first_row(spec) if self.book.rehearsal else None
        return (len(row), struct.pack(f"<{len(row)}d", *row)) if row else None

    def _all(self, way: Way, spec: dict[str, Any]) -> tuple[int, bytes]:
        """Columns and values of a recording."""
        from tcpsbed.datasets import recordings

        scenario, rate_hz = self.book.scenario, way.model.rate_hz
        key = (*way.key, "source")
        values = read(scenario, key, lambda: recordings.open_values(spec, rate_hz, scenario.folder))
        return int(values.shape[1]), values.astype("<f8").tobytes()

    def _frames(self, way: Way, source: Frames) -> dict[str, Any]:
        from tcpsbed.datasets import frames

        self._check(way, "frames", source.frames)
        folder = self.book.scenario.folder
        data, offsets = read(
            self.book.scenario,
            (*way.key, "source"),
            lambda: frames.open_frames(source.spec(), way.model.rate_hz, folder),
        )
        path = self._input(way, "frames")
        path.write_bytes(data)
        return {"kind": "frames", "path": str(path), "offsets": offsets}

    def _sizes(self, way: Way, source: Sizes) -> dict[str, Any]:
        from tcpsbed.datasets import traces

        key = (*way.key, "source", "sizes")
        path = existing(self.book.scenario, key, source.sizes)
        sizes = read(self.book.scenario, key, lambda: traces.frame_sizes(path))
        return {"kind": "sizes", "bytes": sizes.tolist()}

    def _check(self, way: Way, kind: str, name: str) -> None:
        if name.startswith(builtin.PREFIX):
            return
        from tcpsbed.datasets.formats import is_data_set

        if kind != "recording" or not is_data_set(self.book.scenario.folder / name):
            existing(self.book.scenario, (*way.key, "source", kind), name)

    def _input(self, way: Way, ending: str) -> Path:
        self.book.inputs.mkdir(parents=True, exist_ok=True)
        return (self.book.inputs / f"{way.id}.{ending}").resolve()
