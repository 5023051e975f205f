"""Files that users hand over: the first byte says which parser reads the rest; JSON begins with its brace or bracket itself.

A parser gives what it says it gives, or refuses with an error that names the file and what is allowed instead. Numbers that
overflow or are none without being noticed count as wrong.
"""

from __future__ import annotations

import io
import json
import math
import tempfile
import tomllib
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from tcpsbed import documents
from tcpsbed.analysis import records
from tcpsbed.datasets import captures, frames, laws, recordings, resample, traces
from tcpsbed.errors import TcpsbedError
from tcpsbed.lab.qos import profile
from tcpsbed.lab.study.ratings import Store
from tcpsbed.proxy import measured
from tcpsbed.scenarios import load, xlsx
from tcpsbed.scenarios.compile import spans
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.graphs import graph
from tcpsbed.scenarios.model.span import HistogramFile, TraceFile

MODULES = (
    "tcpsbed.documents",
    "tcpsbed.analysis.records",
    "tcpsbed.scenarios.compile.book",
    "tcpsbed.scenarios.compile.files",
    "tcpsbed.scenarios.compile.graphs",
    "tcpsbed.scenarios.compile.spans",
    "tcpsbed.scenarios.dump",
    "tcpsbed.scenarios.load",
    "tcpsbed.scenarios.xlsx",
    "tcpsbed.datasets.builtin",
    "tcpsbed.datasets.captures",
    "tcpsbed.datasets.frames",
    "tcpsbed.datasets.laws",
    "tcpsbed.datasets.pcap",
    "tcpsbed.datasets.pcapng",
    "tcpsbed.datasets.recordings",
    "tcpsbed.datasets.resample",
    "tcpsbed.datasets.traces",
    "tcpsbed.datasets.track",
    "tcpsbed.datasets.wav",
    "tcpsbed.datasets.formats",
    "tcpsbed.datasets.formats.jigsaws",
    "tcpsbed.datasets.formats.kinesthetic",
    "tcpsbed.datasets.formats.lerobot",
    "tcpsbed.datasets.formats.lines",
    "tcpsbed.datasets.formats.mouse",
    "tcpsbed.datasets.formats.table",
    "tcpsbed.proxy.measured",
    "tcpsbed.lab.qos.profile",
    "tcpsbed.lab.study.ratings",
)
JSON = True
RATE_HZ = 100.0
MOST_ROWS = 20_000
"""Rows that a recording may be stretched to here: what is allowed outside takes seconds."""
FRAMES = bytes(range(8))
SHEET = "xl/worksheets/sheet1.xml"
SCENARIO = """
calibration = "calibration.json"
[components]
tactile-operator = "operator"
tactile-teleoperator = "robot"
[flows.kinematic]
[topology]
graph = "x.graphml"
"""
COLUMNS = measured.Columns("rtt", "spread", "loss", "down", "up")

_folder = tempfile.TemporaryDirectory(prefix="tcpsbed-fuzz-")
HERE = Path(_folder.name)
(HERE / "content").write_bytes(FRAMES)
(HERE / "episode").mkdir()
(HERE / "scene.toml").write_text(SCENARIO)
SCENE = load(HERE / "scene.toml")
pq.write_table(pa.table({"action": [[1.0, 2.0], [3.0, 4.0]]}), HERE / "episode" / "episode.parquet")


def _spreadsheet(title: str) -> dict[str, bytes]:
    """The parts of a spreadsheet with one sheet."""
    book, whole = openpyxl.Workbook(), io.BytesIO()
    book.active.title = title
    book.save(whole)
    with zipfile.ZipFile(whole) as parts:
        return {name: parts.read(name) for name in parts.namelist()}


PARTS = {title: _spreadsheet(title) for title in (xlsx.REST, "network")}


def capture(file: Path) -> None:
    """pcap, pcapng, or a csv of times and bytes."""
    times, sizes = captures.read(file)
    assert len(times) == len(sizes) > 0 and times[0] == 0
    assert (np.diff(times) >= 0).all() and times[-1] <= captures.MOST_SPAN_NS
    assert sizes.min() > 0 and sizes.max() <= captures.MOST_BYTES


def framed(file: Path, rate_hz: float = RATE_HZ) -> None:
    """Sound or an index of frames, by the file's ending."""
    content, offsets = frames.open_frames({"frames": file.name}, rate_hz, file.parent)
    assert offsets[0] == 0 and offsets[-1] == len(content) and all(a <= b for a, b in pairwise(offsets))


def deliveries(file: Path) -> None:
    """A Mahimahi trace."""
    times = traces.mahimahi(file)
    assert times[0] >= 0 and times[-1] > 0 and (np.diff(times) >= 0).all()


def sizes(file: Path) -> None:
    """Sizes of a video's frames."""
    found = traces.frame_sizes(file)
    assert found.min() > 0 and found.max() <= traces.MOST_FRAME_BYTES


def curve(file: Path) -> None:
    """A cumulative distribution."""
    law = laws.empirical(file)
    values, cumulative = law["values"], law["cumulative"]
    assert len(values) == len(cumulative) > 0 and cumulative[-1] == 1.0 and values[0] >= 0.0
    assert all(a < b for a, b in pairwise(values)) and all(a <= b for a, b in pairwise(cumulative))


