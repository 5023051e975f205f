"""Files of results that were edited or cut down: `load` names file and key, or what it gives can be shown."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tcpsbed
from tcpsbed import shipped
from tcpsbed.errors import DataError

Key = tuple[str | int, ...]
OTHERS: tuple[Any, ...] = (None, "x", [], {}, True, 1.5, float("nan"))
"""What takes the place of a value."""
QUICKSTART = Path(__file__).resolve().parents[2] / "scenarios/quickstart.toml"
optuna = pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="needs the package optuna")


def keys(content: Any, here: Key = ()) -> Iterator[Key]:
    """Every key in a document; of a list all entries, or the first if there are many."""
    parts = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content if len(content) <= 3 else content[:1])
    )
    for name, inner in parts:
        yield (*here, name)
        if isinstance(inner, dict | list):
            yield from keys(inner, (*here, name))


def changed(content: Any, key: Key, *value: Any) -> Any:
    """The document with another value at a key, or without it."""
    copy = json.loads(json.dumps(content))
    inner = copy
    for name in key[:-1]:
        inner = inner[name]
    if value:
        inner[key[-1]] = value[0]
    else:
        del inner[key[-1]]
    return copy


def shown(found: Any) -> None:
    """All that a result is asked for."""
    assert str(found) and getattr(found, "figures", True)
    if hasattr(found, "to_arrow"):
        assert found.to_arrow().schema and found._repr_html_()


def tried(file: Path) -> list[str]:
    """What `load` says of each change of a file; a change that it does not see must do no harm."""
    text, said = file.read_text(), list[str]()
    whole = json.loads(text)
    shown(tcpsbed.load(file.parent))
    for key in keys(whole):
        for value in ((), *((one,) for one in OTHERS)):
            file.write_text(json.dumps(changed(whole, key, *value)))
            try:
                shown(tcpsbed.load(file.parent))
            except DataError as error:
                assert error.file == str(file), (key, value, str(error))
                said.append(str(error))
            except Exception as error:
                raise AssertionError(f"{key} {value}: {error!r}") from error
    file.write_text(text)
    return said


def test_a_map_that_was_edited(tmp_path: Path) -> None:
    folder = tmp_path / "map"
    tcpsbed.map(
        shipped.find("step"), cells="3x2", runs=2, reliability="90%", out=folder, verify=1, verify_runs=1
    )
    said = tried(folder / "map.json")
    for one in (
        "map.json: grid.rtt_ms is missing; allowed: ",
        'map.json: bench.runs: found "x"',
        "map.json: overshoot.0: found 2 entries, not 3",
        "map.json: verified.0.testbed.good is missing",
        "map.json: bench.limits.overshoot: found NaN",
    ):
        assert any(one in line for line in said), one
    text = (folder / "map.json").read_text()
    (folder / "map.json").write_text(text[:200])
    with pytest.raises(DataError, match=r"map\.json: found broken JSON"):
        tcpsbed.load(folder)


def test_step_responses_need_their_curves_alone(tmp_path: Path) -> None:
    folder = tmp_path / "step"
    made = tcpsbed.step(shipped.find("step"), runs=2, rtt="5 ms", out=folder)
    (folder / "step.json").write_text("{}")
    assert tcpsbed.load(folder).figures == made.figures  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_search_that_was_edited(tmp_path: Path) -> None:
    over, until = "links.l1.delay=0..32 ms step 8", "haptic.delay_ms.p99 > 30"
    tcpsbed.search(QUICKSTART, over, until=until, duration="0.7 s", seeds=6, out=tmp_path / "one")
    said = tried(tmp_path / "one/search.json")
    for one in (
        "search.json: factors.0.over is missing",
        "search.json: votes.0.1: found null",
        "search.json: votes has no [0]",
        'search.json: duration_s: found "x"',
        "search.json: condition: found",
    ):
        assert any(one in line for line in said), one


@optuna
def test_an_optimum_that_was_edited(tmp_path: Path) -> None:
    over = ["links.l1.delay=1..20 ms", "links.l1.queue=9000B,15000B"]
    tcpsbed.search(
        QUICKSTART, over, minimise="haptic.delay_ms.mean", limits="haptic.delay_ms.p99 < 99", trials=2, seeds=2,
        duration="0.7 s", out=tmp_path / "two",
    )  # fmt: skip
    said = tried(tmp_path / "two/search.json")
    assert any("search.json: points.0.mean is missing" in line for line in said)


def test_a_sweep_that_was_edited(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    tcpsbed.sweep(QUICKSTART, {"links.l1.delay": ["1 ms", "20 ms"]}, seeds=2, duration="0.7 s", out=folder)
    said = tried(folder / "sweep.json")
    for one in (
        "sweep.json: axes.0.values: found",
        "sweep.json: seeds.0: found null",
        "sweep.json: world is missing",
    ):
        assert any(one in line for line in said), one
    cell = next((folder / "cells").iterdir())
    cell.unlink()
    cell.mkdir()
    assert "1 cell cannot be read; the same command" in str(tcpsbed.load(folder))
