"""Stand-ins for scenarios, worlds and analysis, so that the command line is tested without native code.

A scenario is a flat TOML table. `delay_ms` is the mean delay; `fault` makes the run fail in one way or another.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import sample_run

from tcpsbed.errors import ConfigError, WorldError


def load(path: Any, overrides: Any = ()) -> SimpleNamespace:
    """Reads a flat scenario with overrides."""
    try:
        document = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise ConfigError("cannot be read", file=path, allowed="a scenario file") from error
    for text in overrides:
        key, _, value = text.partition("=")
        try:
            document |= {key: tomllib.loads(f"x={value}")["x"]}
        except tomllib.TOMLDecodeError:
            document[key] = value
    if "measure.echo" in document:
        document["measure"] = {"echo": document.pop("measure.echo")}
    if document.get("delay_ms", 1) < 0:
        raise ConfigError(
            f"found {document['delay_ms']}", file=path, key="delay_ms", allowed="a positive number"
        )
    text = str(document.get("duration", "10 s"))
    number, unit = text.split()
    seconds = float(number) * {"s": 1.0, "ms": 1e-3}[unit]
    return SimpleNamespace(
        name=document.get("name", Path(path).stem),
        seed=document.get("seed", 1),
        seconds=seconds,
        duration_ns=round(seconds * 1e9),
        channels={},
        measure=SimpleNamespace(metrics=[]),
        flows={},
        traffic={},
        sessions=["main"],
        warmup_ns=0,
        folder=Path(path).parent,
        files=[Path(path)],
        document=document,
        changed=lambda more: load(path, [*overrides, *more]),
    )


def dump(scenario: SimpleNamespace) -> str:
    """The scenario as text."""
    return json.dumps(scenario.document, sort_keys=True)


def compile_plan(scenario: SimpleNamespace, folder: Path) -> dict[str, Any]:
    """A plan with as much as the command line reads."""
    echo = scenario.document.get("measure", {}).get("echo", [])
    return {
        "name": scenario.name,
        "seed": scenario.seed,
        "duration_ns": int(scenario.seconds * 1e9),
        "components": [{"name": "srv"}],
        "flows": [{"name": "kinematic", "period_ns": 1_000_000}],
        "nodes": [{"name": "op"}, {"name": "cloud"}],
        "network": {"links": []},
        "probes": [{"flow": 0, "points": [1, 2], "period_ns": 10_000_000} for _ in echo],
    }


def record(
    scenario: SimpleNamespace,
    *,
    world: str,
    out: Path,
    home: Path,
    progress: Any = None,
    live: Any = None,
    steering: Any = None,
    begin: Any = None,
) -> Path:
    """Writes a sample run."""
    fault = scenario.document.get("fault", "")
    if fault == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if scenario.seconds > scenario.document.get("fails_after_s", float("inf")):
        (out / "plan.json").write_text("a torso")
        raise WorldError("node cloud died", allowed="a node that lives")
    if fault == "world" or scenario.seed == scenario.document.get("fails_at_seed"):
        raise WorldError("node cloud died", allowed="a node that lives")
    if fault == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(scenario.document.get("takes_s", 0.0))
    out.mkdir(parents=True, exist_ok=True)
    for share in (0.0, 0.5, 1.0):
        if progress is not None and not progress(share):
            break
    noise = ((scenario.seed * 2654435761) % 1000) / 1000
    shift = scenario.document.get("delay_ms", 0.0) + noise
    sample_run.write(
        out, name=scenario.name, world=world, seed=scenario.seed, seconds=scenario.seconds, shift=shift
    )
    summary = json.loads((out / "summary.json").read_text())
    if fault == "errors":
        summary["errors"] = ["node cloud died"]
    n = int((scenario.seconds - 1.2) / 0.02)
    for point in summary["echo"]["kinematic"]["points"]:
        point["n"] = n
        for leg in ("round_trip_ms", "forward_ms", "return_ms"):
            point[leg] |= {"n": n, "sd": point[leg]["mean"] * scenario.document.get("wide", 0.5) / 1.98}
        half = scenario.document.get("wide", 0.5) / max(n, 1) ** 0.5
        point["round_trip_ms"]["ci95"] = point["round_trip_ms"]["mean"] * half
    echo = summary["echo"]["kinematic"]
    parts = [part["latency_ms"] for key in ("components", "links") for part in echo[key]]
    for part in [*parts, echo["actuation_ms"]]:
        part |= {"n": n, "sd": 0.1}
    (out / "inputs").mkdir(exist_ok=True)
    (out / "inputs/kept.f64").write_text(json.dumps(summary))
    return out


def summarise(folder: Path, scenario: object = None) -> dict[str, Any]:
    """Puts the summary of the sample run in its place."""
    summary: dict[str, Any] = json.loads((folder / "inputs/kept.f64").read_text())
    (folder / "summary.json").write_text(json.dumps(summary))
    return summary


def writer(kind: str) -> Any:
    """Writes an empty file of that kind."""

    def write(folder: Path, out: Path | None = None, *, complete: object = None) -> Path:
        target = out or folder / f"samples.{kind}"
        target.write_text("")
        return target

    return write


class Stub(ModuleType):
    """A module whose names stay as they are when modules below it are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self):
            super().__setattr__(name, value)


def install() -> None:
    """Puts the stand-ins in the place of the real modules."""
    exporting = ModuleType("tcpsbed.analysis.export")
    vars(exporting).update({f"to_{kind}": writer(kind) for kind in ("csv", "mcap", "parquet")})
    import tcpsbed
    from tcpsbed import analysis
    from tcpsbed.scenarios.overrides import overrides

    analysis.summarise, analysis.export = summarise, exporting
    sys.modules["tcpsbed.analysis.export"] = exporting
    described = {
        "load": load,
        "overrides": overrides,
        "dump": dump,
        "compile_plan": compile_plan,
        "check": lambda scenario: compile_plan(scenario, Path()),
        "schema": lambda: {"type": "object"},
        "init_template": lambda: 'name = "new"\n',
    }
    worlds = {"record": record, "check": lambda world: None, "require": lambda world: None}
    for name, content in {"scenarios": described, "worlds": worlds}.items():
        module = Stub(f"tcpsbed.{name}")
        vars(module).update(content)
        module.__path__ = [str(Path(tcpsbed.__file__).parent / name)]  # units are the real ones
        sys.modules[module.__name__] = module
        setattr(tcpsbed, name, module)