def recording(file: Path, **options: Any) -> None:
    """Motion, in the format that the file seems to have, at the rate of a flow."""
    with patch.object(resample, "MOST_ROWS", MOST_ROWS):
        values = recordings.open_values({"recording": str(file)} | options, RATE_HZ, HERE)
    assert len(values) > 0 and values.ndim == 2 and np.isfinite(values).all()


def rows(file: Path) -> None:
    """A run's records, mapped and in blocks, with the places that their numbers stand for."""
    component = [{"name": "hand"}, {"name": "arm"}]
    plan = {"components": component, "nodes": [{"name": "operator"}], "flows": [{"name": "haptic"}]}
    names, found = records.Names.of(plan), records.open_records(file)
    assert b"".join(block.tobytes() for block in records.record_blocks(file, 3)) == found.tobytes()
    assert names.place_codes(found).max(initial=0) < len(names.places)
    assert names.flow_codes(found).max(initial=0) < 2 > names.node_codes(found).max(initial=0)


def sheet(file: Path, title: str) -> None:
    """A sheet of a scenario as a spreadsheet: its XML within one that is whole."""
    content = file.read_bytes()
    with zipfile.ZipFile(file, "w") as parts:
        for name, usual in PARTS[title].items():
            parts.writestr(name, content if name == SHEET else usual)
    tomllib.loads(xlsx.from_xlsx(file))


def told(file: Path) -> None:
    """A profile out of measurements; what comes out is TOML of finite numbers."""
    found = tomllib.loads(measured.profile_text([file], COLUMNS))["links"]["path"]
    assert all(math.isfinite(float(found[key].split()[0])) for key in ("delay", "loss"))


def ratings(file: Path) -> None:
    """Ratings of a study."""
    study = Store(file.parent, "x", scripted=True)
    study.file = file
    study.head.write_text(json.dumps(study.about))
    study.read()
    for rating in study.ratings:
        assert all(type(getattr(rating, name)) is int for name in ("subject", "position", "disturbances"))
        assert all(isinstance(ms, float | int) for ms in rating.delay_ms.values())


def costs(file: Path) -> None:
    """Costs as a trace and as a histogram."""
    for span in (TraceFile(trace=file.name, unit="us"), HistogramFile(histogram=file.name)):
        try:
            found = spans.dist(SCENE, ("components", "srv", "cost"), span)
        except TcpsbedError as error:
            _check(error)
        else:
            assert all(ns >= 0 for ns in found.get("spans_ns", found.get("edges_ns")))


def topology(file: Path) -> None:
    """A graph in GraphML; the scenario names the file."""
    found = graph(SCENE)
    assert found.vertices and all({edge.a, edge.b} <= set(found.vertices) for edge in found.edges)


def calibration(file: Path) -> None:
    """What was measured of stages and nodes; the scenario names the file."""
    book = Book(SCENE, HERE)
    for quantiles in [
        *book.calibration.values(),
        *(q for kinds in book.boundaries.values() for q in kinds.values()),
    ]:
        assert quantiles == sorted(quantiles) and quantiles[0] >= 0


def info(file: Path) -> None:
    """What lies beside an episode of LeRobot."""
    (HERE / "episode" / "info.json").write_bytes(file.read_bytes())
    recording(HERE / "episode" / "episode.parquet")


def head(file: Path) -> None:
    """The file that says which study a folder holds."""
    study = Store(HERE / "episode", "x")
    study.head = file
    study.read()


PARSERS = {
    b"b": ("records.bin", rows),
    b"c": ("x.cap", capture),
    b"d": ("x.trace", deliveries),
    b"e": ("x.cdf", curve),
    b"f": ("x.txt", sizes),
    b"g": ("ratings.jsonl", ratings),
    b"h": ("costs_us.csv", costs),
    b"k": ("x.graphml", topology),
    b"l": ("x.parquet", recording),
    b"m": ("x.csv", told),
    b"q": ("profile.toml", lambda file: profile.load(str(file))),
    b"r": ("x.csv", lambda file: recording(file, format="csv", rate_hz=50.0)),
    b"s": ("scenario.toml", load),
    b"t": ("x.txt", recording),
    b"w": ("x.wav", framed),
    b"x": ("x.xlsx", lambda file: sheet(file, "network")),
    b"y": ("y.xlsx", lambda file: sheet(file, xlsx.REST)),
}
"""File's name and parser, by the first byte."""
JSON_PARSERS = {
    "calibration.json": calibration,
    "index.json": framed,
    "pages.json": lambda file: laws.pages(file.name, file.parent),
    "plan.json": lambda file: documents.read(file, ("nodes",)),
    "info.json": info,
    "study.json": head,
}


def target(data: bytes) -> None:
    """One file, at the parser that its first byte means; JSON at all that read JSON."""
    if data[:1] in (b"{", b"["):
        for name, parser in JSON_PARSERS.items():
            _try(name, parser, data)
    elif data[:1] in PARSERS:
        _try(*PARSERS[data[:1]], data[1:])


def _try(name: str, parser: Any, content: bytes) -> None:
    file = HERE / name
    file.unlink(missing_ok=True)
    file.write_bytes(content)
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            parser(file)
    except TcpsbedError as error:
        _check(error)


def _check(error: TcpsbedError) -> None:
    assert error.allowed and str(HERE) in str(error), f"no file or no remedy: {error}"
